/* One head of one token rotated: every format, both pairings. */
#ifndef POSENC_ROTATIONS_H
#define POSENC_ROTATIONS_H

#include "floats.h"
#include "words.h"

typedef void (*rotate_row)(const void *x, void *out, const void *cos, const void *sin, int sign,
                           int64_t pairs);

struct format {
  int64_t bytes, table_bytes;
};

typedef float float32;
typedef double float64;

/* Pair i reads and writes its own two channels alone, so rows may be rotated in place. */
#define DEFINE_ROTATIONS(STORED, WIDE)                                                           \
  static void half_##STORED(const void *from, void *to, const void *cosines, const void *sines,  \
                            int sign, int64_t pairs) {                                           \
    const STORED *x = from;                                                                      \
    STORED *out = to;                                                                            \
    const WIDE *cos = cosines, *sin = sines, flip = (WIDE)sign;                                  \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < pairs; i++) {                                   \
      WIDE a = WIDE##_from_##STORED(x[i]), b = WIDE##_from_##STORED(x[i + pairs]);               \
      WIDE c = cos[i], s = flip * sin[i];                                                        \
      out[i] = STORED##_from_##WIDE(a * c - b * s);                                              \
      out[i + pairs] = STORED##_from_##WIDE(b * c + a * s);                                      \
    }                                                                                            \
  }                                                                                              \
  static void interleaved_##STORED(const void *from, void *to, const void *cosines,              \
                                   const void *sines, int sign, int64_t pairs) {                 \
    const STORED *x = from;                                                                      \
    STORED *out = to;                                                                            \
    const WIDE *cos = cosines, *sin = sines, flip = (WIDE)sign;                                  \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < pairs; i++) {                                   \
      WIDE a = WIDE##_from_##STORED(x[2 * i]), b = WIDE##_from_##STORED(x[2 * i + 1]);           \
      WIDE c = cos[i], s = flip * sin[i];                                                        \
      out[2 * i] = STORED##_from_##WIDE(a * c - b * s);                                          \
      out[2 * i + 1] = STORED##_from_##WIDE(b * c + a * s);                                      \
    }                                                                                            \
  }

DEFINE_ROTATIONS(float32, float)
DEFINE_ROTATIONS(bfloat16, float)
DEFINE_ROTATIONS(float64, double)

/* float16 is widened and narrowed some channels at a time, by instructions of its own. */
enum { TILE_CHANNELS = 256 };

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target("prefer-vector-width=512"))) /* loads as wide as the stores of widen_float16 */
#endif
static void half_float16(const void *from, void *to, const void *cosines, const void *sines,
                         int sign, int64_t pairs) {
  const float16 *x = from;
  float16 *out = to;
  const float *cos = cosines, *sin = sines;
  float tile[TILE_CHANNELS];
  for (int64_t begin = 0; begin < pairs; begin += TILE_CHANNELS / 2) {
    int64_t rest = pairs - begin, count = rest < TILE_CHANNELS / 2 ? rest : TILE_CHANNELS / 2;
    widen_float16(x + begin, tile, count);
    widen_float16(x + pairs + begin, tile + count, count);
    half_float32(tile, tile, cos + begin, sin + begin, sign, count);
    narrow_float16(tile, out + begin, count);
    narrow_float16(tile + count, out + pairs + begin, count);
  }
}

static void interleaved_float16(const void *from, void *to, const void *cosines,
                                const void *sines, int sign, int64_t pairs) {
  const float16 *x = from;
  float16 *out = to;
  const float *cos = cosines, *sin = sines;
  float tile[TILE_CHANNELS];
  for (int64_t begin = 0; begin < pairs; begin += TILE_CHANNELS / 2) {
    int64_t rest = pairs - begin, count = rest < TILE_CHANNELS / 2 ? rest : TILE_CHANNELS / 2;
    widen_float16(x + 2 * begin, tile, 2 * count);
    interleaved_float32(tile, tile, cos + begin, sin + begin, sign, count);
    narrow_float16(tile, out + 2 * begin, 2 * count);
  }
}

