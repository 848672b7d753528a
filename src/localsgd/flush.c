#include "localsgd/flush_merge.h"

#include "base/clock.h"
#include "base/memory.h"
#include "launch/cluster.h"
#include "watch/spans.h"

#include <stdlib.h>
#include <string.h>

/* A tag that this mode has no other use for; it counts as training (roles/reports.c). */
#define TAG_PART  PACE__TAG_TICKET
#define WORD_BITS PACE__WORD_BITS

/* A message, taken apart. Of one that travels narrow, `narrow` begins where `points` do. */
typedef struct message {
    pace__mail_head *head;
    uint64_t *bits;
    pace__flow_point *points;
    pace__flow_narrow *narrow;
} message;

/* --- life --- */

static message taken_apart(pace__mail_message it)
{
    return (message){it.head, it.bits, it.rest, it.rest};
}

static message message_to(const pace__flush *flush, unsigned owner)
{
    return taken_apart(pace__mail_at(&flush->mail, flush->mail.out, owner));
}

static message message_from(const pace__flush *flush, unsigned worker)
{
    return taken_apart(pace__mail_at(&flush->mail, flush->mail.in, worker));
}

static size_t size_of(bool narrow)
{
    return narrow ? sizeof(pace__flow_narrow) : sizeof(pace__flow_point);
}

static bool make_room(pace__flush *flush)
{
    unsigned workers = flush->mail.workers;

    flush->base = pace__pages_alloc(flush->base_bytes);
    flush->changed = calloc(flush->mail.words, sizeof *flush->changed);
    flush->filled = calloc(workers, sizeof *flush->filled);
    flush->parts = calloc(workers, sizeof *flush->parts);
    flush->sides = malloc(workers * 2 * (PACE__FLOW_BLOCK + 1) * sizeof *flush->sides);
    return flush->base && flush->changed && flush->filled && flush->parts && flush->sides;
}

/* Fresh pages cost time, and this is the time for it. */
static void touch_pages(pace__mail *mail)
{
    memset(mail->out, 0, mail->workers * mail->room);
    for (unsigned i = 0; i < mail->workers; i++)
        memset(mail->in + i * mail->room, 0, i == mail->self ? 0 : mail->room);
}

pace_status pace__flush_open(pace__flush *flush, pace__link *link, unsigned workers, pace__logreg *model,
                             pace__table *table, uint64_t place, bool narrow, const pace_log *log)
{
    size_t bytes = (size_t)model->ids * model->optim.width * sizeof(float);

    *flush = (pace__flush){.narrow = narrow,
                           .model = model,
                           .table = table,
                           .optim = model->optim,
                           .place = place,
                           .base_bytes = bytes + 64};
    pace_status status =
        pace__mail_open(&flush->mail, link, workers, (uint64_t)model->ids + 1, sizeof(pace__flow_point), log);

    if (status)
        return status;
    if (!make_room(flush))
        return pace_fail(log, PACE_FAILED, "out of memory for what is merged");
    memcpy(flush->base, model->parameters, bytes);
    touch_pages(&flush->mail);
    flush->bias_n = pace__flow_pack(&model->optim, model->bias).n;
    return PACE_OK;
}

void pace__flush_close(pace__flush *flush)
{
    pace__mail_close(&flush->mail); /* first: parts may be on their way */
    free(flush->sides);
    free(flush->parts);
    free(flush->filled);
    free(flush->changed);
    pace__pages_free(flush->base, flush->base_bytes);
    *flush = (pace__flush){0};
}

/* --- without messages --- */

/* In their bits. AdaGrad has two floats. */
static bool differ(const float *a, const float *b, unsigned width)
{
    uint64_t x, y;

    if (width != 2)
        return memcmp(a, b, width * sizeof *a) != 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x != y;
}

/* A key's parameter is the same everywhere: it goes to where it is kept. */
static void put(pace__flush *flush, uint64_t key)
{
    unsigned width = flush->model->optim.width;
    const float *parameter = pace__replica_at(flush->model, key);

    if (key % flush->mail.workers == flush->mail.self)
        memcpy(pace__flush_record(flush, (uint32_t)(key / flush->mail.workers)), parameter,
               width * sizeof *parameter);
    if (key < flush->model->ids)
        memcpy(flush->base + key * width, parameter, width * sizeof *parameter);
}

