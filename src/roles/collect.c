#include "roles/collect.h"

#include "base/clock.h"
#include "ranks/aside.h"
#include "roles/process.h"

#include <assert.h>
#include <stdlib.h>

#define PINGS 16

void pace__clock_judge(uint64_t sent_ns, uint64_t came_ns, uint64_t their_ns, uint64_t *best_ns,
                       pace__clock_offset *clock)
{
    uint64_t took_ns = came_ns - sent_ns;

    if (took_ns >= *best_ns)
        return;
    *best_ns = took_ns;
    clock->offset_ns = (int64_t)(their_ns - (sent_ns + took_ns / 2));
    clock->error_ns = (took_ns + 1) / 2;
}

void pace__process_open_profile(pace__process *process)
{
    pace__job *job = process->job;
    bool server = process->role == PACE__PS;

    pace__profile_open(&process->profile, job, server ? 1 : job->plan.threads);
    if (process->profile.spans && process->role == PACE__EVALUATOR)
        pace__spans_switch(process->profile.spans, true);
}

/* --- others --- */

static void listen(pace__process *process)
{
    pace__collection *self = &process->collection;

    pace__link_receive(process->self.link, 0, PACE__TAG_CLOCK, &self->word, sizeof self->word,
                       &self->receive);
    self->listens = true;
}

/* Without memory, or without a recorder, there is nothing to send, which is said. */
static void pack_spans(pace__process *process)
{
    pace__collection *self = &process->collection;

    if (!process->profile.spans)
        return;
    pace__profile_stop(&process->profile);
    self->pack = pace__spans_pack(process->profile.spans);
    if (self->pack && self->pack->bytes > PACE__LINK_MESSAGE_MAX) {
        free(self->pack);
        self->pack = NULL;
    }
}

static pace_status answer(pace__process *process)
{
    pace__collection *self = &process->collection;
    pace__link *link = process->self.link;

    if (self->word == PACE__CLOCK_SEND)
        pack_spans(process);
    self->answer = (pace__clock_answer){pace__now_ns(), self->pack ? self->pack->bytes : 0};
    pace__link_send(link, 0, PACE__TAG_SPANS, &self->answer, sizeof self->answer, &self->send);
    if (self->pack)
        pace__link_send(link, 0, PACE__TAG_SPANS, self->pack, self->pack->bytes, &self->pack_send);
    if (self->word == PACE__CLOCK_TELL)
        listen(process);
    return PACE_OK;
}

static pace_status follow(pace__process *process, bool *busy)
{
    pace__collection *self = &process->collection;
    pace__link *link = process->self.link;
    bool came = false, left = true;

    if (!self->listens)
        listen(process);
    pace_status status = PACE_OK;

    if (self->receive.active) {
        status = pace__link_done(link, &self->receive, &came);
        self->word_came |= came;
    }
    if (!status && self->send.active)
        status = pace__link_done(link, &self->send, &left);
    if (!status && self->pack_send.active)
        status = pace__link_done(link, &self->pack_send, &came);
    if (status || !self->word_came || !left)
        return status;
    *busy = true;
    self->word_came = false;
    status = pace__link_fits(link, &self->receive, sizeof self->word, "a word about clocks");
    return status ? status : answer(process);
}

/* --- the chief --- */

static void ask(pace__process *process, pace__clock_word word)
{
    pace__collection *self = &process->collection;

    self->word = word;
    pace__link_receive(process->self.link, self->rank, PACE__TAG_SPANS, &self->answers[self->rank],
                       sizeof *self->answers, &self->receive);
    self->sent_ns = pace__now_ns();
    pace__link_send(process->self.link, self->rank, PACE__TAG_CLOCK, &self->word, sizeof self->word,
                    &self->send);
}

typedef struct entry {
    pace__process *process;
    const pace__span_pack *pack;
    size_t bytes;
    int rank;
} entry;

static pace_status add_entry(void *user)
{
    const entry *self = user;
    pace__process *process = self->process;
    pace__collection *to = &process->collection;
    const char *host = process->self.hosts ? process->self.hosts[self->rank] : NULL;

    pace__profile_book_add(&to->book, self->rank, host, self->pack, self->bytes,
                           self->rank == 0 ? &(pace__clock_offset){0} : &to->clock);
    return PACE_OK;
}

static pace_status write_book(void *book)
{
    pace__profile_book_write(book);
    return PACE_OK;
}

static pace_status begin(pace__process *process)
{
    pace__collection *self = &process->collection;
    pace_status status = PACE_OK;

    self->begun = true;
    self->answers = calloc((size_t)pace__link_size(process->self.link), sizeof *self->answers);
    if (!self->answers)
        return pace_fail(process->self.log, PACE_FAILED, "out of memory for a profile");
    pace__profile_stop(&process->profile);
    pace__profile_book_open(&self->book, process->job, &process->profile);
    pace__span_pack *pack = pace__spans_pack(process->profile.spans);

    if (pack)
        status = pace__rank_aside(&process->self, "writing a profile", add_entry,
                                  &(entry){process, pack, pack->bytes, 0});
    free(pack);
    return status;
}

