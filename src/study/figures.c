#include "study/figures.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- columns --- */

typedef struct column_row {
    const char *name, *heading;
    pace__unit unit;
    bool text;
} column_row;

static const column_row columns[PACE__C_PUBLISHED] = {
    [PACE__C_MODE] = {"mode", "mode", .text = true},
    [PACE__C_WORKERS] = {"workers", "workers", PACE__COUNT},
    [PACE__C_PS] = {"ps", "servers", PACE__COUNT},
    [PACE__C_BATCH] = {"batch", "batch", PACE__COUNT},
    [PACE__C_BALANCE] = {"balance", "balance", .text = true},
    [PACE__C_MACHINE] = {"machine", "machine type", .text = true},
    [PACE__C_MACHINES] = {"machines", "machines", PACE__COUNT},
    [PACE__C_RUNS] = {"runs", "runs", .text = true},
    [PACE__C_TIME] = {"seconds", "time", PACE__SECONDS},
    [PACE__C_ROWS_S] = {"samples_per_second", "rows/s", PACE__COUNT},
    [PACE__C_SPEEDUP] = {"speedup", "speedup", PACE__REAL},
    [PACE__C_EFFICIENCY] = {"efficiency", "efficiency", PACE__SHARE},
    [PACE__C_STEPS] = {"steps", "steps", PACE__COUNT},
    [PACE__C_ACCURACY] = {"accuracy", "accuracy", PACE__SHARE},
    [PACE__C_AUC] = {"auc", "AUC", PACE__REAL},
    [PACE__C_F1] = {"f1", "F1", PACE__REAL},
    [PACE__C_LOGLOSS] = {"logloss", "test log-loss", PACE__REAL},
    [PACE__C_TRAIN_LOSS] = {"train_loss", "training loss", PACE__REAL},
    [PACE__C_TO_TIME] = {"seconds_to_threshold", "time to threshold", PACE__SECONDS},
    [PACE__C_TO_EPOCHS] = {"epochs_to_threshold", "epochs to threshold", PACE__REAL},
    [PACE__C_ROW_BYTES] = {"bytes_per_row", "sent per row", PACE__BYTES},
    [PACE__C_SENT] = {"bytes_sent", "sent", PACE__BYTES},
    [PACE__C_NETWORK] = {"bytes_sent_per_second", "network", PACE__RATE},
    [PACE__C_CPU] = {"cores", "CPU", PACE__SHARE},
    [PACE__C_MEMORY] = {"memory_bytes", "memory", PACE__BYTES},
    [PACE__C_READ] = {"disk_read_bytes", "disk read", PACE__BYTES},
    [PACE__C_WRITTEN] = {"disk_written_bytes", "disk written", PACE__BYTES},
    [PACE__C_IMBALANCE] = {"server_imbalance", "largest server", PACE__REAL},
    [PACE__C_INPUT_S] = {"input_bytes_per_second", "input", PACE__RATE},
    [PACE__C_COST_TIME] = {"machine_seconds", "time there", PACE__SECONDS},
    [PACE__C_COST] = {"cost", "cost", PACE__REAL},
    [PACE__C_BOTTLENECK] = {"bottleneck", "bottleneck", .text = true},
    [PACE__C_PREDICTED] = {"predicted_samples_per_second", "predicted rows/s", PACE__COUNT},
    [PACE__C_PREDICTED_OFF] = {"predicted_off", "off by", PACE__SHARE},
    [PACE__C_EXPECTED] = {"expected_samples_per_second", "expected rows/s", PACE__COUNT},
    [PACE__C_EXPECTED_OFF] = {"expected_off", "off by", PACE__SHARE},
    [PACE__C_PUBLISHED_SPEEDUP] = {"published_speedup", "published speedup", PACE__REAL},
};

