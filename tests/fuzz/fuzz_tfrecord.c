/*
 * The first byte chooses the parser's options; the rest is the data of one record, or of two that are split
 * by the second byte. Rows that come out must be what rows.h promises.
 */
#include "data/formats/parse.h"
#include "files/crc32c.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *put_record(char *at, const uint8_t *data, size_t size)
{
    uint64_t length = size;
    uint32_t crc = pace__masked_crc32c(&length, sizeof length), data_crc = pace__masked_crc32c(data, size);

    memcpy(at, &length, sizeof length);
    memcpy(at + 8, &crc, sizeof crc);
    memcpy(at + 12, data, size);
    memcpy(at + 12 + size, &data_crc, sizeof data_crc);
    return at + 16 + size;
}

static void check_rows(const pace__parser *parser, const pace__raw_rows *rows)
{
    const pace__encoding *encoding = parser->encoding;
    bool bounded = encoding->hashed || (encoding->features != 0 && !parser->ids_unbounded);
    uint64_t limit = bounded ? encoding->features : PACE__FEATURES_MAX;

    for (size_t i = 0; i < rows->rows; i++) {
        assert(rows->label[i] <= 1);
        assert(rows->start[i] <= rows->start[i + 1] && rows->start[i + 1] <= rows->entries_max);
        for (uint64_t k = rows->start[i]; k < rows->start[i + 1]; k++)
            assert(rows->ids[k] < limit && isfinite(rows->values[k]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    pace__encoding encoding = {.kind = PACE__NUMBERED, .hashed = data[0] & 1};
    pace__bad_rows bad = {.max = 2};
    pace__parser parser = {
        .encoding = &encoding, .labels_optional = data[0] & 2, .ids_unbounded = data[0] & 4, .bad = &bad};
    pace__raw_rows rows;
    size_t at = 0, first = data[1] < size - 2 ? data[1] : size - 2;

    encoding.features = encoding.hashed || data[0] & 8 ? 1000 : 0;
    pace__chunk chunk = {.buffer = malloc(size + 32 + PACE__CHUNK_SLACK)};

    assert(chunk.buffer && pace__raw_rows_init(&rows, NULL) == PACE_OK);
    char *end = put_record(chunk.buffer, data + 2, first);

    end = put_record(end, data + 2 + first, size - 2 - first);
    chunk.data = chunk.buffer;
    chunk.size = (size_t)(end - chunk.buffer);
    assert(pace__parse_tfrecord(&parser, &chunk, &at, &rows) == PACE_OK);
    assert(at == chunk.size && rows.rows + bad.count == 2);
    check_rows(&parser, &rows);
    pace__raw_rows_release(&rows);
    free(chunk.buffer);
    return 0;
}
