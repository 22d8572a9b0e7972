#include "driver.h"

#include "../../../src/posenc/kernels/csrc/embedding_norm.c"

static void normalize_something(void) {
  int64_t large = draw(0, 150) == 0;
  struct normed plan = {.format = draw(0, 3), .batch = draw(1, 4), .tokens = draw(1, 9)};
  plan.width = large ? MOST_WIDTH : draw(1, 200);
  if (large) plan.tokens = 700;
  int64_t bytes = FORMATS[plan.format].bytes, all = plan.batch * plan.tokens;
  char *weights[SUMMANDS];
  int64_t *ids[SUMMANDS];
  for (int p = 0; p < SUMMANDS; p++) {
    int64_t rows = draw(1, 9), row = plan.width + draw(0, 3), shared = draw(0, 1);
    weights[p] = calloc((size_t)((rows - 1) * row + plan.width), (size_t)bytes);
    ids[p] = malloc(sizeof(int64_t) * (size_t)(shared ? plan.tokens : all));
    for (int64_t i = 0; i < (shared ? plan.tokens : all); i++) ids[p][i] = draw(0, rows - 1);
    plan.part[p] = (struct summand){weights[p], ids[p], rows, row, shared ? 0 : plan.tokens, 1};
  }
  char *gamma = calloc((size_t)plan.width, (size_t)bytes), *beta = calloc((size_t)plan.width, (size_t)bytes);
  plan.gamma = gamma, plan.beta = beta, plan.eps = 1e-5;
  plan.out = malloc((size_t)(all * plan.width * bytes));
  check(posenc_embedding_norm(&plan, 2) == DONE, "not normalized");
  int64_t wrong = draw(0, SUMMANDS - 1);
  ids[wrong][draw(0, plan.tokens - 1)] = draw(0, 1) ? plan.part[wrong].rows : -1;
  check(posenc_embedding_norm(&plan, 2) == NO_SUCH_ROW + wrong, "not refused");
  for (int p = 0; p < SUMMANDS; p++) free(weights[p]), free(ids[p]);
  free(gamma), free(beta), free(plan.out);
}

int main(void) { return run(normalize_something, 400); }
