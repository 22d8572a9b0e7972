/* Work in pieces, on the threads that torch has already. */
#ifndef POSENC_PARALLEL_H
#define POSENC_PARALLEL_H

#include <stdint.h>

#define POSENC_EXPORT __attribute__((visibility("default")))

/* Two functions of an OpenMP runtime: the one that opens a parallel region, and the one that tells a
 * thread its number. */
void posenc_set_parallel(void *entry, void *thread_num);

/* One piece of a job; pieces are independent and may run in any order, on any thread. */
typedef void (*posenc_piece)(const void *job, int64_t piece);

/* Runs pieces 0 ... pieces - 1 of a job on up to so many threads, and returns when all are done. */
void posenc_share(posenc_piece piece, const void *job, int64_t pieces, int64_t threads);

#endif
