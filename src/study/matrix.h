/*
 * matrix.h - which jobs a study runs: its cells, as plain values. Nothing here looks at a file or starts anything.
 *
 *     pace__matrix matrix = {.kind = PACE__SCALING, .batch_usual = 512, .repeat = 3};
 *     status = pace__axis_read(PACE__AXIS_WORKERS, "1,2,4", log, &matrix.axis[PACE__AXIS_WORKERS]);
 *     status = pace__matrix_cells(&matrix, log, &cells, &count);          // to be freed
 *
 * A kind asks one question, along one axis; the other axes have one value each unless more are asked for, and then the
 * question is answered for every combination of them. Axes that say nothing to a mode are left out: servers to all-reduce,
 * workers to mode local. Cells that are the same then are one.
 */
#ifndef STUDY_MATRIX_H
#define STUDY_MATRIX_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pace__study_kind {
    PACE__SCALING,  /* the same work by more workers */
    PACE__WEAK,     /* the same work for each of more workers */
    PACE__BATCH,    /* the same rows in larger steps */
    PACE__MODES,    /* what each way to share the work takes */
    PACE__BALANCE,  /* shares by speed, and equal ones */
    PACE__PREP,     /* making a data set by more processes */
    PACE__SERVERS,  /* parameters on more servers */
    PACE__CONVERGE, /* loss against epochs and time, by workers */
    PACE__COST,     /* time against money, by workers and machine types */
    PACE__STUDY_KINDS
} pace__study_kind;

typedef enum pace__study_axis {
    PACE__AXIS_MODE, /* PACE_MODE_* */
    PACE__AXIS_WORKERS,
    PACE__AXIS_PS,
    PACE__AXIS_BATCH,   /* of weak: of each worker */
    PACE__AXIS_BALANCE, /* a place in pace__balance_names */
    PACE__AXES
} pace__study_axis;

#define PACE__AXIS_MAX  64
#define PACE__CELLS_MAX 1024

typedef struct pace__numbers {
    int64_t value[PACE__AXIS_MAX];
    size_t count; /* 0: as the kind thinks best */
} pace__numbers;

typedef struct pace__matrix {
    pace__study_kind kind;
    pace__numbers axis[PACE__AXES];
    int64_t rows;        /* of a cell, of weak of each worker; 0: as many epochs as train makes of it */
    int64_t batch_usual; /* where nobody says anything: what the model takes, and whether that is a network */
    bool network;
    int slots; /* processes that there is room for */
} pace__matrix;

/* A job, but for its repetition. */
typedef struct pace__cell_of {
    int mode;
    int balance;
    int64_t workers; /* of prep: processes */
    int64_t ps;      /* -1: says nothing to the mode */
    int64_t batch;   /* 0: the model's own */
    int64_t steps;   /* 0: by epochs */
} pace__cell_of;

extern const char *const pace__study_kind_names[PACE__STUDY_KINDS + 1]; /* ends with NULL */
extern const char *const pace__balance_names[];                         /* off, epoch, auto; ends with NULL */

/* "ps-sync"; the names of train's --mode. Static. */
const char *pace__mode_word(int mode);

/* Does the mode have servers; does it wait for all workers in a step? */
bool pace__mode_has_servers(int mode);
bool pace__mode_can_balance(int mode);

/* "1,2,4" or "ps-sync,ps-async". PACE_USAGE names the option, the value, and what there is. */
pace_status pace__axis_read(pace__study_axis axis, const char *text, const pace_log *log,
                            pace__numbers *numbers);

/* The most that any cell has. */
int64_t pace__matrix_workers_max(const pace__matrix *matrix);

/* *cells is to be freed. The workers run fastest. PACE_USAGE: more than PACE__CELLS_MAX of them. */
pace_status pace__matrix_cells(const pace__matrix *matrix, const pace_log *log, pace__cell_of **cells,
                               size_t *count);

/* "mode=ps-sync workers=2 ps=1 batch=1000 steps=0 balance=off": what results are known by. Returns text. */
#define PACE__CELL_TEXT 160
const char *pace__cell_key(const pace__cell_of *cell, char text[PACE__CELL_TEXT]);
/* "ps-sync, 2 workers, 1 ps, batch 1000": the same for people. `prep`: "2 processes". */
const char *pace__cell_words(const pace__cell_of *cell, bool prep, char text[PACE__CELL_TEXT]);

#endif
