#define XXH_STATIC_LINKING_ONLY /* a state on the stack */
#include "data/store/sums.h"

#include "files/file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define ARRAYS_MAX   4 /* besides indptr */
#define PIECE_BYTES  ((size_t)16 << 10)
#define GROUP        64   /* sums that are read or written at once */
#define CONTENT_SUMS 8192 /* the same where all of them are */

static uint64_t xxh3_plain(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}

const pace__xxh3_kernels pace__xxh3_plain = {.sum = xxh3_plain};

static uint64_t xxh3(const void *bytes, size_t size)
{
    return pace__xxh3_of(pace_kernels_in_use())->sum(bytes, size);
}

/* --- blocks --- */

/* Rows of a part. */
typedef struct block {
    uint64_t row, rows;
} block;

uint64_t pace__sum_blocks(const pace__encoding *encoding, const pace__part_set *set)
{
    uint32_t each = pace__sum_rows(encoding);

    return set->rows ? (set->lead + set->rows + each - 1) / each : 0;
}

static uint64_t block_of(const pace__encoding *encoding, const pace__part_set *set, uint64_t row)
{
    return (set->lead + row) / pace__sum_rows(encoding);
}

static block block_at(const pace__encoding *encoding, const pace__part_set *set, uint64_t index)
{
    uint32_t each = pace__sum_rows(encoding);
    uint64_t first = index ? index * each - set->lead : 0, last = (index + 1) * each - set->lead;

    return (block){first, (last < set->rows ? last : set->rows) - first};
}

/* --- sums --- */

/* An array of a part, and where its first element of interest is in memory. */
typedef struct array {
    uint64_t at;
    const void *memory;
    size_t width;
    bool by_row; /* else by entry */
} array;

static unsigned list_arrays(const pace__part_set *set, const pace__into *in, array list[ARRAYS_MAX])
{
    bool pictures = set->source_at != 0;
    const array all[] = {
        {set->label_at, pictures ? (const void *)in->classes : in->label, pictures ? 2 : 1, true},
        {set->length_at, in->length, sizeof *in->length, true},
        {set->source_at, in->source, sizeof *in->source, true},
        {set->ids_at, in->ids, sizeof *in->ids, false},
        {set->values_at, in->values, sizeof *in->values, false},
        {set->pixels_at, in->pixels, sizeof *in->pixels, false},
        {set->features_at, in->features, sizeof *in->features, false}};
    unsigned count = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].at == 0)
            continue;
        assert(count < ARRAYS_MAX);
        list[count++] = all[i];
    }
    return count;
}

static uint64_t sum_lengths(const uint64_t *start, uint64_t rows)
{
    uint64_t length[PACE__SUM_ROWS];

    for (uint64_t i = 0; i < rows; i++)
        length[i] = start[i + 1] - start[i];
    return xxh3(length, rows * sizeof *length);
}

/* Of rows that `from` holds; `rows.row` counts from its first. */
static uint64_t sum_memory(const pace__store_info *info, const pace__part_set *set, const pace__into *from,
                           block rows)
{
    const uint64_t *start = info->columns ? NULL : from->start;
    uint64_t entry = start ? start[rows.row] - start[0] : rows.row * info->columns;
    uint64_t entries = start ? start[rows.row + rows.rows] - start[rows.row] : rows.rows * info->columns;
    uint64_t own[ARRAYS_MAX + 1];
    array list[ARRAYS_MAX];
    unsigned arrays = list_arrays(set, from, list), count = 0;

    if (start)
        own[count++] = sum_lengths(start + rows.row, rows.rows);
    for (unsigned i = 0; i < arrays; i++) {
        uint64_t first = list[i].by_row ? rows.row : entry, elements = list[i].by_row ? rows.rows : entries;

        own[count++] = xxh3((const char *)list[i].memory + first * list[i].width, elements * list[i].width);
    }
    return XXH3_64bits(own, count * sizeof *own);
}

