#include "roles/saving.h"

#include "base/kept.h"
#include "base/memory.h"
#include "roles/process.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- one part --- */

static size_t copy_bytes(const pace__part_saver *saver)
{
    return (size_t)saver->places * saver->width * sizeof(float);
}

static void drop_copy(pace__part_saver *saver)
{
    pace__pages_free(saver->copy, saver->room);
    saver->copy = NULL;
}

pace_status pace__part_saver_begin(pace__part_saver *saver, const char *directory, unsigned part,
                                   unsigned parts, uint64_t places, unsigned width, const pace_log *log)
{
    assert(!saver->under_way);
    snprintf(saver->directory, sizeof saver->directory, "%s", directory);
    saver->part = part;
    saver->parts = parts;
    saver->places = places;
    saver->width = width;
    pace_status status = saver->background ? PACE_OK : pace__background_create(log, &saver->background);

    if (status)
        return status;
    size_t bytes = copy_bytes(saver);

    if (saver->copy && bytes != saver->room)
        drop_copy(saver);
    if (!saver->copy)
        saver->copy = pace__pages_alloc(bytes);
    saver->room = saver->copy ? bytes : 0;
    return saver->copy ? PACE_OK
                       : pace_fail(log, PACE_FAILED, "out of memory for a copy of %zu bytes", bytes);
}

static void write_part(void *user)
{
    pace__part_saver *saver = user;
    pace__kept kept;

    pace__kept_init(&kept, saver->reason, sizeof saver->reason);
    saver->status = pace__part_write(saver->directory, saver->part, saver->parts, saver->copy, saver->places,
                                     saver->width, &saver->record, &kept.log);
}

void pace__part_saver_write(pace__part_saver *saver)
{
    saver->under_way = true;
    pace__background_start(saver->background, write_part, saver);
}

bool pace__part_saver_done(pace__part_saver *saver)
{
    if (!saver->under_way || !pace__background_idle(saver->background))
        return false;
    saver->under_way = false;
    /* The kernel may have the memory if anybody needs it. If not, the next copy is made without a page fault
     * for each page, which takes ten times as long as the copying. */
    madvise(saver->copy, saver->room, MADV_FREE);
    return true;
}

void pace__part_saver_close(pace__part_saver *saver)
{
    pace__background_free(saver->background);
    drop_copy(saver);
    *saver = (pace__part_saver){0};
}

/* --- holders --- */

static void listen(pace__member *member)
{
    pace__save_holder *holder = &member->save;

    pace__link_receive(member->self.link, 0, PACE__TAG_SAVE, &holder->order, sizeof holder->order,
                       &holder->receive);
}

/* Copies, and lets the copy be written. */
static void obey(pace__member *member)
{
    pace__save_holder *holder = &member->save;
    const pace__save_order *order = &holder->order;
    const pace__table *table = pace__member_table(member);
    pace_status status = PACE_NO_INPUT;
    pace__kept kept;

    holder->copied = (pace__save_answer){0};
    pace__kept_init(&kept, holder->copied.reason, sizeof holder->copied.reason);
    if (access(order->directory, W_OK | X_OK) == 0)
        status =
            pace__part_saver_begin(&holder->saver, order->directory, (unsigned)order->part,
                                   (unsigned)order->parts, table->places, (unsigned)table->floats, &kept.log);
    if (!status) {
        pace__table_read(table, 0, table->places, holder->saver.copy);
        pace__part_saver_write(&holder->saver);
        pace__faults_at(&member->job->faults, PACE__AT_CHECKPOINT, order->step);
    }
    holder->copied.status = (uint64_t)status;
}

static pace_status take_order(pace__member *member, bool *busy)
{
    pace__save_holder *holder = &member->save;
    bool free_to_send = false, came = false;

    if (!holder->listens)
        listen(member);
    holder->listens = true;
    if (holder->saver.under_way)
        return PACE_OK;
    pace_status status = pace__link_done(member->self.link, &holder->copied_send, &free_to_send);

    if (!status && free_to_send)
        status = pace__link_done(member->self.link, &holder->receive, &came);
    if (status || !came)
        return status;
    *busy = true;
    holder->order.directory[sizeof holder->order.directory - 1] = '\0';
    obey(member);
    pace__link_send(member->self.link, 0, PACE__TAG_SAVED, &holder->copied, sizeof holder->copied,
                    &holder->copied_send);
    listen(member);
    return PACE_OK;
}

static pace_status answer_when_saved(pace__member *member, bool *busy)
{
    pace__save_holder *holder = &member->save;
    bool free_to_send = false;

    if (!holder->saver.under_way)
        return PACE_OK;
    pace_status status = pace__link_done(member->self.link, &holder->saved_send, &free_to_send);

    if (status || !free_to_send || !pace__part_saver_done(&holder->saver))
        return status;
    *busy = true;
    holder->saved = (pace__save_answer){(uint64_t)holder->saver.status, holder->saver.record, ""};
    snprintf(holder->saved.reason, sizeof holder->saved.reason, "%s", holder->saver.reason);
    pace__link_send(member->self.link, 0, PACE__TAG_SAVED, &holder->saved, sizeof holder->saved,
                    &holder->saved_send);
    return PACE_OK;
}

