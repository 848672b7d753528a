/*
 * What the frozen layers make of the pictures, once for each: a data set of features (data/store/store.h) in
 * CACHE/KEY, which takes the place of the pictures in training. The key stands for everything that features
 * depend on: weights, network, preprocessing, data set. So what is found there fits, and is never out of date.
 *
 * All processes of a job come here, and other jobs may want the same features at the same time: each takes
 * parts that nobody has and nobody is at, in CACHE/.KEY.partial. Who is at a part holds a lock on a file, which
 * ends with the process; so a part whose maker has died is taken by another one, and parts that are complete
 * outlive an interruption. Who finds all parts complete seals the set and gives it its name.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "data/picture/class_names.h"
#include "data/store/sums.h"
#include "files/file.h"
#include "files/open.h"
#include "ranks/aside.h"
#include "roles/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pixels that are read at a time. */
#define PIECE_BYTES    ((size_t)16 << 20)
#define PIECE_ROWS_MAX 256
#define POLL_NS        20000000

typedef struct extractor {
    pace__process *process;
    pace__job *job; /* the process's */
    const pace__store *pictures;
    pace__store_info info;  /* of the features */
    char *target, *partial; /* directories */
    pace__model *model;     /* made when the first part is taken */
    uint32_t piece_rows;
    pace__into rows_at_hand;
    float *features;
    uint64_t rows;            /* computed here */
    uint64_t part_rows, done; /* of the part under way; of those that were complete at the last look */
    bool slow;                /* the disk, when it was last asked */
    uint64_t moved_ns;        /* when anything was seen to move on */
} extractor;

/* --- one part --- */

static pace_status open_model(extractor *self)
{
    const pace__job *job = self->job;
    const pace__store_info *info = &self->pictures->info;
    size_t rows = PIECE_BYTES / info->columns;

    if (self->model)
        return PACE_OK;
    self->piece_rows = (uint32_t)(rows == 0 ? 1 : rows > PIECE_ROWS_MAX ? PIECE_ROWS_MAX : rows);
    self->rows_at_hand.pixels = malloc((size_t)self->piece_rows * info->columns);
    self->rows_at_hand.classes = malloc(self->piece_rows * sizeof *self->rows_at_hand.classes);
    self->rows_at_hand.source = malloc(self->piece_rows * sizeof *self->rows_at_hand.source);
    self->features = malloc((size_t)self->piece_rows * self->info.columns * sizeof *self->features);
    if (!self->rows_at_hand.pixels || !self->rows_at_hand.classes || !self->rows_at_hand.source ||
        !self->features)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    return pace__model_create(&job->plan.model, self->piece_rows, job->plan.threads, true, job->log,
                              &self->model);
}

/* A sign of life for those who wait, and for those who watch. */
static pace_status pulse(extractor *self)
{
    pace__job *job = self->job;
    uint64_t all = pace__store_rows(&self->info);
    pace_field fields[] = {PACE_TEXT("phase", "features"), PACE_INT("done", self->done + self->part_rows),
                           PACE_INT("total", all), PACE_TEXT("unit", "pictures")};

    if (self->process->self.number == 0)
        pace_registry_emit(job->registry, "progress", fields, sizeof fields / sizeof *fields);
    /* The chief decides, as in training: everyone hears the signal, but some are through already. */
    if (self->process->self.number == 0 && job->config->stop && atomic_load(job->config->stop))
        return pace_fail(
            job->log, PACE_INTERRUPTED,
            "interrupted while features were computed; the parts that are complete stay in %s, and "
            "the same command goes on from there",
            self->partial);
    return pace__link_pulse(self->process->self.link);
}

/* Rows of a set of a part: others are waiting while a slow disk moves them. */
typedef struct piece {
    extractor *self;
    const pace__part *part;
    int set;
    uint64_t first, count;
} piece;

/* Read, and checked on the way. */
static pace_status read_pictures(void *user)
{
    const piece *rows = user;
    const extractor *self = rows->self;
    uint32_t columns = self->pictures->info.columns;
    pace__fetch fetch = {.store = self->pictures, .log = self->job->log, .set = rows->set};
    pace__run run = {.part = rows->part,
                     .set = &rows->part->sets[rows->set],
                     .row = rows->first,
                     .rows = rows->count,
                     .entry = rows->first * columns,
                     .entries = rows->count * columns};

    return pace__fetch_rows(&fetch, &run, &self->rows_at_hand);
}

