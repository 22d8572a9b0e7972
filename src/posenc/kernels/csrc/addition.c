/* y = (x * scale + table) * rescale where a random word says so, and 0 elsewhere; rounded once.
 *
 * x is read where it stands, or row by row from a table of vectors; so is the encoding, which every
 * row of the batch may share. The same function without a table is the gradient: the mask comes
 * from the counter again. Products and sums are rounded one by one, as torch's are. */
#include "addition.h"
#include "memory.h"
#include "parallel.h"
#include "philox.h"
#include "stream.h"
#include "sums.h"

enum {
  TILE = 1024, /* elements; a whole number of blocks of random words */
  PIECE_ELEMENTS = 1 << 15,
  SERIAL_ELEMENTS = 1 << 15, /* fewer are summed sooner than a second thread wakes */
  STREAMED_BYTES = 16 << 20, /* results larger than this would not stay in cache anyway */
  BYTES_AHEAD = 4096         /* content as large is fetched so early */
};

struct work {
  const struct addition_plan *plan;
  const struct addition_operands *at;
  const struct format *format;
  int64_t rows, chunk, chunks, together; /* a piece: a chunk of each of so many rows */
  int far, streamed;
};

/* The words of elements index ... index + count - 1. */
static const uint32_t *words_of(uint32_t words[TILE + PHILOX_BLOCK], uint64_t index, int64_t count,
                                uint64_t key) {
  uint64_t block = index / PHILOX_BLOCK, skipped = index % PHILOX_BLOCK;
  for (int64_t at = 0; at < (int64_t)skipped + count; at += PHILOX_BLOCK)
    philox_block(words + at, block++, key);
  return words + skipped;
}

static void add_run(const struct work *work, const char *x, const char *table, char *out,
                    uint64_t index, int64_t count) {
  const struct format *format = work->format;
  const struct addition_operands *at = work->at;
  _Alignas(64) char room[TILE * sizeof(double)];
  _Alignas(64) uint32_t words[TILE + PHILOX_BLOCK];
  for (int64_t done = 0; done < count; done += TILE) {
    int64_t now = count - done < TILE ? count - done : TILE;
    char *to = work->streamed ? room : out;
    for (int64_t byte = 0; work->far && byte < now * format->bytes; byte += 64)
      __builtin_prefetch(x + BYTES_AHEAD + byte);
    if (at->threshold) {
      const uint32_t *drawn = words_of(words, index, now, at->key);
      drop_tile drop = table ? format->add_dropped : format->times_dropped;
      drop(x, table, to, now, at->scale, drawn, (uint32_t)at->threshold, at->rescale);
    } else {
      (table ? format->add : format->times)(x, table, to, now, at->scale);
    }
    if (work->streamed) stream(out, room, (size_t)(now * format->bytes));
    x += now * format->bytes, out += now * format->bytes, index += (uint64_t)now;
    if (table) table += now * format->table_bytes;
  }
}

static int64_t along(const int64_t steps[AXES], const int64_t where[AXES]) {
  return steps[0] * where[0] + steps[1] * where[1] + steps[2] * where[2];
}

static void add_piece(const void *data, int64_t piece) {
  const struct work *work = data;
  const struct addition_plan *plan = work->plan;
  const struct addition_operands *at = work->at;
  int64_t groups = (work->rows + work->together - 1) / work->together;
  /* Rows of the batch follow each other, so the chunk of the table they share stays in cache. */
  int64_t first = piece % groups * work->together, begin = piece / groups * work->chunk;
  int64_t past = first + work->together < work->rows ? first + work->together : work->rows;
  int64_t count = plan->width - begin < work->chunk ? plan->width - begin : work->chunk;
  for (int64_t row = first; row < past; row++) {
    int64_t where[AXES] = {row / plan->sizes[2] / plan->sizes[1], row / plan->sizes[2] % plan->sizes[1],
                           row % plan->sizes[2]};
    int64_t x = along(plan->x_steps, where), table = along(plan->table_steps, where);
    if (plan->with_ids)
      x += row_at(at->ids + along(plan->ids_steps, where), plan->x_rows) * plan->x_row;
    if (plan->with_positions)
      table += row_at(at->positions + along(plan->positions_steps, where), plan->table_rows) *
               plan->table_row;
    add_run(work, at->x + (x + begin) * work->format->bytes,
            plan->with_table ? at->table + (table + begin) * work->format->table_bytes : NULL,
            at->out + (along(plan->out_steps, where) + begin) * work->format->bytes,
            (uint64_t)(row * plan->width + begin), count);
  }
  if (work->streamed) stream_fence();
}

