/*
 * Any bytes as lines of a record of divisions: with the sums that they end with put right, since nothing else gets beyond them; and as
 * they are. Refused with one message of one line, or divisions whose steps rise.
 */
#include "files/crc32c.h"
#include "run/shares.h"

#include "fuzzing.h"

#include <inttypes.h>

#define SUM_BYTES 20 /* , "sum": "01234567"} */

static void try_text(const char *text, size_t size)
{
    int messages = 0;
    pace_log log = {check_message, &messages};
    pace__divisions divisions = {0};
    pace__shares_facts facts = {0};
    pace_status status = pace__shares_parse(text, size, "input", &log, &divisions, &facts);

    assert(status == PACE_OK || status == PACE_BAD_DATA);
    assert(messages == (status != PACE_OK) && (!status || divisions.count == 0));
    assert(divisions.count <= facts.lines && facts.lines <= size);
    for (size_t i = 0; i < divisions.count; i++) {
        assert(i == 0 || divisions.from[i - 1] < divisions.from[i]);
        assert(pace__division_batch(divisions.rows + i * divisions.workers, divisions.workers) > 0);
    }
    pace__divisions_release(&divisions);
}

/* Lines that are long enough to end with a sum get the right one. */
static void put_sums_right(char *text, size_t size)
{
    char *end;
    uint32_t before = 0;

    for (char *line = text; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1) {
        char sum[SUM_BYTES + 1];
        size_t length = (size_t)(end - line);

        if (length <= SUM_BYTES)
            continue;
        uint32_t sums[] = {before, pace__masked_crc32c(line, length - SUM_BYTES)};

        before = pace__masked_crc32c(sums, sizeof sums);
        snprintf(sum, sizeof sum, ", \"sum\": \"%08" PRIx32 "\"}", before);
        memcpy(end - SUM_BYTES, sum, SUM_BYTES);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1); /* a byte that may not be read, under a sanitizer */

    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, bytes, size);
    try_text(text, size);
    put_sums_right(text, size);
    try_text(text, size);
    free(text);
    return 0;
}
