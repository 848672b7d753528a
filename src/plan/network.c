#include "plan/network.h"

#include "base/kept.h"
#include "launch/launch.h"
#include "net/link.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A link that has less than so much of the usual one's is named. */
#define MUCH_SLOWER 0.5

/* --- what came back --- */

void pace__echo_emit(const pace__echo *echo, pace_registry *registry)
{
    pace_field fields[] = {PACE_INT("peer", echo->peer), PACE_REAL("small_s", echo->small_s),
                           PACE_INT("large_bytes", echo->large_bytes), PACE_REAL("large_s", echo->large_s)};

    pace_registry_emit(registry, "ping", fields, sizeof fields / sizeof *fields);
}

static int64_t integer_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field && field->type == PACE_FIELD_INT ? field->value.integer : -1;
}

static double real_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field && field->type == PACE_FIELD_REAL ? field->value.real : NAN;
}

bool pace__echo_from(const pace_record *record, pace__echo *echo)
{
    int64_t peer = integer_of(record, "peer"), bytes = integer_of(record, "large_bytes");
    pace__echo read = {(int)peer, real_of(record, "small_s"), (uint64_t)bytes, real_of(record, "large_s")};

    if (strcmp(record->kind, "ping") != 0 || peer < 1 || peer >= PACE__PING_HOSTS_MAX || bytes < 1 ||
        !(read.small_s > 0 && isfinite(read.small_s)) || !(read.large_s > 0 && isfinite(read.large_s)))
        return false;
    *echo = read;
    return true;
}

/* --- what it means --- */

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

double pace__usual_trip(double *seconds, size_t count)
{
    qsort(seconds, count, sizeof *seconds, by_size);
    return seconds[count / 4];
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static double bytes_s_of(const pace__echo *echo)
{
    return 2 * (double)echo->large_bytes / (echo->large_s - echo->small_s);
}

bool pace__network_of(const pace__echo *echoes, size_t count, pace__network *network)
{
    double bytes_s[PACE__PING_HOSTS_MAX], latency_s[PACE__PING_HOSTS_MAX];
    pace__network made = {.slowest_bytes_s = INFINITY};

    for (size_t i = 0; i < count && made.links < PACE__PING_HOSTS_MAX; i++) {
        const pace__echo *echo = &echoes[i];

        if (!(echo->large_s > echo->small_s))
            continue;
        bytes_s[made.links] = bytes_s_of(echo);
        latency_s[made.links] = echo->small_s / 2;
        if (bytes_s[made.links] < made.slowest_bytes_s) {
            made.slowest = echo->peer;
            made.slowest_bytes_s = bytes_s[made.links];
        }
        made.links++;
    }
    if (made.links == 0)
        return false;
    made.link_bytes_s = median(bytes_s, (size_t)made.links);
    made.latency_s = median(latency_s, (size_t)made.links);
    *network = made;
    return true;
}

const char *pace__network_words(const pace__machine *machine, const pace__given *given,
                                char text[PACE__NETWORK_TEXT])
{
    double gbit_s = machine->link_bytes_s * 8e-9, latency_us = machine->latency_s * 1e6;
    const char *link_by = pace__known_names[given->link_by],
               *latency_by = pace__known_names[given->latency_by];

    if (given->link_by == given->latency_by)
        snprintf(text, PACE__NETWORK_TEXT, "%.3g Gbit/s and %.3g us between machines (%s)", gbit_s,
                 latency_us, link_by);
    else
        snprintf(text, PACE__NETWORK_TEXT, "%.3g Gbit/s (%s) and %.3g us (%s) between machines", gbit_s,
                 link_by, latency_us, latency_by);
    return text;
}

/* --- asking the hosts --- */

typedef struct asking {
    const pace__network_plan *plan;
    pace__host *hosts;
    size_t host_count;
    int host_of[PACE__PING_HOSTS_MAX]; /* by rank */
    int ranks;
    pace__echo echoes[PACE__PING_HOSTS_MAX];
    size_t count;
} asking;

static void take_record(void *user, const pace_record *record)
{
    asking *self = user;

    if (self->count < PACE__PING_HOSTS_MAX && pace__echo_from(record, &self->echoes[self->count]))
        self->count++;
}

/* From the first to the last of them. */
static void choose_hosts(asking *self)
{
    self->ranks = self->host_count < PACE__PING_HOSTS_MAX ? (int)self->host_count : PACE__PING_HOSTS_MAX;
    for (int i = 0; i < self->ranks; i++)
        self->host_of[i] = (int)((size_t)i * (self->host_count - 1) / (size_t)(self->ranks - 1));
}

/* "paceline plan --ping" */
static pace_status make_words(const pace_log *log, char ***words)
{
    static const pace_option said[] = {{"ping", .kind = PACE_OPT_FLAG, .fallback = "false"}, {0}};
    bool pings = true;

    return pace__launch_words("plan", PACE_PARTS(said, &pings), NULL, log, words);
}

static pace_status start(asking *self, const pace_log *log)
{
    pace__launch_plan plan = {.cluster = {.workers = self->ranks},
                              .placed = self->hosts,
                              .host_of = self->host_of,
                              .launcher = self->plan->launcher,
                              .first_contact_s = PACE__PING_START_S,
                              .stop = self->plan->stop};
    pace_registry *registry = pace_registry_create();
    pace_sink sink = {take_record, self};
    char **words = NULL;
    pace_status status = registry ? make_words(log, &words) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        plan.words = words;
        pace_registry_attach(registry, &sink);
        status = pace__launch(&plan, log, registry);
        pace_registry_detach(registry, &sink);
    }
    pace_options_free_words(words);
    pace_registry_free(registry);
    return self->plan->stop && *self->plan->stop ? PACE_INTERRUPTED : status;
}