static pace_status sum_range(const pace__part *part, uint64_t at, uint64_t bytes, uint64_t *sum,
                             const pace_log *log)
{
    char buffer[PIECE_BYTES];
    XXH3_state_t state;
    pace_status status = PACE_OK;

    if (bytes <= sizeof buffer) {
        status = pace__pread_all(part->fd, buffer, bytes, at, part->path, log);
        *sum = status ? 0 : xxh3(buffer, bytes);
        return status;
    }
    XXH3_64bits_reset(&state);
    for (uint64_t done = 0; done < bytes && !status;) {
        size_t piece = bytes - done < sizeof buffer ? (size_t)(bytes - done) : sizeof buffer;

        status = pace__pread_all(part->fd, buffer, piece, at + done, part->path, log);
        if (!status)
            XXH3_64bits_update(&state, buffer, piece);
        done += piece;
    }
    *sum = XXH3_64bits_digest(&state);
    return status;
}

static pace_status damaged(const pace__part *part, int set, block rows, const pace_log *log)
{
    return pace_fail(log, PACE_BAD_DATA,
                     "%s: damaged: rows %llu to %llu of /%s are not those that were written, by their "
                     "checksum: put back a good copy of the file, or prepare the data again",
                     part->path, (unsigned long long)rows.row, (unsigned long long)(rows.row + rows.rows - 1),
                     pace__set_names[set]);
}

/* The starts of a block, rows.rows + 1 of them. */
static pace_status read_starts(const pace__part *part, int set, block rows, uint64_t *start,
                               const pace_log *log)
{
    const pace__part_set *from = &part->sets[set];
    pace_status status = pace__pread_all(part->fd, start, (rows.rows + 1) * sizeof *start,
                                         from->start_at + rows.row * sizeof *start, part->path, log);

    for (uint64_t i = 0; i < rows.rows && !status; i++) {
        if (start[i] > start[i + 1] || start[i + 1] > from->entries)
            status = damaged(part, set, rows, log);
    }
    return status;
}

static pace_status sum_file(const pace__store_info *info, const pace__part *part, int set, block rows,
                            uint64_t *sum, const pace_log *log)
{
    uint64_t start[PACE__SUM_ROWS + 1], own[ARRAYS_MAX + 1];
    uint64_t entry = rows.row * info->columns, entries = rows.rows * info->columns;
    array list[ARRAYS_MAX];
    unsigned arrays = list_arrays(&part->sets[set], &(pace__into){0}, list), count = 0;
    pace_status status = PACE_OK;

    if (!info->columns) {
        status = read_starts(part, set, rows, start, log);
        if (status)
            return status;
        entry = start[0];
        entries = start[rows.rows] - entry;
        own[count++] = sum_lengths(start, rows.rows);
    }
    for (unsigned i = 0; i < arrays && !status; i++) {
        uint64_t first = list[i].by_row ? rows.row : entry, elements = list[i].by_row ? rows.rows : entries;

        status =
            sum_range(part, list[i].at + first * list[i].width, elements * list[i].width, &own[count++], log);
    }
    *sum = status ? 0 : XXH3_64bits(own, count * sizeof *own);
    return status;
}

/* --- writing --- */

static pace_status write_sums(const pace__part *part, int set, uint64_t index, const uint64_t *sums,
                              uint64_t count, const pace_log *log)
{
    return pace__pwrite_all(part->fd, sums, count * sizeof *sums,
                            part->sets[set].sums_at + index * sizeof *sums, part->path, log);
}

pace_status pace__sums_put(const pace__store_info *info, const pace__part *part, int set,
                           const pace__written *written, const pace__into *from, const pace_log *log)
{
    const pace__part_set *to = &part->sets[set];
    const pace__encoding *encoding = &info->encoding;
    uint64_t index = block_of(encoding, to, written->row), end = written->row + written->rows, sums[GROUP];
    unsigned count = 0;
    pace_status status = PACE_OK;

    if (written->rows == 0)
        return PACE_OK;
    if (block_at(encoding, to, index).row < written->since)
        index++;
    for (; index < pace__sum_blocks(encoding, to) && !status; index++) {
        block rows = block_at(encoding, to, index);

        if (rows.row + rows.rows > end)
            break;
        if (rows.row >= written->row)
            sums[count++] = sum_memory(info, to, from, (block){rows.row - written->row, rows.rows});
        else
            status = sum_file(info, part, set, rows, &sums[count++], log);
        if (!status && count == GROUP) {
            status = write_sums(part, set, index + 1 - count, sums, count, log);
            count = 0;
        }
    }
    return status || count == 0 ? status : write_sums(part, set, index - count, sums, count, log);
}

