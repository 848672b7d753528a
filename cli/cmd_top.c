/* cmd_top.c - paceline top */
#include "cli.h"
#include "print.h"
#include "screen.h"

#include <paceline/top.h>
#include <stdlib.h>

typedef struct opened {
    pace_top *top;
} opened;

static bool always(const void *config)
{
    (void)config;
    return true;
}

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_top_config *options = config;

    if (words->count != 1)
        return pace_fail(&cli->log, PACE_USAGE, "%zu paths: top takes one, of a run directory", words->count);
    options->run = words->items[0];
    return pace_top_open(options->run, &cli->log, &((opened *)result)->top);
}

static pace_status print_lines(const cli_context *cli, pace_top *top)
{
    pace_top_size size = {.columns = cli_screen_columns(), .utf8 = cli_screen_speaks_utf8()};
    size_t count;
    const pace_top_line *lines = pace_top_draw(top, &size, &count);

    if (!lines)
        return pace_fail(&cli->log, PACE_FAILED, "out of memory");
    for (size_t i = 0; i < count; i++)
        puts(lines[i].text);
    return PACE_OK;
}

static pace_status print_object(const cli_context *cli, pace_top *top)
{
    char *json = pace_top_json(top);

    if (!json)
        return pace_fail(&cli->log, PACE_FAILED, "out of memory");
    cli_print_json_text(json);
    return PACE_OK;
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const pace_top_config *options = config;
    pace_top *top = ((opened *)result)->top;
    pace_status status = PACE_OK;

    if (cli->json)
        status = print_object(cli, top);
    else if (options->once || !cli_screen_show(top))
        status = print_lines(cli, top);
    pace_top_close(top);
    return status;
}

const cli_verb cli_top = {
    .name = "top",
    .arguments = "RUN [options]",
    .summary = "watch a run in the terminal: its roles, its loss, what holds it up",
    .manual =
        "Shows a run directory, anew once a second: how far the run is, a line for each of its roles, and\n"
        "where the time goes. It only reads, so it works on a run of somebody else, on one that was killed,\n"
        "and on one that is damaged. In a pipe, or on no terminal that can be drawn on, it prints once.\n"
        "\n"
        "rows/s, CPU, bytes and times are those of the last ten seconds, the verdict is of the last minute;\n"
        "of a run that does not go on they are of its whole last start. share: of the rows. net: bytes\n"
        "exchanged with other roles. wait, for: how much of its time a role waits, and for whom longest. A\n"
        "wider terminal shows more: sent, recv; data, compute, exchange, still (the chief scores or saves);\n"
        "queue (requests that a server finds waiting), stale (pushes that came between); disk; host.\n"
        "\n"
        "Keys: q quits, up and down show other roles.\n"
        "\n"
        "Examples:\n"
        "  paceline top run1\n"
        "  paceline top run1 | head -n 3\n"
        "  paceline top run1 --json",
    .takes_words = true,
    .tables = CLI_TABLE(pace_top_options),
    .config_bytes = sizeof(pace_top_config),
    .result_bytes = sizeof(opened),
    .only_prints = always,
    .run = run,
    .print = print,
};
