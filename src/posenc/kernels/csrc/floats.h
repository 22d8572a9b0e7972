/* bfloat16 and float16 in integer operations, which every compiler vectorizes. */
#ifndef POSENC_FLOATS_H
#define POSENC_FLOATS_H

#include <stdint.h>
#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

typedef struct { uint16_t bits; } bfloat16;
typedef struct { uint16_t bits; } float16;

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float float_from_float32(float value) { return value; }
static inline float float32_from_float(float value) { return value; }
static inline double double_from_float64(double value) { return value; }
static inline double float64_from_double(double value) { return value; }

static inline float float_from_bfloat16(bfloat16 value) {
  return of_bits((uint32_t)value.bits << 16);
}

/* To nearest, ties to even. */
static inline bfloat16 bfloat16_from_float(float value) {
  uint32_t bits = bits_of(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  bfloat16 result = {(uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded)};
  return result;
}

static inline float float_from_float16(float16 value) {
  uint32_t size = value.bits & 0x7fffu, sign = (uint32_t)(value.bits & 0x8000u) << 16;
  uint32_t normal = (size << 13) + (112u << 23);
  /* A subnormal is a whole number of 2^-24; infinity and NaN keep an exponent of all ones. */
  uint32_t small = bits_of((float)(int32_t)size * 0x1p-24f);
  uint32_t bits = size < 0x400u ? small : normal;
  bits = size >= 0x7c00u ? bits | 0x7f800000u : bits;
  return of_bits(bits | sign);
}

/* To nearest, ties to even. */
static inline float16 float16_from_float(float value) {
  uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  uint32_t normal = (size + 0xfffu + ((size >> 13) & 1u) - (112u << 23)) >> 13;
  /* In [1/2, 1) a float32 is a whole number of 2^-24, as a subnormal is. */
  uint32_t small = bits_of(of_bits(size) + 0.5f) - bits_of(0.5f);
  uint32_t half = size < (113u << 23) ? small : normal;
  half = size >= 0x477ff000u ? 0x7c00u : half; /* 65520 and more round to infinity */
  half = size > 0x7f800000u ? 0x7e00u : half;
  float16 result = {(uint16_t)(half | sign)};
  return result;
}

/* Many at a time, by instructions of its own where there are any. */
static inline void widen_float16(const float16 *from, float *to, int64_t count) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16)
    _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#elif defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#endif
  for (; i < count; i++) to[i] = float_from_float16(from[i]);
}

static inline void narrow_float16(const float *from, float16 *to, int64_t count) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16)
    _mm256_storeu_si256((__m256i *)(to + i), _mm512_cvtps_ph(_mm512_loadu_ps(from + i), 0));
#elif defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
#endif
  for (; i < count; i++) to[i] = float16_from_float(from[i]);
}

#endif
