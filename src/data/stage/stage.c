/*
 * 1. parts[].there and .out belong to whoever opens the stage, then to the background thread alone. Readers see a copy only
 *    through pace__near.copy, which is set when everything else of it is.
 * 2. Copies are closed with the stage, not before: a reader may still be at one that was given up.
 */
#include "data/stage/stage.h"

#include "base/clock.h"
#include "base/kept.h"
#include "data/stage/stage_files.h"
#include "data/stage/stage_plan.h"
#include "data/store/near.h"
#include "data/store/sums.h"
#include "files/file.h"
#include "files/new_file.h"
#include "files/open.h"
#include "threads/background.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Read at once, between two looks at whether to stop. */
#define PIECE_BYTES ((size_t)1 << 20)
/* Written before the disk is waited for, and before its free space is looked at again. */
#define SYNC_BYTES ((uint64_t)64 << 20)
/* How often a process that does not copy looks for what others have. */
#define LOOK_NS 500000000u
/* Descriptors for everything but copies. */
#define DESCRIPTORS_KEPT 256

struct pace__stage {
    pace__store *store;
    pace__stage_options options;
    const pace_log *log;
    uint32_t count;
    char *parent, *directory;
    char **paths;            /* (count): where the copies are */
    char **sorted;           /* (count): the same, to be found by name */
    pace__stage_part *parts; /* (count) */
    uint32_t *order;         /* (count) */
    bool *taken;             /* (count) */
    pace__part *copies;      /* (count) */
    pace__near *near;        /* (count) */
    uint64_t found;          /* bytes */
    atomic_uint_fast64_t copied, dropped;
    atomic_uint warned; /* bits of `warning` */
    pace__background *background;
    pthread_mutex_t mutex;
    pthread_cond_t stopped;
    _Atomic int stops; /* is set under the mutex */
};

/* --- what is said --- */

