/* A tile of x * scale + table, or of x * scale: every format, with dropout or without. */
#ifndef POSENC_SUMS_H
#define POSENC_SUMS_H

#include "floats.h"
#include "words.h"

typedef void (*add_tile)(const void *x, const void *table, void *out, int64_t count, double scale);
typedef void (*drop_tile)(const void *x, const void *table, void *out, int64_t count, double scale,
                          const uint32_t *words, uint32_t threshold, double rescale);

struct format {
  add_tile add, times;
  drop_tile add_dropped, times_dropped;
  int64_t bytes, table_bytes;
};

#define ADDED(STORED, WIDE) (WIDE##_from_##STORED(x[i]) * factor + table[i])
#define TIMES(STORED, WIDE) (WIDE##_from_##STORED(x[i]) * factor)

#define DEFINE_PLAIN(NAME, STORED, WIDE, VALUE)                                                   \
  static void NAME##_##STORED(const void *from, const void *rows,                                 \
                              void *to, int64_t count, double scale) {                            \
    const STORED *x = from;                                                                       \
    const WIDE *table = rows, factor = (WIDE)scale;                                               \
    STORED *out = to;                                                                             \
    (void)table;                                                                                  \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < count; i++) out[i] =                             \
        STORED##_from_##WIDE(VALUE(STORED, WIDE));                                                \
  }

#define DEFINE_DROPPED(NAME, STORED, WIDE, VALUE)                                                 \
  static void NAME##_dropped_##STORED(const void *from, const void *rows,                         \
                                      void *to, int64_t count, double scale,                      \
                                      const uint32_t *words, uint32_t threshold,                  \
                                      double rescale) {                                           \
    const STORED *x = from;                                                                       \
    const WIDE *table = rows, factor = (WIDE)scale, keep = (WIDE)rescale;                         \
    STORED *out = to;                                                                             \
    (void)table;                                                                                  \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < count; i++) {                                    \
      WIDE value = VALUE(STORED, WIDE) * keep;                                                    \
      out[i] = STORED##_from_##WIDE(words[i] >= threshold ? value : (WIDE)0);                     \
    }                                                                                             \
  }

#define DEFINE_TILES(STORED, WIDE)           \
  DEFINE_PLAIN(times, STORED, WIDE, TIMES)   \
  DEFINE_DROPPED(add, STORED, WIDE, ADDED)   \
  DEFINE_DROPPED(times, STORED, WIDE, TIMES)

typedef float float32;
typedef double float64;
DEFINE_TILES(float32, float)
DEFINE_TILES(bfloat16, float)
DEFINE_TILES(float16, float)
DEFINE_TILES(float64, double)
DEFINE_PLAIN(add, float32, float, ADDED)
DEFINE_PLAIN(add, bfloat16, float, ADDED)
DEFINE_PLAIN(add, float64, double, ADDED)

/* bfloat16 is summed a word of two at a time. */
static void add_words(const void *from, const void *rows, void *to, int64_t count, double scale) {
  const two_channels *x = from;
  two_channels *out = to;
  const float *table = rows, factor = (float)scale;
  int64_t words = WORDS_FIT ? count / 2 : 0, i = 0;
#if defined(__AVX512BW__)
  __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1)); /* places in two vectors of the table */
  __m512 factors = _mm512_set1_ps(factor);
  for (; i + WORDS_TOGETHER <= words; i += WORDS_TOGETHER) {
    __m512i word = _mm512_loadu_si512(x + i);
    __m512 low = _mm512_loadu_ps(table + 2 * i), high = _mm512_loadu_ps(table + 2 * i + 16);
    __m512 first = firsts_of(word) * factors + _mm512_permutex2var_ps(low, even, high);
    __m512 second = seconds_of(word) * factors + _mm512_permutex2var_ps(low, odd, high);
    _mm512_storeu_si512(out + i, rounded_words(first, second, 0));
  }
#endif
  _Pragma("GCC ivdep") for (; i < words; i++)
    out[i] = both_of(first_of(x[i]) * factor + table[2 * i],
                     second_of(x[i]) * factor + table[2 * i + 1]);
  add_bfloat16(x + words, table + 2 * words, out + words, count - 2 * words, scale);
}

/* float16 is widened and narrowed some elements at a time, by instructions of its own. */
enum { WIDENED = 256 };

static void add_widened(const void *from, const void *rows, void *to, int64_t count, double scale) {
  const float16 *x = from;
  const float *table = rows;
  float16 *out = to;
  _Alignas(64) float wide[WIDENED];
  for (int64_t done = 0; done < count; done += WIDENED) {
    int64_t now = count - done < WIDENED ? count - done : WIDENED;
    widen_float16(x + done, wide, now);
    add_float32(wide, table + done, wide, now, scale);
    narrow_float16(wide, out + done, now);
  }
}

#define FORMAT(STORED, WIDE, ADD)                                                      \
  {ADD, times_##STORED, add_dropped_##STORED, times_dropped_##STORED, sizeof(STORED), \
   sizeof(WIDE)}
static const struct format FORMATS[] = {
    FORMAT(float32, float, add_float32), FORMAT(bfloat16, float, add_words),
    FORMAT(float16, float, add_widened), FORMAT(float64, double, add_float64)};

#endif
