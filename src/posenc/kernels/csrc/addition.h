/* What a sum is told. */
#ifndef POSENC_ADDITION_H
#define POSENC_ADDITION_H

#include <stdint.h>

enum { AXES = 3 };

/* Sizes and strides, which count elements, as addition_operators.c plans them. A row is `width`
 * elements side by side. */
struct addition_plan {
  int64_t format; /* a place in FORMATS */
  int64_t sizes[AXES], width;
  int64_t x_steps[AXES], table_steps[AXES], out_steps[AXES];
  int64_t ids_steps[AXES], positions_steps[AXES];
  int64_t with_table, with_ids, with_positions;  /* which operands there are beside x and out */
  int64_t x_rows, x_row, table_rows, table_row;  /* of what is looked up */
};

/* What changes from call to call. */
struct addition_operands {
  const char *x, *table;
  char *out;
  const int64_t *ids, *positions; /* which row of x, and of the table */
  double scale, rescale;
  uint64_t threshold; /* words from here on keep their element; 0 keeps all */
  uint64_t key;
  int64_t fresh; /* whether out is new memory */
};

enum outcome { DONE = 0, NO_SUCH_ROW = 1, UNFIT = 2, NO_SUCH_ID = 3 };

/* Whether all memory is there, nothing is written that is still to be read, and all rows exist. */
int posenc_sum_fits(const struct addition_plan *plan, const struct addition_operands *at);

/* What fits, summed. */
void posenc_sum(const struct addition_plan *plan, const struct addition_operands *at, int64_t threads);

#endif
