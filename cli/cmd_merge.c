/* cmd_merge.c - paceline merge */
#include "cli.h"
#include "print.h"

#include <paceline/prep.h>

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_merge_config *merge = config;

    if (words->count != 1)
        return pace_fail(&cli->log, PACE_USAGE, "%s: one data set is merged at a time",
                         words->count == 0 ? "no data set" : words->items[1]);
    merge->data = words->items[0];
    merge->stop = cli_stop_on_signals(cli, &cli_stop_nothing_kept, CLI_STOP_S);
    return pace_merge(merge, &cli->log, cli->registry, result);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const pace_merge_config *options = config;
    const pace_merge_result *merge = result;
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX];

    if (cli->json) {
        cJSON *object = cJSON_CreateObject();

        cJSON_AddNumberToObject(object, "train_rows", (double)merge->train_rows);
        cJSON_AddNumberToObject(object, "test_rows", (double)merge->test_rows);
        cJSON_AddNumberToObject(object, "validation_rows", (double)merge->validation_rows);
        cJSON_AddNumberToObject(object, "sets", (double)merge->sets);
        cJSON_AddNumberToObject(object, "bytes", (double)merge->bytes);
        cJSON_AddNumberToObject(object, "seconds", merge->seconds);
        return cli_print_json(object, &cli->log);
    }
    cli_print_row(stdout, "training rows", "%s in %s sets", cli_count_text(merge->train_rows, a),
                  cli_count_text(merge->sets, b));
    cli_print_row(stdout, "test rows", "%s", cli_count_text(merge->test_rows, a));
    if (merge->validation_rows > 0)
        cli_print_row(stdout, "validation rows", "%s", cli_count_text(merge->validation_rows, a));
    cli_print_row(stdout, "file", "%s, %s", options->output, cli_bytes_text((double)merge->bytes, a));
    cli_print_row(stdout, "time", "%s (%s)", cli_seconds_text(merge->seconds, a),
                  cli_rate_text((double)merge->bytes, merge->seconds, "bytes", b));
    return PACE_OK;
}

const cli_verb cli_merge = {
    .name = "merge",
    .arguments = "DIR -o FILE.h5 [options]",
    .summary = "put a data set's parts into one file",
    .manual =
        "Writes the training rows of a data set, in their order, into one HDF5 file as groups set0, set1, "
        "...\n"
        "of equal size (to one row), and its test and validation rows as groups of these names. Each group\n"
        "holds the arrays that the parts have, in chunks of rows, so that a slice is read without the rest.\n"
        "What is known of the data set is in the attributes; its vocabulary, or the original ids, is a data\n"
        "set of its own.\n"
        "\n"
        "Example:\n"
        "  paceline merge data -o data.h5",
    .takes_words = true,
    .tables = CLI_TABLE(pace_merge_options),
    .config_bytes = sizeof(pace_merge_config),
    .result_bytes = sizeof(pace_merge_result),
    .run = run,
    .print = print,
};
