/*
 * start.h - where a prep runs: in this process alone, as one of the processes that a launcher has started, or
 * in processes that this one starts through mpirun.
 *
 * What is different from prep to prep is a pace__prep_kind; all else is done here:
 *
 *     static const pace__prep_kind kind = {.verb = "prep reviews", ...};
 *
 *     pace__prep_job_init(&prep->job, &kind, prep, &config->common, log, registry);
 *     status = pace__prep_run(&prep->job, result);
 *     pace__prep_job_release(&prep->job);
 *
 * A result travels from rank 0 to whoever has started it as a record, "prepared", with a field for each row of
 * kind->fields.
 */
#ifndef PREP_START_H
#define PREP_START_H

#include "prep/job.h"

#define PACE__RESULT_FIELDS_MAX 64

typedef struct pace__result_field {
    const char *name;
    size_t at;
    bool real; /* a double, else uint64_t */
} pace__result_field;

struct pace__prep_kind {
    const char *verb;
    const pace_option_table *tables; /* of its config, which begins with a pace_prep_common */
    size_t config_bytes;
    const pace__result_field *fields; /* up to one without a name */
    size_t result_bytes;
    /* In the result: "another rank has it", how long it took, how many ranks there were, above 0. */
    size_t elsewhere_at, seconds_at, ranks_at;

    /* Options to what the phases need. The message of whatever is wrong with them goes to `log`. */
    pace_status (*settle)(void *prep, const pace_log *log);
    /* All of it in this process, once it is settled; NULL: as a rank alone. */
    pace_status (*run_here)(void *prep, void *result);
    /* All phases of one rank, which takes over the link; rank 0 fills the result. */
    pace_status (*run_rank)(void *prep, pace__link *link, void *result);
    /* What of a result, besides `fields`, travels in records of its own; both may be NULL. */
    void (*emit_more)(pace_registry *registry, const void *result);
    void (*take_more)(void *result, const pace_record *record);
};

/* *result is set on success, and where another rank has it. */
pace_status pace__prep_run(pace__prep_job *job, void *result);

#endif
