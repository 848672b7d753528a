/* cmd_inspect.c - paceline inspect */
#include "cli.h"
#include "print.h"

#include <paceline/inspect.h>
#include <stdlib.h>

typedef struct description {
    char *json;
    pace_status status; /* of a run, some of whose files are damaged or gone: it is printed all the same */
} description;

static bool always(const void *config)
{
    (void)config;
    return true;
}

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_inspect_config *inspect = config;

    if (words->count != 1)
        return pace_fail(&cli->log, PACE_USAGE,
                         "%zu paths: inspect takes one, of a data set, model, checkpoint or run",
                         words->count);
    inspect->path = words->items[0];
    description *found = result;

    found->status = pace_inspect(inspect, &cli->log, &found->json);
    return found->json ? PACE_OK : found->status;
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const description *found = result;

    (void)config;
    if (cli->json) {
        cli_print_json_text(found->json);
        return found->status;
    }
    cJSON *object = cJSON_Parse(found->json);

    free(found->json);
    if (!object)
        return pace_fail(&cli->log, PACE_BUG, "the description is not valid JSON");
    /* Points of curves are for those who draw them. */
    cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, "summary"), "curves");
    cli_print_listing(stdout, object, 0);
    cJSON_Delete(object);
    return found->status;
}

const cli_verb cli_inspect = {
    .name = "inspect",
    .arguments = "PATH [options]",
    .summary = "say what a data set, model, checkpoint or run holds",
    .manual =
        "Describes a data set directory or part, a run directory, a checkpoint or a model file.\n"
        "\n"
        "A run that has not finished says how it ended and which checkpoint --resume would begin with;\n"
        "checkpoints are read and checked from end to end. Of a run with a model or summary that is\n"
        "damaged or gone the rest is told, and the exit code is 65 or 66.\n"
        "\n"
        "Examples:\n"
        "  paceline inspect data\n"
        "  paceline inspect run1 --top 20\n"
        "  paceline inspect run1/checkpoints/step-000000001200.0003",
    .takes_words = true,
    .tables = CLI_TABLE(pace_inspect_options),
    .config_bytes = sizeof(pace_inspect_config),
    .result_bytes = sizeof(description),
    .only_prints = always,
    .run = run,
    .print = print,
};