/* The same rows of the features: classes and sources are those of the pictures. */
static pace_status write_features(void *user)
{
    const piece *rows = user;
    const extractor *self = rows->self;
    const pace_log *log = self->job->log;
    const pace__part *to = rows->part;
    const pace__part_set *at = &to->sets[rows->set];
    const pace__into *from = &self->rows_at_hand;
    uint64_t first = rows->first, count = rows->count;
    size_t row_bytes = self->info.columns * sizeof(float);
    pace_status status = pace__pwrite_all(to->fd, from->classes, count * sizeof *from->classes,
                                          at->label_at + first * sizeof *from->classes, to->path, log);

    if (!status)
        status = pace__pwrite_all(to->fd, from->source, count * sizeof *from->source,
                                  at->source_at + first * sizeof *from->source, to->path, log);
    if (!status)
        status = pace__pwrite_all(to->fd, self->features, count * row_bytes,
                                  at->features_at + first * row_bytes, to->path, log);
    return status ? status
                  : pace__sums_put(&self->info, to, rows->set, &(pace__written){first, count, first},
                                   &(pace__into){.classes = from->classes,
                                                 .source = from->source,
                                                 .features = self->features},
                                   log);
}

static pace_status aside(extractor *self, const char *what, pace__aside_fn *work, piece *rows)
{
    return pace__rank_aside_if(&self->process->self, &self->slow, what, work, rows);
}

static pace_status extract_set(extractor *self, const pace__part *from, int set, const pace__part *to)
{
    const pace__part_set *pictures = &from->sets[set];
    pace_status status = PACE_OK;

    for (uint64_t first = 0; first < pictures->rows && !status; first += self->piece_rows) {
        uint64_t left = pictures->rows - first, count = left < self->piece_rows ? left : self->piece_rows;
        pace__rows rows = {
            .rows = count, .columns = self->pictures->info.columns, .pixels = self->rows_at_hand.pixels};

        status = aside(self, "reading pictures", read_pictures, &(piece){self, from, set, first, count});
        if (!status)
            status = pace__model_features(self->model, &rows, self->features);
        if (!status)
            status = aside(self, "writing features", write_features, &(piece){self, to, set, first, count});
        self->rows += count;
        self->part_rows += count;
        if (!status)
            status = pulse(self);
    }
    return status;
}

typedef struct complete_part {
    pace__part *part;
    const char *path; /* that it gets */
    const pace_log *log;
} complete_part;

static pace_status keep_part(void *user)
{
    const complete_part *self = user;
    pace_status status = pace__part_sync(self->part, self->log);

    if (!status && rename(self->part->path, self->path) != 0)
        status = pace_fail(self->log, PACE_IO, "%s: cannot rename to %s: %s", self->part->path, self->path,
                           strerror(errno));
    return status;
}

/* In a directory of its own, from which it is moved when it is complete. */
static pace_status extract_part(extractor *self, uint32_t index, const char *path)
{
    const pace_log *log = self->job->log;
    const pace__part *from = &self->pictures->parts[index];
    char *work = pace__format("%s/work-%05u", self->partial, index);
    pace__part part = {.fd = -1};
    pace_status status = work ? pace__make_own_dir(work, log) : pace_fail(log, PACE_FAILED, "out of memory");

    for (int set = 0; set < PACE__SETS; set++) {
        part.sets[set].rows = from->sets[set].rows;
        part.sets[set].entries = from->sets[set].rows * self->info.columns;
    }
    if (!status)
        status = open_model(self);
    if (!status)
        status = pace__part_create(work, index, &self->info, &part, log);
    for (int set = 0; set < PACE__SETS && !status; set++)
        status = extract_set(self, from, set, &part);
    if (!status)
        status = pace__rank_aside(&self->process->self, "writing a part of the features", keep_part,
                                  &(complete_part){&part, path, log});
    pace__part_close(&part);
    if (work)
        pace__remove_tree(work, NULL);
    free(work);
    return status;
}

/* --- together with others --- */

/* The descriptor of a locked file, or -1: somebody else has it. */
static int try_lock(const char *path)
{
    char why[PACE__WHY_BYTES], text[64];
    int fd = pace__try_open(path, PACE__TO_SHARE, why);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        int size = snprintf(text, sizeof text, "process %ld\n", (long)getpid());

        if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)size, 0) != size)
            (void)0; /* only for people who look */
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* For whoever watches: what all have done. */
static void look_at_parts(extractor *self)
{
    self->done = self->part_rows = 0;
    for (uint32_t i = 0; self->process->self.number == 0 && i < self->info.parts; i++) {
        const pace__part *from = &self->pictures->parts[i];
        char *path = pace__part_path(self->partial, i);

        if (path && pace__exists(path))
            for (int set = 0; set < PACE__SETS; set++)
                self->done += from->sets[set].rows;
        free(path);
    }
}