/* On to the next rank that is there; behind the last, all is written. */
static pace_status go_on(pace__process *process)
{
    pace__collection *self = &process->collection;
    int size = pace__link_size(process->self.link);

    assert(!self->receive.active && !self->room);
    do
        self->rank++;
    while (self->rank < size && pace__link_is_lost(process->self.link, self->rank));
    self->pings = 0;
    self->best_ns = UINT64_MAX;
    if (self->rank < size) {
        ask(process, PACE__CLOCK_TELL);
        return PACE_OK;
    }
    self->ended = true;
    return pace__rank_aside(&process->self, "writing a profile", write_book, &self->book);
}

/* Somebody who was lost says nothing more. What MPI may still write to is left where it is. */
static pace_status pass_over(pace__process *process)
{
    pace__collection *self = &process->collection;
    bool free_again = pace__link_abandon(process->self.link, &self->receive);

    pace__link_abandon(process->self.link, &self->send);
    if (free_again)
        free(self->room);
    self->room = NULL;
    self->kept |= !free_again;
    return go_on(process);
}

/* Its spans have come. */
static pace_status take_spans(pace__process *process)
{
    pace__collection *self = &process->collection;
    entry it = {process, self->room, self->receive.bytes, self->rank};
    pace_status status = pace__rank_aside(&process->self, "writing a profile", add_entry, &it);

    free(self->room);
    self->room = NULL;
    return status ? status : go_on(process);
}

/* They follow; or there are none. */
static pace_status expect_spans(pace__process *process)
{
    pace__collection *self = &process->collection;
    uint64_t bytes = self->answers[self->rank].bytes;

    if (bytes == 0)
        return go_on(process);
    if (bytes > PACE__LINK_MESSAGE_MAX || bytes < sizeof *self->room)
        return pace_fail(process->self.log, PACE_BUG, "%s sends spans of a length that cannot be",
                         pace__link_name(process->self.link, self->rank));
    self->room = malloc(bytes);
    if (!self->room)
        return pace_fail(process->self.log, PACE_FAILED, "out of memory for a profile");
    pace__link_receive(process->self.link, self->rank, PACE__TAG_SPANS, self->room, bytes, &self->receive);
    return PACE_OK;
}

static pace_status take_answer(pace__process *process)
{
    pace__collection *self = &process->collection;
    uint64_t came_ns = pace__now_ns();
    pace_status status =
        pace__link_fits(process->self.link, &self->receive, sizeof *self->answers, "the time of its clock");

    if (status)
        return status;
    if (self->word == PACE__CLOCK_SEND)
        return expect_spans(process);
    pace__clock_judge(self->sent_ns, came_ns, self->answers[self->rank].now_ns, &self->best_ns, &self->clock);
    ask(process, ++self->pings < PINGS ? PACE__CLOCK_TELL : PACE__CLOCK_SEND);
    return PACE_OK;
}

static pace_status collect(pace__process *process, bool *busy)
{
    pace__collection *self = &process->collection;
    bool came = false, left = true;
    pace_status status = PACE_OK;

    if (!self->begun) {
        *busy = true;
        status = begin(process);
        return status ? status : go_on(process);
    }
    if (pace__link_is_lost(process->self.link, self->rank))
        return pass_over(process);
    if (self->send.active)
        status = pace__link_done(process->self.link, &self->send, &left);
    if (!status && left)
        status = pace__link_done(process->self.link, &self->receive, &came);
    if (status || !came)
        return status;
    *busy = true;
    return self->room ? take_spans(process) : take_answer(process);
}

/* --- both --- */

pace_status pace__process_poll_profile(pace__process *process, bool *busy)
{
    pace__collection *self = &process->collection;

    if (process->job->config->records.profile == 0)
        return PACE_OK;
    if (process->self.number > 0)
        return follow(process, busy);
    return process->profile.over && !self->ended ? collect(process, busy) : PACE_OK;
}

static pace_status measure_peak(void *book)
{
    pace__profile_book_peak(book);
    return PACE_OK;
}

pace_status pace__process_finish_profile(pace__process *process)
{
    pace__collection *self = &process->collection;
    pace_status status = PACE_OK;
    uint64_t start_ns = pace__now_ns();
    unsigned turns = 0;

    if (!process->profile.spans)
        return PACE_OK;
    pace__profile_stop(&process->profile);
    while (!status && !self->ended) { /* it is polled in every turn */
        int peer = self->rank;

        status = pace__link_turn(process->self.link, &peer, self->begun && peer > 0, "its spans", &turns);
    }
    if (!status)
        status = pace__rank_aside(&process->self, "measuring the machine", measure_peak, &self->book);
    if (!status)
        pace__profile_book_note(&self->book, pace__seconds_since(start_ns));
    return status;
}

void pace__process_close_profile(pace__process *process)
{
    pace__collection *self = &process->collection;
    pace__link *link = process->self.link;

    pace__link_cancel(link, &self->receive);
    if (self->send.active)
        pace__link_settle(link, &self->send);
    if (self->pack_send.active)
        pace__link_settle(link, &self->pack_send);
    free(self->pack);
    free(self->room);
    if (!self->kept)
        free(self->answers);
    if (self->book.job)
        pace__profile_book_close(&self->book);
}
