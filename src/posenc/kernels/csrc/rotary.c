/* (a, b) -> (a cos - b sin, b cos + a sin) for every pair of channels of every head of a token.
 *
 * A token's row of cosines and sines serves all of its heads, of queries and keys alike, while it is
 * in cache. Products and sums are rounded one by one, as torch's are, so results are the same bits. */
#include "memory.h"
#include "parallel.h"
#include "rotary.h"
#include "rotations.h"
#include "stream.h"

enum {
  ROW_BYTES = 4096,
  MOST_TOKENS = 64,
  SERIAL_ELEMENTS = 1 << 17, /* fewer are rotated sooner than a second thread wakes */
  PREPARED_FLOATS = 1 << 13,
  IN_BFLOAT16 = 1, /* its place in FORMATS */
  WORDS = 4,    /* that of its prepared rows in RUNS */
  PIECE_ELEMENTS = 1 << 18,
  FAR_BYTES = 16 << 20,      /* more than this comes from memory, and is fetched early */
  ROWS_AHEAD = 16            /* what is far is fetched so many rows before it is rotated */
};

struct work;
struct rows;
struct run;
typedef void (*rotate_rows)(const struct work *, const struct rows *, const struct run *);

struct work {
  const struct rotary_plan *plan;
  const struct format *format;
  const char *x[QUERIES_AND_KEYS];
  char *out[QUERIES_AND_KEYS];
  const struct rotary_operands *at;
  rotate_rows run;
  int64_t step;   /* tokens a piece */
  int64_t pieces; /* a row of the batch */
  int far, streamed, prepared;
};

/* Where the cosines of each token of a piece are; its sines lie so many bytes further. */
struct rows {
  const char *cos[MOST_TOKENS];
  int64_t sine, head; /* bytes */
  _Alignas(64) float prepared[PREPARED_FLOATS];
};

static int64_t row_of(const struct work *work, int64_t batch, int64_t token) {
  const struct rotary_plan *plan = work->plan;
  if (!plan->looked_up) return token;
  return row_at(work->at->positions + batch * plan->positions_batch + token * plan->positions_token,
                plan->rows);
}

static void find_rows(const struct work *work, int64_t batch, int64_t first, int64_t tokens,
                      struct rows *rows) {
  const struct rotary_plan *plan = work->plan;
  int64_t bytes = work->format->table_bytes;
  rows->sine = (int64_t)((uintptr_t)work->at->sin - (uintptr_t)work->at->cos);
  rows->head = plan->table_head * bytes;
  for (int64_t t = 0; t < tokens; t++) {
    int64_t row = batch * plan->table_batch + row_of(work, batch, first + t) * plan->table_row;
    rows->cos[t] = work->at->cos + row * bytes;
  }
  if (!work->prepared) return;
  for (int64_t t = 0; t < tokens; t++) {
    const float *cos = (const float *)rows->cos[t];
    const float *sin = (const float *)(rows->cos[t] + rows->sine);
    float *ready = rows->prepared + t * 2 * plan->pairs;
    prepare(cos, sin, (int)plan->sign, plan->pairs, (int)plan->interleaved, ready);
    rows->cos[t] = (const char *)ready;
  }
  rows->sine = plan->pairs * (int64_t)sizeof(float);
}

/* A run of rows of one tensor, between which pointers move by so many bytes. */
struct run {
  const char *from, *next; /* next: the run that follows */
  char *to;
  const char *const *cos; /* of every row by itself, or one for all, to which `head` is added */
  int64_t from_step, to_step, cos_step, head, count;
  int far; /* whether rows are fetched early */
};

static inline __attribute__((always_inline)) void rotate_run(rotate_row rotate,
                                                             const struct work *work,
                                                             const struct rows *rows,
                                                             const struct run *run, int streamed) {
  const struct rotary_plan *plan = work->plan;
  int64_t bytes = work->format->bytes, width = plan->width * bytes, pairs = plan->pairs;
  int64_t begin = plan->begin * bytes, end = begin + 2 * pairs * bytes, sine = rows->sine;
  int64_t ahead = ROWS_AHEAD, head = 0;
  int sign = (int)plan->sign, far = run->far, kept = run->from != run->to && width != end - begin;
  const char *from = run->from, *next = from + ahead * run->from_step;
  const char *const *cos = run->cos;
  char *to = run->to;
  _Alignas(64) char buffer[ROW_BYTES];
  for (int64_t row = 0; row < run->count; row++) {
    char *made = streamed ? buffer : to;
    if (far) {
      if (row + ahead == run->count) next = run->next;
      for (int64_t byte = 0; byte < width; byte += 64) __builtin_prefetch(next + byte);
      next += run->from_step;
    }
    if (kept) {
      memcpy(made, from, (size_t)begin);
      memcpy(made + end, from + end, (size_t)(width - end));
    }
    rotate(from + begin, made + begin, *cos + head, *cos + head + sine, sign, pairs);
    if (streamed) stream(to, buffer, (size_t)width);
    from += run->from_step, to += run->to_step, cos += run->cos_step, head += run->head;
  }
}

