#include "verdict/verdict.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

/* A worker is a straggler if it is busy for so many times as long as the others on average. */
#define STRAGGLES 1.25
/* A role has too little of a processor, and not the whole job, if it waits for one so many times as long as the others. */
#define STARVES 2.0
/* Bytes to a server and back that take longer than what a message takes in any case, on any network that is worth it. */
#define LARGE_EXCHANGE_BYTES 16384.0

const char *pace__cause_name(pace__cause cause)
{
    static const char *const names[PACE__CAUSES] = {
        [PACE__CAUSE_NONE] = "",
        [PACE__CAUSE_COMPUTE] = "compute",
        [PACE__CAUSE_MEMORY] = "memory",
        [PACE__CAUSE_DATA] = "data",
        [PACE__CAUSE_NETWORK] = "network",
        [PACE__CAUSE_SERVER] = "server",
        [PACE__CAUSE_STRAGGLER] = "straggler",
        [PACE__CAUSE_STALL] = "stall",
        [PACE__CAUSE_STEPS] = "steps",
        [PACE__CAUSE_CHECKPOINT] = "checkpoint",
        [PACE__CAUSE_SCORING] = "scoring",
    };

    return names[cause];
}

/* --- workers --- */

/* Of each of its threads. */
static double delay_of(const pace__verdict_facts *facts, const pace__worked *role)
{
    return role->delay_s / (role->kind == PACE__WORKER && facts->threads > 1 ? facts->threads : 1);
}

double pace__verdict_starved(const pace__verdict_facts *facts, const pace__worked *role)
{
    double others_s = 0, at_work_s = role->data_s + role->compute_s + role->communicate_s + role->still_s;
    size_t others = 0;

    for (size_t i = 0; i < facts->count; i++) {
        if (&facts->roles[i] != role && facts->roles[i].kind != PACE__EVALUATOR && facts->roles[i].is_known) {
            others++;
            others_s += delay_of(facts, &facts->roles[i]);
        }
    }
    if (others == 0)
        return 0; /* alone, it is crowding */
    double beyond_s = delay_of(facts, role) - STARVES * others_s / (double)others,
           waits_s = fmax(0, facts->seconds - at_work_s);

    /* Of a delay, what is in its work is counted there. */
    return fmax(0, fmin(waits_s, beyond_s * waits_s / facts->seconds));
}

/* Whoever waits for it waits for all of that. */
static double busy_of(const pace__verdict_facts *facts, const pace__worked *role)
{
    return role->data_s + role->compute_s + role->communicate_s + pace__verdict_starved(facts, role);
}

/* What workers did, on average. Of a straggler's job: what all the others did. */
typedef struct mean_worker {
    size_t workers;
    double data_s, compute_s, communicate_s, busy_s, cpu_s;
    double exchanges, exchange_bytes;
    int straggler;       /* a role; -1: none */
    double straggling_s; /* that it is busy longer than they are */
} mean_worker;

static bool counts(const pace__verdict_facts *facts, size_t index, int but)
{
    return facts->roles[index].kind == PACE__WORKER && (int)index != but;
}

static mean_worker mean_of(const pace__verdict_facts *facts, int but)
{
    mean_worker mean = {.straggler = -1};

    for (size_t i = 0; i < facts->count; i++) {
        const pace__worked *role = &facts->roles[i];

        if (!counts(facts, i, but))
            continue;
        mean.workers++;
        mean.data_s += role->data_s;
        mean.compute_s += role->compute_s;
        mean.communicate_s += role->communicate_s;
        mean.cpu_s += role->cpu_s;
        mean.exchanges += role->messages / 2; /* there and back */
        mean.exchange_bytes += role->sent_bytes + role->received_bytes;
    }
    if (mean.workers > 0) {
        mean.data_s /= (double)mean.workers;
        mean.compute_s /= (double)mean.workers;
        mean.communicate_s /= (double)mean.workers;
        mean.cpu_s /= (double)mean.workers;
    }
    mean.busy_s = mean.data_s + mean.compute_s + mean.communicate_s;
    return mean;
}