/* Of what is published. */
static const column_row published_columns[PACE__METRICS] = {
    [PACE__M_SECONDS] = {"published_seconds", "published time", PACE__SECONDS},
    [PACE__M_ROWS_S] = {"published_samples_per_second", "published rows/s", PACE__COUNT},
    [PACE__M_ACCURACY] = {"published_accuracy", "published accuracy", PACE__SHARE},
    [PACE__M_F1] = {"published_f1", "published F1", PACE__REAL},
    [PACE__M_TRAIN_LOSS] = {"published_loss", "published loss", PACE__REAL},
    [PACE__M_SENT] = {"published_bytes_sent", "published network", PACE__BYTES},
    [PACE__M_DISK_READ] = {"published_disk_read_bytes", "published disk read", PACE__BYTES},
    [PACE__M_DISK_WRITTEN] = {"published_disk_written_bytes", "published disk written", PACE__BYTES},
    [PACE__M_CPU_S] = {"published_cores", "published CPU", PACE__SHARE},
};

#define COLUMNS_MAX 16

/* What a kind shows, behind the settings and before what was expected and published. */
static const pace__column shown[PACE__STUDY_KINDS][COLUMNS_MAX] = {
    [PACE__SCALING] = {PACE__C_TIME, PACE__C_ROWS_S, PACE__C_SPEEDUP, PACE__C_EFFICIENCY, PACE__C_ACCURACY,
                       PACE__C_F1, PACE__C_LOGLOSS, PACE__C_BOTTLENECK},
    [PACE__WEAK] = {PACE__C_TIME, PACE__C_STEPS, PACE__C_ROWS_S, PACE__C_SPEEDUP, PACE__C_EFFICIENCY,
                    PACE__C_BOTTLENECK},
    [PACE__BATCH] = {PACE__C_STEPS, PACE__C_TIME, PACE__C_ROWS_S, PACE__C_ACCURACY, PACE__C_LOGLOSS,
                     PACE__C_ROW_BYTES, PACE__C_BOTTLENECK},
    [PACE__MODES] = {PACE__C_TIME, PACE__C_ROWS_S, PACE__C_ACCURACY, PACE__C_LOGLOSS, PACE__C_CPU,
                     PACE__C_MEMORY, PACE__C_SENT, PACE__C_NETWORK, PACE__C_READ, PACE__C_WRITTEN,
                     PACE__C_BOTTLENECK},
    [PACE__BALANCE] = {PACE__C_TIME, PACE__C_ROWS_S, PACE__C_SPEEDUP, PACE__C_LOGLOSS, PACE__C_BOTTLENECK},
    [PACE__PREP] = {PACE__C_TIME, PACE__C_ROWS_S, PACE__C_INPUT_S, PACE__C_SPEEDUP, PACE__C_EFFICIENCY},
    [PACE__SERVERS] = {PACE__C_TIME, PACE__C_ROWS_S, PACE__C_SENT, PACE__C_NETWORK, PACE__C_IMBALANCE,
                       PACE__C_CPU, PACE__C_BOTTLENECK},
    [PACE__CONVERGE] = {PACE__C_TIME, PACE__C_TO_TIME, PACE__C_TO_EPOCHS, PACE__C_TRAIN_LOSS, PACE__C_LOGLOSS,
                        PACE__C_ACCURACY, PACE__C_F1},
    [PACE__COST] = {PACE__C_TIME, PACE__C_ROWS_S, PACE__C_COST_TIME, PACE__C_COST, PACE__C_LOGLOSS},
};

static const column_row *row_of(pace__column column)
{
    assert(column < PACE__COLUMNS);
    return column < PACE__C_PUBLISHED ? &columns[column] : &published_columns[column - PACE__C_PUBLISHED];
}

const char *pace__column_heading(const pace__figures *figures, pace__column column)
{
    if (column == PACE__C_WORKERS && figures->section->kind == PACE__PREP)
        return "processes";
    return row_of(column)->heading;
}

