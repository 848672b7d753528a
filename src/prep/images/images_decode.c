/* Decode: rows of pixels, right to their places in the parts. */
#include "base/clock.h"
#include "data/store/sums.h"
#include "prep/images/images.h"
#include "threads/thread.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Rows that a thread takes at a time: so many bytes of pixels, if at least one row fits. */
#define BATCH_BYTES    ((size_t)1 << 20)
#define BATCH_ROWS_MAX 256
#define BAD_SHOWN      100 /* of each process: as many as --max-bad-rows leaves out unless told otherwise */
#define NAME_BYTES     512
#define REPORT_S       0.1

/* What the threads of a process share. */
typedef struct decoding {
    pace__images *job;
    uint64_t first, last; /* this process's rows */
    size_t batch;         /* rows */
    atomic_uint_fast64_t next, done;
    pace__image_counts *counts; /* (threads) */
} decoding;

/* One thread. */
typedef struct decoder {
    decoding *team;
    pace__images *job;
    pace__image_counts *counts;
    size_t columns;
    pace__picture_loader *loader;
    pace__picture_scratch scratch;
    uint8_t *pixels;   /* (batch, columns) */
    uint16_t *labels;  /* (batch) */
    uint32_t *sources; /* (batch) */
} decoder;

/* --- bad pictures --- */

static pace_status note_hole(pace__images *job, uint64_t row)
{
    bool ok = true;

    pthread_mutex_lock(&job->lock);
    if (job->hole_count == job->hole_room) {
        size_t room = job->hole_room > 0 ? 2 * job->hole_room : 64;
        uint64_t *holes = realloc(job->holes, room * sizeof *holes);

        ok = holes != NULL;
        job->holes = ok ? holes : job->holes;
        job->hole_room = ok ? room : job->hole_room;
    }
    if (ok)
        job->holes[job->hole_count++] = row;
    pthread_mutex_unlock(&job->lock);
    return ok ? PACE_OK : pace_fail(job->rank.log, PACE_FAILED, "out of memory");
}

static pace_status refuse(decoder *self, uint64_t row, uint64_t number, const char *reason)
{
    pace__images *job = self->job;
    const pace_log *log = job->rank.log;
    uint64_t count = atomic_fetch_add(&job->bad, 1) + 1, most = (uint64_t)job->config->common.max_bad_rows;
    char name[NAME_BYTES];

    self->counts->bad++;
    pace__pictures_name(&job->pictures, number, name, sizeof name);
    if (count > most && most == 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: %s (--max-bad-rows N leaves out up to N such pictures)",
                         name, reason);
    if (count > most)
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: %s: with this one, more than %" PRIu64
                         " pictures are bad: look at them, or give a higher --max-bad-rows to leave them out",
                         name, reason, most);
    if (count <= BAD_SHOWN)
        pace_say(log, PACE_WARN, "%s: %s: left out%s", name, reason,
                 count == BAD_SHOWN ? "; more bad pictures will only be counted" : "");
    return note_hole(job, row);
}

/* --- rows --- */

static pace_status decode_row(decoder *self, uint64_t row, size_t index)
{
    pace__images *job = self->job;
    uint8_t *pixels = self->pixels + index * self->columns;
    pace__picture_data data;
    uint64_t place;
    int set;
    uint64_t number = pace__image_row(job, row, &set, &place);
    uint32_t class = pace__pictures_class(&job->pictures, number);
    const char *reason = pace__pictures_fetch(&job->pictures, number, &self->scratch, &data);

    if (!reason && class >= job->encoding.classes)
        reason = "its label is out of range";
    if (!reason)
        reason = data.raw ? pace__picture_resize(self->loader, data.bytes, data.height, data.width,
                                                 data.channels, pixels)
                          : pace__picture_load(self->loader, data.bytes, data.size, pixels);
    self->counts->bytes_read += data.read;
    self->sources[index] = (uint32_t)number;
    self->labels[index] = reason ? 0 : (uint16_t) class;
    if (!reason) {
        self->counts->decoded++;
        return PACE_OK;
    }
    memset(pixels, 0, self->columns); /* nobody will see it */
    return refuse(self, row, number, reason);
}

/* `count` rows of a set from `place` on, which are all in one part. */
static pace_status write_rows(const decoder *self, int set, uint64_t place, size_t index, size_t count)
{
    const pace__images *job = self->job;
    const pace__store_info *info = &job->info;
    uint32_t part = pace__part_of(info->rows[set], info->parts, place);
    const pace__part *file = &job->parts[part];
    const pace__part_set *at = &file->sets[set];
    uint64_t row = place - pace__part_begin(info->rows[set], info->parts, part);
    const pace_log *log = job->rank.log;
    pace_status status =
        pace__part_put(file, at->label_at, row, sizeof *self->labels, self->labels + index, count, log);

    if (!status)
        status = pace__part_put(file, at->source_at, row, sizeof *self->sources, self->sources + index, count,
                                log);
    if (!status)
        status = pace__part_put(file, at->pixels_at, row, self->columns, self->pixels + index * self->columns,
                                count, log);
    return status ? status
                  : pace__sums_put(info, file, set, &(pace__written){row, count, row},
                                   &(pace__into){.classes = self->labels + index,
                                                 .source = self->sources + index,
                                                 .pixels = self->pixels + index * self->columns},
                                   log);
}

