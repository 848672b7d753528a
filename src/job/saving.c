/*
 * The copy of a part is
 *
 *     nobody's      -> the caller's        begin: there is room for it, and the caller fills it
 *     the caller's  -> the background's    write
 *     the background's -> nobody's         done, which says so once; the kernel may take the memory
 *
 * 1. under_way: it is the background's, and with it everything in the saver but `under_way`.
 * 2. `room` bytes lie behind `copy`; a saver of an empty part has a copy, too.
 */
#include "job/saving.h"

#include "base/kept.h"
#include "base/memory.h"
#include "watch/spans.h"

#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>

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
    PACE__SPAN_OF("write a checkpoint", NULL, 0, copy_bytes(saver));
    saver->status = pace__part_write(saver->directory, saver->part, saver->parts, saver->copy, saver->places,
                                     saver->width, &saver->record, &kept.log);
}

void pace__part_saver_write(pace__part_saver *saver)
{
    assert(!saver->under_way && saver->copy && saver->room == copy_bytes(saver));
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
