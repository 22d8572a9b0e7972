#include "driver.h"

#include "../../../src/posenc/kernels/csrc/sincos.c"

static void fill_something(void) {
  int64_t rows = draw(0, 30) ? draw(1, 200) : 20000, frequencies = draw(0, 20) ? draw(1, 40) : 700;
  int64_t format = draw(0, 2), bytes = format ? 2 : 4, step = draw(1, 3);
  int64_t first = draw(INT64_MIN / 4, INT64_MAX / 4);
  int64_t *positions = malloc(sizeof(int64_t) * (size_t)rows);
  for (int64_t r = 0; r < rows; r++) {
    if (draw(0, 50) == 0) first = draw(INT64_MIN / 4, INT64_MAX / 4) * draw(0, 1);
    positions[r] = first++;
  }
  struct turns *turns = malloc(sizeof(struct turns) * (size_t)frequencies);
  double *radians = malloc(sizeof(double) * (size_t)frequencies);
  for (int64_t j = 0; j < frequencies; j++) {
    turns[j].high = (uint64_t)draw(0, INT64_MAX - 1) >> draw(0, 63);
    turns[j].middle = (uint64_t)draw(0, INT64_MAX - 1);
    turns[j].low = 0;
    radians[j] = ldexp((double)turns[j].high + 1, -61);
  }
  int64_t columns = 2 * frequencies * step, sine = step == 2 ? 1 : frequencies * step;
  int64_t reach = (rows - 1) * columns + sine + (frequencies - 1) * step + 1;
  int64_t sine_first = draw(0, 1);
  char *table = malloc((size_t)(reach * bytes));
  struct sincos_plan plan = {format, rows, frequencies, 1, columns, step, sine_first ? -sine : sine};
  struct sincos_operands at = {.positions = positions, .turns = turns, .radians = radians,
                               .cos = table + sine_first * sine * bytes, .factor = 1.25};
  check(posenc_sincos(&plan, &at, 2) == DONE, "not filled");
  if (rows <= 200) {
    struct scribble scribble;
    pthread_t other = begin_scribbling(&scribble, positions, rows);
    check(posenc_sincos(&plan, &at, 2) == DONE, "not filled from positions that change");
    end_scribbling(&scribble, other);
  }
  at.cos = NULL;
  check(posenc_sincos(&plan, &at, 2) == UNFIT, "a table without memory is filled");
  free(table), free(radians), free(turns), free(positions);
}

int main(int words, char **given) { return run(fill_something, 300, words, given); }
