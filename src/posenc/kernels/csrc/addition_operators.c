/* The operators of sums and of embedding: tensors checked and planned for addition.c. */
#include "addition.h"
#include "operators.h"

enum { TABLE = 1, POSITIONS = 2, IDS = 4, OUT = 8 }; /* forms */
enum { MOST_CONTENT_AXES = 4 };

/* One axis of the result, and how far each operand moves along it; 0 where it is broadcast. */
struct axis {
  int64_t size, x, table, out, ids, positions;
};

/* The strides of an operand over the axes of the result: of all its axes, or where its rows are looked
 * up, of `numbers` over tokens and of its channels. */
static bool lay(const struct view *v, const struct view *numbers, const int64_t *shape, int64_t axes,
                int64_t steps[MOST_CONTENT_AXES], int64_t numbered[MOST_CONTENT_AXES]) {
  for (int64_t i = 0; i < axes; i++) steps[i] = numbered[i] = 0;
  if (!numbers) {
    if (v->axes > axes) return false;
    for (int64_t i = 1; i <= v->axes; i++) {
      if (size_at(v, i) != 1 && size_at(v, i) != shape[axes - i]) return false;
      if (size_at(v, i) != 1) steps[axes - i] = step_at(v, i);
    }
  } else {
    if (v->axes != 2 || numbers->axes > axes - 1 || v->sizes[1] != shape[axes - 1]) return false;
    if (v->sizes[1] != 1) steps[axes - 1] = v->strides[1];
    for (int64_t i = 1; i <= numbers->axes; i++) {
      if (size_at(numbers, i) != 1 && size_at(numbers, i) != shape[axes - 1 - i]) return false;
      if (size_at(numbers, i) != 1) numbered[axes - 1 - i] = step_at(numbers, i);
    }
  }
  return true;
}

static bool runs_through(const struct axis *outer, const struct axis *inner) {
  return outer->x == inner->size * inner->x && outer->table == inner->size * inner->table &&
         outer->out == inner->size * inner->out && outer->ids == inner->size * inner->ids &&
         outer->positions == inner->size * inner->positions;
}

/* Axes through which all memory runs become one; those that are left stand last in the plan. */
static void simplify(struct addition_plan *plan, struct axis axis[], int64_t axes, bool looked_up) {
  struct axis joined[MOST_CONTENT_AXES], channels = axis[axes - 1];
  int64_t count = 0; /* joined[0] is the innermost */
  for (int64_t i = axes - 2; i >= 0; i--) {
    if (axis[i].size == 1) continue;
    if (count && runs_through(&axis[i], &joined[count - 1]))
      joined[count - 1].size *= axis[i].size;
    else
      joined[count++] = axis[i];
  }
  if (channels.size == 1) channels.x = channels.out = 1, channels.table = plan->with_table;
  plan->width = channels.size;
  int64_t first = 0;
  if (count && !looked_up && runs_through(&joined[0], &channels)) plan->width *= joined[first++].size;
  for (int64_t i = 0; i < AXES; i++) {
    struct axis none = {.size = 1}, *from = first + i < count ? &joined[first + i] : &none;
    int64_t to = AXES - 1 - i;
    plan->sizes[to] = from->size, plan->x_steps[to] = from->x, plan->table_steps[to] = from->table;
    plan->out_steps[to] = from->out, plan->ids_steps[to] = from->ids;
    plan->positions_steps[to] = from->positions;
  }
}

static const char *plan_sum(struct addition_plan *plan, const struct view *x, const struct view *table,
                            const struct view *ids, const struct view *positions,
                            const struct view *out) {
  int64_t axes = out->axes, x_steps[MOST_CONTENT_AXES], table_steps[MOST_CONTENT_AXES] = {0};
  int64_t ids_steps[MOST_CONTENT_AXES], positions_steps[MOST_CONTENT_AXES] = {0};
  struct axis axis[MOST_CONTENT_AXES];
  if (!lay(x, ids, out->sizes, axes, x_steps, ids_steps)) return "ValueError: Content has another shape than the result.";
  if (table && !lay(table, positions, out->sizes, axes, table_steps, positions_steps))
    return "ValueError: The table's rows do not broadcast to the content. Pass one row a token, or one for all.";
  for (int64_t i = 0; i < axes; i++)
    axis[i] = (struct axis){out->sizes[i], x_steps[i], table_steps[i], out->strides[i], ids_steps[i], positions_steps[i]};
  plan->format = format_of(x->dtype), plan->with_table = table != NULL;
  if (ids) plan->with_ids = 1, plan->x_rows = x->sizes[0], plan->x_row = x->strides[0];
  if (positions) plan->with_positions = 1, plan->table_rows = table->sizes[0], plan->table_row = table->strides[0];
  simplify(plan, axis, axes, ids || positions);
  return NULL;
}

