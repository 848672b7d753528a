/* Injected faults: what can be written, and what is said of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inject/inject.h"
#include "support.h"

static const pace__cluster some = {.workers = 2, .ps = 2};
static const pace__cluster full = {.workers = 3, .ps = 2, .evaluator = true};

static void lists_are_read(void **state)
{
    pace__fault all[PACE__FAULTS_MAX];
    unsigned count = 77;

    (void)state;
    assert_ok(pace__faults_parse(
        "kill:ps0@step=300,slow:worker1=3x, stall:worker2@step=50 ,stall:worker2=5s@step=50,"
        "corrupt-checkpoint,corrupt-checkpoint@step=10k,kill:evaluator@eval,stall:ps1=0.5@time=2.5s,"
        "kill:worker0@start,slow:chief=1.5,kill:chief@time=0,stall:chief=2s@checkpoint,kill:chief@end,kill:"
        "ps0@step=300",
        &full, &said_log, all, &count));
    static const struct {
        pace__fault_kind kind;
        int rank;
        pace__moment moment;
        uint64_t step;
        double seconds, amount;
        const char *text;
    } wanted[] = {
        {PACE__FAULT_KILL, 3, PACE__AT_STEP, 300, 0, 0, "kill:ps0@step=300"},
        {PACE__FAULT_SLOW, 1, PACE__AT_STEP, 0, 0, 3, "slow:worker1=3x"},
        {PACE__FAULT_STALL, 2, PACE__AT_STEP, 50, 0, 0, "stall:worker2@step=50"},
        {PACE__FAULT_STALL, 2, PACE__AT_STEP, 50, 0, 5, "stall:worker2=5s@step=50"},
        {PACE__FAULT_CORRUPT, 0, PACE__AT_STEP, 0, 0, 0, "corrupt-checkpoint"},
        {PACE__FAULT_CORRUPT, 0, PACE__AT_STEP, 10000, 0, 0, "corrupt-checkpoint@step=10k"},
        {PACE__FAULT_KILL, 5, PACE__AT_EVAL, 0, 0, 0, "kill:evaluator@eval"},
        {PACE__FAULT_STALL, 4, PACE__AT_TIME, 0, 2.5, 0.5, "stall:ps1=0.5@time=2.5s"},
        {PACE__FAULT_KILL, 0, PACE__AT_START, 0, 0, 0, "kill:worker0@start"},
        {PACE__FAULT_SLOW, 0, PACE__AT_STEP, 0, 0, 1.5, "slow:chief=1.5"},
        {PACE__FAULT_KILL, 0, PACE__AT_TIME, 0, 0, 0, "kill:chief@time=0"},
        {PACE__FAULT_STALL, 0, PACE__AT_CHECKPOINT, 0, 0, 2, "stall:chief=2s@checkpoint"},
        {PACE__FAULT_KILL, 0, PACE__AT_END, 0, 0, 0, "kill:chief@end"},
        {PACE__FAULT_KILL, 3, PACE__AT_STEP, 300, 0, 0, "kill:ps0@step=300"},
    };

    assert_int_equal(count, sizeof wanted / sizeof *wanted);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(all[i].kind, wanted[i].kind);
        assert_int_equal(all[i].rank, wanted[i].rank);
        assert_int_equal(all[i].moment, wanted[i].moment);
        assert_int_equal(all[i].step, wanted[i].step);
        assert_true(all[i].seconds == wanted[i].seconds);
        assert_true(all[i].amount == wanted[i].amount);
        assert_string_equal(all[i].text, wanted[i].text);
        assert_int_equal(all[i].number, i + 1 == count ? 2 : 1);
    }
    assert_string_equal(said, "");
}

static void no_list_is_no_faults(void **state)
{
    static const char *const texts[] = {NULL, "", "  \t"};
    pace__fault all[PACE__FAULTS_MAX];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        unsigned count = 77;

        assert_ok(pace__faults_parse(texts[i], &some, &said_log, all, &count));
        assert_int_equal(count, 0);
    }
}

static void wrong_lists_are_explained(void **state)
{
    static const struct {
        const char *text, *message; /* all of it */
    } cases[] = {
        {"kil:ps0", "'kil:ps0' (fault 1): no fault 'kil'; there are kill, stall, slow, corrupt-checkpoint "
                    "(did you mean kill?)"},
        {"kill:ps0,explode:ps0", "'explode:ps0' (fault 2): no fault 'explode'; there are kill, stall, slow, "
                                 "corrupt-checkpoint"},
        {"corrupt",
         "'corrupt' (fault 1): no fault 'corrupt'; there are kill, stall, slow, corrupt-checkpoint "
         "(did you mean corrupt-checkpoint?)"},
        {"kill:ps3", "'kill:ps3' (fault 1): there is no ps3: this job has chief, worker1, ps0, ps1"},
        {"kill:worker2@end",
         "'kill:worker2@end' (fault 1): there is no worker2: this job has chief, worker1, ps0, ps1"},
        {"kill:evaluator",
         "'kill:evaluator' (fault 1): there is no evaluator: this job has chief, worker1, ps0, ps1"},
        {"kill:worker99999999999999999999",
         "'kill:worker99999999999999999999' (fault 1): there is no "
         "worker99999999999999999999: this job has chief, worker1, ps0, ps1"},
        {"kill:ps01", "'kill:ps01' (fault 1): there is no ps01: this job has chief, worker1, ps0, ps1"},
        {"kill:workr1", "'kill:workr1' (fault 1): no role 'workr1': this job has chief, worker1, ps0, ps1 "
                        "(did you mean worker1?)"},
        {"kill:ps-1", "'kill:ps-1' (fault 1): no role 'ps-1': this job has chief, worker1, ps0, ps1 (did you "
                      "mean ps1?)"},
        {"kill:", "'kill:' (fault 1): no role '': this job has chief, worker1, ps0, ps1"},
        {"kill", "'kill' (fault 1): no role; it is written kill:ROLE[@MOMENT]"},
        {"stall@step=3", "'stall@step=3' (fault 1): no role; it is written stall:ROLE[=SECONDSs][@MOMENT]"},
        {"kill:ps0=3", "'kill:ps0=3' (fault 1): '=3' is too much; it is written kill:ROLE[@MOMENT]"},
        {"corrupt-checkpoint:ps0",
         "'corrupt-checkpoint:ps0' (fault 1): ':ps0' is too much; it is written corrupt-checkpoint[@step=N]"},
        {"corrupt-checkpoint=2",
         "'corrupt-checkpoint=2' (fault 1): '=2' is too much; it is written corrupt-checkpoint[@step=N]"},
        {"corrupt-checkpoint@end",
         "'corrupt-checkpoint@end' (fault 1): only a step can be given; it is written "
         "corrupt-checkpoint[@step=N]"},
        {"slow:worker1",
         "'slow:worker1' (fault 1): no factor; it is written slow:ROLE=FACTORx[@step=FROM..TO]"},
        {"slow:worker1@step=3",
         "'slow:worker1@step=3' (fault 1): no factor; it is written slow:ROLE=FACTORx[@step=FROM..TO]"},
        {"slow:worker1=3x@time=3",
         "'slow:worker1=3x@time=3' (fault 1): only a step can be given; it is written "
         "slow:ROLE=FACTORx[@step=FROM..TO]"},
        {"slow:worker1=3x@eval", "'slow:worker1=3x@eval' (fault 1): only a step can be given; it is written "
                                 "slow:ROLE=FACTORx[@step=FROM..TO]"},
        {"slow:worker1=3x@step",
         "'slow:worker1=3x@step' (fault 1): the moment step needs a number: step=300"},
        {"slow:worker1=3x@step=..",
         "'slow:worker1=3x@step=..' (fault 1): no steps; they are written 200..400, 200 or ..400"},
        {"slow:worker1=3x@step=",
         "'slow:worker1=3x@step=' (fault 1): step '': not a whole number (understood are 512, "
         "10k, 3M, 1e6)"},
        {"slow:worker1=3x@step=400..400",
         "'slow:worker1=3x@step=400..400' (fault 1): no step is from 400 on and before 400"},
        {"slow:worker1=3x@step=..0",
         "'slow:worker1=3x@step=..0' (fault 1): no step is from 0 on and before 0"},
        {"slow:worker1=3x@step=1k..999",
         "'slow:worker1=3x@step=1k..999' (fault 1): no step is from 1000 on and before 999"},
        {"slow:worker1=3x@step=1...3",
         "'slow:worker1=3x@step=1...3' (fault 1): step '.3': not a whole number (understood are 512, "
         "10k, 3M, 1e6)"},
        {"slow:worker1=3x@step=1..x",
         "'slow:worker1=3x@step=1..x' (fault 1): step 'x': not a whole number (understood are 512, "
         "10k, 3M, 1e6)"},
        {"kill:worker1@step=1..3",
         "'kill:worker1@step=1..3' (fault 1): step '1..3': not a whole number (understood are 512, "
         "10k, 3M, 1e6)"},
        {"slow:worker1=fast",
         "'slow:worker1=fast' (fault 1): 'fast' is no factor (understood are 3x, 1.5x, 3)"},
        {"slow:worker1=3xx", "'slow:worker1=3xx' (fault 1): '3xx' is no factor (understood are 3x, 1.5x, 3)"},
        {"slow:worker1=x", "'slow:worker1=x' (fault 1): 'x' is no factor (understood are 3x, 1.5x, 3)"},
        {"slow:worker1=", "'slow:worker1=' (fault 1): '' is no factor (understood are 3x, 1.5x, 3)"},
        {"slow:worker1=inf", "'slow:worker1=inf' (fault 1): 'inf' is no factor (understood are 3x, 1.5x, 3)"},
        {"slow:worker1=0.5x",
         "'slow:worker1=0.5x' (fault 1): '0.5x' is out of range: must be between 1x and 1000x"},
        {"slow:worker1=1001",
         "'slow:worker1=1001' (fault 1): '1001' is out of range: must be between 1x and 1000x"},
        {"stall:ps0=5m",
         "'stall:ps0=5m' (fault 1): '5m' is no number of seconds (understood are 2, 2s, 0.5s)"},
        {"stall:ps0=nan",
         "'stall:ps0=nan' (fault 1): 'nan' is no number of seconds (understood are 2, 2s, 0.5s)"},
        {"stall:ps0=1e999",
         "'stall:ps0=1e999' (fault 1): '1e999' is no number of seconds (understood are 2, 2s, 0.5s)"},
        {"stall:ps0=0s",
         "'stall:ps0=0s' (fault 1): '0s' is out of range: must be between 0.001 and 10000000 seconds"},
        {"stall:ps0=-1",
         "'stall:ps0=-1' (fault 1): '-1' is out of range: must be between 0.001 and 10000000 seconds"},
        {"kill:ps0@time=1e9",
         "'kill:ps0@time=1e9' (fault 1): '1e9' is out of range: must be between 0 and 10000000 seconds"},
        {"kill:ps0@time=2 s",
         "'kill:ps0@time=2 s' (fault 1): '2 s' is no number of seconds (understood are 2, 2s, 0.5s)"},
        {"kill:ps0@step=3x",
         "'kill:ps0@step=3x' (fault 1): step '3x': not a whole number (understood are 512, "
         "10k, 3M, 1e6)"},
        {"kill:ps0@step=-3",
         "'kill:ps0@step=-3' (fault 1): step '-3': out of range: must be between 0 and 999999999999"},
        {"kill:ps0@step=1e12",
         "'kill:ps0@step=1e12' (fault 1): step '1e12': out of range: must be between 0 and 999999999999"},
        {"kill:ps0@step", "'kill:ps0@step' (fault 1): the moment step needs a number: step=300"},
        {"kill:ps0@time", "'kill:ps0@time' (fault 1): the moment time needs a number: time=2.5s"},
        {"kill:ps0@end=3", "'kill:ps0@end=3' (fault 1): the moment end has no number"},
        {"kill:ps0@",
         "'kill:ps0@' (fault 1): no moment ''; there are step=N, time=Ss, start, checkpoint, eval, "
         "end"},
        {"kill:ps0@stop=3",
         "'kill:ps0@stop=3' (fault 1): no moment 'stop'; there are step=N, time=Ss, start, "
         "checkpoint, eval, end (did you mean step?)"},
        {"kill:ps0,,kill:ps1", "fault 2 is empty"},
        {"kill:ps0, ", "fault 2 is empty"},
        {",", "fault 1 is empty"},
    };
    pace__fault all[PACE__FAULTS_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned count = 77;
        char wanted[512];

        snprintf(wanted, sizeof wanted, "E --inject: %s\n", cases[i].message);
        pace_status status = pace__faults_parse(cases[i].text, &some, &said_log, all, &count);

        assert_string_equal(said, wanted);
        assert_failed(status, PACE_USAGE, "--inject: ");
        assert_int_equal(count, 77);
    }
}

