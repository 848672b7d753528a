/* cmd_eval.c - paceline eval */
#include "cli.h"
#include "print.h"

#include <paceline/score.h>

static bool without_file(const void *config)
{
    const char *errors = ((const pace_eval_config *)config)->errors;

    return !errors || cli_is_standard(errors);
}

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_eval_config *eval = config;

    (void)words;
    eval->stop = cli_stop_if_file(cli, eval->errors);
    return pace_eval_fully(eval, &cli->log, cli->registry, result);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    char *json = cli->json ? pace_eval_result_to_json(result) : NULL;

    (void)config;
    if (!cli->json)
        cli_print_evaluation(stdout, result);
    pace_eval_result_release(result);
    if (!cli->json)
        return PACE_OK;
    if (!json)
        return pace_fail(&cli->log, PACE_FAILED, "out of memory");
    cli_print_json_text(json);
    return PACE_OK;
}

const cli_verb cli_eval = {
    .name = "eval",
    .arguments = "--run DIR --data DIR [options]",
    .summary = "score a trained model on a data set",
    .manual =
        "Scores the model of a run: log-loss, AUC, accuracy, precision, recall, F1, the confusion counts,\n"
        "and what always predicting the same would score. The data set must be encoded as the model\n"
        "expects (paceline prep --like RUN).\n"
        "\n"
        "Of pictures also: the figures of each class, what was taken for what, and the surest mistakes by\n"
        "name. With more than two classes precision, recall and F1 are the means over the classes, and\n"
        "there is no AUC.\n"
        "\n"
        "--errors FILE gets the rows that the model is wrong about, a line each, with tabs between. Of "
        "texts\n"
        "and clicks, the surest mistakes first (as many as 256 MiB hold): the part's file and the row in "
        "it,\n"
        "from 0, the label, the probability of label 1, and the row as the model has seen it: words, or\n"
        "features as inspect names them (with :VALUE where there are values, ? for what was not in the\n"
        "training rows), with blanks between. Of pictures, in the order of the rows: path, class, what it\n"
        "was taken for, and the probability of that.\n"
        "\n"
        "Examples:\n"
        "  paceline eval --run run1 --data data\n"
        "  paceline eval --run reviews1 --data texts --errors errors.tsv",
    .tables = CLI_TABLE(pace_eval_options),
    .config_bytes = sizeof(pace_eval_config),
    .result_bytes = sizeof(pace_eval_result),
    .only_prints = without_file,
    .run = run,
    .print = print,
};
