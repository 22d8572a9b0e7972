/* Where operands lie, so that nothing is written that is still to be read. */
#ifndef POSENC_MEMORY_H
#define POSENC_MEMORY_H

#include <stdint.h>

enum { REGION_AXES = 4 };

/* Runs of bytes over some axes; steps are bytes and not negative. Axes that there are not have size 0. */
struct region {
  const char *from;
  int64_t sizes[REGION_AXES], steps[REGION_AXES];
  int64_t run;
};

/* How many bytes it spans over all axes but those in a set of bits. */
static inline int64_t span_of(const struct region *r, int without) {
  int64_t bytes = r->run;
  for (int axis = 0; axis < REGION_AXES; axis++)
    if (!(without >> axis & 1)) bytes += (r->sizes[axis] - 1) * r->steps[axis];
  return bytes;
}

/* Whether no two of its runs meet, as far as steps that nest tell. */
static inline int keeps_apart(const struct region *r) {
  int done = 0;
  for (int i = 0; i < REGION_AXES; i++) { /* from the largest step to the smallest */
    int largest = -1;
    for (int axis = 0; axis < REGION_AXES; axis++)
      if (!(done >> axis & 1) && (largest < 0 || r->steps[axis] > r->steps[largest])) largest = axis;
    done |= 1 << largest;
    if (r->sizes[largest] > 1 && r->steps[largest] < span_of(r, done)) return 0;
  }
  return 1;
}

/* Whether two regions are the same elements in the same order. */
static inline int are_alike(const struct region *a, const struct region *b) {
  if (a->from != b->from || a->run != b->run) return 0;
  for (int axis = 0; axis < REGION_AXES; axis++) {
    if (a->sizes[axis] != b->sizes[axis]) return 0;
    if (a->sizes[axis] > 1 && a->steps[axis] != b->steps[axis]) return 0;
  }
  return 1;
}

/* Whether two regions have no byte in common, as far as this tells: one lies before the other; or
 * both repeat with the same step, as queries and keys in one buffer do, and that holds inside it. */
static inline int are_apart(const struct region *a, const struct region *b) {
  for (int without = 0;;) {
    const char *a_end = a->from + span_of(a, without), *b_end = b->from + span_of(b, without);
    if (a_end <= b->from || b_end <= a->from) return 1;
    int outer = -1;
    for (int axis = 0; axis < REGION_AXES; axis++) {
      if (without >> axis & 1 || (a->sizes[axis] <= 1 && b->sizes[axis] <= 1)) continue;
      if (a->steps[axis] == b->steps[axis] && (outer < 0 || a->steps[axis] > a->steps[outer]))
        outer = axis;
    }
    if (outer < 0) return 0;
    without |= 1 << outer;
    const char *begin = a->from < b->from ? a->from : b->from;
    a_end = a->from + span_of(a, without), b_end = b->from + span_of(b, without);
    if ((a_end > b_end ? a_end : b_end) - begin > a->steps[outer]) return 0;
  }
}

/* What another thread may write meanwhile. */
static inline int64_t read_once(const int64_t *number) {
  return __atomic_load_n(number, __ATOMIC_RELAXED);
}

static inline int is_row(const int64_t *number, int64_t rows) {
  int64_t row = read_once(number);
  return row >= 0 && row < rows;
}

/* The row that a number names. What was checked may be another number by now, of which the nearest
 * row that exists is taken. */
static inline int64_t row_at(const int64_t *number, int64_t rows) {
  int64_t row = read_once(number);
  return row < 0 ? 0 : row < rows ? row : rows - 1;
}

#endif
