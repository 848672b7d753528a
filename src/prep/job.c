#include "prep/job.h"

#include "data/store/store.h"
#include "files/file.h"
#include "launch/cluster.h"
#include "prep/common.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define MARK_NAME  "ranks" /* in the directory: shows others that they see the same one */

/* A process that has died is noticed by its launcher; this is for one that hangs. Threads do not get lost. */
#define DEADLINE_S       600.0
#define FIRST_DEADLINE_S 120.0
#define THREADS_S        1e8

/* --- the party --- */

void pace__party_init(pace__party *party, const char *output, bool force, const _Atomic int *stop,
                      const pace_log *log, pace_registry *registry)
{
    *party = (pace__party){
        .output = output, .force = force, .stop = stop, .registry = registry, .staging.lock = -1};
    pace__once_init(&party->once, log); /* threads may meet the same trouble */
    party->log = &party->once.log;
}

void pace__party_release(pace__party *party)
{
    pace__staging_abandon(&party->staging, NULL);
    free(party->directory);
    party->directory = NULL;
}

pace_status pace__party_open_process(pace__party *party, int64_t processes, pace__link **link)
{
    pace__link_options options = {.deadline_ns = (uint64_t)(DEADLINE_S * 1e9),
                                  .first_deadline_ns = (uint64_t)(FIRST_DEADLINE_S * 1e9),
                                  .log = party->log};
    pace_status status = pace__link_open_mpi(1, &options, link);

    if (status)
        return status;
    party->many = true;
    party->ranks = pace__link_size(*link);
    /* Every process finds these; one tells. */
    const pace_log *log = pace__link_rank(*link) > 0 ? NULL : party->log;

    if (party->ranks > PACE__RANKS_MAX)
        return pace_fail(log, PACE_USAGE, "%d processes: at most %d are possible", party->ranks,
                         PACE__RANKS_MAX);
    if (processes > 1 && processes != party->ranks)
        return pace_fail(log, PACE_USAGE, "%d process%s started, but --processes is %" PRId64, party->ranks,
                         party->ranks == 1 ? " was" : "es were", processes);
    return PACE_OK;
}

pace_status pace__party_open_threads(pace__party *party, int ranks, pace__link **links)
{
    pace__link_options options = {.deadline_ns = (uint64_t)(THREADS_S * 1e9),
                                  .first_deadline_ns = (uint64_t)(THREADS_S * 1e9),
                                  .log = party->log};

    party->ranks = ranks;
    return pace__link_open_threads(ranks, ranks, &options, links);
}

/* --- waiting and failing --- */

pace_status pace__party_look_around(const pace__party *party)
{
    if (party->stop && *party->stop)
        return PACE_INTERRUPTED;
    return (pace_status)atomic_load(&party->failed);
}

static pace_status idle(void *user, bool *busy)
{
    const pace__partner *self = user;

    *busy = false;
    return pace__party_look_around(self->party);
}

pace_status pace__partner_pulse(void *member)
{
    const pace__partner *self = member;
    pace_status status = pace__party_look_around(self->party);

    return status ? status : pace__link_pulse(self->link);
}

static void keep_error(void *user, pace_level level, const char *text)
{
    pace__partner *self = user;

    if (level != PACE_ERROR) {
        if (self->settled && level == PACE_WARN) /* all else is the same on every rank */
            pace_say(self->party->log, level, "%s", text);
    } else if (!self->reason[0] && strstr(text, "(rank ")) /* the link's own: it names everyone */
        snprintf(self->reason, sizeof self->reason, "%s", text);
    else if (!self->reason[0])
        snprintf(self->reason, sizeof self->reason, "%s: %s", self->name, text);
}

static void give_up(pace__partner *self, pace_status status)
{
    pace__party *party = self->party;
    int none = PACE_OK;

    if (status == PACE_INTERRUPTED)
        pace_say(self->log, PACE_ERROR, PACE__PREP_INTERRUPTED);
    atomic_compare_exchange_strong(&party->failed, &none, (int)status);
    if (party->many && self->rank == 0) /* this process ends in the next line */
        pace__staging_abandon(&party->staging, NULL);
    pace__link_fail(self->link, status, self->reason);
}

