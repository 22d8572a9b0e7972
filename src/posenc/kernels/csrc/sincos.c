/* Tables of factor * cos and factor * sin of position x frequency, correctly rounded.
 *
 * Rows that follow each other are joined from three exact ones (of a piece's first position, of a
 * block's first row in the piece, of a row in the block) by the addition theorem,
 *
 *   cos(a + b) = cos a cos b - sin a sin b,   sin(a + b) = sin a cos b + cos a sin b,
 *
 * in float64. Where v - e and v + e round to one number, with e a bound on the error of v, that
 * number is right (Ziv 1991). The few others are computed again to 100 bits. */
#include "memory.h"
#include "parallel.h"
#include "phase.h"
#include "rounding.h"
#include "sincos.h"
#include "stream.h"

#include <stdlib.h>

enum {
  TILE = 256, /* frequencies at a time */
  FINE_PHASES = 2048,
  MOST_BLOCKS = 32,
  SERIAL_PHASES = 1 << 13
};

/* |v - truth| / |factor| after two joins of values within 3 units in the last place: 2.5 * 2^-49 by
 * adding up, and what adding e itself rounds away. */
static const double SUM_ERROR = 0x1p-47;

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FUSED(a, b, c) __builtin_fma(a, b, c)
#else
#define FUSED(a, b, c) ((a) * (b) + (c))
#endif

struct work {
  const struct sincos_plan *plan;
  const struct sincos_operands *at;
  char *sin;
  int64_t bytes; /* of a value */
  int64_t fine_rows, block_rows, piece_rows; /* a piece has blocks, a block has fine rows */
  const double *fine, *starts;               /* rows of cosines, then sines */
  int streamed;
};

/* The position some rows later in a run. */
static inline int64_t after(int64_t position, int64_t rows) {
  return (int64_t)((uint64_t)position + (uint64_t)rows);
}

static inline struct turns phase_at(const struct work *work, int64_t position, int64_t column) {
  return phase_of(position, work->at->turns[column]);
}

/* cos and sin of one row at all frequencies, at most 3 units in the last place from truth. */
static void exact_row(const struct work *work, int64_t position, double *cos, double *sin) {
  double angle[TILE], flip[TILE];
  int32_t quadrant[TILE];
  for (int64_t begin = 0; begin < work->plan->frequencies; begin += TILE) {
    int64_t rest = work->plan->frequencies - begin, count = rest < TILE ? rest : TILE;
    for (int64_t j = 0; j < count; j++) {
      struct reduced reduced = reduced_from(phase_at(work, position, begin + j));
      angle[j] = radians_of(reduced.rest);
      flip[j] = reduced.negative ? -1.0 : 1.0;
      quadrant[j] = reduced.quadrant;
    }
    for (int64_t j = 0; j < count; j++) {
      double c = cosine_series(angle[j]), s = flip[j] * sine_series(angle[j]);
      int32_t q = quadrant[j];
      double first = q & 1 ? s : c, second = q & 1 ? c : s;
      cos[begin + j] = q == 1 || q == 2 ? -first : first;
      sin[begin + j] = q >= 2 ? -second : second;
    }
  }
}

/* The sum of two angles, for a whole row. */
static void join(const double *a, const double *b, int64_t count, double *out) {
  const double *a_sin = a + count, *b_sin = b + count;
  for (int64_t j = 0; j < count; j++) {
    double c = a[j] * b[j] - a_sin[j] * b_sin[j], s = a_sin[j] * b[j] + a[j] * b_sin[j];
    out[j] = c;
    out[count + j] = s;
  }
}

/* One row (or a tile of it) joined and rounded to two rows side by side; returns whether any of its
 * values is in doubt. */
