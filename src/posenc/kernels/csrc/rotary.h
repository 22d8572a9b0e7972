/* What a rotation of heads is told. */
#ifndef POSENC_ROTARY_H
#define POSENC_ROTARY_H

#include "parallel.h"

enum { QUERIES_AND_KEYS = 2 };

/* One tensor of heads. */
struct heads {
  int64_t count;
  int64_t x_batch, x_head, x_token;
  int64_t out_batch, out_head, out_token;
};

/* Sizes and strides, which count elements: as rotary_operators.c plans them. */
struct rotary_plan {
  int64_t format;      /* a place in FORMATS */
  int64_t interleaved; /* channels (2i, 2i + 1), or (i, i + pairs) */
  int64_t begin;       /* the first channel that is rotated */
  int64_t pairs, width;
  int64_t sign; /* -1 rotates backwards */
  int64_t batch, tokens;
  int64_t table_batch, table_head, table_row;
  int64_t looked_up; /* whether positions say which of so many rows of the table; else the token */
  int64_t positions_batch, positions_token, rows;
  int64_t parts;
  struct heads part[QUERIES_AND_KEYS];
};

/* What changes from call to call. */
struct rotary_operands {
  const char *q;
  char *q_out; /* q itself where heads are rotated in place */
  const char *k;
  char *k_out;
  const char *cos, *sin;
  const int64_t *positions;
  int64_t fresh; /* whether q_out and k_out are new memory */
};

enum outcome { DONE = 0, NO_SUCH_ROW = 1, UNFIT = 2 };

/* Whether all memory is there, nothing is written that is still to be read, and all rows exist. */
int posenc_rotary_fits(const struct rotary_plan *plan, const struct rotary_operands *at);

/* What fits, rotated. */
void posenc_rotate(const struct rotary_plan *plan, const struct rotary_operands *at, int64_t threads);

#endif
