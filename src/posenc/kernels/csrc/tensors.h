/* Tensors of Python, read through DLPack's exchange of C functions: nanoseconds each, where
 * attributes in Python take a hundred. Neither Python's headers nor torch's are needed.
 *
 * https://dmlc.github.io/dlpack/latest/c_api.html */
#ifndef POSENC_TENSORS_H
#define POSENC_TENSORS_H

#include <stdint.h>

/* DLTensor. Sizes and steps are borrowed; steps count elements. */
struct tensor {
  char *data;
  int32_t device, device_number;
  int32_t axes;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *sizes, *steps;
  uint64_t offset; /* bytes */
};

/* As exchange.py finds them. The first needs the interpreter's lock; on failure it raises. */
struct exchange {
  int (*read)(void *object, struct tensor *tensor);
  void *(*release_lock)(void);
  void (*take_lock)(void *state);
};

enum { CPU = 1, INTEGER = 0, FLOAT = 2, BFLOAT = 4 };

/* The place of a tensor's format among float32, bfloat16, float16 and float64; -1: another one. */
static inline int format_of(const struct tensor *t) {
  if (t->lanes != 1) return -1;
  if (t->code == BFLOAT && t->bits == 16) return 1;
  if (t->code != FLOAT) return -1;
  return t->bits == 32 ? 0 : t->bits == 16 ? 2 : t->bits == 64 ? 3 : -1;
}

#endif
