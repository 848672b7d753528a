/* Which rows are computed together, and where their words are. */
#include "model/rnn/rnn_fast.h"

#include <assert.h>
#include <string.h>

/* Rows by falling length, equal ones in their order: by counting. */
static void sort_rows(pace__rnn_fast *self, const pace__rows *rows)
{
    uint32_t length = self->config.length, *next = self->at; /* not used yet; has length + 1 at least */

    memset(next, 0, (length + 1) * sizeof *next);
    for (size_t row = 0; row < rows->rows; row++) {
        assert(rows->length[row] >= 1 && rows->length[row] <= length);
        next[length - rows->length[row]]++;
    }
    for (uint32_t i = 0, sum = 0; i < length; i++) {
        uint32_t count = next[i];

        next[i] = sum;
        sum += count;
    }
    for (size_t row = 0; row < rows->rows; row++)
        self->row[next[length - rows->length[row]]++] = (uint32_t)row;
}

static void set_steps(const pace__rows *rows, const pace__rnn_chunk *chunk, uint32_t *at)
{
    uint32_t active = chunk->rows;

    at[0] = 0;
    for (uint32_t step = 0; step < chunk->steps; step++) {
        while (rows->length[chunk->row[active - 1]] <= step)
            active--;
        at[step + 1] = at[step] + active;
    }
}

void pace__rnn_plan(pace__rnn_fast *self)
{
    const pace__rows *rows = self->batch->rows;
    size_t count = rows->rows;

    assert(count <= self->rows_max && self->batch->slots <= self->slots_max);
    sort_rows(self, rows);
    self->words = 0;
    self->chunk_count = 0;
    for (size_t first = 0; first < count; first += self->chunk_rows) {
        uint32_t *at = self->at + (size_t)self->chunk_count * (self->config.length + 1);
        pace__rnn_chunk *chunk = &self->chunks[self->chunk_count++];

        *chunk = (pace__rnn_chunk){.row = self->row + first, .at = at, .first_word = self->words};
        chunk->rows = count - first < self->chunk_rows ? (uint32_t)(count - first) : self->chunk_rows;
        chunk->steps = rows->length[chunk->row[0]];
        set_steps(rows, chunk, at);
        self->words += at[chunk->steps];
    }
    self->sums_count = self->chunk_count < self->sums_max ? self->chunk_count : self->sums_max;
}

void pace__rnn_plan_slots(pace__rnn_fast *self, const pace__rnn_chunk *chunk)
{
    for (uint32_t row = 0; row < chunk->rows; row++) {
        const uint32_t *words = pace__row_words(self->batch->rows, chunk->row[row]);
        uint32_t length = self->batch->rows->length[chunk->row[row]];

        for (uint32_t step = 0; step < length; step++) {
            size_t at = chunk->first_word + chunk->at[step] + row;

            assert(words[step] < self->batch->slots);
            self->slots[0][at] = words[step];
            if (self->sides == 2)
                self->slots[1][at] = words[length - 1 - step];
        }
    }
}

void pace__rnn_plan_by_slot(pace__rnn_fast *self, size_t side)
{
    const uint32_t *slots = self->slots[side];
    uint32_t *start = self->slot_start[side], count = self->batch->slots;

    memset(start, 0, ((size_t)count + 2) * sizeof *start);
    for (size_t word = 0; word < self->words; word++)
        start[slots[word] + 2]++;
    for (size_t slot = 2; slot <= count; slot++)
        start[slot] += start[slot - 1];
    /* start[slot + 1] is where the slot's next word goes; in the end it is where the next slot begins. */
    for (size_t word = 0; word < self->words; word++)
        self->by_slot[side][start[slots[word] + 1]++] = (uint32_t)word;
}
