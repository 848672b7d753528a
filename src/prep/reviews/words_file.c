#include "prep/reviews/words_file.h"

#include "base/random.h"
#include "files/file.h"
#include "files/open.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_BYTES ((size_t)256 << 10)
/* Of all streams of a merge together, and of one. */
#define READ_BYTES     ((size_t)16 << 20)
#define READ_BYTES_MIN ((size_t)4 << 10)
#define READ_BYTES_MAX ((size_t)1 << 20)
/* With more files they are opened again for each read, so that there is no limit on their number. */
#define OPEN_FILES_MAX 128

/* --- writing --- */

pace_status pace__words_writer_open(pace__words_writer *writer, const char *path, const pace_log *log)
{
    *writer = (pace__words_writer){.path = path, .log = log, .written = sizeof writer->header};
    writer->buffer = malloc(WRITE_BYTES);
    if (!writer->buffer)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = pace__open(path, PACE__TO_CREATE, log, &writer->fd);

    if (status) {
        free(writer->buffer);
        return status;
    }
    writer->header.range_at[0] = sizeof writer->header;
    return PACE_OK;
}

static pace_status flush(pace__words_writer *writer)
{
    pace_status status = pace__pwrite_all(writer->fd, writer->buffer, writer->used, writer->written,
                                          writer->path, writer->log);

    writer->written += writer->used;
    writer->used = 0;
    return status;
}

/* Ranges up to `last` begin here, if they have not begun yet. */
static void begin_ranges(pace__words_writer *writer, uint64_t first, uint64_t last)
{
    for (uint64_t range = first; range <= last; range++)
        writer->header.range_at[range] = writer->written + writer->used;
}

pace_status pace__words_writer_put(pace__words_writer *writer, const pace__counted *word)
{
    uint32_t count = (uint32_t)word->word.count;
    char *to = writer->buffer + writer->used;

    assert(word->hash >= writer->last_hash && count == word->word.count);
    begin_ranges(writer, (writer->last_hash >> 56) + 1, word->hash >> 56);
    memcpy(to, &word->hash, 8);
    memcpy(to + 8, &word->local, 4);
    memcpy(to + 12, &count, 4);
    to[16] = (char)word->word.size;
    memcpy(to + PACE__WORDS_ENTRY, word->word.text, word->word.size);
    writer->used += PACE__WORDS_ENTRY + word->word.size;
    writer->last_hash = word->hash;
    writer->header.words++;
    return writer->used + PACE__WORDS_ENTRY_MAX > WRITE_BYTES ? flush(writer) : PACE_OK;
}

pace_status pace__words_writer_close(pace__words_writer *writer, pace_status status, uint64_t *bytes)
{
    begin_ranges(writer, (writer->last_hash >> 56) + 1, PACE__WORDS_RANGES);
    writer->header.magic = PACE__WORDS_MAGIC;
    if (!status)
        status = flush(writer);
    if (!status)
        status = pace__pwrite_all(writer->fd, &writer->header, sizeof writer->header, 0, writer->path,
                                  writer->log);
    if (close(writer->fd) != 0 && !status)
        status = pace_fail(writer->log, PACE_IO, "%s: cannot write: %s", writer->path, strerror(errno));
    free(writer->buffer);
    if (!status)
        *bytes = writer->written;
    return status;
}

/* --- reading --- */

static pace_status damaged(const char *path, const char *what, const pace_log *log)
{
    return pace_fail(log, PACE_BAD_DATA, "%s: damaged file of counted words: %s", path, what);
}

static bool header_valid(const pace__words_header *header, uint64_t size)
{
    const uint64_t *at = header->range_at;
    uint64_t bytes = size - sizeof *header;

    for (size_t i = 0; i < PACE__WORDS_RANGES; i++) {
        if (at[i] > at[i + 1])
            return false;
    }
    return at[0] == sizeof *header && at[PACE__WORDS_RANGES] == size &&
           header->words <= bytes / (PACE__WORDS_ENTRY + 1) && header->words >= bytes / PACE__WORDS_ENTRY_MAX;
}

static pace_status read_header(int fd, const char *path, pace__words_header *header, const pace_log *log)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return pace_fail(log, PACE_IO, "%s: cannot read: %s", path, strerror(errno));
    if ((uint64_t)info.st_size < sizeof *header)
        return damaged(path, "it is too short", log);
    pace_status status = pace__pread_all(fd, header, sizeof *header, 0, path, log);

    if (status)
        return status;
    if (header->magic != PACE__WORDS_MAGIC)
        return damaged(path, "it does not begin like one", log);
    return header_valid(header, (uint64_t)info.st_size) ? PACE_OK
                                                        : damaged(path, "its sizes do not fit", log);
}

