# Makes llama.cpp faster on a processor, and what it computes for a row the same in any company. Sources are changed before they are
# compiled: CMAKE_PROJECT_llama_cpp_INCLUDE has this file included at the end of llama-cpp-python's project().
#
# Attention
# - slipstream-attention.h, which says what it does: a row computes the same wherever its cells lie and whoever shares the
#   batch, and the rows of a text share what they read. llama.cpp says it which cells each row sees, in the order of
#   their positions. Only on x86 with AVX2 and on 64-bit ARM, with gcc or clang; elsewhere llama.cpp's own stays.
#
# Products of matrices
# - A row is multiplied alone as it is beside others, where llama.cpp has another kernel for one row than for several:
#   floats, and Q4_K, Q5_K and Q6_K. The other types have one kernel, or are rare (Q2_K, Q3_K, the IQ types).
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
set(slipstream_plan_file "${slipstream_root}/ggml/src/ggml-cpu/ggml-cpu.c")
set(slipstream_products_file "${slipstream_root}/ggml/src/ggml-cpu/llamafile/sgemm.cpp")
set(slipstream_dots_file "${slipstream_root}/ggml/src/ggml-cpu/arch/x86/quants.c")
set(slipstream_repacked_file "${slipstream_root}/ggml/src/ggml-cpu/arch/x86/repack.cpp")
set(slipstream_graph_file "${slipstream_root}/src/llama-graph.cpp")
set(slipstream_cache_file "${slipstream_root}/src/llama-kv-cache.cpp")
set(slipstream_ops_file "${slipstream_root}/ggml/src/ggml-cpu/ops.cpp")
set(slipstream_backend_file "${slipstream_root}/ggml/src/ggml-cpu/ggml-cpu.cpp")
set(slipstream_members_file "${slipstream_root}/src/llama-context.h")
set(slipstream_context_file "${slipstream_root}/src/llama-context.cpp")
# The backend says what a build has: it is written last.
set(slipstream_names plan products dots repacked graph cache ops members context backend)
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

slipstream_replace(slipstream_ops [==[
void ggml_compute_forward_flash_attn_ext(
        const ggml_compute_params * params,
        ggml_tensor * dst) {
]==] [==[
#include "slipstream-attention.h"

bool slipstream_has_attention() {
#if defined(SLIPSTREAM_ATTENTION)
    return true;
#else
    return false;
#endif
}

extern "C" size_t slipstream_attention_size(const ggml_tensor * node, int n_tasks) {
#if defined(SLIPSTREAM_ATTENTION)
    const int64_t n_rows = node->src[0]->ne[1];
    const int64_t n_kv   = node->src[1]->ne[1];
    const int64_t n_heads = node->src[0]->ne[2];
    const int64_t size    = slipstream::scratch_size(node->src[1]->ne[0], node->src[2]->ne[0], n_kv, n_rows, n_heads);
    return sizeof(float)*(n_tasks*size + slipstream::shared_size(n_kv, n_rows, n_heads));
#else
    GGML_UNUSED(node);
    GGML_UNUSED(n_tasks);
    return 0;
#endif
}

void ggml_compute_forward_flash_attn_ext(
        const ggml_compute_params * params,
        ggml_tensor * dst) {
#if defined(SLIPSTREAM_ATTENTION)
    if (!params->use_ref && slipstream::can_attend(dst)) {
        slipstream::compute(params, dst);
        return;
    }
#endif
]==])

slipstream_replace(slipstream_plan [==[
                        cur += MAX(prefill, decode);
                    } break;
                case GGML_OP_FLASH_ATTN_BACK:
]==] [==[
                        size_t slipstream_attention_size(const struct ggml_tensor * node, int n_tasks);
                        cur += MAX(MAX(prefill, decode), slipstream_attention_size(node, n_tasks));
                    } break;
                case GGML_OP_FLASH_ATTN_BACK:
]==])

# A single row of floats is multiplied as it is among others: by one chain of additions instead of four.
slipstream_replace(slipstream_products [==[
    // only enable sgemm for prompt processing
#if !defined(__MMA__)
    if (n < 2)
        return false;
#endif
]==] [==[
#if defined(__AVX2__)
    const bool slipstream_is_float = Atype == GGML_TYPE_F32 || Atype == GGML_TYPE_F16 || Atype == GGML_TYPE_BF16;
#else
    const bool slipstream_is_float = false;
#endif
    // only enable sgemm for prompt processing
#if !defined(__MMA__)
    if (n < 2 && !slipstream_is_float)
        return false;
#endif
]==])

