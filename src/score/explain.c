#include "score/explain.h"

#include "metrics/scoring.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the heaviest --- */

static bool is_lighter(const pace__reason *one, const pace__reason *other)
{
    double sizes[] = {fabs(one->amount), fabs(other->amount)};

    return sizes[0] < sizes[1] || (sizes[0] == sizes[1] && one->rank > other->rank);
}

static void sift_down(pace__explainer *self)
{
    pace__reason *reasons = self->reasons;

    for (size_t at = 0, child; (child = 2 * at + 1) < self->count; at = child) {
        if (child + 1 < self->count && is_lighter(&reasons[child + 1], &reasons[child]))
            child++;
        if (!is_lighter(&reasons[child], &reasons[at]))
            return;
        pace__reason swap = reasons[at];

        reasons[at] = reasons[child];
        reasons[child] = swap;
    }
}

static void sift_up(pace__explainer *self)
{
    pace__reason *reasons = self->reasons;

    for (size_t at = self->count - 1; at > 0 && is_lighter(&reasons[at], &reasons[(at - 1) / 2]);
         at = (at - 1) / 2) {
        pace__reason swap = reasons[at];

        reasons[at] = reasons[(at - 1) / 2];
        reasons[(at - 1) / 2] = swap;
    }
}

static double add_term(void *user, const pace__term *term)
{
    pace__explainer *self = user;
    pace__reason reason = {.amount = term->amount, .rank = self->told++, .count = term->count};

    assert(term->count <= PACE__TERM_IDS_MAX);
    memcpy(reason.ids, term->ids, term->count * sizeof *term->ids);
    if (self->count < self->max) {
        self->reasons[self->count++] = reason;
        sift_up(self);
    } else if (is_lighter(&self->reasons[0], &reason)) {
        self->reasons[0] = reason;
        sift_down(self);
    }
    return self->count < self->max ? 0 : fabs(self->reasons[0].amount);
}

/* --- leaving out --- */

static int by_id(const void *left, const void *right)
{
    uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;

    return (one > other) - (one < other);
}

/* The words of a text, each once, by rising id: how many. */
static uint32_t distinct(const uint32_t *text, uint32_t length, uint32_t *words)
{
    uint32_t count = 0;

    memcpy(words, text, length * sizeof *words);
    qsort(words, length, sizeof *words, by_id);
    for (uint32_t i = 0; i < length; i++) {
        if (i == 0 || words[i] != words[i - 1])
            words[count++] = words[i];
    }
    return count;
}

/* The text without a word, as prep would store it. */
static void put_without(pace__explainer *self, const uint32_t *text, uint32_t length, uint32_t word)
{
    uint32_t columns = self->without.columns, kept = 0;
    size_t row = self->without.rows++;
    uint32_t *ids = self->ids + row * columns;

    for (uint32_t i = 0; i < length; i++) {
        if (text[i] != word)
            ids[kept++] = text[i];
    }
    if (kept == 0)
        ids[kept++] = PACE__ID_EMPTY;
    if (self->without.front)
        memmove(ids + columns - kept, ids, kept * sizeof *ids);
    memset(self->without.front ? ids : ids + kept, 0, (columns - kept) * sizeof *ids); /* PACE__ID_PAD */
    self->length[row] = kept;
}

static pace_status leave_out(pace__explainer *self, const pace__rows *rows, size_t row, double logit)
{
    const uint32_t *text = pace__row_words(rows, row);
    uint32_t length = rows->length[row], count = distinct(text, length, self->words);
    float logits[PACE__SCORE_ROWS];
    pace_status status = PACE_OK;

    if (text[0] == PACE__ID_EMPTY)
        return PACE_OK;
    for (uint32_t at = 0; !status && at < count; at += (uint32_t)self->without.rows) {
        self->without.rows = 0;
        for (uint32_t i = at; i < count && self->without.rows < PACE__SCORE_ROWS; i++)
            put_without(self, text, length, self->words[i]);
        status = pace__scorer_logits(self->scorer, &self->without, logits);
        for (size_t i = 0; !status && i < self->without.rows; i++)
            add_term(self, &(pace__term){&self->words[at + i], 1, logit - (double)logits[i]});
    }
    return status;
}

static pace_status make_room(pace__explainer *self)
{
    uint32_t columns = self->scorer->saved.encoding.length;

    self->ids = malloc((size_t)PACE__SCORE_ROWS * columns * sizeof *self->ids);
    self->length = malloc(PACE__SCORE_ROWS * sizeof *self->length);
    self->label = calloc(PACE__SCORE_ROWS, sizeof *self->label);
    self->words = malloc(columns * sizeof *self->words);
    self->without = (pace__rows){.columns = columns,
                                 .ids = self->ids,
                                 .label = self->label,
                                 .length = self->length,
                                 .front = self->scorer->saved.encoding.pad_front};
    return self->ids && self->length && self->label && self->words
               ? PACE_OK
               : pace_fail(self->log, PACE_FAILED, "out of memory: texts of %u words", columns);
}

/* --- all --- */

static bool has_terms(const pace__explainer *self)
{
    return pace__model_has_terms(&self->scorer->saved.model.plan);
}

pace_status pace__explainer_init(pace__explainer *why, pace__scorer *scorer, size_t max, const pace_log *log)
{
    assert(max >= 1 && max <= PACE__REASONS_MAX);
    *why = (pace__explainer){.scorer = scorer, .max = max, .log = log};
    why->reasons = malloc(max * sizeof *why->reasons);
    pace_status status = !why->reasons    ? pace_fail(log, PACE_FAILED, "out of memory")
                         : has_terms(why) ? PACE_OK
                                          : make_room(why);

    if (status)
        pace__explainer_release(why);
    return status;
}

void pace__explainer_release(pace__explainer *why)
{
    free(why->reasons);
    free(why->ids);
    free(why->length);
    free(why->label);
    free(why->words);
    *why = (pace__explainer){0};
}

pace_status pace__explain(pace__explainer *why, const pace__rows *rows, size_t row, double logit)
{
    why->count = 0;
    why->told = 0;
    return has_terms(why) ? pace__model_terms(why->scorer->model, rows, row, add_term, why)
                          : leave_out(why, rows, row, logit);
}

/* --- in words --- */

static int heaviest_first(const void *left, const void *right)
{
    return is_lighter(right, left) ? -1 : is_lighter(left, right);
}

/* Of sparse rows, a place in the model's list of ids; of two features that count together, both. */
static void write_name(const pace__explainer *self, const pace__reason *reason, FILE *file)
{
    const pace__saved *saved = &self->scorer->saved;
    char name[PACE__FEATURE_NAME_MAX];

    if (saved->vocabulary) {
        pace__saved_phrase(saved, reason->ids, reason->count, name, sizeof name);
        fputs(name, file);
        return;
    }
    for (unsigned i = 0; i < reason->count; i++) {
        pace__feature_name(&saved->encoding, saved->model.ids[reason->ids[i]], name);
        fprintf(file, "%s%s", i > 0 ? " * " : "", name);
    }
}

void pace__explanation_write(pace__explainer *why, FILE *file)
{
    qsort(why->reasons, why->count, sizeof *why->reasons, heaviest_first);
    for (size_t i = 0; i < why->count; i++) {
        putc('\t', file);
        write_name(why, &why->reasons[i], file);
        fprintf(file, "\t%.6g", why->reasons[i].amount);
    }
}