pace_status pace__save_holder_poll(pace__member *member, bool *busy)
{
    pace_status status = pace__member_table(member) ? take_order(member, busy) : PACE_OK;

    return status ? status : answer_when_saved(member, busy);
}

void pace__save_holder_close(pace__member *member)
{
    pace__save_holder *holder = &member->save;

    pace__link_cancel(member->self.link, &holder->receive);
    pace__link_settle(member->self.link, &holder->copied_send);
    pace__link_settle(member->self.link, &holder->saved_send);
    pace__part_saver_close(&holder->saver);
}

/* --- the chief --- */

static pace_status receive_answer(pace__member *member, unsigned index, const char *what)
{
    pace__save_peer *peer = &member->save_peers[index];
    pace__holder holder = pace__member_holder(member, index);

    pace__link_receive(member->self.link, holder.rank, PACE__TAG_SAVED, &peer->answer, sizeof peer->answer,
                       &peer->receive);
    return what ? pace__link_wait(member->self.link, &peer->receive, what) : PACE_OK;
}

/* The part of a holder that does not see the directory. Nothing changes while it is fetched. */
static pace_status save_for(pace__member *member, unsigned index, const char *directory)
{
    pace__job *job = member->job;
    pace__part_saver *saver = &member->unseen_saver;
    pace__holder holder = pace__member_holder(member, index);
    pace__holder alone = {holder.rank, 0, 1, holder.places}; /* its places, one behind the other */
    unsigned turns = 0;
    pace_status status = pace__part_saver_begin(saver, directory, index, pace__member_holders(member),
                                                holder.places, (unsigned)job->floats, job->log);

    if (!member->said_unseen)
        pace_say(job->log, PACE_WARN, "%s does not see %s: its part of checkpoints goes through the chief",
                 pace__link_name(member->self.link, holder.rank), directory);
    member->said_unseen = true;
    if (!status)
        status = pace__fetch_state(member->self.link, &alone, job->floats, saver->copy, job->log);
    if (!status)
        pace__part_saver_write(saver);
    while (!status && !pace__part_saver_done(saver))
        status = pace__link_turn(member->self.link, NULL, 0, "its own disk", &turns);
    if (!status && saver->status)
        pace__job_save_failed(job, saver->status, saver->reason);
    else if (!status)
        job->saving.manifest.part[index] = saver->record;
    return status;
}

static pace_status order_part(pace__member *member, unsigned index, const char *directory)
{
    pace__save_peer *peer = &member->save_peers[index];
    pace__holder holder = pace__member_holder(member, index);
    pace_status status = pace__link_wait(member->self.link, &peer->send, "a message to leave");

    peer->order = (pace__save_order){member->job->position.step, index, pace__member_holders(member), ""};
    snprintf(peer->order.directory, sizeof peer->order.directory, "%s", directory);
    if (!status)
        pace__link_send(member->self.link, holder.rank, PACE__TAG_SAVE, &peer->order, sizeof peer->order,
                        &peer->send);
    return status;
}

/* "copied" has come. */
static pace_status take_copied(pace__member *member, unsigned index, const char *directory)
{
    pace__save_peer *peer = &member->save_peers[index];
    pace_status copied = (pace_status)peer->answer.status;

    if (copied == PACE_NO_INPUT)
        return save_for(member, index, directory);
    if (copied) {
        pace__job_save_failed(member->job, copied, peer->answer.reason);
        return PACE_OK;
    }
    peer->waits = true;
    return receive_answer(member, index, NULL);
}

pace_status pace__member_save(pace__job *job, const char *directory)
{
    pace__member *member = job->member;
    unsigned holders = pace__member_holders(member);
    char *absolute = realpath(directory, NULL); /* ranks may have been started elsewhere */
    pace_status status = PACE_OK;

    if (!member->save_peers)
        member->save_peers = calloc(holders, sizeof *member->save_peers);
    if (!member->save_peers || !absolute)
        status = pace_fail(job->log, PACE_FAILED, "%s: out of memory, or it has gone", directory);
    for (unsigned i = 0; i < holders && !status; i++)
        status = order_part(member, i, absolute);
    for (unsigned i = 0; i < holders && !status; i++)
        status = receive_answer(member, i, "a copy of its parameters");
    for (unsigned i = 0; i < holders && !status; i++)
        status = take_copied(member, i, absolute);
    free(absolute);
    return status;
}

pace_status pace__member_saved(pace__job *job, bool *all)
{
    pace__member *member = job->member;

    *all = true;
    for (unsigned i = 0; i < pace__member_holders(member); i++) {
        pace__save_peer *peer = &member->save_peers[i];
        bool came = false;

        if (!peer->waits)
            continue;
        pace_status status = pace__link_done(member->self.link, &peer->receive, &came);

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

int pace__member_unsaved(const pace__member *member)
{
    for (unsigned i = 0; member->save_peers && i < pace__member_holders(member); i++) {
        if (member->save_peers[i].waits)
            return pace__member_holder(member, i).rank;
    }
    return -1;
}

void pace__member_save_close(pace__member *member)
{
    for (unsigned i = 0; member->save_peers && i < pace__member_holders(member); i++) {
        pace__link_cancel(member->self.link, &member->save_peers[i].receive);
        pace__link_settle(member->self.link, &member->save_peers[i].send);
    }
    free(member->save_peers);
    member->save_peers = NULL;
    pace__part_saver_close(&member->unseen_saver);
}
