/* The operator of tables: tensors checked and planned for sincos.c. */
#include "operators.h"
#include "sincos.h"

enum { BESIDE = 1, SINE_FIRST = 2, FRESH = 4 }; /* bits of its form */

/* The stride of the first axes as one, if they are as good as one; 0 is the step of repeats. */
static bool one_axis(const struct view *v, int64_t axes, int64_t *step) {
  int64_t size = 1, inner = 0, whole = 1;
  bool some = false;
  for (int64_t i = axes; i-- > 0;) {
    if (v->sizes[i] == 1) continue;
    if (some && v->strides[i] != inner * size) return false;
    if (!some) whole = v->strides[i];
    some = true, size = v->sizes[i], inner = v->strides[i];
  }
  *step = whole;
  return true;
}

static const char *check_shapes(const struct view *table, const struct view *positions,
                                const struct view *turns, const struct view *radians, int64_t two,
                                int64_t channels) {
  bool fit = table->axes == positions->axes + 2;
  for (int64_t i = 0; fit && i < positions->axes; i++) fit = table->sizes[i] == positions->sizes[i];
  if (!fit || size_at(table, two) != 2) return "ValueError: The table is [*positions, 2, frequencies] or [*positions, frequencies, 2].";
  if (positions->dtype != INT64) return "TypeError: positions must be int64.";
  if (table->dtype == FLOAT64 || format_of(table->dtype) < 0) return "TypeError: The table is float32, bfloat16 or float16.";
  if (turns->dtype != INT64 || radians->dtype != FLOAT64 || turns->axes != 2 || turns->sizes[1] != 3 ||
      radians->axes != 1 || turns->sizes[0] != size_at(table, channels) || radians->sizes[0] != turns->sizes[0])
    return "ValueError: turns are int64 [frequencies, 3] and radians float64 [frequencies].";
  return NULL;
}

static const char *fill(struct call *call, int unused) {
  struct view *table = call->given, *positions = table + 1, *turns = table + 2, *radians = table + 3;
  struct view target = *table;
  int64_t form = (int64_t)call->arguments[1], two = form & BESIDE ? 1 : 2, channels = 3 - two;
  struct sincos_plan plan;
  (void)unused;
  const char *wrong = check_shapes(table, positions, turns, radians, two, channels);
  if (wrong) return wrong;
  if (overlaps_itself(table) || ranges_meet(table, positions))
    return "ValueError: The table shares memory with positions, or with itself.";
  plan = (struct sincos_plan){.format = format_of(table->dtype), .rows = 1, .frequencies = size_at(table, channels)};
  for (int64_t i = 0; i < positions->axes; i++) plan.rows *= positions->sizes[i];
  if (!one_axis(positions, positions->axes, &plan.positions_step)) {
    wrong = contiguous(call, positions);
    plan.positions_step = 1;
  }
  if (!wrong) wrong = contiguous(call, turns);
  if (!wrong) wrong = contiguous(call, radians);
  if (!wrong && !one_axis(&target, positions->axes, &plan.row_step)) {
    wrong = new_scratch(call, &target);
    plan.row_step = 2 * plan.frequencies;
  }
  if (!wrong && !(form & FRESH)) wrong = announce(table);
  if (wrong) return wrong;
  plan.column_step = step_at(&target, channels);
  plan.sine = form & SINE_FIRST ? -step_at(&target, two) : step_at(&target, two);
  struct sincos_operands at = {.positions = (const int64_t *)(const void *)positions->data,
                               .turns = (const struct turns *)(const void *)turns->data,
                               .radians = (const double *)(const void *)radians->data,
                               .cos = target.data, .factor = number_at(call, 0), .fresh = (form & FRESH) != 0};
  if (form & SINE_FIRST) at.cos += step_at(&target, two) * (plan.format ? 2 : 4);
  if (!posenc_sincos(&plan, &at, torch_threads())) return "RuntimeError: There is no memory to work in.";
  return written_back(&target, table);
}

void posenc_sincos_(Value *stack, uint64_t inputs, uint64_t outputs) {
  (void)inputs, (void)outputs;
  posenc_operate(stack, fill, 0, 4, 0);
}
