/* What a table of cosines and sines is told. */
#ifndef POSENC_SINCOS_H
#define POSENC_SINCOS_H

#include "phase.h"

/* Sizes and strides, which count elements, as sincos_operators.c plans them. */
struct sincos_plan {
  int64_t format; /* 0: float32, 1: bfloat16, 2: float16 */
  int64_t rows, frequencies;
  int64_t positions_step;
  int64_t row_step, column_step;
  int64_t sine; /* how far after a cosine its sine is; negative where it is before */
};

/* What changes from call to call. */
struct sincos_operands {
  const int64_t *positions;
  const struct turns *turns;
  const double *radians; /* |frequency|, an upper bound within rounding */
  char *cos;
  double factor;
  int64_t fresh; /* whether the table is new memory */
};

/* Fills the table; 0 where there is no memory to work in. */
int posenc_sincos(const struct sincos_plan *plan, const struct sincos_operands *at, int64_t threads);

#endif
