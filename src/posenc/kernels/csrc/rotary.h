/* What a rotation of heads is told. */
#ifndef POSENC_ROTARY_H
#define POSENC_ROTARY_H

#include "parallel.h"

enum {
  QUERIES_AND_KEYS = 2,
  POSENC_SERIAL_ELEMENTS = 1 << 17 /* fewer are turned sooner than a second thread wakes */
};

/* Strides count elements. */
struct heads {
  int64_t count;
  int64_t x_batch, x_head, x_token;
  int64_t out_batch, out_head, out_token;
};

/* As rotary_plan.py packs it: nothing but 64-bit integers, and no addresses. */
struct plan {
  int64_t format;      /* a place in FORMATS */
  int64_t interleaved; /* channels (2i, 2i + 1), or (i, i + pairs) */
  int64_t begin;       /* the first channel that turns */
  int64_t pairs, width, sign;
  int64_t batch, tokens;
  int64_t table_batch, table_head, table_row;
  int64_t positions_batch, positions_token, rows;
  int64_t parts;
  struct heads part[QUERIES_AND_KEYS];
};

struct places {
  const char *q;
  char *q_out; /* q itself where heads turn in place */
  const char *k;
  char *k_out;
  const char *cos, *sin;
  const int64_t *positions; /* which row of the table, or NULL: that of the token */
  int64_t fresh;            /* whether q_out and k_out are new memory */
};

enum outcome { DONE = 0, NO_SUCH_ROW = 1, UNFIT = 2 };

POSENC_EXPORT int posenc_turn(const struct plan *plan, const struct places *at, int64_t threads);

#endif
