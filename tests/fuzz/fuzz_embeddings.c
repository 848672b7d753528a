/*
 * Any bytes as a file of word vectors, the first of them the number of dimensions: refused with one message,
 * or words and finite numbers.
 */
#include "data/text/embeddings.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct sums {
    uint32_t dimensions;
    uint64_t words, bytes;
} sums;

static void check_message(void *user, pace_level level, const char *text)
{
    *(int *)user += level == PACE_ERROR;
    for (; *text; text++)
        assert((unsigned char)*text >= 0x20 && (unsigned char)*text < 0x7f); /* a message is one line */
}

static pace_status add(void *user, const char *word, size_t size, const float *values)
{
    sums *found = user;

    assert(size > 0 && !memchr(word, '\n', size) && word[size - 1] != ' ' && word[size - 1] != '\t');
    for (uint32_t i = 0; i < found->dimensions; i++)
        assert(isfinite(values[i]));
    found->words++;
    found->bytes += size;
    return PACE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("vectors", MFD_CLOEXEC), errors = 0;
    sums found = {.dimensions = size > 0 ? 1 + data[0] % 8 : 1};
    pace_log log = {check_message, &errors};
    char path[32];

    if (size > 0)
        assert(write(fd, data + 1, size - 1) == (ssize_t)(size - 1));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    pace_status status = pace__embeddings_read(path, found.dimensions, add, &found, &log);

    assert(status == PACE_OK || status == PACE_BAD_DATA);
    assert(errors == (status != PACE_OK));
    close(fd);
    return 0;
}
