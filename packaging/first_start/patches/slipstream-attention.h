// Attention on a processor (GGML_OP_FLASH_ATTN_EXT) whose rows do not depend on each other.
//
// What a row computes depends on its query, and on keys and values of the cells that it sees in the order of their
// positions: not on where these cells lie, how many rows share the batch, how many threads there are, or what other
// cells hold. So a text is the same to the last bit alone, in company, drafted, and restored from a cache.
//
// - A score is one dot product: one chain of multiply-adds for each lane of a vector, and one fixed tree over the lanes.
// - Scores are kept as powers of two, 2^n * 2^f with an integer n. What was added up is rescaled by integer powers of
//   two alone, which is exact: it does not matter where a new maximum is found, nor where a block of cells ends.
// - Values are added up cell by cell. Threads share rows and heads, or for a single row, cells while they compute
//   scores, and parts of the values' width while they add up.
//
// Rows of one text that share a key head share each key and value that is read, so drafts and prompts read them once
// for up to 32 queries; cells of other texts are never looked at. Few queries read F16 in the cache itself, many a block
// that was made F32 for all of them.
//
// The sixth source says which cells a row sees (llama_kv_cache::set_input_kq_mask): data[0] is 1 where it is filled,
// then (first, begin, end) for each row: it sees data[first + begin] to data[first + end - 1]. Without it, the mask is
// searched.
#pragma once

#if defined(__GNUC__) || defined(__clang__) // for vectors as types
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define SLIPSTREAM_ATTENTION
#include <immintrin.h>
#elif defined(__aarch64__)
#define SLIPSTREAM_ATTENTION
#include <arm_neon.h>
#endif
#endif

#if defined(SLIPSTREAM_ATTENTION)

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace slipstream {

#if defined(__AVX512F__)
static constexpr int LANES = 16;
#elif defined(__AVX2__)
static constexpr int LANES = 8;
#else
static constexpr int LANES = 4;
#endif
typedef float   vec  __attribute__((vector_size(LANES*4), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(LANES*4), aligned(4), may_alias));

// Queries that share what is read, and cells that are read at a time.
static constexpr int MAX_QUERIES = 32;
static constexpr int BLOCK       = 32;
static constexpr int MAX_HEADS   = 256;

// Up to so many queries read the cache itself: making a block F32 first takes longer than doing so for each of them.
static constexpr int FEW_QUERIES = 8;

// Cells are fetched so many blocks ahead: between two steps all weights are read, so cells are no longer in a cache.
static constexpr int AHEAD = 2;

// Scores beyond, as powers of two, count as this: integers stay exact in F32.
static constexpr float SCORE_LIMIT = 1048576.0f;
static constexpr int   NO_SCORE    = -(1 << 22);

static constexpr int64_t pad(int64_t n) {
    return (n + LANES - 1)/LANES*LANES;
}

// Queries that a thread has room for: all heads of a single row.
static inline int64_t n_places(int64_t n_rows, int64_t n_heads) {
    return n_rows == 1 ? std::max<int64_t>(MAX_QUERIES, n_heads) : MAX_QUERIES;
}

// Floats of scratch memory for each thread.
static inline int64_t scratch_size(int64_t dk, int64_t dv, int64_t n_kv, int64_t n_rows, int64_t n_heads) {
    return n_places(n_rows, n_heads)*(pad(dk) + pad(dv)) + MAX_QUERIES*BLOCK + BLOCK*(pad(dk) + pad(dv)) + n_kv +
           4*n_rows + 2*CACHE_LINE_SIZE_F32;
}

// Floats that all threads share: the scores of a single row.
static inline int64_t shared_size(int64_t n_kv, int64_t n_rows, int64_t n_heads) {
    return n_rows == 1 ? n_heads*(n_kv + BLOCK) : 0;
}

// -- arithmetic -------------------------------------------------------------------------------------------------------

// a*b + c with one rounding, whatever the compiler makes of the code around it.
static inline vec multiply_add(vec a, vec b, vec c) {
#if defined(__AVX512F__)
    return (vec) _mm512_fmadd_ps((__m512) a, (__m512) b, (__m512) c);
#elif defined(__AVX2__)
    return (vec) _mm256_fmadd_ps((__m256) a, (__m256) b, (__m256) c);
#else
    return (vec) vfmaq_f32((float32x4_t) c, (float32x4_t) a, (float32x4_t) b);
#endif
}

// The sums over the lanes of four vectors, each by the same tree.
static inline void sum_lanes(const vec a[4], float * to) {
#if defined(__AVX2__)
    __m256 h[4];
    for (int i = 0; i < 4; i++) {
        __m256 part[LANES/8];
        memcpy(part, &a[i], sizeof(vec));
        h[i] = LANES == 16 ? _mm256_add_ps(part[0], part[LANES/8 - 1]) : part[0];
    }
    const __m256 t = _mm256_hadd_ps(_mm256_hadd_ps(h[0], h[1]), _mm256_hadd_ps(h[2], h[3]));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1)));