#define DEFINE_RUN(NAME)                                                                           \
  static void NAME##_run(const struct work *work, const struct rows *rows, const struct run *run) { \
    if (work->streamed && run->from != run->to)                                                    \
      rotate_run(NAME, work, rows, run, 1);                                                        \
    else                                                                                           \
      rotate_run(NAME, work, rows, run, 0);                                                        \
  }
#define DEFINE_RUNS(STORED) DEFINE_RUN(half_##STORED) DEFINE_RUN(interleaved_##STORED)
DEFINE_RUNS(float32)
DEFINE_RUNS(bfloat16)
DEFINE_RUNS(float16)
DEFINE_RUNS(float64)
DEFINE_RUNS(words)

/* In the order of FORMATS, and last of bfloat16 with prepared rows. */
static const rotate_rows RUNS[][2] = {{half_float32_run, interleaved_float32_run},
                                      {half_bfloat16_run, interleaved_bfloat16_run},
                                      {half_float16_run, interleaved_float16_run},
                                      {half_float64_run, interleaved_float64_run},
                                      {half_words_run, interleaved_words_run}};

/* Of so many tokens of a piece, from one of them on. */
static void rotate_heads(const struct work *work, int64_t p, const char *x, char *out,
                         int64_t first, int64_t tokens, const struct rows *rows) {
  const struct heads *part = &work->plan->part[p];
  int64_t bytes = work->format->bytes;
  /* The inner loop follows memory: tokens within a head, or heads within a token. */
  int tokens_inside = part->x_token < part->x_head;
  int64_t outers = tokens_inside ? part->count : tokens;
  int64_t x_outer = (tokens_inside ? part->x_head : part->x_token) * bytes;
  int64_t out_outer = (tokens_inside ? part->out_head : part->out_token) * bytes;
  const char *cos[MOST_TOKENS];
  struct run run = {.from = x, .to = out, .cos = rows->cos + first};
  run.far = work->far && tokens_inside; /* heads of a token follow each other, which processors see */
  run.count = tokens_inside ? tokens : part->count;
  run.from_step = (tokens_inside ? part->x_token : part->x_head) * bytes;
  run.to_step = (tokens_inside ? part->out_token : part->out_head) * bytes;
  run.cos_step = tokens_inside, run.head = tokens_inside ? 0 : rows->head;
  for (int64_t outer = 0; outer < outers; outer++) {
    run.next = run.from + x_outer;
    if (!tokens_inside) {
      run.cos = rows->cos + first + outer;
    } else if (rows->head) {
      for (int64_t t = 0; t < tokens; t++) cos[t] = rows->cos[first + t] + outer * rows->head;
      run.cos = cos;
    }
    work->run(work, rows, &run);
    run.from += x_outer, run.to += out_outer;
  }
}

static void rotate_piece(const void *data, int64_t piece) {
  const struct work *work = data;
  const struct rotary_plan *plan = work->plan;
  int64_t batch = piece / work->pieces, first = piece % work->pieces * work->step;
  int64_t rest = plan->tokens - first, tokens = work->step < rest ? work->step : rest;
  int64_t bytes = work->format->bytes;
  struct rows rows;
  find_rows(work, batch, first, tokens, &rows);
  /* What comes from memory is rotated token by token, queries and then keys, if heads lie so. */
  int64_t together = tokens;
  for (int64_t p = 0; p < plan->parts; p++)
    if (work->far && plan->part[p].x_token >= plan->part[p].x_head) together = 1;
  for (int64_t at = 0; at < tokens; at += together) {
    for (int64_t p = 0; p < plan->parts; p++) {
      const struct heads *part = &plan->part[p];
      if (!part->count) continue;
      int64_t token = first + at;
      const char *x = work->x[p] + (batch * part->x_batch + token * part->x_token) * bytes;
      char *out = work->out[p] + (batch * part->out_batch + token * part->out_token) * bytes;
      rotate_heads(work, p, x, out, at, together, &rows);
    }
  }
  if (work->streamed) stream_fence();
}

static int rows_exist(const struct work *work) {
  const struct rotary_plan *plan = work->plan;
  const int64_t *positions = work->at->positions;
  if (!plan->looked_up) return 1;
  for (int64_t b = 0; b < plan->batch; b++)
    for (int64_t t = 0; t < plan->tokens; t++)
      if (!is_row(positions + b * plan->positions_batch + t * plan->positions_token, plan->rows))
        return 0;
  return 1;
}

static struct region heads_at(const struct work *work, const char *from, int64_t count,
                              int64_t batch, int64_t head, int64_t token) {
  const struct rotary_plan *plan = work->plan;
  int64_t bytes = work->format->bytes;
  return (struct region){from, {plan->batch, count, plan->tokens},
                         {batch * bytes, head * bytes, token * bytes}, plan->width * bytes};
}

static struct region table_at(const struct work *work, const char *from) {
  const struct rotary_plan *plan = work->plan;
  int64_t bytes = work->format->table_bytes;
  int64_t rows = plan->looked_up ? plan->rows : plan->tokens;
  int64_t heads = 1;
  for (int64_t p = 0; p < plan->parts; p++)
    if (plan->part[p].count > heads) heads = plan->part[p].count;
  return (struct region){from, {plan->batch, heads, rows},
                         {plan->table_batch * bytes, plan->table_head * bytes, plan->table_row * bytes},
                         plan->pairs * bytes};
}