static double megabytes(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

/* Invariant 1 of stage.h: each once. */
typedef enum warning { OF_COPYING = 1, OF_DROPPED = 2, OF_DAMAGED = 4 } warning;

static bool may_warn(pace__stage *self, warning what)
{
    return !(atomic_fetch_or(&self->warned, (unsigned)what) & (unsigned)what);
}

/* Its file is removed. */
static void hear_given_up(void *owner, const pace__part *copy, pace_status why)
{
    pace__stage *self = owner;

    if (pace__stage_remove_damaged(copy->path, copy->fd)) /* of several processes, one counts it */
        atomic_fetch_add(&self->dropped, 1);
    if (may_warn(self, OF_DAMAGED))
        pace_say(self->log, PACE_WARN,
                 "%s: %s; it is removed, and training goes on from %s. If this happens again, the disk is "
                 "failing: choose another directory for --stage",
                 copy->path,
                 why == PACE_BAD_DATA
                     ? "the copy is damaged: rows are not those that were written, by their checksum"
                     : "the copy cannot be read",
                 copy->source->path);
}

/* `help`: what can be done about it. */
static void warn_of_copying(pace__stage *self, const char *reason, const char *help)
{
    if (may_warn(self, OF_COPYING))
        pace_say(self->log, PACE_WARN,
                 "%s: nothing more is copied, and what has no copy is read from %s. %s or choose another "
                 "directory for --stage; the run need not be stopped for it",
                 reason, self->store->path, help);
}

/* It was made, and is not what the data set says. If the source is damaged, its readers will say so. */
static void drop(pace__stage *self, uint32_t index)
{
    atomic_fetch_add(&self->dropped, 1);
    if (may_warn(self, OF_DROPPED))
        pace_say(
            self->log, PACE_WARN,
            "%s: its copy in %s does not have the checksums of the data set, and is dropped: rows are read "
            "from the part itself, and compared. Either that is damaged, or what was read or written on the "
            "way",
            self->store->parts[index].path, self->directory);
}

/* --- stopping --- */

/* False: stop. */
static bool rest(pace__stage *self, uint64_t ns)
{
    uint64_t until_ns = pace__now_ns() + ns;
    struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    int result = 0;

    pthread_mutex_lock(&self->mutex);
    while (!self->stops && result == 0)
        result = pthread_cond_timedwait(&self->stopped, &self->mutex, &until);
    bool stops = self->stops;

    pthread_mutex_unlock(&self->mutex);
    return !stops;
}

static void stop(pace__stage *self)
{
    pthread_mutex_lock(&self->mutex);
    self->stops = 1;
    pthread_cond_broadcast(&self->stopped);
    pthread_mutex_unlock(&self->mutex);
}

/* --- using copies --- */

static void close_copy(pace__part *copy)
{
    if (!copy->source)
        return;
    for (int set = 0; set < PACE__SETS; set++)
        free(copy->sets[set].checked);
    if (copy->fd >= 0)
        close(copy->fd);
    *copy = (pace__part){0};
}

/* The part's layout, with nothing compared yet. */
static bool make_copy(const pace__stage *self, uint32_t index, int fd, pace__part *copy)
{
    const pace__part *part = &self->store->parts[index];
    struct stat info = {0};
    bool ok = fstat(fd, &info) == 0;

    *copy = (pace__part){.path = self->paths[index], .fd = fd, .written = info.st_mtim, .source = part};
    for (int set = 0; set < PACE__SETS; set++) {
        uint64_t blocks = pace__sum_blocks(&self->store->info.encoding, &part->sets[set]);

        copy->sets[set] = part->sets[set];
        if (part->sets[set].checked)
            copy->sets[set].checked = calloc(blocks / 64 + 1, sizeof *copy->sets[set].checked);
        ok = ok && (copy->sets[set].checked || !part->sets[set].checked);
    }
    return ok;
}

/* Takes what is there. Returns its bytes. */
static uint64_t adopt(pace__stage *self, uint32_t index)
{
    int fd = pace__stage_open_copy(self->paths[index], self->parts[index].bytes);

    if (fd < 0)
        return 0;
    if (!make_copy(self, index, fd, &self->copies[index])) {
        close_copy(&self->copies[index]);
        self->parts[index].out = true;
        return 0;
    }
    self->parts[index].there = true;
    atomic_store_explicit(&self->near[index].copy, &self->copies[index], memory_order_release);
    /* Nobody here reads these pages again, but for starts (near.h); they would push out those of the copy. */
    if (self->store->info.columns)
        posix_fadvise(self->store->parts[index].fd, 0, 0, POSIX_FADV_DONTNEED);
    return self->parts[index].bytes;
}

/* Descriptors that copies may have. */
static uint64_t files_left(const pace__stage *self)
{
    struct rlimit limit;
    uint64_t used = DESCRIPTORS_KEPT + (uint64_t)self->count;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    for (uint32_t i = 0; i < self->count; i++)
        used += self->parts[i].there;
    return limit.rlim_cur > used ? (uint64_t)limit.rlim_cur - used : 0;
}

/* All that is there, as far as there are descriptors. True: nothing is missing. */
static bool adopt_all(pace__stage *self, uint64_t *bytes)
{
    uint64_t files = files_left(self);
    bool all = true;

    for (uint32_t i = 0; i < self->count; i++) {
        pace__stage_part *part = &self->parts[i];

        if (!part->there && !part->out && files > 0) {
            *bytes += adopt(self, i);
            files -= part->there;
        }
        all = all && (part->there || part->out);
    }
    return all;
}

/* --- room --- */

static bool look_at_disk(const pace__stage *self, bool sweep, uint64_t *room, pace__stage_list *others)
{
    return pace__stage_look(&(pace__stage_place){.parent = self->parent,
                                                 .directory = self->directory,
                                                 .bytes_max = self->options.bytes_max,
                                                 .own = self->sorted,
                                                 .own_count = self->count},
                            sweep, room, others);
}

static uint64_t choose(pace__stage *self, uint64_t room, uint32_t *first)
{
    return pace__stage_choose(self->parts, self->order, self->count, room, files_left(self), self->taken,
                              first);
}

/* The part to be copied now; PACE__STAGE_NONE: nothing that is missing fits. */
static uint32_t next_part(pace__stage *self)
{
    pace__stage_list others;
    uint64_t room;
    uint32_t first = PACE__STAGE_NONE;

    if (!look_at_disk(self, true, &room, &others))
        return PACE__STAGE_NONE;
    choose(self, room + pace__stage_list_bytes(&others), &first);
    bool again = first != PACE__STAGE_NONE && self->parts[first].bytes > room;

    if (again)
        pace__stage_make_room(&others, room, self->parts[first].bytes);
    pace__stage_list_release(&others);
    if (again && look_at_disk(self, false, &room, &others)) { /* some may be in use: what fits now? */
        choose(self, room, &first);
        pace__stage_list_release(&others);
    }
    return first;
}

/* --- copying --- */

/* While a part is written: has somebody else filled the disk? */
static bool is_short(int fd)
{
    struct statvfs disk;

    return fstatvfs(fd, &disk) != 0 || disk.f_bavail < disk.f_blocks / PACE__STAGE_FREE_SHARE;
}

/* What was written is on disk, and there is room for more. */
static pace_status look_behind(int fd, const char *path, const pace_log *log)
{
    if (fdatasync(fd) != 0)
        return pace_fail(log, PACE_IO, "%s: cannot be written: %s", path, strerror(errno));
    return is_short(fd) ? pace_fail(log, PACE_IO,
                                    "%s: the disk is full, but for the part of it that is left free", path)
                        : PACE_OK;
}

static pace_status copy_piece(int from, int to, void *buffer, size_t bytes, uint64_t at, const char *source,
                              const char *path, const pace_log *log)
{
    pace_status status = pace__pread_all(from, buffer, bytes, at, source, log);

    if (!status)
        status = pace__pwrite_all(to, buffer, bytes, at, path, log);
    return status;
}

/* PACE_INTERRUPTED in silence. */
static pace_status copy_bytes(pace__stage *self, uint32_t index, int from, int to, void *buffer,
                              const pace_log *log)
{
    const char *path = self->paths[index];
    uint64_t bytes = self->parts[index].bytes;

    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t piece = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;
        uint64_t start_ns = pace__now_ns();

        pace_status status = at % SYNC_BYTES == 0 ? look_behind(to, path, log) : PACE_OK;

        if (!status)
            status = copy_piece(from, to, buffer, piece, at, self->store->parts[index].path, path, log);

        if (status)
            return status;
        if (!rest(self, pace__stage_rest_ns(piece, pace__now_ns() - start_ns, self->options.rate)))
            return PACE_INTERRUPTED;
    }
    return PACE_OK;
}

