/* Checkpoints on disk: what was written comes back, and nothing that is not whole is taken for one. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/tensors/safetensors.h"

#include "checkpoints.h"

#include <float.h>

/* --- what was written comes back --- */

static void assert_same_real(double found, double expected)
{
    assert_true(isnan(found) == isnan(expected));
    if (!isnan(expected))
        assert_memory_equal(&found, &expected, sizeof found);
}

static void assert_same_manifest(const pace__manifest *found, const pace__manifest *expected)
{
    const pace__position *a = &found->position, *b = &expected->position;

    assert_int_equal(found->incarnation, expected->incarnation);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->worse, b->worse);
    assert_int_equal(a->epoch_rows, b->epoch_rows);
    assert_same_real(a->best_logloss, b->best_logloss);
    assert_same_real(a->epoch_loss, b->epoch_loss);
    assert_same_real(a->last_epoch_loss, b->last_epoch_loss);
    assert_same_real(a->seconds, b->seconds);
    assert_int_equal(found->keys, expected->keys);
    assert_int_equal(found->width, expected->width);
    assert_string_equal(found->job, expected->job);
    assert_int_equal(found->parts, expected->parts);
    for (unsigned i = 0; i < expected->parts; i++) {
        assert_string_equal(found->part[i].name, expected->part[i].name);
        assert_int_equal(found->part[i].bytes, expected->part[i].bytes);
        assert_string_equal(found->part[i].sha256, expected->part[i].sha256);
    }
    assert_int_equal(found->divisions.count, expected->divisions.count);
    assert_int_equal(found->divisions.workers, expected->divisions.workers);
    for (size_t i = 0; i < expected->divisions.count; i++)
        assert_int_equal(found->divisions.from[i], expected->divisions.from[i]);
    for (size_t i = 0; i < expected->divisions.count * expected->divisions.workers; i++)
        assert_int_equal(found->divisions.rows[i], expected->divisions.rows[i]);
}

static void try_round_trip(void **state, uint64_t keys, unsigned width, unsigned parts)
{
    float *parameters = make_parameters(keys, width, keys);
    pace__manifest manifest = make_manifest(keys, parts, keys, width, parts), found;
    char *path = write_checkpoint(*state, parameters, &manifest);

    assert_ok(pace__manifest_read(path, &said_log, &found));
    assert_same_manifest(&found, &manifest);
    assert_int_equal(count_entries(path), parts + 1);
    assert_loads(path, parameters, keys, width);
    pace__manifest_release(&found);
    pace__manifest_release(&manifest);
    free(path);
    free(parameters);
}

/* Parts of the same size, of different sizes, and empty ones. */
static void what_was_written_comes_back(void **state)
{
    static const unsigned parts[] = {1, 2, 3, 7};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        try_round_trip(state, 1, 4, parts[i]);
        try_round_trip(state, 12, 1, parts[i]);
        try_round_trip(state, 1003, 3, parts[i]);
    }
    assert_int_equal(errors_said(), 0);
}

/* More than is read at a time, and no multiple of it. */
static void large_parts_come_back(void **state)
{
    try_round_trip(state, 700001, 1, 2);
    try_round_trip(state, 350003, 3, 1);
}

/* The same parameters, held by 3, by 7 and by 1. */
static void any_number_of_holders_can_take_over(void **state)
{
    static const unsigned parts[] = {3, 7, 1};
    float *parameters = make_parameters(101, 2, 5), *handed = make_parameters(101, 2, 5);

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        pace__manifest manifest = make_manifest(i, 1, 101, 2, parts[i]);
        char *path = write_checkpoint(*state, handed, &manifest);

        memset(handed, 0, 101 * 2 * sizeof *handed);
        assert_ok(pace__checkpoint_load(path, &manifest, handed, &said_log));
        assert_memory_equal(handed, parameters, 101 * 2 * sizeof *handed);
        pace__manifest_release(&manifest);
        free(path);
    }
    free(handed);
    free(parameters);
}