void pace__flush_put(pace__flush *flush, const uint32_t *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        put(flush, keys[i]);
}

/*
 * FTRL's weights follow from its state and the rate: a parameter that nobody has changed for long has the weight of an
 * earlier rate; one with a lazy penalty has that of an earlier row. Behind a flush all have those of the flush, so that a
 * job that goes on from there has the same, and nobody needs to know more than the two floats that travel.
 */
static void settle(const pace__flush *flush, float *parameter)
{
    pace__flow_unpack_at(&flush->optim, pace__flow_pack_at(&flush->optim, parameter, flush->place),
                         flush->place, parameter);
}

static bool has_to_settle(const pace__flush *flush)
{
    return flush->optim.kind == PACE_FTRL || flush->optim.lazy;
}

static void settle_table(pace__flush *flush)
{
    for (uint32_t place = 0; has_to_settle(flush) && place < flush->table->places; place++) {
        if (!flush->optim.lazy || place != flush->table->free_place) /* the bias has no penalty */
            settle(flush, pace__flush_record(flush, place));
    }
}

static void settle_replica(pace__flush *flush)
{
    unsigned width = flush->optim.width;

    for (uint64_t key = 0; has_to_settle(flush) && key < flush->model->ids; key++) {
        float *parameter = pace__replica_at(flush->model, key);

        settle(flush, parameter);
        memcpy(flush->base + key * width, parameter, width * sizeof *parameter);
    }
    if (!flush->optim.lazy)
        settle(flush, flush->model->bias);
}

void pace__flush_agree(pace__flush *flush, const pace__optim *optim, uint64_t place)
{
    put(flush, flush->model->ids);
    flush->bias_n = pace__flow_pack(optim, flush->model->bias).n;
    flush->place = place;
    flush->optim = *optim;
    settle_table(flush);
    settle_replica(flush);
}

/* --- collecting --- */

/* 64 places of an owner, whose keys lie `workers` apart: parameters that differ from base go to it. Which do cannot be
 * foreseen, so there is no branch: the next one is written in any case. */
static void pack_word(const pace__flush *flush, const pace__optim *rule, unsigned owner, uint32_t word,
                      message *to)
{
    unsigned width = rule->width, workers = flush->mail.workers;
    uint64_t first = (uint64_t)word * WORD_BITS * workers + owner, ids = flush->model->ids;
    uint64_t last = first + (uint64_t)WORD_BITS * workers, bits = 0, bit = 1;
    pace__flow_point *next = to->points + flush->filled[owner];

    for (uint64_t key = first; key < last && key < ids; key += workers, bit <<= 1) {
        const float *now = flush->model->parameters + key * width;
        bool other = differ(now, flush->base + key * width, width);

        *next = pace__flow_pack(rule, now);
        next += other;
        bits |= other ? bit : 0;
    }
    to->bits[word] = bits;
    flush->filled[owner] = (size_t)(next - to->points);
}

/* Lazy penalties of what goes to an owner, up to row `place`. */
static void bring_up(const pace__flush *flush, const pace__optim *rule, uint64_t place, unsigned owner,
                     message *to)
{
    pace__flow_point *next = to->points;

    for (uint32_t word = 0; word < flush->mail.words; word++) {
        for (uint64_t bits = to->bits[word]; bits; bits &= bits - 1) {
            uint64_t at = (uint64_t)word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            uint64_t key = at * flush->mail.workers + owner;

            *next++ = pace__flow_pack_at(rule, flush->model->parameters + key * rule->width, place);
        }
    }
}

static const float *base_at(const pace__flush *flush, uint64_t key)
{
    return flush->base + key * flush->model->optim.width;
}

