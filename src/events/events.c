#include "events/events.h"

#include "base/thinning.h"
#include "events/directory.h"
#include "events/writer.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The longest event of a record. */
#define EVENT_BYTES_MAX 2048
#define WRITE_EVERY_S   1.0
/* Samples come once a second, about, and at the end; in less time than this there is too little to divide. */
#define SAMPLE_SLACK_S 0.5
#define SAMPLE_GAP_S   0.1
/* Steps and scores in the time of a sample, once files are thinned. */
#define EACH_SAMPLE 16

typedef struct role {
    pace__event_writer writer;
    bool sampled;
    pace__counts sample; /* the last that was written */
} role;

/* Steps, or scores: what may be too many, but for the last. */
typedef struct series {
    double written_s;
    size_t held; /* bytes of the last, if it was not written */
    uint8_t event[EVENT_BYTES_MAX];
} series;

struct pace__events {
    pace_sink sink;
    pace__event_output output;
    unsigned level;       /* of thinning */
    uint64_t step, steps; /* where training stands, and its last */
    bool has_time;
    double wall_s;    /* when the registry's clock was 0 */
    double now_s;     /* of the registry's clock */
    double written_s; /* the last turn of writing */
    series train, scores;
    size_t count, turn; /* roles; where the next one is looked for */
    role role[];
};

static double wall_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- time --- */

static pace__stamp stamp_at(const pace__events *self, uint64_t step)
{
    return (pace__stamp){self->wall_s + self->now_s, step};
}

/* Invariant 5. */
static void go_by(pace__events *self, const pace_record *record)
{
    if (!self->has_time)
        self->wall_s = wall_now() - record->seconds;
    self->has_time = true;
    self->now_s = record->seconds;
}

/* --- where training stands --- */

static bool is(const pace_record *record, const char *kind)
{
    return strcmp(record->kind, kind) == 0;
}

static bool find_number(const pace_record *record, const char *name, uint64_t *number)
{
    const pace_field *field = pace_record_find(record, name);

    if (!field || field->type != PACE_FIELD_INT || field->value.integer < 0)
        return false;
    *number = (uint64_t)field->value.integer;
    return true;
}

/* Rows tell of the steps between two records of steps. */
static void follow_progress(pace__events *self, const pace_record *record)
{
    const pace_field *phase = pace_record_find(record, "phase");
    uint64_t done, total;

    if (!phase || phase->type != PACE_FIELD_TEXT || strcmp(phase->value.text, "train") != 0 ||
        !find_number(record, "done", &done) || !find_number(record, "total", &total) || done > total ||
        total == 0)
        return;
    uint64_t step = (uint64_t)((double)done / (double)total * (double)self->steps + 1e-6); /* it is rounded */

    if (step > self->step)
        self->step = step;
}

static void follow(pace__events *self, const pace_record *record)
{
    uint64_t step;

    if (is(record, "progress"))
        follow_progress(self, record);
    if (is(record, "start") && find_number(record, "step", &step)) {
        self->step = step;
        find_number(record, "steps", &self->steps);
    }
    if (is(record, "step") && find_number(record, "step", &step) && step > self->step)
        self->step = step;
}

/* --- what is written of it --- */

static void append(pace__events *self, role *to, const uint8_t *event, size_t size)
{
    pace__event_writer_append(&to->writer, &self->output, event, size);
}

/* One too many waits, in case it is the last. Invariant 4. */
static void put_in_series(pace__events *self, series *kind, const pace_record *record,
                          const pace__scalars *scalars)
{
    double gap_s = self->level ? ldexp(1.0 / EACH_SAMPLE, (int)self->level) : 0;
    pace__proto out = {kind->event, sizeof kind->event};
    uint64_t step = self->step;

    if (scalars->count == 0)
        return;
    find_number(record, "step", &step);
    pace__event_scalars(&out, stamp_at(self, step), scalars);
    assert(out.size <= out.capacity);
    kind->held = out.size;
    if (self->now_s - kind->written_s < gap_s)
        return;
    append(self, &self->role[0], kind->event, kind->held);
    kind->held = 0;
    kind->written_s = self->now_s;
}