#else
    float32x4_t h[4];
    memcpy(h, a, sizeof(h));
    vst1q_f32(to, vpaddq_f32(vpaddq_f32(h[0], h[1]), vpaddq_f32(h[2], h[3])));
#endif
}

static inline vec load(const float * from) {
    return *(const vec *) from;
}

static inline vec load(const ggml_fp16_t * from) {
#if defined(__AVX512F__)
    return (vec) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) from));
#elif defined(__AVX2__)
    return (vec) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) from));
#else
    return (vec) vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *) from)));
#endif
}

// The keys or values of some cells: a block that was made F32, or the cache itself, where the last cell comes again beyond
// it: what is computed of that is not used.
struct block_rows {
    const float * data;
    int64_t       stride;

    const float * operator[](int c) const {
        return data + c*stride;
    }
};

struct cache_rows {
    const char *    data;
    int64_t         stride;
    const int32_t * cells;
    int             n;

    const ggml_fp16_t * operator[](int c) const {
        return (const ggml_fp16_t *) (data + cells[std::min(c, n - 1)]*stride);
    }
};

template <int NQ, int NC, typename Rows>
static inline void scores_of(const float * q, Rows keys, int c0, float * s, int64_t dk) {
    decltype(keys[0]) k[NC];
    for (int c = 0; c < NC; c++) {
        k[c] = keys[c0 + c];
    }
    vec sum[NQ][NC] = {};
    for (int64_t d = 0; d < dk; d += LANES) {
        for (int c = 0; c < NC; c++) {
            const vec kv = load(k[c] + d);
            for (int i = 0; i < NQ; i++) {
                sum[i][c] = multiply_add(*(const vec *) (q + i*dk + d), kv, sum[i][c]);
            }
        }
    }
    for (int i = 0; i < NQ; i++) {
        for (int c = 0; c < NC; c += 4) {
            sum_lanes(&sum[i][c], s + i*BLOCK + c0 + c);
        }
    }
}

// s[i][c] = q[i] * k[c] for nq queries and nc cells, a multiple of 8.
template <typename Rows>
static void all_scores(const float * q, Rows keys, float * s, int nq, int nc, int64_t dk) {
    int i = 0;
#if defined(__AVX512F__)
    for (; i + 4 <= nq; i += 4) {
        for (int c = 0; c < nc; c += 4) {
            scores_of<4, 4>(q + i*dk, keys, c, s + i*BLOCK, dk);
        }
    }
#endif
    for (; i + 3 <= nq; i += 3) {
        for (int c = 0; c < nc; c += 4) {
            scores_of<3, 4>(q + i*dk, keys, c, s + i*BLOCK, dk);
        }
    }
    for (; i + 2 <= nq; i += 2) {
        for (int c = 0; c < nc; c += 4) {
            scores_of<2, 4>(q + i*dk, keys, c, s + i*BLOCK, dk);
        }
    }
    for (; i < nq; i++) {
        for (int c = 0; c < nc; c += 8) {
            scores_of<1, 8>(q + i*dk, keys, c, s + i*BLOCK, dk);
        }
    }
}

template <int NQ, int NV, typename Rows>
static inline void add_values(const float * p, Rows values, int64_t d, float * sum, int nc, int64_t dv) {
    vec acc[NQ][NV];
    for (int i = 0; i < NQ; i++) {
        for (int j = 0; j < NV; j++) {
            acc[i][j] = load(sum + i*dv + d + j*LANES);
        }
    }
    for (int c = 0; c < nc; c++) {
        const auto v = values[c] + d;
        for (int i = 0; i < NQ; i++) {
            const vec share = p[i*BLOCK + c] - vec{};
            for (int j = 0; j < NV; j++) {
                acc[i][j] = multiply_add(share, load(v + j*LANES), acc[i][j]);
            }
        }
    }
    for (int i = 0; i < NQ; i++) {
        for (int j = 0; j < NV; j++) {
            *(vec *) (sum + i*dv + d + j*LANES) = acc[i][j];
        }
    }
}

template <int NQ, int NV, typename Rows>
static inline void add_all_values(const float * p, Rows values, float * sum, int nc, int64_t dv) {
    int64_t d = 0;
    for (; d + NV*LANES <= dv; d += NV*LANES) {
        add_values<NQ, NV>(p, values, d, sum, nc, dv);
    }
    for (; d < dv; d += LANES) {
        add_values<NQ, 1>(p, values, d, sum, nc, dv);
    }
}

