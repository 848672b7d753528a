#include "localsgd/mail.h"

#include "base/memory.h"
#include "watch/spans.h"

#include <inttypes.h>
#include <stdlib.h>

#define WORD_BITS PACE__WORD_BITS

/* --- life --- */

static size_t bytes_of(const pace__mail *mail, uint64_t count, size_t size)
{
    return sizeof(pace__mail_head) + mail->words * sizeof(uint64_t) + count * size;
}

static bool make_room(pace__mail *mail)
{
    mail->out = pace__pages_alloc(mail->workers * mail->room);
    mail->in = pace__pages_alloc(mail->workers * mail->room);
    mail->sends = calloc(mail->workers, sizeof *mail->sends);
    mail->receives = calloc(mail->workers, sizeof *mail->receives);
    mail->silent = calloc(mail->workers, sizeof *mail->silent);
    return mail->out && mail->in && mail->sends && mail->receives && mail->silent;
}

pace_status pace__mail_open(pace__mail *mail, pace__link *link, unsigned workers, uint64_t keys, size_t size,
                            const pace_log *log)
{
    *mail = (pace__mail){
        .link = link, .log = log, .workers = workers, .self = (unsigned)pace__link_rank(link), .keys = keys};
    mail->words = (pace__mail_places(mail, 0) + WORD_BITS - 1) / WORD_BITS;
    mail->room = (bytes_of(mail, (uint64_t)mail->words * WORD_BITS, size) + 63) / 64 * 64;
    return make_room(mail) ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory for what is merged");
}

void pace__mail_close(pace__mail *mail)
{
    for (unsigned i = 0; mail->sends && mail->receives && i < mail->workers; i++) {
        pace__link_settle(mail->link, &mail->sends[i]);
        pace__link_cancel(mail->link, &mail->receives[i]);
    }
    free(mail->silent);
    free(mail->receives);
    free(mail->sends);
    pace__pages_free(mail->in, mail->workers * mail->room);
    pace__pages_free(mail->out, mail->workers * mail->room);
    *mail = (pace__mail){0};
}

/* --- where things are --- */

uint32_t pace__mail_places(const pace__mail *mail, unsigned owner)
{
    return (uint32_t)((mail->keys + mail->workers - 1 - owner) / mail->workers);
}

pace__mail_message pace__mail_at(const pace__mail *mail, char *all, unsigned worker)
{
    char *at = all + worker * mail->room;
    uint64_t *bits = (uint64_t *)(void *)(at + sizeof(pace__mail_head));

    return (pace__mail_message){(pace__mail_head *)(void *)at, bits, bits + mail->words};
}

pace__mail_message pace__mail_of(const pace__mail *mail, unsigned worker)
{
    return pace__mail_at(mail, worker == mail->self ? mail->out : mail->in, worker);
}

/* --- on the way --- */

void pace__mail_send(pace__mail *mail, unsigned to, int tag, char *message, size_t size)
{
    uint64_t count = ((const pace__mail_head *)(void *)message)->count;

    pace__link_send(mail->link, (int)to, tag, message, bytes_of(mail, count, size), &mail->sends[to]);
}

void pace__mail_post(pace__mail *mail, int tag)
{
    for (unsigned i = 0; i < mail->workers; i++) {
        if (i != mail->self)
            pace__link_receive(mail->link, (int)i, tag, mail->in + i * mail->room, mail->room,
                               &mail->receives[i]);
    }
}

pace_status pace__mail_wait(pace__mail *mail, pace__request *requests, const char *what)
{
    unsigned turns = 0;
    PACE__SPAN("wait for a flush");

    for (;;) {
        size_t silent = 0;
        pace_status status = PACE_OK;

        for (unsigned i = 0; i < mail->workers && !status; i++) {
            bool done = !requests[i].active;

            if (silent == 0) /* the others can wait for that one, too */
                status = pace__link_done(mail->link, &requests[i], &done);
            if (!done)
                mail->silent[silent++] = (int)i;
        }
        if (status || silent == 0)
            return status;
        status = pace__link_turn(mail->link, mail->silent, silent, what, &turns);
        if (status)
            return status;
    }
}

/* --- what came --- */

pace_status pace__mail_check(const pace__mail *mail, unsigned from, unsigned owner, size_t size)
{
    const pace__mail_message it = pace__mail_at(mail, mail->in, from);
    uint32_t places = pace__mail_places(mail, owner);
    size_t came = mail->receives[from].bytes;
    bool whole = came >= bytes_of(mail, 0, size);
    uint64_t count = 0, beyond = 0;

    for (uint32_t word = 0; whole && word < mail->words; word++) {
        uint64_t first = (uint64_t)word * WORD_BITS;

        count += (uint64_t)__builtin_popcountll(it.bits[word]);
        if (first + WORD_BITS > places)
            beyond |= first >= places ? it.bits[word] : it.bits[word] >> (places - first);
    }
    if (!whole || beyond || count != it.head->count || came != bytes_of(mail, count, size))
        return pace_fail(mail->log, PACE_BUG, "%s has sent parameters that cannot be",
                         pace__link_name(mail->link, (int)from));
    return PACE_OK;
}

pace_status pace__mail_check_rows(const pace__mail *mail, unsigned from, uint64_t first, uint64_t last)
{
    const pace__mail_head *head = pace__mail_at(mail, mail->in, from).head;

    if (head->first == first && head->last == last)
        return PACE_OK;
    return pace_fail(mail->log, PACE_BUG,
                     "%s has sent what it learned from rows %" PRIu64 " to %" PRIu64
                     ", but those from %" PRIu64 " to %" PRIu64 " are to be merged",
                     pace__link_name(mail->link, (int)from), head->first, head->last, first, last);
}

pace_status pace__mail_check_sum(const pace__mail *mail, uint64_t rows, uint64_t expected)
{
    if (rows == expected)
        return PACE_OK;
    return pace_fail(mail->log, PACE_BUG,
                     "workers have trained %" PRIu64 " rows between two flushes of %" PRIu64, rows, expected);
}
