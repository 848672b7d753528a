#include "tune/tries.h"

#include "options/internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- which options --- */

/* Of layout, those that decide what is learned rather than who learns it. */
static const char *const shared_learning[] = {"early-stop", "exchange", "outer-lr", "outer-momentum",
                                              "staleness"};

/* Of identity, what all runs have in common: another one has other options, or is compared by other rows. */
static const char *const common[] = {"model", "validation"};

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static bool may_be_tried(const pace_option *row)
{
    if (row->kind == PACE_OPT_LIST || is_among(row->name, common, sizeof common / sizeof *common))
        return false;
    if (is_among(row->name, shared_learning, sizeof shared_learning / sizeof *shared_learning))
        return true;
    return row->mark == PACE_MARK_IDENTITY || row->mark == PACE_MARK_LENGTH;
}

static const pace_option *find_row(const pace_option *table, const char *name)
{
    while (table->name && strcmp(table->name, name) != 0)
        table++;
    return table->name ? table : NULL;
}

/* Of this model, or of all; what it is called elsewhere counts as a name for it. */
static const pace_option *find_option(const char *name, int model, bool *own)
{
    const pace_option *row = find_row(pace_train_options, name);

    *own = !row;
    return row ? row : find_row(pace_model_at(model)->options, name);
}

static const pace_option *find_translated(const char *name, int model)
{
    char plain[PACE_OPTION_NAME_MAX];
    const char *ours;
    bool own;

    pace__plain_name(name, plain);
    const pace_option *row = find_option(plain, model, &own);

    for (int turn = 0; !row && (ours = pace__synonym(plain, turn)); turn++)
        row = find_option(ours, model, &own);
    return row && may_be_tried(row) ? row : NULL;
}

static const char *nearest_option(const char *name, int model)
{
    const pace_option *const tables[] = {pace_train_options, pace_model_at(model)->options};
    const pace_option *best = find_translated(name, model);
    pace__nearest nearest = {.word = name};

    if (best)
        return best->name;
    for (size_t i = 0; i < 2; i++) {
        for (const pace_option *row = tables[i]; row->name; row++) {
            if (may_be_tried(row) && pace__nearest_offer(&nearest, row->name))
                best = row;
        }
    }
    return best ? best->name : NULL;
}

/* Of another kind of model; NULL: of none. */
static const char *kind_that_has(const char *name)
{
    for (int i = 0; pace_model_at(i); i++) {
        if (find_row(pace_model_at(i)->options, name))
            return pace_model_at(i)->name;
    }
    return NULL;
}

static pace_status unknown(const char *name, int model, const pace_log *log)
{
    const char *kind = kind_that_has(name), *nearest = nearest_option(name, model);

    if (kind)
        return pace_fail(log, PACE_USAGE, "--try %s: is for --model %s, not for %s", name, kind,
                         pace_model_at(model)->name);
    return pace_fail(
        log, PACE_USAGE,
        "--try %s: train has no such option%s%s%s; paceline train --help %s has those of this model", name,
        nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "",
        pace_model_at(model)->name);
}

static pace_status find(const char *name, int model, const pace_log *log, pace__try *try)
{
    try->row = find_option(name, model, &try->own);
    if (!try->row)
        return unknown(name, model, log);
    if (!may_be_tried(try->row))
        return pace_fail(
            log, PACE_USAGE,
            "--try %s: it is the same for all runs, behind --; what can be tried decides what a run "
            "learns, as lr, batch and epochs do",
            name);
    return PACE_OK;
}

/* --- its values --- */

typedef union value {
    bool flag;
    int64_t whole;
    uint64_t size;
    double real;
    const char *text;
    int choice;
} value;

static pace_status read_value(const pace__try *try, const char *text, const pace_log *log, value *found)
{
    char why[PACE_WHY_MAX];

    if (!pace__value_parse(try->row, text, found, why))
        return pace_fail(log, PACE_USAGE, "--try %s: '%.200s': %s", try->row->name, text, why);
    if (try->row->not_zero && pace__value_is_default(try->row, found))
        return pace_fail(
            log, PACE_USAGE,
            "--try %s: '%.200s': must be above 0; what is chosen without it is the first to be tried",
            try->row->name, text);
    return PACE_OK;
}

static pace_status read_end(const pace__try *try, const char *text, const pace_log *log, double *end)
{
    value found;
    pace_status status = read_value(try, text, log, &found);

    if (status)
        return status;
    *end = try->row->kind == PACE_OPT_INT ? (double)found.whole : found.real;
    if (try->row->kind == PACE_OPT_INT && fabs(*end) > PACE__TRY_WHOLE_MAX)
        status = pace_fail(log, PACE_USAGE, "--try %s: '%.200s': whole numbers of a range are at most %.0f",
                           try->row->name, text, PACE__TRY_WHOLE_MAX);
    return status;
}

