#include "data/input/shown.h"
#include "files/file.h"
#include "files/open.h"
#include "prep/reviews/words.h"
#include "prep/reviews/words_file.h"
#include "prep/reviews/words_top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINES_BYTES ((size_t)256 << 10)

/* --- lines of a file --- */

typedef struct lines {
    FILE *file;
    const char *name;
    const pace_log *log;
    char *buffer;
    size_t at, used;
    bool ended;
    uint64_t number; /* of the line given out last; the first one is 1 */
} lines;

static pace_status lines_open(lines *self, FILE *file, const char *name, const pace_log *log)
{
    *self = (lines){.file = file, .name = name, .log = log};
    self->buffer = malloc(LINES_BYTES);
    return self->buffer ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
}

static pace_status bad_line(const lines *self, const char *text, size_t size, const char *what)
{
    return pace_fail(self->log, PACE_BAD_DATA, "%s: line %" PRIu64 ": \"%s\" %s", self->name, self->number,
                     pace__show(text, size).text, what);
}

static pace_status lines_fill(lines *self)
{
    memmove(self->buffer, self->buffer + self->at, self->used - self->at);
    self->used -= self->at;
    self->at = 0;
    size_t got = fread(self->buffer + self->used, 1, LINES_BYTES - self->used, self->file);

    self->used += got;
    self->ended = got == 0;
    if (ferror(self->file))
        return pace_fail(self->log, PACE_IO, "%s: cannot read: %s", self->name, strerror(errno));
    return PACE_OK;
}

/* Without its end, and valid until the next one. *found is false behind the last one. */
static pace_status lines_next(lines *self, const char **text, size_t *size, bool *found)
{
    const char *end;

    self->number++;
    while (!(end = memchr(self->buffer + self->at, '\n', self->used - self->at)) && !self->ended) {
        if (self->used - self->at == LINES_BYTES)
            return bad_line(self, self->buffer, self->used, "is longer than any word");
        pace_status status = lines_fill(self);

        if (status)
            return status;
    }
    *found = self->used > self->at;
    *text = self->buffer + self->at;
    *size = end ? (size_t)(end - *text) : self->used - self->at;
    self->at += *size + (end != NULL);
    return PACE_OK;
}

/* "word<TAB>count" */
static pace_status parse_count(const lines *self, const char *text, size_t size, pace__word *word)
{
    const char *tab = memchr(text, '\t', size);
    size_t length = tab ? (size_t)(tab - text) : size;

    if (!tab || !pace__count_read(tab + 1, size - length - 1, &word->count))
        return bad_line(self, text, size, "is not a word, a tab and a count");
    if (!pace__is_word(text, length))
        return bad_line(self, text, length, "is no word");
    if (word->count > PACE__COUNT_MAX)
        return bad_line(self, text, size, "has a count above 2^63");
    word->text = text;
    word->size = (uint32_t)length;
    return PACE_OK;
}

/* --- a vocabulary from elsewhere --- */

/* What a walk over the file knows. */
typedef struct walk {
    lines from;
    enum { UNKNOWN, COUNTS, ALONE } form; /* the first line decides */
    bool behind;                          /* the words: at the stop words of a vocabulary.txt */
} walk;

/* A line that is an empty one, or behind it. */
static pace_status pass_over(walk *self, const char *text, size_t size)
{
    if (self->form != COUNTS || (self->behind && !pace__is_word(text, size)))
        return bad_line(&self->from, text, size, "is no word");
    self->behind = true;
    return PACE_OK;
}

/* The next word, *found: is there one? Words alone are the less frequent the later they come. */
static pace_status next_word(walk *self, pace__word *word, bool *found)
{
    for (;;) {
        const char *text;
        size_t size;
        pace_status status = lines_next(&self->from, &text, &size, found);

        if (status || !*found)
            return status;
        if (self->from.number == 1 && size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
            text += 3;
            size -= 3;
        }
        size -= size > 0 && text[size - 1] == '\r';
        if (self->form == UNKNOWN)
            self->form = memchr(text, '\t', size) ? COUNTS : ALONE;
        if (size == 0 || self->behind) {
            status = pass_over(self, text, size);
            if (status)
                return status;
            continue;
        }
        if (self->form == COUNTS)
            return parse_count(&self->from, text, size, word);
        *word = (pace__word){.text = text, .size = (uint32_t)size, .count = UINT64_MAX - self->from.number};
        return pace__is_word(text, size) ? PACE_OK : bad_line(&self->from, text, size, "is no word");
    }
}

