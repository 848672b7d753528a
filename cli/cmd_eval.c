/* cmd_eval.c - paceline eval */
#include "cli.h"
#include "print.h"

#include <paceline/score.h>

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_status status = cli_refuse_words(cli, words);

    return status ? status : pace_eval(config, &cli->log, cli->registry, result);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    (void)config;
    if (!cli->json) {
        cli_print_scores(stdout, result);
        return PACE_OK;
    }
    char *json = pace_scores_to_json(result);

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
        "Example:\n"
        "  paceline eval --run run1 --data data",
    .table = pace_eval_options,
    .config_bytes = sizeof(pace_eval_config),
    .result_bytes = sizeof(pace_scores),
    .run = run,
    .print = print,
};
