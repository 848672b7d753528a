#include "study/matrix.h"

#include "launch/cluster.h"
#include "options/internal.h"
#include "plan/words.h"

#include <assert.h>
#include <inttypes.h>
#include <paceline/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pace__study_kind_names[PACE__STUDY_KINDS + 1] = {
    "scaling", "weak", "batch", "modes", "balance", "prep", "servers", "converge", "cost", NULL};

const char *const pace__balance_names[] = {"off", "epoch", "auto", NULL};

static const char *const mode_names[] = {"auto",     "local",  "allreduce", "ps-sync",
                                         "ps-async", "ps-ssp", "local-sgd", NULL};

_Static_assert(sizeof mode_names / sizeof *mode_names == PACE_MODE_LOCAL_SGD + 2, "a name for each mode");

const char *pace__mode_word(int mode)
{
    assert(mode >= 0 && mode <= PACE_MODE_LOCAL_SGD);
    return mode_names[mode];
}

bool pace__mode_has_servers(int mode)
{
    return mode == PACE_MODE_PS_SYNC || mode == PACE_MODE_PS_ASYNC || mode == PACE_MODE_PS_SSP;
}

bool pace__mode_can_balance(int mode)
{
    return mode == PACE_MODE_PS_SYNC || mode == PACE_MODE_ALLREDUCE;
}

/* --- reading --- */

typedef struct axis_row {
    const char *name;         /* of its option */
    const char *const *words; /* NULL: numbers */
    double min, max;
} axis_row;

static const axis_row axes[PACE__AXES] = {
    [PACE__AXIS_MODE] = {"mode", mode_names + 1},
    [PACE__AXIS_WORKERS] = {"workers", .min = 1, .max = PACE__WORKERS_MAX},
    [PACE__AXIS_PS] = {"ps", .min = 0, .max = PACE__PS_MAX},
    [PACE__AXIS_BATCH] = {"batch", .min = 1, .max = 1e9},
    [PACE__AXIS_BALANCE] = {"balance", pace__balance_names},
};

