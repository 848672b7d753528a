/* What ranks report on the way, and what the chief makes of it: samples and flows that fit the job and each other. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "model_files.h"
#include "support.h"

#include "jobs.h"

#define ROWS    900
#define EPOCHS  2
#define RECORDS 512

/* The sums that records only grow in. */
typedef struct seen {
    char role[PACE__ROLE_TEXT], peer[PACE__ROLE_TEXT];
    int64_t rows, sent, received;
    double seconds, split_s, wait_s, still_s;
} seen;

typedef struct listener {
    seen samples[RECORDS], flows[RECORDS], peers[RECORDS];
    size_t sample_count, flow_count, peer_count;
} listener;

static double real_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field ? field->value.real : 0;
}

static int64_t integer_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field ? field->value.integer : 0;
}

static void take_text(const pace_record *record, const char *name, char text[PACE__ROLE_TEXT])
{
    const pace_field *field = pace_record_find(record, name);

    snprintf(text, PACE__ROLE_TEXT, "%s", field ? field->value.text : "");
}

static void listen_to(void *user, const pace_record *record)
{
    listener *self = user;
    seen *to =
        strcmp(record->kind, "sample") == 0 && self->sample_count < RECORDS
            ? &self->samples[self->sample_count++]
        : strcmp(record->kind, "flow") == 0 && self->flow_count < RECORDS ? &self->flows[self->flow_count++]
        : strcmp(record->kind, "peer") == 0 && self->peer_count < RECORDS ? &self->peers[self->peer_count++]
                                                                          : NULL;

    if (!to)
        return;
    take_text(record, "role", to->role);
    take_text(record, "peer", to->peer);
    to->rows = integer_of(record, "rows");
    to->sent = integer_of(record, "bytes_sent");
    to->received = integer_of(record, "bytes_received");
    to->seconds = real_of(record, "seconds");
    to->wait_s = real_of(record, "wait_s");
    to->still_s = real_of(record, "still_s");
    to->split_s = real_of(record, "data_s") + real_of(record, "compute_s") +
                  real_of(record, "communicate_s") + real_of(record, "still_s") + to->wait_s;
}

static pace_train_config settings(void **state, int mode, int ps, bool evaluator)
{
    pace_train_config config = {.data = in(state, "set"),
                                .run = in(state, "run"),
                                .cluster = {.deadline = 60, .threads = 1},
                                .length = {.batch = 100, .epochs = EPOCHS},
                                .optimiser = {.rule = PACE_SGD, .lr = 0.1, .exact = true},
                                .faults.keep = 2,
                                .seed = 7,
                                .force = true};

    lay_out(&config, (layout){mode, 2, ps, -1, evaluator});
    return config;
}

static listener *train_and_listen(const pace_train_config *config)
{
    listener *self = calloc(1, sizeof *self);
    pace_registry *registry = pace_registry_create();
    pace_sink sink = {listen_to, self};
    pace_train_result result;

    said_clear();
    assert_true(self && registry);
    pace_registry_attach(registry, &sink);
    assert_ok(train_ranks(config, registry, &result));
    pace_registry_free(registry);
    assert_true(self->sample_count > 0 && self->sample_count < RECORDS && self->flow_count < RECORDS);
    return self;
}

/* The last of a role, or of a pair. */
static const seen *last(const seen *all, size_t count, const char *role, const char *peer)
{
    const seen *found = NULL;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].role, role) == 0 && strcmp(all[i].peer, peer) == 0)
            found = &all[i];
    }
    return found;
}

/* Every role has said something, also of a job that took no second; its time is accounted for, and rows are those of the
 * job. What one has sent, the other has received; the end's records say the same. */
static void check(const listener *self, const char *const *roles)
{
    int64_t rows = 0;

    for (size_t i = 0; roles[i]; i++) {
        const seen *sample = last(self->samples, self->sample_count, roles[i], "");

        assert_non_null(sample);
        assert_true(sample->seconds > 0 && sample->split_s >= 0.99 * sample->seconds - 1e-3);
        assert_true(sample->split_s <=
                    1.01 * sample->seconds + 0.05); /* clocks are read one after the other */
        rows += sample->rows;
        for (const seen *at = self->samples; at < sample; at++) { /* all of it only grows */
            if (strcmp(at->role, roles[i]) == 0)
                assert_true(at->rows <= sample->rows && at->seconds <= sample->seconds &&
                            at->wait_s <= sample->wait_s && at->still_s <= sample->still_s);
        }
    }
    assert_int_equal(rows, ROWS * EPOCHS);
    assert_true(self->peer_count > 0);
    for (size_t i = 0; i < self->peer_count; i++) {
        const seen *end = &self->peers[i], *here = last(self->flows, self->flow_count, end->role, end->peer),
                   *there = last(self->flows, self->flow_count, end->peer, end->role);

        assert_true(here && there && here->sent == end->sent && here->received == end->received);
        assert_true(here->sent == there->received && here->received == there->sent);
    }
}

static void every_rank_is_sampled(void **state)
{
    static const char *const servers[] = {"chief", "worker1", "ps0", "ps1", "evaluator", NULL},
                             *const workers[] = {"chief", "worker1", NULL};
    static const int modes[] = {PACE_MODE_PS_SYNC, PACE_MODE_PS_ASYNC, PACE_MODE_ALLREDUCE};
    tiny_set set =
        tiny_make((tiny_plan){.train = ROWS, .test = 100, .ids = 50, .columns = 7, .parts = 2, .seed = 3});

    tiny_write(&set, in(state, "set"));
    tiny_free(&set);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        bool merge = modes[i] == PACE_MODE_ALLREDUCE;
        pace_train_config config = settings(state, modes[i], merge ? 0 : 2, !merge);

        config.records.eval_every = 3; /* the chief of an allreduce scores, and stands still for it */
        listener *self = train_and_listen(&config);

        check(self, merge ? workers : servers);
        assert_true(!merge || last(self->samples, self->sample_count, "chief", "")->still_s > 0);
        free(self);
    }
}

/* Threads that split the columns are one role, which waits for nobody. */
static void threads_are_sampled_as_one(void **state)
{
    tiny_set set =
        tiny_make((tiny_plan){.train = ROWS, .test = 100, .ids = 50, .columns = 7, .parts = 2, .seed = 3});
    pace_train_config config = settings(state, PACE_MODE_LOCAL, -1, false);
    listener *self = calloc(1, sizeof *self);
    pace_registry *registry = pace_registry_create();
    pace_sink sink = {listen_to, self};
    pace_train_result result;

    tiny_write(&set, in(state, "set"));
    tiny_free(&set);
    config.cluster.workers = 1;
    config.cluster.threads = 2;
    pace_registry_attach(registry, &sink);
    assert_ok(pace_train(&config, &said_log, registry, &result));
    const seen *sample = last(self->samples, self->sample_count, "chief", "");

    assert_non_null(sample);
    assert_int_equal(sample->rows, ROWS * EPOCHS);
    assert_true(sample->wait_s == 0 && sample->seconds > 0);
    assert_true(sample->split_s >= 0.99 * sample->seconds && sample->split_s <= 1.01 * sample->seconds);
    assert_int_equal(self->flow_count, 0);
    pace_registry_free(registry);
    free(self);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_rank_is_sampled),
        TEST(threads_are_sampled_as_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