/* Does the part if nobody else is at it. */
static pace_status try_part(extractor *self, uint32_t index, bool *complete, bool *busy)
{
    char *path = pace__part_path(self->partial, index);
    char *lock_path = pace__format("%s/part-%05u.lock", self->partial, index);
    pace_status status =
        path && lock_path ? PACE_OK : pace_fail(self->job->log, PACE_FAILED, "out of memory");

    *complete = !status && pace__exists(path);
    if (!status && !*complete) {
        int lock = try_lock(lock_path);

        if (lock >= 0 && !pace__exists(path) && pace__exists(self->partial)) {
            look_at_parts(self);
            status = extract_part(self, index, path);
            *busy = true;
        }
        *complete = !status && pace__exists(path);
        if (lock >= 0)
            close(lock);
    }
    free(path);
    free(lock_path);
    return status;
}

static pace_status copy_names(const extractor *self)
{
    const pace_log *log = self->job->log;
    pace__class_names names = {0};
    char *text = NULL, *from = pace__format("%s/images.txt", self->pictures->path),
         *to = pace__format("%s/images.txt", self->partial);
    size_t size = 0;
    pace_status status = from && to ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        status = pace__class_names_read(self->pictures->path, &self->pictures->info.encoding, log, &names);
    if (!status)
        status = pace__class_names_write(self->partial, &names, log);
    if (!status && pace__exists(from)) {
        status = pace__read_file(from, SIZE_MAX / 2, &text, &size, log);
        if (!status)
            status = pace__write_file_atomically(to, text, size, log);
    }
    pace__class_names_release(&names);
    free(text);
    free(from);
    free(to);
    return status;
}

static pace_status remove_locks(const extractor *self)
{
    pace_status status = PACE_OK;

    for (uint32_t i = 0; i < self->info.parts && !status; i++) {
        char *path = pace__format("%s/part-%05u.lock", self->partial, i);

        status = path ? pace__remove_tree(path, self->job->log)
                      : pace_fail(self->job->log, PACE_FAILED, "out of memory");
        free(path);
    }
    return status;
}

/* All parts are there: the set gets its name, from one of those who see it. */
static pace_status try_seal(void *user)
{
    const extractor *self = user;
    const pace_log *log = self->job->log;
    const char *name = strrchr(self->target, '/') + 1;
    char *lock_path = pace__format("%.*s.%s.seal", (int)(name - self->target), self->target, name);
    int lock = lock_path ? try_lock(lock_path) : -1;
    pace_status status = lock_path ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    if (lock >= 0 && !pace__exists(self->target)) {
        status = remove_locks(self);
        if (!status)
            status = copy_names(self);
        if (!status)
            status = pace__store_seal(self->partial, log);
        if (!status && rename(self->partial, self->target) != 0)
            status = pace_fail(log, PACE_IO, "%s: cannot rename to %s: %s", self->partial, self->target,
                               strerror(errno));
        if (!status)
            status = pace__sync_parent(self->target, log);
    }
    if (lock >= 0) {
        unlink(lock_path);
        close(lock);
    }
    free(lock_path);
    return status;
}

/* One look at all parts. */
static pace_status one_round(extractor *self, uint32_t *complete, bool *busy)
{
    pace_status status = PACE_OK;

    *complete = 0;
    *busy = false;
    for (uint32_t i = 0; i < self->info.parts && !status && !pace__exists(self->target); i++) {
        bool whole;

        status = try_part(self, i, &whole, busy);
        *complete += whole;
    }
    if (!status && *complete == self->info.parts && !pace__exists(self->target))
        status = pace__rank_aside(&self->process->self, "sealing the features", try_seal, self);
    return status;
}

