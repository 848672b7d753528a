/* cmd_plan.c - paceline plan */
#include "cli.h"
#include "print.h"

#include <math.h>
#include <paceline/plan.h>
#include <stdlib.h>

/* Else it starts processes, to make a run or to measure the network: nothing of them must stay behind when nobody reads what is
 * said. */
static bool only_prints(const void *config)
{
    const pace_plan_config *plan = config;

    return plan->runs.count > 0 && !plan->hosts && !plan->ping;
}

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_plan_config *plan = config;

    if (words->count && !plan->check)
        return pace_fail(&cli->log, PACE_USAGE,
                         "%s: runs are named behind --run, or behind --check to compare with",
                         words->items[0]);
    plan->words = *words;
    if (!only_prints(plan))
        plan->stop = cli_stop_on_signals(cli, &cli_stop_nothing_kept, CLI_STOP_S);
    if (plan->ping)
        return pace_plan_ping(plan, &cli->log, cli->registry, result);
    return pace_plan(plan, &cli->log, result);
}

/* --- as JSON --- */

static void add_number(cJSON *object, const char *name, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

static cJSON *network_object(const pace_plan_network *of)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddNumberToObject(object, "bytes_per_second", of->bytes_per_second);
    cJSON_AddStringToObject(object, "bytes_by", of->bytes_by);
    cJSON_AddNumberToObject(object, "latency_seconds", of->latency_s);
    cJSON_AddStringToObject(object, "latency_by", of->latency_by);
    return object;
}

static cJSON *prediction_object(const pace_plan_prediction *of)
{
    cJSON *object = cJSON_CreateObject(), *memory = cJSON_AddObjectToObject(object, "memory_bytes");

    cJSON_AddStringToObject(object, "mode", of->mode);
    cJSON_AddNumberToObject(object, "workers", of->workers);
    cJSON_AddNumberToObject(object, "ps", of->ps);
    cJSON_AddNumberToObject(object, "batch", (double)of->batch);
    add_number(object, "samples_per_second", of->samples_per_second);
    add_number(object, "samples_per_second_low", of->low);
    add_number(object, "samples_per_second_high", of->high);
    add_number(object, "step_seconds", of->step_s);
    add_number(object, "epoch_seconds", of->epoch_s);
    add_number(object, "seconds", of->seconds);
    if (isfinite(of->epochs))
        add_number(object, "epochs_to_loss", of->epochs);
    add_number(object, "efficiency", of->efficiency);
    add_number(object, "worker_link_bytes_per_second", of->worker_link_bytes_s);
    add_number(object, "server_link_bytes_per_second", of->server_link_bytes_s);
    cJSON_AddStringToObject(object, "bottleneck", of->bottleneck);
    add_number(object, "cost", of->cost >= 0 ? of->cost : NAN);
    add_number(memory, "chief", of->chief_bytes);
    add_number(memory, "worker", of->worker_bytes);
    add_number(memory, "ps", of->server_bytes);
    return object;
}

static void add_choice(cJSON *object, const char *name, const pace_plan_result *plan, int place,
                       const char *why, const char *command)
{
    if (place < 0) {
        cJSON_AddNullToObject(object, name);
        return;
    }
    cJSON *taken = prediction_object(&plan->predictions[place]);

    cJSON_AddStringToObject(taken, "why", why);
    cJSON_AddStringToObject(taken, "command", command);
    cJSON_AddItemToObject(object, name, taken);
}

static void add_recommended(cJSON *object, const pace_plan_result *plan)
{
    add_choice(object, "recommended", plan, plan->recommended, plan->why, plan->command);
    add_choice(object, "fastest", plan, plan->fastest, "fastest", plan->fastest_command);
    add_choice(object, "cheapest", plan, plan->cheapest, "cheapest", plan->cheapest_command);
    if (plan->currency[0])
        cJSON_AddStringToObject(object, "currency", plan->currency);
}

