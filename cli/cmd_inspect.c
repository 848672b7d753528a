/* cmd_inspect.c - paceline inspect */
#include "cli.h"
#include "print.h"

#include <paceline/inspect.h>
#include <stdlib.h>

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_inspect_config *inspect = config;

    if (words->count != 1)
        return pace_fail(&cli->log, PACE_USAGE,
                         "%zu paths: inspect takes one, of a data set, model, checkpoint or run",
                         words->count);
    inspect->path = words->items[0];
    return pace_inspect(inspect, &cli->log, result);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    char *json = *(char **)result;

    (void)config;
    if (cli->json) {
        cli_print_json_text(json);
        return PACE_OK;
    }
    cJSON *object = cJSON_Parse(json);

    free(json);
    if (!object)
        return pace_fail(&cli->log, PACE_BUG, "the description is not valid JSON");
    cli_print_listing(stdout, object, 0);
    cJSON_Delete(object);
    return PACE_OK;
}

const cli_verb cli_inspect = {
    .name = "inspect",
    .arguments = "PATH [options]",
    .summary = "say what a data set, model, checkpoint or run holds",
    .manual =
        "Describes a data set directory or part, a run directory, a checkpoint or a model file.\n"
        "\n"
        "A run that has not finished says how it ended and which checkpoint --resume would begin with;\n"
        "checkpoints are read and checked from end to end.\n"
        "\n"
        "Examples:\n"
        "  paceline inspect data\n"
        "  paceline inspect run1 --top 20\n"
        "  paceline inspect run1/checkpoints/step-000000001200.0003",
    .tables = CLI_TABLE(pace_inspect_options),
    .config_bytes = sizeof(pace_inspect_config),
    .result_bytes = sizeof(char *),
    .run = run,
    .print = print,
};
