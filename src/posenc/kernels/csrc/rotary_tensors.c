/* Queries and keys rotated as Python hands them over: layouts are read and checked here, since a step
 * of decoding would spend more time on that in Python than on rotating. The plan is the one that
 * rotary/strides.py makes of the same tensors, field by field. */
#include "rotary.h"
#include "tensors.h"

#include <stddef.h>

enum {
  INTERLEAVED = 1,
  SUFFIX = 2,
  HEADS_FIRST = 4,
  CONJUGATE = 8,
  WITH_KEYS = 16,
  LOOKED_UP = 32, /* the table has rows 0, 1, 2, ..., and positions say which */
  FRESH = 64
};

enum { UNREADABLE = 3, MOST_AXES = 4, FEWEST_AXES = 3 };

/* TENSORS of rotary/cpu.py: objects of Python, which it keeps alive. */
struct rotary_tensors {
  void *q, *q_out, *k, *k_out, *table, *positions;
  int64_t width, flags, threads;
};

static struct exchange exchange;

POSENC_EXPORT void posenc_set_exchange(const struct exchange *found) { exchange = *found; }

static int read(void *object, struct tensor *tensor) {
  if (exchange.read(object, tensor)) return 0;
  tensor->data += tensor->offset;
  return 1;
}

/* Axes of heads and tokens, counted from the last. */
static int heads_axis(int64_t flags) { return flags & HEADS_FIRST ? 3 : 2; }
static int tokens_axis(int64_t flags) { return flags & HEADS_FIRST ? 2 : 3; }

static int64_t size(const struct tensor *t, int from_last) { return t->sizes[t->axes - from_last]; }
static int64_t step(const struct tensor *t, int from_last) { return t->steps[t->axes - from_last]; }
static int64_t batch_of(const struct tensor *t) { return t->axes == MOST_AXES ? t->sizes[0] : 1; }
static int64_t over_batch(const struct tensor *t) { return t->axes == MOST_AXES ? t->steps[0] : 0; }

static int is_content(const struct tensor *t, const struct rotary_plan *plan) {
  return t->device == CPU && t->axes >= FEWEST_AXES && t->axes <= MOST_AXES &&
         format_of(t) == plan->format && (step(t, 1) == 1 || size(t, 1) <= 1);
}

static int alike(const struct tensor *a, const struct tensor *b) {
  if (a->axes != b->axes) return 0;
  for (int axis = 0; axis < a->axes; axis++)
    if (a->sizes[axis] != b->sizes[axis]) return 0;
  return 1;
}

/* One row a token, of each row of the batch or of all. */
static int plan_rows(struct rotary_plan *plan, const struct tensor *table, int axes) {
  if (table->axes > axes || size(table, 3) != plan->tokens) return 0;
  if (table->axes == MOST_AXES) {
    if (table->sizes[0] != 1 && table->sizes[0] != plan->batch) return 0;
    plan->table_batch = table->sizes[0] > 1 ? table->steps[0] : 0;
  }
  plan->table_row = step(table, 3);
  return 1;
}

/* The same from rows 0, 1, 2, ... of the table. */
static int plan_positions(struct rotary_plan *plan, const struct tensor *table,
                          const struct tensor *positions, int axes) {
  int own = positions->axes == 2;
  if (table->axes != 3 || positions->axes < 1 || positions->axes > axes - 2) return 0;
  if (positions->device != CPU || positions->code != INTEGER || positions->bits != 64) return 0;
  if (positions->lanes != 1 || size(positions, 1) != plan->tokens) return 0;
  if (own && positions->sizes[0] != 1 && positions->sizes[0] != plan->batch) return 0;
  plan->table_row = step(table, 3), plan->looked_up = 1;
  plan->positions_batch = own && positions->sizes[0] > 1 ? positions->steps[0] : 0;
  plan->positions_token = step(positions, 1);
  plan->rows = size(table, 3);
  return 1;
}

