/*
 * plan.h - how fast a job would be with other modes, workers, servers and batches, and what it would cost: predicted from
 * a run that was measured, before machines are rented.
 *
 *     pace_plan_config config = {.runs = {(const char *[]){"run1"}, 1}, .workers = "1,2,4,8", ...};
 *     pace_plan_result result;
 *     status = pace_plan(&config, &log, &result);
 *     ... result.predictions[i].samples_per_second ...
 *     pace_plan_release(&result);
 *
 * What is predicted is time, not accuracy: that a larger batch, or an asynchronous mode, may need more rows is left out, unless a
 * study has measured it (`converge`).
 * docs/scaling.md has the formulas.
 */
#ifndef PACELINE_PLAN_H
#define PACELINE_PLAN_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/registry.h>
#include <paceline/train.h>

#define PACE_PLAN_CELLS_MAX 4096
#define PACE_PLAN_RUNS_MAX  64

typedef struct pace_plan_config {
    pace_texts runs;   /* measured ones of one job, the first says what is to be trained */
    pace_texts words;  /* with check: the runs to compare with */
    const char *data;  /* where the data set is now; NULL: where it was */
    const char *model; /* without a run: what to train for a moment, on `data`; NULL: none */
    const char *mode, *workers, *ps, *batch; /* lists, "1,2,4"; NULL: as it thinks best */
    const char *hosts;         /* host file: machines of the jobs; their network is measured. NULL: any */
    const char *net, *latency; /* of links: "1gbit", "50us"; NULL: as measured, or 1gbit, 60us */
    const char *mpirun;        /* with hosts: what starts processes there; NULL: the usual one */
    bool ping;                 /* pace_plan_ping: measure the network, and nothing else */
    int64_t machines;          /* that there are, without hosts; 0: one for each process */
    double cores;              /* of each; 0: as the run had */
    pace_texts price;          /* of a machine and hour: "0.35EUR", "ps=0.20EUR" */
    double within;             /* seconds that there are; 0: any */
    const char *
        converge; /* directory of a study of that kind: time is that to its loss; NULL: that of the run's rows */
    double mtbf;     /* hours from one failure of a machine to the next; 0: none */
    bool simulate;   /* steps by events instead of formulas */
    double straggle; /* of these: how much steps of a worker differ, deviation over mean */
    int64_t seed;
    bool check;
    const _Atomic int *stop; /* nonzero: end what was started and return PACE_INTERRUPTED; may be NULL */
} pace_plan_config;

extern const pace_option pace_plan_options[];

typedef struct pace_plan_prediction {
    char mode[16];
    int workers, ps;
    uint64_t batch;
    double step_s, samples_per_second, low, high; /* rows a second, and between which they are likely to be */
    double epoch_s, seconds; /* of an epoch; of all that the run trained, or to `loss`. NAN: not known */
    double epochs;           /* to `loss`; NAN: not known */
    double efficiency; /* over as many processes of as many threads that train in mode local by themselves */
    double worker_link_bytes_s, server_link_bytes_s; /* the fuller direction */
    double chief_bytes, worker_bytes, server_bytes;  /* memory at most, besides the program */
    const char *bottleneck;
    double cost; /* below 0: no price was given */
} pace_plan_prediction;

typedef struct pace_plan_check {
    const char *run;
    pace_plan_prediction predicted;
    double measured, error; /* rows a second; predicted / measured - 1 */
    char bottleneck[16];    /* by the run's records; "": too little is known */
} pace_plan_check;

/* Between machines; how it is known: "assumed", "given", "measured". */
typedef struct pace_plan_network {
    double bytes_per_second, latency_s;
    const char *bytes_by, *latency_by;
} pace_plan_network;

typedef struct pace_plan_result {
    pace_plan_network network;
    bool elsewhere; /* of a ping: another rank knows */
    pace_plan_prediction *predictions;
    size_t count;
    int fastest, cheapest, recommended; /* of them; -1: none */
    char why[64];                       /* of the recommended one: "fastest", "cheapest within 3600 s" */
    char *fastest_command, *cheapest_command, *command; /* that train these; NULL: none */
    char currency[8];                                   /* "": none was named */
    double loss; /* until which `seconds` are; NAN: they are those of the rows that the run trained */
    pace_plan_check *checks;
    size_t check_count;
    double median_error, worst_error; /* absolute, of checks */
} pace_plan_result;

/* PACE_USAGE: impossible values; PACE_NO_INPUT: no run, or its data set is not at hand. Without a run `model` is trained on
 * `data` in mode local for some seconds, in a temporary directory. */
pace_status pace_plan(const pace_plan_config *config, const pace_log *log, pace_plan_result *result);
void pace_plan_release(pace_plan_result *result);

/*
 * Measures how fast messages go between the machines of config->hosts: processes are started on up to eight of them, and exchange
 * messages for a second. result->network has what is usual. As one of several processes that a launcher has started: the
 * network between these; what rank 0 has seen are records "ping".
 */
pace_status pace_plan_ping(const pace_plan_config *config, const pace_log *log, pace_registry *registry,
                           pace_plan_result *result);

/*
 * What workers that are to be found (PACE_WORKERS_AUTO) come to, to be asked before pace_train: puts their number into `config`,
 * that of servers unless it was given, and with `any_mode` the mode, which is never one whose model is another (asynchronous,
 * local-sgd). Learns from runs of some seconds here, says in one line what was taken and why. More than one machine is taken
 * only if that is faster beyond what predictions are off; where nothing can be learned, one is. A run that goes on
 * (config->resume) keeps what it has. Of any other number of workers: PACE_OK, and nothing is done.
 *
 * PACE_USAGE and so on: what pace_train would say of one worker; a launcher has started this process.
 */
pace_status pace_plan_workers(pace_train_config *config, bool any_mode, const pace_log *log);

#endif
