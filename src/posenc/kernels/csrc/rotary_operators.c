/* The operators of rotation: tensors checked and planned for rotary.c. */
#include "memory.h"
#include "operators.h"
#include "rotary.h"

enum { KEYS = 1, LOOKED_UP = 2, IN_PLACE = 4, OUT = 8 }; /* forms */
enum { FEWEST_AXES = 3, BATCHED_AXES = 4 };

struct layout {
  bool interleaved, suffix, heads_first, back;
};

static struct layout layout_of(int64_t bits) {
  return (struct layout){bits & 1, bits & 2, bits & 4, bits & 8};
}

/* Content and where it goes: with channels side by side, and as the caller has it. */
struct heads_of {
  struct view x, target, written;
};

static int64_t batch_of(const struct view *v) { return v->axes == BATCHED_AXES ? v->sizes[0] : 1; }
static int64_t over_batch(const struct view *v) { return v->axes == BATCHED_AXES ? v->strides[0] : 0; }

/* Whether there is one row a token, of each row of the batch or of all, and how they lie. */
static const char *plan_rows(struct rotary_plan *plan, const struct view *table,
                             const struct view *positions, int64_t axes) {
  const struct view *rows = positions ? positions : table;
  int64_t own = positions ? 1 : 3; /* axes without a batch */
  if (positions && (table->axes != 3 || positions->dtype != INT64))
    return "ValueError: With positions (int64) the table holds one row a position, [rows, 2, pairs].";
  if (rows->axes < own || rows->axes > axes - 3 + own || rows->axes > own + 1 || size_at(rows, own) != plan->tokens)
    return sentence(positions ? "ValueError: Content has %lld tokens and positions %lld; heads_first=False takes [batch, seq, heads, head_dim]."
                              : "ValueError: Content has %lld tokens and the table %lld rows; heads_first=False takes [batch, seq, heads, head_dim].",
                    (long long)plan->tokens, (long long)size_at(rows, own));
  bool each = rows->axes > own && rows->sizes[0] > 1;
  if (each && rows->sizes[0] != plan->batch)
    return sentence("ValueError: Content has %lld rows in its batch and the table %lld.",
                    (long long)plan->batch, (long long)rows->sizes[0]);
  plan->table_row = step_at(table, 3);
  if (!positions) {
    plan->table_batch = each ? table->strides[0] : 0;
    return NULL;
  }
  plan->looked_up = 1, plan->rows = size_at(table, 3);
  plan->positions_batch = each ? positions->strides[0] : 0;
  plan->positions_token = step_at(positions, 1);
  return NULL;
}

static const char *plan_content(struct rotary_plan *plan, const struct view *x, int64_t pairs,
                                const struct layout *layout) {
  *plan = (struct rotary_plan){.format = format_of(x->dtype), .pairs = pairs, .width = size_at(x, 1)};
  if (pairs < 1 || 2 * pairs > plan->width)
    return sentence("ValueError: Content of width %lld has no room for %lld pairs of channels.",
                    (long long)plan->width, (long long)pairs);
  plan->batch = batch_of(x), plan->tokens = size_at(x, layout->heads_first ? 2 : 3);
  plan->interleaved = layout->interleaved, plan->sign = layout->back ? -1 : 1;
  plan->begin = layout->suffix ? plan->width - 2 * pairs : 0;
  return NULL;
}

static void plan_part(struct rotary_plan *plan, const struct heads_of *heads, const struct layout *layout) {
  struct heads *part = &plan->part[plan->parts++];
  int64_t head = layout->heads_first ? 3 : 2, token = layout->heads_first ? 2 : 3;
  part->count = size_at(&heads->x, head);
  part->x_batch = over_batch(&heads->x), part->out_batch = over_batch(&heads->target);
  part->x_head = step_at(&heads->x, head), part->x_token = step_at(&heads->x, token);
  part->out_head = step_at(&heads->target, head), part->out_token = step_at(&heads->target, token);
}

