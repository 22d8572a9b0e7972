#include "driver.h"

#include "../../../src/posenc/kernels/csrc/rotary.c"
#include "../../../src/posenc/kernels/csrc/rotary_tensors.c"

/* A tensor that owns its memory; an object of Python is a pointer to one. */
struct owned {
  struct tensor tensor;
  int64_t sizes[4], steps[4];
};

static int locks = 0;

static int read_owned(void *object, struct tensor *tensor) {
  if (object == NULL) return -1;
  *tensor = ((struct owned *)object)->tensor;
  return 0;
}

static void *release(void) { return locks--, (void *)&locks; }
static void take(void *state) { locks += state == (void *)&locks; }

static void build(struct owned *made, int axes, const int64_t *sizes, int code, int bits) {
  int64_t step = 1;
  for (int axis = axes - 1; axis >= 0; axis--) {
    made->sizes[axis] = sizes[axis], made->steps[axis] = step;
    step *= sizes[axis] + (axis == axes - 1 ? draw(0, 2) : 0);
  }
  made->tensor = (struct tensor){.device = CPU, .axes = axes, .code = (uint8_t)code,
                                 .bits = (uint8_t)bits, .lanes = 1, .sizes = made->sizes,
                                 .steps = made->steps, .offset = (uint64_t)bits / 8};
  made->tensor.data = calloc((size_t)step + 1, (size_t)bits / 8);
}

static void rotate_something(void) {
  static const int codes[] = {FLOAT, BFLOAT, FLOAT, FLOAT}, bits[] = {32, 16, 16, 64};
  int axes = (int)draw(3, 4), format = (int)draw(0, 3), in_place = (int)draw(0, 1);
  int64_t pairs = draw(1, 20), width = 2 * pairs + draw(0, 3), batch = axes == 4 ? draw(1, 3) : 1;
  int64_t tokens = draw(0, 30) ? draw(0, 9) : 900, rows = draw(1, 30), flags = draw(0, 127);
  if (in_place) flags &= ~FRESH;
  if (!(flags & LOOKED_UP)) rows = tokens;
  int heads_first = (flags & HEADS_FIRST) != 0, parts = flags & WITH_KEYS ? 2 : 1;
  struct owned x[2] = {0}, out[2] = {0}, table, positions = {0};
  for (int p = 0; p < parts; p++) {
    int64_t heads = draw(1, 5), all[] = {batch, heads_first ? heads : tokens,
                                         heads_first ? tokens : heads, width};
    build(&x[p], axes, all + 4 - axes, codes[format], bits[format]);
    build(&out[p], axes, all + 4 - axes, codes[format], bits[format]);
  }
  int64_t of_table[] = {rows, 2, pairs}, each[] = {batch, tokens};
  build(&table, 3, of_table, FLOAT, format == 3 ? 64 : 32);
  int own = axes == 4 && draw(0, 1);
  build(&positions, own ? 2 : 1, own ? each : each + 1, INTEGER, 64);
  int64_t *first = (int64_t *)(void *)(positions.tensor.data + 8);
  for (int64_t b = 0; b < (own ? batch : 1); b++)
    for (int64_t t = 0; t < tokens; t++)
      first[own ? b * positions.steps[0] + t : t] = draw(0, rows - 1);
  struct rotary_tensors heads = {.q = &x[0], .k = &x[1], .q_out = &out[0], .k_out = &out[1],
                                 .table = &table, .positions = &positions, .width = width,
                                 .flags = flags, .threads = 2};
  if (in_place) heads.q_out = heads.q, heads.k_out = heads.k;
  check(posenc_rotate_tensors(&heads) == DONE, "not rotated");
  heads.width++;
  check(posenc_rotate_tensors(&heads) == UNFIT, "another width");
  heads.width--, table.tensor.device = 2;
  check(posenc_rotate_tensors(&heads) == UNFIT, "another device");
  heads.table = NULL;
  check(posenc_rotate_tensors(&heads) == UNREADABLE, "no table");
  check(locks == 0, "the lock is not held");
  for (int p = 0; p < 2; p++) free(x[p].tensor.data), free(out[p].tensor.data);
  free(table.tensor.data), free(positions.tensor.data);
}

int main(int words, char **given) {
  struct exchange found = {read_owned, release, take};
  posenc_set_exchange(&found);
  return run(rotate_something, 600, words, given);
}
