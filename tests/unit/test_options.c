/* The option engine: precedence, values, messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "option_settings.h"

static void test_defaults(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse(f, "--run r"));
    assert_int_equal(f->settings.batch, 512);
    assert_int_equal(f->settings.shift, 0);
    assert_true(f->settings.memory == (uint64_t)1 << 30);
    assert_true(f->settings.lr == 0.1);
    assert_string_equal(f->settings.like, "other");
    assert_int_equal(f->settings.schedule, 0);
    assert_false(f->settings.exact);
    assert_true(f->settings.hashed);
    assert_int_equal(f->settings.test.count, 0);
    assert_int_equal(f->settings.words.count, 2);
    assert_string_equal(f->settings.words.items[1], "b");
    assert_true(pace_options_given(f->options, "run"));
    assert_false(pace_options_given(f->options, "batch"));
    assert_false(pace_options_given(f->options, "nonsense"));
}

static void test_forms(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse(f, "in1 -b 7 --lr=0.5 -o out --exact --no-hashed --json - in2 -- --batch"));
    assert_int_equal(f->settings.batch, 7);
    assert_true(f->settings.lr == 0.5);
    assert_string_equal(f->settings.run, "out");
    assert_true(f->settings.exact);
    assert_false(f->settings.hashed);
    assert_true(f->shared.json);
    assert_int_equal(f->positional.count, 4);
    assert_string_equal(f->positional.items[0], "in1");
    assert_string_equal(f->positional.items[1], "-");
    assert_string_equal(f->positional.items[2], "in2");
    assert_string_equal(f->positional.items[3], "--batch");

    assert_ok(f,
              parse(f, "--batch 3 --batch 4 --exact --no-exact --exact=on --run=--odd --shift -5 --lr -.5"));
    assert_int_equal(f->settings.batch, 4);
    assert_true(f->settings.exact);
    assert_string_equal(f->settings.run, "--odd");
    assert_int_equal(f->settings.shift, -5);
    assert_true(f->settings.lr == -0.5);

    assert_ok(f, parse(f, "--run - --like=")); /* "-" is a value; an empty text is a text */
    assert_string_equal(f->settings.run, "-");
    assert_string_equal(f->settings.like, "");
}

static void test_precedence(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse_config(f, "batch: 2\nrun: file\n", ""));
    assert_int_equal(f->settings.batch, 2);
    assert_true(pace_options_given(f->options, "batch"));
    setenv("PACELINE_BATCH", "3", 1);
    assert_ok(f, parse_config(f, "batch: 2\nrun: file\n", ""));
    assert_int_equal(f->settings.batch, 3);
    assert_ok(f, parse_config(f, "batch: 2\nrun: file\n", "--batch 4"));
    assert_int_equal(f->settings.batch, 4);
    assert_string_equal(f->settings.run, "file");

    setenv("PACELINE_BATCH", "", 1); /* as good as unset */
    setenv("PACELINE_CONFIG", f->file, 1);
    assert_ok(f, parse(f, "--run r"));
    assert_int_equal(f->settings.batch, 2);
    setenv("PACELINE_CONFIG", "/nonexistent/a.yaml", 1);
    char words[128];

    snprintf(words, sizeof words, "--config=%s", f->file);
    assert_ok(f, parse(f, words));
    assert_int_equal(parse(f, "--run r"), PACE_NO_INPUT);
    assert_non_null(strstr(f->errors, "/nonexistent/a.yaml"));
}