pace_status pace__sums_again(const pace__store_info *info, const pace__part *part, int set, uint64_t row,
                             uint64_t rows, const pace_log *log)
{
    const pace__part_set *to = &part->sets[set];
    pace_status status = PACE_OK;

    if (rows == 0)
        return PACE_OK;
    uint64_t last = block_of(&info->encoding, to, row + rows - 1), sum;

    for (uint64_t index = block_of(&info->encoding, to, row); index <= last && !status; index++) {
        status = sum_file(info, part, set, block_at(&info->encoding, to, index), &sum, log);
        if (!status)
            status = write_sums(part, set, index, &sum, 1, log);
    }
    return status;
}

/* --- reading --- */

uint64_t pace__sums_memory(const pace__store_info *info)
{
    uint64_t rows = pace__store_rows(info), each = pace__sum_rows(&info->encoding);
    /* Each part may cut a block of each set. */
    uint64_t bytes = (rows / each + (uint64_t)PACE__SETS * info->parts + PACE__SETS) * sizeof(uint64_t);

    return bytes <= PACE__SUMS_KEPT_BYTES ? bytes : 0;
}

/* One that cannot be read is told about when it is needed. */
static uint64_t *read_sums(const pace__part *part, const pace__part_set *set, uint64_t blocks)
{
    uint64_t *sums = malloc(blocks * sizeof *sums);

    if (sums &&
        pace__pread_all(part->fd, sums, blocks * sizeof *sums, set->sums_at, part->path, NULL) != PACE_OK) {
        free(sums);
        sums = NULL;
    }
    return sums;
}

void pace__sums_keep(pace__store *store)
{
    if (pace__sums_memory(&store->info) == 0)
        return;
    for (uint32_t i = 0; i < store->info.parts; i++) {
        for (int set = 0; set < PACE__SETS; set++) {
            pace__part_set *of = &store->parts[i].sets[set];

            if (of->checked && of->rows > 0)
                of->sums = read_sums(&store->parts[i], of, pace__sum_blocks(&store->info.encoding, of));
        }
    }
}

static bool is_checked(const pace__part_set *set, uint64_t index)
{
    return atomic_load_explicit(&set->checked[index / 64], memory_order_relaxed) >> index % 64 & 1;
}

static void set_checked(const pace__part_set *set, uint64_t index)
{
    atomic_fetch_or_explicit(&set->checked[index / 64], UINT64_C(1) << index % 64, memory_order_relaxed);
}

/* What is being looked at: rows that are in memory, and the part that they are from. */
typedef struct checking {
    const pace__store_info *info;
    const pace__part *part;
    int set;
    block at_hand; /* rows of the part that are in `into` */
    const pace__into *into;
    bool again; /* what was compared once may have changed since */
    const _Atomic int *stop;
    const pace_log *log;
} checking;

static pace_status check_block(const checking *self, uint64_t index, uint64_t expected)
{
    const pace__part_set *set = &self->part->sets[self->set];
    block rows = block_at(&self->info->encoding, set, index), hand = self->at_hand;
    uint64_t sum;
    pace_status status = PACE_OK;

    if (rows.row >= hand.row && rows.row + rows.rows <= hand.row + hand.rows)
        sum = sum_memory(self->info, set, self->into, (block){rows.row - hand.row, rows.rows});
    else
        status = sum_file(self->info, self->part, self->set, rows, &sum, self->log);
    if (!status && sum != expected)
        status = damaged(self->part, self->set, rows, self->log);
    if (!status)
        set_checked(set, index);
    return status;
}

/* Blocks first .. first + count, at most GROUP, if there are any among them that were not compared yet. */
static pace_status check_group(const checking *self, uint64_t first, uint64_t count)
{
    const pace__part_set *set = &self->part->sets[self->set];
    uint64_t expected[GROUP], end = first + count;
    pace_status status = PACE_OK;

    while (first < end && !self->again && is_checked(set, first))
        first++;
    if (first == end)
        return PACE_OK;
    if (!set->sums)
        status = pace__pread_all(self->part->fd, expected, (end - first) * sizeof *expected,
                                 set->sums_at + first * sizeof *expected, self->part->path, self->log);
    for (uint64_t index = first; index < end && !status; index++) {
        if (self->again || !is_checked(set, index))
            status = check_block(self, index, set->sums ? set->sums[index] : expected[index - first]);
    }
    return status;
}

static pace_status check_blocks(const checking *self, uint64_t first, uint64_t last)
{
    pace_status status = PACE_OK;

    for (; first <= last && !status; first += GROUP)
        status = self->stop && *self->stop
                     ? PACE_INTERRUPTED
                     : check_group(self, first, last - first + 1 < GROUP ? last - first + 1 : GROUP);
    return status;
}

