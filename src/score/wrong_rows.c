#include "score/wrong_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a kept line costs besides its bytes, roughly. */
#define LINE_COST (sizeof(pace__wrong_row) + 32)

/* --- the surest --- */

static bool is_less_sure(const pace__wrong_row *one, const pace__wrong_row *other)
{
    return one->probability < other->probability ||
           (one->probability == other->probability && one->row > other->row);
}

static void swap(pace__wrong_row *one, pace__wrong_row *other)
{
    pace__wrong_row kept = *one;

    *one = *other;
    *other = kept;
}

static void sift_down(pace__wrong_rows *self)
{
    pace__wrong_row *rows = self->rows;

    for (size_t at = 0, child; (child = 2 * at + 1) < self->count; at = child) {
        if (child + 1 < self->count && is_less_sure(&rows[child + 1], &rows[child]))
            child++;
        if (!is_less_sure(&rows[child], &rows[at]))
            return;
        swap(&rows[child], &rows[at]);
    }
}

static void sift_up(pace__wrong_rows *self)
{
    pace__wrong_row *rows = self->rows;

    for (size_t at = self->count - 1; at > 0 && is_less_sure(&rows[at], &rows[(at - 1) / 2]);
         at = (at - 1) / 2)
        swap(&rows[at], &rows[(at - 1) / 2]);
}

static void drop_least_sure(pace__wrong_rows *self)
{
    pace__wrong_row *least = &self->rows[0];

    self->bytes -= least->size + LINE_COST;
    free(least->line);
    least->line = NULL;
    self->surest_dropped = *least;
    self->dropped++;
    *least = self->rows[--self->count];
    sift_down(self);
}

static bool grow(pace__wrong_rows *self)
{
    size_t room = 2 * self->room + 64;
    pace__wrong_row *rows = realloc(self->rows, room * sizeof *rows);

    if (!rows)
        return false;
    self->rows = rows;
    self->room = room;
    return true;
}

/* Takes the line. */
static pace_status keep(pace__wrong_rows *self, const pace__wrong_row *row)
{
    if (self->count == self->room && !grow(self)) {
        free(row->line);
        return pace_fail(self->log, PACE_FAILED, "out of memory for the rows of --errors");
    }
    self->rows[self->count++] = *row;
    self->bytes += row->size + LINE_COST;
    sift_up(self);
    while (self->bytes > self->bytes_max && self->count > 1)
        drop_least_sure(self);
    return PACE_OK;
}

/* --- rows in words --- */

static void write_words(const pace__wrong_rows *self, const pace__rows *rows, size_t at, FILE *file)
{
    const uint32_t *words = pace__row_words(rows, at);

    for (uint32_t i = 0; i < rows->length[at]; i++) {
        pace__word word = pace__vocabulary_word(self->scorer->saved.vocabulary, words[i]);

        fprintf(file, "%s%.*s", i > 0 ? " " : "", (int)word.size, word.text);
    }
}

static void write_features(const pace__wrong_rows *self, const pace__rows *rows, size_t at, FILE *file)
{
    const pace__store_info *info = &self->store->info;
    uint64_t first = pace__row_start(rows, at);

    for (uint64_t i = first; i < pace__row_start(rows, at + 1); i++) {
        char name[PACE__FEATURE_NAME_BYTES];

        if (rows->ids[i] < info->ids_seen)
            pace__feature_name(&info->encoding, self->original[rows->ids[i]], name);
        else
            pace__unseen_name(&info->encoding, (unsigned)(i - first), name);
        fprintf(file, "%s%s", i > first ? " " : "", name);
        if (rows->values)
            fprintf(file, ":%.6g", (double)rows->values[i]);
    }
}

static void write_row(const pace__wrong_rows *self, const pace__mistake *mistake, const pace__rows *rows,
                      size_t at, FILE *file)
{
    uint64_t first;
    uint32_t part = pace__store_part_of(self->store, self->set, mistake->row, &first);
    const char *path = self->store->parts[part].path, *slash = strrchr(path, '/');

    fprintf(file, "%s\t%" PRIu64 "\t%u\t%.9g\t", slash ? slash + 1 : path, mistake->row - first,
            mistake->actual, mistake->predicted ? mistake->probability : 1 - mistake->probability);
    if (rows->length)
        write_words(self, rows, at, file);
    else
        write_features(self, rows, at, file);
    putc('\n', file);
}

pace_status pace__wrong_rows_add(void *user, const pace__mistake *mistake, const pace__rows *rows, size_t at)
{
    pace__wrong_rows *self = user;
    pace__wrong_row row = {.probability = mistake->probability, .row = mistake->row};

    if (self->dropped > 0 && is_less_sure(&row, &self->surest_dropped)) {
        self->dropped++;
        return PACE_OK;
    }
    FILE *file = open_memstream(&row.line, &row.size);

    if (file)
        write_row(self, mistake, rows, at, file);
    if (!file || ferror(file) + fclose(file) != 0) {
        free(row.line);
        return pace_fail(self->log, PACE_FAILED, "out of memory for the rows of --errors");
    }
    return keep(self, &row);
}

/* --- all of it --- */

pace_status pace__wrong_rows_open(const pace__store *store, const pace__scorer *scorer, int set,
                                  const pace_eval_config *config, size_t bytes_max, pace__wrong_rows *wrong,
                                  const pace_log *log)
{
    const char *read[] = {config->data, config->run};

    *wrong =
        (pace__wrong_rows){.store = store, .scorer = scorer, .set = set, .bytes_max = bytes_max, .log = log};
    pace_status status = store->info.encoding.kind == PACE__TEXT
                             ? PACE_OK
                             : pace__store_read_ids(store, &wrong->original, log);

    if (status)
        return status;
    status = pace__predictions_open(config->errors, config->force, &(pace_texts){read, 2}, log, &wrong->file);
    if (status)
        free(wrong->original);
    return status;
}

static int surest_first(const void *left, const void *right)
{
    return is_less_sure(right, left) ? -1 : is_less_sure(left, right);
}

static pace_status write_lines(pace__wrong_rows *self)
{
    if (self->count > 0) /* else there may be no array */
        qsort(self->rows, self->count, sizeof *self->rows, surest_first);
    for (size_t i = 0; i < self->count && !ferror(self->file.file); i++)
        fwrite(self->rows[i].line, 1, self->rows[i].size, self->file.file);
    if (self->dropped > 0)
        pace_say(self->log, PACE_WARN,
                 "--errors has the surest %zu of %" PRIu64 " mistakes: all would take more than %zu MiB",
                 self->count, self->count + self->dropped, self->bytes_max >> 20);
    return pace__predictions_flush(&self->file);
}

pace_status pace__wrong_rows_close(pace__wrong_rows *wrong, pace_status status)
{
    if (!status)
        status = write_lines(wrong);
    status = pace__predictions_close(&wrong->file, status);
    for (size_t i = 0; i < wrong->count; i++)
        free(wrong->rows[i].line);
    free(wrong->rows);
    free(wrong->original);
    return status;
}
