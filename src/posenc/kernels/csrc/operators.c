/* Operators registered with torch, and the frame in which each of them runs. */
#define _GNU_SOURCE
#include "operators.h"
#include "parallel.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct torch torch;

static const char NAMES[][24] = {
    "library_init_fragment", "library_init_impl", "library_def", "library_impl", "get_data_ptr",
    "get_sizes", "get_strides", "get_dim", "get_dtype", "get_storage_size", "new_tensor_handle",
    "delete_tensor_object", "empty_strided", "copy_", "call_dispatcher", "grad_mode_is_enabled",
    "check"};
_Static_assert(sizeof NAMES / sizeof *NAMES == sizeof torch / sizeof(void *), "a name a function");

static const char UNREADABLE[] = "RuntimeError: torch could not hand a tensor over.";

static int (*num_threads)(void);

int64_t torch_threads(void) { return num_threads ? num_threads() : 1; }

const char *sentence(const char *format, ...) {
  static _Thread_local char words[512];
  va_list given;
  va_start(given, format);
  vsnprintf(words, sizeof words, format, given);
  va_end(given);
  return words;
}

/* Every error code counts: None arrives as an undefined tensor. FSDP frees storages, and a slice of
 * one that was freed has a wild address. */
static const char *read_tensor(Tensor from, struct view *v) {
  void *data;
  int64_t *sizes, *strides, bytes, elements = 1;
  *v = (struct view){.of = from};
  if (torch.get_dim(from, &v->axes) || torch.get_sizes(from, &sizes) ||
      torch.get_strides(from, &strides) || torch.get_dtype(from, &v->dtype) ||
      torch.get_storage_size(from, &bytes) || torch.get_data_ptr(from, &data))
    return "TypeError: An argument is no dense tensor with memory.";
  if (v->axes < 1 || v->axes > MOST_AXES)
    return sentence("ValueError: A tensor has %lld axes; operators take 1 to %d.", (long long)v->axes, MOST_AXES);
  v->data = data, v->sizes = sizes, v->strides = strides;
  for (int64_t i = 0; i < v->axes; i++) elements *= sizes[i];
  if (elements && (!bytes || !data)) return "ValueError: A tensor has elements and no memory: its storage was freed.";
  return NULL;
}

const char *new_tensor(int64_t axes, const int64_t *sizes, int32_t dtype, struct view *made) {
  int64_t strides[MOST_AXES], step = 1;
  Tensor tensor;
  for (int64_t i = axes; i-- > 0; step *= sizes[i] > 1 ? sizes[i] : 1) strides[i] = step;
  if (torch.empty_strided(axes, sizes, strides, dtype, 0, 0, &tensor)) return "RuntimeError: There is no memory for the result.";
  const char *wrong = read_tensor(tensor, made);
  if (wrong) torch.delete_tensor_object(tensor), made->of = NULL;
  return wrong;
}

static const char *replaced(struct call *call, struct view *v, bool copied) {
  struct view other;
  const char *wrong = new_tensor(v->axes, v->sizes, v->dtype, &other);
  if (wrong) return wrong;
  call->scratch[call->scratches++] = other.of;
  if (copied && torch.copy_(other.of, v->of, 0)) return UNREADABLE;
  *v = other;
  return NULL;
}

const char *side_by_side(struct call *call, struct view *v, bool copied) {
  return size_at(v, 1) <= 1 || step_at(v, 1) == 1 ? NULL : replaced(call, v, copied);
}

const char *contiguous(struct call *call, struct view *v) {
  int64_t step = 1;
  bool is = true;
  for (int64_t i = v->axes; i-- > 0; step *= v->sizes[i])
    is = is && (v->sizes[i] == 1 || v->strides[i] == step);
  return is ? NULL : replaced(call, v, true);
}

const char *new_scratch(struct call *call, struct view *v) { return replaced(call, v, false); }

bool overlaps_itself(const struct view *v) {
  int64_t reach = 0;
  bool done[MOST_AXES] = {false};
  for (int64_t n = 0; n < v->axes; n++) { /* from the smallest stride on */
    int64_t least = -1;
    for (int64_t i = 0; i < v->axes; i++)
      if (!done[i] && (least < 0 || v->strides[i] < v->strides[least])) least = i;
    done[least] = true;
    if (v->sizes[least] <= 1) continue;
    if (v->strides[least] <= reach) return true;
    reach += v->strides[least] * (v->sizes[least] - 1);
  }
  return false;
}

/* Past the last byte of a tensor. */
static const char *end_of(const struct view *v) {
  int64_t bytes = v->dtype == FLOAT64 || v->dtype == INT64 ? 8 : v->dtype == FLOAT32 ? 4 : 2, last = 0;
  for (int64_t i = 0; i < v->axes; i++) {
    if (v->sizes[i] == 0) return v->data;
    last += (v->sizes[i] - 1) * v->strides[i];
  }
  return v->data + (last + 1) * bytes;
}

