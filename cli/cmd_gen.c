/* cmd_gen.c - paceline gen clicks, gen reviews, gen images */
#include "cli.h"
#include "print.h"

#include <paceline/gen.h>

static pace_status check(const cli_context *cli, const char *output)
{
    if (cli->json && cli_is_standard(output))
        return pace_fail(&cli->log, PACE_USAGE,
                         "--json and the data cannot both go to standard output: give --output a file");
    return PACE_OK;
}

/* Where to say what was made: with the data on standard output, beside it; NULL: nowhere. */
static FILE *result_stream(const cli_context *cli, const char *output)
{
    if (!cli_is_standard(output))
        return stdout;
    return cli->quiet ? NULL : stderr;
}

static void print_size(FILE *out, uint64_t rows, uint64_t bytes, double positive_rate)
{
    char text[CLI_TEXT_MAX];

    cli_print_row(out, "rows", "%s", cli_count_text(rows, text));
    cli_print_row(out, "size", "%s", cli_bytes_text((double)bytes, text));
    cli_print_row(out, "positive rate", "%.5f", positive_rate);
}

static void print_best_logloss(FILE *out, double best, double null)
{
    cli_print_row(out, "best log-loss", "%.5f (what the hidden model reaches; always the mean: %.5f)", best,
                  null);
}

static void print_time(FILE *out, uint64_t rows, uint64_t bytes, double seconds)
{
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX], c[CLI_TEXT_MAX];

    cli_print_row(out, "time", "%s (%s, %s)", cli_seconds_text(seconds, a),
                  cli_rate_text((double)rows, seconds, "rows", b),
                  cli_rate_text((double)bytes, seconds, "bytes", c));
}

static void add_time(cJSON *object, uint64_t rows, double seconds)
{
    cJSON_AddNumberToObject(object, "seconds", seconds);
    cJSON_AddNumberToObject(object, "rows_per_second", seconds > 0 ? (double)rows / seconds : 0);
}

/* ---- clicks ---- */

static bool clicks_stream(const void *config)
{
    return cli_is_standard(((const pace_gen_clicks_config *)config)->output);
}

static pace_status run_clicks(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_gen_clicks_config *gen = config;
    pace_status status = check(cli, gen->output);

    (void)words;
    gen->stop = cli_stop_if_file(cli, gen->output);
    return status ? status : pace_gen_clicks(gen, &cli->log, cli->registry, result);
}

static pace_status print_clicks_object(const cli_context *cli, const pace_gen_clicks_result *gen)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddNumberToObject(object, "rows", (double)gen->rows);
    cJSON_AddNumberToObject(object, "bytes", (double)gen->bytes);
    cJSON_AddNumberToObject(object, "positive_rate", gen->positive_rate);
    cJSON_AddNumberToObject(object, "best_logloss", gen->best_logloss);
    cJSON_AddNumberToObject(object, "null_logloss", gen->null_logloss);
    add_time(object, gen->rows, gen->seconds);
    return cli_print_json(object, &cli->log);
}

static pace_status print_clicks(const cli_context *cli, const void *config, void *result)
{
    const pace_gen_clicks_config *options = config;
    const pace_gen_clicks_result *gen = result;

    if (cli->json)
        return print_clicks_object(cli, gen);
    FILE *out = result_stream(cli, options->output);

    if (!out)
        return PACE_OK;
    print_size(out, gen->rows, gen->bytes, gen->positive_rate);
    print_best_logloss(out, gen->best_logloss, gen->null_logloss);
    print_time(out, gen->rows, gen->bytes, gen->seconds);
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
    .tables = CLI_TABLE(pace_gen_clicks_options),
    .config_bytes = sizeof(pace_gen_clicks_config),
    .result_bytes = sizeof(pace_gen_clicks_result),
    .only_prints = clicks_stream,
    .run = run_clicks,
    .print = print_clicks,
};

/* ---- reviews ---- */

static bool reviews_stream(const void *config)
{
    return cli_is_standard(((const pace_gen_reviews_config *)config)->output);
}

static pace_status run_reviews(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_gen_reviews_config *gen = config;
    pace_status status = check(cli, gen->output);

    (void)words;
    gen->stop = cli_stop_if_file(cli, gen->output);
    return status ? status : pace_gen_reviews(gen, &cli->log, cli->registry, result);
}

