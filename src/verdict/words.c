/* The numbers that prove a verdict, and one change that would help, as sentences. */
#include "verdict/verdict.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#define AMOUNT_TEXT 48
#define STEPS_LEFT  50 /* a model wants to be changed so often at least */

static double percent(double part_s, const pace__verdict *verdict)
{
    return verdict->all_s > 0 ? 100 * part_s / verdict->all_s : 0;
}

static double of_training(double part_s, const pace__verdict_facts *facts)
{
    return facts->seconds > 0 ? 100 * part_s / facts->seconds : 0;
}

static const char *rate(double bytes, double seconds, char text[AMOUNT_TEXT])
{
    double mb = seconds > 0 ? bytes / seconds * 1e-6 : 0;

    snprintf(text, AMOUNT_TEXT, mb < 10 ? "%.2g MB/s" : "%.0f MB/s", mb);
    return text;
}

/* "1.5 s", "12 s", "2,310 s" is for those who print tables: here, digits that can be read. */
static const char *time_of(double seconds, char text[AMOUNT_TEXT])
{
    snprintf(text, AMOUNT_TEXT, seconds < 10 ? "%.2g s" : "%.0f s", seconds);
    return text;
}

static size_t count_of(const pace__verdict_facts *facts, pace__role kind)
{
    size_t count = 0;

    for (size_t i = 0; i < facts->count; i++)
        count += facts->roles[i].kind == kind;
    return count;
}

/* "the worker waits", "4 workers wait": a verb as it is with many of them. */
static const char *workers(const pace__verdict_facts *facts, const char *verb, char text[AMOUNT_TEXT])
{
    size_t count = count_of(facts, PACE__WORKER);

    if (count == 1)
        snprintf(text, AMOUNT_TEXT, "the worker %ss", verb);
    else
        snprintf(text, AMOUNT_TEXT, "%zu workers %s", count, verb);
    return text;
}

/* Steps of `times` the size have as many fewer pauses between them. */
static double times_for(double pauses_s, double rest_s, double share)
{
    double times = 1;

    while (times < 1e6 && pauses_s / times > share * (rest_s + pauses_s / times))
        times *= 10;
    return times;
}

static double mean_compute_s(const pace__verdict_facts *facts)
{
    double sum_s = 0;

    for (size_t i = 0; i < facts->count; i++)
        sum_s += facts->roles[i].kind == PACE__WORKER ? facts->roles[i].compute_s : 0;
    return sum_s / (double)count_of(facts, PACE__WORKER);
}

/* What training would take without the cause. What follows the last step, the last scores mostly, stays as it is: whoever
 * compares this with the seconds of a summary has only those of training. */
static double training_s(const pace__verdict_facts *facts, const pace__verdict *verdict)
{
    return fmax(0, verdict->without_s - facts->after_s); /* which rounding may bring below */
}

/* --- each cause --- */

static void on_compute(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char who[AMOUNT_TEXT], time[AMOUNT_TEXT];
    double taken_s = verdict->taken_s[PACE__CAUSE_COMPUTE], crowded = pace__verdict_crowding(facts);

    if (crowded > 0.3) {
        snprintf(verdict->evidence, PACE__VERDICT_TEXT,
                 "%s for %.0f %% of the time; for %.0f %% no processor was free",
                 workers(facts, "compute", who), of_training(mean_compute_s(facts), facts), 100 * crowded);
        snprintf(verdict->advice, PACE__VERDICT_TEXT,
                 "processors are shared, with others of this job or with other programs: with enough of them "
                 "up to %s "
                 "less, on more machines, or with fewer --workers, --ps and --threads than there are "
                 "processors here",
                 time_of(fmin(taken_s, crowded * facts->seconds), time));
        return;
    }
    snprintf(verdict->evidence, PACE__VERDICT_TEXT, "%s for %.0f %% of the time",
             workers(facts, "compute", who), percent(taken_s, verdict));
    snprintf(verdict->advice, PACE__VERDICT_TEXT, "twice as many %s would bring training to about %s",
             count_of(facts, PACE__WORKER) > 1 ? "workers" : "threads or workers",
             time_of(training_s(facts, verdict) + taken_s / 2, time));
}