/* Is it what the data set says that it is? The bits of what was compared are not kept: see near.h. */
static pace_status check_copy(const pace__stage *self, uint32_t index, int fd, const pace_log *log)
{
    pace__part copy;
    pace_status status =
        pace__checksums_verify(&self->store->checksums, index + 1, fd, self->paths[index], log);

    if (status)
        return status;
    if (make_copy(self, index, dup(fd), &copy))
        status = pace__sums_check_part(&self->store->info, &copy, &self->stops, log);
    else
        status = pace_fail(log, PACE_IO, "%s: out of memory or descriptors", self->paths[index]);
    close_copy(&copy);
    return status;
}

static pace_status copy_part(pace__stage *self, uint32_t index, const pace_log *log)
{
    char *buffer = malloc(PIECE_BYTES);
    pace__new_file file;
    int from = -1;
    pace_status status = buffer ? pace__open(self->store->parts[index].path, PACE__TO_READ, log, &from)
                                : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        status = pace__new_file_begin(self->paths[index], log, &file);
    if (!status) {
        posix_fadvise(from, 0, 0, POSIX_FADV_SEQUENTIAL);
        status = copy_bytes(self, index, from, file.fd, buffer, log);
        if (!status)
            status = check_copy(self, index, file.fd, log);
        status = pace__new_file_end(&file, status);
    }
    if (from >= 0)
        close(from);
    free(buffer);
    return status;
}

/* False: no more. */
static bool copy_next(pace__stage *self)
{
    char reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;
    uint32_t index = next_part(self);

    if (index == PACE__STAGE_NONE)
        return false;
    pace__kept_init(&kept, reason, sizeof reason);
    pace_status status = copy_part(self, index, &kept.log);

    if (!status)
        atomic_fetch_add(&self->copied, adopt(self, index));
    else if (status == PACE_BAD_DATA)
        drop(self, index);
    else if (status != PACE_INTERRUPTED)
        warn_of_copying(self, reason, "Make room");
    if (!self->parts[index].there)
        self->parts[index].out = true; /* it is tried once */
    return !status || status == PACE_BAD_DATA;
}

