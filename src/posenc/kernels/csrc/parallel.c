/* Threads are those of the OpenMP runtime that torch has loaded. Its entry point is handed over
 * once, so this library links to no runtime and can never bring a second pool along.
 * Without one everything runs on the calling thread. */
#include "parallel.h"

#include <stddef.h>

/* void GOMP_parallel(fn, data, threads, flags): what "#pragma omp parallel" compiles to; both
 * libgomp and LLVM's libomp have it. */
typedef void (*parallel_region)(void (*body)(void *), void *data, unsigned threads, unsigned flags);

/* int omp_get_thread_num(void) */
typedef int (*thread_number)(void);

static parallel_region region = NULL;
static thread_number number = NULL;

void posenc_set_parallel(void *entry, void *thread_num) {
  region = (parallel_region)entry;
  number = (thread_number)thread_num;
}

enum { MOST_THREADS = 64, LINE = 64 };

/* How far a share has got, alone on its cache line. */
struct share {
  _Alignas(LINE) int64_t next;
  int64_t past;
};

struct shared {
  posenc_piece piece;
  const void *job;
  int64_t shares;
  struct share share[MOST_THREADS];
};

/* A thread works on the same run of pieces each time, which its caches may still hold; when that is
 * done it takes what is left of others' shares, so that a slow thread holds nobody up. */
static void take_pieces(void *data) {
  struct shared *shared = data;
  int64_t own = number == NULL ? 0 : number();
  for (int64_t i = 0; i < shared->shares; i++) {
    struct share *share = &shared->share[(own + i) % shared->shares];
    for (;;) {
      int64_t piece = __atomic_fetch_add(&share->next, 1, __ATOMIC_RELAXED);
      if (piece >= share->past) break;
      shared->piece(shared->job, piece);
    }
  }
}

void posenc_share(posenc_piece piece, const void *job, int64_t pieces, int64_t threads) {
  if (threads > pieces) threads = pieces;
  if (threads > MOST_THREADS) threads = MOST_THREADS;
  if (region == NULL || threads < 2) {
    for (int64_t i = 0; i < pieces; i++) piece(job, i);
    return;
  }
  struct shared shared = {.piece = piece, .job = job, .shares = threads};
  for (int64_t i = 0; i < threads; i++) {
    shared.share[i].next = pieces * i / threads;
    shared.share[i].past = pieces * (i + 1) / threads;
  }
  region(take_pieces, &shared, (unsigned)threads, 0);
}