static pace_status extract(extractor *self)
{
    const pace_log *log = self->job->log;
    uint32_t complete = 0, before = UINT32_MAX;
    double deadline = self->job->config->cluster.deadline;
    bool busy = false;
    pace_status status = PACE_OK;

    self->moved_ns = pace__now_ns();
    while (!status && !pace__exists(self->target)) {
        status = pace__make_own_dir(self->partial, log);
        if (!status)
            status = one_round(self, &complete, &busy);
        if (complete != before || busy)
            self->moved_ns = pace__now_ns();
        before = complete;
        if (status || busy)
            continue;
        look_at_parts(self);
        status = pulse(self);
        if (!status && (double)(pace__now_ns() - self->moved_ns) * 1e-9 > deadline * self->info.parts)
            status =
                pace_fail(log, PACE_FAILED,
                          "%s: %u of %u parts are there, and nobody has finished another one for %.0f s: "
                          "look at the processes that the .lock files name",
                          self->partial, complete, self->info.parts, deadline * self->info.parts);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    return status;
}

/* --- the whole of it --- */

static pace_status plan_extraction(void *user)
{
    extractor *self = user;
    pace__job *job = self->job;
    const pace__store_info *pictures = &job->store.info;
    uint32_t features = job->plan.model.features;
    uint64_t key = 0;
    pace_status status = pace__job_feature_key(job, &key);
    char *cache = job->plan.model.feature_cache ? strdup(job->plan.model.feature_cache)
                                                : pace__format("%s/" PACE__RUN_FEATURES, job->config->run);

    self->info = *pictures;
    self->info.command = pictures->command ? pictures->command : (char *)"";
    self->info.encoding.kind = PACE__FEATURES;
    self->info.encoding.features = features;
    self->info.encoding.origin = key;
    self->info.columns = self->info.row_entries_max = features;
    for (int set = 0; set < PACE__SETS; set++)
        self->info.entries[set] = pictures->rows[set] * features;
    self->target = cache ? pace__format("%s/%016" PRIx64, cache, key) : NULL;
    self->partial = cache ? pace__format("%s/.%016" PRIx64 ".partial", cache, key) : NULL;
    if (!status && (!self->target || !self->partial))
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    free(cache);
    return status;
}

/* Nothing is computed in a dry run: the set is only described. */
static void describe(extractor *self)
{
    pace__job *job = self->job;
    const pace__store_info *info = &self->info;
    bool there = pace__is_store(self->target);

    pace_say(job->log, PACE_INFO, "features: %s%s (%.1f MB)",
             there ? "will be taken from " : "will be computed once and kept in ", self->target,
             (double)pace__store_entries(info) * sizeof(float) / 1e6);
    job->store.info.encoding = info->encoding;
    job->store.info.columns = job->store.info.row_entries_max = info->columns;
    for (int set = 0; set < PACE__SETS; set++)
        job->store.info.entries[set] = info->entries[set];
}

static pace_status open_features(void *user)
{
    const extractor *self = user;
    pace__job *job = self->job;
    pace__store features;
    pace_status status = pace__store_open(self->target, &features, job->log);

    if (!status && features.info.encoding.origin != self->info.encoding.origin) {
        pace__store_close(&features);
        status = pace_fail(job->log, PACE_BAD_DATA, "%s: holds other features: remove it", self->target);
    }
    if (status)
        return status;
    pace__store_close(&job->store);
    job->store = features;
    return PACE_OK;
}

pace_status pace__process_use_features(pace__process *process)
{
    pace__job *job = process->job;
    extractor self = {.process = process, .job = job, .pictures = &job->store, .slow = true};
    uint64_t start_ns = pace__now_ns();

    if (job->store.info.encoding.kind == PACE__FEATURES)
        return pace_fail(job->log, PACE_USAGE,
                         "%s: is a feature cache: give --data the pictures it was made of",
                         job->config->data);
    pace_status status = pace__rank_aside(&process->self, "looking for features", plan_extraction, &self);

    if (!status && job->config->dry_run) {
        describe(&self);
    } else if (!status) {
        bool there = pace__is_store(self.target);

        if (!there)
            status = extract(&self);
        if (!there)
            rmdir(self.partial); /* perhaps made anew while another one gave it its name */
        if (!status)
            status = pace__rank_aside(&process->self, "opening the features", open_features, &self);
        double seconds = job->features_s = pace__seconds_since(start_ns);

        if (!status && there)
            pace_say(job->log, PACE_INFO, "features: taken from %s, computed earlier", self.target);
        else if (!status)
            pace_say(job->log, PACE_INFO,
                     "features: %" PRIu64
                     " pictures through %u layers here in %.1f s (%.0f a second); kept in %s",
                     self.rows, job->plan.model.layers, seconds, (double)self.rows / seconds, self.target);
    }
    if (status == PACE_INTERRUPTED) /* nobody is at a step yet whose end could be agreed on */
        pace__process_fail(process, status);
    pace__model_free(self.model);
    free(self.rows_at_hand.pixels);
    free(self.rows_at_hand.classes);
    free(self.rows_at_hand.source);
    free(self.features);
    free(self.target);
    free(self.partial);
    return status;
}
