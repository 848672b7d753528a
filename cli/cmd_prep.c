/* cmd_prep.c - paceline prep clicks */
#include "cli.h"
#include "print.h"

#include <paceline/prep.h>

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_prep_clicks_config *prep = config;

    if (words->count == 0)
        return pace_fail(&cli->log, PACE_USAGE, "no input: name the files to read, or - for standard input");
    prep->inputs = *words;
    prep->stop = cli_stop_on_signals();
    return pace_prep_clicks(prep, &cli->log, cli->registry, result);
}

static pace_status print_object(const cli_context *cli, const pace_prep_result *prep)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddNumberToObject(object, "train_rows", (double)prep->train_rows);
    cJSON_AddNumberToObject(object, "test_rows", (double)prep->test_rows);
    cJSON_AddNumberToObject(object, "bad_rows", (double)prep->bad_rows);
    cJSON_AddNumberToObject(object, "bytes_read", (double)prep->bytes_read);
    cJSON_AddNumberToObject(object, "bytes_written", (double)prep->bytes_written);
    cJSON_AddNumberToObject(object, "bytes_spilled", (double)prep->bytes_spilled);
    cJSON_AddNumberToObject(object, "features", (double)prep->features);
    cJSON_AddNumberToObject(object, "features_seen", (double)prep->features_seen);
    cJSON_AddNumberToObject(object, "unseen_entries", (double)prep->unseen_entries);
    cJSON_AddNumberToObject(object, "positive_rate", prep->positive_rate);
    cJSON_AddNumberToObject(object, "seconds", prep->seconds);
    cJSON_AddNumberToObject(object, "parse_seconds", prep->parse_seconds);
    cJSON_AddNumberToObject(object, "write_seconds", prep->write_seconds);
    return cli_print_json(object, &cli->log);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const pace_prep_result *prep = result;
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX], c[CLI_TEXT_MAX];
    double rows = (double)(prep->train_rows + prep->test_rows);

    (void)config;
    if (cli->json)
        return print_object(cli, prep);
    cli_print_row(stdout, "training rows", "%s", cli_count_text(prep->train_rows, a));
    cli_print_row(stdout, "test rows", "%s", cli_count_text(prep->test_rows, a));
    if (prep->bad_rows)
        cli_print_row(stdout, "bad rows left out", "%s", cli_count_text(prep->bad_rows, a));
    cli_print_row(stdout, "positive rate", "%.5f", prep->positive_rate);
    cli_print_row(stdout, "features", "%s (%s occur)", cli_count_text(prep->features, a),
                  cli_count_text(prep->features_seen, b));
    if (prep->unseen_entries)
        cli_print_row(stdout, "unseen entries", "%s", cli_count_text(prep->unseen_entries, a));
    cli_print_row(stdout, "read", "%s", cli_bytes_text((double)prep->bytes_read, a));
    cli_print_row(stdout, "written", "%s", cli_bytes_text((double)prep->bytes_written, a));
    cli_print_row(stdout, "spilled", "%s", cli_bytes_text((double)prep->bytes_spilled, a));
    cli_print_row(stdout, "time", "%s (reading %s, writing %s)", cli_seconds_text(prep->seconds, a),
                  cli_seconds_text(prep->parse_seconds, b), cli_seconds_text(prep->write_seconds, c));
    cli_print_row(stdout, "rate", "%s, %s", cli_rate_text(rows, prep->seconds, "rows", a),
                  cli_rate_text((double)prep->bytes_read, prep->seconds, "bytes", b));
    return PACE_OK;
}

const cli_verb cli_prep_clicks = {
    .name = "prep clicks",
    .arguments = "IN... -o DIR [options]",
    .summary = "turn click logs into a shuffled data set",
    .manual =
        "Reads Criteo rows, svmlight or TFRecord files (plain, .gz or .zst; - is standard input), shuffles\n"
        "the rows once over all inputs and writes them as HDF5 parts into a new directory. --holdout or\n"
        "--test set rows apart on which models are scored. When interrupted it leaves nothing behind.\n"
        "\n"
        "Examples:\n"
        "  paceline prep clicks clicks.tsv -o data --holdout 0.1\n"
        "  paceline prep clicks day_*.gz -o data --test week2.gz --memory 2G\n"
        "  paceline prep clicks today.tsv -o today --like run1   (encoded as the model of run1 expects)",
    .table = pace_prep_clicks_options,
    .config_bytes = sizeof(pace_prep_clicks_config),
    .result_bytes = sizeof(pace_prep_result),
    .run = run,
    .print = print,
};
