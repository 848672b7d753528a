/* The parts: laid out before anything is decoded, and brought to the rows that they have come to. */
#include "files/file.h"
#include "prep/images/images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES ((size_t)1 << 20)
#define ARRAYS     4 /* of a set; `sums` has an element for each picture, too */

/* --- laying them out --- */

pace_status pace__images_open_parts(pace__images *job)
{
    const pace__store_info *info = &job->info;

    job->parts = calloc(info->parts, sizeof *job->parts);
    if (!job->parts)
        return pace_fail(job->rank.log, PACE_FAILED, "out of memory");
    for (uint32_t i = 0; i < info->parts; i++)
        pace__part_plan(info, i, &job->parts[i]);
    return pace__parts_open(&job->prep, &job->rank, info, job->parts);
}

void pace__images_close_parts(pace__images *job)
{
    for (uint32_t i = 0; job->parts && i < job->info.parts; i++)
        pace__part_close(&job->parts[i]);
    free(job->parts);
    job->parts = NULL;
}

/* --- holes --- */

typedef struct finishing {
    pace__images *job;
    const uint64_t *holes; /* rows, sorted */
    size_t hole_count;
    pace__store_info info; /* of what has come out */
    char *directory;       /* where parts are laid out again */
    uint8_t *buffer;
} finishing;