static role *find_role(pace__events *self, const pace_record *record)
{
    const pace_field *name = pace_record_find(record, "role");

    if (!name || name->type != PACE_FIELD_TEXT)
        return NULL;
    for (size_t i = 0; i < self->count; i++) { /* ranks report one after the other */
        size_t at = (self->turn + i) % self->count;

        if (strcmp(self->role[at].writer.role, name->value.text) == 0) {
            self->turn = at + 1;
            return &self->role[at];
        }
    }
    return NULL;
}

/* Invariant 4: what is left out becomes part of the next one's means. */
static bool is_due(const pace__events *self, const role *of, const pace_record *record)
{
    const pace_field *field = pace_record_find(record, "seconds");
    double seconds = field && field->type == PACE_FIELD_REAL ? field->value.real : NAN;
    double gap_s = self->level ? ldexp(1, (int)self->level) - SAMPLE_SLACK_S : SAMPLE_GAP_S;

    return seconds > 0 && (!of->sampled || seconds - of->sample.of[PACE__SECONDS] >= gap_s);
}

static void put_sample(pace__events *self, const pace_record *record)
{
    role *of = find_role(self, record);
    uint8_t event[EVENT_BYTES_MAX];
    pace__proto out = {event, sizeof event};
    pace__scalars scalars;

    if (!of || !is_due(self, of, record))
        return;
    pace__counts now = pace__counts_read(record);

    pace__scalars_of_sample(of->sampled ? &of->sample : NULL, &now, &scalars);
    of->sample = now;
    of->sampled = true;
    pace__event_scalars(&out, stamp_at(self, self->step), &scalars);
    assert(out.size <= out.capacity);
    append(self, of, event, out.size);
}

static void thin(pace__events *self)
{
    char text[256];
    uint8_t event[EVENT_BYTES_MAX];
    pace__proto out = {event, sizeof event};

    self->level = pace__thinning_level(self->output.bytes);
    snprintf(
        text, sizeof text,
        "event files have grown to %.1f MiB: from now on a sample of each role is written every %u s, and "
        "at most %d steps and %d scores in that time",
        (double)self->output.bytes / 1048576, 1u << self->level, EACH_SAMPLE, EACH_SAMPLE);
    pace_say(self->output.log, PACE_INFO, "%s: %s", self->output.directory, text);
    pace__event_text(&out, stamp_at(self, self->step), "thinned", text);
    append(self, &self->role[0], event, out.size);
}

static void write_all(pace__events *self)
{
    for (size_t i = 0; i < self->count; i++)
        pace__event_writer_flush(&self->role[i].writer, &self->output);
    self->written_s = self->now_s;
    if (pace__thinning_level(self->output.bytes) > self->level)
        thin(self);
}

/* The registry calls its sinks one at a time. */
static void take_record(void *user, const pace_record *record)
{
    pace__events *self = user;
    pace__scalars scalars;

    go_by(self, record);
    follow(self, record);
    if (is(record, "step")) {
        pace__scalars_of_step(record, &scalars);
        put_in_series(self, &self->train, record, &scalars);
    } else if (is(record, "eval")) {
        pace__scalars_of_eval(record, &scalars);
        put_in_series(self, &self->scores, record, &scalars);
    } else if (is(record, "sample")) {
        put_sample(self, record);
    }
    if (self->now_s - self->written_s >= WRITE_EVERY_S)
        write_all(self);
}

/* --- how files begin --- */

/* All that stands before the first scalar. */
static void put_beginning(pace__proto *out, const pace__events_plan *plan, bool leads, const char *config,
                          double wall_s)
{
    pace__stamp now = {wall_s, plan->step};

    pace__event_version(out, (pace__stamp){wall_s, 0});
    if (plan->goes_on) /* what is of this step stays, as in metrics.jsonl */
        pace__event_restart(out, (pace__stamp){wall_s, plan->step + 1});
    if (!leads)
        return;
    if (config)
        pace__event_text(out, now, "config.yaml", config);
    if (plan->hparams_count > 0) {
        pace__event_experiment(out, now, plan->hparams, plan->hparams_count);
        pace__event_session_start(out, now, plan->hparams, plan->hparams_count);
    }
}

