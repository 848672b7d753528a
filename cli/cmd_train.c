/* cmd_train.c - paceline train */
#include "cli.h"
#include "help.h"
#include "print.h"
#include "print_profile.h"

#include <paceline/plan.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a command line says: the options of all kinds of models, one of which will be taken. */
typedef struct spoken {
    pace_train_config train;
    pace_model_options kinds[PACE_MODELS_MAX];
    const pace_options *options;
} spoken;

/* A run that is there knows its options: who goes on with it need not repeat them. */
static void point_to_config(const void *user, const char *missing, char text[PACE_HINT_MAX])
{
    const char *run = ((const spoken *)user)->train.run;
    char path[PACE_HINT_MAX / 2];

    (void)missing;
    if (!run || snprintf(path, sizeof path, "%s/config.yaml", run) >= (int)sizeof path ||
        access(path, R_OK) != 0)
        return;
    snprintf(text, PACE_HINT_MAX, "--config %s has all options of that run", path);
}

static pace_status add_tables(pace_options *options, void *config)
{
    spoken *said = config;

    if (said) {
        said->options = options;
        pace_options_hint(options, point_to_config, said);
    }
    return pace_train_add_kinds(options, said ? said->kinds : NULL);
}

static const cli_stop_words stop_words = {"stopping: a checkpoint is written behind the step under way",
                                          ", without one"};

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    spoken *said = config;
    pace_status status = pace_train_take_kind(&said->train, said->kinds, said->options, &cli->log);

    (void)words;
    if (status)
        return status;
    said->train.stop = cli_stop_on_signals(cli, &stop_words, said->train.cluster.deadline);
    status = pace_plan_workers(&said->train, !pace_options_given(said->options, "mode"), &cli->log);
    if (status)
        return status;
    return pace_train(&said->train, &cli->log, cli->registry, result);
}

/* A dry run leaves no summary behind. */
static pace_status print_object(const cli_context *cli, const pace_train_config *config)
{
    char *json;

    if (config->dry_run) {
        cJSON *object = cJSON_CreateObject();

        cJSON_AddBoolToObject(object, "dry_run", true);
        return cli_print_json(object, &cli->log);
    }
    pace_status status = pace_train_summary(config->run, &cli->log, &json);

    if (!status)
        cli_print_json_text(json);
    return status;
}

/* That there is none was said when it could not be written. */
static pace_status print_profile(const cli_context *cli, const pace_train_config *config)
{
    pace_log silent = {0};
    char *json;

    (void)cli;
    if (pace_train_profile(config->run, &silent, &json) == PACE_OK) {
        cli_print_profile(stdout, config->run, json);
        free(json);
    }
    return PACE_OK;
}

/* In a line: what counts comes behind it. */
static void print_validation(const pace_scores *scores)
{
    char ranking[32] = "", a[CLI_TEXT_MAX];

    if (scores->classes <= 2)
        snprintf(ranking, sizeof ranking, ", AUC %.5f", scores->auc);
    cli_print_row(stdout, "validation", "log-loss %.5f%s, accuracy %.5f (%s rows)", scores->logloss, ranking,
                  scores->accuracy, cli_count_text(scores->n, a));
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const pace_train_config *options = &((const spoken *)config)->train;
    const pace_train_result *train = result;
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX];

    if (train->elsewhere) /* the chief prints */
        return PACE_OK;
    if (cli->json)
        return print_object(cli, options);
    if (options->dry_run) {
        puts("dry run: nothing was trained");
        return PACE_OK;
    }
    cli_print_row(stdout, "steps", "%s (%.4g epoch%s)", cli_count_text(train->steps, a), train->epochs,
                  train->epochs == 1 ? "" : "s");
    cli_print_row(stdout, "samples", "%s", cli_count_text(train->samples, a));
    cli_print_row(stdout, "time", "%s (%s)", cli_seconds_text(train->seconds, a),
                  cli_rate_text(train->samples_per_second, 1, "samples", b));
    cli_print_row(stdout, pace_train_has_logloss(options) ? "training log-loss" : "training loss", "%.5f",
                  train->train_loss);
    if (train->best_step > 0)
        cli_print_row(stdout, "model of step", "%s, the best by log-loss: %.5f",
                      cli_count_text(train->best_step, a), train->best_logloss);
    if (train->has_validation)
        print_validation(&train->validation);
    if (train->has_test)
        cli_print_scores(stdout, &train->test);
    if (train->overfitting[0])
        cli_print_row(stdout, "overfitting", "%s", train->overfitting);
    if (train->bottleneck[0]) {
        cli_print_row(stdout, "bottleneck", "%s", train->bottleneck);
        cli_print_row(stdout, "what would help", "%s", train->advice);
    }
    cli_print_row(stdout, "run directory", "%s", options->run);
    cli_print_row(stdout, "model", "sha256 %s", train->model_sha256);
    return options->records.profile ? print_profile(cli, options) : PACE_OK;
}

