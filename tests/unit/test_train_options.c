/* The options of train: their marks, those of one kind of model alone, and the words that a job is known by. */
#include "job/job.h"
#include "options/internal.h"
#include "ranks/hello.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct spoken {
    pace_train_config train;
    pace_model_options kinds[PACE_MODELS_MAX];
} spoken;

static char said[PACE_LOG_TEXT_MAX];

static void keep(void *user, pace_level level, const char *text)
{
    (void)user;
    if (level == PACE_ERROR)
        snprintf(said, sizeof said, "%s", text);
}

static const pace_log log_to = {keep, NULL};

/* A command line that has what is required, `model`, and one more option. */
static pace_status speak(const char *model, const char *option, spoken *to, pace_options **options)
{
    char words[5][128] = {"--data=d", "--run=r", "", ""}, *argv[4];
    pace_texts positional;
    bool help;

    said[0] = '\0';
    snprintf(words[2], sizeof words[2], "--model=%s", model);
    snprintf(words[3], sizeof words[3], "%s", option ? option : "--seed=1");
    for (int i = 0; i < 4; i++)
        argv[i] = words[i];
    *options = pace_options_create(pace_train_options, &to->train, &log_to);
    assert_non_null(*options);
    assert_int_equal(pace_train_add_kinds(*options, to->kinds), PACE_OK);
    pace_status status = pace_options_parse(*options, 4, argv, &help, &positional);

    return status ? status : pace_train_take_kind(&to->train, to->kinds, *options, &log_to);
}

/* "--name=value" with a value that is valid and not the default. */
static void other_value(const pace_option *row, char text[128])
{
    union {
        bool flag;
        int64_t whole;
        uint64_t size;
        double real;
        int choice;
        const char *text;
    } field = {0};
    static const char *const tries[] = {"true", "1", "2", "0.5", "nothing"};
    char why[PACE_WHY_MAX], word[PACE_OPTION_NAME_MAX];

    for (size_t i = 0; row->kind != PACE_OPT_CHOICE && i < sizeof tries / sizeof *tries; i++) {
        snprintf(text, 128, "--%s=%s", row->name, tries[i]);
        if (pace__value_parse(row, tries[i], &field, why) && !pace__value_is_default(row, &field))
            return;
    }
    for (int i = 0; row->kind == PACE_OPT_CHOICE && pace__choice_word(row->choices, i, word); i++) {
        snprintf(text, 128, "--%s=%s", row->name, word);
        if (!row->fallback || strcmp(word, row->fallback) != 0)
            return;
    }
    fail_msg("no value for --%s", row->name);
}

static void test_every_option_is_marked(void **state)
{
    (void)state;
    for (const pace_option *row = pace_train_options; row->name; row++)
        assert_int_not_equal(row->mark, PACE_MARK_NONE);
    for (int i = 0; pace_model_at(i); i++) {
        for (const pace_option *row = pace_model_at(i)->options; row->name; row++)
            assert_int_not_equal(row->mark, PACE_MARK_NONE);
    }
}

static void test_options_of_other_kinds_are_refused(void **state)
{
    static spoken to;
    pace_options *options;
    char option[128], name[80];

    (void)state;
    for (int own = 0; pace_model_at(own); own++) {
        for (int other = 0; pace_model_at(other); other++) {
            for (const pace_option *row = pace_model_at(other)->options; row->name; row++) {
                other_value(row, option);
                pace_status status = speak(pace_model_at(own)->name, option, &to, &options);

                snprintf(name, sizeof name, "--%s is for --model %s", row->name, pace_model_at(other)->name);
                if (own == other) {
                    assert_int_equal(status, PACE_OK);
                    assert_false(pace__value_is_default(row, (char *)&to.train.own + row->offset));
                } else {
                    assert_int_equal(status, PACE_USAGE);
                    assert_non_null(strstr(said, name));
                }
                pace_options_free(options);
            }
        }
    }
}

