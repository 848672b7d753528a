/* Roles by rank, the host file, and who goes where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launch/cluster.h"
#include "support.h"

static void test_roles(void **state)
{
    static const char *const names[] = {"chief", "worker1", "worker2", "ps0", "ps1", "evaluator"};
    pace__cluster cluster = {.workers = 3, .ps = 2, .evaluator = true};
    char name[PACE__ROLE_TEXT];

    (void)state;
    assert_int_equal(pace__cluster_size(&cluster), 6);
    for (int rank = 0; rank < 6; rank++) {
        pace__role_name(&cluster, rank, name);
        assert_string_equal(name, names[rank]);
    }
    assert_int_equal(pace__role_of(&cluster, 2), PACE__WORKER);
    assert_int_equal(pace__role_of(&cluster, 3), PACE__PS);
    assert_int_equal(pace__role_of(&cluster, 5), PACE__EVALUATOR);
    assert_int_equal(pace__shards(&cluster), 2);
    assert_int_equal(pace__shard_rank(&cluster, 1), 4);
    cluster.ps = 0;
    assert_int_equal(pace__shards(&cluster), 3);
    assert_int_equal(pace__shard_rank(&cluster, 1), 1);
    pace__role_name(&cluster, 3, name);
    assert_string_equal(name, "evaluator");
    cluster = (pace__cluster){.workers = PACE__WORKERS_MAX, .ps = PACE__PS_MAX};
    pace__role_name(&cluster, pace__cluster_size(&cluster) - 1, name);
    assert_string_equal(name, "ps1023");
}

/* ---- the file ---- */

static void test_host_file(void **state)
{
    const char *path = in(state, "hosts");
    pace__host *hosts;
    size_t count;

    put_text(path, "# a comment\n"
                   "\n"
                   "node1 slots=4 roles=ps,worker # another\n"
                   "\t10.0.0.7\r\n"
                   "c-3.example.org roles=chief,evaluator slots=2\n"
                   "  \t \n"
                   "last slots=12");
    assert_ok(pace__hosts_read(path, &said_log, &hosts, &count));
    assert_int_equal(count, 4);
    assert_string_equal(hosts[0].name, "node1");
    assert_int_equal(hosts[0].slots, 4);
    assert_int_equal(hosts[0].roles, 1u << PACE__WORKER | 1u << PACE__PS);
    assert_string_equal(hosts[1].name, "10.0.0.7");
    assert_int_equal(hosts[1].slots, 1);
    assert_int_equal(hosts[1].roles, 0);
    assert_string_equal(hosts[2].name, "c-3.example.org");
    assert_int_equal(hosts[2].slots, 2);
    assert_int_equal(hosts[2].roles, PACE__HOST_CHIEF | 1u << PACE__EVALUATOR);
    assert_int_equal(hosts[3].slots, 12);
    assert_string_equal(said, "");
    free(hosts);
}

static void test_bad_host_files(void **state)
{
    static const struct {
        const char *text, *line, *value;
    } cases[] = {
        {"a\nb slot=2\n", "hosts:2:", "unknown key slot (did you mean slots?)"},
        {"a colour=red\n", "hosts:1:", "unknown key colour"},
        {"a slots=0\n", "hosts:1:", "slots=0:"},
        {"a slots=x\n", "hosts:1:", "slots=x:"},
        {"a slots=\n", "hosts:1:", "slots=:"},
        {"a slots=2x\n", "hosts:1:", "slots=2x:"},
        {"a slots=-1\n", "hosts:1:", "slots=-1:"},
        {"a slots=4097\n", "hosts:1:", "slots=4097:"},
        {"a slots=99999999999999999999\n", "hosts:1:", "99999999999999999999"},
        {"a\n\nb\na slots=2\n", "hosts:4:", "host a has a line already, line 1"},
        {"a roles=worker,sp\n", "hosts:1:", "unknown role sp"},
        {"a roles=workers\n", "hosts:1:", "unknown role workers (did you mean worker?)"},
        {"a roles=\n", "hosts:1:", "unknown role \"\""},
        {"a roles=ps,\n", "hosts:1:", "unknown role \"\""},
        {"a slots=1 slots=2\n", "hosts:1:", "slots is given twice"},
        {"a roles=ps roles=ps\n", "hosts:1:", "roles is given twice"},
        {"a 4\n", "hosts:1:", "4 is not of the form"},
        {"slots=4\n", "hosts:1:", "slots=4 is not a host name"},
        {"-x\n", "hosts:1:", "-x is not a host name"},
        {"a,b\n", "hosts:1:", "a,b is not a host name"},
        {"a:4\n", "hosts:1:", "a:4 is not a host name"},
        {"a;rm\n", "hosts:1:", "a;rm is not a host name"},
        {"# nothing\n", "hosts:", "names no host"},
        {"", "hosts:", "names no host"},
    };
    const char *path = in(state, "hosts");
    pace__host *hosts;
    size_t count;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(path, cases[i].text);
        pace_status status = pace__hosts_read(path, &said_log, &hosts, &count);

        assert_said(cases[i].line);
        assert_failed(status, PACE_USAGE, cases[i].value);
    }
    assert_failed(pace__hosts_read(in(state, "none"), &said_log, &hosts, &count), PACE_NO_INPUT, "none");
}

