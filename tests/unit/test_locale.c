/* A program with decimal commas around the library: the same files, options and answers as without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <locale.h>
#include <paceline/gen.h>
#include <paceline/inspect.h>
#include <paceline/prep.h>
#include <paceline/score.h>
#include <paceline/train.h>

#define LOCALE "de_DE.UTF-8"

/* A machine may have no such locale: it is made, for this process. */
static bool has_locale(void **state)
{
    char *command =
        pace__format("localedef -i de_DE -f UTF-8 %s/" LOCALE " >/dev/null 2>&1", (const char *)*state);
    int code = command ? system(command) : -1;

    free(command);
    setenv("LOCPATH", *state, 1);
    bool there = code == 0 && setlocale(LC_ALL, LOCALE);

    setlocale(LC_ALL, "C");
    return there;
}

/* --- all verbs, once --- */

/* Options come as words, as from a command line; reals among them. */
static pace_options *parse(const pace_option *table, void *config, char **words)
{
    pace_options *options = pace_options_create(table, config, &said_log);
    pace_texts positional;
    bool help;
    int count = 0;

    while (words[count])
        count++;
    assert_non_null(options);
    assert_ok(pace_options_parse(options, count, words, &help, &positional));
    assert_int_equal(positional.count, 0);
    return options;
}

static void make_data(void)
{
    pace_gen_clicks_config gen = {.output = "clicks", .rows = 400, .seed = 1, .format = PACE_GEN_SVMLIGHT};
    pace_prep_clicks_config prep;
    pace_gen_clicks_result made;
    pace_prep_clicks_result prepared;

    assert_ok(pace_gen_clicks(&gen, &said_log, NULL, &made));
    memset(&prep, 0, sizeof prep);
    pace_options *options =
        parse(pace_prep_clicks_tables->rows, (char *)&prep + pace_prep_clicks_tables->offset,
              (char *[]){(char[]){"--output=set"}, (char[]){"--holdout=0.25"}, NULL});
    const char *input = "clicks";

    for (const pace_option_table *more = pace_prep_clicks_tables + 1; more->rows; more++)
        assert_ok(pace_options_add(options, more->rows, (char *)&prep + more->offset));
    prep.common.inputs = (pace_texts){&input, 1};
    prep.common.threads = 1;
    assert_ok(pace_prep_clicks(&prep, &said_log, NULL, &prepared));
    assert_int_equal(prepared.test_rows, 100);
    pace_options_free(options);
}

static void train(void)
{
    pace_train_config config;
    pace_train_result result;

    pace_train_defaults(0, &config);
    pace_options *options =
        parse(pace_train_options, &config,
              (char *[]){(char[]){"--data=set"}, (char[]){"--run=run"}, (char[]){"--lr=0.125"},
                         (char[]){"--batch=32"}, (char[]){"--log-every=1"}, (char[]){"--threads=1"}, NULL});

    assert_true(config.optimiser.lr == 0.125);
    assert_ok(pace_train(&config, &said_log, NULL, &result));
    pace_options_free(options);
}

static void put_and_free(const char *path, char *json)
{
    assert_non_null(json);
    put_text(path, json);
    free(json);
}

static void score(void)
{
    pace_eval_config eval = {.run = "run", .data = "set"};
    const char *input = "clicks";
    pace_predict_config predict = {.inputs = {&input, 1}, .run = "run", .output = "predictions"};
    pace_inspect_config inspect = {.path = "run/model.safetensors", .top = 3};
    pace_scores scores;
    uint64_t rows;
    char *json;

    assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
    put_and_free("scores", pace_scores_to_json(&scores));
    assert_ok(pace_predict(&predict, &said_log, NULL, &rows));
    assert_int_equal(rows, 400);
    assert_ok(pace_inspect(&inspect, &said_log, &json));
    put_and_free("model", json);
}

static void do_everything(void **state, const char *name, const char *locale)
{
    assert_int_equal(mkdir(in(state, name), 0777), 0);
    assert_int_equal(chdir(in(state, name)), 0);
    assert_non_null(setlocale(LC_ALL, locale));
    make_data();
    train();
    score();
    assert_string_equal(setlocale(LC_ALL, NULL), locale);
    char text[8];

    snprintf(text, sizeof text, "%.1f", 0.5); /* the program's own numbers are as it wants them */
    assert_string_equal(text, strcmp(locale, "C") == 0 ? "0.5" : "0,5");
    setlocale(LC_ALL, "C");
}

/* --- what it left --- */

/* The losses of all steps, which do not depend on the clock. */
static double sum_of_losses(const char *path)
{
    char *text = get_text(path), *rest = text;
    double sum = 0;

    for (char *line; (line = strsep(&rest, "\n"));) {
        cJSON *record = cJSON_Parse(line), *loss = cJSON_GetObjectItem(record, "loss");

        if (*line && !record)
            fail_msg("%s: not JSON: %s", path, line);
        sum += cJSON_IsNumber(loss) ? loss->valuedouble : 0;
        cJSON_Delete(record);
    }
    free(text);
    return sum;
}

static void the_same_with_commas(void **state)
{
    static const char *const names[] = {"clicks", "run/config.yaml", "predictions",
                                        "scores", "model",           "run/model.safetensors"};
    char before[PATH_MAX];

    assert_non_null(getcwd(before, sizeof before));
    if (!has_locale(state)) {
        print_message("localedef cannot make " LOCALE " here (Debian has it in the package locales)\n");
        exit(77);
    }
    do_everything(state, "point", "C");
    do_everything(state, "comma", LOCALE);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char pair[2][64];

        snprintf(pair[0], sizeof pair[0], "point/%s", names[i]);
        snprintf(pair[1], sizeof pair[1], "comma/%s", names[i]);
        assert_same_file(in(state, pair[0]), in(state, pair[1]));
    }
    double sum = sum_of_losses(in(state, "point/run/metrics.jsonl"));

    assert_true(sum > 0);
    assert_true(sum == sum_of_losses(in(state, "comma/run/metrics.jsonl")));
    assert_int_equal(chdir(before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_with_commas, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
