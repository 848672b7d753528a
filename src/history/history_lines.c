/* What a line of metrics.jsonl adds to a history. The kinds and their fields are those of <paceline/registry.h>. */
#include "base/json.h"
#include "files/file.h"
#include "history/internal.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Thirty thousand years. */
#define SECONDS_MAX      1e12
#define SAMPLE_EVERY_MAX (UINT64_C(1) << 30)

bool pace__history_grow(void **items, size_t *capacity, size_t count, size_t width)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity ? *capacity * 2 : 64;
    void *moved = realloc(*items, larger * width);

    if (!moved)
        return false;
    *items = moved;
    *capacity = larger;
    return true;
}

/* --- values --- */

static double number(const cJSON *record, const char *name)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(record, name);

    return cJSON_IsNumber(member) ? member->valuedouble : NAN;
}

/* A count that is not there, or no count, is 0. */
static double amount(const cJSON *record, const char *name)
{
    double value = number(record, name);

    return value > 0 && isfinite(value) ? value : 0;
}

static uint64_t whole(const cJSON *record, const char *name)
{
    uint64_t value;

    return pace__json_count(record, name, &value) ? value : 0;
}

static const char *text(const cJSON *record, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, name));
}

/* --- roles --- */

int pace__history_role(const pace__history *history, const char *name)
{
    for (size_t i = 0; name && i < history->role_count; i++) {
        if (strcmp(history->roles[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* Names are made by paceline (launch/cluster.h); what is none is a damaged line's. */
static bool is_role_name(const char *name)
{
    size_t length = name ? strlen(name) : 0;

    return length > 0 && length < PACE__ROLE_TEXT &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == length;
}

int pace__history_meet(pace__history *history, const char *name)
{
    int known = pace__history_role(history, name);

    if (known >= 0 || !is_role_name(name) || history->role_count == PACE__HISTORY_ROLES_MAX)
        return known;
    /* They come by the dozen at most, and are looked for by their index: no capacity of its own. */
    pace__seen_role *roles = realloc(history->roles, (history->role_count + 1) * sizeof *roles);

    if (!roles)
        return -1;
    history->roles = roles;
    roles[history->role_count] = (pace__seen_role){0};
    strcpy(roles[history->role_count].name, name);
    return (int)history->role_count++;
}

/* --- invariant 5 --- */

static void halve_samples(pace__history *history)
{
    history->own->sample_every *= 2;
    history->own->sample_records = 0;
    for (size_t i = 0; i < history->role_count; i++) {
        pace__seen_role *role = &history->roles[i];
        size_t kept = 0;

        for (size_t j = 0; j < role->count; j++) {
            if ((uint64_t)role->samples[j].t % history->own->sample_every == 0 || j + 1 == role->count)
                role->samples[kept++] = role->samples[j];
        }
        role->count = kept;
        history->own->sample_records += kept;
    }
}

static void halve_steps(pace__history *history)
{
    size_t kept = 0;

    history->own->step_every *= 2;
    for (size_t i = 0; i < history->step_count; i += 2)
        history->step[kept++] = history->step[i];
    history->step_count = kept;
}

/* --- records --- */

static void take_step(pace__history *history, const cJSON *record, double t)
{
    pace__history_own *own = history->own;

    if (history->step_count == PACE__HISTORY_RECORDS_MAX)
        halve_steps(history);
    if (own->step_skipped++ % own->step_every != 0 ||
        !pace__history_grow((void **)&history->step, &own->step_capacity, history->step_count,
                            sizeof *history->step))
        return;
    history->step[history->step_count++] =
        (pace__step_record){.t = t,
                            .epoch = number(record, "epoch"),
                            .loss = number(record, "loss"),
                            .lr = number(record, "lr"),
                            .rows_per_s = number(record, "rows_per_s"),
                            .data_s = number(record, "data_s"),
                            .compute_s = number(record, "compute_s"),
                            .communicate_s = number(record, "communicate_s"),
                            .wait_s = number(record, "wait_s"),
                            .step = whole(record, "step"),
                            .rows = whole(record, "rows")};
}

static pace__eval_record eval_of(const cJSON *record, double t)
{
    return (pace__eval_record){.t = t,
                               .epoch = number(record, "epoch"),
                               .logloss = number(record, "logloss"),
                               .auc = number(record, "auc"),
                               .accuracy = number(record, "accuracy"),
                               .f1 = number(record, "f1"),
                               .step = whole(record, "step"),
                               .rows = whole(record, "n")};
}

/* Validation rows, of runs that have some, are scored before test rows are. */
static void take_eval(pace__history *history, const cJSON *record, double t)
{
    const char *set = text(record, "set");

    history->of_validation |= set && strcmp(set, "validation") == 0;
    if (history->of_validation && (!set || strcmp(set, "validation") != 0)) {
        history->tested = eval_of(record, t);
        history->has_tested = true;
        return;
    }
    if (history->eval_count == PACE__HISTORY_RECORDS_MAX ||
        !pace__history_grow((void **)&history->eval, &history->own->eval_capacity, history->eval_count,
                            sizeof *history->eval))
        return;
    history->eval[history->eval_count++] = eval_of(record, t);
}

static void take_mark(pace__history *history, const pace__mark *mark)
{
    if (history->mark_count < PACE__HISTORY_RECORDS_MAX &&
        pace__history_grow((void **)&history->mark, &history->own->mark_capacity, history->mark_count,
                           sizeof *history->mark))
        history->mark[history->mark_count++] = *mark;
}

static void take_start(pace__history *history, const cJSON *record, double t)
{
    pace__mark mark = {.kind = PACE__MARK_START,
                       .t = t,
                       .step = whole(record, "step"),
                       .amount = amount(record, "incarnation")};
    const char *kernels = text(record, "kernels");

    snprintf(mark.kernels, sizeof mark.kernels, "%s", kernels ? kernels : "");
    history->starts++;
    history->profile = (pace__profiled){0};
    history->steps = whole(record, "steps");
    history->threads = whole(record, "threads");
    history->cores = amount(record, "cores");
    history->pause_s = amount(record, "pause_s");
    take_mark(history, &mark);
}

static void take_checkpoint(pace__history *history, const cJSON *record, double t)
{
    take_mark(history, &(pace__mark){.kind = PACE__MARK_CHECKPOINT,
                                     .t = t,
                                     .step = whole(record, "step"),
                                     .amount = amount(record, "stall_s"),
                                     .bytes = amount(record, "bytes")});
}

static void take_thinned(pace__history *history, const cJSON *record, double t)
{
    take_mark(history, &(pace__mark){.kind = PACE__MARK_THINNED, .t = t, .amount = amount(record, "one_in")});
}

static pace__sample sample_of(const cJSON *record, double t)
{
    return (pace__sample){.t = t,
                          .seconds = amount(record, "seconds"),
                          .data_s = amount(record, "data_s"),
                          .compute_s = amount(record, "compute_s"),
                          .communicate_s = amount(record, "communicate_s"),
                          .still_s = amount(record, "still_s"),
                          .save_s = amount(record, "save_s"),
                          .wait_s = amount(record, "wait_s"),
                          .user_s = amount(record, "user_s"),
                          .system_s = amount(record, "system_s"),
                          .delay_s = amount(record, "delay_s"),
                          .rows = amount(record, "rows"),
                          .rss_bytes = amount(record, "rss_bytes"),
                          .rss_max_bytes = amount(record, "rss_max_bytes"),
                          .minor_faults = amount(record, "minor_faults"),
                          .major_faults = amount(record, "major_faults"),
                          .read_bytes = amount(record, "read_bytes"),
                          .write_bytes = amount(record, "write_bytes"),
                          .net_sent_bytes = amount(record, "net_sent_bytes"),
                          .net_received_bytes = amount(record, "net_received_bytes"),
                          .requests = amount(record, "requests"),
                          .looks = amount(record, "looks"),
                          .pushes = amount(record, "pushes"),
                          .stale_pushes = amount(record, "stale_pushes")};
}

static bool is_of_another_start(const pace__sample *later, const pace__sample *earlier)
{
    return later->start != earlier->start;
}

/* What it dealings comes behind it. Until then it is what it was. */
static void take_sample(pace__history *history, const cJSON *record, double t)
{
    pace__history_own *own = history->own;
    int index = pace__history_meet(history, text(record, "role")),
        waits_for = pace__history_meet(history, text(record, "waits_for")),
        waited_for = pace__history_meet(history, text(record, "waited_for"));

    own->sample_is_kept = false;
    if (own->sample_records >= PACE__HISTORY_RECORDS_MAX && own->sample_every < SAMPLE_EVERY_MAX)
        halve_samples(history);
    /* Very many of one second are none of ours: they go. */
    if (index < 0 || (uint64_t)t % own->sample_every != 0 || own->sample_records >= PACE__HISTORY_RECORDS_MAX)
        return;
    pace__seen_role *role = &history->roles[index];

    if (!pace__history_grow((void **)&role->samples, &role->capacity, role->count, sizeof *role->samples))
        return;
    pace__sample *sample = &role->samples[role->count];
    const pace__sample *before = role->count ? sample - 1 : NULL;

    *sample = sample_of(record, t);
    sample->waits_for = waits_for;
    sample->waited_for = waited_for >= 0 ? waited_for : waits_for; /* older records do not tell */
    sample->start = history->starts ? history->starts - 1 : 0;
    if (before && !is_of_another_start(sample, before)) {
        sample->own_sent_bytes = before->own_sent_bytes;
        sample->own_received_bytes = before->own_received_bytes;
    } else {
        role->dealings_count = 0;
    }
    role->count++;
    own->sample_records++;
    own->sample_is_kept = true;
}

static pace__dealings *dealings_with(pace__seen_role *role, int peer)
{
    for (size_t i = 0; i < role->dealings_count; i++) {
        if (role->dealings[i].peer == peer)
            return &role->dealings[i];
    }
    if (!pace__history_grow((void **)&role->dealings, &role->dealings_capacity, role->dealings_count,
                            sizeof *role->dealings))
        return NULL;
    role->dealings[role->dealings_count] = (pace__dealings){.peer = peer};
    return &role->dealings[role->dealings_count++];
}

static void take_flow(pace__history *history, const cJSON *record)
{
    int index = pace__history_meet(history, text(record, "role")),
        peer = pace__history_meet(history, text(record, "peer"));

    if (index < 0 || peer < 0 || history->roles[index].count == 0)
        return;
    pace__seen_role *role = &history->roles[index];
    pace__dealings *exchange = dealings_with(role, peer);

    if (!exchange)
        return;
    *exchange = (pace__dealings){.peer = peer,
                                 .sent_bytes = amount(record, "bytes_sent"),
                                 .received_bytes = amount(record, "bytes_received"),
                                 .messages = amount(record, "messages"),
                                 .wait_s = amount(record, "wait_s")};
    if (!history->own->sample_is_kept)
        return;
    pace__sample *sample = &role->samples[role->count - 1];

    sample->own_sent_bytes = sample->own_received_bytes = 0;
    for (size_t i = 0; i < role->dealings_count; i++) {
        sample->own_sent_bytes += role->dealings[i].sent_bytes;
        sample->own_received_bytes += role->dealings[i].received_bytes;
    }
}

/* A role's record at the end names its host, where no cluster.json does. */
static void take_role(pace__history *history, const cJSON *record)
{
    int index = pace__history_meet(history, text(record, "role"));
    const char *host = text(record, "host");

    if (index >= 0 && host && strlen(host) < PACE__HOST_TEXT)
        strcpy(history->roles[index].host, host);
}

static void take_profile(pace__history *history, const cJSON *record)
{
    history->profile = (pace__profiled){.share = fmin(1, amount(record, "memory_share")),
                                        .gbytes_s = amount(record, "gbytes_s"),
                                        .peak_gbytes_s = amount(record, "peak_gbytes_s"),
                                        .seconds = amount(record, "seconds")};
}

static void take_record(pace__history *history, const cJSON *record, const char *kind, double t)
{
    if (strcmp(kind, "step") == 0)
        take_step(history, record, t);
    else if (strcmp(kind, "sample") == 0)
        take_sample(history, record, t);
    else if (strcmp(kind, "flow") == 0)
        take_flow(history, record);
    else if (strcmp(kind, "eval") == 0)
        take_eval(history, record, t);
    else if (strcmp(kind, "start") == 0)
        take_start(history, record, t);
    else if (strcmp(kind, "checkpoint") == 0)
        take_checkpoint(history, record, t);
    else if (strcmp(kind, "thinned") == 0)
        take_thinned(history, record, t);
    else if (strcmp(kind, "role") == 0)
        take_role(history, record);
    else if (strcmp(kind, "profile") == 0)
        take_profile(history, record);
}

void pace__history_take_line(pace__history *history, const char *line)
{
    cJSON *record = cJSON_Parse(line);
    const char *kind = text(record, "kind");
    double t = number(record, "t");

    if (!kind || !(t >= 0 && t <= SECONDS_MAX)) {
        history->unreadable++;
    } else {
        t = t > history->last_t ? t : history->last_t; /* invariant 2 */
        history->last_t = t;
        take_record(history, record, kind, t);
    }
    cJSON_Delete(record);
}

/* --- differences --- */

pace__sample pace__sample_since(const pace__sample *later, const pace__sample *earlier)
{
    pace__sample since = *later;

    if (!earlier || is_of_another_start(later, earlier)) {
        since.net_sent_bytes = since.net_received_bytes = 0; /* they count from the start of the machine */
        return since;
    }
#define SUBTRACT(member) since.member = fmax(0, later->member - earlier->member)
    SUBTRACT(seconds);
    SUBTRACT(data_s);
    SUBTRACT(compute_s);
    SUBTRACT(communicate_s);
    SUBTRACT(still_s);
    SUBTRACT(save_s);
    SUBTRACT(wait_s);
    SUBTRACT(user_s);
    SUBTRACT(system_s);
    SUBTRACT(delay_s);
    SUBTRACT(rows);
    SUBTRACT(minor_faults);
    SUBTRACT(major_faults);
    SUBTRACT(read_bytes);
    SUBTRACT(write_bytes);
    SUBTRACT(net_sent_bytes);
    SUBTRACT(net_received_bytes);
    SUBTRACT(own_sent_bytes);
    SUBTRACT(own_received_bytes);
    SUBTRACT(requests);
    SUBTRACT(looks);
    SUBTRACT(pushes);
    SUBTRACT(stale_pushes);
#undef SUBTRACT
    return since;
}
