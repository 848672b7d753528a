/*
 * figures.h - the figures of a section: a row for each cell (of cost: for each cell and machine type), columns by what its kind
 * asks. Functions of the results alone, which are plain values.
 *
 *     pace__figures_make(&figures, study, section);
 *     pace__spread time = pace__figure(&figures, row, PACE__C_TIME);       // median, lowest, highest of its repetitions
 *     pace__figure_text(&figures, row, PACE__C_TIME, text);                // "1.52 s ±4 %"
 *
 * 1. A figure is a median of what was measured. One that compares cells (speedup) takes the median of what it is compared
 *    with, and the spread of its own cell.
 * 2. Cells that have failed have rows, without figures; they are compared with nothing.
 */
#ifndef STUDY_FIGURES_H
#define STUDY_FIGURES_H

#include "report/markup.h"
#include "study/study.h"

typedef struct pace__spread {
    double median, low, high;
    size_t count; /* 0: there is nothing */
} pace__spread;

/* Sorts the values. */
pace__spread pace__spread_of(double *values, size_t count);

typedef enum pace__column {
    /* what was asked for */
    PACE__C_MODE,
    PACE__C_WORKERS,
    PACE__C_PS,
    PACE__C_BATCH,
    PACE__C_BALANCE,
    PACE__C_MACHINE,
    PACE__C_MACHINES,
    PACE__C_RUNS,
    /* what came of it */
    PACE__C_TIME,
    PACE__C_ROWS_S,
    PACE__C_SPEEDUP,    /* against the fewest workers; weak: of rows a second; balance: against off */
    PACE__C_EFFICIENCY, /* speedup for each worker */
    PACE__C_STEPS,
    PACE__C_ACCURACY,
    PACE__C_AUC,
    PACE__C_F1,
    PACE__C_LOGLOSS,
    PACE__C_TRAIN_LOSS,
    PACE__C_TO_TIME, /* until the loss is at the threshold */
    PACE__C_TO_EPOCHS,
    PACE__C_ROW_BYTES, /* sent, for each row */
    PACE__C_SENT,
    PACE__C_NETWORK, /* sent in a second */
    PACE__C_CPU,     /* cores in use, on average */
    PACE__C_MEMORY,
    PACE__C_READ,
    PACE__C_WRITTEN,
    PACE__C_IMBALANCE,
    PACE__C_INPUT_S, /* bytes of input a second */
    PACE__C_COST_TIME,
    PACE__C_COST,
    PACE__C_BOTTLENECK,
    PACE__C_PREDICTED, /* rows a second by the planner, and by how much that was off */
    PACE__C_PREDICTED_OFF,
    PACE__C_EXPECTED, /* rows a second that were expected, and by how much that was off */
    PACE__C_EXPECTED_OFF,
    /* what others have published */
    PACE__C_PUBLISHED_SPEEDUP,
    PACE__C_PUBLISHED,
    PACE__COLUMNS = PACE__C_PUBLISHED + PACE__METRICS /* PACE__C_PUBLISHED + a metric */
} pace__column;

typedef struct pace__figures_row {
    size_t cell;
    const pace__price *price; /* NULL: none */
    size_t done, failed;      /* repetitions */
    const pace__result *last; /* a good one if there is any; NULL: none yet */
    const pace__result *bad;  /* one that has failed; NULL: none */
} pace__figures_row;

typedef struct pace__figures {
    const pace__study *study;
    const pace__section *section;
    size_t place; /* of the section */
    pace__figures_row *rows;
    size_t count;
    double threshold; /* of converge; NAN: there is none */
    pace__column columns[PACE__COLUMNS];
    size_t column_count; /* those of its kind that have anything to show */
} pace__figures;

/* False: out of memory. */
bool pace__figures_make(pace__figures *figures, const pace__study *study, size_t section);
void pace__figures_release(pace__figures *figures);

const char *pace__column_heading(const pace__figures *figures, pace__column column);
/* Its name for programs: "speedup". */
const char *pace__column_name(pace__column column);
pace__unit pace__column_unit(pace__column column);
/* Does it say something other than a number? */
bool pace__column_is_text(pace__column column);
/* Does it stand on the left? */
bool pace__column_is_left(pace__column column);

pace__spread pace__figure(const pace__figures *figures, size_t row, pace__column column);

#define PACE__FIGURE_TEXT 96
/* For people; `bare`: without the spread. Returns text. */
const char *pace__figure_text(const pace__figures *figures, size_t row, pace__column column, bool bare,
                              char text[PACE__FIGURE_TEXT]);

/* Of predictions beside what was measured: how far they were off, in the median and at worst, and how many bottlenecks were those
 * of the verdicts. */
typedef struct pace__foretold_errors {
    size_t count; /* rows that have both; 0: nothing is known */
    double median, worst;
    size_t worst_row;
    size_t causes, causes_right;
} pace__foretold_errors;
pace__foretold_errors pace__figures_errors(const pace__figures *figures);

/* The row that this one is compared with; its own: it is the first. */
size_t pace__figures_base(const pace__figures *figures, size_t row);

#endif
