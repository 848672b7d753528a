#include "localsgd/average.h"

#include "base/clock.h"
#include "launch/cluster.h"
#include "watch/spans.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BITS PACE__WORD_BITS

/* Floats of a row without the velocity, which stays with its owner. */
static size_t row_floats(const pace__table_plan *owned)
{
    return (size_t)owned->dim * (owned->optim.width - 1);
}

/* Bytes of a row in a message: to an owner, the number of steps goes with it. */
static size_t row_bytes(const pace__average *average, int tag)
{
    return (average->replica->floats + (tag == PACE__TAG_COLLECT)) * sizeof(float);
}

/* --- life --- */

static bool make_room(pace__average *average)
{
    average->touched = calloc(average->replica->places, sizeof *average->touched);
    average->changed = calloc(average->mail.words, sizeof *average->changed);
    average->sides = calloc(average->mail.workers, sizeof *average->sides);
    return average->touched && average->changed && average->sides;
}

pace_status pace__average_open(pace__average *average, pace__link *link, unsigned workers,
                               const pace__outer *outer, pace__table *replica, pace__table *table,
                               uint64_t place, const pace_log *log)
{
    assert(table->optim.velocity && replica->floats == row_floats(&table->plan));
    *average =
        (pace__average){.log = log, .outer = *outer, .replica = replica, .table = table, .place = place};
    pace_status status = pace__mail_open(&average->mail, link, workers, replica->places,
                                         row_bytes(average, PACE__TAG_COLLECT), log);

    if (!status && !make_room(average))
        status = pace_fail(log, PACE_FAILED, "out of memory for what is merged");
    return status;
}

void pace__average_close(pace__average *average)
{
    free(average->sides);
    free(average->changed);
    free(average->touched);
    pace__mail_close(&average->mail);
    *average = (pace__average){0};
}

/* --- collecting --- */

void pace__average_touch(pace__average *average, const uint32_t *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        average->touched[keys[i]]++;
}

static float *replica_at(const pace__average *average, uint64_t key)
{
    return average->replica->records + key * average->replica->stride;
}

static float *record_at(const pace__average *average, uint32_t place)
{
    return average->table->records + (size_t)place * average->table->stride;
}

/* The rows of an owner that were updated here. With an end nothing goes with it. */
static void pack(pace__average *average, unsigned owner, uint64_t place, const pace__trained *own)
{
    pace__mail_message to = pace__mail_at(&average->mail, average->mail.out, owner);
    size_t floats = average->replica->floats;
    float *next = to.rest;
    uint64_t count = 0, keys = average->replica->places;

    memset(to.bits, 0, average->mail.words * sizeof *to.bits);
    for (uint64_t key = owner, at = 0; !own->end && key < keys; key += average->mail.workers, at++) {
        if (average->touched[key] == 0)
            continue;
        to.bits[at / WORD_BITS] |= UINT64_C(1) << (at % WORD_BITS);
        memcpy(next, &average->touched[key], sizeof *next);
        memcpy(next + 1, replica_at(average, key), floats * sizeof *next);
        next += 1 + floats;
        count++;
    }
    *to.head = (pace__mail_head){average->place, place, own->rows, own->loss, count, own->end};
    average->keys_sent += owner == average->mail.self ? 0 : count;
}

/* Do all messages belong together? In the order of the workers, so that the sum of losses has the same bits. */
static pace_status check_all(pace__average *average, uint64_t place, pace__trained *all)
{
    const pace__mail *mail = &average->mail;
    pace_status status = PACE_OK;

    *all = (pace__trained){.end = pace__mail_of(mail, 0).head->end};
    for (unsigned i = 0; i < mail->workers && !status; i++) {
        const pace__mail_head *head = pace__mail_of(mail, i).head;

        if (i != mail->self)
            status = pace__mail_check(mail, i, mail->self, row_bytes(average, PACE__TAG_COLLECT));
        if (i != mail->self && !status)
            status = pace__mail_check_rows(mail, i, average->place, place);
        if (!status) {
            all->rows += head->rows;
            all->loss += head->loss;
        }
    }
    if (!status && !all->end)
        status = pace__mail_check_sum(mail, all->rows, place - average->place);
    return status;
}

