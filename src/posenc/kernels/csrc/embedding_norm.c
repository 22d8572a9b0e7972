/* Three embeddings of a token summed, and the sum standardized over its features:
 * y = gamma (s - mean) / sqrt(variance + eps) + beta, as where BERT begins.
 *
 * A token's sum stays in cache until it is written. Sums over features run in lanes, so the last
 * bits of mean and variance are not those of torch. */
#include "floats.h"
#include "parallel.h"
#include "stream.h"

#include <math.h>

enum {
  SUMMANDS = 3,
  LANES = 16,
  MOST_WIDTH = 8192,
  PIECE_ELEMENTS = 1 << 15,
  SERIAL_ELEMENTS = 1 << 14,
  STREAMED_BYTES = 16 << 20
};

/* As embedding_norm/cpu.py packs it. Strides count elements. */
struct summand {
  const char *weight;
  const int64_t *ids;
  int64_t rows, row; /* of weight */
  int64_t batch, token; /* strides of ids */
};

struct normed {
  int64_t format; /* a place in FORMATS */
  int64_t batch, tokens, width;
  struct summand part[SUMMANDS];
  const char *gamma, *beta;
  char *out; /* contiguous */
  double eps;
};

enum outcome { DONE = 0, UNFIT = 2, NO_SUCH_ROW = 16 /* + which summand */ };

typedef void (*normalize)(const void *const rows[SUMMANDS], const void *gamma, const void *beta,
                          void *out, int64_t width, double eps);

#define DEFINE_NORMALISE(STORED, WIDE, ROOT)                                                      \
  static WIDE whole_##STORED(const WIDE lanes[LANES]) {                                           \
    WIDE sum = 0;                                                                                 \
    for (int lane = 0; lane < LANES; lane++) sum += lanes[lane];                                  \
    return sum;                                                                                   \
  }                                                                                               \
  static void normalize_##STORED(const void *const rows[SUMMANDS], const void *gamma,             \
                                 const void *beta, void *to, int64_t width, double eps) {         \
    const STORED *a = rows[0], *b = rows[1], *c = rows[2], *scale = gamma, *shift = beta;         \
    STORED *out = to;                                                                             \
    _Alignas(64) WIDE sum[MOST_WIDTH + LANES];                                                    \
    _Alignas(64) WIDE lanes[LANES] = {0};                                                         \
    int64_t whole = width / LANES * LANES;                                                        \
    for (int64_t i = 0; i < width; i++)                                                           \
      sum[i] = WIDE##_from_##STORED(a[i]) + WIDE##_from_##STORED(b[i]) + WIDE##_from_##STORED(c[i]); \
    for (int64_t i = 0; i < whole; i += LANES)                                                    \
      for (int lane = 0; lane < LANES; lane++) lanes[lane] += sum[i + lane];                      \
    for (int64_t i = whole; i < width; i++) lanes[0] += sum[i];                                   \
    WIDE mean = whole_##STORED(lanes) / (WIDE)width;                                              \
    memset(lanes, 0, sizeof lanes);                                                               \
    for (int64_t i = 0; i < whole; i += LANES)                                                    \
      for (int lane = 0; lane < LANES; lane++) {                                                  \
        WIDE apart = sum[i + lane] - mean;                                                        \
        lanes[lane] += apart * apart;                                                             \
      }                                                                                           \
    for (int64_t i = whole; i < width; i++) lanes[0] += (sum[i] - mean) * (sum[i] - mean);        \
    WIDE narrow = 1 / ROOT(whole_##STORED(lanes) / (WIDE)width + (WIDE)eps);                      \
    for (int64_t i = 0; i < width; i++)                                                           \
      out[i] = STORED##_from_##WIDE((sum[i] - mean) * narrow * WIDE##_from_##STORED(scale[i]) +   \
                                    WIDE##_from_##STORED(shift[i]));                              \
  }

typedef float float32;
typedef double float64;
DEFINE_NORMALISE(float32, float, sqrtf)
DEFINE_NORMALISE(bfloat16, float, sqrtf)
DEFINE_NORMALISE(float16, float, sqrtf)
DEFINE_NORMALISE(float64, double, sqrt)

static const struct {
  normalize function;
  int64_t bytes;
} FORMATS[] = {
    {normalize_float32, sizeof(float32)},
    {normalize_bfloat16, sizeof(bfloat16)},
    {normalize_float16, sizeof(float16)},
    {normalize_float64, sizeof(float64)},
};

struct work {
  const struct normed *plan;
  int64_t together; /* tokens a piece */
  int streamed;
};

static int64_t id_of(const struct normed *plan, const struct summand *part, int64_t token) {
  return part->ids[token / plan->tokens * part->batch + token % plan->tokens * part->token];
}

static void normalize_piece(const void *data, int64_t piece) {
  const struct work *work = data;
  const struct normed *plan = work->plan;
  int64_t bytes = FORMATS[plan->format].bytes, all = plan->batch * plan->tokens;
  int64_t first = piece * work->together, past = first + work->together;
  _Alignas(64) char room[MOST_WIDTH * sizeof(double)];
  for (int64_t token = first; token < (past < all ? past : all); token++) {
    const void *rows[SUMMANDS];
    for (int p = 0; p < SUMMANDS; p++) {
      const struct summand *part = &plan->part[p];
      rows[p] = part->weight + id_of(plan, part, token) * part->row * bytes;
    }
    char *out = plan->out + token * plan->width * bytes;
    FORMATS[plan->format].function(rows, plan->gamma, plan->beta, work->streamed ? room : out,
                                   plan->width, plan->eps);
    if (work->streamed) stream(out, room, (size_t)(plan->width * bytes));
  }
  if (work->streamed) stream_fence();
}

POSENC_EXPORT int posenc_embedding_norm(const struct normed *plan, int64_t threads) {
  int64_t all = plan->batch * plan->tokens, elements = all * plan->width;
  if (plan->width > MOST_WIDTH) return UNFIT;
  if (elements == 0) return DONE;
  for (int p = 0; p < SUMMANDS; p++)
    for (int64_t token = 0; token < all; token++) {
      int64_t row = id_of(plan, &plan->part[p], token);
      if (row < 0 || row >= plan->part[p].rows) return NO_SUCH_ROW + p;
    }
  struct work work = {.plan = plan};
  work.together = plan->width < PIECE_ELEMENTS ? PIECE_ELEMENTS / plan->width : 1;
  int64_t bytes = elements * FORMATS[plan->format].bytes; /* of memory that is always new */
  work.streamed = bytes > STREAMED_BYTES && worth_streaming(bytes, 1);
  ask_for_large_pages(plan->out, bytes);
  int64_t pieces = (all + work.together - 1) / work.together;
  posenc_share(normalize_piece, &work, pieces, elements < SERIAL_ELEMENTS ? 1 : threads);
  return DONE;
}
