#include "verdict/facts.h"

#include "base/json.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double setting(const pace__history *history, const char *name)
{
    const char *value = pace__history_setting(history, name);

    return value ? strtod(value, NULL) : 0;
}

static pace__role kind_of(const char *name)
{
    return strncmp(name, "ps", 2) == 0      ? PACE__PS
           : strcmp(name, "evaluator") == 0 ? PACE__EVALUATOR
                                            : PACE__WORKER;
}

/* --- the time that is looked at --- */

/* From one sample of a role to another, both of the last start; first is NULL where that start begins. What a process used
 * before it began to train is in the sample that it sends then. */
typedef struct stretch {
    const pace__sample *first, *last; /* last is NULL: there is none */
    const pace__sample *before;       /* training; NULL: nothing is known of that */
} stretch;

#define BEGINS                                                                                               \
    0.05 /* of what it trains, at the most: it is often stopped on the way where it has little of a processor */

static stretch stretch_of(const pace__history *history, const pace__seen_role *role, double since_t)
{
    unsigned start = history->starts ? history->starts - 1 : 0;
    stretch found = {0};

    for (size_t i = 0; i < role->count; i++) {
        const pace__sample *sample = &role->samples[i];

        if (sample->start != start)
            continue;
        if (!found.last)
            found.before = sample;
        if (sample->t <= since_t)
            found.first = sample;
        found.last = sample;
    }
    if (found.last == found.first)
        found.first = NULL;
    if (found.last && found.before->seconds > BEGINS * found.last->seconds)
        found.before = NULL;
    return found;
}

/* --- being away --- */

/* So many samples of the chief must have come without one of the role's, or be missing of its own: fewer are chance. */
#define MISSED 3
/* A role says something every second (run/report.h), unless records were thinned. */
#define APART_S 1.0

static const pace__seen_role *chief_of(const pace__history *history)
{
    int chief = pace__history_role(history, "chief");

    return chief >= 0 ? &history->roles[chief] : NULL;
}

/* What the chief has said in a start, for who goes through the samples of a role in their order. */
typedef struct hearing {
    const pace__seen_role *chief;
    size_t next;            /* the first that is behind the sample at hand */
    size_t count;           /* all of that start */
    double first_t, last_t; /* of these */
} hearing;

static hearing hearing_of(const pace__seen_role *chief, unsigned start)
{
    hearing self = {.chief = chief};

    for (size_t i = 0; i < chief->count; i++) {
        if (chief->samples[i].start != start)
            continue;
        self.first_t = self.count++ ? self.first_t : chief->samples[i].t;
        self.last_t = chief->samples[i].t;
    }
    return self;
}

/* Samples of the chief between two times, and how far they are apart, on average. Each is looked at once, however many there
 * are: a run of a day has hundreds of thousands. */
static size_t heard_between(hearing *self, double from_t, double to_t, double *apart_s)
{
    const pace__sample *samples = self->chief->samples;
    size_t all = self->chief->count, behind;

    while (self->next < all && samples[self->next].t <= from_t)
        self->next++;
    for (behind = self->next; behind < all && samples[behind].t < to_t;)
        behind++;
    size_t count = behind - self->next;

    *apart_s = count > 1 ? (samples[behind - 1].t - samples[self->next].t) / (double)(count - 1) : 0;
    return count;
}

/* Of the chief's own samples, but for one gap: how far they are apart. */
static double usually_apart(const hearing *self, double gap_s)
{
    return self->count > 2 ? fmax(APART_S, (self->last_t - self->first_t - gap_s) / (double)(self->count - 2))
                           : APART_S;
}

/* Between two of its samples, or behind the last: it did not say a word when it should have, and has not worked since; it
 * had half of the usual time before that, on average. Who trains no more (the chief, behind the last step) need not. */
static double away_between(const pace__seen_role *role, hearing *heard, const pace__sample *from,
                           const pace__sample *to)
{
    const pace__seen_role *chief = heard->chief;
    double to_t = to ? to->t : chief->samples[chief->count - 1].t, gap_s = to_t - from->t, apart_s;
    pace__sample since = to ? pace__sample_since(to, from) : (pace__sample){.seconds = gap_s};

    if (role == chief) {
        apart_s = usually_apart(heard, gap_s);
        if (gap_s < (MISSED + 1) * apart_s)
            return 0;
    } else if (heard_between(heard, from->t, to_t, &apart_s) < MISSED) {
        return 0;
    }
    return fmax(0, fmin(gap_s, since.seconds) - apart_s / 2 - since.data_s - since.compute_s -
                       since.communicate_s - since.still_s - since.delay_s);
}

