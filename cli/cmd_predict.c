/* cmd_predict.c - paceline predict */
#include "cli.h"
#include "print.h"

#include <paceline/score.h>

static bool to_standard_output(const void *config)
{
    const char *output = ((const pace_predict_config *)config)->output;

    return !output || cli_is_standard(output);
}

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_predict_config *predict = config;

    if (words->count == 0)
        return pace_fail(&cli->log, PACE_USAGE, "no input: name the files to read, or - for standard input");
    if (cli->json && to_standard_output(predict))
        return pace_fail(
            &cli->log, PACE_USAGE,
            "--json and the predictions cannot both go to standard output: give --output a file");
    predict->inputs = *words;
    predict->stop = cli_stop_if_file(cli, predict->output);
    return pace_predict(predict, &cli->log, cli->registry, result);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const pace_predict_config *predict = config;
    const uint64_t *rows = result;
    char text[CLI_TEXT_MAX];

    if (cli->json) {
        cJSON *object = cJSON_CreateObject();

        cJSON_AddNumberToObject(object, "rows", (double)*rows);
        return cli_print_json(object, &cli->log);
    }
    if (to_standard_output(predict))
        return PACE_OK;
    cli_print_row(stdout, "rows", "%s", cli_count_text(*rows, text));
    cli_print_row(stdout, "predictions", "%s", predict->output);
    return PACE_OK;
}

const cli_verb cli_predict = {
    .name = "predict",
    .arguments = "--run DIR IN... [options]",
    .summary = "write a probability for each row of raw files",
    .manual =
        "Applies the model of a run to raw rows (the formats of prep; the label may be missing) and writes\n"
        "one probability per row, in the order of the input, to standard output or --output.\n"
        "\n"
        "A model that was trained on reviews takes texts: the formats of prep reviews, or, what is not\n"
        "recognised as one of them, one text a line. Lines on standard input are answered as they come.\n"
        "\n"
        "A model that was trained on pictures takes JPEG and PNG files, and folders with all .jpg, .jpeg\n"
        "and .png files in them and in their folders, sorted. It writes a line for each: class,\n"
        "probability and path, with tabs between.\n"
        "\n"
        "What is written for rows and texts is 1 / (1 + exp(-logit)). Of a model that was trained with\n"
        "--loss hinge it is no probability: it is above 0.5 where the model says yes, and ranks rows, but\n"
        "has no other meaning.\n"
        "\n"
        "--explain N says why. Behind each line, with tabs between, are up to N pairs of a feature and what\n"
        "it adds to the logit, the heaviest first. Of a linear model that is weight times value of a "
        "feature,\n"
        "or the weight of a word or n-gram: all of them and the bias (inspect has it) are the logit. Of a\n"
        "factorization machine pairs of features (\"C1+5 * C2+7\") count besides. Of a recurrent network it\n"
        "is how much of the logit is gone when a word is left out wherever it occurs. Of pictures N x N "
        "cells\n"
        "follow, a field for each row with blanks between: how much less likely the first class is when the\n"
        "cell is covered with the picture's mean colour.\n"
        "\n"
        "Examples:\n"
        "  paceline predict --run run1 today.tsv > probabilities.txt\n"
        "  zcat today.gz | paceline predict --run run1 -\n"
        "  echo 'not bad at all' | paceline predict --run reviews1 -\n"
        "  paceline predict --run reviews1 --explain 5 new.jsonl\n"
        "  paceline predict --run images1 --top 3 holiday/*.jpg album\n"
        "  paceline predict --run images1 --explain 8 cat.jpg | cut -f 4- | tr '\\t' '\\n'",
    .takes_words = true,
    .tables = CLI_TABLE(pace_predict_options),
    .config_bytes = sizeof(pace_predict_config),
    .result_bytes = sizeof(uint64_t),
    .only_prints = to_standard_output,
    .run = run,
    .print = print,
};