const char *pace__column_name(pace__column column)
{
    return row_of(column)->name;
}

pace__unit pace__column_unit(pace__column column)
{
    return row_of(column)->unit;
}

bool pace__column_is_text(pace__column column)
{
    return row_of(column)->text;
}

bool pace__column_is_left(pace__column column)
{
    return pace__column_is_text(column) && column != PACE__C_RUNS;
}

/* --- spreads --- */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

pace__spread pace__spread_of(double *values, size_t count)
{
    if (count == 0)
        return (pace__spread){.median = NAN, .low = NAN, .high = NAN};
    qsort(values, count, sizeof *values, compare);
    return (pace__spread){.median = (values[(count - 1) / 2] + values[count / 2]) / 2,
                          .low = values[0],
                          .high = values[count - 1],
                          .count = count};
}

static pace__spread exactly(double value)
{
    return isfinite(value) ? (pace__spread){value, value, value, 1} : pace__spread_of(NULL, 0);
}

/* Of a / x, or x / a: it may turn around. */
static pace__spread turned(pace__spread spread, double (*of)(double value, double by), double by)
{
    double low = of(spread.low, by), high = of(spread.high, by);

    if (spread.count == 0 || !isfinite(by))
        return pace__spread_of(NULL, 0);
    return (pace__spread){of(spread.median, by), fmin(low, high), fmax(low, high), spread.count};
}

static double quotient(double value, double by)
{
    return value / by;
}

static double inverse(double value, double by)
{
    return by / value;
}

static double difference(double value, double by)
{
    return by / value - 1;
}

/* --- of one result --- */

static double to_threshold(const pace__curve *curve, double threshold, const double *of)
{
    for (size_t i = 0; i < curve->count; i++) {
        if (curve->loss[i] <= threshold)
            return of[i];
    }
    return NAN;
}

static double lowest_loss(const pace__curve *curve)
{
    double lowest = NAN;

    for (size_t i = 0; i < curve->count; i++)
        lowest = fmin(lowest, curve->loss[i]);
    return lowest;
}

static double value_of(const pace__figures *figures, const pace__result *result, pace__column column)
{
    const double *value = result->value;

    switch (column) {
    case PACE__C_TIME:
        return value[PACE__M_SECONDS];
    case PACE__C_ROWS_S:
        return value[PACE__M_ROWS_S];
    case PACE__C_STEPS:
        return value[PACE__M_STEPS];
    case PACE__C_ACCURACY:
        return value[PACE__M_ACCURACY];
    case PACE__C_AUC:
        return value[PACE__M_AUC];
    case PACE__C_F1:
        return value[PACE__M_F1];
    case PACE__C_LOGLOSS:
        return value[PACE__M_LOGLOSS];
    case PACE__C_TRAIN_LOSS:
        return value[PACE__M_TRAIN_LOSS];
    case PACE__C_TO_TIME:
        return to_threshold(&result->curve, figures->threshold, result->curve.t);
    case PACE__C_TO_EPOCHS:
        return to_threshold(&result->curve, figures->threshold, result->curve.epoch);
    case PACE__C_ROW_BYTES:
        return value[PACE__M_SENT] / value[PACE__M_ROWS];
    case PACE__C_SENT:
        return value[PACE__M_SENT];
    case PACE__C_NETWORK:
        return value[PACE__M_SENT] / value[PACE__M_SECONDS];
    case PACE__C_CPU:
        return value[PACE__M_CPU_S] / value[PACE__M_WALL];
    case PACE__C_MEMORY:
        return value[PACE__M_MEMORY];
    case PACE__C_READ:
        return value[PACE__M_DISK_READ];
    case PACE__C_WRITTEN:
        return value[PACE__M_DISK_WRITTEN];
    case PACE__C_IMBALANCE:
        return value[PACE__M_IMBALANCE];
    case PACE__C_INPUT_S:
        return value[PACE__M_INPUT_BYTES] / value[PACE__M_SECONDS];
    case PACE__C_EXPECTED:
        return value[PACE__M_EXPECTED_ROWS_S];
    default:
        return NAN;
    }
}

