#include "roles/sharing.h"

#include "base/clock.h"
#include "base/kept.h"
#include "ps/wire.h"
#include "ranks/aside.h"
#include "run/shares.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From a point to the first step that goes by what was decided there: invariant 2. */
#define LAG 2
/* A process's first steps are slower than those behind them: pages, caches, connections. */
#define WARM_STEPS 4
/* --balance off: how many steps are looked at, how often, and from which gain on it is worth a word. */
#define LOOK_STEPS 32
#define LOOK_EVERY 4
#define LOOK_GAIN  0.15
/* What steps cost is recorded with every change, and else so often. */
#define COSTS_EVERY_NS UINT64_C(1000000000)
/* Changes that are said, and not only recorded. */
#define SAID_MAX  5
#define ROWS_TEXT 256

/* What the chief tells: the steps before known_before are known with it. */
struct pace__sharing_word {
    uint64_t from, known_before;
    uint64_t workers; /* whose rows follow; 0: nothing changes */
    uint32_t rows[];
};

/* Of a worker, at the chief. */
struct pace__sharing_box {
    pace__timing timing; /* belongs to the receive */
    pace__request receive, send;
};

static const pace__job_plan *plan_of(const pace__sharing *sharing)
{
    return &sharing->process->job->plan;
}

static unsigned workers_of(const pace__sharing *sharing)
{
    return (unsigned)plan_of(sharing)->cluster.workers;
}

static bool is_chief(const pace__sharing *sharing)
{
    return sharing->process->self.number == 0;
}

static pace__link *link_of(const pace__sharing *sharing)
{
    return sharing->process->self.link;
}

static bool divides(const pace__sharing *sharing)
{
    return plan_of(sharing)->balancing != PACE__BALANCE_OFF;
}

static size_t word_bytes(unsigned workers)
{
    return sizeof(pace__sharing_word) + workers * sizeof(uint32_t);
}

/* The first step that waits for a word which is not yet due, or was not told, when `step` steps are done: that of the next
 * point whose steps are behind `told`, all of which are known. */
static uint64_t next_unknown(const pace__sharing *sharing, uint64_t step, uint64_t told)
{
    uint64_t every = sharing->every;

    if (every == 0)
        return UINT64_MAX;
    uint64_t point = (step / every + 1) * every;

    if (told >= point + LAG)
        point = ((told - LAG) / every + 1) * every;
    return point + LAG;
}

/* --- what everyone does --- */

bool pace__sharing_knows(const pace__sharing *sharing, uint64_t step)
{
    return !divides(sharing) || step < sharing->known_before;
}

const uint32_t *pace__sharing_at(const pace__sharing *sharing, uint64_t step)
{
    assert(pace__sharing_knows(sharing, step)); /* invariant 1 */
    return divides(sharing) ? pace__divisions_at(sharing->divisions, step) : NULL;
}

static void await_word(pace__sharing *sharing)
{
    if (sharing->known_before < plan_of(sharing)->steps)
        pace__link_receive(link_of(sharing), 0, PACE__TAG_SHARES, sharing->word,
                           word_bytes(workers_of(sharing)), &sharing->receive);
}

static bool is_division(const pace__sharing *sharing, const pace__sharing_word *word)
{
    const pace__job_plan *plan = plan_of(sharing);
    uint64_t sum = 0;

    if (word->workers != workers_of(sharing))
        return false;
    for (unsigned i = 0; i < word->workers; i++) {
        if (word->rows[i] > plan->rows_max)
            return false;
        sum += word->rows[i];
    }
    return sum == plan->order.batch;
}

/* What is known is not taken back. */
static bool word_fits(const pace__sharing *sharing, const pace__sharing_word *word, size_t bytes)
{
    return bytes >= sizeof *word && word->known_before >= sharing->known_before &&
           word->known_before >= word->from &&
           (word->workers == 0 ? bytes == sizeof *word
                               : bytes == word_bytes((unsigned)word->workers) && is_division(sharing, word));
}