static int slowest_of(const pace__verdict_facts *facts)
{
    int slowest = -1;

    for (size_t i = 0; i < facts->count; i++) {
        if (counts(facts, i, -1) &&
            (slowest < 0 || busy_of(facts, &facts->roles[i]) > busy_of(facts, &facts->roles[slowest])))
            slowest = (int)i;
    }
    return slowest;
}

static mean_worker usual_worker(const pace__verdict_facts *facts)
{
    mean_worker all = mean_of(facts, -1);

    if (!facts->synchronous || all.workers < 2 || facts->backups > 0) /* who is late is not waited for */
        return all;
    int slowest = slowest_of(facts);
    mean_worker others = mean_of(facts, slowest);
    double slowest_s = busy_of(facts, &facts->roles[slowest]);

    if (slowest_s <= STRAGGLES * others.busy_s)
        return all;
    others.workers = all.workers;
    others.straggler = slowest;
    others.straggling_s = slowest_s - others.busy_s;
    return others;
}

/* The server that is busy longest; -1: there is none. A server's time with requests is what it communicates. */
static int busiest_server(const pace__verdict_facts *facts)
{
    int busiest = -1;

    for (size_t i = 0; i < facts->count; i++) {
        if (facts->roles[i].kind == PACE__PS &&
            (busiest < 0 || busy_of(facts, &facts->roles[i]) > busy_of(facts, &facts->roles[busiest])))
            busiest = (int)i;
    }
    return busiest;
}

double pace__verdict_crowding(const pace__verdict_facts *facts)
{
    double delay_s = 0;
    size_t workers = 0;

    for (size_t i = 0; i < facts->count; i++) {
        if (counts(facts, i, -1)) {
            workers++;
            delay_s += delay_of(facts, &facts->roles[i]);
        }
    }
    return workers ? fmin(1, delay_s / (facts->seconds * (double)workers)) : 0;
}

/* --- who was away --- */

/* Of that kind, whoever was away longest, but for so many others; -1: nobody was. */
static int longest_away(const pace__verdict_facts *facts, pace__role kind, int but)
{
    int found = -1, longer = 0;

    for (size_t i = 0; i < facts->count && found < 0; i++) {
        double away_s = facts->roles[i].away_s;

        if (facts->roles[i].kind != kind || away_s <= 0)
            continue;
        longer = 0;
        for (size_t j = 0; j < facts->count; j++)
            longer += facts->roles[j].kind == kind &&
                      (facts->roles[j].away_s > away_s || (facts->roles[j].away_s == away_s && j < i));
        if (longer == but)
            found = (int)i;
    }
    return found;
}

/* What the job was held up by whoever was away; *who is that. In a step all wait for a worker, unless others have its slice.
 * Elsewhere only its own time is gone. Everyone needs a server. */
static double held_up_s(const pace__verdict_facts *facts, size_t workers, int *who)
{
    int worker = longest_away(facts, PACE__WORKER, facts->backups), server = longest_away(facts, PACE__PS, 0);
    double worker_s = worker < 0 ? 0 : facts->roles[worker].away_s,
           server_s = server < 0 ? 0 : facts->roles[server].away_s;

    if (!facts->synchronous)
        worker_s /= (double)workers;
    *who = server_s > worker_s ? server : worker;
    return fmax(worker_s, server_s);
}

/* The role whose link has the most to carry; -1: nothing goes from host to host. */
static int busiest_link(const pace__verdict_facts *facts)
{
    double most = 0;
    int found = -1;

    for (size_t i = 0; i < facts->count; i++) {
        double bytes = fmax(facts->roles[i].sent_bytes, facts->roles[i].received_bytes);

        if (bytes > most) {
            most = bytes;
            found = (int)i;
        }
    }
    return found;
}

static bool is_large(const mean_worker *mean)
{
    return mean->exchanges > 0 && mean->exchange_bytes / mean->exchanges >= LARGE_EXCHANGE_BYTES;
}

/* --- seconds to causes --- */

static double take(double *left_s, double wanted_s)
{
    double taken_s = fmax(0, fmin(*left_s, wanted_s));

    *left_s -= taken_s;
    return taken_s;
}