static pace_status read_word(const axis_row *row, const char *word, const pace_log *log, int64_t *value)
{
    for (int i = 0; row->words[i]; i++) {
        if (strcmp(word, row->words[i]) == 0) {
            *value = i + (row->words == mode_names + 1);
            return PACE_OK;
        }
    }
    const char *nearest = pace_nearest_name(word, row->words);
    char list[160] = "";

    for (int i = 0; row->words[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", row->words[i]);
    return pace_fail(log, PACE_USAGE, "--%s: unknown %s '%s'%s%s%s; there is: %s", row->name, row->name, word,
                     nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "", list);
}

static bool contains(const pace__numbers *numbers, int64_t value)
{
    for (size_t i = 0; i < numbers->count; i++) {
        if (numbers->value[i] == value)
            return true;
    }
    return false;
}

/* At most PACE__AXIS_MAX of them, each once. */
static pace_status add_value(const axis_row *row, int64_t value, const pace_log *log, pace__numbers *found)
{
    if (contains(found, value))
        return PACE_OK;
    if (found->count == PACE__AXIS_MAX)
        return pace_fail(log, PACE_USAGE, "--%s: more than %d values", row->name, PACE__AXIS_MAX);
    found->value[found->count++] = value;
    return PACE_OK;
}

static pace_status read_numbers(const axis_row *row, const char *text, const pace_log *log,
                                pace__numbers *found)
{
    pace__number_list list;
    pace_status status = pace__words_numbers(row->name, text, row->min, row->max, log, &list);

    for (size_t i = 0; !status && i < list.count; i++)
        status = add_value(row, (int64_t)list.items[i], log, found);
    return status;
}

static pace_status read_words(const axis_row *row, const char *text, const pace_log *log,
                              pace__numbers *found)
{
    pace_status status = PACE_OK;

    for (bool more = true; more && !status;) {
        size_t length = strcspn(text, ",");
        char word[PACE_OPTION_NAME_MAX];
        int64_t value = 0;

        snprintf(word, sizeof word, "%.*s", (int)length, text);
        status = read_word(row, word, log, &value);
        if (!status)
            status = add_value(row, value, log, found);
        more = text[length] == ',';
        text += length + more;
    }
    return status;
}

pace_status pace__axis_read(pace__study_axis axis, const char *text, const pace_log *log,
                            pace__numbers *numbers)
{
    const axis_row *row = &axes[axis];
    pace__numbers found = {0};
    pace_status status =
        row->words ? read_words(row, text, log, &found) : read_numbers(row, text, log, &found);

    if (!status)
        *numbers = found;
    return status;
}

/* --- what a kind takes where nobody says anything --- */

static void put(pace__numbers *numbers, int64_t value)
{
    assert(numbers->count < PACE__AXIS_MAX);
    numbers->value[numbers->count++] = value;
}

static bool varies_workers(pace__study_kind kind)
{
    return kind == PACE__SCALING || kind == PACE__WEAK || kind == PACE__PREP || kind == PACE__CONVERGE ||
           kind == PACE__COST;
}

/* 1, 2, 4, as far as there is room, and 2 in any case. */
static void put_workers(const pace__matrix *matrix, pace__numbers *numbers)
{
    if (!varies_workers(matrix->kind)) {
        put(numbers, 2);
        return;
    }
    for (int64_t workers = 1; workers <= 2 || workers <= matrix->slots; workers *= 2)
        put(numbers, workers);
}

static void put_modes(pace__study_kind kind, pace__numbers *numbers)
{
    if (kind == PACE__MODES) {
        for (int mode = PACE_MODE_LOCAL; mode <= PACE_MODE_LOCAL_SGD; mode++)
            put(numbers, mode);
        return;
    }
    put(numbers, kind == PACE__PREP                             ? PACE_MODE_LOCAL
                 : kind == PACE__BATCH || kind == PACE__SERVERS ? PACE_MODE_PS_SYNC
                                                                : PACE_MODE_ALLREDUCE);
}

static void put_batches(const pace__matrix *matrix, pace__numbers *numbers)
{
    if (matrix->kind != PACE__BATCH) {
        put(numbers, matrix->kind == PACE__WEAK || matrix->rows ? matrix->batch_usual : 0);
        return;
    }
    put(numbers, matrix->network ? 32 : 100);
    put(numbers, matrix->network ? 128 : 1000);
    put(numbers, matrix->network ? 512 : 10000);
}

static void put_usual(const pace__matrix *matrix, pace__study_axis axis, pace__numbers *numbers)
{
    if (axis == PACE__AXIS_MODE)
        put_modes(matrix->kind, numbers);
    else if (axis == PACE__AXIS_WORKERS)
        put_workers(matrix, numbers);
    else if (axis == PACE__AXIS_BATCH)
        put_batches(matrix, numbers);
    else if (axis == PACE__AXIS_PS)
        for (int64_t ps = 0; ps <= (matrix->kind == PACE__SERVERS ? 2 : 0); ps++)
            put(numbers, ps);
    else
        for (int64_t balance = 0; balance <= (matrix->kind == PACE__BALANCE ? 2 : 0); balance++)
            put(numbers, balance);
}

int64_t pace__matrix_workers_max(const pace__matrix *matrix)
{
    pace__numbers numbers = matrix->axis[PACE__AXIS_WORKERS];
    int64_t most = 1;

    if (numbers.count == 0)
        put_workers(matrix, &numbers);
    for (size_t i = 0; i < numbers.count; i++)
        most = numbers.value[i] > most ? numbers.value[i] : most;
    return most;
}

/* --- cells --- */

/* A cell of weak has W times the rows in a step, and the same steps. */
static int64_t steps_of(const pace__matrix *matrix, int64_t batch)
{
    assert(matrix->rows == 0 || batch > 0);
    return matrix->rows ? (matrix->rows + batch - 1) / batch : 0;
}

static pace__cell_of prep_cell(const int64_t value[PACE__AXES])
{
    return (pace__cell_of){.mode = PACE_MODE_LOCAL, .workers = value[PACE__AXIS_WORKERS], .ps = -1};
}

static pace__cell_of cell_at(const pace__matrix *matrix, const int64_t value[PACE__AXES])
{
    int mode = (int)value[PACE__AXIS_MODE];
    int64_t workers = mode == PACE_MODE_LOCAL ? 1 : value[PACE__AXIS_WORKERS],
            batch = value[PACE__AXIS_BATCH];

    if (matrix->kind == PACE__PREP)
        return prep_cell(value);
    return (pace__cell_of){.mode = mode,
                           .balance = pace__mode_can_balance(mode) ? (int)value[PACE__AXIS_BALANCE] : 0,
                           .workers = workers,
                           .ps = pace__mode_has_servers(mode) ? value[PACE__AXIS_PS] : -1,
                           .batch = matrix->kind == PACE__WEAK ? batch * workers : batch,
                           .steps = steps_of(matrix, batch)};
}

static bool is_same(const pace__cell_of *left, const pace__cell_of *right)
{
    return left->mode == right->mode && left->balance == right->balance && left->workers == right->workers &&
           left->ps == right->ps && left->batch == right->batch && left->steps == right->steps;
}

static void add_cell(pace__cell_of *cells, size_t *count, pace__cell_of cell)
{
    for (size_t i = 0; i < *count; i++) {
        if (is_same(&cells[i], &cell))
            return;
    }
    cells[(*count)++] = cell;
}

/* Counts through all combinations, the last of these axes fastest. False: that was the last. */
static bool next_place(const pace__numbers axis[PACE__AXES], size_t place[PACE__AXES])
{
    static const pace__study_axis order[PACE__AXES] = {PACE__AXIS_MODE, PACE__AXIS_PS, PACE__AXIS_BATCH,
                                                       PACE__AXIS_BALANCE, PACE__AXIS_WORKERS};

    for (int i = PACE__AXES - 1; i >= 0; i--) {
        if (++place[order[i]] < axis[order[i]].count)
            return true;
        place[order[i]] = 0;
    }
    return false;
}

pace_status pace__matrix_cells(const pace__matrix *matrix, const pace_log *log, pace__cell_of **cells,
                               size_t *count)
{
    pace__numbers axis[PACE__AXES];
    size_t place[PACE__AXES] = {0}, product = 1, found = 0;

    for (int i = 0; i < PACE__AXES; i++) {
        axis[i] = matrix->axis[i];
        if (axis[i].count == 0)
            put_usual(matrix, (pace__study_axis)i, &axis[i]);
        product *= axis[i].count;
    }
    if (product > PACE__CELLS_MAX)
        return pace_fail(log, PACE_USAGE, "%zu cells: a study has room for %d", product, PACE__CELLS_MAX);
    pace__cell_of *list = calloc(product, sizeof *list);

    if (!list)
        return pace_fail(log, PACE_FAILED, "out of memory");
    do {
        int64_t value[PACE__AXES];

        for (int i = 0; i < PACE__AXES; i++)
            value[i] = axis[i].value[place[i]];
        add_cell(list, &found, cell_at(matrix, value));
    } while (next_place(axis, place));
    *cells = list;
    *count = found;
    return PACE_OK;
}

/* --- words --- */

const char *pace__cell_key(const pace__cell_of *cell, char text[PACE__CELL_TEXT])
{
    snprintf(text, PACE__CELL_TEXT,
             "mode=%s workers=%" PRId64 " ps=%" PRId64 " batch=%" PRId64 " steps=%" PRId64 " balance=%s",
             pace__mode_word(cell->mode), cell->workers, cell->ps, cell->batch, cell->steps,
             pace__balance_names[cell->balance]);
    return text;
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

const char *pace__cell_words(const pace__cell_of *cell, bool prep, char text[PACE__CELL_TEXT])
{
    char ps[32] = "", batch[48] = "", balance[32] = "";

    if (prep) {
        snprintf(text, PACE__CELL_TEXT, "%" PRId64 " process%s", cell->workers,
                 cell->workers == 1 ? "" : "es");
        return text;
    }
    if (cell->ps >= 0)
        snprintf(ps, sizeof ps, ", %" PRId64 " ps", cell->ps);
    if (cell->batch)
        snprintf(batch, sizeof batch, ", batch %" PRId64, cell->batch);
    if (cell->balance)
        snprintf(balance, sizeof balance, ", balance %s", pace__balance_names[cell->balance]);
    snprintf(text, PACE__CELL_TEXT, "%s, %" PRId64 " worker%s%s%s%s", pace__mode_word(cell->mode),
             cell->workers, plural(cell->workers), ps, batch, balance);
    return text;
}
