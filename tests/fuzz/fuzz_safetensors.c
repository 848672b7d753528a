/*
 * Any bytes as a safetensors file: refused with a message, or every tensor can be read and found by its name.
 */
#include "data/tensors/safetensors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_message(void *user, pace_level level, const char *text)
{
    ++*(int *)user;
    assert(level == PACE_ERROR && strncmp(text, "input: ", 7) == 0);
    for (; *text; text++)
        assert((unsigned char)*text >= 0x20); /* a message is one line */
}

static void read_tensor(const pace__safetensors *file, const pace__tensor_info *tensor)
{
    char *buffer = malloc(tensor->bytes + 1);

    assert(buffer && pace__safetensors_find(file, tensor->name) == tensor);
    assert(tensor->bytes == tensor->elements * pace__dtype_bytes(tensor->dtype));
    assert(pace__safetensors_read(file, tensor, 0, buffer, tensor->bytes, NULL) == PACE_OK);
    free(buffer);
}

static void try_file(const uint8_t *bytes, size_t size)
{
    pace__safetensors *file = NULL;
    int messages = 0;
    pace_log log = {check_message, &messages};
    pace_status status = pace__safetensors_open_memory(bytes, size, "input", &log, &file);

    assert(status == PACE_OK || status == PACE_BAD_DATA);
    assert(messages == (status != PACE_OK) && !file == (status != PACE_OK));
    for (size_t i = 0; file && i < pace__safetensors_count(file); i++)
        read_tensor(file, pace__safetensors_at(file, i));
    pace__safetensors_close(file);
}

/*
 * The bytes as a header with its right length, then as many zeros as the first byte says: so that the search
 * need not guess lengths.
 */
static void try_header(const uint8_t *bytes, size_t size)
{
    size_t data_bytes = bytes[0];
    uint64_t length = size - 1;
    uint8_t *whole = calloc(1, sizeof length + length + data_bytes);

    assert(whole);
    memcpy(whole, &length, sizeof length);
    memcpy(whole + sizeof length, bytes + 1, length);
    try_file(whole, sizeof length + length + data_bytes);
    free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    try_file(bytes, size);
    if (size > 0)
        try_header(bytes, size);
    return 0;
}
