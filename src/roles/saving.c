/*
 * A holder goes through
 *
 *     listening -> writing      an order has come: it has copied its part, and said "copied" (obey)
 *     listening -> listening    it could not, and has said so instead; or it does not see the directory
 *     writing   -> listening    the part is written, or is not, and it has said "saved"
 *
 * and the chief knows of each holder
 *
 *     nothing -> ordered -> copied      within pace__process_save, while everyone stands still
 *     copied  -> waits                  for "saved"
 *     copied  -> nothing                it could not copy; or its part was written for it (save_for)
 *     waits   -> nothing                "saved" has come
 *
 * 1. A holder has one copy: the next order is not looked at until it is written. The receive for it is posted before,
 *    into `order`, of which the saver has taken what it needs.
 * 2. "copied" and "saved" leave from places of their own, each free again before the next one is put there.
 * 3. `waits` of the chief is set if and only if the receive for "saved" is posted.
 * 4. No checkpoint is begun while anyone is waited for: job/checkpoints.c finishes the one before.
 */
#include "roles/saving.h"

#include "base/clock.h"
#include "base/kept.h"
#include "base/memory.h"
#include "ranks/aside.h"
#include "roles/process.h"
#include "watch/spans.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* That are copied between two signs of life. */
#define PIECE_FLOATS ((size_t)1 << 24)

/* --- holders --- */

static void listen(pace__process *process)
{
    pace__save_holder *holder = &process->save;

    pace__link_receive(process->self.link, 0, PACE__TAG_SAVE, &holder->order, sizeof holder->order,
                       &holder->receive);
}

static pace_status look_at_directory(void *user)
{
    const pace__save_order *order = user;

    return access(order->directory, W_OK | X_OK) == 0 ? PACE_OK : PACE_NO_INPUT;
}

/* In pieces: a large table takes longer to copy than others wait for a sign of life. What a pulse fails with comes
 * again in the next wait. */
static void copy_table(pace__process *process, const pace__table *table, float *copy)
{
    PACE__SPAN_OF("copy for a checkpoint", NULL, 0,
                  (uint64_t)table->places * table->floats * 2 * sizeof *copy);
    uint32_t most = (uint32_t)(PIECE_FLOATS / table->floats > 0 ? PIECE_FLOATS / table->floats : 1);

    for (uint32_t first = 0; first < table->places;) {
        uint32_t left = table->places - first, count = left < most ? left : most;

        pace__table_read(table, first, count, copy + (size_t)first * table->floats);
        pace__link_pulse(process->self.link);
        first += count;
    }
}

/* Copies, and lets the copy be written. */
static void obey(pace__process *process)
{
    pace__save_holder *holder = &process->save;
    pace__save_order *order = &holder->order;
    const pace__table *table = pace__process_table(process);
    pace__kept kept;

    assert(!holder->saver.under_way && !holder->copied_send.active); /* invariants 1 and 2 */
    holder->copied = (pace__save_answer){0};
    pace__kept_init(&kept, holder->copied.reason, sizeof holder->copied.reason);
    pace_status status =
        pace__rank_aside(&process->self, "looking for the run directory", look_at_directory, order);

    if (!status)
        status =
            pace__part_saver_begin(&holder->saver, order->directory, (unsigned)order->part,
                                   (unsigned)order->parts, table->places, (unsigned)table->floats, &kept.log);
    if (!status) {
        copy_table(process, table, holder->saver.copy);
        holder->began_ns = pace__now_ns();
        pace__part_saver_write(&holder->saver);
        pace__faults_at(&process->job->faults, PACE__AT_CHECKPOINT, order->step);
    }
    holder->copied.status = (uint64_t)status;
}

/* What came from the chief. */
static pace_status check_order(pace__process *process)
{
    pace__save_order *order = &process->save.order;
    pace_status status =
        pace__link_fits(process->self.link, &process->save.receive, sizeof *order, "an order to save");

    order->directory[sizeof order->directory - 1] = '\0';
    if (!status && (order->parts != pace__plan_holders(&process->job->plan) || order->part >= order->parts))
        status = pace_fail(process->self.log, PACE_BUG,
                           "%s wants part %" PRIu64 " of %" PRIu64 " to be saved, but there are %u",
                           pace__link_name(process->self.link, 0), order->part, order->parts,
                           pace__plan_holders(&process->job->plan));
    return status;
}