/* --- of a row --- */

static const pace__cell_of *cell_of(const pace__figures *figures, size_t row)
{
    return &figures->section->cells[figures->rows[row].cell];
}

static pace__spread measured(const pace__figures *figures, size_t row, pace__column column)
{
    double values[PACE__REPEAT_MAX];
    size_t count = 0;

    for (int repeat = 1; repeat <= figures->study->repeat; repeat++) {
        const pace__result *result =
            pace__study_find(figures->study, figures->place, figures->rows[row].cell, repeat);
        double value = result && result->status == 0 ? value_of(figures, result, column) : NAN;

        if (isfinite(value))
            values[count++] = value;
    }
    return pace__spread_of(values, count);
}

/* What stays the same where workers grow; in a study of balance, where shares do. */
static bool is_of_one_line(const pace__figures *figures, size_t left, size_t right)
{
    const pace__cell_of *a = cell_of(figures, left), *b = cell_of(figures, right);
    bool weak = figures->section->kind == PACE__WEAK, balance = figures->section->kind == PACE__BALANCE;

    return a->mode == b->mode && a->ps == b->ps && figures->rows[left].price == figures->rows[right].price &&
           (weak ? a->batch * b->workers == b->batch * a->workers : a->batch == b->batch) &&
           (balance ? a->workers == b->workers : a->balance == b->balance);
}

size_t pace__figures_base(const pace__figures *figures, size_t row)
{
    bool balance = figures->section->kind == PACE__BALANCE;
    size_t base = row;

    for (size_t i = 0; i < figures->count; i++) {
        const pace__cell_of *cell = cell_of(figures, i), *best = cell_of(figures, base);

        if (is_of_one_line(figures, i, row) && figures->rows[i].done > 0 &&
            (balance ? cell->balance < best->balance : cell->workers < best->workers))
            base = i;
    }
    return base;
}

/* Strong: t1 / tN. Weak: rows a second, since each worker has its own. */
static pace__spread speedup(const pace__figures *figures, size_t row)
{
    size_t base = pace__figures_base(figures, row);
    bool weak = figures->section->kind == PACE__WEAK;
    pace__column by = weak ? PACE__C_ROWS_S : PACE__C_TIME;

    if (figures->rows[base].done == 0)
        return exactly(NAN);
    return turned(measured(figures, row, by), weak ? quotient : inverse, measured(figures, base, by).median);
}

static pace__spread efficiency(const pace__figures *figures, size_t row)
{
    double workers = (double)cell_of(figures, row)->workers,
           before = (double)cell_of(figures, pace__figures_base(figures, row))->workers;

    return turned(speedup(figures, row), quotient, workers / before);
}

static pace__bill bill_of(const pace__figures *figures, size_t row, double seconds)
{
    const pace__cell_of *cell = cell_of(figures, row);
    const pace__price *price = figures->rows[row].price;

    assert(price);
    return pace__bill_of(price, cell->workers + (cell->ps > 0 ? cell->ps : 0), seconds);
}

static double money(const pace__figures *figures, size_t row, double seconds)
{
    return bill_of(figures, row, seconds).money;
}

static pace__spread cost(const pace__figures *figures, size_t row)
{
    pace__spread time = measured(figures, row, PACE__C_TIME);

    if (!figures->rows[row].price || time.count == 0)
        return exactly(NAN);
    return (pace__spread){money(figures, row, time.median), money(figures, row, time.low),
                          money(figures, row, time.high), time.count};
}

