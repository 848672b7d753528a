/*
 * Any bytes as a saved model of any kind, used as users do: inspect describes it, eval scores it on a data set of
 * the sort that it is about, predict answers, train begins with it. Each refuses with one message of one line, or does
 * what it should: scores are in their range, every row gets a line, with reasons or without, and what was trained is a
 * model.
 *
 * With PACE_FUZZ_SEEDS=DIR in the environment models of all kinds are trained and put there: the seeds.
 */
#include "saved/saved.h"

#include "stage.h"

#include <paceline/inspect.h>
#include <paceline/score.h>

#define ROWS 3 /* to be predicted */

static void make_seed(const char *directory, int set, const char *const *words)
{
    char *run = pace__format("%s/run-%s", scratch(), words[1]);
    char *from = pace__format("%s/model.safetensors", run);
    char *to = pace__format("%s/%s-%d", directory, words[1], set), *text;
    size_t size;

    assert(train(words, set, run, &aloud) == PACE_OK);
    assert(pace__read_file(from, 1 << 20, &text, &size, &aloud) == PACE_OK);
    put_file(to, text, size);
    pace__remove_tree(run, NULL);
    free(text);
    free(run);
    free(from);
    free(to);
}

/* What models of each kind are trained with here. */
#define OPTIONS_MAX 6
static const char *const options_of[][OPTIONS_MAX] = {
    {"--model", "logreg", NULL},
    {"--model", "fm", "--factors=2", NULL},
    {"--model", "rnn", "--embed=2", "--hidden=2", "--dense=1", NULL},
    {"--model", "cnn", "--width=0.05", NULL},
};
#define KINDS (sizeof options_of / sizeof *options_of)

static void make_seeds(const char *directory)
{
    for (int set = SET_CRITEO; set <= SET_TEXTS; set++)
        make_seed(directory, set, options_of[0]);
    for (int set = SET_CRITEO; set <= SET_NUMBERED; set++)
        make_seed(directory, set, options_of[1]);
    make_seed(directory, SET_TEXTS, options_of[2]);
    make_seed(directory, SET_PICTURES, options_of[3]);
}

static void make_stage(void)
{
    const char *seeds = getenv("PACE_FUZZ_SEEDS");

    for (int set = 0; set < SETS; set++)
        make_set(set);
    if (seeds)
        make_seeds(seeds);
    for (int set = 0; set < SETS; set++)
        write_raw(set, ROWS); /* to be predicted */
}

static void check_status(pace_status status, int errors)
{
    assert(status == PACE_OK || status == PACE_BAD_DATA || status == PACE_USAGE);
    assert(errors == (status != PACE_OK));
}

static void inspect(const char *path)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    pace_inspect_config config = {.path = path, .top = 3};
    char *json = NULL;

    pace_status status = pace_inspect(&config, &log, &json);

    check_status(status, errors);
    assert(status || (json && *json == '{'));
    free(json);
}

static void eval(const char *path, int set)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    pace_eval_config config = {.run = path, .data = set_path(set), .errors = "/dev/null"};
    pace_eval_result result = {0};
    pace_status status = pace_eval_fully(&config, &log, NULL, &result);

    if (status != PACE_FAILED) /* large weights give predictions that are no numbers: that is said */
        check_status(status, errors);
    if (!status) {
        char *json = pace_eval_result_to_json(&result);

        assert(json && result.scores.n > 0 && result.scores.accuracy >= 0 && result.scores.accuracy <= 1);
        free(json);
    }
    pace_eval_result_release(&result);
}

static void predict(const char *path, int set, int64_t explain)
{
    int errors = 0;
    uint64_t rows = 0;
    pace_log log = {check_message, &errors};
    const char *inputs[] = {raw_path(set)};
    pace_predict_config config = {
        .inputs = {inputs, 1}, .run = path, .output = "/dev/null", .explain = explain};
    pace_status status = pace_predict(&config, &log, NULL, &rows);

    if (status != PACE_FAILED) /* as above */
        check_status(status, errors);
    assert(status || rows == ROWS);
}

/* A step on from it. Other sizes than those of the seeds are refused; with some weights nothing can be computed. */
static void begin_with(const char *path, int set, const char *kind)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    char *run = pace__format("%s/warm", scratch()), *init = pace__format("--init=%s", path);
    const char *words[OPTIONS_MAX + 5] = {init, "--steps=1", "--checkpoint-seconds=0", "--report=off"};

    assert(run && init);
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(options_of[i][1], kind) == 0)
            memcpy(words + 4, options_of[i], sizeof options_of[i]);
    }
    pace_status status = train(words, set, run, &log);

    if (status != PACE_FAILED)
        check_status(status, errors);
    pace__remove_tree(run, NULL);
    free(init);
    free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int errors = 0, set = SETS;
    const char *kind = "";
    pace_log log = {check_message, &errors};
    pace__saved model;

    if (!*scratch_path)
        make_stage();
    unnamed file = unnamed_make(data, size);

    inspect(file.path);
    if (!pace__saved_open(file.path, &log, &model)) {
        set = model.encoding.kind == PACE__CRITEO     ? SET_CRITEO
              : model.encoding.kind == PACE__NUMBERED ? SET_NUMBERED
              : model.encoding.kind == PACE__SHEET    ? SETS
              : model.encoding.kind == PACE__TEXT     ? SET_TEXTS
                                                      : SET_PICTURES;
        kind = model.model.plan.kind->info.name;
        pace__saved_close(&model);
    }
    if (set < SETS)
        eval(file.path, set);
    for (int explain = 0; explain < 3 && set < SET_PICTURES; explain += 2)
        predict(file.path, set, explain); /* files of pictures are what fuzz_picture is about */
    if (set < SETS)
        begin_with(file.path, set, kind);
    close(file.fd);
    return 0;
}