// sum[i] += p[i][c] * v[c] for nq queries, cell by cell.
template <typename Rows>
static void weigh_values(const float * p, Rows values, float * sum, int nq, int nc, int64_t dv) {
    int i = 0;
    for (; i + 6 <= nq; i += 6) {
        add_all_values<6, 2>(p + i*BLOCK, values, sum + i*dv, nc, dv);
    }
    for (; i + 4 <= nq; i += 4) {
        add_all_values<4, LANES == 16 ? 4 : 2>(p + i*BLOCK, values, sum + i*dv, nc, dv);
    }
    for (; i + 3 <= nq; i += 3) {
        add_all_values<3, 4>(p + i*BLOCK, values, sum + i*dv, nc, dv);
    }
    for (; i + 2 <= nq; i += 2) {
        add_all_values<2, 4>(p + i*BLOCK, values, sum + i*dv, nc, dv);
    }
    for (; i < nq; i++) {
        add_all_values<1, 8>(p + i*BLOCK, values, sum + i*dv, nc, dv);
    }
}

// 2^n for n <= 0, 0 where that is below what F32 has.
static inline float power_of_two(int n) {
    const int32_t bits = (std::max(n, -127) + 127) << 23;
    float         power;
    memcpy(&power, &bits, sizeof(power));
    return power;
}

// Scores become integers n and rests f; the largest n is returned. As a plain loop it would be one of branches: what is
// not a number must stay so, and compilers do not make vectors of that.
static inline int split_scores(float * s, int32_t * n) {
    const vec  limit = vec{} + SCORE_LIMIT;
    const vec  shift = vec{} + 12582912.0f;
    ivec       tops  = ivec{} + NO_SCORE;
    for (int c = 0; c < BLOCK; c += LANES) {
        vec score = *(const vec *) (s + c);
        score = score < -limit ? -limit : score;
        score = score > limit ? limit : score;
        const vec  rounded = (score + shift) - shift;
        const ivec whole   = __builtin_convertvector(rounded, ivec);
        *(vec *) (s + c)  = score - rounded;
        *(ivec *) (n + c) = whole;
        tops = whole > tops ? whole : tops;
    }
    int32_t top = tops[0];
    for (int i = 1; i < LANES; i++) {
        top = std::max(top, (int32_t) tops[i]);
    }
    return top;
}

// Rests f and integers n become 2^(n - top + f).
static inline void raise(float * s, const int32_t * n, int top) {
    int32_t bits[BLOCK];
    float   power[BLOCK];
    for (int c = 0; c < BLOCK; c++) {
        bits[c] = (std::max(n[c] - top, -127) + 127) << 23;
    }
    memcpy(power, bits, sizeof(power));
    for (int c = 0; c < BLOCK; c++) {
        const float f = s[c];
        float r = 0.000154035304f;
        r = __builtin_fmaf(r, f, 0.00133335581f);
        r = __builtin_fmaf(r, f, 0.00961812911f);
        r = __builtin_fmaf(r, f, 0.0555041087f);
        r = __builtin_fmaf(r, f, 0.240226507f);
        r = __builtin_fmaf(r, f, 0.693147181f);
        r = __builtin_fmaf(r, f, 1.0f);
        s[c] = r*power[c];
    }
}

// -- what is attended to ----------------------------------------------------------------------------------------------

// Query heads that share a key head, as many as are computed together.
struct heads {
    int64_t kv, first;
    int     n;
};

struct attention {
    const ggml_tensor *  q;
    const ggml_tensor *  k;
    const ggml_tensor *  v;
    const ggml_tensor *  mask;
    const int32_t *      order; // see above; nullptr where the mask is searched
    const float *        sinks;
    ggml_tensor *        dst;

    float scale, max_bias, softcap;

    int64_t n_rows, n_heads, n_streams, n_kv, dk, dv;
    int64_t n_shared; // query heads that share a key head

    ggml_to_float_t k_to_float, v_to_float;

    explicit attention(ggml_tensor * dst);

    int n_together() const {
        return std::min<int64_t>(n_shared, MAX_QUERIES);
    }

    int64_t n_sets() const {
        return (n_shared + n_together() - 1)/n_together()*k->ne[2];
    }

    heads heads_of(int64_t set) const {
        const int64_t n_parts = n_sets()/k->ne[2];
        const int64_t first   = set % n_parts*n_together();
        return { set/n_parts, set/n_parts*n_shared + first, (int) std::min<int64_t>(n_together(), n_shared - first) };
    }