static pace_status walk_open(walk *self, const char *path, const pace_log *log)
{
    FILE *file;
    pace_status status =
        pace__open_stdio(path, PACE__TO_READ, log, &file); /* it is read twice: no pipe will do */

    if (status)
        return status;
    *self = (walk){.form = UNKNOWN};
    status = lines_open(&self->from, file, path, log);

    if (status)
        fclose(file);
    return status;
}

static void walk_close(walk *self)
{
    fclose(self->from.file);
    free(self->from.buffer);
}

static uint32_t find(const pace__vocabulary *vocabulary, const pace__word *word)
{
    return pace__vocabulary_find(vocabulary, pace__word_hash(word->text, word->size), word->text, word->size);
}

static pace_status offer_all(const char *path, const pace__vocabulary *stops, pace__words_top *top)
{
    pace__word word;
    bool found = true, alone;
    walk self;
    pace_status status = walk_open(&self, path, top->log);

    if (status)
        return status;
    while (!(status = next_word(&self, &word, &found)) && found) {
        if (find(stops, &word) != PACE__ID_STOP)
            status = pace__words_top_offer(top, &word, self.from.number, NULL);
        if (status)
            break;
    }
    alone = self.form == ALONE;
    walk_close(&self);
    pace__words_top_sort(top);
    for (uint32_t i = 0; i < top->count && alone; i++)
        top->words[i].word.count = top->count - i;
    return status;
}

static pace_status second_time(const char *path, const pace__word *word, uint64_t line, uint64_t before,
                               const pace_log *log)
{
    return pace_fail(log, PACE_BAD_DATA, "%s: line %" PRIu64 ": \"%s\" is in line %" PRIu64 " already", path,
                     line, pace__show(word->text, word->size).text, before);
}