/* How many holes come before a row. */
static size_t holes_before(const finishing *self, uint64_t row)
{
    size_t low = 0, high = self->hole_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->holes[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The rows of a set in a part, counted through. */
static void stretch_of(const pace__images *job, int set, uint32_t part, uint64_t *first, uint64_t *last)
{
    const pace__store_info *info = &job->info;
    uint64_t before = pace__prep_rows_before(info->rows, set);

    *first = before + pace__part_begin(info->rows[set], info->parts, part);
    *last = before + pace__part_begin(info->rows[set], info->parts, part + 1);
}

static pace_status copy_range(const finishing *self, const pace__part *from, uint64_t from_at,
                              const pace__part *to, uint64_t to_at, uint64_t bytes)
{
    const pace_log *log = self->job->rank.log;
    pace_status status = PACE_OK;

    for (uint64_t done = 0; done < bytes && !status;) {
        size_t piece = bytes - done < COPY_BYTES ? (size_t)(bytes - done) : COPY_BYTES;

        status = pace__pread_all(from->fd, self->buffer, piece, from_at + done, from->path, log);
        if (!status)
            status = pace__pwrite_all(to->fd, self->buffer, piece, to_at + done, to->path, log);
        if (!status)
            status = pace__rank_pulse(&self->job->rank);
        done += piece;
    }
    return status;
}

/* The rows between holes. */
static pace_status copy_rows(const finishing *self, int set, uint32_t index, const pace__part *to)
{
    const pace__part *from = &self->job->parts[index];
    const pace__part_set *a = &from->sets[set], *b = &to->sets[set];
    const struct {
        uint64_t from, to, width;
    } arrays[ARRAYS] = {{a->label_at, b->label_at, sizeof(uint16_t)},
                        {a->source_at, b->source_at, sizeof(uint32_t)},
                        {a->pixels_at, b->pixels_at, self->info.columns},
                        {a->sums_at, b->sums_at, sizeof(uint64_t)}};
    uint64_t first, last, placed = 0;
    pace_status status = PACE_OK;

    stretch_of(self->job, set, index, &first, &last);
    size_t hole = holes_before(self, first);

    for (uint64_t row = first; row < last && !status; hole++) {
        uint64_t end = hole < self->hole_count && self->holes[hole] < last ? self->holes[hole] : last;

        for (int i = 0; i < ARRAYS && !status && end > row; i++)
            status = copy_range(self, from, arrays[i].from + (row - first) * arrays[i].width, to,
                                arrays[i].to + placed * arrays[i].width, (end - row) * arrays[i].width);
        placed += end - row;
        row = end + 1; /* behind the hole */
    }
    return status;
}

/* --- heads --- */

static int by_place(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* All that is in no array: of a part that has the same arrays in the same places. */
static pace_status copy_head(const finishing *self, const pace__part *from, const pace__part *to)
{
    uint64_t arrays[PACE__SETS * ARRAYS][2], at = 0;
    unsigned count = 0;
    struct stat info;
    pace_status status = PACE_OK;

    if (memcmp(from->sets, to->sets, sizeof from->sets) != 0 || fstat(from->fd, &info) != 0)
        return pace_fail(self->job->rank.log, PACE_BUG, "%s: its arrays have moved", to->path);
    for (int set = 0; set < PACE__SETS; set++) {
        const pace__part_set *sizes = &from->sets[set];
        const uint64_t places[ARRAYS][2] = {{sizes->label_at, sizes->rows * sizeof(uint16_t)},
                                            {sizes->source_at, sizes->rows * sizeof(uint32_t)},
                                            {sizes->pixels_at, sizes->entries},
                                            {sizes->sums_at, sizes->rows * sizeof(uint64_t)}};

        for (int i = 0; i < ARRAYS; i++) {
            if (places[i][0] != 0)
                memcpy(arrays[count++], places[i], sizeof places[i]);
        }
    }
    qsort(arrays, count, sizeof *arrays, by_place);
    for (unsigned i = 0; i < count && !status; i++) {
        status = copy_range(self, from, at, to, at, arrays[i][0] - at);
        at = arrays[i][0] + arrays[i][1];
    }
    return status ? status : copy_range(self, from, at, to, at, (uint64_t)info.st_size - at);
}

/*
 * A part laid out for the rows that there are in all. If it has a hole its rows move there; if not, its head
 * moves here, as that tells how many rows all parts have.
 */
static pace_status remake(const finishing *self, uint32_t index)
{
    pace__images *job = self->job;
    pace__part made = {.fd = -1}, *old = &job->parts[index];
    bool whole = true;

    for (int set = 0; set < PACE__SETS; set++) {
        uint64_t first, last;

        stretch_of(job, set, index, &first, &last);
        uint64_t holes = holes_before(self, last) - holes_before(self, first);

        made.sets[set].rows = last - first - holes;
        made.sets[set].entries = made.sets[set].rows * self->info.columns;
        whole = whole && holes == 0;
    }
    for (int set = PACE__TEST; set < PACE__SETS; set++) /* a set that has vanished takes its group along */
        whole = whole && (self->info.rows[set] > 0 || job->info.rows[set] == 0);
    pace_status status = pace__part_create(self->directory, index, &self->info, &made, job->rank.log);

    for (int set = 0; set < PACE__SETS && !status && !whole; set++) {
        if (made.sets[set].rows > 0)
            status = copy_rows(self, set, index, &made);
    }
    if (!status && whole)
        status = copy_head(self, &made, old);
    if (!status && !whole && rename(made.path, old->path) != 0)
        status = pace_fail(job->rank.log, PACE_IO, "%s: cannot rename to %s: %s", made.path, old->path,
                           strerror(errno));
    if (!status && !whole) { /* the path stays the old one */
        close(old->fd);
        old->fd = made.fd;
        memcpy(old->sets, made.sets, sizeof old->sets);
        made.fd = -1;
    } else if (made.path) {
        unlink(made.path);
    }
    pace__part_close(&made);
    return status;
}

/* --- all of it --- */

/* The rows that are left; what they are of has been counted by label, so holes have to be asked. */
static void count_rows(finishing *self)
{
    const pace__images *job = self->job;

    self->info = job->info;
    for (size_t i = 0; i < self->hole_count; i++) {
        int set;
        uint64_t place, number = pace__image_row(job, self->holes[i], &set, &place);

        self->info.rows[set]--;
        self->info.positives[set] -= pace__pictures_class(&job->pictures, number) == 1;
    }
    for (int set = 0; set < PACE__SETS; set++)
        self->info.entries[set] = self->info.rows[set] * self->info.columns;
}

/* What HDF5 writes into a part is in the directory of the part: the names of the classes. */
static pace_status open_directory(finishing *self)
{
    pace__images *job = self->job;
    const pace_log *log = job->rank.log;
    pace__class_names names;

    self->directory = pace__format("%s/again-%d", job->prep.directory, job->rank.number);
    self->buffer = malloc(COPY_BYTES);
    if (!self->directory || !self->buffer)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = pace__make_dirs(self->directory, log);

    if (!status)
        status = pace__class_names_read(job->prep.directory, &job->encoding, log, &names);
    if (status)
        return status;
    status = pace__class_names_write(self->directory, &names, log);
    pace__class_names_release(&names);
    return status;
}

pace_status pace__images_finish_parts(pace__images *job, const uint64_t *holes, size_t count)
{
    finishing self = {.job = job, .holes = holes, .hole_count = count};
    uint32_t parts = job->info.parts, ranks = (uint32_t)job->prep.ranks, me = (uint32_t)job->rank.number;
    uint32_t first = pace__part_begin(parts, ranks, me), last = pace__part_begin(parts, ranks, me + 1);
    pace_status status = PACE_OK;

    count_rows(&self);
    if (self.info.rows[PACE__TRAIN] == 0)
        return pace_fail(job->rank.log, PACE_BAD_DATA, "%s: no picture to train on could be read",
                         job->sources.items[0].path);
    if (count > 0)
        status = open_directory(&self);
    for (uint32_t i = first; i < last && !status; i++) {
        if (count > 0)
            status = remake(&self, i);
        if (!status)
            status = pace__part_finish(&job->prep, &job->rank, &job->parts[i], &job->counts.bytes_written);
    }
    if (self.directory)
        pace__remove_tree(self.directory, NULL);
    free(self.directory);
    free(self.buffer);
    for (int set = 0; set < PACE__SETS && !status; set++) {
        job->info.rows[set] = self.info.rows[set];
        job->info.positives[set] = self.info.positives[set];
    }
    return status;
}
