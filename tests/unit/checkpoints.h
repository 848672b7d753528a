/*
 * checkpoints.h - checkpoints as the tests of them write, read and look into them. Include it behind <cmocka.h>.
 *
 *     char *path = write_small(in(state, "checkpoints"), 7, 1);
 *     assert_ok(check(path));
 *     free(path);
 */
#ifndef UNIT_CHECKPOINTS_H
#define UNIT_CHECKPOINTS_H

#include "checkpoint/internal.h"

#include "support.h"

#define JOB "rows=45840617 optimizer=ftrl lr=0.05 seed=7"

/* Any bits: NaNs, too, must come back as they were. */
static inline float *make_parameters(uint64_t keys, unsigned width, uint64_t seed)
{
    float *parameters = tiny_alloc(keys * width * sizeof *parameters);

    for (uint64_t i = 0; i < keys * width; i++) {
        uint32_t bits = (uint32_t)(pace__mix64(seed + i) >> 32);

        memcpy(&parameters[i], &bits, sizeof bits);
    }
    return parameters;
}

static inline pace__manifest make_manifest(uint64_t step, uint64_t incarnation, uint64_t keys, unsigned width,
                                           unsigned parts)
{
    pace__manifest manifest = {.incarnation = incarnation,
                               .position = {.step = step,
                                            .best_logloss = INFINITY,
                                            .worse = 3,
                                            .epoch_loss = 1234.5678,
                                            .epoch_rows = 99,
                                            .last_epoch_loss = NAN,
                                            .seconds = 0.1},
                               .keys = keys,
                               .width = width,
                               .job = strdup(JOB),
                               .parts = parts,
                               .part = tiny_alloc(parts * sizeof *manifest.part)};

    assert_non_null(manifest.job);
    return manifest;
}

/* What holder `part` writes: the records of its keys. */
static inline pace_status write_part(const char *directory, const float *parameters, unsigned part,
                                     pace__manifest *manifest)
{
    uint64_t places = 0;
    size_t bytes = manifest->width * sizeof *parameters;
    float *own = tiny_alloc(manifest->keys * bytes);

    for (uint64_t key = part; key < manifest->keys; key += manifest->parts)
        memcpy(own + places++ * manifest->width, parameters + key * manifest->width, bytes);
    pace_status status = pace__part_write(directory, part, manifest->parts, own, places, manifest->width,
                                          &manifest->part[part], &said_log);

    free(own);
    return status;
}

/* The directory's path, to be freed. */
static inline char *write_checkpoint(const char *root, const float *parameters, pace__manifest *manifest)
{
    char *path = NULL;

    assert_ok(pace__checkpoint_begin(root, manifest->position.step, manifest->incarnation, &said_log, &path));
    for (unsigned part = 0; part < manifest->parts; part++)
        assert_ok(write_part(path, parameters, part, manifest));
    assert_ok(pace__checkpoint_commit(path, manifest, &said_log));
    return path;
}

/* A small one, of two parts of 3 and 2 keys, that only has to be there. */
static inline char *write_small(const char *root, uint64_t step, uint64_t incarnation)
{
    float *parameters = make_parameters(5, 2, step);
    pace__manifest manifest = make_manifest(step, incarnation, 5, 2, 2);
    char *path = write_checkpoint(root, parameters, &manifest);

    pace__manifest_release(&manifest);
    free(parameters);
    return path;
}

static inline void put_small(const char *root, uint64_t step, uint64_t incarnation)
{
    free(write_small(root, step, incarnation));
}

/* Everything that resuming would look at. */
static inline pace_status check(const char *path)
{
    pace__manifest manifest;
    pace_status status = pace__manifest_read(path, &said_log, &manifest);

    if (!status)
        status = pace__checkpoint_load(path, &manifest, NULL, &said_log);
    pace__manifest_release(&manifest);
    return status;
}

static inline const char *file_of(const char *path, const char *name)
{
    static char paths[8][1024];
    static unsigned turn;
    char *file = paths[turn++ % 8];

    snprintf(file, sizeof paths[0], "%s/%s", path, name);
    return file;
}

static const char *const small_files[] = {PACE__MANIFEST_NAME, "part-00000-of-00002.safetensors",
                                          "part-00001-of-00002.safetensors"};
#define SMALL_FILES (sizeof small_files / sizeof *small_files)

static inline char *read_bytes(const char *file, size_t *size)
{
    char *bytes;

    assert_ok(pace__read_file(file, 1 << 26, &bytes, size, &said_log));
    return bytes;
}

/* Without syncing, which thousands of them would pay for. */
static inline void write_bytes(const char *file, const char *bytes, size_t size)
{
    FILE *out = fopen(file, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static inline void assert_loads(const char *path, const float *expected, uint64_t keys, unsigned width)
{
    size_t bytes = keys * width * sizeof *expected;
    float *found = tiny_alloc(bytes);
    pace__manifest manifest;

    assert_ok(pace__manifest_read(path, &said_log, &manifest));
    memset(found, 0x55, bytes);
    assert_ok(pace__checkpoint_load(path, &manifest, found, &said_log));
    assert_memory_equal(found, expected, bytes);
    assert_ok(pace__checkpoint_load(path, &manifest, NULL, &said_log));
    pace__manifest_release(&manifest);
    free(found);
}

#endif