/* How much of what a worker uses of processors is for its rows; the rest is for messages. */
static double computing(const pace__verdict_facts *facts, const mean_worker *mean)
{
    double rows_s = (mean->data_s + mean->compute_s) * (facts->threads > 1 ? facts->threads : 1);

    return mean->cpu_s > 0 ? fmin(1, rows_s / mean->cpu_s) : 1;
}

/* Invariant 1: each takes from what those before it have left. */
static void give_seconds(const pace__verdict_facts *facts, const mean_worker *mean, pace__verdict *verdict)
{
    double left_s = facts->seconds, *taken_s = verdict->taken_s, still_s = 0;
    int server = busiest_server(facts), away;

    for (size_t i = 0; i < facts->count; i++)
        still_s = fmax(still_s, facts->roles[i].still_s);
    taken_s[PACE__CAUSE_CHECKPOINT] = take(&left_s, facts->checkpoint_s);
    taken_s[PACE__CAUSE_SCORING] = take(&left_s, still_s - facts->checkpoint_s) + facts->after_s;
    taken_s[PACE__CAUSE_DATA] = take(&left_s, mean->data_s);
    taken_s[PACE__CAUSE_MEMORY] = take(&left_s, mean->compute_s * facts->memory_share);
    taken_s[PACE__CAUSE_COMPUTE] = take(&left_s, mean->compute_s * (1 - facts->memory_share));
    taken_s[PACE__CAUSE_STRAGGLER] = take(&left_s, mean->straggling_s);
    taken_s[PACE__CAUSE_STALL] = take(&left_s, held_up_s(facts, mean->workers, &away));
    if (server >= 0)
        taken_s[PACE__CAUSE_SERVER] = take(&left_s, busy_of(facts, &facts->roles[server]));
    /* Who waits for others waits as long as those have no processor: for computing, if that is what they use it for. */
    taken_s[PACE__CAUSE_COMPUTE] +=
        take(&left_s, left_s * pace__verdict_crowding(facts) * computing(facts, mean));
    /* Alone, there is nobody to wait for: what is left is what was not measured. */
    pace__cause rest = mean->workers + (server >= 0) < 2            ? PACE__CAUSE_COMPUTE
                       : busiest_link(facts) >= 0 && is_large(mean) ? PACE__CAUSE_NETWORK
                                                                    : PACE__CAUSE_STEPS;

    taken_s[rest] += left_s;
}

static int who_of(const pace__verdict_facts *facts, const mean_worker *mean, pace__cause cause)
{
    int away;

    switch (cause) {
    case PACE__CAUSE_STRAGGLER:
        return mean->straggler;
    case PACE__CAUSE_STALL:
        held_up_s(facts, mean->workers, &away);
        return away;
    case PACE__CAUSE_SERVER:
        return busiest_server(facts);
    case PACE__CAUSE_NETWORK:
        return busiest_link(facts);
    default:
        return -1;
    }
}

pace__verdict pace__verdict_of(const pace__verdict_facts *facts)
{
    pace__verdict verdict = {.who = -1};
    mean_worker mean = usual_worker(facts);

    if (mean.workers == 0 || !(facts->seconds >= PACE__VERDICT_SECONDS_MIN))
        return verdict;
    give_seconds(facts, &mean, &verdict);
    for (pace__cause cause = PACE__CAUSE_NONE + 1; cause < PACE__CAUSES; cause++) {
        verdict.all_s += verdict.taken_s[cause];
        if (verdict.taken_s[cause] > verdict.taken_s[verdict.cause])
            verdict.cause = cause;
    }
    assert(fabs(verdict.all_s - facts->seconds - facts->after_s) <= 1e-6 * (1 + verdict.all_s));
    verdict.who = who_of(facts, &mean, verdict.cause);
    verdict.without_s = verdict.all_s - verdict.taken_s[verdict.cause];
    pace__verdict_words(facts, &verdict);
    return verdict;
}

void pace__verdict_line(const pace__verdict *verdict, char text[2 * PACE__VERDICT_TEXT])
{
    text[0] = '\0';
    if (verdict->cause != PACE__CAUSE_NONE)
        snprintf(text, 2 * PACE__VERDICT_TEXT, "%s: %s", pace__cause_name(verdict->cause), verdict->evidence);
}
