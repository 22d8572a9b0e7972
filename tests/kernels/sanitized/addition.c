#include "driver.h"

#include "../../../src/posenc/kernels/csrc/addition.c"

/* Strides of the axes with gaps or without, the last axis inside; what they reach is returned. */
static int64_t lay_out(const int64_t sizes[AXES], int64_t width, int64_t strides[AXES]) {
  int64_t step = width + draw(0, 1) * draw(0, 3), reach = width;
  for (int axis = AXES - 1; axis >= 0; axis--) {
    strides[axis] = step;
    reach += (sizes[axis] - 1) * step;
    step *= sizes[axis];
  }
  return reach;
}

static int64_t *rows_to_look_up(int64_t count, int64_t rows) {
  int64_t *wanted = malloc(sizeof(int64_t) * (size_t)count);
  for (int64_t i = 0; i < count; i++) wanted[i] = draw(0, rows - 1);
  return wanted;
}

static void add_something(void) {
  int64_t large = draw(0, 150) == 0;
  struct addition_plan plan = {.format = draw(0, 3), .width = large ? 70001 : draw(1, 200)};
  for (int axis = 0; axis < AXES; axis++) plan.sizes[axis] = draw(1, 5);
  if (large) plan.sizes[0] = 40, plan.sizes[1] = plan.sizes[2] = draw(1, 2);
  int64_t bytes = FORMATS[plan.format].bytes, table_bytes = FORMATS[plan.format].table_bytes;
  int64_t tokens = plan.sizes[0] * plan.sizes[1] * plan.sizes[2], rows = draw(1, 9);
  int64_t each[AXES] = {plan.sizes[1] * plan.sizes[2], plan.sizes[2], 1};
  int64_t *ids = rows_to_look_up(tokens, rows), *positions = rows_to_look_up(tokens, rows);
  int looks_up = (int)draw(0, 1), gathers = (int)draw(0, 1), in_place = !looks_up && draw(0, 1);
  int64_t x_size, table_size, out_size;

  if (looks_up) {
    plan.with_ids = 1, plan.x_rows = rows, plan.x_row = plan.width + draw(0, 3);
    memcpy(plan.ids_steps, each, sizeof each);
    x_size = (rows - 1) * plan.x_row + plan.width;
  } else {
    x_size = lay_out(plan.sizes, plan.width, plan.x_steps);
  }
  if (gathers) {
    plan.with_positions = 1, plan.table_rows = rows, plan.table_row = plan.width + draw(0, 3);
    memcpy(plan.positions_steps, each, sizeof each);
    table_size = (rows - 1) * plan.table_row + plan.width;
  } else {
    table_size = lay_out(plan.sizes, plan.width, plan.table_steps);
  }
  char *x = calloc((size_t)x_size, (size_t)bytes), *out = x;
  char *table = calloc((size_t)table_size, (size_t)table_bytes);
  if (in_place) {
    memcpy(plan.out_steps, plan.x_steps, sizeof plan.x_steps);
  } else {
    out_size = lay_out(plan.sizes, plan.width, plan.out_steps);
    out = calloc((size_t)out_size, (size_t)bytes);
  }
  struct addition_operands at = {x, table, out, looks_up ? ids : NULL, gathers ? positions : NULL,
                                 1.5, 1.25, (uint64_t)draw(0, 1) * (1u << 30),
                                 (uint64_t)draw(0, INT64_MAX - 1), 0};
  plan.with_table = gathers || draw(0, 3) > 0;
  check(posenc_add(&plan, &at, 2) == DONE, "not added");
  if (looks_up || gathers) {
    struct scribble scribble;
    pthread_t other = begin_scribbling(&scribble, looks_up ? ids : positions, tokens);
    for (int i = 0; i < 3; i++) posenc_add(&plan, &at, 2);
    end_scribbling(&scribble, other);
  }
  if (looks_up) {
    ids[draw(0, tokens - 1)] = draw(0, 1) ? rows : -1;
    check(posenc_add(&plan, &at, 2) == NO_SUCH_ID, "no id refused");
  } else if (gathers) {
    positions[draw(0, tokens - 1)] = draw(0, 1) ? rows : INT64_MIN;
    check(posenc_add(&plan, &at, 2) == NO_SUCH_ROW, "no row refused");
  }
  if (plan.with_table) {
    at.out = table;
    check(posenc_add(&plan, &at, 2) == UNFIT, "the table is overwritten");
    at.out = out, at.table = NULL;
    check(posenc_add(&plan, &at, 2) == UNFIT, "a table without memory is added");
  }
  if (!in_place) free(out);
  free(x), free(table), free(ids), free(positions);
}

int main(int words, char **given) { return run(add_something, 600, words, given); }
