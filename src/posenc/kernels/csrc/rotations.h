/* One head of one token rotated: every format, both pairings. */
#ifndef POSENC_ROTATIONS_H
#define POSENC_ROTATIONS_H

#include "floats.h"

typedef void (*rotate_row)(const void *x, void *out, const void *cos, const void *sin, int sign,
                           int64_t pairs);

struct format {
  rotate_row half, interleaved;
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
    {half_float32, interleaved_float32, sizeof(float32), sizeof(float)},
    {half_bfloat16, interleaved_bfloat16, sizeof(bfloat16), sizeof(float)},
    {half_float16, interleaved_float16, sizeof(float16), sizeof(float)},
    {half_float64, interleaved_float64, sizeof(float64), sizeof(double)},
};

/* bfloat16 two at a time: a 32-bit word holds two channels, each a float32 once it is shifted or
 * masked, so nothing is shuffled. Rows of the table are prepared for it, once for all heads. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { WORDS_FIT = 1 };
#else
enum { WORDS_FIT = 0 };
#endif

typedef uint32_t __attribute__((may_alias, aligned(2))) two_channels;

static inline float first_of(uint32_t word) { return of_bits(word << 16); }
static inline float second_of(uint32_t word) { return of_bits(word & 0xffff0000u); }

/* NaN needs no care: those of bfloat16 and of a prepared row have zeros where this adds. */
static inline uint32_t rounded_up(float value) {
  uint32_t bits = bits_of(value);
  return bits + 0x7fffu + ((bits >> 16) & 1u);
}

static inline uint32_t both_of(float first, float second) {
  return rounded_up(first) >> 16 | (rounded_up(second) & 0xffff0000u);
}

/* cos, then sin; for the half pairing those of even pairs, then those of odd ones. */
static void prepare(const float *cos, const float *sin, int sign, int64_t pairs, int interleaved,
                    float *row) {
  float flip = (float)sign;
  int64_t half = pairs / 2;
  for (int64_t i = 0; i < pairs; i++) {
    int64_t place = interleaved ? i : i % 2 * half + i / 2;
    float c = cos[i], s = flip * sin[i];
    row[place] = c == c ? c : of_bits(0x7fc00000u);
    row[pairs + place] = s == s ? s : of_bits(0x7fc00000u);
  }
}

static void half_words(const void *from, void *to, const void *cosines, const void *sines, int sign,
                       int64_t pairs) {
  const two_channels *x = from;
  two_channels *out = to;
  const float *cos = cosines, *sin = sines;
  int64_t words = pairs / 2;
  (void)sign;
  _Pragma("GCC ivdep") for (int64_t i = 0; i < words; i++) {
    uint32_t a = x[i], b = x[i + words];
    float c = cos[i], s = sin[i], d = cos[i + words], t = sin[i + words];
    float a_first = first_of(a), a_second = second_of(a);
    float b_first = first_of(b), b_second = second_of(b);
    out[i] = both_of(a_first * c - b_first * s, a_second * d - b_second * t);
    out[i + words] = both_of(b_first * c + a_first * s, b_second * d + a_second * t);
  }
}

static void interleaved_words(const void *from, void *to, const void *cosines, const void *sines,
                              int sign, int64_t pairs) {
  const two_channels *x = from;
  two_channels *out = to;
  const float *cos = cosines, *sin = sines;
  (void)sign;
  _Pragma("GCC ivdep") for (int64_t i = 0; i < pairs; i++) {
    float a = first_of(x[i]), b = second_of(x[i]), c = cos[i], s = sin[i];
    out[i] = both_of(a * c - b * s, b * c + a * s);
  }
}

#endif