/* Who has cleaned up may have removed the directory. False: nobody can copy. */
static bool take_lock(pace__stage *self, int *lock)
{
    char reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    pace__kept_init(&kept, reason, sizeof reason);
    bool made = pace__stage_make(self->parent, self->directory, false, &kept.log) == PACE_OK,
         possible = made && pace__stage_lock(self->directory, &kept.log, lock) == PACE_OK;

    if (!possible && self->options.warns)
        warn_of_copying(self, reason, made ? "Remove that" : "Make it again");
    return possible;
}

/* Until all is there, nothing more fits, or the stage is closed. */
static void work(void *user)
{
    pace__stage *self = user;
    uint64_t ignored = 0;
    int lock = -1;
    bool more = true;

    while (more && rest(self, 0)) {
        bool possible = lock >= 0 || take_lock(self, &lock);

        /* Behind the lock: what another has just finished is not copied again. */
        more = !adopt_all(self, &ignored) && possible;
        if (more && lock >= 0)
            more = copy_next(self);
        else if (more)
            more = rest(self, LOOK_NS);
    }
    if (lock >= 0)
        close(lock);
}

/* --- life --- */

static void say_plan(pace__stage *self)
{
    pace__stage_list others = {0};
    uint64_t room = 0, there = 0, missing = 0;
    uint32_t first, parts = 0;

    for (uint32_t i = 0; i < self->count; i++) {
        pace__stage_part *part = &self->parts[i];

        if (self->options.dry)
            part->there = pace__stage_has_copy(self->paths[i], part->bytes);
        there += part->there ? part->bytes : 0;
        missing += part->there ? 0 : part->bytes;
        parts += part->there;
    }
    bool asked = look_at_disk(self, false, &room, &others);
    uint64_t copied = asked ? choose(self, room + pace__stage_list_bytes(&others), &first) : 0;
    char rate[64] = "", left[160] = "";

    if (self->options.rate)
        snprintf(rate, sizeof rate, ", at most %.3g MB/s", (double)self->options.rate / 1e6);
    if (missing > copied)
        snprintf(left, sizeof left, "; %.1f MB stay there (--stage-bytes, free space, or ulimit -n)",
                 megabytes(missing - copied));
    pace_say(self->log, missing > copied ? PACE_WARN : PACE_INFO,
             "staging: %u of %u parts (%.1f MB) are in %s; %.1f MB %s copied from %s in the background%s%s",
             parts, self->count, megabytes(there), self->directory, megabytes(copied),
             self->options.dry ? "would be" : "are", self->store->path, rate, left);
    pace__stage_list_release(&others);
}

/* By what each part is known, and what it is worth. False: out of memory, or it has no name. */
static bool describe_part(pace__stage *self, uint32_t index)
{
    const pace__part *part = &self->store->parts[index];
    uint64_t train = part->sets[PACE__TRAIN].rows;
    char name[PACE__XXH3_HEX];

    if (!pace__part_content(self->store, index, name))
        return false;
    self->paths[index] = pace__stage_copy_path(self->directory, name);
    self->parts[index] = (pace__stage_part){
        .bytes = self->store->checksums.files[index + 1].bytes,
        .rows = {train, train + part->sets[PACE__TEST].rows + part->sets[PACE__VALIDATION].rows}};
    return self->paths[index] != NULL;
}

static bool describe_parts(pace__stage *self)
{
    bool ok = self->parent && self->directory && self->paths && self->sorted && self->parts && self->order &&
              self->taken && self->copies && self->near;

    for (uint32_t i = 0; i < self->count && ok; i++) {
        ok = describe_part(self, i);
        self->near[i].owner = self;
        self->near[i].given_up = hear_given_up;
    }
    if (!ok)
        return false;
    memcpy(self->sorted, self->paths, self->count * sizeof *self->sorted);
    pace__stage_sort(self->sorted, self->count);
    pace__stage_order(self->parts, self->count, self->order);
    return true;
}