static void test_lists(void **state)
{
    fixture *f = *state;
    const char *yaml = "run: r\ntest: [x, \"y z\"]\nwords: one\n";

    assert_ok(f, parse_config(f, yaml, ""));
    assert_int_equal(f->settings.test.count, 2);
    assert_string_equal(f->settings.test.items[1], "y z");
    assert_int_equal(f->settings.words.count, 1); /* replaces the default a:b */
    assert_string_equal(f->settings.words.items[0], "one");

    setenv("PACELINE_TEST", "p:q:r", 1);
    assert_ok(f, parse_config(f, yaml, ""));
    assert_int_equal(f->settings.test.count, 3);
    assert_string_equal(f->settings.test.items[2], "r");

    assert_ok(f, parse_config(f, yaml, "--test 1 --test=2 --test 3 --test 4 --test 5"));
    assert_int_equal(f->settings.test.count, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(f->settings.test.items[i][0], '1' + i);

    assert_ok(f, parse_config(f, "run: r\nwords: []\n", ""));
    assert_int_equal(f->settings.words.count, 0);
    assert_refused(f, parse_config(f, "run: r\nbatch: [1, 2]\n", ""), "a.yaml:2", "batch", "list", NULL);
}

static void test_whole_numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"10k", 10000},
        {"10K", 10000},
        {"3M", 3000000},
        {"1e6", 1000000},
        {"1.5e3", 1500},
        {"2.3M", 2300000},
        {"0.001k", 1},
        {"1e-2k", 10},
        {"2G", 2000000000},
        {"1T", 1000000000000},
        {"+7", 7},
        {"007", 7},
        {"-12", -12},
        {"5.0", 5},
        {"0e999", 0},
        {"9007199254740993", 9007199254740993},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    static const char *const bad[] = {"",    "k",    "1.5", "1e",  "e3",    "0x10", "1 ",   "--1", "1kk",
                                      "1ki", "1e6x", "nan", "inf", "1,000", ".",    "1..2", "1b",  "ten"};
    static const char *const large[] = {"9223372036854775808", "-9223372036854775809", "1e19", "1e400",
                                        "10000000T"};
    fixture *f = *state;
    char words[128];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(words, sizeof words, "--run r --shift=%s", good[i].text);
        assert_ok(f, parse(f, words));
        if (f->settings.shift != good[i].value)
            fail_msg("%s was read as %" PRId64, good[i].text, f->settings.shift);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *argv[] = {(char[]){"--run=r"}, words};

        snprintf(words, sizeof words, "--shift=%s", bad[i]);
        parse(f, "--run r");
        pace_options_free(f->options);
        f->options = pace_options_create(table, &f->settings, &f->log);
        assert_refused(f, pace_options_parse(f->options, 2, argv, &f->help, &f->positional), "--shift",
                       "whole number", NULL);
        f->errors[0] = '\0';
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        snprintf(words, sizeof words, "--run r --shift=%s", large[i]);
        assert_refused(f, parse(f, words), "--shift", large[i], "64 bits", NULL);
    }
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {
        {"4096", 4096},
        {"512M", 512ull << 20},
        {"1G", 1ull << 30},
        {"1GiB", 1ull << 30},
        {"1gib", 1ull << 30},
        {"1.5G", 3ull << 29},
        {"2T", 2ull << 40},
        {"1e6", 1000000},
        {"64k", 65536},
        {"0.3k", 307},
        {"18446744073709551615", UINT64_MAX},
    };
    static const char *const bad[] = {"-1", "1GB", "1X", "1Gi", "0.5", "G", "1.5.G"};
    fixture *f = *state;
    char words[128];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(words, sizeof words, "--run r --memory %s", good[i].text);
        assert_ok(f, parse(f, words));
        if (f->settings.memory != good[i].value)
            fail_msg("%s was read as %" PRIu64, good[i].text, f->settings.memory);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(words, sizeof words, "--run r --memory=%s", bad[i]);
        assert_refused(f, parse(f, words), "--memory", bad[i], "not a size", NULL);
    }
    assert_refused(f, parse(f, "--run r --memory 18446744073709551616"), "64 bits", NULL);
}

static void test_reals(void **state)
{
    static const char *const bad[] = {"nan", "inf", "-inf", "0x1p3", "1e", "abc", "1k", "infinity"};
    fixture *f = *state;
    char words[128];

    assert_ok(f, parse(f, "--run r --lr 1e-4"));
    assert_true(f->settings.lr == 1e-4);
    assert_ok(f, parse(f, "--run r --lr 5."));
    assert_true(f->settings.lr == 5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(words, sizeof words, "--run r --lr=%s", bad[i]);
        assert_refused(f, parse(f, words), "--lr", bad[i], "not a number", NULL);
    }
    assert_refused(f, parse(f, "--run r --lr 1e309"), "too large", NULL);
}

