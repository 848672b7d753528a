/* Verdicts on jobs whose cause is known, because the numbers were made for it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "verdict/verdict.h"

#include <math.h>
#include <string.h>

#define ROLES_MAX 8

/* A job of 100 s: a chief, workers and servers that did what `usual` says, until a test says otherwise. */
typedef struct made_job {
    pace__worked roles[ROLES_MAX];
    pace__verdict_facts facts;
} made_job;

static const char *const worker_names[] = {"chief", "worker1", "worker2", "worker3"};
static const char *const server_names[] = {"ps0", "ps1"};

static void make_job(made_job *job, int workers, int ps, pace__worked usual)
{
    *job = (made_job){.facts = {.synchronous = true, .seconds = 100, .batch = 100, .steps = 10000, .ps = ps}};
    for (int i = 0; i < workers; i++) {
        job->roles[i] = usual;
        job->roles[i].name = worker_names[i];
        job->roles[i].kind = PACE__WORKER;
        job->roles[i].is_known = true;
    }
    for (int i = 0; i < ps; i++)
        job->roles[workers + i] = (pace__worked){.name = server_names[i],
                                                 .kind = PACE__PS,
                                                 .is_known = true,
                                                 .communicate_s = 5,
                                                 .requests = 100,
                                                 .looks = 80};
    job->facts.roles = job->roles;
    job->facts.count = (size_t)(workers + ps);
}

/* All seconds are given away, and the words are there. */
static pace__verdict judge(const made_job *job, pace__cause cause)
{
    pace__verdict verdict = pace__verdict_of(&job->facts);
    double sum_s = 0;

    for (int i = 0; i < PACE__CAUSES; i++) {
        assert_true(verdict.taken_s[i] >= 0);
        sum_s += verdict.taken_s[i];
    }
    assert_true(fabs(sum_s - job->facts.seconds - job->facts.after_s) < 1e-6);
    assert_string_equal(pace__cause_name(verdict.cause), pace__cause_name(cause));
    assert_true(strlen(verdict.evidence) > 20 && strlen(verdict.advice) > 20);
    assert_true(fabs(verdict.without_s + verdict.taken_s[cause] - verdict.all_s) < 1e-6);
    return verdict;
}

static void assert_says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("'%s' does not say '%s'", text, words);
}

/* The verdict is about that role, and says so. */
static void judge_role(const made_job *job, pace__cause cause, int who, const char *evidence,
                       const char *advice)
{
    pace__verdict verdict = judge(job, cause);

    assert_int_equal(verdict.who, who);
    assert_says(verdict.evidence, evidence);
    assert_says(verdict.advice, advice);
}

static void alone_it_computes(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 1, 0, (pace__worked){.data_s = 10, .compute_s = 80});
    pace__verdict verdict = judge(&job, PACE__CAUSE_COMPUTE);

    assert_says(verdict.evidence, "the worker computes for 90 %"); /* what was not measured is among it */
    assert_says(verdict.advice, "threads or workers");
}

static void more_threads_than_processors(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 2, 0, (pace__worked){.compute_s = 90, .delay_s = 50});
    assert_says(judge(&job, PACE__CAUSE_COMPUTE).evidence, "no processor was free");
}

/* What a profile has found. */
static void memory_that_is_too_slow(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 2, 0, (pace__worked){.data_s = 10, .compute_s = 80});
    job.facts.memory_share = 0.75;
    job.facts.memory_gbytes_s = 9.5;
    job.facts.peak_gbytes_s = 11;
    pace__verdict verdict = judge(&job, PACE__CAUSE_MEMORY);

    assert_float_equal(verdict.taken_s[PACE__CAUSE_MEMORY], 60, 1e-9);
    assert_says(
        verdict.evidence,
        "2 workers compute for 60 % of the time in operations that move 9.5 GB/s; a core can read 11");
    assert_says(verdict.advice, "twice as many machines");
    job.facts.memory_share = 0.25;
    judge(&job, PACE__CAUSE_COMPUTE);
}

static void a_slow_disk(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 1, 0, (pace__worked){.data_s = 70, .compute_s = 30, .read_bytes = 7e9});
    pace__verdict verdict = judge(&job, PACE__CAUSE_DATA);

    assert_says(verdict.evidence, "70 %");
    assert_says(verdict.evidence, "70 MB/s");
    assert_says(verdict.advice, "bring training to about 30 s");
    job.facts.after_s = 20; /* scoring behind the last step is no part of what it forecasts */
    assert_says(judge(&job, PACE__CAUSE_DATA).advice, "bring training to about 30 s");
    make_job(&job, 1, 0, (pace__worked){.data_s = 100, .read_bytes = 7e9});
    job.facts.after_s = 0.3; /* 100.3 - 100 is less than that */
    assert_says(judge(&job, PACE__CAUSE_DATA).advice, "bring training to about 0 s");
}

static void a_narrow_link(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 4, 1,
             (pace__worked){.compute_s = 20,
                            .communicate_s = 1,
                            .sent_bytes = 2e9,
                            .received_bytes = 1e9,
                            .messages = 20000});
    job.roles[4].sent_bytes = 4e9;
    job.roles[4].received_bytes = 8e9;
    judge_role(&job, PACE__CAUSE_NETWORK, 4, "ps0 sends 40 MB/s and receives 80 MB/s", "--ps 2");
}