static void numbers_are_exact(void **state)
{
    static const double reals[] = {0,       -0.0,      0.1,      1.0 / 3,   -1e300, DBL_MAX,
                                   DBL_MIN, 0x1p-1074, INFINITY, -INFINITY, NAN,    -NAN};
    pace__random random = pace__random_at(11, 1);

    (void)state;
    for (int i = 0; i < 2000; i++) {
        double real;
        uint64_t bits = pace__mix64(pace__random_below(&random, UINT64_MAX));

        memcpy(&real, &bits, sizeof real);
        if (i < (int)(sizeof reals / sizeof *reals))
            real = reals[i];
        uint64_t from = bits % (PACE__CHECKPOINT_STEP_MAX + 1);
        uint32_t rows[] = {(uint32_t)(bits >> 33), 0, 1};
        pace__manifest manifest = {.incarnation = bits >> 11,
                                   .position = {.step = bits % (PACE__CHECKPOINT_STEP_MAX + 1),
                                                .best_logloss = real,
                                                .epoch_loss = -real,
                                                .last_epoch_loss = real,
                                                .seconds = real / 3,
                                                .worse = bits >> 12,
                                                .epoch_rows = bits >> 13},
                                   .keys = 1,
                                   .width = 1,
                                   .job = "a \"text\"\twith\\everything\x01\x7f \xc3\xbc",
                                   .parts = 1,
                                   .part = &(pace__part_record){"part-00000-of-00001.safetensors", 100, ""},
                                   .divisions = {3, 1, &from, rows}};
        pace__manifest found;
        size_t size;

        memset(manifest.part->sha256, 'a', PACE__SHA256_HEX - 1);
        char *text = pace__manifest_text(&manifest, &size);

        assert_ok(pace__manifest_parse(text, size, "text", &said_log, &found));
        assert_same_manifest(&found, &manifest);
        pace__manifest_release(&found);
        free(text);
    }
}

/* --- damage --- */

/* Every byte of every file, in each of its bits and in all of them. */
static void a_changed_byte_is_found(void **state)
{
    char *path = write_small(*state, 12, 1);

    for (size_t f = 0; f < SMALL_FILES; f++) {
        const char *file = file_of(path, small_files[f]);
        size_t size;
        char *bytes = read_bytes(file, &size);
        int fd = open(file, O_WRONLY);

        assert_true(fd >= 0 && size > 100);
        for (size_t at = 0; at < size; at++) {
            for (int turn = 0; turn < 9; turn++) {
                char changed = (char)(bytes[at] ^ (turn < 8 ? 1 << turn : 0xff));

                assert_int_equal(pwrite(fd, &changed, 1, (off_t)at), 1);
                assert_failed(check(path), PACE_BAD_DATA, file);
            }
            assert_int_equal(pwrite(fd, &bytes[at], 1, (off_t)at), 1);
        }
        close(fd);
        free(bytes);
        assert_ok(check(path));
    }
    free(path);
}

static void every_other_length_is_found(void **state)
{
    char *path = write_small(*state, 12, 1);

    for (size_t f = 0; f < SMALL_FILES; f++) {
        const char *file = file_of(path, small_files[f]);
        size_t size;
        char *bytes = read_bytes(file, &size);

        for (size_t cut = 0; cut < size; cut++) {
            write_bytes(file, bytes, cut);
            assert_failed(check(path), PACE_BAD_DATA, file);
        }
        for (int c = 0; c < 256; c++) {
            bytes[size] = (char)c; /* where read_file has put a NUL */
            write_bytes(file, bytes, size + 1);
            assert_failed(check(path), PACE_BAD_DATA, file);
        }
        write_bytes(file, bytes, size);
        assert_ok(check(path));
        free(bytes);
    }
    free(path);
}

static void a_missing_file_is_found(void **state)
{
    char *path = write_small(*state, 12, 1);

    for (size_t f = 0; f < SMALL_FILES; f++) {
        const char *file = file_of(path, small_files[f]), *aside = in(state, "aside");

        assert_int_equal(rename(file, aside), 0);
        assert_failed(check(path), PACE_BAD_DATA, pace__exists(file) ? "" : ": missing");
        assert_int_equal(mkdir(file, 0777), 0);
        assert_failed(check(path), PACE_BAD_DATA, ": is a directory, not a file");
        assert_int_equal(rmdir(file), 0);
        assert_int_equal(rename(aside, file), 0);
        assert_ok(check(path));
    }
    free(path);
    assert_failed(check(in(state, "nowhere")), PACE_BAD_DATA, "nowhere/manifest.json: missing");
}

static void messages_say_what_is_wrong(void **state)
{
    char *path = write_small(*state, 1200, 3), expected[1024];
    const char *file = file_of(path, small_files[1]);
    char sha256[PACE__SHA256_HEX], damaged[PACE__SHA256_HEX];
    size_t size;
    char *bytes = read_bytes(file, &size);

    hash_file(file, sha256);
    write_bytes(file, bytes, size - 7);
    snprintf(expected, sizeof expected,
             "%s/step-000000001200.0003/part-00000-of-00002.safetensors: damaged: it has %zu bytes, the "
             "manifest says %zu\n",
             (const char *)*state, size - 7, size);
    assert_failed(check(path), PACE_BAD_DATA, expected);
    bytes[size - 1] ^= 1;
    write_bytes(file, bytes, size);
    hash_file(file, damaged);
    snprintf(expected, sizeof expected, "%s: damaged: its SHA-256 is %s, the manifest says %s\n", file,
             damaged, sha256);
    assert_failed(check(path), PACE_BAD_DATA, expected);
    free(bytes);
    file = file_of(path, PACE__MANIFEST_NAME);
    bytes = read_bytes(file, &size);
    bytes[size / 2] ^= 1;
    write_bytes(file, bytes, size);
    snprintf(expected, sizeof expected,
             "%s: damaged: its text does not have the checksum that it ends with\n", file);
    assert_failed(check(path), PACE_BAD_DATA, expected);
    free(bytes);
    free(path);
}