static void on_memory(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char who[AMOUNT_TEXT], time[AMOUNT_TEXT];
    double taken_s = verdict->taken_s[PACE__CAUSE_MEMORY];

    snprintf(
        verdict->evidence, PACE__VERDICT_TEXT,
        "%s for %.0f %% of the time in operations that move %.3g GB/s; a core can read %.3g GB/s from memory",
        workers(facts, "compute", who), percent(taken_s, verdict), facts->memory_gbytes_s,
        facts->peak_gbytes_s);
    snprintf(verdict->advice, PACE__VERDICT_TEXT,
             "twice as many machines, each with a memory of its own, would bring training to about %s; more "
             "threads "
             "would share this one",
             time_of(training_s(facts, verdict) + taken_s / 2, time));
}

static void on_data(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char who[AMOUNT_TEXT], from_disk[AMOUNT_TEXT], time[AMOUNT_TEXT];
    double read = 0;

    for (size_t i = 0; i < facts->count; i++)
        read += facts->roles[i].kind == PACE__WORKER ? facts->roles[i].read_bytes : 0;
    snprintf(verdict->evidence, PACE__VERDICT_TEXT, "%s for rows for %.0f %% of the time; %s come from disks",
             workers(facts, "wait", who), percent(verdict->taken_s[PACE__CAUSE_DATA], verdict),
             rate(read, facts->seconds, from_disk));
    snprintf(verdict->advice, PACE__VERDICT_TEXT,
             "a copy of the data set on a faster disk of each machine, or in memory, would bring training to "
             "about %s",
             time_of(training_s(facts, verdict), time));
}

static void on_network(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char who[AMOUNT_TEXT], sent[AMOUNT_TEXT], received[AMOUNT_TEXT], time[AMOUNT_TEXT];
    const pace__worked *link = &facts->roles[verdict->who];
    double taken_s = verdict->taken_s[PACE__CAUSE_NETWORK];

    snprintf(verdict->evidence, PACE__VERDICT_TEXT,
             "%s for bytes for %.0f %% of the time; %s sends %s and receives %s", workers(facts, "wait", who),
             percent(taken_s, verdict), link->name, rate(link->sent_bytes, facts->seconds, sent),
             rate(link->received_bytes, facts->seconds, received));
    if (facts->rounds)
        snprintf(verdict->advice, PACE__VERDICT_TEXT,
                 "what is merged grows slower than rows: fewer --workers, or more rows between flushes "
                 "(--exchange), cost less; a faster network would bring training to about %s",
                 time_of(training_s(facts, verdict), time));
    else if (link->kind == PACE__PS)
        snprintf(verdict->advice, PACE__VERDICT_TEXT,
                 "--ps %d on more machines would share the link of %s: down to about %s", 2 * facts->ps,
                 link->name, time_of(training_s(facts, verdict) + taken_s / 2, time));
    else
        snprintf(verdict->advice, PACE__VERDICT_TEXT,
                 "--batch %.0f instead of %.0f sends fewer bytes for each row: down to %s at the best",
                 10 * facts->batch, facts->batch, time_of(training_s(facts, verdict) + taken_s / 10, time));
}

/* ", and has no processor for 80 %"; nothing of one that has. */
static const char *starving(const pace__verdict_facts *facts, const pace__worked *role,
                            char text[AMOUNT_TEXT])
{
    double starved_s = pace__verdict_starved(facts, role);

    text[0] = '\0';
    if (starved_s > 0.05 * facts->seconds)
        snprintf(text, AMOUNT_TEXT, ", and has no processor for %.0f %%", of_training(starved_s, facts));
    return text;
}