static pace_status take_word(pace__sharing *sharing, uint64_t step)
{
    const pace__sharing_word *word = sharing->word;

    if (!word_fits(sharing, word, sharing->receive.bytes))
        return pace_fail(sharing->process->job->log, PACE_BUG, "%s divides steps in a way that cannot be",
                         pace__link_name(link_of(sharing), 0));
    pace__divisions_forget(sharing->divisions, step);
    if (word->workers > 0 &&
        !pace__divisions_add(sharing->divisions, word->from, (unsigned)word->workers, word->rows))
        return pace_fail(sharing->process->job->log, PACE_FAILED, "out of memory");
    sharing->known_before = word->known_before;
    await_word(sharing);
    return PACE_OK;
}

pace_status pace__sharing_poll(pace__sharing *sharing, uint64_t step, bool *busy)
{
    bool came = true;

    while (came && sharing->receive.active) {
        pace_status status = pace__link_done(link_of(sharing), &sharing->receive, &came);

        if (!status && came) {
            *busy = true;
            status = take_word(sharing, step);
        }
        if (status)
            return status;
    }
    return PACE_OK;
}

/* One that is still on its way takes this one's place: what was measured goes with the next. */
static void report(pace__sharing *sharing)
{
    bool left = true;

    if (sharing->send.active && pace__link_done(link_of(sharing), &sharing->send, &left))
        return; /* whoever waits next is told */
    if (!left)
        return;
    *sharing->sent = sharing->timing;
    sharing->timing = (pace__timing){0};
    pace__link_send(link_of(sharing), 0, PACE__TAG_SPEED, sharing->sent, sizeof *sharing->sent,
                    &sharing->send);
}

void pace__sharing_computed(pace__sharing *sharing, uint64_t step, double rows, double seconds)
{
    uint64_t every = divides(sharing) ? sharing->every : LOOK_EVERY;

    if (!sharing->measures || step < sharing->warm_step || every == 0) /* 0: nobody would listen */
        return;
    pace__timing_add(&sharing->timing, rows, seconds);
    if ((step + 1) % every == 0 && !is_chief(sharing))
        report(sharing);
    if (!divides(sharing) && step + 1 >= sharing->warm_step + LOOK_STEPS && !is_chief(sharing))
        sharing->measures = false;
}

/* --- the chief --- */

static void await_timing(pace__sharing *sharing, unsigned worker)
{
    pace__sharing_box *box = &sharing->boxes[worker];

    pace__link_receive(link_of(sharing), (int)worker, PACE__TAG_SPEED, &box->timing, sizeof box->timing,
                       &box->receive);
}

/* Invariant 4. */
static pace_status take_timings(pace__sharing *sharing)
{
    pace__balance_learn(&sharing->balance, 0, &sharing->timing);
    sharing->timing = (pace__timing){0};
    for (unsigned worker = 1; worker < workers_of(sharing); worker++) {
        pace__sharing_box *box = &sharing->boxes[worker];
        bool came = true;

        while (came) {
            pace_status status = pace__link_done(link_of(sharing), &box->receive, &came);

            if (!status && !came)
                break;
            if (!status)
                status = pace__link_fits(link_of(sharing), &box->receive, sizeof box->timing,
                                         "what it has measured");
            if (!status && !pace__timing_is_valid(&box->timing))
                status = pace_fail(sharing->process->job->log, PACE_BUG, "%s has measured what cannot be",
                                   pace__link_name(link_of(sharing), (int)worker));
            if (status)
                return status;
            pace__balance_learn(&sharing->balance, worker, &box->timing);
            await_timing(sharing, worker);
        }
    }
    return PACE_OK;
}

static pace_status await_told(pace__sharing *sharing)
{
    pace_status status = PACE_OK;

    for (unsigned worker = 1; worker < workers_of(sharing) && !status; worker++)
        status =
            pace__link_wait(link_of(sharing), &sharing->boxes[worker].send, "how steps are divided to leave");
    return status;
}