static pace_status write_batch(const decoder *self, uint64_t first, size_t rows)
{
    const pace__store_info *info = &self->job->info;
    pace_status status = PACE_OK;

    for (size_t index = 0; index < rows && !status;) {
        uint64_t place;
        int set = pace__image_set(info->rows, first + index, &place);
        uint32_t part = pace__part_of(info->rows[set], info->parts, place);
        uint64_t left = pace__part_begin(info->rows[set], info->parts, part + 1) - place;
        size_t count = rows - index < left ? rows - index : (size_t)left;

        status = write_rows(self, set, place, index, count);
        index += count;
    }
    return status;
}

/* --- threads --- */

static void report(const decoding *team, uint64_t *told_ns)
{
    const pace__images *job = team->job;
    uint64_t share = (uint64_t)job->prep.ranks; /* the others do as much, more or less */
    pace_field fields[] = {PACE_TEXT("phase", "decode"), PACE_INT("done", (atomic_load(&team->done)) * share),
                           PACE_INT("total", (team->last - team->first) * share),
                           PACE_TEXT("unit", "pictures")};

    if (job->rank.number > 0 || (*told_ns != 0 && pace__seconds_since(*told_ns) < REPORT_S))
        return;
    *told_ns = pace__now_ns();
    pace_registry_emit(job->prep.registry, "progress", fields, 4);
}

static pace_status decode_batch(decoder *self, uint64_t first, uint64_t last)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = PACE_OK;

    for (uint64_t row = first; row < last && !status; row++)
        status = decode_row(self, row, (size_t)(row - first));
    if (!status)
        status = write_batch(self, first, (size_t)(last - first));
    self->counts->busy_s += pace__seconds_since(start_ns);
    return status;
}

/* One thread owns the link, and speaks for all. */
static pace_status look_around(const decoder *self, bool owner, uint64_t *told_ns)
{
    if (owner)
        report(self->team, told_ns);
    return pace__prep_look(&self->job->prep, &self->job->rank, owner);
}

static pace_status open_decoder(decoder *self)
{
    const pace__encoding *encoding = &self->job->encoding;
    pace__picture_plan plan = {encoding->height, encoding->width, encoding->channels, encoding->fit};
    size_t batch = self->team->batch;

    self->pixels = malloc(batch * self->columns);
    self->labels = malloc(batch * sizeof *self->labels);
    self->sources = malloc(batch * sizeof *self->sources);
    if (!self->pixels || !self->labels || !self->sources)
        return pace_fail(self->job->rank.log, PACE_FAILED, "out of memory");
    return pace__picture_loader_create(&plan, self->job->rank.log, &self->loader);
}

static pace_status run_thread(void *arg, int thread)
{
    decoding *team = arg;
    pace__images *job = team->job;
    decoder self = {.team = team,
                    .job = job,
                    .counts = &team->counts[thread],
                    .columns = pace__encoding_columns(&job->encoding)};
    bool owner = thread == job->threads - 1; /* the caller's own */
    pace_status status = open_decoder(&self);
    uint64_t told_ns = 0;

    while (!status && !(status = look_around(&self, owner, &told_ns))) {
        uint64_t first = atomic_fetch_add(&team->next, team->batch), last = first + team->batch;

        last = last < team->last ? last : team->last;
        if (first >= team->last)
            break;
        status = decode_batch(&self, first, last);
        atomic_fetch_add(&team->done, last - first);
    }
    if (status)
        pace__prep_give_up(&job->prep, status);
    if (self.loader)
        self.counts->turned = pace__picture_loader_turned(self.loader);
    pace__picture_loader_free(self.loader);
    pace__picture_scratch_release(&self.scratch);
    free(self.pixels);
    free(self.labels);
    free(self.sources);
    return status;
}

/* The owner may be done before others are: they must not be waited for in silence for too long, but what is
 * left to them is a batch. */
pace_status pace__images_decode(pace__images *job)
{
    uint64_t rows = pace__image_rows(job), ranks = (uint64_t)job->prep.ranks, me = (uint64_t)job->rank.number;
    size_t batch = BATCH_BYTES / pace__encoding_columns(&job->encoding), threads = (size_t)job->threads;
    decoding team = {.job = job,
                     .first = pace__part_begin(rows, (uint32_t)ranks, (uint32_t)me),
                     .last = pace__part_begin(rows, (uint32_t)ranks, (uint32_t)me + 1),
                     .batch = batch < 1                ? 1
                              : batch > BATCH_ROWS_MAX ? BATCH_ROWS_MAX
                                                       : batch,
                     .counts = calloc(threads, sizeof *team.counts)};
    uint64_t told_ns = 0;

    if (!team.counts)
        return pace_fail(job->rank.log, PACE_FAILED, "out of memory");
    atomic_init(&team.next, team.first);
    pace_status status = pace__team(job->threads, run_thread, &team, job->rank.log);

    for (size_t i = 0; i < threads; i++) {
        const pace__image_counts *one = &team.counts[i];

        job->counts.decoded += one->decoded;
        job->counts.bad += one->bad;
        job->counts.turned += one->turned;
        job->counts.bytes_read += one->bytes_read;
        job->counts.busy_s += one->busy_s;
        job->counts.busiest_s = one->busy_s > job->counts.busiest_s ? one->busy_s : job->counts.busiest_s;
    }
    job->counts.threads = threads;
    free(team.counts);
    if (!status)
        report(&team, &told_ns);
    return status;
}