static struct region positions_at(const struct work *work) {
  const struct rotary_plan *plan = work->plan;
  return (struct region){(const char *)work->at->positions, {plan->batch, 1, plan->tokens},
                         {plan->positions_batch * 8, 0, plan->positions_token * 8}, 8};
}

/* Whether all memory is there, and writing neither changes what is still to be read nor meets one
 * place twice. */
static int fits(const struct work *work) {
  const struct rotary_plan *plan = work->plan;
  struct region cos = table_at(work, work->at->cos), sin = table_at(work, work->at->sin);
  struct region positions = positions_at(work), x[QUERIES_AND_KEYS], out[QUERIES_AND_KEYS];
  if (work->at->cos == NULL || work->at->sin == NULL) return 0;
  if (plan->looked_up && positions.from == NULL) return 0;
  for (int64_t p = 0; p < plan->parts; p++) {
    const struct heads *part = &plan->part[p];
    if (!part->count) continue;
    if (work->x[p] == NULL || work->out[p] == NULL) return 0;
    x[p] = heads_at(work, work->x[p], part->count, part->x_batch, part->x_head, part->x_token);
    out[p] = heads_at(work, work->out[p], part->count, part->out_batch, part->out_head,
                      part->out_token);
  }
  if (work->at->fresh) return 1;
  for (int64_t p = 0; p < plan->parts; p++) {
    if (!plan->part[p].count) continue;
    if (!keeps_apart(&out[p]) || !are_apart(&out[p], &cos) || !are_apart(&out[p], &sin)) return 0;
    if (plan->looked_up && !are_apart(&out[p], &positions)) return 0;
    for (int64_t other = 0; other < plan->parts; other++) {
      if (!plan->part[other].count) continue;
      int in_place = p == other && are_alike(&out[p], &x[p]);
      if (!in_place && !are_apart(&out[p], &x[other])) return 0;
      if (p != other && !are_apart(&out[p], &out[other])) return 0;
    }
  }
  return 1;
}

static struct work work_of(const struct rotary_plan *plan, const struct rotary_operands *at) {
  struct work work = {.plan = plan, .format = &FORMATS[plan->format], .at = at};
  work.x[0] = at->q, work.x[1] = at->k;
  work.out[0] = at->q_out, work.out[1] = at->k_out;
  return work;
}

/* Of all heads of a token. */
static int64_t elements_of(const struct rotary_plan *plan) {
  int64_t elements = 0;
  for (int64_t p = 0; p < plan->parts; p++) elements += plan->part[p].count * plan->width;
  return elements;
}

int posenc_rotary_fits(const struct rotary_plan *plan, const struct rotary_operands *at) {
  struct work work = work_of(plan, at);
  if (plan->batch * plan->tokens * elements_of(plan) == 0) return DONE;
  return !fits(&work) ? UNFIT : rows_exist(&work) ? DONE : NO_SUCH_ROW;
}

void posenc_rotate(const struct rotary_plan *plan, const struct rotary_operands *at, int64_t threads) {
  const struct format *format = &FORMATS[plan->format];
  struct work work = work_of(plan, at);
  int64_t a_token = elements_of(plan), elements = plan->batch * plan->tokens * a_token;
  if (elements == 0) return;

  /* Heads that share a row of the table make it worth preparing. */
  work.prepared = WORDS_FIT && format == &FORMATS[IN_BFLOAT16] && plan->table_head == 0 &&
                  (plan->interleaved || plan->pairs % 2 == 0) && 2 * plan->pairs <= PREPARED_FLOATS;
  work.run = RUNS[work.prepared ? WORDS : plan->format][plan->interleaved != 0];

  int64_t step = PIECE_ELEMENTS / a_token;
  work.step = step < 1 ? 1 : step > MOST_TOKENS ? MOST_TOKENS : step;
  if (work.prepared && work.step * 2 * plan->pairs > PREPARED_FLOATS)
    work.step = PREPARED_FLOATS / (2 * plan->pairs);
  /* Enough pieces for all threads to be done at about the same time. */
  int64_t share = plan->batch * plan->tokens / (4 * (threads < 1 ? 1 : threads)) + 1;
  if (work.step > share) work.step = share;
  work.pieces = (plan->tokens + work.step - 1) / work.step;
  work.far = elements * format->bytes > FAR_BYTES;
  work.streamed = plan->width * format->bytes <= ROW_BYTES &&
                  worth_streaming(elements * format->bytes, (int)at->fresh);
  for (int64_t p = 0; at->fresh && p < plan->parts; p++)
    ask_for_large_pages(work.out[p], plan->batch * plan->tokens * plan->part[p].count * plan->width *
                                         format->bytes);
  posenc_share(rotate_piece, &work, plan->batch * work.pieces,
               elements < SERIAL_ELEMENTS ? 1 : threads);
}
