/*
 * Any bytes as a saved model of any kind, used as users do: inspect describes it, eval scores it on a data set of
 * the sort that it is about, predict answers. Each refuses with one message of one line, or does what it should:
 * scores are in their range, and every row gets a line.
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

static void make_seeds(const char *directory)
{
    for (int set = SET_CRITEO; set <= SET_TEXTS; set++)
        make_seed(directory, set, (const char *[]){"--model", "logreg", NULL});
    for (int set = SET_CRITEO; set <= SET_NUMBERED; set++)
        make_seed(directory, set, (const char *[]){"--model", "fm", "--factors=2", NULL});
    make_seed(directory, SET_TEXTS,
              (const char *[]){"--model", "rnn", "--embed=2", "--hidden=2", "--dense=1", NULL});
    make_seed(directory, SET_PICTURES, (const char *[]){"--model", "cnn", "--width=0.05", NULL});
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
    pace_eval_config config = {.run = path, .data = set_path(set)};
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

static void predict(const char *path, int set)
{
    int errors = 0;
    uint64_t rows = 0;
    pace_log log = {check_message, &errors};
    const char *inputs[] = {raw_path(set)};
    pace_predict_config config = {.inputs = {inputs, 1}, .run = path, .output = "/dev/null"};
    pace_status status = pace_predict(&config, &log, NULL, &rows);

    if (status != PACE_FAILED) /* as above */
        check_status(status, errors);
    assert(status || rows == ROWS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int errors = 0, set = SETS;
    pace_log log = {check_message, &errors};
    pace__saved model;

    if (!*scratch_path)
        make_stage();
    unnamed file = unnamed_make(data, size);

    inspect(file.path);
    if (!pace__saved_open(file.path, &log, &model)) {
        set = model.encoding.kind == PACE__CRITEO     ? SET_CRITEO
              : model.encoding.kind == PACE__NUMBERED ? SET_NUMBERED
              : model.encoding.kind == PACE__TEXT     ? SET_TEXTS
                                                      : SET_PICTURES;
        pace__saved_close(&model);
    }
    if (set < SETS)
        eval(file.path, set);
    if (set < SET_PICTURES) /* files of pictures are what fuzz_picture is about */
        predict(file.path, set);
    close(file.fd);
    return 0;
}