pace_status pace__words_header_read(const char *path, pace__words_header *header, const pace_log *log)
{
    int fd;
    pace_status status = pace__open(path, PACE__TO_READ, log, &fd);

    if (status)
        return status;
    status = read_header(fd, path, header, log);

    close(fd);
    return status;
}

/* A partition of one file. */
typedef struct stream {
    const char *path;
    int fd;             /* -1: opened for each read */
    char *buffer;       /* (merge->buffer_bytes), and a word's room behind it */
    size_t at, used;    /* what of it has been read, and what there is */
    uint64_t next, end; /* in the file: behind the buffer, and of the partition's ranges */
    pace__counted word; /* the one that comes next */
} stream;

struct pace__words_merge {
    const pace_log *log;
    bool bounded;                      /* by end_hash */
    uint64_t first_hash, end_hash;     /* of the partition; end_hash is no bound if there is none */
    size_t buffer_bytes, opened, left; /* streams made; streams in the heap */
    stream *streams;
    stream **heap; /* the first one has the smallest word */
    char *buffers;
    char text[PACE__TOKEN_BYTES_MAX]; /* of the word given out */
};

static pace_status refill(pace__words_merge *self, stream *from)
{
    size_t rest = from->used - from->at, room = self->buffer_bytes - rest;
    size_t bytes = from->end - from->next < room ? (size_t)(from->end - from->next) : room;
    int fd = from->fd;
    pace_status status = fd >= 0 ? PACE_OK : pace__open(from->path, PACE__TO_READ, self->log, &fd);

    if (status)
        return status;
    memmove(from->buffer, from->buffer + from->at, rest);
    status = pace__pread_all(fd, from->buffer + rest, bytes, from->next, from->path, self->log);

    from->next += bytes;
    from->at = 0;
    from->used = rest + bytes;
    if (fd != from->fd)
        close(fd);
    return status;
}

/* The entry at the buffer's place; NULL if it is right. */
static const char *parse_entry(stream *from)
{
    const char *entry = from->buffer + from->at;
    size_t left = from->used - from->at;
    uint64_t hash;
    uint32_t count;

    if (left < PACE__WORDS_ENTRY)
        return "a word is cut";
    memcpy(&hash, entry, 8);
    memcpy(&from->word.local, entry + 8, 4);
    memcpy(&count, entry + 12, 4);
    uint32_t size = (unsigned char)entry[16];
    const char *text = entry + PACE__WORDS_ENTRY;

    if (size < 1 || size > PACE__TOKEN_BYTES_MAX || count == 0)
        return "a word has no valid size or count";
    if (left - PACE__WORDS_ENTRY < size)
        return "a word is cut";
    if (hash != pace__token_hash(text, size))
        return "a word is not as it was written";
    if (hash < from->word.hash)
        return "words are not in order";
    from->word.hash = hash;
    from->word.word = (pace__word){.text = text, .size = size, .count = count};
    from->at += PACE__WORDS_ENTRY + size;
    return NULL;
}

/* The stream's next word in the partition; *found is false behind the last one. */
static pace_status advance(pace__words_merge *self, stream *from, bool *found)
{
    do {
        if (from->used - from->at < PACE__WORDS_ENTRY_MAX && from->next < from->end) {
            pace_status status = refill(self, from);

            if (status)
                return status;
        }
        if (from->at == from->used) {
            *found = false;
            return PACE_OK;
        }
        const char *wrong = parse_entry(from);

        if (wrong)
            return damaged(from->path, wrong, self->log);
    } while (from->word.hash < self->first_hash);
    *found = !self->bounded || from->word.hash < self->end_hash;
    return PACE_OK;
}

static bool comes_before(const stream *left, const stream *right)
{
    if (left->word.hash != right->word.hash)
        return left->word.hash < right->word.hash;
    return pace__word_compare(&left->word.word, &right->word.word) < 0;
}

static void sift_down(pace__words_merge *self, size_t at)
{
    stream *moved = self->heap[at];

    for (size_t child; (child = 2 * at + 1) < self->left; at = child) {
        child += child + 1 < self->left && comes_before(self->heap[child + 1], self->heap[child]);
        if (!comes_before(self->heap[child], moved))
            break;
        self->heap[at] = self->heap[child];
    }
    self->heap[at] = moved;
}