# K-quants: a row alone is added up as it is beside others (tiled-kernel.cpp, from eight rows on): block by block, the
# integers times the block's scale, less its minimum, times the row's scale. Q4_K that was reordered: as four rows are.
slipstream_replace(slipstream_dots [==[
// horizontally add 4 int32_t
]==] [==[
// Slipstream: add a block of a K-quant to a row's sum: its integers, their scale, its minimum, the row's scale.
static inline float slipstream_add_block(float sum, __m256i integers, float d, int mins, float dmin, float row_d) {
    return fmaf(fmaf(-dmin, (float) mins, d*(float) hsum_i32_8(integers)), row_d, sum);
}

// horizontally add 4 int32_t
]==])
slipstream_replace(slipstream_dots [==[
    __m256 acc = _mm256_setzero_ps();

    for (int i = 0; i < nb; ++i) {

        const float d = y[i].d * GGML_CPU_FP16_TO_FP32(x[i].d);

        const uint8_t * GGML_RESTRICT q4 = x[i].ql;
        const uint8_t * GGML_RESTRICT qh = x[i].qh;
        const int8_t  * GGML_RESTRICT q8 = y[i].qs;

        const __m256i q8sums = _mm256_loadu_si256((const __m256i*)y[i].bsums);
]==] [==[
    float sum = 0.0f;

    for (int i = 0; i < nb; ++i) {

        const uint8_t * GGML_RESTRICT q4 = x[i].ql;
        const uint8_t * GGML_RESTRICT qh = x[i].qh;
        const int8_t  * GGML_RESTRICT q8 = y[i].qs;

        const __m256i q8sums = _mm256_loadu_si256((const __m256i*)y[i].bsums);
]==])
slipstream_replace(slipstream_dots [==[
        sumi = _mm256_sub_epi32(sumi, q8sclsub);
        acc = _mm256_fmadd_ps(_mm256_broadcast_ss(&d), _mm256_cvtepi32_ps(sumi), acc);
    }

    *s = hsum_float_8(acc);
]==] [==[
        sumi = _mm256_sub_epi32(sumi, q8sclsub);
        sum = slipstream_add_block(sum, sumi, GGML_CPU_FP16_TO_FP32(x[i].d), 0, 0.0f, y[i].d);
    }

    *s = sum;
]==])
slipstream_replace(slipstream_dots [==[
    const __m256i mone  = _mm256_set1_epi8(1);

    __m256 acc = _mm256_setzero_ps();

    float summs = 0.f;

    for (int i = 0; i < nb; ++i) {
        const uint8_t * GGML_RESTRICT q5 = x[i].qs;
        const int8_t  * GGML_RESTRICT q8 = y[i].qs;

        const float d = y[i].d * GGML_CPU_FP16_TO_FP32(x[i].d);
        const float dmin = -y[i].d * GGML_CPU_FP16_TO_FP32(x[i].dmin);
]==] [==[
    const __m256i mone  = _mm256_set1_epi8(1);

    float sum = 0.0f;

    for (int i = 0; i < nb; ++i) {
        const uint8_t * GGML_RESTRICT q5 = x[i].qs;
        const int8_t  * GGML_RESTRICT q8 = y[i].qs;
]==])
slipstream_replace(slipstream_dots [==[
        const __m128i hsum = _mm_hadd_epi32(_mm_hadd_epi32(prod, mzero), mzero);
        summs += dmin * _mm_extract_epi32(hsum, 0);

        const __m128i sc128  = _mm256_extracti128_si256(mins_and_scales, 0);
]==] [==[
        const __m128i hsum = _mm_hadd_epi32(_mm_hadd_epi32(prod, mzero), mzero);
        const int mins = _mm_extract_epi32(hsum, 0);

        const __m128i sc128  = _mm256_extracti128_si256(mins_and_scales, 0);
]==])
slipstream_replace(slipstream_dots [==[
        __m256 vd = _mm256_set1_ps(d);
        acc = _mm256_fmadd_ps(vd, _mm256_cvtepi32_ps(sumi), acc);

    }

    *s = hsum_float_8(acc) + summs;
]==] [==[
        sum = slipstream_add_block(sum, sumi, GGML_CPU_FP16_TO_FP32(x[i].d), mins, GGML_CPU_FP16_TO_FP32(x[i].dmin), y[i].d);
    }

    *s = sum;
]==])
slipstream_replace(slipstream_dots [==[
    const __m256i m4 = _mm256_set1_epi8(0xF);

    __m256 acc = _mm256_setzero_ps();
    __m128 acc_m = _mm_setzero_ps();

   for (int i = 0; i < nb; ++i) {

        const float d = y[i].d * GGML_CPU_FP16_TO_FP32(x[i].d);
        const float dmin = -y[i].d * GGML_CPU_FP16_TO_FP32(x[i].dmin);

        memcpy(utmp, x[i].scales, 12);
]==] [==[
    const __m256i m4 = _mm256_set1_epi8(0xF);

    float sum = 0.0f;

   for (int i = 0; i < nb; ++i) {

        memcpy(utmp, x[i].scales, 12);
]==])
slipstream_replace(slipstream_dots [==[
        acc_m = _mm_fmadd_ps(_mm_set1_ps(dmin), _mm_cvtepi32_ps(prod), acc_m);
]==] [==[
        const int mins = hsum_i32_4(prod);
]==])
slipstream_replace(slipstream_dots [==[
        __m256 vd = _mm256_set1_ps(d);
        acc = _mm256_fmadd_ps(vd, _mm256_cvtepi32_ps(sumi), acc);

    }

    acc_m = _mm_add_ps(acc_m, _mm_movehl_ps(acc_m, acc_m));
    acc_m = _mm_add_ss(acc_m, _mm_movehdup_ps(acc_m));

    *s = hsum_float_8(acc) + _mm_cvtss_f32(acc_m);
]==] [==[
        sum = slipstream_add_block(sum, sumi, GGML_CPU_FP16_TO_FP32(x[i].d), mins, GGML_CPU_FP16_TO_FP32(x[i].dmin), y[i].d);
    }

    *s = sum;
]==])
slipstream_replace(slipstream_repacked [==[
                    // Accumulate for the complete block
                    iacc_b = _mm256_add_epi32(iacc_b, iacc_sb);
                    iacc_min_b = _mm256_add_epi32(iacc_min_b, iacc_min_sb);
                }

                // Multiply-Add with scale values for the complete super block
                acc_row = _mm256_fmadd_ps(_mm256_cvtepi32_ps(iacc_b), _mm256_mul_ps(col_scale_f32, row_scale_f32), acc_row);
                acc_min_rows = _mm256_fmadd_ps(_mm256_cvtepi32_ps(iacc_min_b), _mm256_mul_ps(col_dmin_f32, row_scale_f32), acc_min_rows);

            }
]==] [==[
                    // Slipstream: with every two sub blocks, as ggml_gemm_q4_K_8x8_q8_K does.
                    acc_row = _mm256_fmadd_ps(_mm256_cvtepi32_ps(iacc_sb), _mm256_mul_ps(col_scale_f32, row_scale_f32), acc_row);
                    acc_min_rows = _mm256_fmadd_ps(_mm256_cvtepi32_ps(iacc_min_sb), _mm256_mul_ps(col_dmin_f32, row_scale_f32), acc_min_rows);
                }
            }
]==])

