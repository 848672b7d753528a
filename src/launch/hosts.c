/* hosts.c - the host file, and which rank goes to which host. */
#include "files/file.h"
#include "launch/cluster.h"

#include <assert.h>
#include <ctype.h>
#include <paceline/options.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_BYTES_MAX ((size_t)1 << 20)

/* ---- the file ---- */

/* In the order of the bits of pace__host.roles. */
static const char *const role_words[] = {"worker", "ps", "evaluator", "chief", NULL};
static const char *const keys[] = {"slots", "roles", NULL};

typedef struct hosts_file {
    const char *path;
    int line;
    const pace_log *log;
    pace__host *hosts;
    int *lines; /* of each host, for the message about the second one */
    size_t count, room;
} hosts_file;

static pace_status out_of_memory(const hosts_file *file)
{
    return pace_fail(file->log, PACE_FAILED, "%s: out of memory", file->path);
}

/* "(did you mean slots?)", or nothing. */
static const char *hint(const char *word, const char *const *names, char text[64])
{
    const char *nearest = pace_nearest_name(word, names);

    text[0] = '\0';
    if (nearest)
        snprintf(text, 64, " (did you mean %s?)", nearest);
    return text;
}

static pace_status read_slots(const hosts_file *file, pace__host *host, const char *value)
{
    char *end;
    long slots = strtol(value, &end, 10);

    if (!isdigit((unsigned char)*value) || *end != '\0' || slots < 1 || slots > PACE__SLOTS_MAX)
        return pace_fail(file->log, PACE_USAGE, "%s:%d: slots=%.100s: must be a whole number from 1 to %d",
                         file->path, file->line, value, PACE__SLOTS_MAX);
    host->slots = (int)slots;
    return PACE_OK;
}

static pace_status read_roles(const hosts_file *file, pace__host *host, char *value)
{
    for (char *word; (word = strsep(&value, ","));) {
        unsigned role = 0;
        char text[64];

        while (role_words[role] && strcmp(role_words[role], word) != 0)
            role++;
        if (!role_words[role])
            return pace_fail(file->log, PACE_USAGE,
                             "%s:%d: unknown role %.100s%s; there are worker, ps, evaluator and chief",
                             file->path, file->line, *word ? word : "\"\"", hint(word, role_words, text));
        host->roles |= 1u << role;
    }
    return PACE_OK;
}

static pace_status read_setting(const hosts_file *file, pace__host *host, char *word)
{
    char *value = strchr(word, '='), text[64];

    if (!value)
        return pace_fail(file->log, PACE_USAGE, "%s:%d: %.100s is not of the form slots=N or roles=ROLE,ROLE",
                         file->path, file->line, word);
    *value++ = '\0';
    bool is_slots = strcmp(word, "slots") == 0;

    if (!is_slots && strcmp(word, "roles") != 0)
        return pace_fail(file->log, PACE_USAGE, "%s:%d: unknown key %.100s%s; there are slots and roles",
                         file->path, file->line, word, hint(word, keys, text));
    if (is_slots ? host->slots != 0 : host->roles != 0)
        return pace_fail(file->log, PACE_USAGE, "%s:%d: %s is given twice", file->path, file->line, word);
    return is_slots ? read_slots(file, host, value) : read_roles(file, host, value);
}

/* Names end up in the launcher's words: nothing that it would read as an option, a list or a count. */
static pace_status read_name(const hosts_file *file, pace__host *host, const char *word)
{
    size_t length = strlen(word);
    size_t good = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    if (length >= sizeof host->name)
        return pace_fail(file->log, PACE_USAGE, "%s:%d: the host name %.40s... has more than %d characters",
                         file->path, file->line, word, PACE__HOST_TEXT - 1);
    if (good != length || !isalnum((unsigned char)*word))
        return pace_fail(file->log, PACE_USAGE,
                         "%s:%d: %.200s is not a host name (letters, digits, dots and dashes)", file->path,
                         file->line, word);
    memcpy(host->name, word, length + 1);
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->hosts[i].name, word) == 0)
            return pace_fail(file->log, PACE_USAGE, "%s:%d: host %s has a line already, line %d", file->path,
                             file->line, word, file->lines[i]);
    }
    return PACE_OK;
}

static pace_status make_room(hosts_file *file)
{
    if (file->count < file->room)
        return PACE_OK;
    if (file->count == PACE__HOSTS_MAX)
        return pace_fail(file->log, PACE_USAGE, "%s:%d: more than %d hosts", file->path, file->line,
                         PACE__HOSTS_MAX);
    size_t room = file->room ? 2 * file->room : 16;
    pace__host *hosts = realloc(file->hosts, room * sizeof *hosts);

    if (!hosts)
        return out_of_memory(file);
    file->hosts = hosts;
    int *lines = realloc(file->lines, room * sizeof *lines);

    if (!lines)
        return out_of_memory(file);
    file->lines = lines;
    file->room = room;
    return PACE_OK;
}