/* Without a server, each worker's link is as busy: larger steps send less for each row. */
static void narrow_links_of_all(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 4, 0,
             (pace__worked){.compute_s = 20, .sent_bytes = 2e9, .received_bytes = 2e9, .messages = 20000});
    assert_says(judge(&job, PACE__CAUSE_NETWORK).advice, "--batch 1000 instead of 100");
}

static void a_server_that_is_slow(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 4, 2, (pace__worked){.compute_s = 20, .sent_bytes = 1e8, .messages = 20000});
    job.roles[5].communicate_s = 78;
    pace__verdict verdict = judge(&job, PACE__CAUSE_SERVER);

    assert_int_equal(verdict.who, 5);
    assert_says(verdict.evidence, "ps1 is busy for 78 %");
    assert_says(verdict.evidence, "1.2 requests");
    assert_says(verdict.advice, "--ps 4");
}

static void one_that_is_slow(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 4, 1, (pace__worked){.compute_s = 30});
    job.roles[2].compute_s = 90;
    pace__verdict verdict = judge(&job, PACE__CAUSE_STRAGGLER);

    assert_int_equal(verdict.who, 2);
    assert_says(verdict.evidence, "worker2 is busy for 90 % of the time");
    /* With backups nobody waits for it, and the spare ones, who do nothing, make nobody slow. */
    job.facts.backups = 1;
    assert_true(pace__verdict_of(&job.facts).cause != PACE__CAUSE_STRAGGLER);
    job.facts.backups = 0;
    /* Those who do not wait for each other have no straggler. */
    job.facts.synchronous = false;
    assert_true(pace__verdict_of(&job.facts).cause != PACE__CAUSE_STRAGGLER);
}

/* Steps wait for a worker that is away: others could have had its slice. */
static void one_that_is_away(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 4, 1, (pace__worked){.compute_s = 30});
    job.roles[2].away_s = 50;
    job.facts.can_back_up = true;
    judge_role(&job, PACE__CAUSE_STALL, 2,
               "worker2 was away for about 50 s, and neither worked nor was heard of",
               "--backup-workers 1, so that others compute what it does not bring in time");
    job.facts.backups = 1; /* one is missed by nobody, two are */
    assert_true(pace__verdict_of(&job.facts).taken_s[PACE__CAUSE_STALL] == 0);
    job.roles[1].away_s = 40;
    judge_role(&job, PACE__CAUSE_STALL, 1, "worker1 was away for about 40 s", "--backup-workers 2");
    make_job(&job, 3, 0, (pace__worked){.compute_s = 30});
    job.roles[1].away_s = 50;
    judge_role(&job, PACE__CAUSE_STALL, 1, "the others waited for it: 50 %", "--mode ps-sync with --ps and");
    job.facts.rounds = true;
    judge_role(&job, PACE__CAUSE_STALL, 1, "the others waited for it", "look what stops it on its host");
}

/* Elsewhere a worker's own time is gone; but everyone needs a server. */
static void one_that_is_away_from_a_job_that_does_not_wait(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 2, 1, (pace__worked){.compute_s = 30});
    job.facts.synchronous = false;
    job.roles[1].away_s = 80;
    pace__verdict verdict = judge(&job, PACE__CAUSE_STALL);

    assert_float_equal(verdict.taken_s[PACE__CAUSE_STALL], 40, 1e-9);
    assert_says(verdict.evidence, "its rows were missing");
    job.roles[2].away_s = 60;
    judge_role(&job, PACE__CAUSE_STALL, 2, "ps0 was away for about 60 s", "look what stops it on its host");
}

/* Who is held back by a share of a processor says that it waits: its delay tells. */
static void a_worker_without_a_processor(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 3, 0, (pace__worked){.compute_s = 10, .delay_s = 1});
    job.roles[2].delay_s = 80;
    pace__verdict verdict = judge(&job, PACE__CAUSE_STRAGGLER);

    assert_int_equal(verdict.who, 2);
    assert_says(verdict.evidence,
                "worker2 is busy for 10 % of the time, and has no processor for 70 %, the others for 10 %");
}

static void a_server_without_a_processor(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 2, 2,
             (pace__worked){
                 .compute_s = 5, .delay_s = 2, .sent_bytes = 1e9, .received_bytes = 1e9, .messages = 20000});
    job.roles[3].delay_s = 90;
    judge_role(&job, PACE__CAUSE_SERVER, 3, "ps1 is busy for 5 % of the time, and has no processor for ",
               "a machine with a processor for ps1, or --ps 4");
}

static void nobody_has_a_processor(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 2, 1, (pace__worked){.compute_s = 30, .delay_s = 50});
    job.roles[1].delay_s = 60;
    job.roles[2].delay_s = 60;
    judge(&job, PACE__CAUSE_COMPUTE);
}