static double published(const pace__figures *figures, size_t row, pace__metric metric)
{
    const pace__cell_of *cell = cell_of(figures, row);

    for (size_t i = 0; i < figures->section->published_count; i++) {
        const pace__published *each = &figures->section->published[i];

        if (each->metric == metric && (!each->mode || each->mode == cell->mode) &&
            (!each->workers || each->workers == cell->workers) &&
            (!each->batch || each->batch == cell->batch))
            return each->value;
    }
    return NAN;
}

static double published_speedup(const pace__figures *figures, size_t row)
{
    return published(figures, pace__figures_base(figures, row), PACE__M_SECONDS) /
           published(figures, row, PACE__M_SECONDS);
}

/* A batch that nobody has asked for is what the run has found. */
static double batch_of(const pace__figures *figures, size_t row)
{
    const pace__result *last = figures->rows[row].last;
    int64_t asked = cell_of(figures, row)->batch;

    return asked ? (double)asked : last ? last->value[PACE__M_BATCH] : NAN;
}

pace__spread pace__figure(const pace__figures *figures, size_t row, pace__column column)
{
    const pace__cell_of *cell = cell_of(figures, row);
    const pace__price *price = figures->rows[row].price;

    assert(row < figures->count);
    if (column >= PACE__C_PUBLISHED)
        return exactly(published(figures, row, (pace__metric)(column - PACE__C_PUBLISHED)));
    switch (column) {
    case PACE__C_WORKERS:
        return exactly((double)cell->workers);
    case PACE__C_PS:
        return exactly(cell->ps >= 0 ? (double)cell->ps : NAN);
    case PACE__C_BATCH:
        return exactly(batch_of(figures, row));
    case PACE__C_MACHINES:
        return exactly(price ? (double)bill_of(figures, row, 0).machines : NAN);
    case PACE__C_SPEEDUP:
        return speedup(figures, row);
    case PACE__C_EFFICIENCY:
        return efficiency(figures, row);
    case PACE__C_COST_TIME:
        return price ? turned(measured(figures, row, PACE__C_TIME), quotient, price->speed) : exactly(NAN);
    case PACE__C_COST:
        return cost(figures, row);
    case PACE__C_PREDICTED:
        return exactly(figures->section->foretold ? figures->section->foretold[figures->rows[row].cell].rows_s
                                                  : NAN);
    case PACE__C_PREDICTED_OFF:
        return turned(measured(figures, row, PACE__C_ROWS_S), difference,
                      pace__figure(figures, row, PACE__C_PREDICTED).median);
    case PACE__C_EXPECTED_OFF:
        return turned(measured(figures, row, PACE__C_ROWS_S), difference,
                      measured(figures, row, PACE__C_EXPECTED).median);
    case PACE__C_PUBLISHED_SPEEDUP:
        return exactly(published_speedup(figures, row));
    default:
        return measured(figures, row, column);
    }
}

/* --- predictions --- */

pace__foretold_errors pace__figures_errors(const pace__figures *figures)
{
    pace__foretold_errors made = {0};
    double *errors = calloc(figures->count + 1, sizeof *errors);

    for (size_t row = 0; errors && row < figures->count; row++) {
        pace__spread off = pace__figure(figures, row, PACE__C_PREDICTED_OFF);
        const pace__result *last = figures->rows[row].last;

        if (off.count == 0 || (row > 0 && figures->rows[row].price != figures->rows[0].price))
            continue; /* the same cells on another type of machine */
        errors[made.count++] = fabs(off.median);
        if (fabs(off.median) >= made.worst) {
            made.worst = fabs(off.median);
            made.worst_row = row;
        }
        if (last && last->bottleneck[0]) {
            made.causes++;
            made.causes_right +=
                strcmp(last->bottleneck, figures->section->foretold[figures->rows[row].cell].bottleneck) == 0;
        }
    }
    if (made.count)
        made.median = pace__spread_of(errors, made.count).median;
    free(errors);
    return made;
}

/* --- words --- */

