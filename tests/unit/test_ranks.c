/* Ranks of a job find each other: names, the first word, one error that rank 0 says. Threads play the processes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "ranks/hello.h"
#include "ranks/ranks.h"
#include "threads/thread.h"

#include "support.h"

#include <limits.h>

#define RANKS  3
#define MOST_S 60
/* That no message has. */
#define NOBODYS_TAG 0

typedef struct job job;

/* What one rank of a test does. */
typedef pace_status act(job *self, pace__rank *rank);

struct job {
    act *act;
    pace__cluster cluster;
    bool speaks;
    const char *words[RANKS];
    pace__link *links[RANKS];
    pace_status status[RANKS];
    char reason[RANKS][PACE__LINK_REASON_MAX];
};

static pace_status run_rank(void *arg, int thread)
{
    job *self = arg;
    pace__rank rank;

    pace__rank_open(&rank, self->links[thread], &self->cluster, self->speaks, &said_log);
    require(rank.number == thread);
    pace_status status = self->act(self, &rank);

    self->status[thread] = status;
    if (status)
        pace__rank_fail(&rank, status);
    if (status)
        pace__rank_fail(&rank, status); /* once is enough */
    memcpy(self->reason[thread], rank.reason, sizeof rank.reason);
    pace__rank_close(&rank);
    return PACE_OK;
}

static void run(job *self)
{
    pace__link_options options = {.deadline_ns = MOST_S * UINT64_C(1000000000),
                                  .first_deadline_ns = MOST_S * UINT64_C(1000000000),
                                  .log = &said_log};

    if (self->cluster.workers == 0)
        self->cluster = (pace__cluster){.workers = 2, .ps = 1};
    said_clear();
    assert_ok(pace__link_open_threads(RANKS, RANKS, &options, self->links));
    assert_ok(pace__team(RANKS, run_rank, self, &said_log));
}

/* --- the first word --- */

static pace_status greet(job *self, pace__rank *rank)
{
    pace_status status = pace__rank_greet(rank, self->words[rank->number], "data set");
    char host[HOST_NAME_MAX + 1] = "", name[PACE__LINK_NAME_MAX];

    if (status)
        return status;
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < RANKS; i++) {
        static const char *const roles[] = {"chief", "worker1", "ps0"};

        snprintf(name, sizeof name, "%s (rank %d, host %s)", roles[i], i, host);
        require(strcmp(rank->hosts[i], host) == 0);
        require(strcmp(pace__link_name(rank->link, i), name) == 0);
    }
    return pace__ranks_meet(rank->link);
}

static void same_words_are_one_job(void **state)
{
    job all = {.act = greet, .words = {"a=1 b=2 data=3", "a=1 b=2 data=3", "a=1 b=2"}};

    (void)state;
    run(&all);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(all.status[i], PACE_OK);
    assert_string_equal(said, "");
}

static void other_words_are_named(void **state)
{
    job all = {.act = greet, .words = {"a=1 b=2 c=3", "a=1 b=2 c=3", "a=1 b=22 c=4"}};

    (void)state;
    run(&all);
    assert_int_equal(all.status[0], PACE_USAGE);
    assert_int_equal(errors_said(), 1);
    assert_said("ps0 (rank 2, host ");
    assert_said(
        ") has another job: b=22 there, b=2 on the chief; start all ranks with the same options and the "
        "same data set");
}

