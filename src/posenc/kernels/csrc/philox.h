/* Philox 4x32-7: four random words of 32 bits for each counter of 128 bits, by a key of 64.
 *
 * Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3". Any word can be computed by
 * itself, so a mask need not be stored: the same counters give it again. */
#ifndef POSENC_PHILOX_H
#define POSENC_PHILOX_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum {
  PHILOX_COUNTERS = 16,
  PHILOX_WORDS = 4,
  PHILOX_BLOCK = PHILOX_COUNTERS * PHILOX_WORDS
};

/* A word in the low half of each lane; what is in the high half does not matter. */
#if defined(__AVX512F__)
#define PHILOX_LANES 8
typedef uint64_t philox_lanes __attribute__((vector_size(64), aligned(64)));
#define PHILOX_TIMES(a, b) ((philox_lanes)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#elif defined(__AVX2__)
#define PHILOX_LANES 4
typedef uint64_t philox_lanes __attribute__((vector_size(32), aligned(32)));
#define PHILOX_TIMES(a, b) ((philox_lanes)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#else
#define PHILOX_LANES 2
typedef uint64_t philox_lanes __attribute__((vector_size(16), aligned(16)));
#define PHILOX_TIMES(a, b) (((a) & 0xffffffffu) * (b))
#endif

enum { PHILOX_TOGETHER = 16 / PHILOX_LANES };

static const uint64_t PHILOX_STEPS[PHILOX_COUNTERS] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                       8, 9, 10, 11, 12, 13, 14, 15};

/* Word w of counter 16 * block + i goes to words[16 * w + i]. */
static inline void philox_block(uint32_t words[PHILOX_BLOCK], uint64_t block, uint64_t key) {
  const philox_lanes m0 = (philox_lanes){0} + 0xD2511F53u, m1 = (philox_lanes){0} + 0xCD9E8D57u;
  uint64_t first = block * PHILOX_COUNTERS;
  philox_lanes c[PHILOX_TOGETHER][PHILOX_WORDS];
  for (int t = 0; t < PHILOX_TOGETHER; t++) {
    philox_lanes lane;
    memcpy(&lane, PHILOX_STEPS + t * PHILOX_LANES, sizeof lane);
    c[t][0] = lane + first;
    c[t][1] = c[t][0] >> 32;
    c[t][2] = c[t][3] = (philox_lanes){0};
  }
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma GCC unroll 7
  for (int round = 0; round < 7; round++) {
#pragma GCC unroll 8
    for (int t = 0; t < PHILOX_TOGETHER; t++) {
      philox_lanes p0 = PHILOX_TIMES(c[t][0], m0), p1 = PHILOX_TIMES(c[t][2], m1);
      c[t][0] = (p1 >> 32) ^ c[t][1] ^ ((philox_lanes){0} + k0);
      c[t][2] = (p0 >> 32) ^ c[t][3] ^ ((philox_lanes){0} + k1);
      c[t][1] = p1;
      c[t][3] = p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int w = 0; w < PHILOX_WORDS; w++)
    for (int t = 0; t < PHILOX_TOGETHER; t++) {
      uint32_t *to = words + w * PHILOX_COUNTERS + t * PHILOX_LANES;
#if defined(__AVX512F__)
      _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi64_epi32((__m512i)c[t][w]));
#else
      for (int i = 0; i < PHILOX_LANES; i++) to[i] = (uint32_t)c[t][w][i];
#endif
    }
}

#endif