static void on_server(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char who[AMOUNT_TEXT], time[AMOUNT_TEXT], held[AMOUNT_TEXT];
    const pace__worked *server = &facts->roles[verdict->who];
    double taken_s = verdict->taken_s[PACE__CAUSE_SERVER];

    snprintf(verdict->evidence, PACE__VERDICT_TEXT,
             "%s is busy for %.0f %% of the time%s, with %.1f requests at once; %s for %.0f %%", server->name,
             of_training(server->communicate_s, facts), starving(facts, server, held),
             server->looks > 0 ? server->requests / server->looks : 0, workers(facts, "wait", who),
             percent(taken_s, verdict));
    if (held[0])
        snprintf(verdict->advice, PACE__VERDICT_TEXT,
                 "a machine with a processor for %s, or --ps %d on more machines: down to about %s",
                 server->name, 2 * facts->ps, time_of(training_s(facts, verdict) + taken_s / 2, time));
    else
        snprintf(verdict->advice, PACE__VERDICT_TEXT,
                 "--ps %d would bring training to about %s, if there are processors for them", 2 * facts->ps,
                 time_of(training_s(facts, verdict) + taken_s / 2, time));
}

static void on_straggler(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char time[AMOUNT_TEXT], held[AMOUNT_TEXT];
    const pace__worked *slow = &facts->roles[verdict->who];
    double busy_s = slow->data_s + slow->compute_s + slow->communicate_s,
           others_s = busy_s + pace__verdict_starved(facts, slow) - verdict->taken_s[PACE__CAUSE_STRAGGLER];

    snprintf(verdict->evidence, PACE__VERDICT_TEXT,
             "%s is busy for %.0f %% of the time%s, the others for %.0f %%: they wait for it", slow->name,
             of_training(busy_s, facts), starving(facts, slow, held), of_training(others_s, facts));
    snprintf(verdict->advice, PACE__VERDICT_TEXT,
             "%swithout %s, or with --mode ps-async, where everyone takes what it can: about %s",
             facts->divides_evenly ? "--balance auto, which gives it fewer rows; " : "", slow->name,
             time_of(training_s(facts, verdict), time));
}

/* How long it was away is known to a second or two, since nobody says so. */
static void on_stall(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char away[AMOUNT_TEXT], time[AMOUNT_TEXT], change[PACE__VERDICT_TEXT / 2] = "";
    const pace__worked *role = &facts->roles[verdict->who];
    bool worker = role->kind == PACE__WORKER;

    snprintf(verdict->evidence, PACE__VERDICT_TEXT,
             "%s was away for about %s, and neither worked nor was heard of; %s %.0f %% of the time",
             role->name, time_of(role->away_s, away),
             facts->synchronous || !worker ? "the others waited for it:" : "its rows were missing:",
             percent(verdict->taken_s[PACE__CAUSE_STALL], verdict));
    if (worker && facts->can_back_up)
        snprintf(change, sizeof change,
                 "--backup-workers %d, so that others compute what it does not bring in time; ",
                 facts->backups + 1);
    else if (worker && facts->synchronous && !facts->rounds)
        snprintf(change, sizeof change,
                 "--mode ps-sync with --ps and --backup-workers 1, so that others "
                 "compute what it does not bring in time; ");
    snprintf(
        verdict->advice, PACE__VERDICT_TEXT,
        "%s%slook what stops it on its host, like a disk, swapping or another program; without, about %s",
        change, change[0] ? "or " : "", time_of(training_s(facts, verdict), time));
}

/* Of workers that merge: rounds are short while few rows were seen. Those of networks soon have as many rows as was asked for. */
static void on_rounds(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char who[AMOUNT_TEXT], time[AMOUNT_TEXT];

    snprintf(verdict->evidence, PACE__VERDICT_TEXT,
             "%s for others, or merge with them, for %.0f %% of the time", workers(facts, "wait", who),
             percent(verdict->taken_s[PACE__CAUSE_STEPS], verdict));
    if (facts->averages) {
        snprintf(verdict->advice, PACE__VERDICT_TEXT,
                 "a larger --exchange: networks are averaged less often, and may learn less from a row; "
                 "without waiting, about %s",
                 time_of(training_s(facts, verdict), time));
        return;
    }
    snprintf(verdict->advice, PACE__VERDICT_TEXT,
             "fewer --workers: rounds are short while few rows were seen, and the more workers, the more "
             "rows that takes; without waiting, about %s",
             time_of(training_s(facts, verdict), time));
}