static void roles_of_other_clusters(void **state)
{
    static const struct {
        pace__cluster cluster;
        const char *roles;
    } cases[] = {
        {{.workers = 1}, "this job has only a chief"},
        {{.workers = 4}, "this job has chief, worker1, worker2, worker3"},
        {{.workers = 2, .evaluator = true}, "this job has chief, worker1, evaluator"},
        {{.workers = 5, .ps = 4}, "this job has chief, worker1 to worker4, ps0 to ps3"},
        {{.workers = PACE__WORKERS_MAX, .ps = PACE__PS_MAX, .evaluator = true},
         "this job has chief, worker1 to worker1023, ps0 to ps1023, evaluator"},
    };
    pace__fault all[PACE__FAULTS_MAX];
    unsigned count;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_failed(pace__faults_parse("kill:ps4444", &cases[i].cluster, &said_log, all, &count),
                      PACE_USAGE, cases[i].roles);
}

static void limits_are_named(void **state)
{
    char text[(PACE__FAULTS_MAX + 1) * 10 + 1] = "kill:chief";
    char longest[PACE__FAULT_TEXT + 1];
    pace__fault all[PACE__FAULTS_MAX];
    unsigned count;

    (void)state;
    for (int i = 1; i < PACE__FAULTS_MAX; i++)
        strcat(text, ",kill:ps0");
    assert_ok(pace__faults_parse(text, &some, &said_log, all, &count));
    assert_int_equal(count, PACE__FAULTS_MAX);
    assert_int_equal(all[PACE__FAULTS_MAX - 1].number, PACE__FAULTS_MAX - 1);
    strcat(text, ",slow");
    assert_failed(pace__faults_parse(text, &some, &said_log, all, &count), PACE_USAGE,
                  "--inject: more than 32 faults");
    snprintf(longest, sizeof longest, "kill:ps0@step=%0*d", PACE__FAULT_TEXT - 15, 3);
    assert_int_equal(strlen(longest), PACE__FAULT_TEXT - 1);
    assert_ok(pace__faults_parse(longest, &some, &said_log, all, &count));
    assert_string_equal(all[0].text, longest);
    strcat(longest, "3");
    assert_failed(pace__faults_parse(longest, &some, &said_log, all, &count), PACE_USAGE,
                  "(fault 1): longer than 95 characters");
}