    float slope(int64_t head) const {
        if (max_bias <= 0.0f) {
            return 1.0f;
        }
        const uint32_t n_log2 = 1u << (uint32_t) floor(log2(n_heads));
        const float    m0     = powf(2.0f, -max_bias/n_log2);
        const float    m1     = powf(2.0f, -max_bias/2.0f/n_log2);
        return head < n_log2 ? powf(m0, head + 1) : powf(m1, 2*(head - n_log2) + 1);
    }

    const ggml_fp16_t * mask_row(int64_t row, int64_t head, int64_t stream) const {
        return (const ggml_fp16_t *) ((const char *) mask->data + row*mask->nb[1] + (head % mask->ne[2])*mask->nb[2] +
                                      (stream % mask->ne[3])*mask->nb[3]);
    }

    const int32_t * seen(int64_t row) const {
        return order + 1 + 3*row;
    }

    void write(int64_t row, int64_t head, int64_t stream, const float * from, int64_t d0, int64_t n) const {
        float * to = (float *) ((char *) dst->data + (stream*dst->ne[2]*dst->ne[1] + head + row*dst->ne[1])*dst->nb[1]);
        memcpy(to + d0, from, n*sizeof(float));
    }
};

inline attention::attention(ggml_tensor * dst_) :
        q(dst_->src[0]), k(dst_->src[1]), v(dst_->src[2]), mask(dst_->src[3]), dst(dst_) {
    memcpy(&scale,    (const float *) dst->op_params + 0, sizeof(float));
    memcpy(&max_bias, (const float *) dst->op_params + 1, sizeof(float));
    memcpy(&softcap,  (const float *) dst->op_params + 2, sizeof(float));

    sinks     = dst->src[4] ? (const float *) dst->src[4]->data : nullptr;
    n_rows    = q->ne[1];
    n_heads   = q->ne[2];
    n_streams = q->ne[3];
    n_kv      = k->ne[1];
    dk        = k->ne[0];
    dv        = v->ne[0];
    n_shared  = n_heads/k->ne[2];

    k_to_float = ggml_get_type_traits(k->type)->to_float;
    v_to_float = ggml_get_type_traits(v->type)->to_float;

    const ggml_tensor * found = dst->src[5];
    order = found && found->data && n_streams == 1 && ((const int32_t *) found->data)[0] == 1
                ? (const int32_t *) found->data : nullptr;
}

static inline bool can_attend(const ggml_tensor * dst) {
    const ggml_tensor * q    = dst->src[0];
    const ggml_tensor * k    = dst->src[1];
    const ggml_tensor * v    = dst->src[2];
    const auto          fits = [](const ggml_tensor * t) {
        return t->type == GGML_TYPE_F32 || ggml_get_type_traits(t->type)->to_float;
    };
    return q->type == GGML_TYPE_F32 && fits(k) && fits(v) && k->ne[2] == v->ne[2] && k->ne[3] == v->ne[3] &&
           q->ne[2] % k->ne[2] == 0;
}

// Some cells' keys or values for one head, as rows of padded F32.
static void read_cells(const ggml_tensor * t, ggml_to_float_t to_float, const int32_t * cells, int n, int64_t head,
                       int64_t stream, int64_t d0, int64_t width, float * to) {
    const int64_t stride = pad(width);
    const char *  base   = (const char *) t->data + head*t->nb[2] + stream*t->nb[3];
    for (int c = 0; c < n; c++, to += stride) {
        const char * from = base + cells[c]*t->nb[1];
        int64_t      d    = 0;
        if (t->type == GGML_TYPE_F16) {
            const ggml_fp16_t * half = (const ggml_fp16_t *) from + d0;
#if defined(__AVX2__)
            for (; d + 8 <= width; d += 8) {
                _mm256_storeu_ps(to + d, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) (half + d))));
            }
#else
            for (; d + 4 <= width; d += 4) {
                vst1q_f32(to + d, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(half + d))));
            }
#endif
            for (; d < width; d++) {
                to[d] = GGML_CPU_FP16_TO_FP32(half[d]);
            }
        } else if (t->type == GGML_TYPE_F32) {
            memcpy(to, (const float *) from + d0, width*sizeof(float));
        } else {
            to_float(from, to, width); // always the whole row
        }
        for (d = width; d < stride; d++) {
            to[d] = 0.0f;
        }
    }
}