static int plan_part(struct rotary_plan *plan, int p, const struct tensor *x, const struct tensor *out,
                     int64_t flags) {
  struct heads *part = &plan->part[p];
  int head = heads_axis(flags), token = tokens_axis(flags);
  if (!is_content(x, plan) || !is_content(out, plan) || !alike(x, out)) return 0;
  if (size(x, 1) != plan->width || size(x, token) != plan->tokens || batch_of(x) != plan->batch)
    return 0;
  part->count = size(x, head);
  part->x_batch = over_batch(x), part->x_head = step(x, head), part->x_token = step(x, token);
  part->out_batch = over_batch(out);
  part->out_head = step(out, head), part->out_token = step(out, token);
  return 1;
}

static int plan_tensors(const struct rotary_tensors *objects, struct rotary_plan *plan,
                        struct rotary_operands *at) {
  int64_t width = objects->width, flags = objects->flags;
  void *from[] = {objects->q, objects->k}, *to[] = {objects->q_out, objects->k_out};
  struct tensor x[QUERIES_AND_KEYS], out[QUERIES_AND_KEYS], table, positions = {.data = NULL};
  *plan = (struct rotary_plan){.parts = flags & WITH_KEYS ? 2 : 1, .width = width};
  for (int p = 0; p < plan->parts; p++) {
    if (!read(from[p], &x[p])) return UNREADABLE;
    out[p] = x[p];
    if (to[p] != from[p] && !read(to[p], &out[p])) return UNREADABLE;
  }
  if (!read(objects->table, &table)) return UNREADABLE;
  if (flags & LOOKED_UP && !read(objects->positions, &positions)) return UNREADABLE;

  const struct tensor *q = &x[0];
  plan->format = format_of(q);
  if (plan->format < 0 || q->axes < FEWEST_AXES || q->axes > MOST_AXES) return UNFIT;
  if (table.device != CPU || table.axes < 3 || table.axes > MOST_AXES || size(&table, 2) != 2)
    return UNFIT;
  if (format_of(&table) != (plan->format == 3 ? 3 : 0)) return UNFIT;
  plan->pairs = size(&table, 1);
  if (plan->pairs < 1 || 2 * plan->pairs > width) return UNFIT;
  if (step(&table, 1) != 1 && plan->pairs > 1) return UNFIT;
  plan->batch = batch_of(q), plan->tokens = size(q, tokens_axis(flags));
  if (!(flags & LOOKED_UP ? plan_positions(plan, &table, &positions, q->axes)
                          : plan_rows(plan, &table, q->axes)))
    return UNFIT;
  for (int p = 0; p < plan->parts; p++)
    if (x[p].axes != q->axes || !plan_part(plan, p, &x[p], &out[p], flags)) return UNFIT;
  plan->interleaved = (flags & INTERLEAVED) != 0;
  plan->sign = flags & CONJUGATE ? -1 : 1;
  plan->begin = flags & SUFFIX ? width - 2 * plan->pairs : 0;

  *at = (struct rotary_operands){.q = x[0].data, .q_out = out[0].data, .cos = table.data};
  if (table.data) at->sin = table.data + step(&table, 2) * (table.bits / 8);
  at->positions = (const int64_t *)(const void *)positions.data;
  at->fresh = (flags & FRESH) != 0;
  if (plan->parts == 2) at->k = x[1].data, at->k_out = out[1].data;
  return DONE;
}

/* The plan alone, for whoever wants to compare it. UNREADABLE: a Python error is set. */
POSENC_EXPORT int posenc_rotary_plan(const struct rotary_tensors *objects, struct rotary_plan *plan) {
  struct rotary_operands at;
  return plan_tensors(objects, plan, &at);
}

/* UNREADABLE: a Python error is set. */
POSENC_EXPORT int posenc_rotate_tensors(const struct rotary_tensors *objects) {
  struct rotary_plan plan;
  struct rotary_operands at;
  int outcome = plan_tensors(objects, &plan, &at);
  if (outcome != DONE) return outcome;
  int64_t heads = plan.part[0].count + plan.part[1].count;
  if (plan.batch * plan.tokens * heads * plan.width < POSENC_SERIAL_ELEMENTS)
    return posenc_rotate(&plan, &at, objects->threads);
  void *state = exchange.release_lock();
  outcome = posenc_rotate(&plan, &at, objects->threads);
  exchange.take_lock(state);
  return outcome;
}
