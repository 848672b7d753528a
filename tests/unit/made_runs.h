/*
 * made_runs.h - run directories as a job leaves them, without a job: for tests of those who only look.
 *
 *     made_run run = made_begin(in(state, "run"));
 *     made_start(&run, 0, 100);
 *     made_sample(&run, (made_state){.role = "chief", .t = 1, .rows = 500, .compute_s = 0.7, .wait_s = 0.3});
 *     made_end(&run, PACE__RUN_RUNNING);      // nobody has it: it was killed
 *
 * Include it behind support.h.
 */
#ifndef UNIT_MADE_RUNS_H
#define UNIT_MADE_RUNS_H

#include "run/runstate.h"

#include <sys/file.h>

typedef struct made_run {
    char path[512];
    FILE *records;
    int lock; /* -1: nobody has the run */
} made_run;

typedef struct made_state {
    const char *role, *waits_for, *waited_for;
    double t, seconds; /* 0: as t */
    double rows, data_s, compute_s, communicate_s, still_s, wait_s, cpu_s, rss_bytes, requests, looks;
} made_state;

static inline FILE *made_file(const made_run *run, const char *name)
{
    char path[600];

    snprintf(path, sizeof path, "%s/%s", run->path, name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    return file;
}

/* With a configuration, and nothing that was recorded. */
static inline made_run made_begin_as(const char *path, const char *options)
{
    made_run run = {.lock = -1};
    char logs[600];

    snprintf(run.path, sizeof run.path, "%s", path);
    snprintf(logs, sizeof logs, "%s/logs", path);
    assert_int_equal(pace__make_dirs(logs, NULL), PACE_OK);
    fclose(made_file(&run, "logs/paceline.log"));
    FILE *config = made_file(&run, "config.yaml");

    fputs(options, config);
    fclose(config);
    run.records = made_file(&run, "metrics.jsonl");
    return run;
}

static inline made_run made_begin(const char *path)
{
    return made_begin_as(path, "model: logreg\nmode: ps-sync\nbatch: 100\nworkers: 2\nthreads: 1\n");
}

static inline void made_line(made_run *run, const char *line)
{
    fprintf(run->records, "%s\n", line);
    fflush(run->records);
}

static inline void made_start(made_run *run, double t, unsigned steps)
{
    fprintf(run->records,
            "{\"kind\":\"start\",\"t\":%g,\"step\":0,\"steps\":%u,\"incarnation\":1,\"restarts\":0}\n", t,
            steps);
    fflush(run->records);
}

static inline void made_step(made_run *run, double t, unsigned step, double loss)
{
    fprintf(run->records,
            "{\"kind\":\"step\",\"t\":%g,\"step\":%u,\"epoch\":0.5,\"rows\":%u,\"loss\":%.9g,\"lr\":0.1,"
            "\"rows_per_s\":1000}\n",
            t, step, step * 100, loss);
    fflush(run->records);
}

static inline void made_sample(made_run *run, made_state at)
{
    fprintf(
        run->records,
        "{\"kind\":\"sample\",\"t\":%g,\"role\":\"%s\",\"seconds\":%g,\"rows\":%g,\"data_s\":%g,\"compute_"
        "s\":%g,"
        "\"communicate_s\":%g,\"still_s\":%g,\"wait_s\":%g,\"waits_for\":\"%s\",\"waited_for\":\"%s\",\"user_"
        "s\":%g,\"system_s\":0,"
        "\"rss_bytes\":%g,\"requests\":%g,\"looks\":%g}\n",
        at.t, at.role, at.seconds ? at.seconds : at.t, at.rows, at.data_s, at.compute_s, at.communicate_s,
        at.still_s, at.wait_s, at.waits_for ? at.waits_for : "", at.waited_for ? at.waited_for : "", at.cpu_s,
        at.rss_bytes, at.requests, at.looks);
    fflush(run->records);
}

static inline void made_flow(made_run *run, double t, const char *role, const char *peer, double sent,
                             double received)
{
    fprintf(run->records,
            "{\"kind\":\"flow\",\"t\":%g,\"role\":\"%s\",\"peer\":\"%s\",\"seconds\":%g,\"bytes_sent\":%.0f,"
            "\"bytes_received\":%.0f,\"messages\":10,\"wait_s\":0}\n",
            t, role, peer, t, sent, received);
    fflush(run->records);
}

/* Somebody has it from here on, until made_end. */
static inline void made_hold(made_run *run)
{
    char path[600];

    snprintf(path, sizeof path, "%s/logs/paceline.log", run->path);
    run->lock = open(path, O_RDONLY);
    assert_true(run->lock >= 0 && flock(run->lock, LOCK_EX | LOCK_NB) == 0);
}

static inline void made_standing(made_run *run, pace__run_ending ending)
{
    pace__runstate state = {.id = 7, .incarnation = 1, .ending = ending};

    assert_int_equal(pace__runstate_write(run->path, &state, NULL), PACE_OK);
}

static inline void made_end(made_run *run, pace__run_ending ending)
{
    made_standing(run, ending);
    if (run->lock >= 0)
        close(run->lock);
    fclose(run->records);
}

#endif