static void write_beginning(pace__events *self, const pace__events_plan *plan, role *to)
{
    bool leads = to == &self->role[0];
    char *config = leads && plan->config ? pace__config_as_markdown(plan->config) : NULL;
    double wall_s = wall_now();
    pace__proto out = {0};

    put_beginning(&out, plan, leads, config, wall_s);
    uint8_t *bytes = malloc(out.size);

    if (bytes) {
        out = (pace__proto){bytes, out.size};
        put_beginning(&out, plan, leads, config, wall_s);
        assert(out.size == out.capacity);
        pace__event_writer_put(&to->writer, &self->output, bytes, out.size);
    } else {
        pace__event_warn(&self->output, "out of memory");
    }
    free(bytes);
    free(config);
}

static void begin_files(pace__events *self, const pace__events_plan *plan)
{
    for (size_t i = 0; i < self->count; i++) {
        if (!pace__event_directory_make(&self->output, plan->role[i]))
            continue;
        pace__event_writer_open(&self->role[i].writer, &self->output, plan->role[i], false);
        write_beginning(self, plan, &self->role[i]);
    }
}

/* --- life --- */

static pace__events *create(const pace__events_plan *plan, const pace_log *log)
{
    pace__events *self = calloc(1, sizeof *self + plan->roles * sizeof *self->role);
    char *directory = strdup(plan->directory);

    assert(plan->roles > 0);
    if (!self || !directory) {
        free(self);
        free(directory);
        return NULL;
    }
    self->sink = (pace_sink){take_record, self};
    self->output = (pace__event_output){.log = log, .directory = directory};
    self->step = plan->step;
    self->train.written_s = self->scores.written_s = -INFINITY;
    self->count = plan->roles;
    for (size_t i = 0; i < plan->roles; i++) {
        self->role[i].writer.fd = -1;
        snprintf(self->role[i].writer.role, sizeof self->role[i].writer.role, "%s", plan->role[i]);
    }
    return self;
}

pace__events *pace__events_open(const pace__events_plan *plan, const pace_log *log)
{
    pace__events *self = create(plan, log);

    if (!self) {
        pace_say(log, PACE_WARN, "%s: out of memory: there are no event files", plan->directory);
        return NULL;
    }
    pace__event_files found = pace__event_files_find(plan->directory);

    pace__event_files_reopen(plan->directory);
    self->output.bytes = found.bytes;
    self->output.number = found.last + 1;
    self->level = pace__thinning_level(found.bytes);
    if (found.last == PACE__EVENT_NUMBER_MAX)
        pace__event_warn(&self->output, "numbers of event files are used up");
    else if (pace__event_directory_make(&self->output, "."))
        begin_files(self, plan);
    return self;
}

static void write_held(pace__events *self, series *kind)
{
    if (kind->held)
        append(self, &self->role[0], kind->event, kind->held);
    kind->held = 0;
}

/* A file of its own, which goes when the run goes on: readers believe the first word about an end. */
static void write_end(pace__events *self, bool success)
{
    uint8_t bytes[EVENT_BYTES_MAX];
    pace__proto out = {bytes, sizeof bytes};
    pace__stamp stamp = {wall_now(), self->step};
    pace__event_writer writer;

    pace__event_version(&out, stamp);
    pace__event_session_end(&out, stamp, success);
    assert(out.size <= out.capacity);
    pace__event_writer_open(&writer, &self->output, self->role[0].writer.role, true);
    pace__event_writer_put(&writer, &self->output, bytes, out.size);
    pace__event_writer_close(&writer, &self->output);
}

void pace__events_close(pace__events *events, pace__events_end end)
{
    if (!events)
        return;
    bool leads = events->role[0].writer.fd >= 0;

    write_held(events, &events->train);
    write_held(events, &events->scores);
    for (size_t i = 0; i < events->count; i++)
        pace__event_writer_close(&events->role[i].writer, &events->output);
    if (end != PACE__EVENTS_OPEN && leads)
        write_end(events, end == PACE__EVENTS_SUCCESS);
    free(events->output.directory);
    free(events);
}

const pace_sink *pace__events_sink(const pace__events *events)
{
    return &events->sink;
}