static const char *word_of(const pace__figures *figures, size_t row, pace__column column)
{
    const pace__figures_row *of = &figures->rows[row];
    const pace__cell_of *cell = cell_of(figures, row);

    if (column == PACE__C_MODE)
        return pace__mode_word(cell->mode);
    if (column == PACE__C_BALANCE)
        return pace__balance_names[cell->balance];
    if (column == PACE__C_MACHINE)
        return of->price ? of->price->name : "";
    assert(column == PACE__C_BOTTLENECK);
    return of->last ? of->last->bottleneck : "";
}

static void runs_text(const pace__figures_row *row, char text[PACE__FIGURE_TEXT])
{
    if (row->failed)
        snprintf(text, PACE__FIGURE_TEXT, "%zu, %zu failed", row->done, row->failed);
    else
        snprintf(text, PACE__FIGURE_TEXT, "%zu", row->done);
}

/* Of more than one that differ: the larger of both sides. */
static void add_spread(const pace__spread *spread, char text[PACE__FIGURE_TEXT])
{
    double side = fmax(spread->high - spread->median, spread->median - spread->low);
    double share = 100 * side / fabs(spread->median);

    if (spread->count > 1 && share >= 0.05 && isfinite(share))
        snprintf(text + strlen(text), PACE__FIGURE_TEXT - strlen(text), " \xc2\xb1%.*f %%", share < 10,
                 share);
}

static const char *real_text(double value, char text[PACE__AMOUNT_TEXT])
{
    snprintf(text, PACE__AMOUNT_TEXT, "%.3g", value);
    return text;
}

/* By how much a prediction was off: its sign says where to, and a part of a difference says nothing. */
static bool is_error(pace__column column)
{
    return column == PACE__C_PREDICTED_OFF || column == PACE__C_EXPECTED_OFF;
}

static const char *error_text(double value, char text[PACE__AMOUNT_TEXT])
{
    snprintf(text, PACE__AMOUNT_TEXT, "%+.0f %%", 100 * value);
    return text;
}

const char *pace__figure_text(const pace__figures *figures, size_t row, pace__column column, bool bare,
                              char text[PACE__FIGURE_TEXT])
{
    char amount[PACE__AMOUNT_TEXT];

    if (column == PACE__C_RUNS) {
        runs_text(&figures->rows[row], text);
        return text;
    }
    if (pace__column_is_text(column)) {
        snprintf(text, PACE__FIGURE_TEXT, "%s", word_of(figures, row, column));
        return text;
    }
    pace__spread spread = pace__figure(figures, row, column);
    bool is_short = column == PACE__C_SPEEDUP || column == PACE__C_PUBLISHED_SPEEDUP ||
                    column == PACE__C_IMBALANCE || column == PACE__C_TO_EPOCHS || column == PACE__C_COST;

    if (spread.count == 0)
        snprintf(text, PACE__FIGURE_TEXT, "\xe2\x80\x93");
    else
        snprintf(text, PACE__FIGURE_TEXT, "%s%s%s",
                 is_short           ? real_text(spread.median, amount)
                 : is_error(column) ? error_text(spread.median, amount)
                                    : pace__amount(spread.median, pace__column_unit(column), amount),
                 column == PACE__C_COST ? " " : "",
                 column == PACE__C_COST ? figures->rows[row].price->currency : "");
    if (!bare && spread.count > 0 && !is_error(column))
        add_spread(&spread, text);
    return text;
}

/* --- making them --- */

static void count_runs(pace__figures *figures, pace__figures_row *row)
{
    for (int repeat = 1; repeat <= figures->study->repeat; repeat++) {
        const pace__result *result = pace__study_find(figures->study, figures->place, row->cell, repeat);

        if (!result)
            continue;
        if (result->status == 0)
            row->last = result;
        else
            row->bad = result;
        row->done += result->status == 0;
        row->failed += result->status != 0;
    }
}