/* Few words, and everyone wants the last one before long: it is waited for. Who knows all steps does not listen any more
 * (await_word): what is recorded may go on behind the last one. */
static pace_status tell(pace__sharing *sharing, uint64_t from, uint64_t known_before, const uint32_t *rows)
{
    unsigned workers = workers_of(sharing);

    if (sharing->known_before >= plan_of(sharing)->steps)
        return PACE_OK;
    pace_status status = await_told(sharing);

    if (status)
        return status;
    *sharing->word =
        (pace__sharing_word){.from = from, .known_before = known_before, .workers = rows ? workers : 0};
    if (rows)
        memcpy(sharing->word->rows, rows, workers * sizeof *rows);
    for (unsigned worker = 1; worker < workers; worker++)
        pace__link_send(link_of(sharing), (int)worker, PACE__TAG_SHARES, sharing->word,
                        word_bytes(rows ? workers : 0), &sharing->boxes[worker].send);
    sharing->known_before = known_before;
    return PACE_OK;
}

typedef struct line {
    const pace__sharing *sharing;
    uint64_t from;
    const uint32_t *rows;
    double gain;
    const pace_log *log;
} line;

static pace_status append_line(void *user)
{
    const line *self = user;
    pace__job *job = self->sharing->process->job;

    return pace__shares_append(pace__rundir_path(job->run, PACE__RUN_SHARES), self->from,
                               workers_of(self->sharing), self->rows, self->gain, self->log);
}

/* Invariant 3. */
static pace_status set_division(pace__sharing *sharing, uint64_t from, const uint32_t *rows, double gain,
                                const pace_log *log)
{
    line written = {sharing, from, rows, gain, log};
    pace_status status = pace__rank_aside_if(&sharing->process->self, &sharing->slow, "writing shares.jsonl",
                                             append_line, &written);

    if (!status && !pace__divisions_add(sharing->divisions, from, workers_of(sharing), rows))
        status = pace_fail(sharing->process->job->log, PACE_FAILED, "out of memory");
    return status;
}

static const char *rows_text(const pace__sharing *sharing, char text[ROWS_TEXT])
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < workers_of(sharing) && used < ROWS_TEXT - 16; i++)
        used += (size_t)snprintf(text + used, ROWS_TEXT - used, "%s%" PRIu32, i ? " " : "", sharing->next[i]);
    if (used >= ROWS_TEXT - 16)
        snprintf(text + used, ROWS_TEXT - used, " ...");
    return text;
}

static void say_change(pace__sharing *sharing, uint64_t from, double gain)
{
    pace__job *job = sharing->process->job;
    char text[ROWS_TEXT];
    pace_field fields[] = {PACE_INT("step", from), PACE_REAL("gain", gain),
                           PACE_TEXT("rows", rows_text(sharing, text))};

    pace_registry_emit(job->registry, "shares", fields, sizeof fields / sizeof *fields);
    pace_say(job->log, job->share_changes <= SAID_MAX ? PACE_INFO : PACE_DEBUG,
             "from step %" PRIu64 " on the workers have %s of %" PRIu64
             " rows: steps are expected to be %.0f %% shorter%s",
             from, text, plan_of(sharing)->order.batch, 100 * gain,
             job->share_changes == SAID_MAX ? " (further changes are only recorded: shares.jsonl)" : "");
}

/* From what a decision was made, or why there was none: what is known of steps with the rows that workers have. */
static void record_costs(pace__sharing *sharing, uint64_t point, const uint32_t *rows)
{
    pace__job *job = sharing->process->job;

    for (unsigned i = 0; i < workers_of(sharing); i++) {
        pace__cost cost = pace__balance_cost(&sharing->balance, i);
        char role[PACE__ROLE_TEXT];

        if (isnan(cost.row_s)) /* nothing is known yet */
            continue;
        pace_field fields[] = {PACE_TEXT("role", role),
                               PACE_INT("step", point),
                               PACE_INT("rows", rows[i]),
                               PACE_REAL("step_s", cost.fixed_s + cost.row_s * rows[i]),
                               PACE_REAL("fixed_s", cost.fixed_s),
                               PACE_REAL("error", cost.noise)};

        pace__role_name(&job->plan.cluster, (int)i, role);
        pace_registry_emit(job->registry, "cost", fields, sizeof fields / sizeof *fields);
    }
    sharing->recorded_ns = pace__now_ns();
}

