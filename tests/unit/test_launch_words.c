/* The words and the environment that a launcher gets, and which launcher it is. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "options/internal.h"

#include "launchers.h"

#include <paceline/kernels.h>

static void assert_words(char **words, const char *wanted)
{
    char text[4096] = "";

    assert_non_null(words);
    for (char **word = words; *word; word++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", word == words ? "" : "|", *word);
    assert_string_equal(text, wanted);
    pace_options_free_words(words);
}

static void test_launcher_words(void **state)
{
    static const pace__host hosts[] = {{"a", 9, 0}, {"b", 9, 0}};
    static const int host_of[] = {1, 1, 0, 1};
    pace__launch_plan plan = {.cluster = {.workers = 2, .ps = 1, .evaluator = true}, .words = command};

    (void)state;
    assert_words(pace__launcher_words(PACE__OPEN_MPI, "m", &plan, "/w d", NULL, NULL),
                 "m|--bind-to|none|--mca|odls_base_num_threads|0|-x|PACELINE_RELAY|-wdir|/w "
                 "d|--host|localhost:4|-n|4|/opt/paceline|train|--run=a b");
    assert_words(pace__launcher_words(PACE__OPEN_MPI, "m", &plan, "/w", hosts, host_of),
                 "m|--bind-to|none|--mca|odls_base_num_threads|0"
                 "|-x|PACELINE_RELAY|-wdir|/w|--host|b:2|-n|2|/opt/paceline|train|--run=a b"
                 "|:|-x|PACELINE_RELAY|-wdir|/w|--host|a:1|-n|1|/opt/paceline|train|--run=a b"
                 "|:|-x|PACELINE_RELAY|-wdir|/w|--host|b:1|-n|1|/opt/paceline|train|--run=a b");
    assert_words(pace__launcher_words(PACE__MPICH, "m", &plan, "/w", hosts, host_of),
                 "m|-print-all-exitcodes|-genv|PACELINE_RELAY|1|-wdir|/w|-hosts|b:2,a:1,b:1|-n|4|/opt/"
                 "paceline|train|--run=a b");
}

static void test_launcher_environment(void **state)
{
    char *const variables[] = {(char[]){"HOME=/root"}, (char[]){"PACELINE_BATCH=7"},
                               (char[]){"OMPI_MCA_rmaps_base_oversubscribe=0"}, (char[]){"PACELINE_RELAY=0"},
                               NULL};
    char *const own[] = {(char[]){"OMPI_MCA_pml=ucx"}, NULL};

    (void)state;
    assert_words(pace__launcher_environment(variables, 0, 4, 4, false, false),
                 "HOME=/root|OMPI_MCA_rmaps_base_oversubscribe=0|PACELINE_RELAY=1|"
                 "OMPI_MCA_orte_keep_fqdn_hostnames=1");
    assert_words(pace__launcher_environment(variables + 3, 2, 5, 4, true, true),
                 "PACELINE_RELAY=3|OMPI_ALLOW_RUN_AS_ROOT=1|OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1|"
                 "OMPI_MCA_rmaps_base_oversubscribe=1|OMPI_MCA_orte_keep_fqdn_hostnames=1|"
                 "OMPI_MCA_mpi_yield_when_idle=1|OMPI_MCA_pml=ob1");
    assert_words(pace__launcher_environment(own, 0, 2, 4, true, false),
                 "OMPI_MCA_pml=ucx|PACELINE_RELAY=1|OMPI_MCA_rmaps_base_oversubscribe=1|"
                 "OMPI_MCA_orte_keep_fqdn_hostnames=1");
}

/* What arrives at the launcher is what was planned. */
static void test_words_arrive(void **state)
{
    setenv("PACELINE_BATCH", "7", 1);
    put_text(in(state, "hosts"), "nodea roles=ps\nnodeb slots=2 roles=worker\n");
    assert_ok(run(state, (setting){.hosts = in(state, "hosts")}, "hello; done_well\n"));
    unsetenv("PACELINE_BATCH");
    char *words = get_text(in(state, "mpirun.words")), *environment = get_text(in(state, "mpirun.env"));

    assert_non_null(strstr(words, "--host\nnodeb:2\n-n\n2\n/opt/paceline\ntrain\n--run=a b\n:\n"));
    assert_non_null(strstr(words, "--host\nnodea:1\n-n\n1\n/opt/paceline\n"));
    assert_non_null(strstr(environment, "PACELINE_RELAY=1\n"));
    assert_null(strstr(environment, "PACELINE_BATCH"));
    free(environment);
    free(words);
}

