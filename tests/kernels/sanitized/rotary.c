#include "driver.h"

#include "../../../src/posenc/kernels/csrc/rotary.c"

/* Strides of three axes in a random order, with gaps or without; what they reach is returned. */
static int64_t lay_out(const int64_t sizes[3], int64_t width, int64_t strides[3]) {
  int order[] = {0, 1, 2};
  int first = (int)draw(0, 2), second = (int)draw(0, 2), swapped = order[first];
  order[first] = order[second], order[second] = swapped;
  int64_t step = width + draw(0, 1) * draw(0, 3), reach = width;
  for (int i = 0; i < 3; i++) {
    strides[order[i]] = step;
    reach += (sizes[order[i]] - 1) * step;
    step *= sizes[order[i]];
  }
  return reach;
}

static void rotate_something(void) {
  int64_t large = draw(0, 40) == 0;
  int64_t batch = draw(1, 3), tokens = large ? 3000 : draw(1, 20), pairs = draw(1, 40);
  int64_t width = 2 * pairs + draw(0, 5), format = draw(0, 3), looked = draw(0, 1);
  int64_t rows = looked ? draw(1, 30) : tokens;
  struct rotary_plan plan = {.format = format, .interleaved = draw(0, 1), .pairs = pairs, .width = width};
  plan.begin = draw(0, 1) ? width - 2 * pairs : 0;
  plan.sign = draw(0, 1) ? 1 : -1;
  plan.batch = batch, plan.tokens = tokens, plan.table_row = 2 * pairs;
  plan.looked_up = looked, plan.positions_token = 1, plan.rows = rows, plan.parts = draw(1, 2);
  int64_t bytes = FORMATS[format].bytes, table_bytes = FORMATS[format].table_bytes;
  char *table = calloc((size_t)(rows * 2 * pairs), (size_t)table_bytes);
  int64_t *positions = malloc(sizeof(int64_t) * (size_t)tokens);
  for (int64_t t = 0; t < tokens; t++) positions[t] = draw(0, rows - 1);
  char *x[2] = {NULL, NULL}, *out[2] = {NULL, NULL};
  int in_place = (int)draw(0, 1);
  for (int64_t p = 0; p < plan.parts; p++) {
    struct heads *part = &plan.part[p];
    part->count = draw(1, 5);
    int64_t sizes[] = {batch, part->count, tokens}, strides[3];
    x[p] = calloc((size_t)lay_out(sizes, width, strides), (size_t)bytes);
    part->x_batch = strides[0], part->x_head = strides[1], part->x_token = strides[2];
    if (in_place)
      out[p] = x[p];
    else
      out[p] = calloc((size_t)lay_out(sizes, width, strides), (size_t)bytes);
    part->out_batch = strides[0], part->out_head = strides[1], part->out_token = strides[2];
  }
  struct rotary_operands at = {x[0], out[0], x[1], out[1], table, table + pairs * table_bytes, NULL};
  if (looked) {
    check(posenc_rotate(&plan, &at, 2) == UNFIT, "positions without memory are taken");
    at.positions = positions;
  }
  check(posenc_rotate(&plan, &at, 2) == DONE, "not rotated");
  if (looked) {
    struct scribble scribble;
    pthread_t other = begin_scribbling(&scribble, positions, tokens);
    for (int i = 0; i < 3; i++) posenc_rotate(&plan, &at, 2);
    end_scribbling(&scribble, other);
    positions[draw(0, tokens - 1)] = draw(0, 1) ? rows : -1;
    check(posenc_rotate(&plan, &at, 2) == NO_SUCH_ROW, "not refused");
  }
  at.q_out = table;
  check(posenc_rotate(&plan, &at, 2) == UNFIT, "the table is overwritten");
  at.q_out = out[0], at.cos = NULL;
  check(posenc_rotate(&plan, &at, 2) == UNFIT, "a table without memory is taken");
  for (int p = 0; p < 2; p++) {
    if (!in_place) free(out[p]);
    free(x[p]);
  }
  free(positions), free(table);
}

int main(int words, char **given) { return run(rotate_something, 600, words, given); }