static void release(pace__stage *self)
{
    for (uint32_t i = 0; self->paths && i < self->count; i++)
        free(self->paths[i]);
    free(self->near);
    free(self->copies);
    free(self->taken);
    free(self->order);
    free(self->parts);
    free(self->sorted);
    free(self->paths);
    free(self->directory);
    free(self->parent);
    pthread_cond_destroy(&self->stopped);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

static pace__stage *create(pace__store *store, const pace__stage_options *options, const pace_log *log)
{
    pace__stage *self = calloc(1, sizeof *self);
    uint32_t count = store->info.parts;
    pthread_condattr_t attributes;

    if (!self)
        return NULL;
    *self = (pace__stage){.store = store, .options = *options, .log = log, .count = count};
    pthread_mutex_init(&self->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->stopped, &attributes);
    pthread_condattr_destroy(&attributes);
    self->parent = strdup(options->parent);
    self->directory = pace__stage_directory(options->parent);
    self->paths = calloc(count, sizeof *self->paths);
    self->sorted = calloc(count, sizeof *self->sorted);
    self->parts = calloc(count, sizeof *self->parts);
    self->order = calloc(count, sizeof *self->order);
    self->taken = calloc(count, sizeof *self->taken);
    self->copies = calloc(count, sizeof *self->copies);
    self->near = calloc(count, sizeof *self->near);
    return self;
}

/* False, with the reason in the log, if there can be no copies. */
static bool prepare(pace__stage *self, const pace_log *log)
{
    const pace__store *store = self->store;

    if (store->checksums.count == 0 || !pace__store_has_sums(store)) {
        pace_say(log, PACE_ERROR, "%s: has no checksums, by which a copy could be known: prepare it again",
                 store->path);
        return false;
    }
    if (!describe_parts(self)) {
        pace_say(log, PACE_ERROR, "%s: out of memory, or its checksums cannot be read", store->path);
        return false;
    }
    return pace__stage_make(self->parent, self->directory, self->options.dry, log) == PACE_OK;
}

/* Readers come to know of the copies here. */
static bool begin(pace__stage *self, const pace_log *log)
{
    if (pace__background_create(log, &self->background) != PACE_OK)
        return false;
    for (uint32_t i = 0; i < self->count; i++)
        self->store->parts[i].near = &self->near[i];
    adopt_all(self, &self->found);
    if (self->options.speaks)
        say_plan(self);
    pace__background_start(self->background, work, self);
    return true;
}

pace__stage *pace__stage_open(pace__store *store, const pace__stage_options *options, const pace_log *log)
{
    char reason[PACE_LOG_TEXT_MAX] = "out of memory";
    pace__stage *self = create(store, options, log);
    pace__kept kept;

    pace__kept_init(&kept, reason, sizeof reason);
    bool ready = self && prepare(self, &kept.log);

    if (ready && options->dry)
        say_plan(self);
    else if (ready && begin(self, &kept.log))
        return self;
    if ((!ready || !options->dry) && options->warns)
        pace_say(log, PACE_WARN, "nothing %s staged: %s. Rows %s read from %s",
                 options->dry ? "would be" : "is", reason, options->dry ? "would be" : "are", store->path);
    if (self)
        release(self);
    return NULL;
}

void pace__stage_close(pace__stage *stage, bool clean)
{
    if (!stage)
        return;
    stop(stage);
    pace__background_free(stage->background);
    for (uint32_t i = 0; i < stage->count; i++) {
        stage->store->parts[i].near = NULL;
        close_copy(&stage->copies[i]);
        if (clean)
            pace__stage_remove(stage->paths[i]);
    }
    if (clean)
        pace__stage_remove_directory(stage->directory);
    release(stage);
}

pace__stage_figures pace__stage_figures_of(const pace__stage *stage)
{
    pace__stage_figures figures = {0};

    if (!stage)
        return figures;
    figures.found = stage->found;
    figures.copied = atomic_load(&stage->copied);
    figures.dropped = atomic_load(&stage->dropped);
    for (uint32_t i = 0; i < stage->count; i++) {
        figures.wanted += stage->parts[i].bytes;
        figures.read_near += atomic_load_explicit(&stage->near[i].read_near, memory_order_relaxed);
        figures.read_source += atomic_load_explicit(&stage->near[i].read_source, memory_order_relaxed);
    }
    return figures;
}

const char *pace__stage_place_of(const pace__stage *stage, uint64_t *bytes)
{
    *bytes = 0;
    for (uint32_t i = 0; i < stage->count; i++)
        *bytes += pace__stage_has_copy(stage->paths[i], stage->parts[i].bytes) ? stage->parts[i].bytes : 0;
    return stage->directory;
}

bool pace__stage_wait(pace__stage *stage, uint64_t most_ns)
{
    return pace__background_wait_for(stage->background, most_ns);
}
