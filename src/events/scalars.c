#include "events/scalars.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void add(pace__scalars *scalars, const char *group, const char *name, double value)
{
    if (scalars->count == PACE__SCALARS_MAX)
        return;
    pace__scalar *scalar = &scalars->item[scalars->count];
    int size = snprintf(scalar->tag, sizeof scalar->tag, "%s/%s", group, name);

    if (size < 0 || (size_t)size >= sizeof scalar->tag)
        return; /* a cut name may be another one's */
    scalar->value = value;
    scalars->count++;
}

static double value_of(const pace_field *field)
{
    return !field                           ? NAN
           : field->type == PACE_FIELD_INT  ? (double)field->value.integer
           : field->type == PACE_FIELD_REAL ? field->value.real
                                            : NAN;
}

static bool is_loss(const char *name)
{
    return strcmp(name, "loss") == 0 || strcmp(name, "logloss") == 0;
}

static void add_field(pace__scalars *scalars, const char *group, const pace_field *field)
{
    double value = value_of(field);

    if (isfinite(value) || is_loss(field->name))
        add(scalars, group, field->name, value);
}

void pace__scalars_of_step(const pace_record *record, pace__scalars *scalars)
{
    static const char *const names[] = {"loss", "lr", "rows_per_s", "epoch"};

    scalars->count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const pace_field *field = pace_record_find(record, names[i]);

        if (field)
            add_field(scalars, "train", field);
    }
}

void pace__scalars_of_eval(const pace_record *record, pace__scalars *scalars)
{
    const pace_field *set = pace_record_find(record, "set");
    const char *group = set && set->type == PACE_FIELD_TEXT && set->value.text ? set->value.text : "test";

    scalars->count = 0;
    for (size_t i = 0; i < record->count; i++) {
        const pace_field *field = &record->fields[i];

        if (field->type == PACE_FIELD_REAL && strcmp(field->name, "epoch") != 0)
            add_field(scalars, group, field);
    }
}

/* --- samples --- */

static const char *const count_names[PACE__COUNTS] = {
    [PACE__SECONDS] = "seconds",
    [PACE__ROWS] = "rows",
    [PACE__DATA_S] = "data_s",
    [PACE__COMPUTE_S] = "compute_s",
    [PACE__COMMUNICATE_S] = "communicate_s",
    [PACE__STILL_S] = "still_s",
    [PACE__WAIT_S] = "wait_s",
    [PACE__USER_S] = "user_s",
    [PACE__SYSTEM_S] = "system_s",
    [PACE__DELAY_S] = "delay_s",
    [PACE__RSS_BYTES] = "rss_bytes",
    [PACE__MAJOR_FAULTS] = "major_faults",
    [PACE__READ_BYTES] = "read_bytes",
    [PACE__WRITE_BYTES] = "write_bytes",
    [PACE__NET_SENT_BYTES] = "net_sent_bytes",
    [PACE__NET_RECEIVED_BYTES] = "net_received_bytes",
    [PACE__REQUESTS] = "requests",
    [PACE__LOOKS] = "looks",
    [PACE__PUSHES] = "pushes",
    [PACE__STALE_PUSHES] = "stale_pushes",
};

/* Where a count begins: with training, or before it, so that only differences tell something. */
typedef enum beginning { WITH_TRAINING, BEFORE_IT } beginning;

typedef struct quotient {
    const char *group, *name;
    pace__count count, per;
    beginning begins;
    bool seldom; /* shown once it has happened */
} quotient;

static const quotient quotients[] = {
    {"throughput", "rows_per_s", PACE__ROWS, PACE__SECONDS, WITH_TRAINING, .seldom = true},
    {"time", "data", PACE__DATA_S, PACE__SECONDS, WITH_TRAINING},
    {"time", "compute", PACE__COMPUTE_S, PACE__SECONDS, WITH_TRAINING},
    {"time", "communicate", PACE__COMMUNICATE_S, PACE__SECONDS, WITH_TRAINING},
    {"time", "still", PACE__STILL_S, PACE__SECONDS, WITH_TRAINING, .seldom = true},
    {"time", "wait", PACE__WAIT_S, PACE__SECONDS, WITH_TRAINING},
    {"system", "cpu_delay", PACE__DELAY_S, PACE__SECONDS, BEFORE_IT},
    {"system", "major_faults_per_s", PACE__MAJOR_FAULTS, PACE__SECONDS, BEFORE_IT},
    {"system", "disk_read_bytes_per_s", PACE__READ_BYTES, PACE__SECONDS, BEFORE_IT},
    {"system", "disk_write_bytes_per_s", PACE__WRITE_BYTES, PACE__SECONDS, BEFORE_IT},
    {"system", "net_sent_bytes_per_s", PACE__NET_SENT_BYTES, PACE__SECONDS, BEFORE_IT},
    {"system", "net_received_bytes_per_s", PACE__NET_RECEIVED_BYTES, PACE__SECONDS, BEFORE_IT},
    {"server", "requests_per_s", PACE__REQUESTS, PACE__SECONDS, WITH_TRAINING, .seldom = true},
    {"server", "queue", PACE__REQUESTS, PACE__LOOKS, WITH_TRAINING},
    {"server", "staleness", PACE__STALE_PUSHES, PACE__PUSHES, WITH_TRAINING},
};

pace__counts pace__counts_read(const pace_record *record)
{
    pace__counts sample = {0};

    for (size_t i = 0; i < record->count; i++) {
        for (int count = 0; count < PACE__COUNTS; count++) {
            if (strcmp(record->fields[i].name, count_names[count]) == 0)
                sample.of[count] = value_of(&record->fields[i]);
        }
    }
    return sample;
}

static void add_quotient(pace__scalars *scalars, const quotient *row, const pace__counts *before,
                         const pace__counts *now)
{
    static const pace__counts nothing = {0};

    if ((row->seldom && !(now->of[row->count] > 0)) || (!before && row->begins == BEFORE_IT))
        return;
    before = before ? before : &nothing;
    double per = now->of[row->per] - before->of[row->per];
    double value = (now->of[row->count] - before->of[row->count]) / per;

    if (per > 0 && isfinite(value))
        add(scalars, row->group, row->name, value);
}

void pace__scalars_of_sample(const pace__counts *before, const pace__counts *now, pace__scalars *scalars)
{
    static_assert(sizeof quotients / sizeof *quotients + 2 <= PACE__SCALARS_MAX, "there is room for all");
    scalars->count = 0;
    if (now->of[PACE__RSS_BYTES] > 0)
        add(scalars, "system", "memory_bytes", now->of[PACE__RSS_BYTES]);
    if (before) {
        double busy_s = now->of[PACE__USER_S] + now->of[PACE__SYSTEM_S] - before->of[PACE__USER_S] -
                        before->of[PACE__SYSTEM_S];
        double seconds = now->of[PACE__SECONDS] - before->of[PACE__SECONDS];

        if (seconds > 0 && isfinite(busy_s))
            add(scalars, "system", "cpu", busy_s / seconds);
    }
    for (size_t i = 0; i < sizeof quotients / sizeof *quotients; i++)
        add_quotient(scalars, &quotients[i], before, now);
}