static void test_host_file_limits(void **state)
{
    const char *path = in(state, "hosts");
    char name[PACE__HOST_TEXT + 2];
    pace__host *hosts;
    size_t count;

    memset(name, 'a', sizeof name);
    name[PACE__HOST_TEXT - 1] = '\0';
    put_text(path, name);
    assert_ok(pace__hosts_read(path, &said_log, &hosts, &count));
    assert_string_equal(hosts[0].name, name);
    free(hosts);
    name[PACE__HOST_TEXT - 1] = 'a';
    name[PACE__HOST_TEXT] = '\0';
    put_text(path, name);
    assert_failed(pace__hosts_read(path, &said_log, &hosts, &count), PACE_USAGE, "more than 255 characters");

    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int i = 0; i < PACE__HOSTS_MAX; i++)
        fprintf(file, "host%d\n", i);
    assert_int_equal(fflush(file), 0);
    assert_ok(pace__hosts_read(path, &said_log, &hosts, &count));
    assert_int_equal(count, PACE__HOSTS_MAX);
    assert_string_equal(hosts[PACE__HOSTS_MAX - 1].name, "host4095");
    free(hosts);
    fprintf(file, "one-more\n");
    assert_int_equal(fclose(file), 0);
    assert_failed(pace__hosts_read(path, &said_log, &hosts, &count), PACE_USAGE,
                  "hosts:4097: more than 4096");

    assert_int_equal(pace__write_file_atomically(path, "a\0b\n", 4, NULL), PACE_OK);
    assert_failed(pace__hosts_read(path, &said_log, &hosts, &count), PACE_USAGE, "zero byte");
}

/* ---- placement ---- */

#define WORKER (1u << PACE__WORKER)
#define PS     (1u << PACE__PS)
#define JUDGE  (1u << PACE__EVALUATOR)

/* `wanted` is the host of each rank, a letter each: a is hosts[0]. */
static void expect_places(pace__cluster cluster, const pace__host *hosts, size_t count, const char *wanted)
{
    int host_of[64];
    char found[65] = "";

    assert_int_equal(pace__cluster_size(&cluster), strlen(wanted));
    assert_ok(pace__hosts_place(&cluster, hosts, count, host_of, &said_log));
    for (int rank = 0; rank < pace__cluster_size(&cluster); rank++)
        found[rank] = (char)('a' + host_of[rank]);
    assert_string_equal(found, wanted);
}

static void test_ranks_go_round(void **state)
{
    pace__host plain[] = {{"a", 4, 0}, {"b", 4, 0}};
    pace__host uneven[] = {{"a", 1, 0}, {"b", 5, 0}, {"c", 2, 0}};
    pace__host split[] = {{"a", 4, PS}, {"b", 2, WORKER}, {"c", 2, WORKER}};
    pace__host mixed[] = {{"a", 4, 0}, {"b", 2, WORKER}};
    pace__host chiefly[] = {{"a", 4, WORKER}, {"b", 1, PACE__HOST_CHIEF}, {"c", 2, PS | JUDGE}};

    (void)state;
    said_clear();
    expect_places((pace__cluster){4, 2, true}, plain, 2, "abababa");
    expect_places((pace__cluster){1, 0, false}, plain, 2, "a");
    expect_places((pace__cluster){6, 0, false}, uneven, 3, "abcbcb");
    expect_places((pace__cluster){4, 2, false}, split, 3, "bcbcaa");
    expect_places((pace__cluster){3, 2, false}, mixed, 2, "bbaaa"); /* who is named comes first */
    expect_places((pace__cluster){3, 1, true}, chiefly, 3, "baacc");
}