/* Parts of another checkpoint, or another place, are no parts of this one, whatever their size. */
static void files_cannot_change_places(void **state)
{
    float *parameters = make_parameters(6, 2, 1);
    pace__manifest manifest = make_manifest(1, 1, 6, 2, 2);
    char *path = write_checkpoint(*state, parameters, &manifest), *other = NULL;
    const char *first = file_of(path, small_files[1]), *second = file_of(path, small_files[2]);

    assert_int_equal(rename(first, in(state, "aside")), 0);
    assert_int_equal(rename(second, first), 0);
    assert_int_equal(rename(in(state, "aside"), second), 0);
    assert_failed(check(path), PACE_BAD_DATA, "part-00000-of-00002.safetensors: damaged");
    manifest.position.step = 2;
    parameters[0] = 1;
    other = write_checkpoint(*state, parameters, &manifest);
    copy_file(file_of(path, PACE__MANIFEST_NAME), file_of(other, PACE__MANIFEST_NAME));
    assert_failed(check(other), PACE_BAD_DATA, "part-00000-of-00002.safetensors: damaged");
    pace__manifest_release(&manifest);
    free(other);
    free(path);
    free(parameters);
}

/* A part that the manifest vouches for, but that holds something else. */
static void try_other_part(const char *directory, const pace__tensor *tensors, size_t count,
                           const char *const values[3], const char *says)
{
    pace__text_pair metadata[] = {{"format", values[0]}, {"part", values[1]}, {"parts", values[2]}};
    pace__manifest manifest = make_manifest(1, 1, 6, 2, 1);
    pace__part_record *record = manifest.part;
    const char *file = file_of(directory, "part-00000-of-00001.safetensors");
    size_t size;

    strcpy(record->name, "part-00000-of-00001.safetensors");
    assert_ok(pace__safetensors_write(file, tensors, count, metadata, 3, record->sha256, &said_log));
    free(read_bytes(file, &size));
    record->bytes = size;
    float parameters[12];
    pace_status status = pace__checkpoint_load(directory, &manifest, parameters, &said_log);

    if (says)
        assert_failed(status, PACE_BAD_DATA, says);
    else
        assert_ok(status);
    pace__manifest_release(&manifest);
}

static void what_a_part_holds_is_checked(void **state)
{
    static const float floats[12] = {1, 2, 3};
    static const char *const right[] = {"paceline checkpoint part", "0", "1"};
    static const char *const wrong[][3] = {{"paceline model", "0", "1"},
                                           {"paceline checkpoint part", "1", "1"},
                                           {"paceline checkpoint part", "0", "2"}};
    pace__tensor good = {
        .name = "parameters", .dtype = PACE__F32, .rank = 2, .shape = {6, 2}, .data = floats};
    pace__tensor bad[] = {good, good, good, good, good};
    pace__tensor two[] = {good, good};

    try_other_part(*state, &good, 1, right, NULL);
    for (size_t i = 0; i < 3; i++)
        try_other_part(*state, &good, 1, wrong[i], "not part 0 of 1 of a checkpoint");
    bad[0].name = "weights";
    bad[1].dtype = PACE__I32;
    bad[2].rank = 1;
    bad[2].shape[0] = 12;
    bad[3].shape[0] = 2;
    bad[3].shape[1] = 6;
    bad[4].rank = 3;
    bad[4].shape[2] = 1;
    for (size_t i = 0; i < 5; i++)
        try_other_part(*state, &bad[i], 1, right, "not one tensor \"parameters\" of 6 x 2 floats");
    two[1] = (pace__tensor){.name = "more", .dtype = PACE__U8, .rank = 1, .shape = {3}, .data = floats};
    try_other_part(*state, two, 2, right, "not one tensor");
}

#define with_directory(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_directory(what_was_written_comes_back),
        with_directory(large_parts_come_back),
        with_directory(any_number_of_holders_can_take_over),
        with_directory(numbers_are_exact),
        with_directory(a_changed_byte_is_found),
        with_directory(every_other_length_is_found),
        with_directory(a_missing_file_is_found),
        with_directory(messages_say_what_is_wrong),
        with_directory(files_cannot_change_places),
        with_directory(what_a_part_holds_is_checked),
    };

    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
