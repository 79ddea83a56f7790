# Makes llama.cpp faster on a processor, without changing what it computes. Sources are changed before they are
# compiled: CMAKE_PROJECT_llama_cpp_INCLUDE has this file included at the end of llama-cpp-python's project().
#
# Attention
# - Cells of other texts are passed over in runs instead of one by one. In a KV cache that all texts share, most cells
#   are masked: on two cores, 16 texts of 300 tokens decode 1.2 times as fast.
# - One row's visible cells are shared out among the threads, not all cells: beside idle texts, one thread had them all.
# - With AVX512-FP16, vectors are taken two at a time instead of four: heads of 64 were computed without any, since a
#   round of four has 128 numbers. Their attention takes a quarter of the time.
#
# Graphs
# - The compute graph of a batch is built anew whenever its number of rows is not that of the batch before: about half a
#   microsecond for each node, a tenth of a step of 60 small layers, and as long as the step itself for 200. Which is
#   nearly always where drafts are as long as they pay. The graphs of the eight widths used last are kept, up to 32
#   rows, each with a scheduler and so with compute buffers of its own; together they have a quarter of the rows that the
#   context has buffers for. Only where the processor computes alone, and not on Windows, where the memory that a
#   scheduler asks for and never uses counts as used.
#
# Either all of it is changed or, where a text is not found exactly once, nothing. A build that has it says so among the
# features of the processor.

function(slipstream_replace content old new)
    set(before "${${content}}")
    string(REPLACE "${old}" "${new}" after "${before}")
    string(REPLACE "${old}" "" without "${before}")
    string(LENGTH "${old}" n_old)
    string(LENGTH "${before}" n_before)
    string(LENGTH "${without}" n_without)
    math(EXPR n_removed "${n_before} - ${n_without}")
    if(NOT n_removed EQUAL n_old)
        set(slipstream_missing TRUE PARENT_SCOPE)
    endif()
    set(${content} "${after}" PARENT_SCOPE)
endfunction()

set(slipstream_root "${CMAKE_CURRENT_SOURCE_DIR}/vendor/llama.cpp")
set(slipstream_mappings_file "${slipstream_root}/ggml/src/ggml-cpu/simd-mappings.h")
set(slipstream_ops_file "${slipstream_root}/ggml/src/ggml-cpu/ops.cpp")
set(slipstream_backend_file "${slipstream_root}/ggml/src/ggml-cpu/ggml-cpu.cpp")
set(slipstream_members_file "${slipstream_root}/src/llama-context.h")
set(slipstream_context_file "${slipstream_root}/src/llama-context.cpp")
# The backend says what a build has: it is written last.
set(slipstream_names mappings ops members context backend)
foreach(name IN LISTS slipstream_names)
    if(NOT EXISTS "${slipstream_${name}_file}")
        message(WARNING "Slipstream: llama.cpp's sources stay as they are, there is no ${slipstream_${name}_file}")
        return()
    endif()
    file(READ "${slipstream_${name}_file}" slipstream_${name})
endforeach()
if(slipstream_backend MATCHES "SLIPSTREAM_GRAPHS")
    message(STATUS "Slipstream: llama.cpp's sources were changed before")
    return()
endif()

# -- attention --------------------------------------------------------------------------------------------------------

slipstream_replace(slipstream_mappings [==[
#define GGML_F16_STEP 128
#define GGML_F16_EPR  32
]==] [==[
#define GGML_F16_STEP 64
#define GGML_F16_EPR  32
]==])