static void name_slow_link(const asking *self, const pace__network *network, const pace_log *log)
{
    if (network->slowest_bytes_s < MUCH_SLOWER * network->link_bytes_s)
        pace_say(log, PACE_WARN,
                 "between %s and %s: %.3g Gbit/s, of %d links half have %.3g: all are taken to be alike",
                 self->hosts[self->host_of[0]].name, self->hosts[self->host_of[network->slowest]].name,
                 network->slowest_bytes_s * 8e-9, network->links, network->link_bytes_s * 8e-9);
}

static pace_status ask(asking *self, const pace_log *log, pace__network *network)
{
    if (self->host_count < 2)
        return pace_fail(log, PACE_USAGE, "%s: one host has no network to others", self->plan->hosts);
    choose_hosts(self);
    pace_status status = start(self, log);

    if (!status && !pace__network_of(self->echoes, self->count, network))
        status = pace_fail(log, PACE_FAILED, "no message between hosts came back in a time that can be");
    if (!status)
        name_slow_link(self, network, log);
    return status;
}

pace_status pace__network_measure(const pace__network_plan *plan, const pace_log *log, pace__network *network)
{
    asking self = {.plan = plan};
    pace_status status = pace__hosts_read(plan->hosts, log, &self.hosts, &self.host_count);

    if (status)
        return status;
    status = ask(&self, log, network);
    free(self.hosts);
    return status;
}

/* --- for a plan --- */

/* Errors are kept, for a warning. */
typedef struct hearing {
    const pace_log *to;
    pace__kept kept;
    char why[PACE_LOG_TEXT_MAX];
} hearing;

static void hear(void *user, pace_level level, const char *text)
{
    hearing *self = user;

    pace_say(level == PACE_ERROR ? &self->kept.log : self->to, level, "%s", text);
}

static bool has_several(const char *hosts, const pace_log *log, pace_status *status)
{
    pace__host *list;
    size_t count = 0;

    if (!hosts)
        return false;
    *status = pace__hosts_read(hosts, log, &list, &count);
    if (!*status)
        free(list);
    return !*status && count > 1;
}

static void take(const pace__network *network, pace__given *given)
{
    if (given->link_by == PACE__ASSUMED) {
        given->link_bytes_s = network->link_bytes_s;
        given->link_by = PACE__MEASURED;
    }
    if (given->latency_by == PACE__ASSUMED) {
        given->latency_s = network->latency_s;
        given->latency_by = PACE__MEASURED;
    }
}

pace_status pace__network_learn(const pace__network_plan *plan, const pace_log *log, pace__given *given)
{
    hearing self = {.to = log};
    pace_log heard = {hear, &self};
    pace__network network;
    pace_status status = PACE_OK;
    int rank, size;

    if ((given->link_by != PACE__ASSUMED && given->latency_by != PACE__ASSUMED) ||
        !has_several(plan->hosts, log, &status))
        return status;
    pace__kept_init(&self.kept, self.why, sizeof self.why);
    if (pace__launched(&rank, &size))
        status =
            pace_fail(&heard, PACE_FAILED, "a launcher has started this process, and it starts no other");
    else
        status = pace__network_measure(plan, &heard, &network);
    if (status == PACE_INTERRUPTED)
        return status;
    if (!status)
        take(&network, given);
    else
        pace_say(
            log, PACE_WARN,
            "the network between the hosts of %s is not measured, but assumed, where it is not given: %s",
            plan->hosts, self.why);
    return PACE_OK;
}
