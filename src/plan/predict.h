/*
 * predict.h - what a setup would reach: a function of plain values. Nothing here looks at a clock, a file or a run, so
 * that a study, `train` and `plan` ask the same function.
 *
 *     pace__calibration known;                                       // from a run: calibrate.h
 *     pace__setup setup = {.mode = PACE_MODE_PS_SYNC, .workers = 8, .ps = 2, .hosts = 10, .threads = 1, .batch = 1000};
 *     pace__prediction made = pace__predict(&known, &setup);
 *     ... made.rows_s, pace__cause_name(made.cause) ...
 *
 * The model of a step is forecast/forecast.h, with costs that were scaled to what was measured. The bottleneck is what
 * verdict/verdict.h would say of a run whose records are the predicted ones.
 */
#ifndef PLAN_PREDICT_H
#define PLAN_PREDICT_H

#include "forecast/forecast.h"
#include "verdict/verdict.h"

/* How something of the network is known; their names. */
typedef enum pace__known_by { PACE__ASSUMED, PACE__GIVEN, PACE__MEASURED } pace__known_by;
extern const char *const pace__known_names[];

/* What is said of the machines. 0: cores as those had that something was learned on; of the network, what is assumed. */
typedef struct pace__given {
    double cores, link_bytes_s, latency_s;
    pace__known_by link_by, latency_by;
} pace__given;

/* What is known of a job, and of the machines. */
typedef struct pace__calibration {
    pace__forecast_input input; /* scaled */
    double columns, steps;      /* by what: measured over expected, of work by columns and of all other */
    double spread;              /* half of the interval of 95 % of what was measured, over its mean */
    double rows;                /* that the run trains, in all epochs */
    double still_s;             /* that training stands still in all: scores and checkpoints */
    double save_every_s;        /* --checkpoint-seconds; 0: none */
    double save_every_steps;    /* --checkpoint-every; 0: none */
} pace__calibration;

typedef struct pace__prediction {
    pace__forecast forecast;
    double rows_s, low, high;
    double epoch_s, seconds, efficiency;
    pace__cause cause;
} pace__prediction;

pace__prediction pace__predict(const pace__calibration *known, const pace__setup *setup);

/* The same at another speed. */
void pace__prediction_at(const pace__calibration *known, double rows_s, pace__prediction *made);

/* Mode local on one such machine, same batch and threads. */
pace__setup pace__setup_alone(const pace__setup *setup);

/* Between two checkpoints, where so many rows a second are trained in steps of `batch`; 0: there are none. */
double pace__save_every_s(const pace__calibration *known, double rows_s, double batch);

/* Seconds that a job takes on machines that fail: each failure costs what was trained since the last checkpoint, and a
 * restart. INFINITY: it never ends. `mtbf_s` is of one machine; 0: none fails. */
double pace__seconds_with_failures(double seconds, double machines, double mtbf_s, double save_every_s);

#endif