static pace_status print_reviews_object(const cli_context *cli, const pace_gen_reviews_result *gen)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddNumberToObject(object, "rows", (double)gen->rows);
    cJSON_AddNumberToObject(object, "bytes", (double)gen->bytes);
    cJSON_AddNumberToObject(object, "positive_rate", gen->positive_rate);
    cJSON_AddNumberToObject(object, "best_accuracy", gen->best_accuracy);
    cJSON_AddNumberToObject(object, "null_accuracy", gen->null_accuracy);
    cJSON_AddNumberToObject(object, "best_logloss", gen->best_logloss);
    cJSON_AddNumberToObject(object, "null_logloss", gen->null_logloss);
    add_time(object, gen->rows, gen->seconds);
    return cli_print_json(object, &cli->log);
}

static pace_status print_reviews(const cli_context *cli, const void *config, void *result)
{
    const pace_gen_reviews_config *options = config;
    const pace_gen_reviews_result *gen = result;

    if (cli->json)
        return print_reviews_object(cli, gen);
    FILE *out = result_stream(cli, options->output);

    if (!out)
        return PACE_OK;
    print_size(out, gen->rows, gen->bytes, gen->positive_rate);
    cli_print_row(out, "best accuracy", "%.5f (what the hidden rules reach; always the majority: %.5f)",
                  gen->best_accuracy, gen->null_accuracy);
    print_best_logloss(out, gen->best_logloss, gen->null_logloss);
    print_time(out, gen->rows, gen->bytes, gen->seconds);
    return PACE_OK;
}

const cli_verb cli_gen_reviews = {
    .name = "gen reviews",
    .arguments = "-o FILE [options]",
    .summary = "write synthetic product reviews with a known signal",
    .manual =
        "Writes product reviews as JSON-lines with the fields of the public sets (reviewText, overall, "
        "...).\n"
        "Four or five stars are positive; three are not. The stars are drawn from a probability that "
        "follows\n"
        "from the text by hidden rules, so that the best possible accuracy is known. The rules need the "
        "order\n"
        "of words: a negation turns a word around from up to four words away, and what follows a \"but\"\n"
        "counts more. Equal options give equal bytes.\n"
        "\n"
        "Example:\n"
        "  paceline gen reviews -o reviews.jsonl --rows 100k",
    .tables = CLI_TABLE(pace_gen_reviews_options),
    .config_bytes = sizeof(pace_gen_reviews_config),
    .result_bytes = sizeof(pace_gen_reviews_result),
    .only_prints = reviews_stream,
    .run = run_reviews,
    .print = print_reviews,
};

/* ---- images ---- */

static pace_status run_images(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_gen_images_config *gen = config;

    (void)words;
    gen->stop = cli_stop_on_signals(cli, &cli_stop_nothing_kept, CLI_STOP_S);
    return pace_gen_images(gen, &cli->log, cli->registry, result);
}

static pace_status print_images_object(const cli_context *cli, const pace_gen_images_result *gen)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddNumberToObject(object, "rows", (double)gen->rows);
    cJSON_AddNumberToObject(object, "bytes", (double)gen->bytes);
    cJSON_AddNumberToObject(object, "classes", (double)gen->classes);
    add_time(object, gen->rows, gen->seconds);
    return cli_print_json(object, &cli->log);
}

static pace_status print_images(const cli_context *cli, const void *config, void *result)
{
    const pace_gen_images_result *gen = result;
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX];

    (void)config;
    if (cli->json)
        return print_images_object(cli, gen);
    cli_print_row(stdout, "pictures", "%s in %s classes", cli_count_text(gen->rows, a),
                  cli_count_text(gen->classes, b));
    cli_print_row(stdout, "size", "%s", cli_bytes_text((double)gen->bytes, a));
    cli_print_row(stdout, "time", "%s (%s)", cli_seconds_text(gen->seconds, a),
                  cli_rate_text((double)gen->rows, gen->seconds, "pictures", b));
    return PACE_OK;
}

const cli_verb cli_gen_images = {
    .name = "gen images",
    .arguments = "-o DIR [options]",
    .summary = "draw synthetic pictures, a folder per class",
    .manual =
        "Draws pictures as JPEG files of different sizes, a folder per class. Variant shapes: the class is\n"
        "the shape drawn, at any place, size, angle and colour, on a textured background. Variant quality:\n"
        "every picture is a scene of several shapes, and the class is good, or bad because of blur, noise,\n"
        "compression or over-exposure. Equal options give equal bytes.\n"
        "\n"
        "Example:\n"
        "  paceline gen images -o pictures --rows 2000",
    .tables = CLI_TABLE(pace_gen_images_options),
    .config_bytes = sizeof(pace_gen_images_config),
    .result_bytes = sizeof(pace_gen_images_result),
    .run = run_images,
    .print = print_images,
};