slipstream_replace(slipstream_ops [==[
static void ggml_compute_forward_flash_attn_ext_f16_one_chunk(
]==] [==[
// Slipstream: -INFINITY in F16, and four of them.
static constexpr uint16_t GGML_FA_MASKED   = 0xFC00;
static constexpr uint64_t GGML_FA_MASKED_4 = 0xFC00FC00FC00FC00ULL;

// Slipstream: the first cell from ic on that is not masked, ic_end where all are.
static inline int64_t ggml_fa_next_visible(const ggml_fp16_t * mp, int64_t ic, int64_t ic_end) {
    uint64_t ahead[4];
    for (; ic + 16 <= ic_end; ic += 16) {
        memcpy(ahead, mp + ic, sizeof(ahead));
        if ((ahead[0] ^ GGML_FA_MASKED_4) | (ahead[1] ^ GGML_FA_MASKED_4) |
            (ahead[2] ^ GGML_FA_MASKED_4) | (ahead[3] ^ GGML_FA_MASKED_4)) {
            break;
        }
    }
    for (; ic + 4 <= ic_end; ic += 4) {
        memcpy(ahead, mp + ic, sizeof(ahead[0]));
        if (ahead[0] != GGML_FA_MASKED_4) {
            break;
        }
    }
    while (ic < ic_end && mp[ic] == GGML_FA_MASKED) {
        ++ic;
    }
    return ic;
}

static void ggml_compute_forward_flash_attn_ext_f16_one_chunk(
]==])

slipstream_replace(slipstream_ops [==[
        for (int64_t ic = ic_start; ic < ic_end; ++ic) {
            const float mv = mp ? slope*GGML_CPU_FP16_TO_FP32(mp[ic]) : 0.0f;
]==] [==[
        for (int64_t ic = ic_start; ic < ic_end; ++ic) {
            if (mp && mp[ic] == GGML_FA_MASKED) {
                ic = ggml_fa_next_visible(mp, ic, ic_end);
                if (ic == ic_end) {
                    break;
                }
            }
            const float mv = mp ? slope*GGML_CPU_FP16_TO_FP32(mp[ic]) : 0.0f;
]==])

slipstream_replace(slipstream_ops [==[
        const int64_t chunk_size = (nek1 + nth - 1) / nth;

        // Partials buffer layout: [q_head][kv_chunk][M, S, VKQ]
]==] [==[
        // Slipstream: the threads share the cells that can be seen. The first chunk begins at 0: sinks belong to it.
        const ggml_tensor * mask = dst->src[3];
        int64_t first = 0;
        int64_t last  = nek1;
        if (mask && mask->ne[2] == 1 && mask->ne[3] == 1) {
            const ggml_fp16_t * mp = (const ggml_fp16_t *) mask->data;
            first = ggml_fa_next_visible(mp, 0, nek1);
            while (last > first && mp[last - 1] == GGML_FA_MASKED) {
                --last;
            }
        }
        const int64_t chunk_size = (last - first + nth - 1) / nth;

        // Partials buffer layout: [q_head][kv_chunk][M, S, VKQ]
]==])

slipstream_replace(slipstream_ops [==[
        const int64_t ic_start = ith * chunk_size;
        const int64_t ic_end   = std::min(ic_start + chunk_size, nek1);

        const int64_t partial_stride = nth * partial_size;
]==] [==[
        const int64_t ic_start = ith == 0 ? 0 : first + ith * chunk_size;
        const int64_t ic_end   = std::min(first + (ith + 1) * chunk_size, nek1);

        const int64_t partial_stride = nth * partial_size;
]==])

slipstream_replace(slipstream_backend [==[
        features.push_back({ nullptr, nullptr });
]==] [==[
        features.push_back({ "SLIPSTREAM", "1" });
        features.push_back({ "SLIPSTREAM_GRAPHS", "1" });
        features.push_back({ nullptr, nullptr });
]==])

# -- graphs -----------------------------------------------------------------------------------------------------------

slipstream_replace(slipstream_members [==[
    llm_graph_result * gf_res_prev_active = nullptr;

    // host buffer for the model output (logits and embeddings)
]==] [==[
    llm_graph_result * gf_res_prev_active = nullptr;

    // Slipstream: graphs of narrow batches that are kept, each with a scheduler that holds its buffers. What is in use
    // is in the members above, and what they held before it in its place here.
    struct slipstream_graph {
        uint32_t n_tokens  = 0;
        uint32_t n_widest  = 0; // its buffers do not shrink
        uint64_t last_used = 0;

        ggml_backend_sched_ptr              sched;
        std::array<llm_graph_result_ptr, 2> gf_res_prev;
        llm_graph_result *                  gf_res_prev_active = nullptr;
    };

    std::array<slipstream_graph, 8> slipstream_graphs;
    slipstream_graph *              slipstream_current   = nullptr;
    uint64_t                        slipstream_n_used    = 0;
    size_t                          slipstream_max_nodes = 0;
    bool                            slipstream_has_room  = true;

    bool slipstream_keeps(uint32_t n_tokens) const;
    void slipstream_swap(slipstream_graph & other);
    void slipstream_use_graph(uint32_t n_tokens);
    void slipstream_drop_graphs();

    // host buffer for the model output (logits and embeddings)
]==])

slipstream_replace(slipstream_context [==[
llm_graph_result * llama_context::process_ubatch(const llama_ubatch & ubatch, llm_graph_type gtype, llama_memory_context_i * mctx, ggml_status & ret) {
]==] [==[
// Slipstream: whether graphs for so many tokens are kept.
bool llama_context::slipstream_keeps(uint32_t n_tokens) const {
#if defined(_WIN32)
    GGML_UNUSED(n_tokens);
    return false;
#else
    // Samplers write into the tensors of the graph built last, and what warms up has graphs that nothing else has.
    const bool is_plain = sampling.samplers.empty() && !cparams.warmup && !cparams.cb_eval && !opt_ctx;
    const bool is_alone = backends.size() == 1 && backend_cpu && slipstream_has_room && !graph_reuse_disable;
    return n_tokens <= std::min(32u, cparams.n_ubatch/4) && is_alone && is_plain;
#endif
}

// Slipstream: exchange what is in use for what is kept in a place.
void llama_context::slipstream_swap(slipstream_graph & other) {
    std::swap(sched,              other.sched);
    std::swap(gf_res_prev,        other.gf_res_prev);
    std::swap(gf_res_prev_active, other.gf_res_prev_active);
}

// Slipstream: use the graph kept for so many tokens, or the context's own.
void llama_context::slipstream_use_graph(uint32_t n_tokens) {
    slipstream_graph * wanted = nullptr;
    if (slipstream_keeps(n_tokens)) {
        wanted = &slipstream_graphs[0];
        for (auto & graph : slipstream_graphs) {
            if (graph.n_tokens == n_tokens) {
                wanted = &graph;
                break;
            }
            if (graph.last_used < wanted->last_used) {
                wanted = &graph;
            }
        }
        wanted->n_tokens  = n_tokens;
        wanted->n_widest  = std::max(wanted->n_widest, n_tokens);
        wanted->last_used = ++slipstream_n_used;
    }
    if (wanted == slipstream_current) {
        return;
    }
    if (slipstream_current) {
        slipstream_swap(*slipstream_current);
    }
    slipstream_current = wanted;
    if (!wanted) {
        return;
    }
    slipstream_swap(*wanted);
    while (true) {
        uint32_t           n_rows = 0;
        slipstream_graph * oldest = nullptr;
        for (auto & graph : slipstream_graphs) {
            n_rows += graph.n_widest;
            if (&graph != wanted && graph.sched && (!oldest || graph.last_used < oldest->last_used)) {
                oldest = &graph;
            }
        }
        if (!oldest || n_rows <= cparams.n_ubatch/4) {
            break;
        }
        *oldest = {};
    }
    if (!sched) {
        sched.reset(ggml_backend_sched_new(backend_ptrs.data(), backend_buft.data(), backend_ptrs.size(),
                    slipstream_max_nodes, false, cparams.op_offload));
    }
}

// Slipstream: go back to the context's own graph and free the others.
void llama_context::slipstream_drop_graphs() {
    if (slipstream_current) {
        slipstream_swap(*slipstream_current);
        slipstream_current = nullptr;
    }
    for (auto & graph : slipstream_graphs) {
        graph = {};
    }
}

llm_graph_result * llama_context::process_ubatch(const llama_ubatch & ubatch, llm_graph_type gtype, llama_memory_context_i * mctx, ggml_status & ret) {
]==])

slipstream_replace(slipstream_context [==[
    auto * res = get_gf_res_prev();
    auto * gf  = res->get_gf();
]==] [==[
    slipstream_use_graph(mctx ? ubatch.n_tokens : UINT32_MAX);

    auto * res = get_gf_res_prev();
    auto * gf  = res->get_gf();
]==])

# A graph that is kept asks for memory when its width first comes; the context's own has all that it needs. A scheduler
# that failed once must not be asked again.
slipstream_replace(slipstream_context [==[
            LLAMA_LOG_ERROR("%s: failed to allocate graph\n", __func__);
            ret = GGML_STATUS_ALLOC_FAILED;
]==] [==[
            LLAMA_LOG_ERROR("%s: failed to allocate graph\n", __func__);
            if (slipstream_current) {
                slipstream_drop_graphs();
                slipstream_has_room = false;
            }
            ret = GGML_STATUS_ALLOC_FAILED;
]==])

# Schedulers and graphs for all that a narrow batch can need; the context's own are for the widest.
slipstream_replace(slipstream_context [==[
        res.reset(new llm_graph_result(gf_res_reserve->get_max_nodes()));
]==] [==[
        res.reset(new llm_graph_result(slipstream_current ? slipstream_max_nodes : gf_res_reserve->get_max_nodes()));
]==])
slipstream_replace(slipstream_context [==[
        const bool diff = n_nodes_pp != n_nodes_tg || n_splits_pp != n_splits_tg ||
]==] [==[
        slipstream_max_nodes = std::min<size_t>(max_nodes, 2*std::max(n_nodes_pp, n_nodes_tg) + 1024);

        const bool diff = n_nodes_pp != n_nodes_tg || n_splits_pp != n_splits_tg ||
]==])

# The destructor looks at the size of the context's own buffers.
slipstream_replace(slipstream_context [==[
    synchronize();

    // when training, ggml_opt allocates extra buffers through the scheduler, so the sizes no longer match the expectation
]==] [==[
    synchronize();
    slipstream_drop_graphs();

    // when training, ggml_opt allocates extra buffers through the scheduler, so the sizes no longer match the expectation
]==])

# Adapters, samplers and other settings of the context have changed.
slipstream_replace(slipstream_context [==[
    if (!sched_need_reserve) {
        return;
    }

]==] [==[
    if (!sched_need_reserve) {
        return;
    }

    slipstream_drop_graphs();

]==])

# The memory computes with the scheduler that is in use.
slipstream_replace(slipstream_context [==[
        // reset the previous graph results to make sure that they won't be reused
        // TODO: make mctx->apply() report if a graph reserve is needed, then reset graph results only if the memory module reset the scheduler
]==] [==[
        slipstream_drop_graphs();

        // reset the previous graph results to make sure that they won't be reused
        // TODO: make mctx->apply() report if a graph reserve is needed, then reset graph results only if the memory module reset the scheduler
]==])

# -- all or nothing ---------------------------------------------------------------------------------------------------

if(slipstream_missing)
    message(WARNING "Slipstream: llama.cpp's sources have changed and stay as they are")
    return()
endif()
foreach(name IN LISTS slipstream_names)
    file(WRITE "${slipstream_${name}_file}" "${slipstream_${name}}")
endforeach()
message(STATUS "Slipstream: attention and changes of the batch's width were made faster on the processor")