static void add_checks(cJSON *object, const pace_plan_result *plan)
{
    cJSON *list = cJSON_AddArrayToObject(object, "checks");

    for (size_t i = 0; i < plan->check_count; i++) {
        const pace_plan_check *of = &plan->checks[i];
        cJSON *item = prediction_object(&of->predicted);

        cJSON_AddStringToObject(item, "run", of->run);
        add_number(item, "measured_samples_per_second", of->measured);
        add_number(item, "error", of->error);
        cJSON_AddStringToObject(item, "measured_bottleneck", of->bottleneck);
        cJSON_AddItemToArray(list, item);
    }
    add_number(object, "median_error", plan->median_error);
    add_number(object, "worst_error", plan->worst_error);
}

static pace_status print_object(const cli_context *cli, const pace_plan_config *config,
                                const pace_plan_result *plan)
{
    cJSON *object = cJSON_CreateObject(), *list;

    cJSON_AddItemToObject(object, "network", network_object(&plan->network));
    if (config->ping)
        return cli_print_json(object, &cli->log);
    list = cJSON_AddArrayToObject(object, "predictions");
    for (size_t i = 0; i < plan->count; i++)
        cJSON_AddItemToArray(list, prediction_object(&plan->predictions[i]));
    add_recommended(object, plan);
    if (isfinite(plan->loss))
        cJSON_AddNumberToObject(object, "loss", plan->loss);
    if (config->check)
        add_checks(object, plan);
    return cli_print_json(object, &cli->log);
}

/* --- as tables --- */

static const char *percent(double share, char text[CLI_TEXT_MAX])
{
    snprintf(text, CLI_TEXT_MAX, "%.0f %%", 100 * share);
    return text;
}

static const char *cost_text(const pace_plan_prediction *of, const char *currency, char text[CLI_TEXT_MAX])
{
    snprintf(text, CLI_TEXT_MAX, "%.*f %s", of->cost < 10 ? 4 : 2, of->cost, currency);
    return text;
}

/* With --mtbf, a job may lose more than it trains; with --converge, nobody may have measured it. */
static const char *time_text(double seconds, char text[CLI_TEXT_MAX])
{
    return isnan(seconds) ? "-" : isfinite(seconds) ? cli_seconds_text(seconds, text) : "never";
}

/* The fuller direction of the fullest link. */
static double link_bytes_s(const pace_plan_prediction *of)
{
    return fmax(of->worker_link_bytes_s, of->server_link_bytes_s);
}

static double most_memory(const pace_plan_prediction *of)
{
    return fmax(of->chief_bytes, fmax(of->worker_bytes, of->server_bytes));
}

#define BOUND_BY_WIDTH 11 /* where a price follows */

static void print_line(const pace_plan_prediction *of, const char *mark, const char *currency)
{
    char rate[CLI_TEXT_MAX], epoch[CLI_TEXT_MAX], all[CLI_TEXT_MAX], link[CLI_TEXT_MAX], memory[CLI_TEXT_MAX],
        efficiency[CLI_TEXT_MAX], cost[CLI_TEXT_MAX] = "", batch[CLI_TEXT_MAX], bytes[CLI_TEXT_MAX];

    snprintf(link, sizeof link, "%s/s", cli_bytes_text(link_bytes_s(of), bytes));
    if (of->cost >= 0 && isfinite(of->cost))
        cost_text(of, currency, cost);
    printf("%-1s %-9s %7d %3d %10s %9s %10s %10s %6s %12s %10s %-*s%s\n", mark, of->mode, of->workers, of->ps,
           cli_count_text(of->batch, batch), cli_short_text(of->samples_per_second, rate),
           cli_seconds_text(of->epoch_s, epoch), time_text(of->seconds, all),
           percent(of->efficiency, efficiency), link, cli_bytes_text(most_memory(of), memory),
           *cost ? BOUND_BY_WIDTH : 0, of->bottleneck, cost);
}

static void print_table(const pace_plan_result *plan)
{
    char all[CLI_TEXT_MAX] = "all";

    if (isfinite(plan->loss))
        snprintf(all, sizeof all, "to %.4g", plan->loss);
    printf("  %-9s %7s %3s %10s %9s %10s %10s %6s %12s %10s %-*s%s\n", "mode", "workers", "ps", "batch",
           "rows/s", "epoch", all, "eff.", "link", "memory", plan->cheapest >= 0 ? BOUND_BY_WIDTH : 0,
           "bound by", plan->cheapest >= 0 ? "cost" : "");
    for (size_t i = 0; i < plan->count; i++)
        print_line(&plan->predictions[i], (int)i == plan->recommended ? ">" : "", plan->currency);
    if (plan->recommended < 0)
        return;
    putchar('\n');
    if (plan->fastest != plan->recommended)
        printf("fastest: %s\n", plan->fastest_command);
    if (plan->cheapest >= 0 && plan->cheapest != plan->recommended)
        printf("cheapest: %s\n", plan->cheapest_command);
    printf("%s: %s\n", plan->why, plan->command);
}