static int rows_exist(const struct addition_plan *plan, const int64_t *wanted,
                      const int64_t steps[AXES], int64_t rows) {
  int64_t where[AXES];
  for (where[0] = 0; where[0] < (steps[0] ? plan->sizes[0] : 1); where[0]++)
    for (where[1] = 0; where[1] < (steps[1] ? plan->sizes[1] : 1); where[1]++)
      for (where[2] = 0; where[2] < (steps[2] ? plan->sizes[2] : 1); where[2]++)
        if (!is_row(wanted + along(steps, where), rows)) return 0;
  return 1;
}

/* What is read or written: rows that stand where they do, or all that may be looked up. */
static struct region region_of(const struct addition_plan *plan, const void *from, int64_t bytes,
                               const int64_t steps[AXES], int64_t looked_up, int64_t rows,
                               int64_t row) {
  if (looked_up) return (struct region){from, {rows, 1, 1}, {row * bytes, 0, 0}, plan->width * bytes};
  struct region made = {.from = from, .run = plan->width * bytes};
  for (int axis = 0; axis < AXES; axis++)
    made.sizes[axis] = plan->sizes[axis], made.steps[axis] = steps[axis] * bytes;
  return made;
}

static struct region numbers_of(const struct addition_plan *plan, const int64_t *from,
                                const int64_t steps[AXES]) {
  struct region made = region_of(plan, from, 8, steps, 0, 0, 0);
  made.run = 8;
  return made;
}

/* Whether all memory is there, and writing neither changes what is still to be read nor meets one
 * place twice. */
static int fits(const struct work *work) {
  const struct addition_plan *plan = work->plan;
  const struct addition_operands *at = work->at;
  int64_t bytes = work->format->bytes, table_bytes = work->format->table_bytes;
  int64_t looks = plan->with_ids, gathers = plan->with_positions;
  if (at->x == NULL || at->out == NULL || (plan->with_table && at->table == NULL)) return 0;
  if ((looks && at->ids == NULL) || (gathers && at->positions == NULL)) return 0;
  if (at->fresh) return 1;
  struct region out = region_of(plan, at->out, bytes, plan->out_steps, 0, 0, 0);
  struct region x = region_of(plan, at->x, bytes, plan->x_steps, looks, plan->x_rows, plan->x_row);
  struct region table = region_of(plan, at->table, table_bytes, plan->table_steps, gathers,
                                  plan->table_rows, plan->table_row);
  struct region ids = numbers_of(plan, at->ids, plan->ids_steps);
  struct region positions = numbers_of(plan, at->positions, plan->positions_steps);
  return keeps_apart(&out) && ((!looks && are_alike(&out, &x)) || are_apart(&out, &x)) &&
         (!plan->with_table || are_apart(&out, &table)) && (!looks || are_apart(&out, &ids)) &&
         (!gathers || are_apart(&out, &positions));
}

int posenc_sum_fits(const struct addition_plan *plan, const struct addition_operands *at) {
  struct work work = {.plan = plan, .at = at, .format = &FORMATS[plan->format]};
  if (plan->sizes[0] * plan->sizes[1] * plan->sizes[2] * plan->width == 0) return DONE;
  if (!fits(&work)) return UNFIT;
  if (plan->with_ids && !rows_exist(plan, at->ids, plan->ids_steps, plan->x_rows))
    return NO_SUCH_ID;
  if (plan->with_positions && !rows_exist(plan, at->positions, plan->positions_steps, plan->table_rows))
    return NO_SUCH_ROW;
  return DONE;
}

void posenc_sum(const struct addition_plan *plan, const struct addition_operands *at,
                int64_t threads) {
  struct work work = {.plan = plan, .at = at, .format = &FORMATS[plan->format]};
  work.rows = plan->sizes[0] * plan->sizes[1] * plan->sizes[2];
  int64_t elements = work.rows * plan->width;
  if (elements == 0) return;
  work.chunk = plan->width < PIECE_ELEMENTS ? plan->width : PIECE_ELEMENTS;
  work.chunks = (plan->width + work.chunk - 1) / work.chunk;
  work.together = PIECE_ELEMENTS / work.chunk;
  int64_t bytes = elements * work.format->bytes;
  work.far = bytes > STREAMED_BYTES;
  work.streamed = work.far && at->x != at->out && worth_streaming(bytes, (int)at->fresh);
  if (at->fresh) ask_for_large_pages(at->out, bytes);
  int64_t pieces = (work.rows + work.together - 1) / work.together * work.chunks;
  posenc_share(add_piece, &work, pieces, elements < SERIAL_ELEMENTS ? 1 : threads);
}