/* Going round alone would give the slot that only a ps can use to a worker. */
static void test_others_make_way(void **state)
{
    pace__host pair[] = {{"a", 1, WORKER | PS}, {"b", 1, WORKER}};
    pace__host chain[] = {{"a", 1, WORKER | PS}, {"b", 1, PS | JUDGE}, {"c", 1, WORKER}};

    (void)state;
    said_clear();
    expect_places((pace__cluster){1, 1, false}, pair, 2, "ba");
    expect_places((pace__cluster){1, 1, true}, chain, 3, "cab");
}

static void test_too_few_slots(void **state)
{
    pace__host hosts[] = {{"a", 2, WORKER}, {"b", 3, PS}};
    pace__cluster large = {4, 2, true}, no_evaluator = {2, 2, true}, crowded = {4, 1, false};
    int host_of[16];

    (void)state;
    said_clear();
    assert_failed(pace__hosts_place(&large, hosts, 2, host_of, &said_log), PACE_USAGE,
                  "5 slots for 7 processes: 2 are missing");
    assert_failed(pace__hosts_place(&no_evaluator, hosts, 2, host_of, &said_log), PACE_USAGE,
                  "no line of the host file may take the role evaluator");
    assert_failed(pace__hosts_place(&crowded, hosts, 2, host_of, &said_log), PACE_USAGE,
                  "the role worker have slots for 1 of 3: 2 are missing");
}

/* May the host take the rank? Written anew from the header, not from the code. */
static bool fits(const pace__cluster *cluster, const pace__host *hosts, size_t count, int rank, int host)
{
    bool chief_named = false;

    for (size_t i = 0; i < count; i++)
        chief_named = chief_named || (hosts[i].roles & PACE__HOST_CHIEF);
    if (hosts[host].roles == 0)
        return true;
    if (rank == 0 && chief_named)
        return hosts[host].roles & PACE__HOST_CHIEF;
    return hosts[host].roles & 1u << pace__role_of(cluster, rank);
}

static bool possible(const pace__cluster *cluster, const pace__host *hosts, size_t count, int rank, int *room)
{
    bool found = rank == pace__cluster_size(cluster);

    for (int host = 0; host < (int)count && !found; host++) {
        if (room[host] == 0 || !fits(cluster, hosts, count, rank, host))
            continue;
        room[host]--;
        found = possible(cluster, hosts, count, rank + 1, room);
        room[host]++;
    }
    return found;
}

/* A placement is found exactly where trying everything finds one, and it keeps to roles and slots. */
static void test_against_trying_everything(void **state)
{
    uint64_t seed = 20240607;
    pace__random random = pace__random_at(seed, 1);
    int good = 0, bad = 0;

    (void)state;
    for (int turn = 0; turn < 4000; turn++) {
        pace__cluster cluster = {1 + (int)pace__random_below(&random, 3), (int)pace__random_below(&random, 3),
                                 pace__random_below(&random, 2)};
        size_t count = 1 + pace__random_below(&random, 4);
        pace__host hosts[4] = {0};
        int host_of[8], room[4], used[4] = {0};

        for (size_t i = 0; i < count; i++) {
            hosts[i].slots = room[i] = 1 + (int)pace__random_below(&random, 3);
            hosts[i].roles = pace__random_below(&random, 4) ? (unsigned)pace__random_below(&random, 16) : 0;
        }
        said_clear();
        bool placed = pace__hosts_place(&cluster, hosts, count, host_of, &said_log) == PACE_OK;

        if (placed != possible(&cluster, hosts, count, 0, room))
            fail_msg("seed %llu, turn %d: placed %d", (unsigned long long)seed, turn, placed);
        placed ? good++ : bad++;
        for (int rank = 0; placed && rank < pace__cluster_size(&cluster); rank++) {
            assert_true(host_of[rank] >= 0 && host_of[rank] < (int)count);
            assert_true(++used[host_of[rank]] <= hosts[host_of[rank]].slots);
            assert_true(fits(&cluster, hosts, count, rank, host_of[rank]));
        }
    }
    assert_true(good > 500 && bad > 500);
}