static void on_steps(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char who[AMOUNT_TEXT];
    double taken_s = verdict->taken_s[PACE__CAUSE_STEPS], times = times_for(taken_s, verdict->without_s, 0.2);

    if (facts->rounds) {
        on_rounds(facts, verdict);
        return;
    }
    while (times > 10 && facts->steps / times < STEPS_LEFT)
        times /= 10;
    double then_s = verdict->without_s + taken_s / times;

    snprintf(verdict->evidence, PACE__VERDICT_TEXT,
             "%s for others, or exchange with them, for %.0f %% of the time: %.2g ms in each of %.0f steps "
             "of %.0f "
             "rows",
             workers(facts, "wait", who), percent(taken_s, verdict),
             facts->steps > 0 ? 1e3 * taken_s / facts->steps : 0, facts->steps, facts->batch);
    snprintf(verdict->advice, PACE__VERDICT_TEXT,
             "--batch %.0f instead of %.0f would cut waiting from %.0f %% to about %.0f %%; fewer, larger "
             "steps may want "
             "a larger --lr",
             times * facts->batch, facts->batch, percent(taken_s, verdict),
             then_s > 0 ? 100 * taken_s / times / then_s : 0);
}

static void on_checkpoint(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    double taken_s = verdict->taken_s[PACE__CAUSE_CHECKPOINT],
           times = times_for(taken_s, verdict->without_s, 0.05);

    snprintf(verdict->evidence, PACE__VERDICT_TEXT,
             "training stands still for %.0f %% of the time, while %.0f checkpoints are made",
             percent(taken_s, verdict), facts->checkpoints);
    snprintf(verdict->advice, PACE__VERDICT_TEXT, "%s %.0f times as large would leave about %.0f %%",
             facts->keeps_best ? "--eval-every (each evaluation that is the best so far is saved)"
                               : "--checkpoint-every (or --checkpoint-seconds)",
             times, 100 * taken_s / times / (verdict->without_s + taken_s / times));
}

/* What is scored on the way may be validation rows; the last scores are of all of them, and of all test rows. An
 * evaluator chooses nothing. */
static void on_scoring(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    char time[AMOUNT_TEXT];
    double taken_s = verdict->taken_s[PACE__CAUSE_SCORING], behind = facts->after_s / taken_s;
    bool may_add = !facts->has_evaluator && !facts->chooses;

    snprintf(
        verdict->evidence, PACE__VERDICT_TEXT,
        "%.0f %% of the time goes to scoring rows, and to what else ends a run; %.0f %% of that behind the "
        "last step",
        percent(taken_s, verdict), 100 * behind);
    if (behind > 0.5)
        snprintf(verdict->advice, PACE__VERDICT_TEXT,
                 "fewer rows to score, or a longer training: without, about %s",
                 time_of(verdict->without_s, time));
    else
        snprintf(verdict->advice, PACE__VERDICT_TEXT, "%s would bring it to about %s",
                 may_add ? "a larger --eval-every, fewer --eval-rows, or an --evaluator"
                         : "a larger --eval-every, or fewer --eval-rows,",
                 time_of(verdict->without_s, time));
}

void pace__verdict_words(const pace__verdict_facts *facts, pace__verdict *verdict)
{
    static void (*const words[PACE__CAUSES])(const pace__verdict_facts *, pace__verdict *) = {
        [PACE__CAUSE_COMPUTE] = on_compute,
        [PACE__CAUSE_MEMORY] = on_memory,
        [PACE__CAUSE_DATA] = on_data,
        [PACE__CAUSE_NETWORK] = on_network,
        [PACE__CAUSE_SERVER] = on_server,
        [PACE__CAUSE_STRAGGLER] = on_straggler,
        [PACE__CAUSE_STALL] = on_stall,
        [PACE__CAUSE_STEPS] = on_steps,
        [PACE__CAUSE_CHECKPOINT] = on_checkpoint,
        [PACE__CAUSE_SCORING] = on_scoring,
    };

    assert(verdict->cause != PACE__CAUSE_NONE && words[verdict->cause]);
    words[verdict->cause](facts, verdict);
}