static void test_out_of_range_says_where(void **state)
{
    fixture *f = *state;

    assert_refused(f, parse(f, "--run r --batch 0"), "--batch", " 0", "1 and 1000000000", NULL);
    assert_refused(f, parse(f, "--run r -b 2G"), "--batch", "2G", "1 and 1000000000", NULL);
    assert_refused(f, parse(f, "--run r --lr -1.5"), "--lr", "-1.5", "-1 and 1000000", NULL);
    assert_refused(f, parse_config(f, "# comment\n\nrun: r\nbatch: -3\n", ""), "a.yaml:4", "batch", "-3",
                   "1 and 1000000000", NULL);
    setenv("PACELINE_BATCH", "1e10", 1);
    assert_refused(f, parse(f, "--run r"), "PACELINE_BATCH", "1e10", "1 and 1000000000", NULL);
}

static void test_choices_and_flags(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse(f, "--run r --schedule off"));
    assert_int_equal(f->settings.schedule, 2);
    assert_refused(f, parse(f, "--run r --schedule linaer"), "--schedule", "linaer", "constant|linear|off",
                   "did you mean linear?", NULL);
    assert_refused(f, parse(f, "--run r --schedule zebra"), "constant|linear|off", NULL);
    assert_null(strstr(f->errors, "did you mean"));
    assert_refused(f, parse(f, "--run r --exact=maybe"), "--exact", "maybe", "true or false", NULL);
    assert_ok(f, parse_config(f, "run: r\nexact: Yes\nhashed: off\nschedule: off\n", ""));
    assert_true(f->settings.exact);
    assert_false(f->settings.hashed);
}

static void test_usage_errors(void **state)
{
    fixture *f = *state;

    assert_refused(f, parse(f, ""), "--run", "missing", NULL);
    assert_refused(f, parse(f, "--run r --bacth 3"), "--bacth", "did you mean --batch?", NULL);
    assert_refused(f, parse(f, "--run r --sched linear"), "did you mean --schedule?", NULL);
    assert_refused(f, parse(f, "--run r --no-exat"), "did you mean --no-exact?", NULL);
    assert_refused(f, parse(f, "--run r --no-batch"), "--no-batch", NULL);
    assert_refused(f, parse(f, "--run r --no-exact=1"), "--no-exact", NULL);
    assert_refused(f, parse(f, "--run r --zzz"), "unknown option --zzz", NULL);
    assert_refused(f, parse(f, "--run r -run"), "unknown option -run", "--run", NULL);
    assert_refused(f, parse(f, "--run r -x"), "unknown option -x", NULL);
    assert_refused(f, parse(f, "--run r --rows 3"), "unknown option --rows", NULL);
    assert_refused(f, parse(f, "--run"), "--run", "needs a value", NULL);
    assert_refused(f, parse(f, "--run --exact"), "--run", "--exact", NULL);
    assert_refused(f, parse(f, "-o -b 3"), "-o", "-b", NULL);
    assert_refused(f, parse(f, "--run --"), "--run", NULL);
    assert_refused(f, parse(f, "--=3"), "--=3", NULL);
    assert_refused(f, parse_config(f, "run: ~\n", ""), "--run", "missing", NULL);
}

static void test_help_stops(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse(f, "--batch 3 --help --nonsense")); /* and the missing --run does not matter */
    assert_true(f->help);
    assert_ok(f, parse(f, "-h"));
    assert_true(f->help);
    assert_ok(f, parse(f, "--run r"));
    assert_false(f->help);
}