/* No text breaks the parser, and what it takes has no blanks: the record is read back by words. */
static void random_lists_are_survived(void **state)
{
    static const char *const words[] = {"kill", "stall", "slow",    "corrupt-checkpoint",
                                        ":",    "@",     "=",       ",",
                                        "ps0",  "chief", "worker1", "3x",
                                        "2s",   "300",   "step",    "time",
                                        "end",  "eval",  " ",       "..",
                                        "\x80", "start", "-",       "."};
    uint64_t seed = pace__now_ns(), taken = 0;
    pace__random random = pace__random_at(seed, 0);

    (void)state;
    for (int turn = 0; turn < 100000; turn++) {
        pace__fault all[PACE__FAULTS_MAX];
        unsigned count = 0;
        char text[512] = "";

        for (uint64_t left = 1 + pace__random_below(&random, 12); left > 0; left--)
            strcat(text, words[pace__random_below(&random, sizeof words / sizeof *words)]);
        said_clear();
        pace_status status = pace__faults_parse(text, &some, &said_log, all, &count);

        if (errors_said() != (status ? 1 : 0) || (status && status != PACE_USAGE))
            fail_msg("seed %llu: '%s': status %d, messages:\n%s", (unsigned long long)seed, text, status,
                     said);
        for (unsigned i = 0; i < count; i++) {
            if (strpbrk(all[i].text, " \t\n,") || all[i].rank >= pace__cluster_size(&some))
                fail_msg("seed %llu: '%s' gives '%s'", (unsigned long long)seed, text, all[i].text);
        }
        taken += count;
    }
    assert_true(taken > 100);
    said_clear();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lists_are_read),          TEST(no_list_is_no_faults), TEST(wrong_lists_are_explained),
        TEST(roles_of_other_clusters), TEST(limits_are_named),     TEST(random_lists_are_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