static int compare_spelling(const void *left, const void *right)
{
    const pace__top_word *a = left, *b = right;
    int order = pace__word_compare(&a->word, &b->word);

    return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* Is a word kept twice? */
static pace_status check_kept(const char *path, const pace__words_top *top)
{
    pace__top_word *sorted = malloc((top->count + 1) * sizeof *sorted);
    pace_status status = PACE_OK;

    if (!sorted)
        return pace_fail(top->log, PACE_FAILED, "out of memory for %u words", top->count);
    if (top->count > 0)
        memcpy(sorted, top->words, top->count * sizeof *sorted);
    qsort(sorted, top->count, sizeof *sorted, compare_spelling);
    for (uint32_t i = 1; i < top->count && !status; i++) {
        if (pace__word_compare(&sorted[i - 1].word, &sorted[i].word) == 0)
            status = second_time(path, &sorted[i].word, sorted[i].line, sorted[i - 1].line, top->log);
    }
    free(sorted);
    return status;
}

/* Is a word that was kept there again, too rare to be kept? Its count is wrong then. */
static pace_status check_rest(const char *path, const pace__words_top *top,
                              const pace__vocabulary *vocabulary)
{
    pace__word word;
    bool found = true;
    walk self;
    pace_status status = walk_open(&self, path, top->log);

    if (status)
        return status;
    while (!status && !(status = next_word(&self, &word, &found)) && found) {
        uint32_t id = find(vocabulary, &word);

        if (id == PACE__ID_UNKNOWN || id == PACE__ID_STOP)
            continue;
        uint64_t line = top->words[id - PACE__ID_WORDS].line, other = self.from.number;

        if (line != other)
            status =
                second_time(path, &word, line > other ? line : other, line > other ? other : line, top->log);
    }
    walk_close(&self);
    return status;
}

pace_status pace__words_read(const char *path, uint32_t keep, const pace__word *stops, uint32_t stop_count,
                             const pace_log *log, pace__vocabulary **vocabulary)
{
    pace__words_top top = {.keep = keep, .log = log};
    pace__vocabulary *only_stops = NULL, *made = NULL;
    pace_status status = pace__vocabulary_create(NULL, 0, stops, stop_count, log, &only_stops);

    if (!status)
        status = offer_all(path, only_stops, &top);
    if (!status && top.count == 0)
        status = pace_fail(log, PACE_BAD_DATA, "%s: has no words%s", path,
                           stop_count > 0 ? " besides stop words" : "");
    if (!status)
        status = check_kept(path, &top);
    if (!status)
        status = pace__words_top_vocabulary(&top, stops, stop_count, &made);
    if (!status)
        status = check_rest(path, &top, made);
    if (status)
        pace__vocabulary_free(made);
    else
        *vocabulary = made;
    pace__vocabulary_free(only_stops);
    pace__words_top_release(&top);
    return status;
}

/* --- filters --- */

static pace_status put_word(FILE *out, const pace__word *word, const pace_log *log)
{
    if (fwrite(word->text, word->size, 1, out) != 1 || fprintf(out, "\t%" PRIu64 "\n", word->count) < 0)
        return pace_fail(log, PACE_IO, "cannot write: %s", strerror(errno));
    return PACE_OK;
}

static pace_status flush(FILE *out, const pace_log *log)
{
    return fflush(out) == 0 ? PACE_OK : pace_fail(log, PACE_IO, "cannot write: %s", strerror(errno));
}

static pace_status print_files(const char *const *paths, size_t count, FILE *out, const _Atomic int *stop,
                               const pace_log *log)
{
    pace__words_merge *merge = NULL;
    pace__counted word;
    bool found = true;
    pace_status status = pace__words_merge_open(paths, count, 0, 1, log, &merge);

    while (!status && !(status = pace__words_merge_next(merge, &word, &found)) && found)
        status = stop && *stop ? PACE_INTERRUPTED : put_word(out, &word.word, log);
    pace__words_merge_free(merge);
    return status ? status : flush(out, log);
}

pace_status pace__words_print(pace__word_counter *counter, FILE *out, const _Atomic int *stop,
                              const pace_log *log)
{
    pace_status status = pace__word_counter_finish(counter);

    if (status)
        return status;
    uint32_t count = pace__word_counter_stats(counter).generations;
    char **paths = pace__word_counter_paths(counter);

    if (!paths)
        return pace_fail(log, PACE_FAILED, "out of memory");
    status = print_files((const char *const *)paths, count, out, stop, log);
    for (uint32_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    return status;
}

/* The word whose counts are being added up, with a text of its own. */
typedef struct sum {
    pace__word word;
    char text[PACE__TOKEN_BYTES_MAX];
} sum;

static pace_status add_line(sum *self, const lines *from, const pace__word *word, FILE *out)
{
    if (self->word.text && pace__word_compare(&self->word, word) == 0) {
        self->word.count += word->count; /* neither is above 2^63 */
        return self->word.count <= PACE__COUNT_MAX && self->word.count >= word->count
                   ? PACE_OK
                   : bad_line(from, word->text, word->size, "has a sum of counts above 2^63");
    }
    if (self->word.text) {
        pace_status status = put_word(out, &self->word, from->log);

        if (status)
            return status;
    }
    memcpy(self->text, word->text, word->size);
    self->word = (pace__word){.text = self->text, .size = word->size, .count = word->count};
    return PACE_OK;
}

pace_status pace__words_sum(FILE *in, const char *in_name, FILE *out, const pace_log *log)
{
    sum self = {.word = {.text = NULL}};
    const char *text;
    size_t size;
    bool found = true;
    lines from;
    pace_status status = lines_open(&from, in, in_name, log);

    while (!status && !(status = lines_next(&from, &text, &size, &found)) && found) {
        pace__word word;

        status = parse_count(&from, text, size, &word);
        if (!status)
            status = add_line(&self, &from, &word, out);
    }
    free(from.buffer);
    if (!status && self.word.text)
        status = put_word(out, &self.word, log);
    return status ? status : flush(out, log);
}
