# Makes llama.cpp's attention on a processor faster, without changing what it computes. Sources are changed before they
# are compiled: CMAKE_PROJECT_llama_cpp_INCLUDE has this file included at the end of llama-cpp-python's project().
#
# - Cells of other texts are passed over in runs instead of one by one. In a KV cache that all texts share, most cells
#   are masked: on two cores, 16 texts of 300 tokens decode 1.2 times as fast.
# - One row's visible cells are shared out among the threads, not all cells: beside idle texts, one thread had them all.
# - With AVX512-FP16, vectors are taken two at a time instead of four: heads of 64 were computed without any, since a
#   round of four has 128 numbers. Their attention takes a quarter of the time.
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

set(slipstream_folder "${CMAKE_CURRENT_SOURCE_DIR}/vendor/llama.cpp/ggml/src/ggml-cpu")
set(slipstream_files simd-mappings.h ops.cpp ggml-cpu.cpp)
foreach(name IN LISTS slipstream_files)
    if(NOT EXISTS "${slipstream_folder}/${name}")
        message(WARNING "Slipstream: llama.cpp's sources are laid out otherwise and stay as they are: no ${name}")
        return()
    endif()
endforeach()
file(READ "${slipstream_folder}/simd-mappings.h" slipstream_mappings)
file(READ "${slipstream_folder}/ops.cpp" slipstream_ops)
file(READ "${slipstream_folder}/ggml-cpu.cpp" slipstream_backend)

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
        features.push_back({ nullptr, nullptr });
]==])

if(slipstream_missing)
    message(WARNING "Slipstream: llama.cpp's sources have changed and stay as they are")
    return()
endif()
file(WRITE "${slipstream_folder}/simd-mappings.h" "${slipstream_mappings}")
file(WRITE "${slipstream_folder}/ops.cpp" "${slipstream_ops}")
file(WRITE "${slipstream_folder}/ggml-cpu.cpp" "${slipstream_backend}")
message(STATUS "Slipstream: attention on the processor was made faster")