/* "0.01..0.3" is cut in two. */
static pace_status read_range(pace__try *try, char *text, char *dots, const pace_log *log)
{
    if (try->row->kind != PACE_OPT_INT && try->row->kind != PACE_OPT_REAL)
        return pace_fail(log, PACE_USAGE,
                         "--try %s: '%.200s': ranges are of numbers; values are separated by commas",
                         try->row->name, text);
    *dots = '\0';
    pace_status status = read_end(try, text, log, &try->low);

    if (!status)
        status = read_end(try, dots + 2, log, &try->high);
    if (!status && !(try->low < try->high))
        status = pace_fail(log, PACE_USAGE,
                           "--try %s: a range goes from the lower to the higher end, as in 0.01..0.3",
                           try->row->name);
    try->logarithmic = !status && try->low > 0 && try->high / try->low >= PACE__FAR_APART;
    return status;
}

/* The value that begins here, ended and without its backslashes; *next: what follows its comma, or NULL. */
static char *cut_value(char *text, char **next)
{
    char *to = text, *from = text;

    for (; *from && *from != ','; from++) {
        if (from[0] == '\\' && from[1] == ',')
            from++;
        *to++ = *from;
    }
    *next = *from ? from + 1 : NULL;
    *to = '\0';
    return text;
}

static bool has_value(const pace__try *try, const char *text)
{
    for (size_t i = 0; i < try->count; i++) {
        if (strcmp(try->values[i], text) == 0)
            return true;
    }
    return false;
}

static pace_status read_list(pace__try *try, char *text, const pace_log *log)
{
    pace_status status = PACE_OK;

    while (text && !status) {
        char *next, *word = cut_value(text, &next);
        value found;

        if (strstr(word, "..") && try->row->kind != PACE_OPT_TEXT)
            return pace_fail(log, PACE_USAGE,
                             "--try %s: either a range, as in 0.01..0.3, or values, as in 0.01,0.1",
                             try->row->name);
        status = read_value(try, word, log, &found);
        if (!status && try->count == PACE__TRY_VALUES_MAX)
            status = pace_fail(log, PACE_USAGE, "--try %s: more than %d values", try->row->name,
                               PACE__TRY_VALUES_MAX);
        if (!status && !has_value(try, word))
            try->values[try->count++] = word;
        text = next;
    }
    return status;
}

static pace_status read_one(const char *text, int model, const pace_log *log, pace__try *try)
{
    size_t length = strlen(text);

    if (length >= PACE__TRY_TEXT_MAX)
        return pace_fail(log, PACE_USAGE, "--try %.40s...: longer than %d bytes", text,
                         PACE__TRY_TEXT_MAX - 1);
    try->text = strdup(text);
    if (!try->text)
        return pace_fail(log, PACE_FAILED, "out of memory");
    char *values = strchr(try->text, '=');

    if (!values || values == try->text || !values[1])
        return pace_fail(log, PACE_USAGE,
                         "--try %.200s: say what to try, as in --try lr=0.01..0.3 or --try l2=0,1e-6", text);
    *values++ = '\0';
    pace_status status = find(try->text, model, log, try);
    char *dots = strstr(values, "..");

    if (status)
        return status;
    return dots && !strchr(values, ',') && try->row->kind != PACE_OPT_TEXT
               ? read_range(try, values, dots, log)
               : read_list(try, values, log);
}

/* --- all of them --- */

static pace_status refuse_twice(const pace__tries *tries, const pace_log *log)
{
    const pace__try *last = &tries->of[tries->count - 1];

    for (size_t i = 0; i + 1 < tries->count; i++) {
        if (tries->of[i].row == last->row)
            return pace_fail(log, PACE_USAGE, "--try %s: is given twice; all its values go into one --try",
                             last->row->name);
    }
    return PACE_OK;
}

pace_status pace__tries_read(const pace_texts *texts, int model, const pace_log *log, pace__tries *tries)
{
    pace_status status = PACE_OK;

    *tries = (pace__tries){0};
    if (texts->count == 0)
        return pace_fail(log, PACE_USAGE,
                         "there is nothing to try: --try NAME=VALUES, as in --try lr=0.01..0.3");
    for (size_t i = 0; i < texts->count && !status; i++) {
        if (tries->count == PACE__TRIES_MAX)
            return pace_fail(log, PACE_USAGE, "more than %d options to try", PACE__TRIES_MAX);
        status = read_one(texts->items[i], model, log, &tries->of[tries->count++]);
        if (!status)
            status = refuse_twice(tries, log);
    }
    return status;
}

void pace__tries_release(pace__tries *tries)
{
    for (size_t i = 0; i < tries->count; i++)
        free(tries->of[i].text);
    *tries = (pace__tries){0};
}

void *pace__try_field(const pace__try *try, pace_train_config *config)
{
    assert(try->row);
    return (char *)(try->own ? (void *)&config->own : (void *)config) + try->row->offset;
}