/* --- merging --- */

/* Where a walk through all messages to this owner stands. */
typedef struct pass {
    const uint64_t *bits;
    const float *next;
} pass;

static void begin_pass(const pace__average *average, pass *passes)
{
    for (unsigned i = 0; i < average->mail.workers; i++) {
        pace__mail_message from = pace__mail_of(&average->mail, i);

        passes[i] = (pass){from.bits, from.rest};
    }
}

/* What each has made of a place. False: nobody has touched it. */
static bool find_sides(pace__average *average, pass *passes, uint32_t place)
{
    bool any = false;

    for (unsigned i = 0; i < average->mail.workers; i++) {
        pace__outer_side *side = &average->sides[i];

        *side = (pace__outer_side){0};
        if (!(passes[i].bits[place / WORD_BITS] >> (place % WORD_BITS) & 1))
            continue;
        memcpy(&side->steps, passes[i].next, sizeof side->steps);
        side->row = passes[i].next + 1;
        passes[i].next += 1 + average->replica->floats;
        any = true;
    }
    return any;
}

/* Steps that a row was updated in are at least one, and at most all. */
static bool sides_can_be(const pace__average *average, uint32_t steps)
{
    for (unsigned i = 0; i < average->mail.workers; i++) {
        if (average->sides[i].steps > steps || (average->sides[i].row && average->sides[i].steps == 0))
            return false;
    }
    return true;
}

static bool is_statistic(const pace__table *table, uint32_t place)
{
    return (uint64_t)place * table->plan.shards + table->plan.shard - table->plan.stats_first <
           table->plan.stats;
}

static pace_status merge(pace__average *average, uint32_t steps)
{
    const pace__table *table = average->table;
    pass passes[PACE__WORKERS_MAX];
    PACE__SPAN("merge");

    begin_pass(average, passes);
    memset(average->changed, 0, average->mail.words * sizeof *average->changed);
    for (uint32_t place = 0; place < table->places; place++) {
        if (!find_sides(average, passes, place))
            continue;
        if (!sides_can_be(average, steps))
            return pace_fail(average->log, PACE_BUG,
                             "a worker has updated parameters in none of %u steps, or in more", steps);
        average->changed[place / WORD_BITS] |= UINT64_C(1) << (place % WORD_BITS);
        if (is_statistic(table, place))
            pace__outer_merge_statistics(average->sides, average->mail.workers, steps, table->plan.dim,
                                         record_at(average, place));
        else
            pace__outer_merge(&average->outer, average->sides, average->mail.workers, steps, table->plan.dim,
                              table->optim.width - 1, record_at(average, place));
    }
    return PACE_OK;
}

pace_status pace__average_look(pace__average *average, bool *end)
{
    bool done;

    *end = false;
    if (average->mail.self == 0)
        return PACE_OK;
    pace_status status = pace__link_done(average->mail.link, &average->mail.receives[0], &done);

    if (!status && done && average->mail.receives[0].bytes >= sizeof(pace__mail_head))
        *end = pace__mail_at(&average->mail, average->mail.in, 0).head->end;
    return status;
}

static pace_status exchange(pace__average *average, uint64_t place, const pace__trained *own)
{
    pace__mail *mail = &average->mail;
    pace_status status = pace__mail_wait(mail, mail->sends, "what it has shared to leave");
    uint64_t start_ns = pace__now_ns();

    if (status)
        return status;
    for (unsigned step = 1; step <= mail->workers; step++) {
        unsigned owner = (mail->self + step) % mail->workers;

        pack(average, owner, place, own);
        if (owner != mail->self)
            pace__mail_send(mail, owner, PACE__TAG_COLLECT, mail->out + owner * mail->room,
                            row_bytes(average, PACE__TAG_COLLECT));
    }
    average->busy_ns += pace__now_ns() - start_ns;
    status = pace__mail_wait(mail, mail->receives, "what it has trained");
    return status ? status : pace__mail_wait(mail, mail->sends, "what it has trained to leave");
}