# Beside the mask of a batch, the cells that each row sees: see slipstream-attention.h.
slipstream_replace(slipstream_graph [==[
    ggml_set_name(res, "attn_inp_kq_mask");

    return res;
}

static bool can_reuse_kq_mask(
]==] [==[
    ggml_set_name(res, "attn_inp_kq_mask");

    // With the variable, llama.cpp's own attention computes: to be compared with.
    static const bool is_left_out = getenv("SLIPSTREAM_LLAMA_ATTENTION") != nullptr;
    if (cparams.flash_attn && n_stream == 1 && !is_left_out) {
        const int64_t n_texts = std::min(n_tokens, cparams.n_seq_max);
        res->src[0] = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 1 + 3*int64_t(n_tokens) + n_texts*n_kv);
        ggml_set_input(res->src[0]);
        ggml_set_name(res->src[0], "attn_inp_order");
    }

    return res;
}

static bool can_reuse_kq_mask(
]==])

# As a source of the operation, so that its memory is planned. Not where a GPU has the cache: it would be copied there.
slipstream_replace(slipstream_graph [==[
        ggml_flash_attn_ext_add_sinks(cur, sinks);
]==] [==[
        const ggml_tensor * cells = k;
        while (cells->view_src) {
            cells = cells->view_src;
        }
        if (kq_mask && kq_mask->op == GGML_OP_NONE && cells->buffer && ggml_backend_buffer_is_host(cells->buffer)) {
            cur->src[5] = kq_mask->src[0];
        }

        ggml_flash_attn_ext_add_sinks(cur, sinks);
]==])