#define DEFINE_ROUND(STORED)                                                                     \
  static uint32_t round_##STORED(const double *restrict a_cos, const double *restrict a_sin,     \
                                 const double *restrict b_cos, const double *restrict b_sin,     \
                                 double cos_error, const double *restrict sin_error,             \
                                 int64_t count, STORED *restrict cos, STORED *restrict sin) {    \
    uint32_t doubt = 0;                                                                          \
    for (int64_t j = 0; j < count; j++) {                                                        \
      double c = FUSED(a_cos[j], b_cos[j], -(a_sin[j] * b_sin[j]));                              \
      double s = FUSED(a_sin[j], b_cos[j], a_cos[j] * b_sin[j]);                                 \
      double e = moved_##STORED(cos_error, c), d = moved_##STORED(sin_error[j], s);              \
      STORED c_low = STORED##_from_double(c - e), s_low = STORED##_from_double(s - d);           \
      STORED c_high = STORED##_from_double(c + e), s_high = STORED##_from_double(s + d);         \
      doubt |= apart_##STORED(c_low, c_high) | apart_##STORED(s_low, s_high);                    \
      cos[j] = c_low;                                                                            \
      sin[j] = s_low;                                                                            \
    }                                                                                            \
    return doubt;                                                                                \
  }                                                                                              \
  static STORED sure_##STORED(double v, double e, struct turns phase, int sine, double factor) {  \
    STORED low = once_##STORED(v - e), high = once_##STORED(v + e);                              \
    return apart_##STORED(low, high) ? once_##STORED(settled(phase, sine, factor)) : low;        \
  }                                                                                              \
  static void settle_##STORED(const struct work *work, int64_t position, int64_t begin,          \
                              const double *a_cos, const double *a_sin, const double *b_cos,     \
                              const double *b_sin, double cos_error, const double *sin_error,    \
                              int64_t count, STORED *cos, STORED *sin) {                         \
    for (int64_t j = 0; j < count; j++) {                                                        \
      struct turns phase = phase_at(work, position, begin + j);                                  \
      double c = a_cos[j] * b_cos[j] - a_sin[j] * b_sin[j];                                      \
      double s = a_sin[j] * b_cos[j] + a_cos[j] * b_sin[j];                                      \
      cos[j] = sure_##STORED(c, cos_error, phase, 0, work->at->factor);                          \
      sin[j] = sure_##STORED(s, sin_error[j], phase, 1, work->at->factor);                       \
    }                                                                                            \
  }

DEFINE_ROUND(float32)
DEFINE_ROUND(bfloat16)
DEFINE_ROUND(float16)

/* Two finished rows to where the table has them. */
static void put(const struct work *work, char *cos, char *sin, const void *from_cos,
                const void *from_sin, int64_t count) {
  int64_t step = work->plan->column_step, sine = work->plan->sine, bytes = work->bytes;
  if (step == 1) {
    void *targets[] = {cos, sin};
    const void *sources[] = {from_cos, from_sin};
    for (int plane = 0; plane < 2; plane++)
      if (work->streamed)
        stream(targets[plane], sources[plane], (size_t)(count * bytes));
      else
        memcpy(targets[plane], sources[plane], (size_t)(count * bytes));
    return;
  }
  if (step == 2 && (sine == 1 || sine == -1)) { /* each cosine has its sine beside it */
    _Alignas(64) char row[2 * TILE * sizeof(float)];
    char *front = sine > 0 ? cos : sin, *into = work->streamed ? row : front;
    const void *first = sine > 0 ? from_cos : from_sin, *second = sine > 0 ? from_sin : from_cos;
    if (bytes == 4) {
      const uint32_t *a = first, *b = second;
      uint32_t *to = (uint32_t *)into;
      for (int64_t j = 0; j < count; j++) to[2 * j] = a[j], to[2 * j + 1] = b[j];
    } else {
      const uint16_t *a = first, *b = second;
      uint16_t *to = (uint16_t *)into;
      for (int64_t j = 0; j < count; j++) to[2 * j] = a[j], to[2 * j + 1] = b[j];
    }
    if (work->streamed) stream(front, row, (size_t)(2 * count * bytes));
    return;
  }
  for (int64_t j = 0; j < count; j++) {
    memcpy(cos + j * step * bytes, (const char *)from_cos + j * bytes, (size_t)bytes);
    memcpy(sin + j * step * bytes, (const char *)from_sin + j * bytes, (size_t)bytes);
  }
}

/* Rows `first` and on, whose positions follow each other from `position`. */
static void rows_of_block(const struct work *work, int64_t first, int64_t position, int64_t rows,
                          const double *start, const double *sin_error) {
  int64_t all = work->plan->frequencies, format = work->plan->format;
  double cos_error = SUM_ERROR * fabs(work->at->factor);
  _Alignas(64) float cos[TILE], sin[TILE];
  for (int64_t r = 0; r < rows; r++) {
    const double *fine = work->fine + 2 * r * all;
    for (int64_t begin = 0; begin < all; begin += TILE) {
      int64_t count = all - begin < TILE ? all - begin : TILE;
      const double *a = start + begin, *b = fine + begin, *e = sin_error + begin;
#define ROUND(STORED)                                                                              \
  if (round_##STORED(a, a + all, b, b + all, cos_error, e, count, (STORED *)cos, (STORED *)sin))   \
    settle_##STORED(work, after(position, r), begin, a, a + all, b, b + all, cos_error, e, count,  \
                    (STORED *)cos, (STORED *)sin);
      if (format == 0) {
        ROUND(float32)
      } else if (format == 1) {
        ROUND(bfloat16)
      } else {
        ROUND(float16)
      }
      int64_t at = (first + r) * work->plan->row_step + begin * work->plan->column_step;
      put(work, work->at->cos + at * work->bytes, work->sin + at * work->bytes, cos, sin, count);
    }
  }
}