static void print_checks(const pace_plan_result *plan)
{
    char predicted[CLI_TEXT_MAX], measured[CLI_TEXT_MAX];

    printf("%-9s %7s %3s %8s %10s %10s %7s %-10s %-10s %s\n", "mode", "workers", "ps", "batch", "predicted",
           "measured", "error", "bound by", "it was", "run");
    for (size_t i = 0; i < plan->check_count; i++) {
        const pace_plan_check *of = &plan->checks[i];

        printf("%-9s %7d %3d %8llu %10s %10s %+6.1f%% %-10s %-10s ", of->predicted.mode,
               of->predicted.workers, of->predicted.ps, (unsigned long long)of->predicted.batch,
               cli_short_text(of->predicted.samples_per_second, predicted),
               cli_short_text(of->measured, measured), 100 * of->error, of->predicted.bottleneck,
               of->bottleneck);
        cli_print_plain(stdout, of->run);
        putchar('\n');
    }
    printf("error: median %.1f %%, worst %.1f %%\n", 100 * plan->median_error, 100 * plan->worst_error);
}

static void print_network(const pace_plan_network *of)
{
    cli_print_row(stdout, "speed of a link", "%.3g Gbit/s", of->bytes_per_second * 8e-9);
    cli_print_row(stdout, "latency", "%.3g us", of->latency_s * 1e6);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const pace_plan_config *options = config;
    pace_plan_result *plan = result;
    pace_status status = PACE_OK;

    if (plan->elsewhere) /* rank 0 prints */
        return PACE_OK;
    if (cli->json)
        status = print_object(cli, options, plan);
    else if (options->ping)
        print_network(&plan->network);
    else if (options->check)
        print_checks(plan);
    else
        print_table(plan);
    pace_plan_release(plan);
    return status;
}

const cli_verb cli_plan = {
    .name = "plan",
    .arguments = "--run DIR [options]",
    .summary = "predict time and cost of a job with other workers, servers, batches and modes",
    .manual =
        "Predicts from a run that was measured, of some seconds on one machine, how fast the same job would\n"
        "be otherwise: rows a second, time of an epoch and of all that the run trains, load of the fullest\n"
        "link, memory of the largest process, what it would be bound by, and with --price what it costs.\n"
        "What is recommended (>) is printed as a command. Asynchronous modes and local-sgd, whose models\n"
        "differ, are recommended only if --mode names them.\n"
        "\n"
        "eff.: over as many processes, each with as many threads, that train in mode local by themselves.\n"
        "With --hosts, processes on some of these machines exchange messages for a second: so fast is the\n"
        "network.\n"
        "Rows are what is predicted, not what is learned from them: a larger batch may need more, which\n"
        "--converge takes from a study. --check compares with runs that were made;\n"
        "docs/scaling.md has the formulas.\n"
        "\n"
        "Examples:\n"
        "  paceline plan --run run1 --workers 1,2,4,8,16 --net 10gbit --latency 30us\n"
        "  paceline plan --run run1 --hosts hosts.txt   (on these machines; their network is measured)\n"
        "  paceline plan --ping --hosts hosts.txt       (how fast is it?)\n"
        "  paceline plan --run run1 --mode allreduce,ps-async --batch 1k,10k --price 0.35EUR --within 3600\n"
        "  paceline plan --run run1 --converge converge --batch 100,1000,10000   (time to a loss)\n"
        "  paceline plan --run run1 --check run2 run3 run4",
    .takes_words = true,
    .tables = CLI_TABLE(pace_plan_options),
    .config_bytes = sizeof(pace_plan_config),
    .result_bytes = sizeof(pace_plan_result),
    .only_prints = only_prints,
    .run = run,
    .print = print,
};
