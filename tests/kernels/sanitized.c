/* Every operator over random tensors, under sanitizers, with a torch that is not there. Memory is just
 * as large as a tensor needs: a byte too far, an overflow, a race or a handle that is kept ends it. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "operators.c"

static uint64_t state = 88172645463325252u;

static int64_t draw(int64_t least, int64_t most) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return least + (int64_t)(state % ((uint64_t)most - (uint64_t)least + 1));
}

static void check(int fine, const char *what) {
  if (!fine) printf("%s\n", what), exit(1);
}

/* A parallel region of two threads. */
static _Thread_local int thread = 0;
static int thread_num(void) { return thread; }
static int two(void) { return 2; }

static void *body_of(void *both) {
  void **pair = both;
  thread = 1;
  ((void (*)(void *))pair[0])(pair[1]);
  return NULL;
}

static void on_two_threads(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
  void *both[] = {(void *)body, data};
  pthread_t other;
  (void)threads, (void)flags;
  pthread_create(&other, NULL, body_of, both);
  body(data);
  pthread_join(other, NULL);
}

/* Another thread writes numbers while they are in use: those of no row, and row 0 again. */
static int64_t *scribbled, count;
static int begun, stop;

static void *scribble(void *unused) {
  static const int64_t wrong[] = {0, INT64_MIN, 0, -1, 0, INT64_MAX};
  (void)unused;
  for (int64_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
    __atomic_store_n(&scribbled[i % count], wrong[i / count % 6], __ATOMIC_RELAXED);
    __atomic_store_n(&begun, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

/* A tensor of a torch that is not there: memory just as large as needed, and who holds it. */
struct tensor {
  char *data;
  int64_t axes, sizes[MOST_AXES], strides[MOST_AXES], bytes;
  int32_t dtype, handles;
};

static int alive = 0, refused = 0;

static int64_t size_of(int32_t dtype) { return dtype == FLOAT32 ? 4 : dtype == INT64 || dtype == FLOAT64 ? 8 : 2; }

static Error empty_strided(int64_t axes, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                           int32_t device, int32_t index, Tensor *made) {
  struct tensor *t = calloc(1, sizeof *t);
  int64_t reach = 1;
  (void)device, (void)index;
  for (int64_t i = 0; i < axes; i++) {
    t->sizes[i] = sizes[i], t->strides[i] = strides[i];
    reach = sizes[i] && reach ? reach + (sizes[i] - 1) * strides[i] : 0;
  }
  t->axes = axes, t->dtype = dtype, t->handles = 1, t->bytes = reach * size_of(dtype);
  t->data = t->bytes ? calloc(1, (size_t)t->bytes) : NULL;
  alive++;
  *made = t;
  return 0;
}

static Error delete_tensor_object(Tensor x) {
  struct tensor *t = x;
  if (--t->handles) return 0;
  free(t->data), free(t), alive--;
  return 0;
}

static Error new_tensor_handle(Tensor x, Tensor *made) {
  ((struct tensor *)x)->handles++, *made = x;
  return 0;
}

static Error get_data_ptr(Tensor x, void **data) { return *data = ((struct tensor *)x)->data, 0; }
static Error get_sizes(Tensor x, int64_t **sizes) { return *sizes = ((struct tensor *)x)->sizes, 0; }
static Error get_strides(Tensor x, int64_t **strides) { return *strides = ((struct tensor *)x)->strides, 0; }
static Error get_dim(Tensor x, int64_t *axes) { return *axes = ((struct tensor *)x)->axes, 0; }
static Error get_dtype(Tensor x, int32_t *dtype) { return *dtype = ((struct tensor *)x)->dtype, 0; }
static Error get_storage_size(Tensor x, int64_t *bytes) { return *bytes = ((struct tensor *)x)->bytes, 0; }

static void copy_axes(struct tensor *to, const struct tensor *from, int64_t axis, int64_t a, int64_t b) {
  int64_t bytes = size_of(to->dtype);
  if (axis == to->axes && bytes == 8)
    *(int64_t *)(void *)(to->data + a * 8) = __atomic_load_n((int64_t *)(void *)(from->data + b * 8), __ATOMIC_RELAXED);
  else if (axis == to->axes)
    memcpy(to->data + a * bytes, from->data + b * bytes, (size_t)bytes);
  for (int64_t i = 0; axis < to->axes && i < to->sizes[axis]; i++)
    copy_axes(to, from, axis + 1, a + i * to->strides[axis], b + i * from->strides[axis]);
}

static Error copy_(Tensor to, Tensor from, int32_t aside) {
  (void)aside;
  if (to != from) copy_axes(to, from, 0, 0, 0);
  return draw(0, 30) == 0; /* now and then it fails */
}

static Error call_dispatcher(const char *name, const char *overload, Value *stack) {
  check(!strcmp(name, "aten::is_leaf") && !*overload, "another function is called");
  delete_tensor_object((Tensor)*stack);
  return *stack = draw(0, 9) > 0, 0;
}

static bool grad_mode_is_enabled(void) { return draw(0, 1); }

static void refuse(bool fine, const char *name, const char *file, uint32_t line, const char *words) {
  (void)name, (void)file, (void)line;
  check(!fine && strchr(words, ':'), "no type of an error");
  refused = 1;
}

/* A tensor in any order of memory, with gaps or repeats; now and then of another size or dtype. */
static Tensor some(int32_t dtype, int64_t axes, const int64_t *sizes) {
  int64_t odd = draw(0, 60), step = draw(0, 5) ? 1 : draw(0, 2), strides[MOST_AXES], other[MOST_AXES];
  Tensor made;
  for (int64_t i = 0; i < axes; i++) other[i] = sizes[i] + (odd == i ? draw(sizes[i] ? -1 : 0, 1) : 0);
  for (int64_t n = 0, first = draw(0, 4) ? axes - 1 : draw(0, axes - 1); n < axes; n++) {
    int64_t axis = (first + axes - n) % axes;
    strides[axis] = step, step = (step * other[axis] + draw(0, 1) * draw(0, 2)) * (draw(0, 20) > 0);
  }
  empty_strided(axes, other, strides, odd == 20 ? (int32_t)draw(4, 7) : dtype, 0, 0, &made);
  return made;
}

/* Rows of a table of so many, most of which exist. */
static Tensor numbers(int64_t axes, const int64_t *sizes, int64_t rows) {
  struct tensor *made = some(INT64, axes, sizes);
  for (int64_t i = 0; made->dtype == INT64 && i < made->bytes / 8; i++)
    ((int64_t *)(void *)made->data)[i] = draw(0, 300 + made->bytes) ? draw(0, rows - 1) : draw(-1, rows);
  if (made->dtype == INT64 && made->bytes && !draw(0, 9)) scribbled = (void *)made->data, count = made->bytes / 8;
  return made;
}

typedef void operator(Value *stack, uint64_t inputs, uint64_t outputs);

static void call(operator *run, Value *stack, const double *scales, const int64_t *integers, int tensors, int results) {
  struct tensor *held[MOST_TENSORS];
  int rest = tensors;
  for (int i = 0; scales && i < 2; i++) memcpy(&stack[rest++], &scales[i], sizeof *scales);
  for (int i = 0; i < 2; i++) stack[rest++] = (Value)integers[i];
  for (int i = 0; i < tensors; i++) held[i] = (struct tensor *)stack[i], held[i]->handles++;
  pthread_t other;
  refused = begun = stop = 0;
  if (scribbled) pthread_create(&other, NULL, scribble, NULL);
  while (scribbled && !__atomic_load_n(&begun, __ATOMIC_RELAXED)) {}
  run(stack, 0, 0);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  if (scribbled) pthread_join(other, NULL), scribbled = NULL;
  for (int i = 0; i < results && !refused; i++) delete_tensor_object((Tensor)stack[i]);
  for (int i = 0; i < tensors; i++) check(held[i]->handles == 1, "a handle is kept"), delete_tensor_object(held[i]);
  check(alive == 0, "a tensor is kept");
}

static const int32_t DTYPES[] = {FLOAT32, BFLOAT16, FLOAT16, FLOAT64};

static void rotate_something(Value *stack, int32_t dtype, int32_t wide) {
  static operator *const forms[] = {
      posenc_rotary, posenc_rotary_, posenc_rotary_out, posenc_rotary_at, posenc_rotary_at_, posenc_rotary_at_out,
      posenc_rotary_both, posenc_rotary_both_, posenc_rotary_both_out, posenc_rotary_both_at,
      posenc_rotary_both_at_, posenc_rotary_both_at_out};
  int which = (int)draw(0, 11), parts = which < 6 ? 1 : 2, looked_up = which / 3 % 2, form = which % 3;
  int64_t bits[] = {draw(0, 15), 0}, axes = draw(3, 4), pairs = draw(1, 9), tokens = draw(0, 200) ? draw(0, 20) : 3000, batch = draw(1, 3);
  int64_t sizes[2][4], each[] = {draw(0, 1) ? batch : 1, tokens, 2, pairs}, rows[] = {draw(1, 30), 2, pairs};
  int at = parts, own = axes == 4 && draw(0, 1), count;
  for (int p = 0; p < parts; p++) {
    sizes[p][0] = batch, sizes[p][1] = sizes[p][2] = draw(0, 4), sizes[p][3] = 2 * pairs + draw(0, 3);
    sizes[p][bits[0] & 4 ? 2 : 1] = tokens;
    stack[p] = (Value)some(dtype, axes, sizes[p] + 4 - axes);
  }
  stack[at++] = (Value)(looked_up ? some(wide, 3, rows) : some(wide, 3 + own, each + !own));
  if (looked_up) stack[at++] = (Value)numbers(1 + own, each + !own, *rows);
  for (int p = 0; p < parts && form == 2; p++) stack[at++] = (Value)some(dtype, axes, sizes[p] + 4 - axes);
  count = form ? 0 : parts;
  call(forms[which], stack, NULL, bits, at, count);
}

static void rotate_by_something(Value *stack, int32_t dtype, int32_t wide) {
  int64_t pairs = draw(1, 9), axes = draw(3, 4), sizes[] = {draw(0, 3), draw(1, 4), draw(1, 9), 2 * pairs + draw(0, 3)};
  int64_t over[4] = {0, 0, 0, pairs}, bits[] = {draw(0, 15), 0}, skip = draw(4 - axes, 3);
  for (int i = 0; i < 3; i++) over[i] = draw(0, 2) ? sizes[i] : 1;
  stack[0] = (Value)some(dtype, axes, sizes + 4 - axes);
  for (int i = 1; i < 3; i++) stack[i] = (Value)some(wide, 4 - skip, over + skip);
  call(posenc_rotary_by, stack, NULL, bits, 3, 1);
}

static void add_something(Value *stack, int32_t dtype, int32_t wide) {
  static operator *const forms[] = {posenc_scale, posenc_add, posenc_add_at, posenc_embed, posenc_embed_add,
                                    posenc_embed_add_at, posenc_add_out, posenc_add_at_out, posenc_embed_out,
                                    posenc_embed_add_out, posenc_embed_add_at_out};
  int which = (int)draw(0, 10), kind = which < 6 ? which : which - 5, at = 0;
  int64_t axes = draw(2, 4), sizes[] = {draw(0, 3), draw(1, 4), draw(1, 5), draw(0, 200) ? draw(1, 150) : 70001}, over[4], first = 4 - axes;
  int64_t rows[] = {draw(1, 9), sizes[3]}, integers[] = {draw(0, 1) << 30, draw(0, INT64_MAX - 1)}, skip;
  const double scales[] = {1.5, 1.25};
  for (int i = 0; i < 4; i++) over[i] = i == 3 || draw(0, 2) ? sizes[i] : 1;
  stack[at++] = (Value)(kind < 3 ? some(dtype, axes, sizes + first) : some(dtype, 2, rows));
  if (kind >= 3) stack[at++] = (Value)numbers(axes - 1, sizes + first, *rows);
  skip = first + draw(0, axes - 2);
  if (kind % 3 == 1) stack[at++] = (Value)some(wide, 4 - skip, over + skip);
  if (kind % 3 == 2) stack[at++] = (Value)some(wide, 2, rows), stack[at++] = (Value)numbers(3 - skip, over + skip, *rows);
  if (which > 5) stack[at++] = (Value)some(dtype, axes, sizes + first);
  call(forms[which], stack, scales, integers, at, which < 6);
}

static void fill_something(Value *stack, int32_t dtype) {
  int64_t form = draw(0, 7), sizes[] = {draw(1, 3), draw(0, 200) ? draw(0, 40) : 9000, 2, draw(0, 60) ? draw(1, 20) : 700}, skip = draw(0, 1);
  int64_t turns[] = {sizes[3], 3}, integers[2];
  double factor = 1.25;
  stack[2] = (Value)numbers(2, turns, INT64_MAX), scribbled = NULL;
  stack[1] = (Value)numbers(2 - skip, sizes + skip, 1000);
  stack[3] = (Value)some(FLOAT64, 1, turns);
  if (form & 1) sizes[2] = sizes[3], sizes[3] = 2;
  stack[0] = (Value)some(dtype, 4 - skip, sizes + skip);
  memcpy(integers, &factor, sizeof factor), integers[1] = form;
  call(posenc_sincos_, stack, NULL, integers, 4, 0);
}

static void operate(void) {
  Value stack[16];
  int32_t dtype = DTYPES[draw(0, 3)], wide = dtype == FLOAT64 ? FLOAT64 : FLOAT32;
  switch (draw(0, 3)) {
    case 0: rotate_something(stack, dtype, wide); break;
    case 2: rotate_by_something(stack, dtype, wide); break;
    case 1: add_something(stack, dtype, wide); break;
    default: fill_something(stack, dtype);
  }
}

/* The words after the program's name, if there are any: a seed, and how many cases. */
int main(int words, char **given) {
  torch = (struct torch){.get_data_ptr = get_data_ptr, .get_sizes = get_sizes, .get_strides = get_strides,
                         .get_dim = get_dim, .get_dtype = get_dtype, .get_storage_size = get_storage_size,
                         .new_tensor_handle = new_tensor_handle, .delete_tensor_object = delete_tensor_object,
                         .empty_strided = empty_strided, .copy_ = copy_, .call_dispatcher = call_dispatcher,
                         .grad_mode_is_enabled = grad_mode_is_enabled, .check = refuse};
  num_threads = two;
  posenc_set_parallel((void *)on_two_threads, (void *)thread_num);
  if (words > 1) state ^= strtoull(given[1], NULL, 10) * 0x9E3779B97F4A7C15u;
  for (int64_t cases = words > 2 ? atoi(given[2]) : 5000; cases--;) operate();
  printf("clean\n");
  return 0;
}