static void test_yaml_errors(void **state)
{
    static const struct {
        const char *yaml, *place, *words;
    } cases[] = {
        {"run: r\n\nbacth: 3\n", "a.yaml:3", "did you mean batch?"},
        {"run: r\nconfig: other.yaml\n", "a.yaml:2", "unknown key config"},
        {"run: r\nbatch: 3\nbatch: 4\n", "a.yaml:3", "first in line 2"},
        {"run: r\nbatch:\n  deep: 1\n", "a.yaml:3", "batch"},
        {"run: r\nbatch: \n", "a.yaml:2", "no value"},
        {"run: r\ntest: [a, [b]]\n", "a.yaml:2", "items"},
        {"run: r\nbatch: x7\n", "a.yaml:2", "whole number"},
        {"- run\n- r\n", "a.yaml:1", "name: value"},
        {"just text\n", "a.yaml:1", "name: value"},
        {"run: \"open\nbatch: 3\n", "a.yaml:", "not valid YAML"},
        {"run: r\n\tbatch: 3\n", "a.yaml:2", "not valid YAML"},
        {"run: r\n---\nbatch: 3\n", "a.yaml:2", "second document"},
        {"run: &a r\nlike: *a\n", "a.yaml:2", "alias"},
        {"run: \"a\\0b\"\n", "a.yaml:1", "zero byte"},
        {"run: \xff\xfe\n", "a.yaml", "not a YAML text"},
        {"? [a, b]\n: c\n", "a.yaml:1", "key"},
    };
    fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(f, parse_config(f, cases[i].yaml, ""), cases[i].place, cases[i].words, NULL);
    assert_ok(f, parse_config(f, "", "--run r"));
    assert_ok(f, parse_config(f, "# nothing here\n", "--run r"));
    assert_ok(f, parse_config(f, "{run: r, batch: 9}", ""));
    assert_int_equal(f->settings.batch, 9);
}

static void test_unknown_variables(void **state)
{
    fixture *f = *state;

    setenv("PACELINE_BACTH", "3", 1);
    setenv("PACELINE_ROWS", "3", 1);       /* of another verb */
    setenv("PACELINE_PART", "file.h5", 1); /* set by prep --on-part */
    setenv("PACELINE_RELAY", "0", 1);      /* set for the ranks of a job */
    setenv("PACELINERS", "3", 1);
    pace_status status = parse(f, "--run r");

    unsetenv("PACELINE_BACTH");
    unsetenv("PACELINE_ROWS");
    unsetenv("PACELINE_PART");
    unsetenv("PACELINE_RELAY");
    unsetenv("PACELINERS");
    assert_ok(f, status);
    assert_string_equal(f->warnings, "environment variable PACELINE_BACTH is not known and was ignored "
                                     "(did you mean PACELINE_BATCH?)\n");
}

static void test_nearest_name(void **state)
{
    static const char *const names[] = {
        "gen", "prep", "train", "eval", "predict", "inspect", "checkpoint-every", NULL};
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        {"train", "train"},
        {"tarin", "train"}, /* swapped */
        {"trian", "train"},
        {"trin", "train"},   /* left out */
        {"trainn", "train"}, /* doubled */
        {"TRAIN", "train"},
        {"predcit", "predict"},
        {"predi", "predict"}, /* cut off */
        {"evel", "eval"},
        {"eavl", "eval"}, /* one edit only if a swap counts as one */
        {"checkpoint_evry", "checkpoint-every"},
        {"fly", NULL},
        {"", NULL},
        {"t", NULL},
        {"completely-different-from-everything-else-and-much-longer-than-sixty-four-letters", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = pace_nearest_name(cases[i].word, names);

        if ((found == NULL) != (cases[i].nearest == NULL) || (found && strcmp(found, cases[i].nearest) != 0))
            fail_msg("\"%s\" gave %s", cases[i].word, found ? found : "nothing");
    }
}

