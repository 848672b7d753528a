/* Reduce: from counted words to the vocabulary, and from local ids to its ids. */
#include "files/file.h"
#include "files/open.h"
#include "prep/reviews/reviews.h"
#include "prep/reviews/words_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Texts that belong together. */
typedef struct paths {
    char **items;
    size_t count;
} paths;

static void free_paths(paths *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (paths){0};
}

/* Takes over `path`, which may be NULL. */
static bool add_path(paths *list, char *path)
{
    list->items[list->count] = path;
    list->count += path != NULL;
    return path != NULL;
}

static int partitions_of(const pace__reviews *job)
{
    return job->prep.ranks < PACE__WORDS_RANGES ? job->prep.ranks : PACE__WORDS_RANGES;
}

/* --- counts to vocabulary --- */

/* The files of all generations of all ranks, in the order of table_first. */
static pace_status list_words(const pace__reviews_rank *self, paths *list)
{
    const pace__reviews *job = self->job;
    bool complete = (list->items = calloc(job->table_count + 1, sizeof *list->items)) != NULL;

    for (int rank = 0; rank < job->prep.ranks && complete; rank++) {
        uint32_t generations = job->table_first[rank + 1] - job->table_first[rank];
        char name[sizeof self->counter_name];

        snprintf(name, sizeof name, "words-%d", rank);
        for (uint32_t i = 0; i < generations && complete; i++)
            complete = add_path(list, pace__words_path(job->prep.directory, name, i));
    }
    return complete ? PACE_OK : pace_fail(self->me.log, PACE_FAILED, "out of memory");
}

static char *partition_path(const pace__reviews *job, int partition)
{
    return pace__format("%s/frequent-%d", job->prep.directory, partition);
}

static pace_status reduce_partition(pace__reviews_rank *self)
{
    const pace__reviews *job = self->job;
    paths words = {0};
    char *output = NULL;
    pace_status status = PACE_OK;

    if (self->me.number >= partitions_of(job))
        return PACE_OK;
    status = list_words(self, &words);
    if (!status && !(output = partition_path(job, self->me.number)))
        status = pace_fail(self->me.log, PACE_FAILED, "out of memory");
    if (!status)
        status = pace__words_reduce((const char *const *)words.items, words.count, (uint32_t)self->me.number,
                                    (uint32_t)partitions_of(job), (uint32_t)job->config->vocab, output,
                                    &self->counts.distinct, self->me.log);
    free(output);
    free_paths(&words);
    return status;
}

/* Rank 0. */
static pace_status make_vocabulary(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    int partitions = partitions_of(job);
    paths outputs = {.items = calloc((size_t)partitions, sizeof(char *))};
    bool complete = outputs.items != NULL;

    for (int i = 0; i < partitions && complete; i++)
        complete = add_path(&outputs, partition_path(job, i));
    pace_status status = complete ? pace__words_join((const char *const *)outputs.items, outputs.count,
                                                     (uint32_t)job->config->vocab, job->stops,
                                                     job->stop_count, self->me.log, &job->vocabulary)
                                  : pace_fail(self->me.log, PACE_FAILED, "out of memory");

    for (size_t i = 0; i < outputs.count; i++)
        unlink(outputs.items[i]);
    free_paths(&outputs);
    return status;
}

/* What a vocabulary adds to an encoding. */
typedef struct vocabulary_word {
    uint64_t checksum, ids;
} vocabulary_word;

/* Rank 0 writes it, the others read it. */
static pace_status spread_vocabulary(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    vocabulary_word word = {0};
    pace_status status = PACE_OK;

    if (self->me.number == 0) {
        word = (vocabulary_word){pace__vocabulary_checksum(job->vocabulary),
                                 pace__vocabulary_ids(job->vocabulary)};
        status = pace__vocabulary_write(job->vocabulary, job->prep.directory, self->me.log);
    }
    if (!status)
        status = pace__ranks_share(self->me.link, &word, sizeof word);
    if (status || !pace__prep_is_first(&self->job->prep, &self->me))
        return status;
    job->encoding.vocabulary = word.checksum;
    job->encoding.features = word.ids;
    return job->vocabulary
               ? PACE_OK
               : pace__vocabulary_read(job->prep.directory, &job->encoding, self->me.log, &job->vocabulary);
}

/* --- local ids to ids --- */

char *pace__reviews_table_path(const pace__reviews *job, int rank, uint32_t generation)
{
    return pace__format("%s/ids-%d-%u", job->prep.directory, rank, generation);
}

static pace_status write_table(const char *path, const uint32_t *ids, size_t count, const pace_log *log)
{
    int fd;
    pace_status status = pace__open(path, PACE__TO_CREATE, log, &fd);

    if (status)
        return status;
    status = pace__write_all(fd, ids, count * sizeof *ids, path, log);

    if (close(fd) != 0 && !status)
        status = pace_fail(log, PACE_IO, "%s: cannot write: %s", path, strerror(errno));
    return status;
}