static pace_status read_line(hosts_file *file, char *line)
{
    pace__host host = {.slots = 0};
    bool named = false;
    pace_status status = PACE_OK;

    line[strcspn(line, "#")] = '\0';
    for (char *word; !status && (word = strsep(&line, " \t\r"));) {
        if (*word == '\0')
            continue;
        status = named ? read_setting(file, &host, word) : read_name(file, &host, word);
        named = true;
    }
    if (status || !named)
        return status;
    if (host.slots == 0)
        host.slots = 1;
    status = make_room(file);
    if (!status) {
        file->lines[file->count] = file->line;
        file->hosts[file->count++] = host;
    }
    return status;
}

pace_status pace__hosts_read(const char *path, const pace_log *log, pace__host **hosts, size_t *count)
{
    hosts_file file = {.path = path, .log = log};
    char *text, *rest;
    size_t size;
    pace_status status = pace__read_file(path, HOSTS_BYTES_MAX, &text, &size, log);

    if (status)
        return status;
    if (strlen(text) != size)
        status = pace_fail(log, PACE_USAGE, "%s: contains a zero byte: not a host file", path);
    rest = text;
    for (char *line; !status && (line = strsep(&rest, "\n"));) {
        file.line++;
        status = read_line(&file, line);
    }
    if (!status && file.count == 0)
        status = pace_fail(log, PACE_USAGE, "%s: names no host", path);
    free(text);
    free(file.lines);
    if (status) {
        free(file.hosts);
        return status;
    }
    *hosts = file.hosts;
    *count = file.count;
    return PACE_OK;
}

/* ---- placement ---- */

/*
 * Ranks are placed one after the other. Those before the one at hand have a host or are missing, and
 *
 * 1. ranks_on counts the ranks on each host, by kind; no host has more than its slots.
 * 2. Once a rank of a kind is missing, all later ones of that kind are: no search would find more room.
 */

/* What a rank is called in a host file. */
enum {
    PLACE_WORKER = PACE__WORKER,
    PLACE_PS = PACE__PS,
    PLACE_EVALUATOR = PACE__EVALUATOR,
    PLACE_CHIEF,
    PLACES
};

_Static_assert(PACE__HOST_CHIEF == 1u << PLACE_CHIEF, "a bit for each");

typedef struct placement {
    const pace__cluster *cluster;
    const pace__host *hosts;
    size_t count;
    int *host_of;            /* -1: not placed yet */
    int (*ranks_on)[PLACES]; /* by host and kind */
    unsigned bit[PLACES];    /* which bit of a line's roles counts for it */
    int wanted[PLACES], missing[PLACES];
} placement;

static int place_of(const pace__cluster *cluster, int rank)
{
    return rank == 0 ? PLACE_CHIEF : (int)pace__role_of(cluster, rank);
}

static bool may_take(const placement *p, size_t host, int place)
{
    return p->hosts[host].roles == 0 || (p->hosts[host].roles & p->bit[place]) != 0;
}

static bool has_room(const placement *p, size_t host)
{
    const int *ranks = p->ranks_on[host];

    return ranks[PLACE_CHIEF] + ranks[PLACE_WORKER] + ranks[PLACE_PS] + ranks[PLACE_EVALUATOR] <
           p->hosts[host].slots;
}

/* Ranks of the same role on that host; the chief is a worker here. */
static int crowd(const placement *p, size_t host, int place)
{
    const int *ranks = p->ranks_on[host];

    if (place == PLACE_CHIEF || place == PLACE_WORKER)
        return ranks[PLACE_CHIEF] + ranks[PLACE_WORKER];
    return ranks[place];
}

/* The host with room where the fewest of its kind are: that goes round. Lines that name the role come
 * first. -1: none. */
static int best_host(const placement *p, int place)
{
    int best = -1, best_crowd = 0;
    bool best_named = false;

    for (size_t host = 0; host < p->count; host++) {
        bool named = p->hosts[host].roles != 0;

        if (!may_take(p, host, place) || !has_room(p, host) || (best_named && !named))
            continue;
        int ranks = crowd(p, host, place);

        if (best < 0 || named != best_named || ranks < best_crowd) {
            best = (int)host;
            best_crowd = ranks;
            best_named = named;
        }
    }
    return best;
}

static void move(placement *p, int rank, int host)
{
    int place = place_of(p->cluster, rank);

    assert(host >= 0 && (size_t)host < p->count && has_room(p, (size_t)host)); /* invariant 1 */
    if (p->host_of[rank] >= 0)
        p->ranks_on[p->host_of[rank]][place]--;
    p->host_of[rank] = host;
    p->ranks_on[host][place]++;
}

/* The last rank of that kind on the host; there is one. */
static int rank_there(const placement *p, size_t host, int place)
{
    int rank = pace__cluster_size(p->cluster) - 1;

    assert(p->ranks_on[host][place] > 0);
    while (p->host_of[rank] != (int)host || place_of(p->cluster, rank) != place) {
        rank--;
        assert(rank >= 0);
    }
    return rank;
}

