/* Options as they are written: YAML and words, there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "option_settings.h"

static void test_yaml_round_trip(void **state)
{
    /* What a careless writer would spoil: quotes, comments, truth values, nulls, blanks, controls, line ends,
     * long lines. */
    static const char *const texts[] = {"",     " a ",      "null",         "~",
                                        "yes",  "a: b # c", "\"q\" 'p' \\", "a\nb\n",
                                        "\t\r", "\x01\x7f", "é 字 😀",       "\xc2\x85\xef\xbb\xbf",
                                        "- x",  "{}",       "*a &b !c",     "%d",
                                        "-5",   "1e3",      "a  b",         "#"};
    static const double reals[] = {0.1, 1.0 / 3, 1e-300, -0.5, 123456.78125, 5e-324, 0, 1e5};
    fixture *f = *state;
    char words[128], longest[5000];

    memset(longest, 'x', sizeof longest);
    memcpy(longest + 300, " y ", 3);
    longest[sizeof longest - 1] = '\0';
    snprintf(words, sizeof words, "--config %s", f->file);
    size_t count = sizeof texts / sizeof *texts;

    for (size_t i = 0; i <= count; i++) {
        const char *text = i < count ? texts[i] : longest;
        settings written = {.batch = 1 + (int64_t)i * 123456,
                            .shift = i % 2 ? INT64_MIN : INT64_MAX,
                            .memory = UINT64_MAX - i,
                            .lr = reals[i % 8],
                            .run = text,
                            .like = i % 2 ? NULL : text,
                            .schedule = (int)(i % 3),
                            .exact = i % 2,
                            .hashed = i % 3,
                            .test = {(const char **)texts, i},
                            .words = {0}};

        assert_int_equal(pace_options_write_yaml(PACE_PARTS(table, &written), f->file, &f->log), PACE_OK);
        assert_ok(f, parse(f, words));
        assert_true(f->settings.batch == written.batch && f->settings.shift == written.shift);
        assert_true(f->settings.memory == written.memory && f->settings.lr == written.lr);
        assert_string_equal(f->settings.run, text);
        if (written.like)
            assert_string_equal(f->settings.like, text);
        else
            assert_null(f->settings.like);
        assert_int_equal(f->settings.schedule, written.schedule);
        assert_true(f->settings.exact == written.exact && f->settings.hashed == written.hashed);
        assert_int_equal(f->settings.test.count, i);
        for (size_t j = 0; j < i; j++)
            assert_string_equal(f->settings.test.items[j], texts[j]);
        assert_int_equal(f->settings.words.count, 0);
    }
}

static void test_yaml_write_errors(void **state)
{
    fixture *f = *state;
    settings written = {.run = "caf\xe9"};

    assert_refused(f, pace_options_write_yaml(PACE_PARTS(table, &written), f->file, &f->log), "--run",
                   "UTF-8", NULL);
    assert_int_equal(access(f->file, F_OK), -1);
    written.run = "r";
    assert_int_equal(pace_options_write_yaml(PACE_PARTS(table, &written), "/nonexistent/x.yaml", &f->log),
                     PACE_IO);
}

/* Settings as words, and the words read again. */
static void assert_same_by_words(fixture *f, const settings *written, size_t words_wanted)
{
    char **words;
    size_t count;

    assert_int_equal(pace_options_to_words(PACE_PARTS(table, written), &f->log, &words, &count), PACE_OK);
    assert_null(words[count]);
    if (words_wanted != SIZE_MAX)
        assert_int_equal(count, words_wanted);
    pace_options_free(f->options);
    f->options = pace_options_create(table, &f->settings, &f->log);
    assert_ok(f, pace_options_parse(f->options, (int)count, words, &f->help, &f->positional));
    assert_int_equal(f->positional.count, 0);
    assert_true(f->settings.batch == written->batch && f->settings.shift == written->shift);
    assert_true(f->settings.memory == written->memory && f->settings.lr == written->lr);
    assert_string_equal(f->settings.run, written->run);
    assert_string_equal(f->settings.like, written->like);
    assert_int_equal(f->settings.schedule, written->schedule);
    assert_true(f->settings.exact == written->exact && f->settings.hashed == written->hashed);
    assert_int_equal(f->settings.test.count, written->test.count);
    for (size_t i = 0; i < written->test.count; i++)
        assert_string_equal(f->settings.test.items[i], written->test.items[i]);
    assert_int_equal(f->settings.words.count, written->words.count);
    for (size_t i = 0; i < written->words.count; i++)
        assert_string_equal(f->settings.words.items[i], written->words.items[i]);
    pace_options_free_words(words);
}

static void test_words_round_trip(void **state)
{
    static const char *texts[] = {"",         " a ", "--run", "-5", "a=b", "x:y",     "a\nb",
                                  "\xff\xfe", "é",   "--",    "-",  "=",   "\"q\" '", "$HOME;*"};
    static const double reals[] = {0.1, 1.0 / 3, 1e-300, -0.5, 123456.78125, 5e-324, 0, 1e5};
    fixture *f = *state;
    size_t count = sizeof texts / sizeof *texts;

    for (size_t i = 0; i < count; i++) {
        settings written = {.batch = 1 + (int64_t)i * 123456,
                            .shift = i % 2 ? INT64_MIN : INT64_MAX,
                            .memory = UINT64_MAX - i,
                            .lr = reals[i % 8],
                            .run = texts[i],
                            .like = texts[count - 1 - i],
                            .schedule = (int)(i % 3),
                            .exact = i % 2,
                            .hashed = i % 3,
                            .test = {texts, i},
                            .words = {texts + i, count - i}};

        assert_same_by_words(f, &written, SIZE_MAX);
    }
}