static void test_help_is_complete(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    (void)state;
    pace_options_print_help(table, PACE_HELP_COLUMNS, memory);
    pace_options_print_help(pace_common_options, PACE_HELP_COLUMNS, memory);
    assert_int_equal(fclose(memory), 0);
    for (const pace_option *row = table; row->name; row++) {
        char wanted[128];

        snprintf(wanted, sizeof wanted, "--%s", row->name);
        assert_non_null(strstr(text, wanted));
        assert_non_null(strstr(text, row->help));
        snprintf(wanted, sizeof wanted, "default %s", row->kind == PACE_OPT_FLAG ? "on" : row->fallback);
        if (row->fallback)
            assert_non_null(strstr(text, wanted));
    }
    assert_non_null(strstr(text, "  -o, --run DIR "));
    assert_non_null(strstr(text, "required"));
    assert_non_null(strstr(text, "constant, linear, off"));
    assert_non_null(strstr(text, "Training:\n"));
    assert_non_null(strstr(text, "--config FILE"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100);
    free(text);
}

/* What is printed into so many columns. */
static char *wrapped(const char *text, int column, int indent, int columns)
{
    char *found = NULL;
    size_t size;
    FILE *memory = open_memstream(&found, &size);

    pace_print_wrapped(text, strlen(text), column, indent, columns, memory);
    assert_int_equal(fclose(memory), 0);
    return found;
}

static void test_texts_are_wrapped(void **state)
{
    static const struct {
        const char *text;
        int column, indent, columns;
        const char *wanted;
    } cases[] = {
        {"", 0, 0, 10, "\n"},
        {"one two three", 0, 0, 13, "one two three\n"},
        {"one two three", 0, 0, 12, "one two\nthree\n"},
        {"one\ntwo\n  three ", 0, 0, 60, "one two three\n"},
        {"one two three", 6, 2, 9, "one\n  two\n  three\n"},
        {"one twothreefour five", 0, 1, 8, "one\n twothreefour\n five\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = wrapped(cases[i].text, cases[i].column, cases[i].indent, cases[i].columns);

        assert_string_equal(text, cases[i].wanted);
        free(text);
    }
}

static void test_help_is_as_narrow_as_asked(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    (void)state;
    pace_options_print_help(table, PACE_HELP_COLUMNS_MIN, memory);
    assert_int_equal(fclose(memory), 0);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= PACE_HELP_COLUMNS_MIN);
    free(text);
}

static pace_status refuse_wordless(const pace_log *log)
{
    return pace_fail(log, PACE_USAGE, "say what is wanted");
}

/* A word that is missing is told before an option that is. */
static void test_words_may_be_needed(void **state)
{
    static const struct {
        char *word, *said;
    } cases[] = {{"--exact", "say what is wanted"}, {"word", "--run"}};
    fixture *f = *state;

    for (size_t i = 0; i < 2; i++) {
        pace_options *options = pace_options_create(table, &f->settings, &f->log);
        char *words[] = {cases[i].word};
        pace_texts positional;
        bool help;

        f->errors[0] = '\0';
        pace_options_need_word(options, refuse_wordless);
        assert_int_equal(pace_options_parse(options, 1, words, &help, &positional), PACE_USAGE);
        assert_non_null(strstr(f->errors, cases[i].said));
        pace_options_free(options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPTIONS_TEST(test_defaults),
        OPTIONS_TEST(test_forms),
        OPTIONS_TEST(test_precedence),
        OPTIONS_TEST(test_lists),
        OPTIONS_TEST(test_whole_numbers),
        OPTIONS_TEST(test_sizes),
        OPTIONS_TEST(test_reals),
        OPTIONS_TEST(test_out_of_range_says_where),
        OPTIONS_TEST(test_choices_and_flags),
        OPTIONS_TEST(test_usage_errors),
        OPTIONS_TEST(test_help_stops),
        OPTIONS_TEST(test_yaml_errors),
        OPTIONS_TEST(test_unknown_variables),
        cmocka_unit_test(test_nearest_name),
        OPTIONS_TEST(test_words_may_be_needed),
        cmocka_unit_test(test_help_is_complete),
        cmocka_unit_test(test_texts_are_wrapped),
        cmocka_unit_test(test_help_is_as_narrow_as_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