static pace_status open_stream(pace__words_merge *self, stream *from, const char *path, bool keep_open)
{
    pace__words_header header;
    uint64_t last_hash = self->bounded ? self->end_hash - 1 : UINT64_MAX;
    int fd;
    pace_status status = pace__open(path, PACE__TO_READ, self->log, &fd);

    if (status)
        return status;
    status = read_header(fd, path, &header, self->log);

    *from = (stream){.path = path, .fd = keep_open ? fd : -1};
    from->buffer = self->buffers + self->opened * (self->buffer_bytes + PACE__TOKEN_BYTES_MAX);
    self->opened++;
    if (!keep_open)
        close(fd);
    if (status)
        return status;
    from->next = header.range_at[self->first_hash >> 56];
    from->end = header.range_at[(last_hash >> 56) + 1];
    bool found = false;

    status = advance(self, from, &found);
    if (!status && found)
        self->heap[self->left++] = from;
    return status;
}

/* The first hash whose place among `partitions` equal ranges is `partition`. */
static uint64_t first_hash_of(uint32_t partition, uint32_t partitions)
{
    return (uint64_t)((((unsigned __int128)partition << 64) + partitions - 1) / partitions);
}

static pace_status make_merge(size_t count, uint32_t partition, uint32_t partitions, const pace_log *log,
                              pace__words_merge **merge)
{
    pace__words_merge *self = calloc(1, sizeof *self);
    size_t share = READ_BYTES / (count + 1);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    self->log = log;
    self->buffer_bytes = share < READ_BYTES_MIN   ? READ_BYTES_MIN
                         : share > READ_BYTES_MAX ? READ_BYTES_MAX
                                                  : share;
    self->bounded = partition + 1 < partitions;
    self->first_hash = first_hash_of(partition, partitions);
    self->end_hash = self->bounded ? first_hash_of(partition + 1, partitions) : 0;
    self->streams = calloc(count + 1, sizeof *self->streams);
    self->heap = calloc(count + 1, sizeof *self->heap);
    self->buffers = malloc((count + 1) * (self->buffer_bytes + PACE__TOKEN_BYTES_MAX));
    if (!self->streams || !self->heap || !self->buffers) {
        pace__words_merge_free(self);
        return pace_fail(log, PACE_FAILED, "out of memory for a merge of %zu files", count);
    }
    *merge = self;
    return PACE_OK;
}

pace_status pace__words_merge_open(const char *const *paths, size_t count, uint32_t partition,
                                   uint32_t partitions, const pace_log *log, pace__words_merge **merge)
{
    pace__words_merge *self = NULL;
    pace_status status;

    assert(partition < partitions);
    status = make_merge(count, partition, partitions, log, &self);
    for (size_t i = 0; i < count && !status; i++)
        status = open_stream(self, &self->streams[i], paths[i], count <= OPEN_FILES_MAX);
    if (status) {
        pace__words_merge_free(self);
        return status;
    }
    for (size_t i = self->left / 2; i-- > 0;)
        sift_down(self, i);
    *merge = self;
    return PACE_OK;
}

void pace__words_merge_free(pace__words_merge *merge)
{
    if (!merge)
        return;
    for (size_t i = 0; i < merge->opened; i++) {
        if (merge->streams[i].fd >= 0)
            close(merge->streams[i].fd);
    }
    free(merge->streams);
    free(merge->heap);
    free(merge->buffers);
    free(merge);
}

/* Moves the first stream of the heap on. */
static pace_status advance_first(pace__words_merge *self)
{
    bool found = false;
    pace_status status = advance(self, self->heap[0], &found);

    if (status)
        return status;
    if (!found)
        self->heap[0] = self->heap[--self->left];
    if (self->left > 0)
        sift_down(self, 0);
    return PACE_OK;
}

pace_status pace__words_merge_next(pace__words_merge *merge, pace__counted *word, bool *found)
{
    *found = merge->left > 0;
    if (!*found)
        return PACE_OK;
    *word = merge->heap[0]->word;
    memcpy(merge->text, word->word.text, word->word.size);
    word->word.text = merge->text;
    uint64_t count = 0;

    do {
        count += merge->heap[0]->word.word.count;
        pace_status status = advance_first(merge);

        if (status)
            return status;
    } while (merge->left > 0 && merge->heap[0]->word.hash == word->hash &&
             pace__word_compare(&merge->heap[0]->word.word, &word->word) == 0);
    word->word.count = count;
    return PACE_OK;
}