/* What goes to another owner on a narrow wire: over the parameters, which are not needed any more. */
static void round_changes(const pace__flush *flush, const pace__optim *rule, uint64_t place, unsigned owner,
                          message *to)
{
    pace__flow_narrow *next = to->narrow;

    for (uint32_t word = 0; word < flush->mail.words; word++) {
        for (uint64_t bits = to->bits[word]; bits; bits &= bits - 1) {
            uint64_t at = (uint64_t)word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            uint64_t key = at * flush->mail.workers + owner;
            const float *now = flush->model->parameters + key * rule->width;

            *next++ =
                pace__flow_round(pace__flow_change(rule, pace__flow_pack_at(rule, now, place),
                                                   pace__flow_pack_at(rule, base_at(flush, key), place)));
        }
    }
}

static void pack(pace__flush *flush, const pace__optim *optim, uint64_t place, uint64_t rows)
{
    message to[PACE__WORKERS_MAX];
    PACE__SPAN("find changes");

    for (unsigned owner = 0; owner < flush->mail.workers; owner++)
        to[owner] = message_to(flush, owner);
    const pace__optim rule = *optim; /* stays in registers */

    memset(flush->filled, 0, flush->mail.workers * sizeof *flush->filled);
    for (uint32_t word = 0; word < flush->mail.words; word++) {
        for (unsigned owner = 0; owner < flush->mail.workers; owner++)
            pack_word(flush, &rule, owner, word, &to[owner]);
    }
    for (unsigned owner = 0; owner < flush->mail.workers; owner++) {
        if (flush->narrow && owner != flush->mail.self)
            round_changes(flush, &rule, place, owner, &to[owner]);
        else if (rule.lazy)
            bring_up(flush, &rule, place, owner, &to[owner]);
        *to[owner].head = (pace__mail_head){
            .first = flush->place, .last = place, .rows = rows, .count = flush->filled[owner]};
        flush->keys_sent += owner == flush->mail.self ? 0 : flush->filled[owner];
    }
}

/* A narrow message becomes a wide one, in its place: the parameters as its sender has them, but for what was rounded. From
 * the last one on, since each needs the room of two. */
static void widen(const pace__flush *flush, const pace__optim *optim, uint64_t place, unsigned from)
{
    const pace__optim rule = *optim; /* stays in registers */
    message it = message_from(flush, from);
    uint64_t left = it.head->count;

    for (uint32_t word = flush->mail.words; word-- > 0;) {
        for (uint64_t bits = it.bits[word]; bits;) {
            unsigned bit = WORD_BITS - 1 - (unsigned)__builtin_clzll(bits);
            const float *record = pace__flush_record(flush, word * WORD_BITS + bit);
            pace__flow_narrow change;

            left--;
            memcpy(&change, &it.narrow[left], sizeof change);
            pace__flow_point now =
                pace__flow_moved(&rule, pace__flow_pack_at(&rule, record, place), pace__flow_widen(change));

            memcpy(&it.points[left], &now, sizeof now);
            bits ^= UINT64_C(1) << bit;
        }
    }
}

/* The damping over all owners' keys. */
static pace_status agree_on_damping(pace__flush *flush, const pace__optim *optim)
{
    pace__mail *mail = &flush->mail;
    pace__damping sum = {0}, *own = &flush->parts[mail->self];
    pace_status status = PACE_OK;

    *own = pace__flush_measure(flush, optim);
    for (unsigned i = 0; i < mail->workers; i++) {
        if (i == mail->self)
            continue;
        pace__link_receive(mail->link, (int)i, TAG_PART, &flush->parts[i], sizeof *own, &mail->receives[i]);
        pace__link_send(mail->link, (int)i, TAG_PART, own, sizeof *own, &mail->sends[i]);
    }
    status = pace__mail_wait(mail, mail->receives, "its part of a flush");
    for (unsigned i = 0; i < mail->workers && !status; i++) {
        if (i != mail->self)
            status = pace__link_fits(mail->link, &mail->receives[i], sizeof *own, "a part of a flush");
        sum.a += flush->parts[i].a;
        sum.a2 += flush->parts[i].a2;
    }
    sum.bias_q = (double)(pace__flow_pack(optim, flush->model->bias).n - flush->bias_n) / mail->workers;
    if (!status)
        flush->damping = pace__damping_of(&sum, 0);
    return status ? status : pace__mail_wait(mail, mail->sends, "its part of a flush to leave");
}

