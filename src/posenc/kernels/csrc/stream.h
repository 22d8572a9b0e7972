/* Stores that go past the caches: for results too large to be read again from there. */
#ifndef POSENC_STREAM_H
#define POSENC_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define STREAM_BYTES 64
#define STREAM_ONE(to, from) _mm512_stream_si512((__m512i *)(to), _mm512_loadu_si512(from))
#elif defined(__AVX__)
#define STREAM_BYTES 32
#define STREAM_ONE(to, from) \
  _mm256_stream_si256((__m256i *)(to), _mm256_loadu_si256((const __m256i *)(from)))
#elif defined(__SSE2__)
#define STREAM_BYTES 16
#define STREAM_ONE(to, from) \
  _mm_stream_si128((__m128i *)(to), _mm_loadu_si128((const __m128i *)(from)))
#endif

enum { LARGE_BYTES = 4 << 20, NEW_BYTES = 32 << 20 };

/* Whether so large a result had better go past the caches. An allocation of NEW_BYTES or more comes
 * from the system, which zeroes each page at its first touch: that page is in cache then. */
static inline int worth_streaming(int64_t bytes, int fresh) {
  return bytes > LARGE_BYTES && !(fresh && bytes >= NEW_BYTES);
}

/* Asks the system for large pages under new memory, as numpy does: it then has 512 times fewer to
 * find and to map when they are first touched. A system that has none ignores it. */
static inline void ask_for_large_pages(void *from, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  uintptr_t page = 4096, first = ((uintptr_t)from + page - 1) & ~(page - 1);
  uintptr_t past = ((uintptr_t)from + (uintptr_t)bytes) & ~(page - 1);
  if (bytes >= NEW_BYTES) (void)madvise((void *)first, past - first, MADV_HUGEPAGE);
#else
  (void)from, (void)bytes;
#endif
}

/* memcpy from a small buffer in cache to memory that is not. */
static inline void stream(void *to, const void *from, size_t bytes) {
#if defined(STREAM_BYTES)
  char *target = to;
  const char *source = from;
  size_t before = -(uintptr_t)target & (STREAM_BYTES - 1);
  if (before > bytes) before = bytes;
  if (before) memcpy(target, source, before);
  size_t done = before;
  for (; done + STREAM_BYTES <= bytes; done += STREAM_BYTES) STREAM_ONE(target + done, source + done);
  if (done < bytes) memcpy(target + done, source + done, bytes - done);
#else
  memcpy(to, from, bytes);
#endif
}

/* Streamed stores become visible to other threads in order with what follows. */
static inline void stream_fence(void) {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

#endif