/*
 * A host with room for a rank of that kind, made by moving others if need be: going round may have given a
 * worker a slot that only the ps which is left over needs. This is the search for an augmenting path, in
 * which every kind has to be tried once. -1: there is none.
 */
static int make_way(placement *p, int place, unsigned *tried)
{
    *tried |= 1u << place;
    for (size_t host = 0; host < p->count; host++) {
        if (may_take(p, host, place) && has_room(p, host))
            return (int)host;
    }
    for (size_t host = 0; host < p->count; host++) {
        for (int other = 0; may_take(p, host, place) && other < PLACES; other++) {
            bool worth = p->ranks_on[host][other] > 0 && !(*tried & 1u << other);
            int elsewhere = worth ? make_way(p, other, tried) : -1;

            if (elsewhere >= 0) {
                move(p, rank_there(p, host, other), elsewhere);
                return (int)host;
            }
        }
    }
    return -1;
}

static void place_rank(placement *p, int rank)
{
    int place = place_of(p->cluster, rank);

    assert(p->host_of[rank] < 0 && p->missing[place] <= p->wanted[place]);
    int host = p->missing[place] ? -1 : best_host(p, place);

    unsigned tried = 0;

    if (host < 0 && !p->missing[place])
        host = make_way(p, place, &tried);
    p->wanted[place]++;
    if (host < 0)
        p->missing[place]++;
    else
        move(p, rank, host);
}

static pace_status check_slots(const placement *p, const pace_log *log)
{
    int64_t slots = 0;
    int size = pace__cluster_size(p->cluster);

    for (size_t host = 0; host < p->count; host++)
        slots += p->hosts[host].slots;
    if (slots >= size)
        return PACE_OK;
    return pace_fail(log, PACE_USAGE, "the hosts have %d slots for %d processes: %d are missing", (int)slots,
                     size, size - (int)slots);
}

static pace_status check_missing(const placement *p, const pace_log *log)
{
    for (int place = 0; place < PLACES; place++) {
        bool any = false;

        if (p->missing[place] == 0)
            continue;
        for (size_t host = 0; host < p->count; host++)
            any = any || may_take(p, host, place);
        if (!any)
            return pace_fail(log, PACE_USAGE, "no line of the host file may take the role %s: %d to place",
                             role_words[place], p->wanted[place]);
        return pace_fail(
            log, PACE_USAGE, "the hosts that may take the role %s have slots for %d of %d: %d are missing",
            role_words[place], p->wanted[place] - p->missing[place], p->wanted[place], p->missing[place]);
    }
    return PACE_OK;
}

pace_status pace__hosts_place(const pace__cluster *cluster, const pace__host *hosts, size_t count,
                              int *host_of, const pace_log *log)
{
    int size = pace__cluster_size(cluster);
    placement p = {.cluster = cluster, .hosts = hosts, .count = count, .host_of = host_of};
    pace_status status = check_slots(&p, log);

    if (status)
        return status;
    p.ranks_on = calloc(count + 1, sizeof *p.ranks_on);
    if (!p.ranks_on)
        return pace_fail(log, PACE_FAILED, "out of memory");
    for (int place = 0; place < PLACES; place++)
        p.bit[place] = 1u << place;
    bool chief_named = false;

    for (size_t host = 0; host < count; host++)
        chief_named = chief_named || (hosts[host].roles & PACE__HOST_CHIEF) != 0;
    if (!chief_named)
        p.bit[PLACE_CHIEF] = 1u << PLACE_WORKER;
    for (int rank = 0; rank < size; rank++)
        host_of[rank] = -1;
    for (int rank = 0; rank < size; rank++)
        place_rank(&p, rank);
    free(p.ranks_on);
    return check_missing(&p, log);
}

static bool occurs(const int *hosts, int count, int host)
{
    for (int i = 0; i < count; i++) {
        if (hosts[i] == host)
            return true;
    }
    return false;
}

/* Adds to the first `kept` those of host_of[first..last) where nobody is yet; returns how many there are then. */
static int keep_one_each(int *host_of, int kept, int first, int last)
{
    assert(kept <= first); /* what is written is never ahead of what is read */
    for (int rank = first; rank < last; rank++) {
        if (!occurs(host_of, kept, host_of[rank]))
            host_of[kept++] = host_of[rank];
    }
    return kept;
}

pace__cluster pace__hosts_one_each(const pace__cluster *cluster, int *host_of)
{
    int size = pace__cluster_size(cluster), workers = cluster->workers, last = host_of[size - 1];

    if (cluster->evaluator) { /* who reads the data set goes first */
        memmove(host_of + workers + 1, host_of + workers, (size_t)cluster->ps * sizeof *host_of);
        host_of[workers++] = last;
    }
    int readers = keep_one_each(host_of, 0, 0, workers);

    return (pace__cluster){.workers = readers,
                           .ps = keep_one_each(host_of, readers, workers, size) - readers};
}
