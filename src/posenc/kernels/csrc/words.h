/* bfloat16 two at a time: a 32-bit word holds two channels, each a float32 once it is shifted or
 * masked, so nothing is shuffled. */
#ifndef POSENC_WORDS_H
#define POSENC_WORDS_H

#include "floats.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { WORDS_FIT = 1 };
#else
enum { WORDS_FIT = 0 };
#endif

typedef uint32_t __attribute__((may_alias, aligned(2))) two_channels;

static inline float first_of(uint32_t word) { return of_bits(word << 16); }
static inline float second_of(uint32_t word) { return of_bits(word & 0xffff0000u); }

/* What arithmetic makes NaN has a bit in its upper half that says so; added to, it might become 0. */
static inline uint32_t rounded_up(float value) {
  uint32_t bits = bits_of(value);
  return value == value ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits;
}

static inline uint32_t both_of(float first, float second) {
  return rounded_up(first) >> 16 | (rounded_up(second) & 0xffff0000u);
}

/* Both without NaN, or with such alone as has zeros where this adds. */
static inline uint32_t both_of_plain(float first, float second) {
  uint32_t a = bits_of(first), b = bits_of(second);
  return (a + 0x7fffu + ((a >> 16) & 1u)) >> 16 |
         ((b + 0x7fffu + ((b >> 16) & 1u)) & 0xffff0000u);
}

#if defined(__AVX512BW__)

enum { WORDS_TOGETHER = 16 };

static inline __m512 firsts_of(__m512i words) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}

static inline __m512 seconds_of(__m512i words) {
  return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32((int)0xffff0000u)));
}

/* The upper halves go up by 1 where the lower ones are more than half, or half beside an odd one. */
static inline __m512i rounded_words(__m512 firsts, __m512 seconds, int plain) {
  __m512i a = _mm512_castps_si512(firsts), b = _mm512_castps_si512(seconds);
  __m512i mask = _mm512_set1_epi32((int)0xffff0000u), one = _mm512_set1_epi16(1);
  __m512i sign = _mm512_set1_epi16((short)0x8000), ones = _mm512_set1_epi16(-1);
  __m512i upper = _mm512_ternarylogic_epi32(_mm512_srli_epi32(a, 16), b, mask, 0xf8);
  __m512i lower = _mm512_ternarylogic_epi32(_mm512_slli_epi32(b, 16), a, mask, 0xf4);
  __m512i odd = _mm512_ternarylogic_epi32(lower, upper, one, 0xf8);
  __mmask32 up = _mm512_cmpgt_epu16_mask(odd, sign);
  if (!plain) up = _mm512_mask_cmpneq_epi16_mask(up, _mm512_or_si512(upper, sign), ones);
  return _mm512_mask_add_epi16(upper, up, upper, one);
}

#endif

#endif
