/* What every operator shares: tensors as torch hands them over, and how an operator is called.
 *
 * Torch is reached through its stable C interface alone, found at run time: no header of torch is
 * needed, and one library serves every torch from 2.8 on. */
#ifndef POSENC_OPERATORS_H
#define POSENC_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *Tensor;   /* a handle; an operator owns those of its arguments */
typedef uint64_t Value; /* a tensor, an integer, a double or a bool on the stack of a call */
typedef int32_t Error;

/* Functions of torch, in the order of NAMES in operators.c. */
struct torch {
  Error (*library_init_fragment)(const char *, const char *, uint32_t, void **);
  Error (*library_init_impl)(const char *, const char *, const char *, uint32_t, void **);
  Error (*library_def)(void *, const char *);
  Error (*library_impl)(void *, const char *, void (*)(Value *, uint64_t, uint64_t));
  Error (*get_data_ptr)(Tensor, void **);
  Error (*get_sizes)(Tensor, int64_t **);
  Error (*get_strides)(Tensor, int64_t **);
  Error (*get_dim)(Tensor, int64_t *);
  Error (*get_dtype)(Tensor, int32_t *);
  Error (*get_storage_size)(Tensor, int64_t *);
  Error (*new_tensor_handle)(Tensor, Tensor *);
  Error (*delete_tensor_object)(Tensor);
  Error (*empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, Tensor *);
  Error (*copy_)(Tensor, Tensor, int32_t);
  Error (*call_dispatcher)(const char *, const char *, Value *);
  bool (*grad_mode_is_enabled)(void);
  void (*check)(bool, const char *, const char *, uint32_t, const char *);
};

enum { MOST_AXES = 8 };

/* A tensor: where it lies, and its sizes and strides in elements. */
struct view {
  Tensor of;
  char *data;
  const int64_t *sizes, *strides;
  int64_t axes;
  int32_t dtype;
};

/* Torch's numbers for dtypes, which files of weights hold too. */
enum { INT64 = 4, FLOAT16 = 5, FLOAT32 = 6, FLOAT64 = 7, BFLOAT16 = 15 };

/* The place of a dtype among float32, bfloat16, float16 and float64; -1: another one. */
static inline int format_of(int32_t dtype) {
  return dtype == FLOAT32 ? 0 : dtype == BFLOAT16 ? 1 : dtype == FLOAT16 ? 2 : dtype == FLOAT64 ? 3 : -1;
}

static inline int64_t size_at(const struct view *v, int64_t from_last) { return v->sizes[v->axes - from_last]; }
static inline int64_t step_at(const struct view *v, int64_t from_last) { return v->strides[v->axes - from_last]; }

/* One call of an operator. Its first arguments are tensors, read before its body runs. */
struct call {
  const Value *arguments; /* those after the tensors */
  struct view *given;     /* the tensors */
  struct view made[2];    /* the results; whoever calls owns them */
  Tensor scratch[8];      /* deleted when the call ends */
  int scratches;
};

/* NULL, or what is wrong: the type of the error that Python raises, a colon, and a sentence. */
typedef const char *(*body)(struct call *call, int form);

void posenc_operate(Value *stack, body body, int form, int tensors, int results);

/* A sentence, in memory of this thread that the next one is written over. */
const char *sentence(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* New contiguous memory. */
const char *new_tensor(int64_t axes, const int64_t *sizes, int32_t dtype, struct view *made);

/* Sees to it that the last axis has stride 1: where it has not, a contiguous copy takes the place of
 * `v`, or just the room for one if it will only be written. */
const char *side_by_side(struct call *call, struct view *v, bool copied);

/* Sees to it that `v` is contiguous, as a copy if need be. */
const char *contiguous(struct call *call, struct view *v);

/* Room like `v` in new contiguous memory takes its place. */
const char *new_scratch(struct call *call, struct view *v);

/* Whether two elements lie in one place, as far as strides that nest tell. */
bool overlaps_itself(const struct view *v);

/* Whether the memory between first and last element of both has a byte in common. */
bool ranges_meet(const struct view *a, const struct view *b);

bool same_shape(const struct view *a, const struct view *b);

/* Copies a result to where it was asked for, if it was made elsewhere. */
const char *written_back(const struct view *from, const struct view *to);

/* Lets autograd know that `v` is written; refuses what may not be. */
const char *announce(const struct view *v);

static const char NO_SUCH_POSITION[] =
    "IndexError: A position is negative or past the last row of the table. Build the table for all "
    "positions that are asked for.";

static const char SHARED[] = "ValueError: out shares memory with what is read, or with itself.";

static inline double number_at(const struct call *call, int i) {
  union { Value value; double number; } as = {call->arguments[i]};
  return as.number;
}

/* at::get_num_threads() */
int64_t torch_threads(void);

#define OPERATOR(NAME, SIGNATURE) void posenc_##NAME(Value *stack, uint64_t inputs, uint64_t outputs);
#include "schemas.h"
#undef OPERATOR

#endif