static pace_status decide(pace__sharing *sharing, uint64_t point)
{
    uint64_t from = point + LAG;
    double gain;
    pace_status status = PACE_OK;
    const pace__job *job = sharing->process->job;
    char reason[PACE_LOG_TEXT_MAX] = "";
    pace__kept kept;

    pace__kept_init(&kept, reason, sizeof reason);
    const uint32_t *now = pace__divisions_at(sharing->divisions, from);
    bool better = pace__balance_decide(&sharing->balance, now, sharing->next, &gain);

    if (better || pace__now_ns() - sharing->recorded_ns >= COSTS_EVERY_NS)
        record_costs(sharing, point, now);
    if (better)
        status = set_division(sharing, from, sharing->next, gain, &kept.log);
    if (status == PACE_IO) { /* a disk that is full, say: nothing changes, and nobody has heard of it */
        pace_say(job->log, PACE_WARN, "%s; the shares of the workers stay as they are", reason);
        better = false;
        status = PACE_OK;
    }
    if (better && !status) {
        sharing->process->job->share_changes++;
        say_change(sharing, from, gain);
    }
    pace__divisions_forget(sharing->divisions, point);
    return status ? status : tell(sharing, from, from + sharing->every, better ? sharing->next : NULL);
}

/* --balance off: what would it bring? */
static pace_status look(pace__sharing *sharing, uint64_t step)
{
    pace__job *job = sharing->process->job;
    double gain;

    if (step % LOOK_EVERY != 0)
        return PACE_OK;
    pace_status status = take_timings(sharing);

    if (status || step < sharing->warm_step + LOOK_STEPS)
        return status;
    sharing->measures = false;
    pace__share_evenly(plan_of(sharing)->order.batch, workers_of(sharing), sharing->next);
    uint32_t *now = calloc(workers_of(sharing), sizeof *now);

    if (!now)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    memcpy(now, sharing->next, workers_of(sharing) * sizeof *now);
    if (pace__balance_decide(&sharing->balance, now, sharing->next, &gain) && gain > LOOK_GAIN &&
        !job->config->resume)
        pace_say(job->log, PACE_INFO,
                 "the workers are not equally fast: --balance auto would give them shares of a step by their "
                 "speed, and make steps about %.0f %% shorter",
                 100 * gain);
    free(now);
    return PACE_OK;
}

pace_status pace__sharing_act(pace__sharing *sharing, uint64_t step)
{
    if (!is_chief(sharing) || !sharing->measures)
        return PACE_OK;
    if (!divides(sharing))
        return look(sharing, step);
    if (sharing->every == 0 || step % sharing->every != 0)
        return PACE_OK;
    pace_status status = take_timings(sharing); /* also where nothing is decided: they do not pile up */

    if (status || step + LAG != sharing->known_before || sharing->known_before >= plan_of(sharing)->steps)
        return status; /* a point that was passed by (invariant 3), or nobody listens any more */
    return decide(sharing, step);
}

/* --- life --- */

/* What is recorded goes to everyone at once, however much it is; the first word has the division of the first step. */
static pace_status tell_recorded(pace__sharing *sharing, uint64_t step)
{
    const pace__divisions *divisions = sharing->divisions;
    unsigned workers = workers_of(sharing);
    uint64_t last = divisions->from[divisions->count - 1];
    pace_status status = PACE_OK;

    for (size_t i = 0; i < divisions->count && !status; i++)
        status = tell(sharing, divisions->from[i], i + 1 < divisions->count ? divisions->from[i + 1] : last,
                      divisions->rows + i * workers);
    if (!status)
        status = tell(sharing, last, next_unknown(sharing, step, last), NULL);
    return status ? status : await_told(sharing); /* whoever opens waits for the last of it */
}