/* What will be shared, in the own message, which is merged by now: the changes of what is in the table, rounded; and the
 * table becomes what they say. */
static void round_table(pace__flush *flush, const pace__optim *optim, uint64_t place)
{
    const pace__optim rule = *optim; /* stays in registers */
    pace__flow_narrow *next = message_to(flush, flush->mail.self).narrow;
    PACE__SPAN("round");

    for (uint32_t word = 0; word < flush->mail.words; word++) {
        for (uint64_t bits = flush->changed[word]; bits; bits &= bits - 1) {
            uint32_t at = word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            uint64_t key = (uint64_t)at * flush->mail.workers + flush->mail.self;
            float *record = pace__flush_record(flush, at);
            pace__flow_point before = pace__flow_pack_at(&rule, base_at(flush, key), place);
            pace__flow_narrow change =
                pace__flow_round(pace__flow_change(&rule, pace__flow_pack_at(&rule, record, place), before));

            pace__flow_unpack_at(&rule, pace__flow_moved(&rule, before, pace__flow_widen(change)), place,
                                 record);
            *next++ = change;
        }
    }
}

/* Invariant 3: together all have trained each row once. */
static pace_status check_all(const pace__flush *flush, uint64_t place, uint64_t rows)
{
    const pace__mail *mail = &flush->mail;
    pace_status status = PACE_OK;

    for (unsigned i = 0; i < mail->workers && !status; i++) {
        if (i == mail->self)
            continue;
        status = pace__mail_check(mail, i, mail->self, size_of(flush->narrow));
        if (!status)
            status = pace__mail_check_rows(mail, i, flush->place, place);
        rows += message_from(flush, i).head->rows;
    }
    return status ? status : pace__mail_check_sum(mail, rows, place - flush->place);
}

pace_status pace__flush_collect(pace__flush *flush, const pace__optim *optim, uint64_t place, uint64_t rows)
{
    pace__mail *mail = &flush->mail;
    uint64_t start_ns = pace__now_ns(), waited_ns;
    pace_status status = pace__mail_wait(mail, mail->sends, "what it has shared to leave");

    if (status)
        return status;
    pace__mail_post(mail, PACE__TAG_COLLECT);
    pack(flush, optim, place, rows);
    for (unsigned step = 1; step < mail->workers; step++) {
        unsigned owner = (mail->self + step) % mail->workers;

        pace__mail_send(mail, owner, PACE__TAG_COLLECT, mail->out + owner * mail->room,
                        size_of(flush->narrow));
    }
    waited_ns = pace__now_ns();
    status = pace__mail_wait(mail, mail->receives, "what it has changed");
    if (!status)
        status = check_all(flush, place, rows);
    if (!status) /* the same requests are needed again */
        status = pace__mail_wait(mail, mail->sends, "what it has changed to leave");
    waited_ns = pace__now_ns() - waited_ns;
    for (unsigned i = 0; flush->narrow && i < mail->workers && !status; i++) {
        if (i != mail->self)
            widen(flush, optim, place, i);
    }
    if (!status)
        status = agree_on_damping(flush, optim);
    if (status)
        return status;
    pace__flush_merge(flush, optim, place);
    if (flush->narrow)
        round_table(flush, optim, place);
    flush->bias_n = pace__flow_pack(optim, flush->model->bias).n;
    flush->place = place;
    flush->optim = *optim;
    settle_table(flush);
    flush->busy_ns += pace__now_ns() - start_ns - waited_ns;
    return PACE_OK;
}

/* --- sharing --- */

/* A merged parameter, in the replica; the bias has no base. */
static void take_over(pace__flush *flush, uint64_t key, pace__flow_point packed)
{
    if (key == flush->model->ids) {
        pace__flow_unpack(&flush->optim, packed, flush->model->bias);
        return;
    }
    pace__flow_unpack_at(&flush->optim, packed, flush->place, pace__replica_at(flush->model, key));
    pace__flow_unpack_at(&flush->optim, packed, flush->place, flush->base + key * flush->model->optim.width);
}