// Have the keys or values of some cells brought into the second-level cache while something else is computed. Fetched
// into the first level they wait for each other, as much as if they were not fetched at all (AMD: 5 instead of 11 GB/s).
static inline void fetch_cells(const ggml_tensor * t, const int32_t * cells, int n, int64_t head, int64_t stream) {
    const char *  base = (const char *) t->data + head*t->nb[2] + stream*t->nb[3];
    const int64_t size = ggml_row_size(t->type, t->ne[0]);
    for (int c = 0; c < n; c++) {
        const char * row = base + cells[c]*t->nb[1];
        for (int64_t at = 0; at < size; at += 64) {
            __builtin_prefetch(row + at, 0, 2);
        }
    }
}

// Consecutive rows of one text, and the cells that any of them sees: order[first + begin] to order[first + end - 1].
struct group {
    int32_t row, n_rows, begin, end;
};

// -- one thread's part ------------------------------------------------------------------------------------------------

struct worker {
    const attention & a;
    float *           queries;
    float *           keys;
    float *           values;
    float *           sums;
    float *           scores;
    int32_t *         list;
    group *           groups;

    worker(const attention & a_, float * scratch) : a(a_) {
        queries = scratch;
        keys    = queries + n_places(a.n_rows, a.n_heads)*pad(a.dk);
        values  = keys    + BLOCK*pad(a.dk);
        sums    = values  + BLOCK*pad(a.dv);
        scores  = sums    + n_places(a.n_rows, a.n_heads)*pad(a.dv);
        list    = (int32_t *) (scores + MAX_QUERIES*BLOCK);
        groups  = (group *) (list + a.n_kv);
    }

    void read_query(int64_t row, int64_t head, int64_t stream, float * to) const {
        memcpy(to, (const char *) a.q->data + row*a.q->nb[1] + head*a.q->nb[2] + stream*a.q->nb[3], a.dk*sizeof(float));
        std::fill(to + a.dk, to + pad(a.dk), 0.0f);
    }

    // Let act have the keys or values of some cells for nq queries, d0 to d0 + width of each.
    template <typename Act>
    void with_rows(const ggml_tensor * t, ggml_to_float_t to_float, const int32_t * cells, int n, int64_t kv_head,
                   int64_t stream, int64_t d0, int64_t width, int nq, float * block, Act && act) const {
        if (nq <= FEW_QUERIES && t->type == GGML_TYPE_F16 && width % LANES == 0) {
            const char * data = (const char *) t->data + kv_head*t->nb[2] + stream*t->nb[3] + d0*sizeof(ggml_fp16_t);
            act(cache_rows{ data, (int64_t) t->nb[1], cells, n });
            return;
        }
        read_cells(t, to_float, cells, n, kv_head, stream, d0, width, block);
        // Scores are computed for eight cells at a time.
        for (int c = n; c % 8; c++) {
            memset(block + c*pad(width), 0, pad(width)*sizeof(float));
        }
        act(block_rows{ block, pad(width) });
    }

    // Split the rows of a text into groups of at most n_most rows; return how many there are.
    int split_rows(int n_most) const {
        int n = 0;
        for (int64_t row = 0; row < a.n_rows; row++) {
            const int32_t * now = a.order ? a.seen(row) : nullptr;
            if (n > 0 && groups[n - 1].n_rows < n_most && (!now || now[0] == a.seen(row - 1)[0])) {
                group & last = groups[n - 1];
                last.n_rows++;
                if (now) {
                    last.begin = std::min(last.begin, now[1]);
                    last.end   = std::max(last.end, now[2]);
                }
                continue;
            }
            groups[n++] = { (int32_t) row, 1, now ? now[1] : 0, now ? now[2] : (int32_t) a.n_kv };
        }
        return n;
    }

    // The cells that any row of a group sees by the mask.
    int search(const group & rows, int64_t head, int64_t stream) const {
        int n = 0;
        for (int32_t c = 0; c < a.n_kv; c++) {
            bool is_seen = !a.mask;
            for (int r = 0; r < rows.n_rows && !is_seen; r++) {
                is_seen = a.mask_row(rows.row + r, head, stream)[c] != 0xFC00;
            }
            list[n] = c;
            n += is_seen;
        }
        return n;
    }

    // Whether the mask says more than which cells are seen, or there is nothing else that says so.
    bool has_bias() const {
        return a.mask && (!a.order || a.max_bias > 0.0f);
    }

    // Whether the mask adds nothing to a row's scores of a whole block: it is looked at as integers, eight bytes or more
    // at a time. In encoders nearly every block is so.
    bool is_unmasked(const int32_t * cells, int n, int64_t row, int64_t head, int64_t stream) const {
        if (n < BLOCK || cells[n - 1] - cells[0] != n - 1) {
            return false;
        }
        const ggml_fp16_t * bias = a.mask_row(row, head, stream) + cells[0];
        uint16_t            bits = 0;
        for (int c = 0; c < BLOCK; c++) {
            bits |= bias[c];
        }
        return bits == 0;
    }

