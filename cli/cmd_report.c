/* cmd_report.c - paceline report */
#include "cli.h"
#include "print.h"

#include <paceline/report.h>

static bool to_standard_output(const void *config)
{
    return cli_is_standard(((const pace_report_config *)config)->output);
}

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_report_config *report = config;

    if (cli->json && to_standard_output(report))
        return pace_fail(&cli->log, PACE_USAGE,
                         "--json and the report cannot both go to standard output: give --output a file");
    report->runs = *words;
    return pace_report(report, &cli->log, result);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const pace_report_config *report = config;
    const uint64_t *bytes = result;
    char text[CLI_TEXT_MAX];

    if (cli->json) {
        cJSON *object = cJSON_CreateObject();

        cJSON_AddNumberToObject(object, "runs", (double)report->runs.count);
        cJSON_AddStringToObject(object, "output", report->output);
        cJSON_AddNumberToObject(object, "bytes", (double)*bytes);
        return cli_print_json(object, &cli->log);
    }
    if (!to_standard_output(report))
        cli_print_row(stdout, "report", "%s (%s bytes)", report->output, cli_count_text(*bytes, text));
    return PACE_OK;
}

const cli_verb cli_report = {
    .name = "report",
    .arguments = "RUN... -o FILE.html [options]",
    .summary = "write what runs have done as one HTML file",
    .manual =
        "Writes one self-contained HTML file about one run or several: summary, configuration, loss and\n"
        "scores, throughput, where each role's time went, what it used, and what takes the time. The file\n"
        "loads nothing, needs no network, and its tables can be read without JavaScript.\n"
        "\n"
        "Runs may be finished, under way, interrupted or killed: what is missing is said. Several runs\n"
        "are drawn over each other, and compared by what differs in their options. train leaves such a\n"
        "file in its run directory, report.html, unless it is told --report off.\n"
        "\n"
        "Examples:\n"
        "  paceline report run1 -o run1.html\n"
        "  paceline report run1 run2 run3 -o compared.html --force\n"
        "  paceline report killed -o - > killed.html",
    .takes_words = true,
    .tables = CLI_TABLE(pace_report_options),
    .config_bytes = sizeof(pace_report_config),
    .result_bytes = sizeof(uint64_t),
    .only_prints = to_standard_output,
    .run = run,
    .print = print,
};