/* What pace__options_compare tells. */
typedef struct told {
    char names[256], before[64], now[64];
} told;

static void note_difference(void *user, const pace_option *row, const char *before, const char *now)
{
    told *self = user;
    size_t used = strlen(self->names);

    snprintf(self->names + used, sizeof self->names - used, "%s ", row->name);
    snprintf(self->before, sizeof self->before, "%s", before);
    snprintf(self->now, sizeof self->now, "%s", now);
}

static void test_an_option_is_a_row_and_nothing_else(void **state)
{
    /* Somebody adds an option that decides bits: a field and a row. */
    typedef struct longer {
        pace_train_config train;
        double added;
        const char *note;
    } longer;
    static const pace_option added[] = {
        {"added", 0, PACE_OPT_REAL, offsetof(longer, added), "0.5", "X", "new", .mark = PACE_MARK_IDENTITY},
        {"note", 0, PACE_OPT_TEXT, offsetof(longer, note), NULL, "T", "new", .mark = PACE_MARK_SURFACE},
        {0},
    };
    static spoken to;
    pace_options *options;
    longer one = {.added = 0.5, .note = "x"}, two;
    size_t word;

    (void)state;
    assert_int_equal(speak("logreg", NULL, &to, &options), PACE_OK);
    one.train = to.train;
    two = one;
    two.added = 0.25;
    two.note = "y";
    pace_option_part first[] = {{pace_train_options, &one}, {added, &one}, {0}},
                     second[] = {{pace_train_options, &two}, {added, &two}, {0}};
    char *a = pace__options_marked(first, PACE_MARK_BIT(PACE_MARK_IDENTITY)),
         *b = pace__options_marked(second, PACE_MARK_BIT(PACE_MARK_IDENTITY));

    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(strstr(a, "added=0.5"));
    assert_null(strstr(a, "note="));
    assert_false(pace__words_agree(a, b, &word));
    assert_int_equal(strncmp(b + word, "added=0.25", 10), 0);
    assert_true(pace__words_agree(a, a, &word));
    free(a);
    free(b);

    /* Refused by name on resume: another identity; what is no part of it is not. */
    told found = {{0}};

    pace__options_compare(first, second, PACE_MARK_BIT(PACE_MARK_IDENTITY), note_difference, &found);
    assert_string_equal(found.names, "added ");
    assert_string_equal(found.before, "0.5");
    assert_string_equal(found.now, "0.25");

    /* Recorded, and read back. */
    char path[] = "/tmp/paceline-options-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(pace_options_write_yaml(second, path, &log_to), PACE_OK);
    longer read;
    pace_options *reader = pace_options_create(pace_train_options, &read.train, &log_to);

    assert_int_equal(pace_options_add(reader, added, &read), PACE_OK);
    assert_int_equal(pace__options_read(reader, path), PACE_OK);
    assert_true(read.added == 0.25);
    unlink(path);
    pace_options_free(reader);
    pace_options_free(options);
}

static void test_values_are_single_words(void **state)
{
    typedef struct texts {
        const char *text;
        pace_texts list;
    } texts;
    static const pace_option table[] = {
        {"text", 0, PACE_OPT_TEXT, offsetof(texts, text), NULL, .mark = PACE_MARK_DATA},
        {"list", 0, PACE_OPT_LIST, offsetof(texts, list), NULL, .mark = PACE_MARK_DATA},
        {0},
    };
    const char *items[] = {"one", "t wo"};
    texts config = {"a b%c\n", {items, 2}};
    char *words = pace__options_marked(PACE_PARTS(table, &config), PACE_MARK_BIT(PACE_MARK_DATA));

    (void)state;
    assert_string_equal(words, "text=a%20b%25c%0a list=one:t%20wo");
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option_is_marked),
        cmocka_unit_test(test_options_of_other_kinds_are_refused),
        cmocka_unit_test(test_an_option_is_a_row_and_nothing_else),
        cmocka_unit_test(test_values_are_single_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