/* ---- what the kinds of models have of their own ---- */

static pace_status unknown_topic(const char *topic, const pace_log *log)
{
    char names[256] = "";

    for (int i = 0; pace_model_at(i); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 pace_model_at(i)->name);
    return pace_fail(log, PACE_USAGE, "--help %s: there is help on %s", topic, names);
}

static void print_topics(FILE *out)
{
    fputs("Each kind of model has options and defaults of its own:\n", out);
    for (int i = 0; pace_model_at(i); i++) {
        char name[64];

        snprintf(name, sizeof name, "paceline train --help %s", pace_model_at(i)->name);
        cli_help_row(out, 28, name, pace_model_at(i)->summary);
    }
    fputc('\n', out);
}

static pace_status print_topic(const char *topic, FILE *out, const pace_log *log)
{
    pace_train_config defaults;
    int model = 0;

    if (!topic) {
        print_topics(out);
        return PACE_OK;
    }
    while (pace_model_at(model) && strcmp(pace_model_at(model)->name, topic) != 0)
        model++;
    const pace_model_info *info = pace_model_at(model);

    if (!info)
        return unknown_topic(topic, log);
    pace_train_defaults(model, &defaults);
    fprintf(out, "--model %s: ", info->name);
    cli_help_text(out, info->summary);
    fputc('\n', out);
    pace_options_print_values(&(pace_option_part){info->options, &defaults.own}, false, cli_help_columns(),
                              out);
    fputc('\n', out);
    cli_help_text(out, "Its defaults of what all models share (paceline train --help has the rest):");
    defaults.model = 0; /* said above */
    pace_options_print_values(&(pace_option_part){pace_train_options, &defaults}, true, cli_help_columns(),
                              out);
    if (info->notes) {
        fputc('\n', out);
        cli_help_text(out, info->notes);
    }
    return PACE_OK;
}

const cli_verb cli_train = {
    .name = "train",
    .arguments = "--data DIR --model KIND --run DIR [options]",
    .summary = "train a model on a data set, and score it",
    .manual =
        "Trains on the rows that prep wrote to --data, scores the model on the test rows if there are any,\n"
        "and leaves a run directory: the model, the resolved config.yaml, metrics.jsonl and summary.json.\n"
        "Validation rows, of prep --validation or of --validation here, are scored on the way "
        "(--eval-every);\n"
        "by them --early-stop ends, and --keep-best chooses, so that the test rows stay for the end.\n"
        "SIGINT (Ctrl-C) or SIGTERM write a checkpoint and end with exit code 75; --resume goes on from it.\n"
        "\n"
        "With --workers, --ps or --evaluator the job is several processes, started through mpirun: on this\n"
        "machine, or on those of --hosts. Inside mpirun or srun the same command takes its place by rank.\n"
        "\n"
        "Examples:\n"
        "  paceline train --data data --model logreg --run run1\n"
        "  paceline train --data data --model logreg --run run2 --optimizer ftrl --epochs 3\n"
        "  paceline train --data data --run run11 --validation 0.1 --eval-every 200 --early-stop 5\n"
        "  paceline train --data texts --model rnn --run run6 --cell gru --hidden 128 --bidirectional\n"
        "  paceline train --data photos --model cnn --run run7 --arch mobilenet-v2\n"
        "  paceline train --data photos --model cnn --run run8 --arch mobilenet-v1 --width 0.25 \\\n"
        "      --pretrained mobilenet.safetensors --train top\n"
        "  paceline train --data data --model logreg --run run4 --workers 4 --ps 2 --evaluator --batch "
        "10000\n"
        "  paceline train --data data --model logreg --run run5 --mode ps-async --workers 8 --hosts "
        "hosts.txt\n"
        "  paceline train --data data --model rnn --run run11 --workers auto --hosts hosts.txt\n"
        "  paceline train --data data --run run10 --mode local-sgd --workers 8 --hosts hosts.txt\n"
        "  paceline train --data data --model logreg --run run9 --profile 50   (where does the time go?)\n"
        "  paceline train --config run1/config.yaml --run run3 --lr 0.05   (as run1, but for the rate)",
    .tables = CLI_TABLE(pace_train_options),
    .add_tables = add_tables,
    .topic_option = "--model",
    .print_topic = print_topic,
    .config_bytes = sizeof(spoken),
    .result_bytes = sizeof(pace_train_result),
    .run = run,
    .print = print,
};
