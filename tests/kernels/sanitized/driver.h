/* What the drivers share: two threads, random numbers, and a loop over cases.
 *
 * A driver calls its kernel over random shapes, in memory that is exactly as large as the kernel may
 * touch. Built with sanitizers by test_sanitized.py, a byte too far, an overflow, a misaligned access
 * or a race ends it. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void posenc_set_parallel(void *entry, void *thread_num);

static _Thread_local int thread = 0;

static int thread_num(void) { return thread; }

static void *body_of(void *both) {
  void **pair = both;
  void (*body)(void *) = (void (*)(void *))pair[0];
  thread = 1;
  body(pair[1]);
  return NULL;
}

static void on_two_threads(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
  void *both[] = {(void *)body, data};
  pthread_t other;
  (void)threads, (void)flags;
  pthread_create(&other, NULL, body_of, both);
  body(data);
  pthread_join(other, NULL);
}

static uint64_t state = 88172645463325252u;

static int64_t draw(int64_t least, int64_t most) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return least + (int64_t)(state % ((uint64_t)most - (uint64_t)least + 1));
}

static void check(int fine, const char *what) {
  if (fine) return;
  printf("%s\n", what);
  exit(1);
}

/* Another thread that writes numbers while they are in use: those of no row, and row 0 again. */
struct scribble {
  int64_t *numbers, count;
  int stop;
};

static void *scribbled(void *data) {
  struct scribble *scribble = data;
  static const int64_t wrong[] = {INT64_MIN, -1, 0, INT64_MAX};
  for (int64_t i = 0; !__atomic_load_n(&scribble->stop, __ATOMIC_RELAXED); i++)
    __atomic_store_n(&scribble->numbers[i % scribble->count], wrong[i / scribble->count % 4],
                     __ATOMIC_RELAXED);
  for (int64_t i = 0; i < scribble->count; i++)
    __atomic_store_n(&scribble->numbers[i], 0, __ATOMIC_RELAXED);
  return NULL;
}

static pthread_t begin_scribbling(struct scribble *scribble, int64_t *numbers, int64_t count) {
  pthread_t other;
  *scribble = (struct scribble){numbers, count, 0};
  pthread_create(&other, NULL, scribbled, scribble);
  return other;
}

static void end_scribbling(struct scribble *scribble, pthread_t other) {
  __atomic_store_n(&scribble->stop, 1, __ATOMIC_RELAXED);
  pthread_join(other, NULL);
}

/* The words after the program's name, if there are any: a seed, and how many cases. */
static int run(void (*one)(void), int cases, int words, char **given) {
  if (words > 1) state ^= strtoull(given[1], NULL, 10) * 0x9E3779B97F4A7C15u;
  if (words > 2) cases = atoi(given[2]);
  posenc_set_parallel((void *)on_two_threads, (void *)thread_num);
  for (int i = 0; i < cases; i++) one();
  printf("clean\n");
  return 0;
}