static const struct format FORMATS[] = {
    {sizeof(float32), sizeof(float)},
    {sizeof(bfloat16), sizeof(float)},
    {sizeof(float16), sizeof(float)},
    {sizeof(float64), sizeof(double)},
};

/* Words of bfloat16: rows of the table are prepared for them, once for all heads. */
/* A NaN of the table with zeros where rounding adds. */
static inline float without_payload(float value) {
  return value == value ? value : of_bits(0x7fc00000u);
}

/* cos, then sin; for the half pairing those of even pairs, then those of odd ones. */
static void prepare(const float *cos, const float *sin, int sign, int64_t pairs, int interleaved,
                    float *row) {
  float flip = (float)sign, *sines = row + pairs;
  int64_t half = pairs / 2;
  if (interleaved) {
    _Pragma("GCC ivdep") for (int64_t i = 0; i < pairs; i++) {
      row[i] = without_payload(cos[i]);
      sines[i] = without_payload(flip * sin[i]);
    }
    return;
  }
  _Pragma("GCC ivdep") for (int64_t i = 0; i < half; i++) {
    row[i] = without_payload(cos[2 * i]), row[half + i] = without_payload(cos[2 * i + 1]);
    sines[i] = without_payload(flip * sin[2 * i]);
    sines[half + i] = without_payload(flip * sin[2 * i + 1]);
  }
}

static inline void half_words(const void *from, void *to, const void *cosines, const void *sines,
                              int sign, int64_t pairs) {
  const two_channels *x = from;
  two_channels *out = to;
  const float *cos = cosines, *sin = sines;
  int64_t words = pairs / 2, i = 0;
  (void)sign;
#if defined(__AVX512BW__)
  for (; i + WORDS_TOGETHER <= words; i += WORDS_TOGETHER) {
    __m512i a = _mm512_loadu_si512(x + i), b = _mm512_loadu_si512(x + words + i);
    __m512 c = _mm512_loadu_ps(cos + i), s = _mm512_loadu_ps(sin + i);
    __m512 d = _mm512_loadu_ps(cos + words + i), t = _mm512_loadu_ps(sin + words + i);
    __m512 a_first = firsts_of(a), a_second = seconds_of(a);
    __m512 b_first = firsts_of(b), b_second = seconds_of(b);
    _mm512_storeu_si512(out + i, rounded_words(a_first * c - b_first * s, a_second * d - b_second * t, 1));
    _mm512_storeu_si512(out + words + i,
                        rounded_words(b_first * c + a_first * s, b_second * d + a_second * t, 1));
  }
#endif
  _Pragma("GCC ivdep") for (; i < words; i++) {
    uint32_t a = x[i], b = x[i + words];
    float c = cos[i], s = sin[i], d = cos[i + words], t = sin[i + words];
    float a_first = first_of(a), a_second = second_of(a);
    float b_first = first_of(b), b_second = second_of(b);
    out[i] = both_of_plain(a_first * c - b_first * s, a_second * d - b_second * t);
    out[i + words] = both_of_plain(b_first * c + a_first * s, b_second * d + a_second * t);
  }
}

static inline void interleaved_words(const void *from, void *to, const void *cosines,
                                     const void *sines, int sign, int64_t pairs) {
  const two_channels *x = from;
  two_channels *out = to;
  const float *cos = cosines, *sin = sines;
  int64_t i = 0;
  (void)sign;
#if defined(__AVX512BW__)
  for (; i + WORDS_TOGETHER <= pairs; i += WORDS_TOGETHER) {
    __m512i word = _mm512_loadu_si512(x + i);
    __m512 a = firsts_of(word), b = seconds_of(word);
    __m512 c = _mm512_loadu_ps(cos + i), s = _mm512_loadu_ps(sin + i);
    _mm512_storeu_si512(out + i, rounded_words(a * c - b * s, b * c + a * s, 1));
  }
#endif
  _Pragma("GCC ivdep") for (; i < pairs; i++) {
    float a = first_of(x[i]), b = second_of(x[i]), c = cos[i], s = sin[i];
    out[i] = both_of_plain(a * c - b * s, b * c + a * s);
  }
}

#endif
