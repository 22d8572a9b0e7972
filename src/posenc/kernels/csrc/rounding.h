/* float64 to float32, bfloat16 or float16 in one rounding, and whether that is beyond doubt. */
#ifndef POSENC_ROUNDING_H
#define POSENC_ROUNDING_H

#include "floats.h"

#include <math.h>

typedef float float32;

/* Two roundings, by way of float32; sines are no NaN. */
static inline float32 float32_from_double(double v) { return (float)v; }
static inline bfloat16 bfloat16_from_double(double v) {
  uint32_t bits = bits_of((float)v);
  bfloat16 result = {(uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
  return result;
}
static inline float16 float16_from_double(double v) { return float16_from_float((float)v); }

/* An error, and how far the first of two roundings moves a number at most, and then some. */
static inline double moved_float32(double e, double v) { return (void)v, e; }
static inline double moved_bfloat16(double e, double v) {
  return e + (fabs(v) * 0x1p-23 + 0x1p-149);
}
static inline double moved_float16(double e, double v) {
  return e + (fabs(v) * 0x1p-23 + 0x1p-149);
}

static inline uint32_t apart_float32(float32 a, float32 b) { return bits_of(a) ^ bits_of(b); }
static inline uint32_t apart_bfloat16(bfloat16 a, bfloat16 b) { return a.bits ^ b.bits; }
static inline uint32_t apart_float16(float16 a, float16 b) { return a.bits ^ b.bits; }

/* A float32 rounded to odd: what is rounded from it to 16 bits is rounded once (Boldo & Melquiond
 * 2008). Of a double that was itself rounded to odd it is as good as of the whole number. */
static inline float odd_from(double value) {
  float nearest = (float)value;
  double back = (double)nearest;
  uint32_t bits = bits_of(nearest);
  if (back == value) return nearest;
  bits -= fabs(back) > fabs(value);
  return of_bits(bits | 1);
}

static inline float32 once_float32(double v) { return (float)v; }
static inline bfloat16 once_bfloat16(double v) { return bfloat16_from_float(odd_from(v)); }
static inline float16 once_float16(double v) { return float16_from_float(odd_from(v)); }

#endif