static int64_t position_of(const struct work *work, int64_t row) {
  return read_once(work->at->positions + row * work->plan->positions_step);
}

/* How many rows from `row` on, at most up to `past`, stand at positions that follow each other. */
static int64_t run_length(const struct work *work, int64_t row, int64_t past, int64_t position) {
  int64_t length = 1;
  for (; row + length < past; length++) {
    int64_t next = position_of(work, row + length);
    if ((uint64_t)next != (uint64_t)position + (uint64_t)length || next < position) break;
  }
  return length;
}

static void fill_piece(const void *data, int64_t piece) {
  const struct work *work = data;
  const struct sincos_plan *plan = work->plan;
  double factor = work->at->factor;
  int64_t all = plan->frequencies, first = piece * work->piece_rows;
  int64_t past = first + work->piece_rows < plan->rows ? first + work->piece_rows : plan->rows;
  double *anchor = malloc(sizeof(double) * (size_t)(5 * all));
  if (anchor == NULL) abort();
  double *start = anchor + 2 * all, *sin_error = start + 2 * all;
  for (int64_t row = first; row < past;) {
    int64_t position = position_of(work, row);
    int64_t run = run_length(work, row, past, position);
    double reach = fabs((double)position) + (double)(run - 1);
    exact_row(work, position, anchor, anchor + all);
    for (int64_t j = 0; j < all; j++) {
      /* |sin x| <= |x|: slow sines are small, and known as much better. */
      double sine = reach * work->at->radians[j];
      sin_error[j] = SUM_ERROR * fabs(factor) * (sine < 1.0 ? sine : 1.0);
      anchor[j] *= factor;
      anchor[all + j] *= factor;
    }
    for (int64_t begin = 0; begin < run; begin += work->fine_rows) {
      int64_t rows = run - begin < work->fine_rows ? run - begin : work->fine_rows;
      const double *from = anchor;
      if (begin) {
        join(anchor, work->starts + 2 * all * (begin / work->fine_rows), all, start);
        from = start;
      }
      rows_of_block(work, row + begin, after(position, begin), rows, from, sin_error);
    }
    row += run;
  }
  free(anchor);
  if (work->streamed) stream_fence();
}

static int64_t root(int64_t n) {
  int64_t r = (int64_t)sqrt((double)n);
  return r < 1 ? 1 : r;
}

int posenc_sincos(const struct sincos_plan *plan, const struct sincos_operands *at, int64_t threads) {
  int64_t all = plan->frequencies, rows = plan->rows;
  if (rows == 0 || all == 0) return 1;
  struct work work = {.plan = plan, .at = at, .bytes = plan->format == 0 ? 4 : 2};
  work.sin = at->cos + plan->sine * work.bytes;
  int64_t most = FINE_PHASES / all;
  work.fine_rows = root(rows) < most ? root(rows) : most < 8 ? 8 : most;
  if (work.fine_rows > rows) work.fine_rows = rows;
  work.block_rows = root(rows / work.fine_rows);
  if (work.block_rows > MOST_BLOCKS) work.block_rows = MOST_BLOCKS;
  work.piece_rows = work.fine_rows * work.block_rows;
  work.streamed = worth_streaming(2 * rows * all * work.bytes, (int)at->fresh);

  char *front = plan->sine > 0 ? at->cos : work.sin;
  if (at->fresh) ask_for_large_pages(front, plan->row_step * rows * work.bytes);
  double *memory = malloc(sizeof(double) * (size_t)(2 * all * (work.fine_rows + work.block_rows)));
  if (memory == NULL) return 0;
  double *fine = memory, *starts = memory + 2 * all * work.fine_rows;
  for (int64_t r = 0; r < work.fine_rows; r++)
    exact_row(&work, r, fine + 2 * all * r, fine + 2 * all * r + all);
  for (int64_t b = 0; b < work.block_rows; b++)
    exact_row(&work, b * work.fine_rows, starts + 2 * all * b, starts + 2 * all * b + all);
  work.fine = fine, work.starts = starts;
  int64_t pieces = (rows + work.piece_rows - 1) / work.piece_rows;
  posenc_share(fill_piece, &work, pieces, rows * all < SERIAL_PHASES ? 1 : threads);
  free(memory);
  return 1;
}