    // From dot products of a row with n cells to scores as powers of two; with_mask adds what the mask says.
    void scale_scores(float * s, const int32_t * cells, int n, int64_t row, int64_t head, int64_t stream,
                      bool with_mask) const {
        constexpr float log2_e = 1.44269504f;
        if (a.softcap != 0.0f) {
            for (int c = 0; c < n; c++) {
                s[c] = a.softcap*log2_e*tanhf(s[c]*(a.scale/a.softcap));
            }
        } else {
            const float factor = a.scale*log2_e;
            for (int c = 0; c < BLOCK; c++) {
                s[c] *= factor;
            }
        }
        if (with_mask) {
            const ggml_fp16_t * bias   = a.mask_row(row, head, stream);
            const float         factor = a.slope(head)*log2_e;
            for (int c = 0; c < n; c++) {
                const float b = GGML_CPU_FP16_TO_FP32(bias[cells[c]]);
                s[c] = b == -INFINITY ? -INFINITY : __builtin_fmaf(factor, b, s[c]);
            }
        }
    }

    void attend(const group & rows, int64_t kv_head, int64_t head0, int n_heads, int64_t stream) const {
        const int     nq = rows.n_rows*n_heads;
        const int64_t dk = pad(a.dk);
        const int64_t dv = pad(a.dv);

        const int32_t * cells = a.order ? a.order + a.seen(rows.row)[0] : list;
        const int32_t   begin = a.order ? rows.begin : 0;
        const int32_t   end   = a.order ? rows.end : search(rows, head0, stream);

        int   top[MAX_QUERIES];
        float total[MAX_QUERIES];
        for (int i = 0; i < nq; i++) {
            top[i]   = NO_SCORE;
            total[i] = 0.0f;
            read_query(rows.row + i/n_heads, head0 + i%n_heads, stream, queries + i*dk);
        }
        memset(sums, 0, nq*dv*sizeof(float));

        fetch_cells(a.v, cells + begin, std::min(AHEAD*BLOCK, end - begin), kv_head, stream);
        for (int32_t at = begin; at < end; at += BLOCK) {
            const int n = std::min(BLOCK, end - at);
            const int n_next = std::min(BLOCK, end - at - AHEAD*BLOCK);
            fetch_cells(a.k, cells + at + AHEAD*BLOCK, n_next, kv_head, stream);
            fetch_cells(a.v, cells + at + AHEAD*BLOCK, n_next, kv_head, stream);
            with_rows(a.k, a.k_to_float, cells + at, n, kv_head, stream, 0, a.dk, nq, keys, [&](auto rows_of_keys) {
                all_scores(queries, rows_of_keys, scores, nq, (n + 7)/8*8, dk);
            });
            for (int i = 0; i < nq; i++) {
                share_out(scores + i*BLOCK, cells + at, at, n, rows.row + i/n_heads, head0 + i%n_heads, stream, top[i],
                          total[i], sums + i*dv);
            }
            add_up(total, nq, n);
            with_rows(a.v, a.v_to_float, cells + at, n, kv_head, stream, 0, a.dv, nq, values, [&](auto rows_of_values) {
                weigh_values(scores, rows_of_values, sums, nq, n, dv);
            });
        }

        for (int i = 0; i < nq; i++) {
            finish(head0 + i%n_heads, top[i], total[i], sums + i*dv, a.dv);
            a.write(rows.row + i/n_heads, head0 + i%n_heads, stream, sums + i*dv, 0, a.dv);
        }
    }

    // From a row's dot products with a block of cells to what each counts; rescales what was added up before.
    void share_out(float * s, const int32_t * cells, int32_t at, int n, int64_t row, int64_t head, int64_t stream,
                   int & top, float & total, float * sum) const {
        const bool is_plain = !a.order && (!a.mask ? n == BLOCK : is_unmasked(cells, n, row, head, stream));
        scale_scores(s, cells, n, row, head, stream, has_bias() && !is_plain);
        int from = 0, to = n;
        if (a.order) {
            from = std::min<int>(std::max<int>(a.seen(row)[1] - at, 0), n);
            to   = std::max<int>(std::min<int>(a.seen(row)[2] - at, n), from);
        }
        int32_t powers[BLOCK];
        if (is_plain || (a.order && from == 0 && to == BLOCK)) {
            const int found = split_scores(s, powers);
            if (found > top) {
                rescale(found, top, total, sum, a.dv);
            }
            raise(s, powers, top);
            return;
        }
        bool is_seen[BLOCK];
        bool any_seen = false;
        for (int c = 0; c < BLOCK; c++) {
            is_seen[c] = c >= from && c < to && s[c] != -INFINITY;
            any_seen  |= is_seen[c];
            s[c]       = is_seen[c] ? s[c] : -INFINITY;
        }
        if (!any_seen) {
            memset(s, 0, BLOCK*sizeof(float));
            return;
        }
        const int found = split_scores(s, powers);
        if (found > top) {
            rescale(found, top, total, sum, a.dv);
        }
        raise(s, powers, top);
        for (int c = 0; c < BLOCK; c++) {
            s[c] = is_seen[c] ? s[c] : 0.0f;
        }
    }