/* This rank's generations, each a file of ids; the words are not needed any more. */
static pace_status translate(pace__reviews_rank *self)
{
    const pace__reviews *job = self->job;
    uint32_t generations = job->table_first[self->me.number + 1] - job->table_first[self->me.number];
    pace_status status = PACE_OK;

    for (uint32_t i = 0; i < generations && !status; i++) {
        char *words = pace__words_path(job->prep.directory, self->counter_name, i);
        char *table = pace__reviews_table_path(job, self->me.number, i);
        uint32_t *ids = NULL, count;

        status = words && table ? pace__words_translate(words, job->vocabulary, self->me.log, &ids, &count)
                                : pace_fail(self->me.log, PACE_FAILED, "out of memory");
        if (!status)
            status = write_table(table, ids, count, self->me.log);
        free(ids);
        free(table);
        free(words);
        if (!status)
            status = pace__rank_pulse(&self->me);
    }
    return status;
}

/* Mapped, not read: the tables of many generations may be large, and the kernel can do without some of it. */
static pace_status map_table(const pace__reviews_rank *self, int rank, uint32_t generation,
                             pace__review_table *table)
{
    char *path = pace__reviews_table_path(self->job, rank, generation);
    int fd = -1;
    pace_status status = path ? pace__open(path, PACE__TO_CHANGE, self->me.log, &fd)
                              : pace_fail(self->me.log, PACE_FAILED, "out of memory");
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;

    if (size > 0) {
        void *ids = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);

        if (ids != MAP_FAILED)
            *table = (pace__review_table){ids, (size_t)size / sizeof *table->ids};
        else
            size = -1;
    }
    if (!status && size < 0)
        status = pace_fail(self->me.log, PACE_IO, "%s: cannot map: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

static pace_status map_tables(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    pace_status status = PACE_OK;

    job->tables = calloc(job->table_count + 1, sizeof *job->tables);
    if (!job->tables)
        return pace_fail(self->me.log, PACE_FAILED, "out of memory");
    for (int rank = 0; rank < job->prep.ranks; rank++) {
        for (uint32_t i = job->table_first[rank]; i < job->table_first[rank + 1] && !status; i++)
            status = map_table(self, rank, i - job->table_first[rank], &job->tables[i]);
    }
    return status;
}

void pace__reviews_close_tables(pace__reviews *job)
{
    for (size_t i = 0; job->tables && i < job->table_count; i++) {
        if (job->tables[i].ids)
            munmap((void *)(uintptr_t)job->tables[i].ids, job->tables[i].count * sizeof *job->tables[i].ids);
    }
    free(job->tables);
    job->tables = NULL;
}

const pace__review_table *pace__reviews_table(const pace__reviews *job, uint32_t source)
{
    uint32_t rank = source / PACE__SOURCE_GENERATIONS, generation = source % PACE__SOURCE_GENERATIONS;

    if (rank >= (uint32_t)job->prep.ranks ||
        generation >= job->table_first[rank + 1] - job->table_first[rank])
        return NULL;
    return &job->tables[job->table_first[rank] + generation];
}

/* --- all of it --- */

/* How many generations each rank has. */
static pace_status number_tables(pace__reviews_rank *self)
{
    pace__reviews *job = self->job;
    uint32_t generations[PACE__RANKS_MAX], mine = (uint32_t)self->counts.generations;
    pace_status status = pace__ranks_exchange(self->me.link, &mine, sizeof mine, generations);

    if (!status && pace__prep_is_first(&self->job->prep, &self->me)) {
        for (int rank = 0; rank < job->prep.ranks; rank++)
            job->table_first[rank + 1] = job->table_first[rank] + generations[rank];
        job->table_count = job->table_first[job->prep.ranks];
    }
    return status ? status : pace__ranks_meet(self->me.link);
}

static pace_status count_all(pace__reviews_rank *self)
{
    pace__word_stats stats = pace__word_counter_stats(self->counter);

    self->counts.words += stats.words;
    self->counts.stopped += stats.stopped;
    self->counts.word_bytes = stats.bytes;
    self->counts.generations = stats.generations;
    pace_status status = number_tables(self);

    if (!status)
        status = reduce_partition(self);
    if (!status)
        status = pace__ranks_meet(self->me.link);
    if (!status && self->me.number == 0)
        status = make_vocabulary(self);
    return status;
}

pace_status pace__reviews_reduce(pace__reviews_rank *self)
{
    bool counted = !self->job->known;
    pace_status status = counted ? count_all(self) : PACE_OK;

    if (!status)
        status = spread_vocabulary(self);
    if (!status)
        status = pace__ranks_meet(self->me.link);
    if (!status && counted)
        status = translate(self);
    pace__word_counter_free(self->counter);
    self->counter = NULL;
    if (!status)
        status = pace__ranks_meet(self->me.link);
    if (!status && counted && pace__prep_is_first(&self->job->prep, &self->me))
        status = map_tables(self);
    return status ? status : pace__ranks_meet(self->me.link);
}