static const char *take(struct call *call, struct heads_of *heads, const struct view *x,
                        const struct view *out, const struct view *table, struct view *made) {
  const char *wrong = NULL;
  heads->x = *x;
  if (format_of(x->dtype) < 0 || table->dtype != (x->dtype == FLOAT64 ? FLOAT64 : FLOAT32))
    return "TypeError: Content is float32, bfloat16 or float16 and its table float32, or both are float64.";
  if (x->axes < FEWEST_AXES || x->axes > BATCHED_AXES) return "ValueError: Content has 3 or 4 axes here.";
  if (!out) wrong = new_tensor(x->axes, x->sizes, x->dtype, made);
  if (wrong) return wrong;
  heads->target = heads->written = out ? *out : *made;
  if (heads->written.dtype != x->dtype || !same_shape(x, &heads->written))
    return "ValueError: out has another shape or dtype than the content. Build it with torch.empty_like(x).";
  wrong = side_by_side(call, &heads->target, false);
  return wrong ? wrong : side_by_side(call, &heads->x, true);
}

/* Both are rotated in one walk, which reads a row of the table once. */
static bool together(const struct heads_of heads[], const struct layout *layout) {
  const struct view *q = &heads[0].x, *k = &heads[1].x;
  int64_t token = layout->heads_first ? 2 : 3;
  return q->axes == k->axes && q->dtype == k->dtype && size_at(q, 1) == size_at(k, 1) &&
         size_at(q, token) == size_at(k, token) && batch_of(q) == batch_of(k);
}

static const char *refused(int outcome) {
  return outcome == NO_SUCH_ROW ? NO_SUCH_POSITION : outcome == DONE ? NULL : SHARED;
}

static struct region region_of(const struct view *v) {
  struct region made = {.from = v->data, .run = v->dtype == FLOAT64 ? 8 : v->dtype == FLOAT32 ? 4 : 2};
  for (int64_t i = 0; i < v->axes; i++) {
    if (v->sizes[i] == 0) return (struct region){0};
    made.sizes[i] = v->sizes[i], made.steps[i] = v->strides[i] * made.run;
  }
  return made;
}

static bool copied(const struct heads_of *heads) { return heads->target.of != heads->written.of; }

/* Whether something is overwritten that fits() does not see: results that are copied to where they
 * belong when all is rotated, and keys that are read when queries are written. */
static bool meet(const struct heads_of heads[], int parts, bool apart) {
  bool some = copied(&heads[0]) || (parts == 2 && copied(&heads[1]));
  if (!some && !apart) return false;
  struct region q_out = region_of(&heads[0].written), k_out = region_of(&heads[parts - 1].written);
  struct region k = region_of(&heads[parts - 1].x);
  if (copied(&heads[0]) && !keeps_apart(&q_out)) return true;
  if (parts == 1) return false;
  if (copied(&heads[1]) && !keeps_apart(&k_out)) return true;
  return !are_apart(&q_out, &k_out) || (apart && !copied(&heads[0]) && !are_apart(&q_out, &k));
}

static const char *rotate_table(struct call *call, int form) {
  int parts = form & KEYS ? 2 : 1, plans = 1;
  struct view *x = call->given, *table = x + parts, *positions = form & LOOKED_UP ? table + 1 : NULL;
  struct view *out = form & IN_PLACE ? x : form & OUT ? table + (positions ? 2 : 1) : NULL;
  struct layout layout = layout_of((int64_t)call->arguments[0]);
  struct heads_of heads[QUERIES_AND_KEYS];
  struct rotary_plan plan[QUERIES_AND_KEYS];
  struct rotary_operands at[QUERIES_AND_KEYS];
  const char *wrong = NULL;
  if (table->axes < 3 || table->axes > BATCHED_AXES || size_at(table, 2) != 2)
    return "ValueError: The table is [*batch, seq, 2, pairs].";
  for (int p = 0; p < parts && !wrong; p++)
    wrong = take(call, &heads[p], &x[p], out ? &out[p] : NULL, table, &call->made[p]);
  if (!wrong) wrong = side_by_side(call, table, true);
  if (wrong) return wrong;
  if (parts == 2 && !together(heads, &layout)) plans = 2;
  if (out && meet(heads, parts, plans == 2)) return SHARED;
  for (int p = 0; p < plans; p++) {
    wrong = plan_content(&plan[p], &heads[p].x, size_at(table, 1), &layout);
    if (!wrong) wrong = plan_rows(&plan[p], table, positions, heads[p].x.axes);
    if (wrong) return wrong;
    plan_part(&plan[p], &heads[p], &layout);
    at[p] = (struct rotary_operands){.q = heads[p].x.data, .q_out = heads[p].target.data,
                                     .cos = table->data, .fresh = !out};
    at[p].sin = at[p].cos + step_at(table, 2) * (table->dtype == FLOAT64 ? 8 : 4);
    if (positions) at[p].positions = (const int64_t *)(const void *)positions->data;
  }
  if (parts > plans) {
    plan_part(&plan[0], &heads[1], &layout);
    at[0].k = heads[1].x.data, at[0].k_out = heads[1].target.data;
  }
  for (int p = 0; p < plans && !wrong; p++) wrong = refused(posenc_rotary_fits(&plan[p], &at[p]));
  for (int p = 0; p < parts && out && !wrong; p++) wrong = announce(&heads[p].written);
  if (wrong) return wrong;
  for (int p = 0; p < plans; p++) posenc_rotate(&plan[p], &at[p], torch_threads());
  for (int p = 0; p < parts && !wrong; p++) wrong = written_back(&heads[p].target, &heads[p].written);
  return wrong;
}

