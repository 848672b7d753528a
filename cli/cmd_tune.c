/* cmd_tune.c - paceline tune */
#include "cli.h"
#include "print.h"

#include <paceline/tune.h>
#include <string.h>

static const cli_stop_words stop_words = {
    "stopping: the run under way is ended, and goes on when the search does",
    ", without waiting for the run under way"};

#define STOP_S 40.0 /* for a run that ends in an orderly way */

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_tune_config *tune = config;

    tune->words = *words;
    if (words->count && words->items[0][0] != '-')
        return pace_fail(
            &cli->log, PACE_USAGE,
            "'%s': what is tried follows --try; options of train follow behind --, as in -- --epochs 2",
            words->items[0]);
    tune->stop = cli_stop_on_signals(cli, &stop_words, STOP_S);
    return pace_tune(tune, &cli->log, cli->registry, result);
}

static void print_winner(const pace_tune_result *tune)
{
    cli_print_row(stdout, "best", "%s", tune->best);
    cli_print_row(stdout, "validation", "%s", tune->validation);
    if (tune->test)
        cli_print_row(stdout, "test", "%s", tune->test);
    if (tune->run)
        cli_print_row(stdout, "run directory", "%s", tune->run);
    cli_print_row(stdout, "command", "%s", tune->command);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    pace_tune_result *tune = result;

    (void)config;
    if (cli->json) {
        cli_print_json_text(tune->json);
        tune->json = NULL;
    } else {
        fputs(tune->table, stdout);
        if (tune->best)
            print_winner(tune);
    }
    if (tune->failed)
        pace_say(&cli->log, PACE_WARN, "%llu of %llu runs have failed, and count as worse than all others",
                 (unsigned long long)tune->failed, (unsigned long long)tune->runs);
    pace_tune_result_release(tune);
    return PACE_OK;
}

const cli_verb cli_tune = {
    .name = "tune",
    .arguments = "--data DIR --try NAME=VALUES... -o DIR [options] [-- options of train]",
    .summary = "search over options of train on validation rows",
    .manual =
        "Trains with many settings and tells which is the best, by rows that no model has learned from. The\n"
        "first setting is what train does by itself, so that the best is at least as good. Many settings\n"
        "are trained for a ninth of their length, the better third for a third, the best to the end, as far\n"
        "as --budget goes. The test rows decide nothing; the winner's scores of them are shown.\n"
        "\n"
        "-o gets results.jsonl with every run, table.md, table.csv, table.json, and the winner's run\n"
        "directory. A search that was interrupted goes on when the same command is given again, also with\n"
        "more --budget. A setting that fails is recorded with its cause, and loses.\n"
        "\n"
        "Examples:\n"
        "  paceline tune --data data --try lr=0.01..0.3 --try l2=0,1e-6,1e-5 -o tuned\n"
        "  paceline tune --data texts --model rnn --try cell=lstm,gru --try hidden=32..256 -o rnn\n"
        "  paceline tune --data photos --model cnn --try lr=0.0003..0.01 --budget 10 -o cnn -- --epochs 4",
    .takes_words = true,
    .tables = CLI_TABLE(pace_tune_options),
    .config_bytes = sizeof(pace_tune_config),
    .result_bytes = sizeof(pace_tune_result),
    .run = run,
    .print = print,
};