typedef struct small_config {
    int64_t batch;
} small_config;

static const pace_option table[] = {
    {"batch", 0, PACE_OPT_INT, offsetof(small_config, batch), "512", "N", "rows"},
    {0},
};

/* A verb of two words, two tables with a struct each, arguments that look like options. */
static void test_launch_words(void **state)
{
    typedef struct two_configs {
        small_config first;
        int64_t rest;
    } two_configs;
    static const pace_option rest[] = {{"rest", 0, PACE_OPT_INT, 0, "1", "N", "of it"}, {0}};
    const pace_option_table tables[] = {{rest, offsetof(two_configs, rest)}, {table, 0}, {0}};
    static const char *const wanted[] = {"prep", "clicks", "--rest=2", "--batch=32", "--", "-a", "b", NULL};
    const char *arguments[] = {"-a", "b"};
    char **words;

    pace_option_part parts[PACE_OPTIONS_TABLES_MAX];

    (void)state;
    if (pace_kernels_asked() != PACE_KERNELS_AUTO)
        skip(); /* they would be a word, too: test_own_program */
    pace__options_parts(tables, &(two_configs){{32}, 2}, parts);
    assert_int_equal(pace__launch_words("prep clicks", parts, &(pace_texts){arguments, 2}, NULL, &words),
                     PACE_OK);
    for (size_t i = 0; wanted[i]; i++)
        assert_string_equal(words[i + 1], wanted[i]);
    assert_null(words[8]);
    pace_options_free_words(words);
}

static void test_own_program(void **state)
{
    char own[4096], **words;
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    (void)state;
    assert_true(length > 0);
    own[length] = '\0';
    assert_int_equal(pace__launch_words("train", PACE_PARTS(table, &(small_config){32}), NULL, NULL, &words),
                     PACE_OK);
    assert_string_equal(words[0], own);
    assert_string_equal(words[1], "train");
    assert_string_equal(words[2], "--batch=32");
    /* Ranks compute with the kernels that this process was asked for, if it was. */
    bool asked = pace_kernels_asked() != PACE_KERNELS_AUTO;
    char *kernels = pace__format("--kernels=%s", pace_kernels_name(pace_kernels_asked()));

    if (asked)
        assert_string_equal(words[3], kernels);
    assert_null(words[3 + asked]);
    free(kernels);
    pace_options_free_words(words);
}

static void test_engines(void **state)
{
    (void)state;
    assert_int_equal(pace__engine_of("/usr/bin/mpirun", "mpirun (Open MPI) 4.1.4\n"), PACE__OPEN_MPI);
    assert_int_equal(pace__engine_of("/usr/bin/mpirun", "HYDRA build details:\n    Version: 4.0.2\n"),
                     PACE__MPICH);
    assert_int_equal(pace__engine_of("/usr/bin/mpiexec.hydra", ""), PACE__MPICH);
    assert_int_equal(pace__engine_of("/opt/mpich/bin/mpirun", ""), PACE__OPEN_MPI);
}

int main(void)
{
#define LAUNCH_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        LAUNCH_TEST(test_words_arrive),
        cmocka_unit_test(test_launcher_words),
        cmocka_unit_test(test_launcher_environment),
        cmocka_unit_test(test_own_program),
        cmocka_unit_test(test_launch_words),
        cmocka_unit_test(test_engines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