/* What has changed in the table, as a message to all, and in the own replica. A narrow one has its changes already. */
static char *pack_shared(pace__flush *flush, bool narrow, bool end)
{
    message all = message_to(flush, flush->mail.self);
    uint64_t count = 0;

    memcpy(all.bits, flush->changed, flush->mail.words * sizeof *all.bits);
    for (uint32_t word = 0; end && word < flush->mail.words; word++)
        all.bits[word] = 0;
    for (uint32_t word = 0; word < flush->mail.words; word++) {
        for (uint64_t bits = all.bits[word]; bits; bits &= bits - 1) {
            uint32_t place = word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            uint64_t key = (uint64_t)place * flush->mail.workers + flush->mail.self;

            pace__flow_point packed = pace__flow_pack(&flush->optim, pace__flush_record(flush, place));

            if (!narrow)
                all.points[count] = packed;
            count++;
            take_over(flush, key, packed);
        }
    }
    *all.head = (pace__mail_head){.first = flush->place, .last = flush->place, .count = count, .end = end};
    return (char *)all.head;
}

/* A parameter that has changed by so much from where it was, here as at its owner. */
static pace__flow_point changed_by(const pace__flush *flush, uint64_t key, pace__flow_narrow change)
{
    return pace__flow_moved(&flush->optim,
                            pace__flow_pack_at(&flush->optim, base_at(flush, key), flush->place),
                            pace__flow_widen(change));
}

static void use_shared(pace__flush *flush, bool narrow, unsigned owner)
{
    message from = message_from(flush, owner);
    uint64_t next = 0;

    for (uint32_t word = 0; word < flush->mail.words; word++) {
        for (uint64_t bits = from.bits[word]; bits; bits &= bits - 1) {
            uint64_t key =
                ((uint64_t)word * WORD_BITS + (unsigned)__builtin_ctzll(bits)) * flush->mail.workers + owner;

            take_over(flush, key, narrow ? changed_by(flush, key, from.narrow[next]) : from.points[next]);
            next++;
        }
    }
}

static pace_status share(pace__flush *flush, bool narrow, bool end, bool *ended)
{
    pace__mail *mail = &flush->mail;
    uint64_t start_ns = pace__now_ns();
    char *shared = pack_shared(flush, narrow, end);
    PACE__SPAN("share");

    pace__mail_post(mail, PACE__TAG_BACK);
    for (unsigned step = 1; step < mail->workers; step++)
        pace__mail_send(mail, (mail->self + step) % mail->workers, PACE__TAG_BACK, shared, size_of(narrow));
    flush->busy_ns += pace__now_ns() - start_ns;
    pace_status status = pace__mail_wait(mail, mail->receives, "what it has merged");

    start_ns = pace__now_ns();
    *ended = end;
    for (unsigned i = 0; i < mail->workers && !status; i++) {
        if (i == mail->self)
            continue;
        status = pace__mail_check(mail, i, i, size_of(narrow));
        if (!status)
            status = pace__mail_check_rows(mail, i, flush->place, flush->place);
        if (status)
            break;
        use_shared(flush, narrow, i);
        *ended |= i == 0 && message_from(flush, i).head->end;
    }
    settle_replica(flush);
    flush->busy_ns += pace__now_ns() - start_ns;
    return status;
}

pace_status pace__flush_share(pace__flush *flush, bool end, bool *ended)
{
    return share(flush, flush->narrow, end, ended);
}

/* Tables hold what was dealt out, replicas first values: everything that is no first value is shared, as it is. */
pace_status pace__flush_begin(pace__flush *flush)
{
    unsigned width = flush->model->optim.width - flush->model->optim.lazy; /* without the stamp */
    float first[PACE__OPTIM_WIDTH_MAX];
    bool ended;

    settle_table(flush); /* another mode may have saved it */
    pace__optim_init(&flush->model->optim, first);
    for (uint32_t place = 0; place < flush->table->places; place++) {
        if (differ(pace__flush_record(flush, place), first, width))
            flush->changed[place / WORD_BITS] |= UINT64_C(1) << (place % WORD_BITS);
    }
    pace_status status = share(flush, false, false, &ended);

    flush->bias_n = pace__flow_pack(&flush->model->optim, flush->model->bias).n;
    return status;
}