static double away_of(const pace__history *history, const pace__seen_role *role, double since_t)
{
    const pace__seen_role *chief = chief_of(history);
    unsigned start = history->starts ? history->starts - 1 : 0;
    double away_s = 0;

    if (!chief || chief->count == 0)
        return 0;
    hearing heard = hearing_of(chief, start);

    for (size_t i = 0; i < role->count; i++) {
        const pace__sample *from = &role->samples[i], *to = i + 1 < role->count ? from + 1 : NULL;

        if (from->start == start && (to ? to->t > since_t : role != chief))
            away_s += away_between(role, &heard, from, to);
    }
    return away_s;
}

/* What it exchanged with roles on other hosts: all that it exchanged, by the share that those have in it. */
static double share_elsewhere(const pace__history *history, const pace__seen_role *role, double *messages)
{
    double all = 0, elsewhere = 0;

    *messages = 0;
    for (size_t i = 0; i < role->dealings_count; i++) {
        const pace__dealings *with = &role->dealings[i];
        double bytes = with->sent_bytes + with->received_bytes;
        bool here = strcmp(history->roles[with->peer].host, role->host) == 0;

        all += bytes;
        elsewhere += here ? 0 : bytes;
        *messages += here ? 0 : with->messages;
    }
    return all > 0 ? elsewhere / all : 0;
}

static pace__worked worked_of(const pace__history *history, const pace__seen_role *role, double since_t)
{
    stretch at = stretch_of(history, role, since_t);
    double messages, elsewhere = share_elsewhere(history, role, &messages);
    pace__worked worked = {.name = role->name, .kind = kind_of(role->name)};

    if (!at.last)
        return worked;
    pace__sample since = pace__sample_since(at.last, at.first),
                 used = pace__sample_since(at.last, at.first ? at.first : at.before);
    double part = at.last->seconds > 0 ? since.seconds / at.last->seconds : 0;

    worked.is_known = true;
    worked.data_s = since.data_s;
    worked.compute_s = since.compute_s;
    worked.communicate_s = since.communicate_s;
    worked.still_s = since.still_s;
    worked.cpu_s = used.user_s + used.system_s;
    worked.delay_s = used.delay_s;
    worked.away_s = away_of(history, role, since_t);
    worked.rows = since.rows;
    worked.read_bytes = used.read_bytes;
    worked.sent_bytes = since.own_sent_bytes * elsewhere;
    worked.received_bytes = since.own_received_bytes * elsewhere;
    worked.messages = messages * part;
    worked.requests = since.requests;
    worked.looks = since.looks;
    return worked;
}

/* --- the rest --- */

static bool has_mode(const pace__history *history, const char *name)
{
    const char *mode = pace__history_setting(history, "mode");

    return mode && strcmp(mode, name) == 0;
}

static bool is_synchronous(const pace__history *history)
{
    return has_mode(history, "allreduce") || has_mode(history, "ps-sync");
}

/* Synchronous workers have even shares of each step, whatever they take for them. */
static bool divides_evenly(const pace__history *history)
{
    const char *balance = pace__history_setting(history, "balance");

    return is_synchronous(history) && balance && strcmp(balance, "off") == 0;
}

static bool chooses(const pace__history *history)
{
    const char *asked = pace__history_setting(history, "keep-best");

    return (asked && strcmp(asked, "true") == 0) || setting(history, "early-stop") > 0;
}

/* Checkpoints on the way are those of better and better states, not by steps. */
static bool keeps_best(const pace__history *history)
{
    return chooses(history) && setting(history, "checkpoint-every") == 0;
}

static bool has_rounds(const pace__history *history)
{
    return has_mode(history, "local-sgd");
}

static bool averages(const pace__history *history)
{
    const char *model = pace__history_setting(history, "model");
    const pace__kind *kind = model ? pace__kind_named(model) : NULL; /* none: of a newer program */

    return has_rounds(history) && kind && kind->by_steps;
}

/* Steps that records tell of, in the last start from `since_t` on. */
static double steps_since(const pace__history *history, double since_t)
{
    uint64_t from = 0, to = 0;

    for (size_t i = 0; i < history->mark_count; i++) {
        if (history->mark[i].kind == PACE__MARK_START)
            from = to = history->mark[i].step;
    }
    for (size_t i = 0; i < history->step_count; i++) {
        if (history->step[i].t <= since_t && history->step[i].step > from)
            from = history->step[i].step;
        if (history->step[i].step > to)
            to = history->step[i].step;
    }
    return to > from ? (double)(to - from) : 0;
}