static pace_status take_order(pace__process *process, bool *busy)
{
    pace__save_holder *holder = &process->save;
    bool free_to_send = false, came = false;

    if (!holder->listens)
        listen(process);
    holder->listens = true;
    if (holder->saver.under_way) /* invariant 1 */
        return PACE_OK;
    pace_status status = pace__link_done(process->self.link, &holder->copied_send, &free_to_send);

    if (!status && free_to_send)
        status = pace__link_done(process->self.link, &holder->receive, &came);
    if (status || !came)
        return status;
    *busy = true;
    status = check_order(process);
    if (status)
        return status;
    obey(process);
    pace__link_send(process->self.link, 0, PACE__TAG_SAVED, &holder->copied, sizeof holder->copied,
                    &holder->copied_send);
    listen(process);
    return PACE_OK;
}

static pace_status answer_when_saved(pace__process *process, bool *busy)
{
    pace__save_holder *holder = &process->save;
    bool free_to_send = false;

    if (!holder->saver.under_way)
        return PACE_OK;
    /* The chief may wait for it, and this rank for the chief: the disk is at work, for as long as other files may take. What this
     * fails with comes again in the next wait. */
    if (pace__seconds_since(holder->began_ns) < PACE__ASIDE_MAX_S)
        pace__link_pulse(process->self.link);
    pace_status status = pace__link_done(process->self.link, &holder->saved_send, &free_to_send);

    if (status || !free_to_send || !pace__part_saver_done(&holder->saver))
        return status;
    *busy = true;
    assert(!holder->saver.under_way && !holder->saved_send.active);
    holder->saved = (pace__save_answer){(uint64_t)holder->saver.status, holder->saver.record, ""};
    snprintf(holder->saved.reason, sizeof holder->saved.reason, "%s", holder->saver.reason);
    pace__link_send(process->self.link, 0, PACE__TAG_SAVED, &holder->saved, sizeof holder->saved,
                    &holder->saved_send);
    return PACE_OK;
}

pace_status pace__save_holder_poll(pace__process *process, bool *busy)
{
    pace_status status = pace__process_table(process) ? take_order(process, busy) : PACE_OK;

    return status ? status : answer_when_saved(process, busy);
}

void pace__save_holder_close(pace__process *process)
{
    pace__save_holder *holder = &process->save;

    pace__link_cancel(process->self.link, &holder->receive);
    pace__link_settle(process->self.link, &holder->copied_send);
    pace__link_settle(process->self.link, &holder->saved_send);
    pace__part_saver_close(&holder->saver);
}

/* --- the chief --- */

/* What came from a holder: a part that was saved has the name that it must have. */
static pace_status check_answer(pace__process *process, unsigned index)
{
    pace__save_peer *peer = &process->save_peers[index];
    pace__part_record *record = &peer->answer.record;
    unsigned part, parts;
    pace_status status =
        pace__link_fits(process->self.link, &peer->receive, sizeof peer->answer, "word of a checkpoint");

    peer->answer.reason[sizeof peer->answer.reason - 1] = '\0';
    record->name[sizeof record->name - 1] = record->sha256[sizeof record->sha256 - 1] = '\0';
    if (!status && peer->waits && !peer->answer.status &&
        (sscanf(record->name, "part-%u-of-%u.", &part, &parts) != 2 || part != index ||
         parts != pace__plan_holders(&process->job->plan)))
        status = pace_fail(process->self.log, PACE_BUG, "%s has saved %s, but its part is number %u of %u",
                           pace__link_name(process->self.link, peer->receive.peer), record->name, index,
                           pace__plan_holders(&process->job->plan));
    return status;
}

static pace_status receive_answer(pace__process *process, unsigned index, const char *what)
{
    pace__save_peer *peer = &process->save_peers[index];
    pace__holder holder = pace__plan_holder(&process->job->plan, index);

    pace__link_receive(process->self.link, holder.rank, PACE__TAG_SAVED, &peer->answer, sizeof peer->answer,
                       &peer->receive);
    if (!what)
        return PACE_OK;
    pace_status status = pace__link_wait(process->self.link, &peer->receive, what);

    return status ? status : check_answer(process, index);
}