/* The division of the first step is one of so many workers, or even shares, which are then recorded. */
static pace_status begin(pace__sharing *sharing)
{
    pace__job *job = sharing->process->job;
    uint64_t step = job->position.step;
    const uint32_t *now = pace__divisions_at(sharing->divisions, step);

    if (!now || sharing->divisions->workers != workers_of(sharing)) {
        pace__share_evenly(plan_of(sharing)->order.batch, workers_of(sharing), sharing->next);
        pace_status status = set_division(sharing, step, sharing->next, 0, job->log);

        if (status)
            return status;
    }
    pace__divisions_forget(sharing->divisions, step);
    return tell_recorded(sharing, step);
}

static pace_status open_chief(pace__sharing *sharing)
{
    pace__job *job = sharing->process->job;
    unsigned workers = workers_of(sharing);
    pace_status status = pace__balance_open(&sharing->balance, workers, job->plan.order.batch, job->log);

    sharing->divisions = &job->divisions;
    sharing->boxes = calloc(workers, sizeof *sharing->boxes);
    sharing->next = calloc(workers, sizeof *sharing->next);
    if (!status && (!sharing->boxes || !sharing->next))
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    for (unsigned worker = 1; worker < workers && !status; worker++)
        await_timing(sharing, worker);
    return status || !divides(sharing) ? status : begin(sharing);
}

/* All of it before the first step: in that one everyone may wait for the chief, who waits until what it tells is received. */
static pace_status hear_recorded(pace__sharing *sharing)
{
    pace_status status = PACE_OK;
    bool more = true;

    await_word(sharing);
    while (!status && more && sharing->receive.active) {
        status = pace__link_wait(link_of(sharing), &sharing->receive, "how steps are divided");
        more = sharing->word->workers >
               0; /* the last word says that nothing changes; the next takes its place */
        if (!status)
            status = take_word(sharing, sharing->process->job->position.step);
    }
    return status;
}

pace_status pace__sharing_open(pace__sharing *sharing, pace__process *process)
{
    const pace__job *job = process->job;
    unsigned workers = (unsigned)job->plan.cluster.workers;

    *sharing =
        (pace__sharing){.process = process,
                        .every = job->plan.balance_every,
                        .measures = workers > 1 && pace__plan_is_sync(&job->plan) && !job->plan.backups,
                        .warm_step = job->position.step + WARM_STEPS,
                        .divisions = &sharing->own,
                        .slow = true};
    sharing->word = calloc(1, word_bytes(workers));
    sharing->sent = calloc(1, sizeof *sharing->sent);
    if (!sharing->word || !sharing->sent)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    if (!sharing->measures)
        return PACE_OK;
    if (is_chief(sharing))
        return open_chief(sharing);
    return divides(sharing) ? hear_recorded(sharing) : PACE_OK;
}

/* Invariant 5. False: MPI may still read what is sent, so that it has to stay in place. */
static bool leave(pace__link *link, pace__request *send)
{
    bool left;

    if (send->active)
        pace__link_done(link, send, &left); /* most have left long ago */
    return pace__link_abandon(link, send);
}

void pace__sharing_close(pace__sharing *sharing)
{
    if (!sharing->process)
        return;
    pace__link *link = link_of(sharing);
    bool is_told = true;

    pace__link_cancel(link, &sharing->receive);
    for (unsigned worker = 1; sharing->boxes && worker < workers_of(sharing); worker++) {
        pace__link_cancel(link, &sharing->boxes[worker].receive);
        is_told &= leave(link, &sharing->boxes[worker].send);
    }
    if (leave(link, &sharing->send))
        free(sharing->sent);
    if (is_told)
        free(sharing->word);
    free(sharing->boxes);
    free(sharing->next);
    pace__balance_close(&sharing->balance);
    pace__divisions_release(&sharing->own);
    *sharing = (pace__sharing){0};
}