static void test_one_rank_on_each_host(void **state)
{
    pace__cluster cluster = {.workers = 3, .ps = 3, .evaluator = true};
    int host_of[] = {5, 2, 5, 7, 2, 9, 4};
    pace__cluster small = pace__hosts_one_each(&cluster, host_of);

    (void)state;
    assert_int_equal(small.workers, 3); /* 4 has the evaluator */
    assert_int_equal(small.ps, 2);
    assert_false(small.evaluator);
    assert_memory_equal(host_of, ((int[]){5, 2, 4, 7, 9}), 5 * sizeof *host_of);

    cluster = (pace__cluster){.workers = 2, .ps = 2, .evaluator = true};
    memcpy(host_of, (int[]){0, 1, 2, 3, 4}, 5 * sizeof *host_of); /* all alone: nobody is overwritten */
    small = pace__hosts_one_each(&cluster, host_of);
    assert_int_equal(small.workers, 3);
    assert_int_equal(small.ps, 2);
    assert_memory_equal(host_of, ((int[]){0, 1, 4, 2, 3}), 5 * sizeof *host_of);

    cluster = (pace__cluster){.workers = 1, .ps = 2};
    memcpy(host_of, (int[]){3, 3, 3}, 3 * sizeof *host_of);
    small = pace__hosts_one_each(&cluster, host_of);
    assert_int_equal(small.workers, 1);
    assert_int_equal(small.ps, 0);
    assert_int_equal(host_of[0], 3);
}

static void test_what_there_is_room_for(void **state)
{
    const char *path = in(state, "hosts");
    pace__cluster small = {.workers = 2, .ps = 1}, large = {.workers = 7};
    int number;

    put_text(path, "a slots=4\nb slots=2 roles=worker\nc roles=ps\n");
    assert_ok(pace__hosts_room(path, &said_log, &number));
    assert_int_equal(number, 7);
    assert_ok(pace__hosts_machines(&small, path, &said_log, &number)); /* b, b and c */
    assert_int_equal(number, 2);
    assert_failed(pace__hosts_machines(&large, path, &said_log, &number), PACE_USAGE, "role worker");
    assert_failed(pace__hosts_room(in(state, "none"), &said_log, &number), PACE_NO_INPUT, "none");
    assert_ok(pace__hosts_room(NULL, &said_log, &number));
    assert_true(number >= 1);
    assert_ok(pace__hosts_machines(&large, NULL, &said_log, &number));
    assert_int_equal(number, 1);
    assert_int_equal(pace__hosts_used((const int[]){3, 0, 3, 0, 1}, 5), 3);
}

static void test_largest_cluster(void **state)
{
    pace__cluster cluster = {PACE__WORKERS_MAX, PACE__PS_MAX, true};
    pace__host *hosts = calloc(PACE__HOSTS_MAX, sizeof *hosts);
    int *host_of = calloc(PACE__WORKERS_MAX + PACE__PS_MAX + 1, sizeof *host_of);

    (void)state;
    said_clear();
    assert_true(hosts && host_of);
    for (int i = 0; i < PACE__HOSTS_MAX; i++)
        hosts[i] = (pace__host){.slots = 1, .roles = i % 2 ? PS : WORKER | PS | JUDGE};
    assert_ok(pace__hosts_place(&cluster, hosts, PACE__HOSTS_MAX, host_of, &said_log));
    assert_int_equal(host_of[PACE__WORKERS_MAX - 1], 2 * (PACE__WORKERS_MAX - 1));
    free(host_of);
    free(hosts);
}

int main(void)
{
#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),
        FILE_TEST(test_host_file),
        FILE_TEST(test_bad_host_files),
        FILE_TEST(test_host_file_limits),
        cmocka_unit_test(test_ranks_go_round),
        cmocka_unit_test(test_others_make_way),
        cmocka_unit_test(test_too_few_slots),
        cmocka_unit_test(test_against_trying_everything),
        cmocka_unit_test(test_one_rank_on_each_host),
        FILE_TEST(test_what_there_is_room_for),
        cmocka_unit_test(test_largest_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
