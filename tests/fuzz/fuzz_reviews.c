/*
 * Raw reviews of any format. The first byte of an input chooses the format, and whether records may be without
 * a label; the rest is the file. Texts are UTF-8 with a character that is no blank, ratings are finite, records
 * come in order. As csv, where chunks may end is where records end.
 */
#include "data/input/csv.h"
#include "data/text/reviews.h"

#include <assert.h>
#include <math.h>
#include <paceline/prep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Compressed zeros can be very long: this many chunks show enough. */
#define CHUNKS_MAX 6

static void check_review(const pace__review_options *options, const pace__review *review)
{
    size_t blanks = 0;

    assert(pace__utf8_find_invalid(review->text, review->size) == review->size);
    while (blanks < review->size && strchr(" \t\r\n\v\f", review->text[blanks]) && review->text[blanks])
        blanks++;
    assert(blanks < review->size || options->labels_optional);
    assert(isfinite(review->rating) || (isnan(review->rating) && options->labels_optional));
}

static void read_chunk(const pace__review_options *options, pace__review_reader *reader,
                       const pace__chunk *chunk)
{
    pace__review review;
    uint64_t offset = chunk->offset;
    bool found = true;

    for (size_t at = 0; pace__review_next(reader, chunk, &at, &found, &review) == PACE_OK && found;) {
        assert(at <= chunk->size && review.offset >= offset && review.offset < chunk->offset + at);
        offset = chunk->offset + at;
        check_review(options, &review);
    }
}

static void read_reviews(pace__review_options options, const char *path)
{
    static pace__chunk chunk; /* fresh memory for each input would take most of the time */
    pace_texts words = {&path, 1};
    pace__review_files files;
    pace__review_reader *reader;
    pace__input *input;

    if (pace__review_files_find(&words, &options, NULL, &files) != PACE_OK)
        return;
    assert(pace__input_open(&path, 1, pace__review_boundary(options.format), NULL, &input) == PACE_OK);
    pace__bad_rows bad = {.max = 1000000, .input = input};

    assert(pace__review_reader_create(&options, &files, &bad, NULL, &reader) == PACE_OK);
    for (unsigned i = 0; i < CHUNKS_MAX; i++) {
        if (pace__input_next(input, &chunk) != PACE_OK || chunk.size == 0)
            break;
        read_chunk(&options, reader, &chunk);
    }
    pace__review_reader_free(reader);
    pace__input_close(input);
    pace__review_files_release(&files);
}

/* In steps of the sizes that the bytes say. */
static void compare_readers(const char *text, size_t size)
{
    pace__csv_scan scan = {0};
    pace__csv_cells cells = pace__csv_cells_of(text, size, ',');
    pace__csv_cell_end end = PACE__CSV_CELL_LAST;
    size_t record = 0;

    for (size_t given = 0; given < size;) {
        size_t step = 1 + (unsigned char)text[given] % 16;

        given += step < size - given ? step : size - given;
        pace__csv_scan_on(&scan, text, given);
    }
    while (cells.at < size || end == PACE__CSV_CELL_MORE) {
        pace__csv_cell cell;

        end = pace__csv_cells_next(&cells, &cell);
        assert(cell.text >= text && cell.text + cell.size <= text + size);
        if (end == PACE__CSV_CELL_LAST && text[cells.at - 1] == '\n')
            record = cells.at;
    }
    assert(scan.whole == record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("reviews", MFD_CLOEXEC);

    if (size == 0) {
        close(fd);
        return 0;
    }
    assert(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)(size - 1));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    pace__review_options options = {.format = data[0] % 8 % PACE_REVIEWS_FOLDER,
                                    .text_field = "text",
                                    .label_field = "stars",
                                    .labels_optional = data[0] & 8};

    read_reviews(options, path);
    compare_readers((const char *)data + 1, size - 1);
    close(fd);
    return 0;
}