/* The lowest loss that every run has reached: each comes there, and none has long passed it. */
static double common_loss(const pace__figures *figures)
{
    double worst = NAN;

    for (size_t i = 0; i < figures->study->result_count; i++) {
        const pace__result *result = &figures->study->results[i];

        if (result->section == figures->place && result->status == 0)
            worst = fmax(worst, lowest_loss(&result->curve));
    }
    return worst;
}

static bool says_something(const pace__figures *figures, pace__column column)
{
    char text[PACE__FIGURE_TEXT];

    for (size_t i = 0; i < figures->count; i++) {
        if (pace__column_is_text(column) ? pace__figure_text(figures, i, column, true, text)[0] != '\0'
                                         : pace__figure(figures, i, column).count > 0)
            return true;
    }
    return false;
}

static void add_column(pace__figures *figures, pace__column column)
{
    if (says_something(figures, column))
        figures->columns[figures->column_count++] = column;
}

static void add_foretold(pace__figures *figures)
{
    add_column(figures, PACE__C_PREDICTED);
    add_column(figures, PACE__C_PREDICTED_OFF);
}

/* In a study of it, or where the options of all cells name one. */
static bool tells_balance(const pace__figures *figures)
{
    const pace__section *section = figures->section;
    bool any = section->kind == PACE__BALANCE;

    for (size_t i = 0; i < section->count; i++)
        any = any || section->cells[i].balance;
    return any;
}

static void choose_columns(pace__figures *figures)
{
    pace__study_kind kind = figures->section->kind;

    if (kind != PACE__PREP)
        add_column(figures, PACE__C_MODE);
    add_column(figures, PACE__C_WORKERS);
    if (kind != PACE__PREP) {
        add_column(figures, PACE__C_PS);
        add_column(figures, PACE__C_BATCH);
    }
    if (tells_balance(figures))
        add_column(figures, PACE__C_BALANCE);
    add_column(figures, PACE__C_MACHINE);
    add_column(figures, PACE__C_MACHINES);
    add_column(figures, PACE__C_RUNS);
    for (size_t i = 0; i < COLUMNS_MAX && shown[kind][i]; i++) {
        add_column(figures, shown[kind][i]);
        if (shown[kind][i] == (kind == PACE__CONVERGE ? PACE__C_TIME : PACE__C_ROWS_S))
            add_foretold(figures);
    }
    if (!says_something(figures,
                        PACE__C_PREDICTED)) { /* else train's own forecast, which knows less, is left out */
        add_column(figures, PACE__C_EXPECTED);
        add_column(figures, PACE__C_EXPECTED_OFF);
    }
    for (int metric = 0; metric < PACE__METRICS; metric++)
        add_column(figures, (pace__column)(PACE__C_PUBLISHED + metric));
    if (kind == PACE__SCALING || kind == PACE__PREP)
        add_column(figures, PACE__C_PUBLISHED_SPEEDUP);
}

bool pace__figures_make(pace__figures *figures, const pace__study *study, size_t section)
{
    const pace__section *of = &study->sections[section];
    size_t types = of->kind == PACE__COST && study->prices.count ? study->prices.count : 1;

    *figures = (pace__figures){.study = study, .section = of, .place = section, .threshold = NAN};
    figures->rows = calloc(of->count * types, sizeof *figures->rows);
    if (!figures->rows)
        return false;
    for (size_t type = 0; type < types; type++) {
        for (size_t cell = 0; cell < of->count; cell++) {
            pace__figures_row *row = &figures->rows[figures->count++];

            row->cell = cell;
            row->price = of->kind == PACE__COST && study->prices.count ? &study->prices.of[type] : NULL;
            count_runs(figures, row);
        }
    }
    if (of->kind == PACE__CONVERGE)
        figures->threshold = of->threshold > 0 ? of->threshold : common_loss(figures);
    choose_columns(figures);
    return true;
}

void pace__figures_release(pace__figures *figures)
{
    free(figures->rows);
    figures->rows = NULL;
}