/* The part of a holder that does not see the directory. Nothing changes while it is fetched. */
static pace_status save_for(pace__process *process, unsigned index, const char *directory)
{
    pace__job *job = process->job;
    pace__part_saver *saver = &process->unseen_saver;
    pace__holder holder = pace__plan_holder(&process->job->plan, index);
    pace__holder alone = {holder.rank, 0, 1, holder.places}; /* its places, one behind the other */
    unsigned turns = 0;
    pace_status status =
        pace__part_saver_begin(saver, directory, index, pace__plan_holders(&process->job->plan),
                               holder.places, (unsigned)job->plan.floats, job->log);

    if (!process->said_unseen)
        pace_say(job->log, PACE_WARN, "%s does not see %s: its part of checkpoints goes through the chief",
                 pace__link_name(process->self.link, holder.rank), directory);
    process->said_unseen = true;
    if (!status)
        status = pace__fetch_state(process->self.link, &alone, job->plan.floats, saver->copy, job->log);
    if (!status)
        pace__part_saver_write(saver);
    while (!status && !pace__part_saver_done(saver))
        status = pace__link_turn(process->self.link, NULL, 0, "its own disk", &turns);
    if (!status && saver->status)
        pace__job_save_failed(job, saver->status, saver->reason);
    else if (!status)
        job->saving.manifest.part[index] = saver->record;
    return status;
}

static pace_status order_part(pace__process *process, unsigned index, const char *directory)
{
    pace__save_peer *peer = &process->save_peers[index];
    pace__holder holder = pace__plan_holder(&process->job->plan, index);

    assert(!peer->waits && !peer->receive.active); /* invariant 4 */
    pace_status status = pace__link_wait(process->self.link, &peer->send, "a message to leave");

    peer->order =
        (pace__save_order){process->job->position.step, index, pace__plan_holders(&process->job->plan), ""};
    snprintf(peer->order.directory, sizeof peer->order.directory, "%s", directory);
    if (!status)
        pace__link_send(process->self.link, holder.rank, PACE__TAG_SAVE, &peer->order, sizeof peer->order,
                        &peer->send);
    return status;
}

/* "copied" has come. */
static pace_status take_copied(pace__process *process, unsigned index, const char *directory)
{
    pace__save_peer *peer = &process->save_peers[index];
    pace_status copied = (pace_status)peer->answer.status;

    assert(!peer->receive.active);
    if (copied == PACE_NO_INPUT)
        return save_for(process, index, directory);
    if (copied) {
        pace__job_save_failed(process->job, copied, peer->answer.reason);
        return PACE_OK;
    }
    peer->waits = true;
    return receive_answer(process, index, NULL);
}

pace_status pace__process_save(pace__job *job, const char *directory)
{
    pace__process *process = job->own;
    unsigned holders = pace__plan_holders(&process->job->plan);
    char *absolute = realpath(directory, NULL); /* ranks may have been started elsewhere */
    pace_status status = PACE_OK;

    if (!process->save_peers)
        process->save_peers = calloc(holders, sizeof *process->save_peers);
    if (!process->save_peers || !absolute)
        status = pace_fail(job->log, PACE_FAILED, "%s: out of memory, or it has gone", directory);
    for (unsigned i = 0; i < holders && !status; i++)
        status = order_part(process, i, absolute);
    for (unsigned i = 0; i < holders && !status; i++)
        status = receive_answer(process, i, "a copy of its parameters");
    for (unsigned i = 0; i < holders && !status; i++)
        status = take_copied(process, i, absolute);
    free(absolute);
    return status;
}

pace_status pace__process_saved(pace__job *job, bool *all)
{
    pace__process *process = job->own;

    assert(process->save_peers && job->saving.stage == PACE__SAVING_PARTS);
    *all = true;
    for (unsigned i = 0; i < pace__plan_holders(&process->job->plan); i++) {
        pace__save_peer *peer = &process->save_peers[i];
        bool came = false;

        if (!peer->waits)
            continue;
        assert(peer->receive.active); /* invariant 3 */
        pace_status status = pace__link_done(process->self.link, &peer->receive, &came);

        if (!status && came)
            status = check_answer(process, i);
        if (status)
            return status;
        *all &= came;
        if (!came)
            continue;
        peer->waits = false;
        job->saving.manifest.part[i] = peer->answer.record;
        if (peer->answer.status)
            pace__job_save_failed(job, (pace_status)peer->answer.status, peer->answer.reason);
    }
    return PACE_OK;
}

int pace__process_unsaved(const pace__process *process)
{
    for (unsigned i = 0; process->save_peers && i < pace__plan_holders(&process->job->plan); i++) {
        if (process->save_peers[i].waits)
            return pace__plan_holder(&process->job->plan, i).rank;
    }
    return -1;
}

void pace__process_save_close(pace__process *process)
{
    for (unsigned i = 0; process->save_peers && i < pace__plan_holders(&process->job->plan); i++) {
        pace__link_cancel(process->self.link, &process->save_peers[i].receive);
        pace__link_settle(process->self.link, &process->save_peers[i].send);
    }
    free(process->save_peers);
    process->save_peers = NULL;
    pace__part_saver_close(&process->unseen_saver);
}