    // Let a new maximum be the unit of what was added up.
    static void rescale(int found, int & top, float & total, float * sum, int64_t width) {
        const float power = power_of_two(top - found);
        top    = found;
        total *= power;
        for (int64_t d = 0; d < width; d++) {
            sum[d] *= power;
        }
    }

    // Add to the totals cell by cell; four chains of additions at a time.
    void add_up(float * total, int nq, int n) const {
        int i = 0;
        for (; i + 4 <= nq; i += 4) {
            float         sum[4];
            const float * s = scores + i*BLOCK;
            memcpy(sum, total + i, sizeof(sum));
            for (int c = 0; c < n; c++) {
                for (int j = 0; j < 4; j++) {
                    sum[j] += s[j*BLOCK + c];
                }
            }
            memcpy(total + i, sum, sizeof(sum));
        }
        for (; i < nq; i++) {
            for (int c = 0; c < n; c++) {
                total[i] += scores[i*BLOCK + c];
            }
        }
    }

    // Count the sink, which has no value, and divide by the total.
    void finish(int64_t head, int top, float total, float * sum, int64_t width) const {
        if (a.sinks) {
            float s[BLOCK] = {};
            s[0] = a.sinks[head]*1.44269504f;
            int32_t powers[BLOCK];
            split_scores(s, powers);
            if (powers[0] > top) {
                rescale(powers[0], top, total, sum, width);
            }
            raise(s, powers, top);
            total += s[0];
        }
        const float factor = total == 0.0f ? 0.0f : 1.0f/total;
        for (int64_t d = 0; d < width; d++) {
            sum[d] *= factor;
        }
    }
};

// A single row: the threads share its cells while they compute scores, and the width of all values while they add up.
// Each goes through the cache in the order in which it lies in memory.
static void attend_together(const ggml_compute_params * params, const attention & a, const worker & w, float * shared) {
    const int ith = params->ith;
    const int nth = params->nth;

    const int32_t * cells  = a.order + a.seen(0)[0] + a.seen(0)[1];
    const int32_t   n      = a.seen(0)[2] - a.seen(0)[1];
    const int64_t   dk     = pad(a.dk);
    const int64_t   stride = (n + BLOCK - 1)/BLOCK*BLOCK;

    for (int64_t head = 0; head < a.n_heads; head++) {
        w.read_query(0, head, 0, w.queries + head*dk);
    }
    for (int32_t at = ith*BLOCK; at < n; at += nth*BLOCK) {
        const int m = std::min(BLOCK, n - at);
        for (int64_t set = 0; set < a.n_sets(); set++) {
            const heads of = a.heads_of(set);
            const int32_t next = at + AHEAD*nth*BLOCK;
            fetch_cells(a.k, cells + next, std::min(BLOCK, n - next), of.kv, 0);
            w.with_rows(a.k, a.k_to_float, cells + at, m, of.kv, 0, 0, a.dk, of.n, w.keys, [&](auto rows) {
                all_scores(w.queries + of.first*dk, rows, w.scores, of.n, (m + 7)/8*8, dk);
            });
            for (int i = 0; i < of.n; i++) {
                float * s = w.scores + i*BLOCK;
                w.scale_scores(s, cells + at, m, 0, of.first + i, 0, w.has_bias());
                std::fill(s + m, s + BLOCK, -INFINITY);
                memcpy(shared + (of.first + i)*stride + at, s, BLOCK*sizeof(float));
            }
        }
    }

    ggml_barrier(params->threadpool);

    // The values of all sets of heads, one beside the other, in parts of whole vectors.
    const int64_t n_columns = a.n_sets()*a.dv;
    const int64_t wide      = (n_columns/LANES + nth - 1)/nth*LANES;
    const int64_t first     = std::min(ith*wide, n_columns);
    const int64_t last      = std::min(first + wide, n_columns);

    int   top[MAX_HEADS];
    float total[MAX_HEADS];
    for (int64_t i = 0; i < a.n_heads; i++) {
        top[i]   = NO_SCORE;
        total[i] = 0.0f;
    }
    const auto each_set = [&](auto && act) {
        float * sum = w.sums;
        for (int64_t column = first; column < last;) {
            const int64_t set = column/a.dv;
            const int64_t end = std::min(last, (set + 1)*a.dv);
            const heads   of  = a.heads_of(set);
            act(of, column - set*a.dv, end - column, sum);
            sum   += of.n*(end - column);
            column = end;
        }
    };
    each_set([&](heads of, int64_t, int64_t width, float * sum) { memset(sum, 0, of.n*width*sizeof(float)); });
    for (int32_t at = 0; at < n; at += BLOCK) {
        const int m = std::min(BLOCK, n - at);
        each_set([&](heads of, int64_t d0, int64_t width, float * sum) {
            const int32_t next = at + AHEAD*BLOCK;
            fetch_cells(a.v, cells + next, std::min(BLOCK, n - next), of.kv, 0);
            for (int i = 0; i < of.n; i++) {
                const int64_t head = of.first + i;
                float *       s    = w.scores + i*BLOCK;
                int32_t       powers[BLOCK];
                memcpy(s, shared + head*stride + at, BLOCK*sizeof(float));
                const int found = split_scores(s, powers);
                if (found > top[head]) {
                    worker::rescale(found, top[head], total[head], sum + i*width, width);
                }
                raise(s, powers, top[head]);
            }
            w.add_up(total + of.first, of.n, m);
            w.with_rows(a.v, a.v_to_float, cells + at, m, of.kv, 0, d0, width, of.n, w.values, [&](auto rows) {
                weigh_values(w.scores, rows, sum, of.n, m, width);
            });
        });
    }
    each_set([&](heads of, int64_t d0, int64_t width, float * sum) {
        for (int i = 0; i < of.n; i++) {
            w.finish(of.first + i, top[of.first + i], total[of.first + i], sum + i*width, width);
            a.write(0, of.first + i, 0, sum + i*width, d0, width);
        }
    });
}

