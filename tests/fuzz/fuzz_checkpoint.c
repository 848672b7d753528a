/*
 * Any bytes as a manifest, or as a part with a manifest that vouches for it: refused with one message, or
 * exactly what it says. The first byte chooses: below 128, the rest is the text of a manifest, which is
 * tried as it is and with the right checksum behind it. From 128 on come keys, width, a place and a change,
 * one byte each, then the bytes of a part; the byte at the place is changed after the manifest is written.
 */
#include "checkpoint/internal.h"
#include "files/file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PART_NAME  "part-00000-of-00001.safetensors"
#define KEYS_MAX   256
#define WIDTH_MAX  4
#define PART_FIRST 5 /* byte of an input */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_message(void *user, pace_level level, const char *text)
{
    ++*(int *)user;
    assert(level == PACE_ERROR);
    for (; *text; text++)
        assert((unsigned char)*text >= 0x20); /* a message is one line */
}

/* --- manifests --- */

static void check_manifest(const pace__manifest *manifest)
{
    assert(manifest->parts >= 1 && manifest->parts <= PACE__CHECKPOINT_PARTS_MAX);
    assert(manifest->keys >= 1 && manifest->width >= 1 && manifest->job && manifest->part);
    assert(manifest->position.step <= PACE__CHECKPOINT_STEP_MAX);
    assert(manifest->position.best_step <= manifest->position.step);
    assert(manifest->divisions.count <= PACE__DIVISIONS_SAVED);
    for (size_t i = 1; i < manifest->divisions.count; i++)
        assert(manifest->divisions.from[i - 1] < manifest->divisions.from[i]);
    for (unsigned i = 0; i < manifest->parts; i++) {
        const pace__part_record *record = &manifest->part[i];
        char name[PACE__PART_NAME_MAX];

        pace__part_name(i, manifest->parts, name);
        assert(strcmp(record->name, name) == 0 && strlen(record->sha256) == PACE__SHA256_HEX - 1);
        assert(record->bytes > pace__part_places(manifest->keys, i, manifest->parts) * manifest->width * 4);
    }
}

static void try_manifest(const char *text, size_t size)
{
    int messages = 0;
    pace_log log = {check_message, &messages};
    pace__manifest manifest;
    pace_status status = pace__manifest_parse(text, size, "input", &log, &manifest);

    assert(status == PACE_OK || status == PACE_BAD_DATA);
    assert(messages == (status != PACE_OK));
    if (!status) { /* there is no other text for it */
        size_t again_size;
        char *again = pace__manifest_text(&manifest, &again_size);

        check_manifest(&manifest);
        assert(again && again_size == size && memcmp(again, text, size) == 0);
        free(again);
    }
    pace__manifest_release(&manifest);
}

static void try_text(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + PACE__MANIFEST_TAIL_BYTES);

    assert(text);
    memcpy(text, bytes, size);
    try_manifest(text, size);
    pace__manifest_seal(text, size, text + size);
    try_manifest(text, size + PACE__MANIFEST_TAIL_BYTES);
    free(text);
}

/* --- parts --- */

static void write_file(const char *directory, const char *name, const void *bytes, size_t size)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");

    assert(file && fwrite(bytes, 1, size, file) == size);
    assert(fclose(file) == 0);
}

/* A manifest of one part with these bytes. */
static void write_manifest(const char *directory, uint64_t keys, unsigned width, const uint8_t *bytes,
                           size_t size)
{
    pace__part_record record = {.name = PART_NAME, .bytes = size};
    pace__manifest manifest = {.keys = keys, .width = width, .job = "", .parts = 1, .part = &record};
    pace__sha256 *sha = pace__sha256_create();
    size_t text_size;

    assert(sha);
    pace__sha256_update(sha, bytes, size);
    pace__sha256_finish(sha, record.sha256);
    char *text = pace__manifest_text(&manifest, &text_size);

    assert(text);
    write_file(directory, PACE__MANIFEST_NAME, text, text_size);
    free(text);
}

/* `part` is what stands in the file, damaged or not. */
static void check_load(const char *directory, const uint8_t *part, size_t size, bool damaged)
{
    static float parameters[KEYS_MAX * WIDTH_MAX];
    int messages = 0;
    pace_log log = {check_message, &messages};
    pace__manifest manifest;
    pace_status status = pace__manifest_read(directory, &log, &manifest);

    if (!status)
        status = pace__checkpoint_load(directory, &manifest, parameters, &log);
    assert(status == PACE_OK || status == PACE_BAD_DATA);
    assert(messages == (status != PACE_OK) && !(damaged && !status));
    if (!status) {
        size_t floats = (size_t)manifest.keys * manifest.width * sizeof *parameters;

        assert(floats < size && memcmp(parameters, part + size - floats, floats) == 0);
    }
    pace__manifest_release(&manifest);
}

static void try_part(const uint8_t *bytes, size_t size)
{
    const char *root = getenv("TMPDIR");
    char *directory = pace__format("%s/paceline-fuzz.XXXXXX", root && *root ? root : "/tmp");
    uint64_t keys = (uint64_t)bytes[1] + 1;
    unsigned width = bytes[2] % WIDTH_MAX + 1;
    size_t place = bytes[3], part_size = size - PART_FIRST;
    bool damaged = place < part_size && bytes[4] != 0;
    uint8_t *part = malloc(part_size + 1);

    assert(directory && mkdtemp(directory) && part);
    memcpy(part, bytes + PART_FIRST, part_size);
    write_manifest(directory, keys, width, part, part_size);
    if (damaged)
        part[place] ^= bytes[4];
    write_file(directory, PART_NAME, part, part_size);
    check_load(directory, part, part_size, damaged);
    pace__checkpoint_discard(directory);
    assert(!pace__exists(directory));
    free(part);
    free(directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > 0 && bytes[0] < 128)
        try_text(bytes + 1, size - 1);
    else if (size >= PART_FIRST)
        try_part(bytes, size);
    return 0;
}
