/*
 * study.h - a matrix of jobs, run one after the other, and what it tells: tables and a report.
 *
 * A study asks one question: how does a job scale, what does a mode cost, what does a larger batch do. It runs each cell of
 * its matrix several times, as `paceline train` or `paceline prep`, and leaves in its directory
 *
 *     DIR/results.jsonl   a line for every job that has ended: all that the rest is made of
 *     DIR/table.md, DIR/table.csv, DIR/table.json   medians, and the lowest and highest
 *     DIR/report.html     the same with plots, in one file that loads nothing
 *     DIR/runs            run directories of cells that have failed, or of all, if they are to be kept
 *
 * A study that was interrupted goes on where it stood when it is asked for again, also with more repetitions or cells. A cell
 * that fails is recorded with its cause, and the others go on.
 */
#ifndef PACELINE_STUDY_H
#define PACELINE_STUDY_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/registry.h>

typedef struct pace_study_config {
    const char *kind;  /* "scaling", ...; or a preset: "criteo-2017", ... */
    pace_texts words;  /* options of train, of prep in a study of that, for every cell */
    const char *data;  /* the data set; of prep, its input. Presets make their own */
    const char *model; /* as train knows it */
    const char *output;
    const char *workers, *ps, *batch, *mode, *balance; /* values separated by commas; NULL: the kind's own */
    const char *hosts;
    int64_t repeat;
    int64_t rows;       /* of a cell; weak: of each worker. 0: what --epochs makes */
    double threshold;   /* converge: a loss; 0: the lowest that every cell reaches */
    const char *prices; /* cost: a file of machine types */
    bool dry_run, force, keep_runs, predict;
    const _Atomic int *stop; /* nonzero: end the job under way and return PACE_INTERRUPTED; may be NULL */
} pace_study_config;

extern const pace_option pace_study_options[]; /* rows for every field but kind, words and stop */

typedef struct pace_study_result {
    char *text, *json; /* the tables, for people and for programs; to be freed */
    uint64_t cells, failed;
} pace_study_result;

/* PACE_OK also if cells have failed: `failed` counts them. */
pace_status pace_study(const pace_study_config *config, const pace_log *log, pace_registry *registry,
                       pace_study_result *result);

/* The kinds and presets, a line each: name and what it asks. NULL behind the last. */
const char *pace_study_name(int index, const char **summary);

#endif
