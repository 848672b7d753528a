/*
 * mail.h - messages about parameters between workers and their owners: what flush.h and average.h have in common.
 *
 * Key k belongs to worker k mod W, its *owner*, in place k / W. A message is a head, a bit for each place of an owner, and behind
 * them something of the same size for each bit that is set. Every worker has room for one message to each worker and one from
 * each, and sends to all, or takes from all, at a time.
 *
 *     pace__mail_post(&mail, tag);                           // who will hear
 *     pace__mail_at(&mail, mail.out, owner) ...              // filled in
 *     pace__mail_send(&mail, owner, tag, message, size);
 *     pace__mail_wait(&mail, mail.receives, "what it has changed");
 *     pace__mail_check(&mail, from, owner, size);            // before anything of it is used
 */
#ifndef LOCALSGD_MAIL_H
#define LOCALSGD_MAIL_H

#include "net/link.h"
#include "ps/wire.h"

/* Tags that this mode has no other use for; they count as training (roles/reports.c). */
#define PACE__TAG_COLLECT PACE__TAG_REDUCE
#define PACE__TAG_BACK    (PACE__TAG_REDUCE + 1)

#define PACE__WORD_BITS 64

/* Of any message. */
typedef struct pace__mail_head {
    uint64_t first, last; /* rows of the order, of all workers */
    uint64_t rows;        /* that the sender has trained of them */
    double loss;          /* of these, where the receiver wants it */
    uint64_t count;       /* bits that are set */
    uint64_t end;         /* of the chief: nothing goes with it, and nothing more is trained */
} pace__mail_head;

/* A message, taken apart. */
typedef struct pace__mail_message {
    pace__mail_head *head;
    uint64_t *bits;
    void *rest;
} pace__mail_message;

typedef struct pace__mail {
    pace__link *link;
    const pace_log *log;
    unsigned workers, self;
    uint64_t keys;
    uint32_t words; /* of bits: as many as the first owner needs, who has the most */
    size_t room;    /* of a message */
    char *out, *in; /* (workers) messages, `room` bytes each */
    pace__request *sends, *receives;
    int *silent;
} pace__mail;

/* Messages of at most `size` bytes for a key. */
pace_status pace__mail_open(pace__mail *mail, pace__link *link, unsigned workers, uint64_t keys, size_t size,
                            const pace_log *log);
void pace__mail_close(pace__mail *mail); /* a zeroed one is allowed */

/* How many keys an owner has. */
uint32_t pace__mail_places(const pace__mail *mail, unsigned owner);

/* The message to or from a worker: `all` is `out` or `in`. */
pace__mail_message pace__mail_at(const pace__mail *mail, char *all, unsigned worker);
/* Of what goes to this owner, that of a worker: its own was not sent. */
pace__mail_message pace__mail_of(const pace__mail *mail, unsigned worker);

/* A message with `size` bytes for each bit. It stays as it is until its send is over. */
void pace__mail_send(pace__mail *mail, unsigned to, int tag, char *message, size_t size);
/* From all others, into `in`. */
void pace__mail_post(pace__mail *mail, int tag);
/* Until all requests are over; the peers of those that are not are waited for. */
pace_status pace__mail_wait(pace__mail *mail, pace__request *requests, const char *what);

/* What came from a worker about an owner's keys has bits of keys that there are, and as much behind them. */
pace_status pace__mail_check(const pace__mail *mail, unsigned from, unsigned owner, size_t size);
/* It is about these rows of the order. */
pace_status pace__mail_check_rows(const pace__mail *mail, unsigned from, uint64_t first, uint64_t last);
/* Together all have trained each of these rows once. */
pace_status pace__mail_check_sum(const pace__mail *mail, uint64_t rows, uint64_t expected);

#endif