/* The shape of the result: that of x, or of ids with the width of the vectors. */
static int64_t result_sizes(const struct view *x, const struct view *ids, int64_t sizes[MOST_AXES + 1]) {
  const struct view *tokens = ids ? ids : x;
  for (int64_t i = 0; i < tokens->axes; i++) sizes[i] = tokens->sizes[i];
  if (!ids) return x->axes;
  sizes[ids->axes] = x->sizes[1];
  return ids->axes + 1;
}

static const char *check_dtypes(const struct view *x, const struct view *table, const struct view *ids,
                                const struct view *positions) {
  if (format_of(x->dtype) < 0) return "TypeError: Content is float32, bfloat16, float16 or float64.";
  if (table && table->dtype != (x->dtype == FLOAT64 ? FLOAT64 : FLOAT32))
    return "TypeError: The table is float32, or float64 beside float64 content.";
  if ((ids && ids->dtype != INT64) || (positions && positions->dtype != INT64))
    return "TypeError: Ids and positions are int64.";
  return ids && x->axes != 2 ? "ValueError: The weight is [vocabulary, dim]." : NULL;
}

static const char *refused(int outcome, int64_t rows) {
  if (outcome == NO_SUCH_ROW) return NO_SUCH_POSITION;
  if (outcome == NO_SUCH_ID)
    return sentence("IndexError: An id is negative or past the last of %lld vectors. Map unknown "
                    "tokens and padding to an id that exists.", (long long)rows);
  return outcome == DONE ? NULL : SHARED;
}

static const char *sum(struct call *call, int form) {
  struct view *next = call->given, *x = next++, *ids = form & IDS ? next++ : NULL;
  struct view *table = form & TABLE ? next++ : NULL, *positions = form & POSITIONS ? next++ : NULL;
  struct view *out = form & OUT ? next++ : NULL, written, target;
  int64_t sizes[MOST_AXES + 1], axes;
  struct addition_plan plan = {0};
  const char *wrong = check_dtypes(x, table, ids, positions);
  if (wrong) return wrong;
  axes = result_sizes(x, ids, sizes);
  if (axes > MOST_CONTENT_AXES) return sentence("ValueError: Content has %lld axes; at most %d here.", (long long)axes, MOST_CONTENT_AXES);
  if (!out) {
    wrong = new_tensor(axes, sizes, x->dtype, &call->made[0]);
    if (wrong) return wrong;
  }
  written = target = out ? *out : call->made[0];
  if (!same_shape(&target, &(struct view){.sizes = sizes, .axes = axes}) || target.dtype != x->dtype)
    return "ValueError: out has another shape or dtype than the result. Build it with torch.empty_like(x).";
  wrong = side_by_side(call, &target, false);
  if (!wrong) wrong = side_by_side(call, x, true);
  if (!wrong && table) wrong = side_by_side(call, table, true);
  if (!wrong && table && size_at(table, 1) == 1 && axes && sizes[axes - 1] != 1) 
    wrong = "ValueError: The table has another width than the content.";
  if (!wrong) wrong = plan_sum(&plan, x, table, ids, positions, &target);
  if (wrong) return wrong;
  struct addition_operands at = {.x = x->data, .table = table ? table->data : NULL, .out = target.data,
                                 .ids = ids ? (const int64_t *)(const void *)ids->data : NULL,
                                 .positions = positions ? (const int64_t *)(const void *)positions->data : NULL,
                                 .scale = number_at(call, 0), .rescale = number_at(call, 1),
                                 .threshold = call->arguments[2], .key = call->arguments[3], .fresh = !out};
  wrong = refused(posenc_sum_fits(&plan, &at), x->sizes[0]);
  if (!wrong && target.of != written.of && overlaps_itself(&written)) wrong = SHARED;
  if (!wrong && out) wrong = announce(&written);
  if (wrong) return wrong;
  posenc_sum(&plan, &at, torch_threads());
  return written_back(&target, &written);
}

#define SUM(NAME, FORM, TENSORS, RESULTS)                               \
  void posenc_##NAME(Value *stack, uint64_t inputs, uint64_t outputs) { \
    (void)inputs, (void)outputs;                                        \
    posenc_operate(stack, sum, FORM, TENSORS, RESULTS);                 \
  }
SUM(scale, 0, 1, 1)
SUM(add, TABLE, 2, 1)
SUM(add_out, TABLE | OUT, 3, 0)
SUM(add_at, TABLE | POSITIONS, 3, 1)
SUM(add_at_out, TABLE | POSITIONS | OUT, 4, 0)
SUM(embed, IDS, 2, 1)
SUM(embed_out, IDS | OUT, 3, 0)
SUM(embed_add, IDS | TABLE, 3, 1)
SUM(embed_add_out, IDS | TABLE | OUT, 4, 0)
SUM(embed_add_at, IDS | TABLE | POSITIONS, 4, 1)
SUM(embed_add_at_out, IDS | TABLE | POSITIONS | OUT, 5, 0)