static void set_names(pace__partner *self)
{
    pace__cluster cluster = {.workers = self->party->ranks};
    char host[PACE__HOST_TEXT] = "unknown", role[PACE__ROLE_TEXT];

    gethostname(host, sizeof host - 1);
    for (int rank = 0; rank < self->party->ranks; rank++) {
        pace__role_name(&cluster, rank, role);
        if (rank == self->rank)
            snprintf(self->name, sizeof self->name, "%s (rank %d, host %.200s)", role, rank, host);
        char *name = pace__format("%s (rank %d)", role, rank);

        if (name || rank == self->rank)
            pace__link_set_name(self->link, rank, rank == self->rank ? self->name : name);
        free(name);
    }
}

void pace__partner_open(pace__partner *self, pace__party *party, pace__link *link)
{
    int rank = pace__link_rank(link);

    *self = (pace__partner){
        .party = party, .link = link, .log = party->log, .rank = rank, .first = party->many || rank == 0};
    set_names(self);
    self->own_log = (pace_log){keep_error, self};
    if (party->many && rank > 0)
        self->log = &self->own_log;
    pace__link_set_log(link, self->log);
    pace__link_on_idle(link, idle, self);
}

void pace__partner_close(pace__partner *self, pace_status status)
{
    if (status)
        give_up(self, status);
    pace__link_close(self->link);
    self->link = NULL;
}

/* --- the directory --- */

/* What rank 0 tells about it. */
typedef struct meeting_place {
    char directory[PATH_BYTES], mark[64];
} meeting_place;

static pace_status make_directory(pace__partner *self, meeting_place *place)
{
    pace__party *party = self->party;
    struct timespec now;
    pace_status status = pace__prep_begin(party->output, party->force, &party->staging, self->log);

    if (status)
        return status;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(place->mark, sizeof place->mark, "%ld %lld %ld", (long)getpid(), (long long)now.tv_sec,
             now.tv_nsec);
    if ((size_t)snprintf(place->directory, sizeof place->directory, "%s", party->staging.directory) >=
        sizeof place->directory)
        return pace_fail(self->log, PACE_USAGE, "%s: the name is too long", party->output);
    char *path = pace__format("%s/%s", place->directory, MARK_NAME);

    status = path ? pace__write_file_atomically(path, place->mark, strlen(place->mark), self->log)
                  : pace_fail(self->log, PACE_FAILED, "out of memory");
    free(path);
    return status;
}

/* Another host may have another directory of that name, or none. */
static pace_status check_directory(const pace__partner *self, const meeting_place *place)
{
    char *path = pace__format("%s/%s", place->directory, MARK_NAME), *mark = NULL;
    size_t size;
    bool same = path && pace__read_file(path, sizeof place->mark, &mark, &size, NULL) == PACE_OK &&
                strcmp(mark, place->mark) == 0;

    free(mark);
    free(path);
    return same ? PACE_OK
                : pace_fail(self->log, PACE_USAGE,
                            "%s: not the same directory here: --output must be on a file system that all "
                            "processes share",
                            self->party->output);
}

pace_status pace__partner_meet(pace__partner *self)
{
    meeting_place *place = calloc(1, sizeof *place);
    pace_status status = place ? PACE_OK : pace_fail(self->log, PACE_FAILED, "out of memory");

    if (!status && self->rank == 0)
        status = make_directory(self, place);
    if (!status)
        status = pace__ranks_share(self->link, place, sizeof *place);
    if (!status && self->rank > 0)
        status = check_directory(self, place);
    if (!status && self->first && !(self->party->directory = strdup(place->directory)))
        status = pace_fail(self->log, PACE_FAILED, "out of memory");
    free(place);
    return status ? status : pace__ranks_meet(self->link);
}

pace_status pace__partner_commit(pace__partner *self)
{
    pace__party *party = self->party;
    char *mark = pace__format("%s/%s", party->directory, MARK_NAME);

    if (mark)
        unlink(mark);
    free(mark);
    pace_status status = pace__store_seal(party->directory, self->log);

    return status ? status : pace__staging_commit(&party->staging, self->log);
}