// Whether a single row is worth it: enough cells for what waiting for each other costs.
static inline bool is_shared_out(const attention & a, int nth) {
    const bool is_plain = (a.v->type == GGML_TYPE_F16 || a.v->type == GGML_TYPE_F32) && a.dv % LANES == 0;
    return a.order && a.n_rows == 1 && is_plain && a.n_heads <= MAX_HEADS && nth > 1 && a.seen(0)[2] - a.seen(0)[1] >= 256;
}

static void compute(const ggml_compute_params * params, ggml_tensor * dst) {
    const attention a(dst);
    const int       ith = params->ith;
    const int       nth = params->nth;

    const int64_t size    = scratch_size(a.dk, a.dv, a.n_kv, a.n_rows, a.n_heads);
    float *       scratch = (float *) params->wdata;
    const worker  w(a, scratch + ith*size);

    const int64_t n_sets = a.n_sets()*a.n_streams;
    int           n_most = MAX_QUERIES/a.n_together();
    int64_t       n_groups;
    do {
        n_groups = w.split_rows(n_most);
        n_most /= 2;
    } while (n_most > 0 && n_groups*n_sets < 2*nth);

    // The last rows of a prompt see most: they come first.
    const int64_t n_items  = n_groups*n_sets;
    const auto    rows_of  = [&](int64_t item) -> const group & { return w.groups[n_groups - 1 - item/n_sets]; };
    const auto    attend   = [&](int64_t item) {
        const heads of = a.heads_of(item % n_sets/a.n_streams);
        w.attend(rows_of(item), of.kv, of.first, of.n, item % a.n_streams);
    };
    const auto work_of = [&](int64_t item) {
        const group & rows = rows_of(item);
        return (int64_t) (rows.end - rows.begin)*(rows.n_rows*a.n_together() + 2) + 64;
    };

    if (is_shared_out(a, nth)) {
        attend_together(params, a, w, scratch + nth*size);
        return;
    }
    if (a.order && a.n_rows < 64) {
        // Few rows: each thread takes an equal part of the work, and nobody waits.
        int64_t total = 0;
        for (int64_t item = 0; item < n_items; item++) {
            total += work_of(item);
        }
        int64_t done = 0;
        for (int64_t item = 0; item < n_items; item++) {
            const int64_t work = work_of(item);
            if ((done + work/2)*nth/total == ith) {
                attend(item);
            }
            done += work;
        }
        return;
    }
    if (ith == 0) {
        ggml_threadpool_chunk_set(params->threadpool, nth);
    }
    ggml_barrier(params->threadpool);
    for (int64_t item = ith; item < n_items; item = ggml_threadpool_chunk_add(params->threadpool, 1)) {
        attend(item);
    }
}

} // namespace slipstream
#endif