slipstream_replace(slipstream_cache [==[
void llama_kv_cache::set_input_kq_mask(ggml_tensor * dst, const llama_ubatch * ubatch, bool causal_attn) const {
    const uint32_t n_tokens = ubatch->n_tokens;
]==] [==[
// Slipstream: for each row, the cells that it sees in the order of their positions (see slipstream-attention.h). Not
// where a row sees what no range of positions says: images, and batches in which rows see later ones.
static void slipstream_set_order(const args_set_input_kq_mask & args, ggml_tensor * dst, bool causal) {
    int32_t *    data   = (int32_t *) dst->data;
    const auto * ubatch = args.ubatch;
    data[0] = 0;
    if (!causal || args.n_stream != 1) {
        return;
    }
    const auto &  cells   = args.v_cells.at(args.seq_to_stream[ubatch->seq_id[0][0]]);
    const int64_t n_texts = (dst->ne[0] - 1 - 3*args.n_tps)/args.n_kv;

    std::vector<llama_seq_id> texts;
    std::vector<int32_t>      place(LLAMA_MAX_SEQ, -1);
    for (uint32_t i = 0; i < ubatch->n_tokens; ++i) {
        const llama_seq_id seq_id = ubatch->seq_id[i][0];
        if (place[seq_id] < 0) {
            place[seq_id] = texts.size();
            texts.push_back(seq_id);
        }
    }
    if ((int64_t) texts.size() > n_texts) {
        return;
    }

    std::vector<int32_t>   n_seen(texts.size());
    std::vector<llama_pos> last(texts.size(), -1);
    std::vector<bool>      is_sorted(texts.size(), true);
    int32_t * lists = data + 1 + 3*args.n_tps;

    const auto add = [&](int32_t text, int32_t cell) {
        const llama_pos pos = cells.pos_get(cell);
        if (pos < last[text]) {
            is_sorted[text] = false;
        }
        last[text] = pos;
        lists[text*args.n_kv + n_seen[text]++] = cell;
    };
    for (int32_t cell = 0; cell < args.n_kv; ++cell) {
        if (cells.is_empty(cell)) {
            continue;
        }
        if (cells.seq_count(cell) == 1) {
            const int32_t text = place[cells.seq_get(cell)];
            if (text >= 0) {
                add(text, cell);
            }
            continue;
        }
        for (size_t text = 0; text < texts.size(); ++text) {
            if (cells.seq_has(cell, texts[text])) {
                add(text, cell);
            }
        }
    }
    for (size_t text = 0; text < texts.size(); ++text) {
        if (!is_sorted[text]) {
            int32_t * list = lists + text*args.n_kv;
            std::stable_sort(list, list + n_seen[text], [&](int32_t a, int32_t b) {
                return cells.pos_get(a) < cells.pos_get(b);
            });
        }
    }

    const bool is_2d = ubatch->is_pos_2d();
    for (uint32_t i = 0; i < ubatch->n_tokens; ++i) {
        const int32_t   text  = place[ubatch->seq_id[i][0]];
        const llama_pos pos   = ubatch->pos[i];
        const int32_t * first = lists + text*args.n_kv;
        const int32_t * end   = std::partition_point(first, first + n_seen[text], [&](int32_t cell) {
            return cells.pos_get(cell) <= pos;
        });
        const int32_t * begin = args.swa_type == LLAMA_SWA_TYPE_NONE ? first :
            std::partition_point(first, end, [&](int32_t cell) {
                return llama_hparams::is_masked_swa(args.n_swa, args.swa_type, cells.pos_get(cell), pos);
            });
        if (is_2d && end - begin > 1 && cells.pos_get(end[-2]) == pos) {
            return;
        }
        data[1 + 3*i + 0] = first - data;
        data[1 + 3*i + 1] = begin - first;
        data[1 + 3*i + 2] = end - first;
    }
    data[0] = 1;
}

void llama_kv_cache::set_input_kq_mask(ggml_tensor * dst, const llama_ubatch * ubatch, bool causal_attn) const {
    const uint32_t n_tokens = ubatch->n_tokens;
]==])

slipstream_replace(slipstream_cache [==[
    if (dst->type == GGML_TYPE_F16) {
        set_input_kq_mask_impl<ggml_fp16_t>(args, (ggml_fp16_t *) dst->data, causal_attn);
]==] [==[
    if (dst->src[0] && dst->src[0]->buffer) {
        GGML_ASSERT(ggml_backend_buffer_is_host(dst->src[0]->buffer));
        slipstream_set_order(args, dst->src[0], causal_attn);
    }

    if (dst->type == GGML_TYPE_F16) {
        set_input_kq_mask_impl<ggml_fp16_t>(args, (ggml_fp16_t *) dst->data, causal_attn);
]==])

slipstream_replace(slipstream_backend [==[
static ggml_backend_feature * ggml_backend_cpu_get_features(ggml_backend_reg_t reg) {
]==] [==[
bool slipstream_has_attention();

static ggml_backend_feature * ggml_backend_cpu_get_features(ggml_backend_reg_t reg) {
]==])
slipstream_replace(slipstream_backend [==[
        features.push_back({ nullptr, nullptr });
]==] [==[
        if (slipstream_has_attention()) {
            features.push_back({ "SLIPSTREAM", "1" });
        }
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
file(COPY "${CMAKE_CURRENT_LIST_DIR}/slipstream-attention.h" DESTINATION "${slipstream_root}/ggml/src/ggml-cpu")
foreach(name IN LISTS slipstream_names)
    file(WRITE "${slipstream_${name}_file}" "${slipstream_${name}}")
endforeach()
message(STATUS "Slipstream: attention and changes of the batch's width were made faster on the processor")