static void words_agree(void **state)
{
    static const struct {
        const char *own, *theirs;
        bool agree;
        size_t word;
    } cases[] = {
        {"", "", true, 0},
        {"a=1", "", true, 0},
        {"a=1 b=2", "a=1 b=2", true, 4},
        {"a=1 b=2", "a=1", true, 0},
        {"a=1", "a=1 b=2", true, 0},
        {"a=1 b=2", "a=1 b=3", false, 4},
        {"a=12", "a=1", false, 0},
        {"a=1", "a=12", false, 0},
        {"a=1 b=2 c=3", "a=1 b=2 d=3", false, 8},
        {"a=1 b=2", "a=1 b=22", false, 4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t word = SIZE_MAX;

        assert_true(pace__words_agree(cases[i].own, cases[i].theirs, &word) == cases[i].agree);
        if (!cases[i].agree)
            assert_int_equal(word, cases[i].word);
    }
}

static pace_status greet_at_length(job *self, pace__rank *rank)
{
    size_t size = rank->number == 1 ? PACE__WORDS_BYTES_MAX : 10;
    char *words = malloc(size + 1);

    (void)self;
    require(words);
    memset(words, 'a', size);
    words[size] = '\0';
    pace_status status = pace__rank_greet(rank, words, "data set");

    free(words);
    return status;
}

static void too_many_words(void **state)
{
    job all = {.act = greet_at_length};

    (void)state;
    run(&all);
    assert_int_equal(all.status[0], PACE_USAGE);
    assert_said("worker1 (rank 1, host ");
    assert_said("16777217 bytes of options are more than the limit of 16777216");
}

/* --- failures --- */

static pace_status fail_as_last(job *self, pace__rank *rank)
{
    (void)self;
    if (rank->number < RANKS - 1)
        return pace__ranks_meet(rank->link);
    pace_say(rank->log, PACE_WARN, "seen by everyone");
    rank->warns = true;
    pace_say(rank->log, PACE_WARN, "seen here");
    pace_say(rank->log, PACE_INFO, "nobody wants to know");
    pace__rank_set_step(rank, 7);
    pace_fail(rank->log, PACE_IO, "disk full");
    return pace_fail(rank->log, PACE_IO, "and what came of it");
}

static void rank_0_says_why(void **state)
{
    job all = {.act = fail_as_last};

    (void)state;
    run(&all);
    assert_int_equal(all.status[0], PACE_IO);
    assert_int_equal(errors_said(), 1);
    assert_said("E ps0 (rank 2, host ");
    assert_said("), step 7: disk full\n");
    assert_said("W seen here\n");
    assert_null(strstr(said, "everyone"));
    assert_null(strstr(said, "nobody"));
    assert_string_equal(all.reason[1], ""); /* it has only heard of it */
}

/* As if it were the first one. */
static void say_error(pace__rank *rank, const char *text)
{
    atomic_store(&rank->told, false);
    pace_say(rank->log, PACE_ERROR, "%s", text);
}

static pace_status fail_as_first(job *self, pace__rank *rank)
{
    (void)self;
    if (rank->number > 0)
        return pace__ranks_meet(rank->link);
    pace_say(rank->log, PACE_INFO, "said at once");
    say_error(rank, "without a step");
    pace__rank_set_step(rank, 3);
    say_error(rank, "with one");
    say_error(rank, "of ps0 (rank 2)");
    pace_say(rank->log, PACE_ERROR, "of another rank, at the same time");
    pace_say(&rank->caller_log, PACE_ERROR, "of another rank, by another way");
    pace__rank_set_step(rank, PACE__NO_STEP);
    atomic_store(&rank->told, false);
    return pace_fail(rank->log, PACE_BAD_DATA, "without a step again");
}

static void rank_0_speaks(void **state)
{
    char *place;

    (void)state;
    job all = {.act = fail_as_first};

    run(&all);
    assert_said("I said at once\nE without a step\nE chief (rank 0, host ");
    place = strstr(said, "), step 3: with one\nE of ps0 (rank 2)\nE without a step again\n");
    assert_non_null(place);
    assert_int_equal(all.status[1], PACE_BAD_DATA);
}

static pace_status fail_and_speak(job *self, pace__rank *rank)
{
    (void)self;
    return rank->number == 1 ? pace_fail(rank->log, PACE_IO, "said here") : pace__ranks_meet(rank->link);
}

static void threads_speak_for_themselves(void **state)
{
    job all = {.act = fail_and_speak, .speaks = true};

    (void)state;
    run(&all);
    assert_said("E said here\n");
    assert_null(strstr(said, "(rank 1"));
}

/* --- watching --- */

static pace_status stop(void *user)
{
    return *(const bool *)user ? PACE_INTERRUPTED : PACE_OK;
}

static pace_status stop_while_waiting(job *self, pace__rank *rank)
{
    bool stopped = rank->number == 0;
    pace_status status;

    (void)self;
    pace__rank_watch(rank, stop, &stopped);
    status = pace__rank_pulse(rank);
    require(status == (stopped ? PACE_INTERRUPTED : PACE_OK) || rank->number > 0);
    if (rank->number > 0)
        return pace__ranks_meet(rank->link);
    pace__request never = {0}; /* a meeting might not wait: the others may be there already */
    char byte;

    pace__link_receive(rank->link, 1, NOBODYS_TAG, &byte, sizeof byte, &never);
    status = pace__link_wait(rank->link, &never, "what nobody sends");
    pace__link_cancel(rank->link, &never);
    return status;
}

static void a_request_ends_a_wait(void **state)
{
    job all = {.act = stop_while_waiting};

    (void)state;
    run(&all);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(all.status[i], PACE_INTERRUPTED);
}

/* --- together --- */

static pace_status tell_each_other(job *self, pace__rank *rank)
{
    uint64_t mine = 10 + (uint64_t)rank->number, all[RANKS] = {0}, word = mine;
    pace_status status = pace__ranks_exchange(rank->link, &mine, sizeof mine, all);

    (void)self;
    for (uint64_t i = 0; i < RANKS && !status; i++)
        require(all[i] == 10 + i);
    if (!status)
        status = pace__ranks_share(rank->link, &word, sizeof word);
    require(status || word == 10);
    if (!status)
        status = pace__ranks_gather(rank->link, &mine, sizeof mine, rank->number == 0 ? all : NULL);
    return status;
}

static void ranks_tell_each_other(void **state)
{
    job all = {.act = tell_each_other};

    (void)state;
    run(&all);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(all.status[i], PACE_OK);
}

/* --- messages of another size --- */

static pace_status cut_short(job *self, pace__rank *rank)
{
    uint64_t word = 0;

    (void)self;
    if (rank->number == 0) {
        pace_status status = pace__ranks_send(rank->link, 1, &word, 1, "a byte to leave");

        return status ? status : pace__ranks_send(rank->link, 2, &word, sizeof word, "a word to leave");
    }
    return pace__ranks_share(rank->link, &word, sizeof word);
}

static void what_is_cut_short_is_refused(void **state)
{
    job self = {.act = cut_short};

    (void)state;
    run(&self);
    assert_int_equal(self.status[1], PACE_BUG);
    assert_int_equal(self.status[2], PACE_OK);
    assert_non_null(
        strstr(self.reason[1], "chief (rank 0) has sent 1 bytes as its word to go on, which has 8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_cut_short_is_refused),
        cmocka_unit_test(same_words_are_one_job),
        cmocka_unit_test(other_words_are_named),
        cmocka_unit_test(words_agree),
        cmocka_unit_test(too_many_words),
        cmocka_unit_test(rank_0_says_why),
        cmocka_unit_test(rank_0_speaks),
        cmocka_unit_test(threads_speak_for_themselves),
        cmocka_unit_test(a_request_ends_a_wait),
        cmocka_unit_test(ranks_tell_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