/* Where processors are short because messages take them, it is the messages. */
static void messages_take_the_processors(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 4, 1, (pace__worked){.compute_s = 1, .delay_s = 60, .cpu_s = 35, .messages = 20000});
    job.roles[4].delay_s = 60;
    assert_says(judge(&job, PACE__CAUSE_STEPS).advice, "--batch 10000 instead of 100");
}

static void workers_of_about_the_same_speed(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 4, 0, (pace__worked){.compute_s = 70});
    job.roles[2].compute_s = 80;
    judge(&job, PACE__CAUSE_COMPUTE);
}

static void tiny_steps(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 2, 1,
             (pace__worked){.compute_s = 20, .sent_bytes = 2e7, .received_bytes = 1e7, .messages = 20000});
    pace__verdict verdict = judge(&job, PACE__CAUSE_STEPS);

    assert_says(verdict.evidence, "75 % of the time: 7.5 ms in each of 10000 steps of 100 rows");
    /* 75 s of pauses become .75 s: of 25.75 s, 3 %. A tenth, 7.5 of 32.5 s, would be above 20 %. */
    assert_says(verdict.advice, "--batch 10000 instead of 100 would cut waiting from 75 % to about 3 %");
}

/* Workers that hold the shards themselves: what they pack, send and serve is no waiting. */
static void exchange_is_told_with_waiting(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 4, 0, (pace__worked){.compute_s = 20, .communicate_s = 70});
    assert_says(judge(&job, PACE__CAUSE_STEPS).evidence, "wait for others, or exchange with them, for 80 %");
}

static void on_one_host_there_is_no_network(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 2, 1, (pace__worked){.compute_s = 20}); /* bytes are those between hosts */
    judge(&job, PACE__CAUSE_STEPS);
}

static void storms_of_checkpoints(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 2, 1, (pace__worked){.compute_s = 30});
    job.roles[0].still_s = 60;
    job.facts.checkpoint_s = 55;
    job.facts.checkpoints = 1000;
    pace__verdict verdict = judge(&job, PACE__CAUSE_CHECKPOINT);

    assert_says(verdict.evidence, "1000 checkpoints");
    assert_says(verdict.advice, "100 times as large");
    assert_true(fabs(verdict.taken_s[PACE__CAUSE_SCORING] - 5) < 1e-9);
}

static void scores_all_the_time(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 1, 0, (pace__worked){.compute_s = 30, .still_s = 70});
    assert_says(judge(&job, PACE__CAUSE_SCORING).advice, "--evaluator");
    job.facts.chooses = true; /* which an evaluator cannot do */
    assert_null(strstr(judge(&job, PACE__CAUSE_SCORING).advice, "--evaluator"));
    job.facts.chooses = false;
    job.facts.after_s = 100;
    job.facts.has_evaluator = true;
    pace__verdict verdict = judge(&job, PACE__CAUSE_SCORING);

    assert_says(verdict.evidence, "59 % of that behind the last step");
    assert_null(strstr(verdict.advice, "--evaluator"));
}

/* Clocks that do not agree: a worker that says more than there was. */
static void more_seconds_than_there_were(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 2, 1, (pace__worked){.data_s = 500, .compute_s = 800, .still_s = 1e9});
    judge(&job, PACE__CAUSE_SCORING);
}

static void too_little_is_known(void **state)
{
    made_job job;

    (void)state;
    make_job(&job, 1, 0, (pace__worked){.compute_s = 1});
    job.facts.seconds = 0.01;
    assert_int_equal(pace__verdict_of(&job.facts).cause, PACE__CAUSE_NONE);
    job.facts.seconds = NAN;
    assert_int_equal(pace__verdict_of(&job.facts).cause, PACE__CAUSE_NONE);
    job.facts.seconds = 100;
    job.facts.count = 0;
    pace__verdict verdict = pace__verdict_of(&job.facts);
    char line[2 * PACE__VERDICT_TEXT];

    assert_int_equal(verdict.cause, PACE__CAUSE_NONE);
    pace__verdict_line(&verdict, line);
    assert_string_equal(line, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_computes),
        cmocka_unit_test(more_threads_than_processors),
        cmocka_unit_test(memory_that_is_too_slow),
        cmocka_unit_test(a_slow_disk),
        cmocka_unit_test(a_narrow_link),
        cmocka_unit_test(narrow_links_of_all),
        cmocka_unit_test(a_server_that_is_slow),
        cmocka_unit_test(one_that_is_slow),
        cmocka_unit_test(one_that_is_away),
        cmocka_unit_test(one_that_is_away_from_a_job_that_does_not_wait),
        cmocka_unit_test(a_worker_without_a_processor),
        cmocka_unit_test(a_server_without_a_processor),
        cmocka_unit_test(nobody_has_a_processor),
        cmocka_unit_test(messages_take_the_processors),
        cmocka_unit_test(workers_of_about_the_same_speed),
        cmocka_unit_test(tiny_steps),
        cmocka_unit_test(exchange_is_told_with_waiting),
        cmocka_unit_test(on_one_host_there_is_no_network),
        cmocka_unit_test(storms_of_checkpoints),
        cmocka_unit_test(scores_all_the_time),
        cmocka_unit_test(more_seconds_than_there_were),
        cmocka_unit_test(too_little_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