/* The stride of an axis of cosines, counted from the last; 0 where they are broadcast. */
static int64_t over(const struct view *cos, int64_t from_last) {
  return cos->axes < from_last || size_at(cos, from_last) == 1 ? 0 : step_at(cos, from_last);
}

/* By cosines and sines whose axes broadcast against those of the content. */
static const char *rotate_by(struct call *call, int form) {
  struct view *cos = call->given + 1, *sin = call->given + 2;
  struct layout layout = layout_of((int64_t)call->arguments[0] | 4);
  struct heads_of heads;
  struct rotary_plan plan;
  (void)form;
  const char *wrong = take(call, &heads, call->given, NULL, cos, &call->made[0]);
  if (wrong) return wrong;
  if (cos->axes > heads.x.axes || sin->dtype != cos->dtype || !same_shape(cos, sin))
    return "ValueError: Cosines and sines have one shape and dtype, which broadcasts to the content.";
  for (int64_t i = 2; i <= cos->axes; i++)
    if (size_at(cos, i) != 1 && size_at(cos, i) != size_at(&heads.x, i))
      return "ValueError: Cosines and sines do not broadcast to the content.";
  wrong = side_by_side(call, cos, true);
  if (!wrong) wrong = side_by_side(call, sin, true);
  bool alike = !wrong;
  for (int64_t i = 2; alike && i <= cos->axes; i++) alike = over(cos, i) == over(sin, i);
  if (!wrong && !alike) wrong = contiguous(call, cos);
  if (!wrong && !alike) wrong = contiguous(call, sin);
  if (!wrong) wrong = plan_content(&plan, &heads.x, size_at(cos, 1), &layout);
  if (wrong) return wrong;
  plan_part(&plan, &heads, &layout);
  plan.table_row = over(cos, 2), plan.table_head = over(cos, 3), plan.table_batch = over(cos, 4);
  struct rotary_operands at = {.q = heads.x.data, .q_out = heads.target.data, .cos = cos->data,
                               .sin = sin->data, .fresh = 1};
  posenc_rotate(&plan, &at, torch_threads());
  return written_back(&heads.target, &heads.written);
}

#define ROTARY(NAME, FORM, TENSORS, RESULTS)                            \
  void posenc_##NAME(Value *stack, uint64_t inputs, uint64_t outputs) { \
    (void)inputs, (void)outputs;                                        \
    posenc_operate(stack, rotate_table, FORM, TENSORS, RESULTS);        \
  }
ROTARY(rotary, 0, 2, 1)
ROTARY(rotary_, IN_PLACE, 2, 0)
ROTARY(rotary_out, OUT, 3, 0)
ROTARY(rotary_at, LOOKED_UP, 3, 1)
ROTARY(rotary_at_, LOOKED_UP | IN_PLACE, 3, 0)
ROTARY(rotary_at_out, LOOKED_UP | OUT, 4, 0)
ROTARY(rotary_both, KEYS, 3, 2)
ROTARY(rotary_both_, KEYS | IN_PLACE, 3, 0)
ROTARY(rotary_both_out, KEYS | OUT, 5, 0)
ROTARY(rotary_both_at, KEYS | LOOKED_UP, 4, 2)
ROTARY(rotary_both_at_, KEYS | LOOKED_UP | IN_PLACE, 4, 0)
ROTARY(rotary_both_at_out, KEYS | LOOKED_UP | OUT, 6, 0)

void posenc_rotary_by(Value *stack, uint64_t inputs, uint64_t outputs) {
  (void)inputs, (void)outputs;
  posenc_operate(stack, rotate_by, 0, 3, 1);
}