static void count_checkpoints(const pace__history *history, double since_t, pace__verdict_facts *facts)
{
    for (size_t i = 0; i < history->mark_count; i++) {
        const pace__mark *mark = &history->mark[i];

        if (mark->kind == PACE__MARK_START)
            facts->checkpoints = 0;
        else if (mark->kind == PACE__MARK_CHECKPOINT && mark->t > since_t)
            facts->checkpoints++;
    }
}

static double last_start(const pace__history *history)
{
    double t = 0;

    for (size_t i = 0; i < history->mark_count; i++)
        t = history->mark[i].kind == PACE__MARK_START ? history->mark[i].t : t;
    return t;
}

/* By the chief's samples: `seconds` stands still once the last step is taken, and nobody is waited for any more. */
static void add_times(const pace__history *history, double since_t, pace__verdict_facts *facts)
{
    const pace__seen_role *chief = chief_of(history);
    stretch at = chief ? stretch_of(history, chief, since_t) : (stretch){0};

    if (!at.last)
        return;
    pace__sample since = pace__sample_since(at.last, at.first);

    facts->seconds = since.seconds;
    facts->checkpoint_s = since.save_s;
    bool is_over = history->steps > 0 && history->step_count > 0 &&
                   history->step[history->step_count - 1].step >= history->steps;

    if (!is_over || history->step[history->step_count - 1].t <= since_t)
        return;
    double end_t = fmax(history->step[history->step_count - 1].t, last_start(history) + at.last->seconds);

    facts->after_s = fmax(0, history->last_t - end_t - history->profile.seconds);
}

void pace__verdict_from(const pace__history *history, double since_t, pace__verdict *verdict)
{
    pace__worked *roles = calloc(history->role_count ? history->role_count : 1, sizeof *roles);
    pace__verdict_facts facts = {.synchronous = is_synchronous(history) || has_rounds(history),
                                 .rounds = has_rounds(history),
                                 .averages = averages(history),
                                 .divides_evenly = divides_evenly(history),
                                 .backups = (int)fmin(INT16_MAX, fmax(0, setting(history, "backup-workers"))),
                                 .batch = setting(history, "batch"),
                                 .steps = steps_since(history, since_t),
                                 .threads = (int)history->threads,
                                 .memory_share = history->profile.share,
                                 .memory_gbytes_s = history->profile.gbytes_s,
                                 .peak_gbytes_s = history->profile.peak_gbytes_s,
                                 .chooses = chooses(history),
                                 .keeps_best = keeps_best(history),
                                 .roles = roles};

    *verdict = (pace__verdict){.who = -1};
    if (!roles)
        return;
    for (; facts.count < history->role_count; facts.count++) {
        roles[facts.count] = worked_of(history, &history->roles[facts.count], since_t);
        facts.ps += roles[facts.count].kind == PACE__PS;
        facts.has_evaluator |= roles[facts.count].kind == PACE__EVALUATOR;
    }
    facts.can_back_up = has_mode(history, "ps-sync") && facts.ps > 0;
    add_times(history, since_t, &facts);
    count_checkpoints(history, since_t, &facts);
    *verdict = pace__verdict_of(&facts);
    free(roles);
}

/* --- as JSON --- */

static void put_key(pace__json *json, const char *before, const char *key)
{
    pace__json_raw(json, before);
    pace__json_string(json, key);
    pace__json_raw(json, ": ");
}

static void put_taken(pace__json *json, const pace__verdict *verdict)
{
    put_key(json, ", ", "taken");
    for (pace__cause cause = PACE__CAUSE_NONE + 1; cause < PACE__CAUSES; cause++) {
        put_key(json, cause == PACE__CAUSE_NONE + 1 ? "{" : ", ", pace__cause_name(cause));
        pace__json_real(json, verdict->taken_s[cause]);
    }
    pace__json_raw(json, "}");
}

void pace__verdict_put(pace__json *json, const pace__history *history, const pace__verdict *verdict)
{
    if (verdict->cause == PACE__CAUSE_NONE) {
        pace__json_raw(json, "null");
        return;
    }
    put_key(json, "{", "cause");
    pace__json_string(json, pace__cause_name(verdict->cause));
    put_key(json, ", ", "who");
    if (verdict->who >= 0)
        pace__json_string(json, history->roles[verdict->who].name);
    else
        pace__json_raw(json, "null");
    put_key(json, ", ", "seconds");
    pace__json_real(json, verdict->all_s);
    put_key(json, ", ", "seconds_without");
    pace__json_real(json, verdict->without_s);
    put_taken(json, verdict);
    put_key(json, ", ", "evidence");
    pace__json_string(json, verdict->evidence);
    put_key(json, ", ", "advice");
    pace__json_string(json, verdict->advice);
    pace__json_raw(json, "}");
}
