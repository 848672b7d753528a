/* cmd_study.c - paceline study */
#include "cli.h"
#include "help.h"
#include "print.h"

#include <paceline/study.h>
#include <stdlib.h>
#include <string.h>

static const cli_stop_words stop_words = {"stopping: the run under way is ended, those before it are kept",
                                          ", without waiting for the run under way"};

#define STOP_S 40.0 /* for a run that ends in an orderly way */

#define KINDS_TEXT 256

static pace_status name_kinds(const pace_log *log)
{
    const char *name, *summary;
    char list[KINDS_TEXT] = "";

    for (int i = 0; (name = pace_study_name(i, &summary)); i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", name);
    return pace_fail(log, PACE_USAGE, "study must be followed by what it asks; there is: %s", list);
}

static pace_status add_tables(pace_options *options, void *config)
{
    if (config)
        pace_options_need_word(options, name_kinds);
    return PACE_OK;
}

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_study_config *study = config;

    study->kind = words->items[0];
    study->words = (pace_texts){words->items + 1, words->count - 1};
    if (study->words.count && study->words.items[0][0] != '-')
        return pace_fail(
            &cli->log, PACE_USAGE,
            "'%s': a study asks one question; options of train follow behind --, as in -- --epochs 2",
            study->words.items[0]);
    study->stop = cli_stop_on_signals(cli, &stop_words, STOP_S);
    return pace_study(study, &cli->log, cli->registry, result);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const pace_study_config *options = config;
    pace_study_result *study = result;

    if (cli->json) {
        cli_print_json_text(study->json);
    } else {
        fputs(study->text, stdout);
        if (!options->dry_run)
            cli_print_row(stdout, "report", "%s/report.html", options->output);
        free(study->json);
    }
    free(study->text);
    if (study->failed == 0)
        return PACE_OK;
    return pace_fail(&cli->log, PACE_FAILED,
                     "%llu of %llu runs have failed; %s/results.jsonl has their causes",
                     (unsigned long long)study->failed, (unsigned long long)study->cells, options->output);
}

static pace_status print_topic(const char *topic, FILE *out, const pace_log *log)
{
    const char *name, *summary;

    if (topic)
        return pace_fail(log, PACE_USAGE, "--help %s: paceline study --help has everything", topic);
    fputs("What a study asks, and published ones to repeat:\n", out);
    for (int i = 0; (name = pace_study_name(i, &summary)); i++)
        cli_help_row(out, 13, name, summary);
    fputc('\n', out);
    return PACE_OK;
}

const cli_verb cli_study = {
    .name = "study",
    .arguments = "KIND --data DIR -o DIR [options] [-- options of train]",
    .summary = "run a matrix of jobs: how does it scale, what does it cost",
    .manual =
        "Runs the same job in many ways, each several times, and writes what came of it to -o: "
        "results.jsonl\n"
        "with every run, table.md, table.csv, table.json and report.html with plots. Options behind -- are\n"
        "those of train (of study prep: of prep) for every run.\n"
        "\n"
        "All cells are checked before the first is run. A study that was interrupted goes on when the same\n"
        "command is given again, also with more repetitions or cells. A run that fails is recorded with its\n"
        "cause and the rest goes on; the exit code is 1 then.\n"
        "\n"
        "Examples:\n"
        "  paceline study scaling --data data --workers 1,2,4 -o scaling -- --epochs 2\n"
        "  paceline study modes --data data --workers 4 --ps 1 --batch 1000 -o modes\n"
        "  paceline study batch --data texts --model rnn --rows 50k -o batch --repeat 5\n"
        "  paceline study balance --data data --workers 4 -o balance -- --inject slow:worker3=3x\n"
        "  paceline study cost --data data --workers 1,2,4,8 --hosts hosts.txt --prices prices.txt -o cost\n"
        "  paceline study prep --data clicks.tsv --workers 1,2,4 -o prep\n"
        "  paceline study criteo-2017 -o criteo",
    .takes_words = true,
    .tables = CLI_TABLE(pace_study_options),
    .add_tables = add_tables,
    .print_topic = print_topic,
    .config_bytes = sizeof(pace_study_config),
    .result_bytes = sizeof(pace_study_result),
    .run = run,
    .print = print,
};