pace_status pace__average_collect(pace__average *average, uint64_t place, uint32_t steps,
                                  const pace__trained *own, pace__trained *all)
{
    pace_status status = exchange(average, place, own);
    uint64_t start_ns = pace__now_ns();

    if (!status)
        status = check_all(average, place, all);
    if (status || all->end) /* invariant 2 */
        return status;
    status = merge(average, steps);
    average->place = place;
    memset(average->touched, 0, average->replica->places * sizeof *average->touched);
    average->busy_ns += pace__now_ns() - start_ns;
    return status;
}

/* --- sharing --- */

static void take_over(pace__average *average, uint64_t key, const float *row)
{
    memcpy(replica_at(average, key), row, average->replica->floats * sizeof *row);
}

/* What has changed in the table, as a message to all, and in the own replica. */
static char *pack_shared(pace__average *average, bool end)
{
    pace__mail_message all = pace__mail_at(&average->mail, average->mail.out, average->mail.self);
    float *rows = all.rest;
    size_t floats = average->replica->floats;
    uint64_t count = 0;

    memset(all.bits, 0, average->mail.words * sizeof *all.bits);
    for (uint32_t word = 0; !end && word < average->mail.words; word++) {
        all.bits[word] = average->changed[word];
        for (uint64_t bits = all.bits[word]; bits; bits &= bits - 1) {
            uint32_t place = word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            const float *row = record_at(average, place);

            memcpy(rows + count++ * floats, row, floats * sizeof *row);
            take_over(average, (uint64_t)place * average->mail.workers + average->mail.self, row);
        }
    }
    *all.head =
        (pace__mail_head){.first = average->place, .last = average->place, .count = count, .end = end};
    return (char *)all.head;
}

static void use_shared(pace__average *average, unsigned owner)
{
    pace__mail_message from = pace__mail_at(&average->mail, average->mail.in, owner);
    const float *next = from.rest;

    for (uint32_t word = 0; word < average->mail.words; word++) {
        for (uint64_t bits = from.bits[word]; bits; bits &= bits - 1) {
            uint64_t place = (uint64_t)word * WORD_BITS + (unsigned)__builtin_ctzll(bits);

            take_over(average, place * average->mail.workers + owner, next);
            next += average->replica->floats;
        }
    }
}

pace_status pace__average_share(pace__average *average, bool end, bool *ended)
{
    pace__mail *mail = &average->mail;
    uint64_t start_ns = pace__now_ns();
    char *shared = pack_shared(average, end);
    PACE__SPAN("share");

    pace__mail_post(mail, PACE__TAG_BACK);
    for (unsigned step = 1; step < mail->workers; step++)
        pace__mail_send(mail, (mail->self + step) % mail->workers, PACE__TAG_BACK, shared,
                        row_bytes(average, PACE__TAG_BACK));
    average->busy_ns += pace__now_ns() - start_ns;
    pace_status status = pace__mail_wait(mail, mail->receives, "what it has merged");

    start_ns = pace__now_ns();
    *ended = end;
    for (unsigned i = 0; i < mail->workers && !status; i++) {
        if (i == mail->self)
            continue;
        status = pace__mail_check(mail, i, i, row_bytes(average, PACE__TAG_BACK));
        if (!status)
            status = pace__mail_check_rows(mail, i, average->place, average->place);
        if (status)
            break;
        use_shared(average, i);
        *ended |= i == 0 && pace__mail_at(mail, mail->in, i).head->end;
    }
    if (!status && !*ended)
        pace__mail_post(mail, PACE__TAG_COLLECT); /* invariant 4 */
    average->busy_ns += pace__now_ns() - start_ns;
    return status;
}

pace_status pace__average_begin(pace__average *average)
{
    bool ended;

    for (uint32_t place = 0; place < average->table->places; place++)
        average->changed[place / WORD_BITS] |= UINT64_C(1) << (place % WORD_BITS);
    return pace__average_share(average, false, &ended);
}
