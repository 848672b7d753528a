/* cmd_gen.c - paceline gen clicks */
#include "cli.h"
#include "print.h"

#include <paceline/gen.h>

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    const pace_gen_clicks_config *gen = config;
    pace_status status = cli_refuse_words(cli, words);

    if (status)
        return status;
    if (cli->json && cli_is_standard(gen->output))
        return pace_fail(&cli->log, PACE_USAGE,
                         "--json and the data cannot both go to standard output: give --output a file");
    return pace_gen_clicks(gen, &cli->log, cli->registry, result);
}

static pace_status print_object(const cli_context *cli, const pace_gen_clicks_result *gen)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddNumberToObject(object, "rows", (double)gen->rows);
    cJSON_AddNumberToObject(object, "bytes", (double)gen->bytes);
    cJSON_AddNumberToObject(object, "positive_rate", gen->positive_rate);
    cJSON_AddNumberToObject(object, "best_logloss", gen->best_logloss);
    cJSON_AddNumberToObject(object, "null_logloss", gen->null_logloss);
    cJSON_AddNumberToObject(object, "seconds", gen->seconds);
    cJSON_AddNumberToObject(object, "rows_per_second",
                            gen->seconds > 0 ? (double)gen->rows / gen->seconds : 0);
    return cli_print_json(object, &cli->log);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const pace_gen_clicks_config *options = config;
    const pace_gen_clicks_result *gen = result;
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX], c[CLI_TEXT_MAX];

    if (cli->json)
        return print_object(cli, gen);
    /* With the data on standard output, what is said about them goes beside it. */
    FILE *out = cli_is_standard(options->output) ? stderr : stdout;

    if (out == stderr && cli->quiet)
        return PACE_OK;
    cli_print_row(out, "rows", "%s", cli_count_text(gen->rows, a));
    cli_print_row(out, "size", "%s", cli_bytes_text((double)gen->bytes, a));
    cli_print_row(out, "positive rate", "%.5f", gen->positive_rate);
    cli_print_row(out, "best log-loss", "%.5f (what the hidden model reaches; always the mean: %.5f)",
                  gen->best_logloss, gen->null_logloss);
    cli_print_row(out, "time", "%s (%s, %s)", cli_seconds_text(gen->seconds, a),
                  cli_rate_text((double)gen->rows, gen->seconds, "rows", b),
                  cli_rate_text((double)gen->bytes, gen->seconds, "bytes", c));
    return PACE_OK;
}

const cli_verb cli_gen_clicks = {
    .name = "gen clicks",
    .arguments = "-o FILE [options]",
    .summary = "write a synthetic click log with a known signal",
    .manual =
        "Writes click logs whose labels come from a hidden model, so that the best possible log-loss is\n"
        "known: a training run can be judged by how close it comes. Equal options give equal bytes.\n"
        "\n"
        "Example:\n"
        "  paceline gen clicks -o clicks.tsv --rows 1M",
    .table = pace_gen_clicks_options,
    .config_bytes = sizeof(pace_gen_clicks_config),
    .result_bytes = sizeof(pace_gen_clicks_result),
    .run = run,
    .print = print,
};