/* Only what is not the default, and a required option always. */
static void test_words_are_few(void **state)
{
    static const char *ab[] = {"a", "b", "c"};
    fixture *f = *state;

    assert_ok(f, parse(f, "--run r"));
    settings written = f->settings;

    written.run = "r"; /* the parser's own texts go with the next one */
    written.words = (pace_texts){ab, 2};
    written.like = (char[]){"other"};
    assert_same_by_words(f, &written, 1);
    written.words.count = 3;
    assert_same_by_words(f, &written, 1 + 3);
    written.words.count = 1;
    written.hashed = false;
    assert_same_by_words(f, &written, 1 + 1 + 1);
}

typedef struct must {
    int model;
} must;

static void test_required_words_stay(void **state)
{
    static const pace_option must_table[] = {
        {"model", 0, PACE_OPT_CHOICE, offsetof(must, model), NULL, "M", "the model", .choices = "logreg|cnn",
         .required = true},
        {0},
    };
    must config = {0};
    char **words;
    size_t count;

    (void)state;
    assert_int_equal(pace_options_to_words(PACE_PARTS(must_table, &config), NULL, &words, &count), PACE_OK);
    assert_int_equal(count, 1);
    assert_string_equal(words[0], "--model=logreg");
    pace_options_free_words(words);
    assert_int_equal(pace_options_to_words(PACE_PARTS(other_table, (int64_t[]){0}), NULL, &words, &count),
                     PACE_OK);
    assert_int_equal(count, 0);
    assert_null(words[0]);
    pace_options_free_words(words);
    pace_options_free_words(NULL);
}

static void test_what_words_cannot_say(void **state)
{
    fixture *f = *state;
    char **words = NULL;
    size_t count;

    assert_ok(f, parse(f, "--run r"));
    settings written = f->settings;

    written.like = NULL;
    assert_refused(f, pace_options_to_words(PACE_PARTS(table, &written), &f->log, &words, &count), "--like",
                   "other", NULL);
    f->errors[0] = '\0';
    written = f->settings;
    written.words.count = 0;
    assert_refused(f, pace_options_to_words(PACE_PARTS(table, &written), &f->log, &words, &count), "--words",
                   "a:b", NULL);
    assert_null(words);
}

/* --profile [STEPS]: alone, with a value, by words of a flag, and taken back. */
static void test_values_that_may_be_left_out(void **state)
{
    static const struct {
        const char *yaml, *line;
        int64_t profile;
        const char *dashboard;
    } cases[] = {
        {"", "--run r", 0, NULL},
        {"", "--run r --profile", 100, NULL},
        {"", "--profile --run r", 100, NULL},
        {"", "--profile 7 --run r", 7, NULL},
        {"", "--profile=0 --run r", 0, NULL},
        {"", "--profile=on --dashboard=off --run r", 100, NULL},
        {"", "--run r --profile 7 --no-profile", 0, NULL},
        {"", "--run r --no-profile --profile", 100, NULL},
        {"", "--run r --dashboard --profile 3", 3, "127.0.0.1"},
        {"", "--run r --dashboard 0.0.0.0", 0, "0.0.0.0"},
        {"", "--run r --dashboard --no-dashboard", 0, NULL},
        {"profile: 5\ndashboard: on\n", "--run r", 5, "127.0.0.1"},
        {"profile: true\ndashboard: here\n", "--run r", 100, "here"},
        {"profile: 1\n", "--run r", 1, NULL},
        {"profile: off\n", "--run r", 0, NULL},
        {"profile: true\n", "--run r --no-profile", 0, NULL},
    };
    fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse_config(f, cases[i].yaml, cases[i].line), PACE_OK);
        assert_int_equal(f->settings.profile, cases[i].profile);
        assert_int_equal(!f->settings.dashboard, !cases[i].dashboard);
        if (cases[i].dashboard)
            assert_string_equal(f->settings.dashboard, cases[i].dashboard);
    }
    assert_int_equal(parse(f, "--run r --profile some"), PACE_USAGE);
    assert_non_null(strstr(f->errors, "option --profile some: not a whole number"));
    assert_int_equal(parse(f, "--run r --profile -1"), PACE_USAGE);
    assert_int_equal(parse(f, "--run r --no-batch"), PACE_USAGE);
    setenv("PACELINE_PROFILE", "yes", 1);
    assert_int_equal(parse(f, "--run r"), PACE_OK);
    assert_int_equal(f->settings.profile, 100);
    setenv("PACELINE_PROFILE", "12", 1);
    assert_int_equal(parse(f, "--run r"), PACE_OK);
    assert_int_equal(f->settings.profile, 12);
    unsetenv("PACELINE_PROFILE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPTIONS_TEST(test_yaml_round_trip),         OPTIONS_TEST(test_yaml_write_errors),
        OPTIONS_TEST(test_words_round_trip),        OPTIONS_TEST(test_words_are_few),
        OPTIONS_TEST(test_what_words_cannot_say),   OPTIONS_TEST(test_values_that_may_be_left_out),
        cmocka_unit_test(test_required_words_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