/* Since the part was opened. */
static bool may_have_changed(const pace__fetch *self, const pace__part *part)
{
    return !pace__mapped_holds(self->mapped, part) &&
           (pace__mapped_lost(self->mapped, part) || pace__part_was_written(part));
}

pace_status pace__sums_check(const pace__fetch *self, const pace__run *run, const pace__into *into)
{
    const pace__encoding *encoding = &self->store->info.encoding;
    checking check = {.info = &self->store->info,
                      .part = run->part,
                      .set = (int)(run->set - run->part->sets),
                      .at_hand = {run->row, run->rows},
                      .into = into,
                      .again = run->set->checked && may_have_changed(self, run->part),
                      .log = self->log};

    if (!run->set->checked || run->rows == 0)
        return PACE_OK;
    return check_blocks(&check, block_of(encoding, run->set, run->row),
                        block_of(encoding, run->set, run->row + run->rows - 1));
}

pace_status pace__sums_check_part(const pace__store_info *info, const pace__part *part,
                                  const _Atomic int *stop, const pace_log *log)
{
    pace_status status = PACE_OK;

    for (int set = 0; set < PACE__SETS && !status; set++) {
        checking check = {.info = info, .part = part, .set = set, .stop = stop, .log = log};
        const pace__part_set *from = &part->sets[set];
        uint64_t blocks = from->checked ? pace__sum_blocks(&info->encoding, from) : 0;

        if (blocks > 0)
            status = check_blocks(&check, 0, blocks - 1);
    }
    return status;
}

pace_status pace__sums_check_all(const pace__store *store, const pace_log *log)
{
    pace_status status = PACE_OK;

    for (uint32_t i = 0; i < store->info.parts && !status; i++)
        status = pace__sums_check_part(&store->info, &store->parts[i], NULL, log);
    return status;
}

/* --- what a whole set holds --- */

static bool add_sums(const pace__store *store, const pace__part *part, int set, uint64_t *content)
{
    const pace__part_set *from = &part->sets[set];
    uint64_t sums[CONTENT_SUMS], left = pace__sum_blocks(&store->info.encoding, from), at = from->sums_at;
    bool read = true;

    for (size_t count; left > 0 && read; left -= count, at += sizeof sums) {
        count = left < CONTENT_SUMS ? (size_t)left : CONTENT_SUMS;
        read = pace__pread_all(part->fd, sums, count * sizeof *sums, at, part->path, NULL) == PACE_OK;
        *content = XXH3_64bits_withSeed(sums, count * sizeof *sums, *content);
    }
    return read;
}

uint64_t pace__store_content(const pace__store *store)
{
    const pace__encoding *encoding = &store->info.encoding;
    const uint64_t encoded[] = {encoding->features, encoding->vocabulary, encoding->class_names,
                                encoding->origin};
    uint64_t content = XXH3_64bits(encoded, sizeof encoded);
    bool whole = pace__store_has_sums(store);

    for (uint32_t part = 0; part < store->info.parts && whole; part++) {
        for (int set = 0; set < PACE__SETS && whole; set++)
            whole = add_sums(store, &store->parts[part], set, &content);
    }
    return whole ? content : 0;
}

/* Two halves, since a sum of 64 bits tells rows apart, but not all parts that a disk may ever hold. */
bool pace__part_content(const pace__store *store, uint32_t index, char hex[PACE__XXH3_HEX])
{
    if (index + 1 >= store->checksums.count)
        return false;
    const pace__part *part = &store->parts[index];
    const pace__file_sum *known = &store->checksums.files[index + 1];
    uint64_t low = XXH3_64bits_withSeed(known->xxh3, PACE__XXH3_HEX, known->bytes), high = ~low;
    bool whole = true;

    low = XXH3_64bits_withSeed(known->array, known->arrays * sizeof *known->array, low);
    for (int set = 0; set < PACE__SETS && whole; set++) {
        whole = part->sets[set].checked || part->sets[set].rows == 0;
        whole = whole && add_sums(store, part, set, &low) && add_sums(store, part, set, &high);
    }
    snprintf(hex, PACE__XXH3_HEX, "%016llx%016llx", (unsigned long long)high, (unsigned long long)low);
    return whole;
}