bool ranges_meet(const struct view *a, const struct view *b) {
  return a->data < end_of(b) && b->data < end_of(a);
}

bool same_shape(const struct view *a, const struct view *b) {
  bool same = a->axes == b->axes;
  for (int64_t i = 0; same && i < a->axes; i++) same = a->sizes[i] == b->sizes[i];
  return same;
}

static bool has_history(Tensor x) {
  Tensor mine;
  Value stack[1];
  if (torch.new_tensor_handle(x, &mine)) return true;
  *stack = (Value)mine;
  return torch.call_dispatcher("aten::is_leaf", "", stack) || !(*stack & 1);
}

/* copy_(x, x) moves nothing; it raises x's version, and refuses leaves and inference tensors. */
const char *announce(const struct view *v) {
  if (torch.grad_mode_is_enabled() && has_history(v->of))
    return "RuntimeError: What would be written has a history that autograd recorded. Write under "
           "torch.no_grad().";
  if (torch.copy_(v->of, v->of, 0))
    return "RuntimeError: Autograd lets nobody write there: a leaf that requires grad, or a tensor "
           "of inference mode.";
  return NULL;
}

const char *written_back(const struct view *from, const struct view *to) {
  return from->of != to->of && torch.copy_(to->of, from->of, 0) ? UNREADABLE : NULL;
}

enum { MOST_TENSORS = 6 };

void posenc_operate(Value *stack, body body, int form, int tensors, int results) {
  struct view given[MOST_TENSORS];
  struct call call = {.arguments = stack + tensors, .given = given};
  const char *wrong = NULL;
  for (int i = 0; i < tensors && !wrong; i++) wrong = read_tensor((Tensor)stack[i], &given[i]);
  if (!wrong) wrong = body(&call, form);
  for (int i = 0; i < call.scratches; i++) torch.delete_tensor_object(call.scratch[i]);
  for (int i = 0; i < tensors; i++) torch.delete_tensor_object((Tensor)stack[i]);
  for (int i = 0; i < results; i++) {
    if (!wrong) stack[i] = (Value)call.made[i].of;
    else if (call.made[i].of) torch.delete_tensor_object(call.made[i].of);
  }
  /* Last of all, or what is held above leaks. */
  if (wrong) torch.check(false, "posenc", __FILE__, __LINE__, wrong);
}

/* 0 where the operators of this library serve. */
POSENC_EXPORT int posenc_registered = -1;

#ifndef POSENC_SOURCES
#define POSENC_SOURCES "unknown"
#endif
/* What this was built from; library.py looks for it in the file. */
POSENC_EXPORT const char posenc_sources[] = "sources " POSENC_SOURCES;

#ifdef __APPLE__
static const char TORCH[] = "@rpath/libtorch_cpu.dylib";
#else
static const char TORCH[] = "libtorch_cpu.so";
#endif

/* Runs when the library is loaded, by Python, C++ and AOTInductor alike. */
__attribute__((constructor)) static void begin(void) {
  static const struct { const char *name, *schema; void (*run)(Value *, uint64_t, uint64_t); } ours[] = {
#define OPERATOR(NAME, SIGNATURE) {#NAME, #NAME SIGNATURE, posenc_##NAME},
#include "schemas.h"
#undef OPERATOR
  };
  void *lib = dlopen(TORCH, RTLD_NOLOAD | RTLD_LAZY), *all, *cpu, **slot = (void **)&torch;
  char name[512];
  for (unsigned i = 0; lib && i < sizeof NAMES / sizeof *NAMES; i++) {
    snprintf(name, sizeof name, "aoti_torch_%s", NAMES[i]);
    if (!(slot[i] = dlsym(lib, name))) lib = NULL;
  }
  if (!lib) return;
  *(void **)&num_threads = dlsym(lib, "_ZN2at15get_num_threadsEv");
  posenc_set_parallel(dlsym(lib, "GOMP_parallel"), dlsym(lib, "omp_get_thread_num"));
  if (torch.library_init_fragment("posenc", __FILE__, __LINE__, &all)) return;
  if (torch.library_init_impl("posenc", "CPU", __FILE__, __LINE__, &cpu)) return;
  for (unsigned i = 0; i < sizeof ours / sizeof *ours; i++) {
    /* Another copy has defined it: stop, or impl replaces the kernel of that. */
    if (torch.library_def(all, ours[i].schema)) return;
    if (torch.library_impl(cpu, ours[i].name, ours[i].run)) return;
  }
  posenc_registered = 0;
}
