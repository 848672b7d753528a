/* Checkpoints on disk: what was written comes back, and nothing that is not whole is taken for one. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "checkpoint/internal.h"
#include "data/tensors/safetensors.h"

#include "support.h"

#include <float.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>

#define JOB "rows=45840617 optimizer=ftrl lr=0.05 seed=7"

/* --- making checkpoints --- */

/* Any bits: NaNs, too, must come back as they were. */
static float *make_parameters(uint64_t keys, unsigned width, uint64_t seed)
{
    float *parameters = tiny_alloc(keys * width * sizeof *parameters);

    for (uint64_t i = 0; i < keys * width; i++) {
        uint32_t bits = (uint32_t)(pace__mix64(seed + i) >> 32);

        memcpy(&parameters[i], &bits, sizeof bits);
    }
    return parameters;
}

static pace__manifest make_manifest(uint64_t step, uint64_t incarnation, uint64_t keys, unsigned width,
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
static pace_status write_part(const char *directory, const float *parameters, unsigned part,
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
static char *write_checkpoint(const char *root, const float *parameters, pace__manifest *manifest)
{
    char *path = NULL;

    assert_ok(pace__checkpoint_begin(root, manifest->position.step, manifest->incarnation, &said_log, &path));
    for (unsigned part = 0; part < manifest->parts; part++)
        assert_ok(write_part(path, parameters, part, manifest));
    assert_ok(pace__checkpoint_commit(path, manifest, &said_log));
    return path;
}

/* A small one, of two parts of 3 and 2 keys, that only has to be there. */
static char *write_small(const char *root, uint64_t step, uint64_t incarnation)
{
    float *parameters = make_parameters(5, 2, step);
    pace__manifest manifest = make_manifest(step, incarnation, 5, 2, 2);
    char *path = write_checkpoint(root, parameters, &manifest);

    pace__manifest_release(&manifest);
    free(parameters);
    return path;
}

static void put_small(const char *root, uint64_t step, uint64_t incarnation)
{
    free(write_small(root, step, incarnation));
}

/* Everything that resuming would look at. */
static pace_status check(const char *path)
{
    pace__manifest manifest;
    pace_status status = pace__manifest_read(path, &said_log, &manifest);

    if (!status)
        status = pace__checkpoint_load(path, &manifest, NULL, &said_log);
    pace__manifest_release(&manifest);
    return status;
}

static const char *file_of(const char *path, const char *name)
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

static char *read_bytes(const char *file, size_t *size)
{
    char *bytes;

    assert_ok(pace__read_file(file, 1 << 26, &bytes, size, &said_log));
    return bytes;
}

/* Without syncing, which thousands of them would pay for. */
static void write_bytes(const char *file, const char *bytes, size_t size)
{
    FILE *out = fopen(file, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

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
    assert_int_equal(found->shares, expected->shares);
    for (unsigned i = 0; i < expected->shares; i++)
        assert_same_real(found->share[i], expected->share[i]);
}

static void assert_loads(const char *path, const float *expected, uint64_t keys, unsigned width)
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
        double share = isfinite(real) ? fabs(real) : 0.5, shares[] = {share, 0, 1};
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
                                   .shares = 3,
                                   .share = shares};
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

/* --- the text of a manifest --- */

static pace__part_record golden_parts[] = {
    {"part-00000-of-00002.safetensors", 224,
     "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"},
    {"part-00001-of-00002.safetensors", 216,
     "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"}};
static double golden_shares[] = {0.75, 1.25};
static pace__manifest golden = {.incarnation = 3,
                                .position = {1200, 0.5, 2, 3, 4, NAN, INFINITY},
                                .keys = 5,
                                .width = 2,
                                .job = "rows=100 seed=7",
                                .parts = 2,
                                .part = golden_parts,
                                .shares = 2,
                                .share = golden_shares};

static const char golden_text[] =
    "{\n"
    "  \"format\": \"paceline checkpoint 1\",\n"
    "  \"step\": 1200,\n"
    "  \"incarnation\": 3,\n"
    "  \"best_logloss\": \"0x1p-1\",\n"
    "  \"worse\": 2,\n"
    "  \"epoch_loss\": \"0x1.8p+1\",\n"
    "  \"epoch_rows\": 4,\n"
    "  \"last_epoch_loss\": \"nan\",\n"
    "  \"seconds\": \"inf\",\n"
    "  \"keys\": 5,\n"
    "  \"width\": 2,\n"
    "  \"job\": \"rows=100 seed=7\",\n"
    "  \"shares\": [\n"
    "    \"0x1.8p-1\",\n"
    "    \"0x1.4p+0\"],\n"
    "  \"parts\": 2,\n"
    "  \"files\": [\n"
    "    {\"name\": \"part-00000-of-00002.safetensors\", \"bytes\": 224, \"sha256\": "
    "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"},\n"
    "    {\"name\": \"part-00001-of-00002.safetensors\", \"bytes\": 216, \"sha256\": "
    "\"ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100\"}],\n"
    "  \"checksum\": \"2f09068897127152\"\n"
    "}\n";
#define GOLDEN_BODY (sizeof golden_text - 1 - PACE__MANIFEST_TAIL_BYTES)

static void a_manifest_can_be_read_by_people(void **state)
{
    size_t size = 0;
    char *text = pace__manifest_text(&golden, &size);

    (void)state;
    assert_non_null(text);
    assert_int_equal(size, sizeof golden_text - 1);
    assert_memory_equal(text, golden_text, size);
    free(text);
}

/* The text with its right last lines is parsed; *size of them all. */
static pace_status parse_sealed(const char *body, size_t size)
{
    pace__manifest found;
    char *text = tiny_alloc(size + PACE__MANIFEST_TAIL_BYTES);

    memcpy(text, body, size);
    pace__manifest_seal(body, size, text + size);
    memset(&found, 0x55, sizeof found);
    pace_status status = pace__manifest_parse(text, size + PACE__MANIFEST_TAIL_BYTES, "M", &said_log, &found);

    if (status)
        assert_memory_equal(&found, &(pace__manifest){0}, sizeof found);
    pace__manifest_release(&found);
    free(text);
    return status;
}

/* What a checksum does not find: texts that somebody wrote so. */
static void other_texts_are_refused(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } edits[] = {
        {"checkpoint 1", "checkpoint 2", "its format is not \"paceline checkpoint 1\""},
        {"\"paceline checkpoint 1\"", "1", "its format is not"},
        {"  \"format\": \"paceline checkpoint 1\",\n", "", "its format is not"},
        {"\"format\": ", "\"format\": \"paceline checkpoint 1\",\n  \"format\": ", "members or spellings"},
        {"\"step\": ", "\"note\": 1,\n  \"step\": ", "members or spellings"},
        {"\"step\": 1200", "\"step\": 1200,\n  \"step\": 1300", "members or spellings"},
        {"\"step\": 1200,\n", "", "\"step\" is not a whole number from 0 to 999999999999"},
        {"\"step\": 1200", "\"step\": 999999999999", NULL},
        {"\"step\": 1200", "\"step\": 1000000000000", "\"step\" is not a whole number"},
        {"\"step\": 1200", "\"step\": \"1200\"", "\"step\" is not a whole number"},
        {"\"step\": 1200", "\"step\": -1", "\"step\" is not a whole number"},
        {"\"step\": 1200", "\"step\": 1.5", "\"step\" is not a whole number"},
        {"\"step\": 1200", "\"step\": null", "\"step\" is not a whole number"},
        {"\"step\": 1200", "\"step\": true", "\"step\" is not a whole number"},
        {"\"step\": 1200", "\"step\": [1200]", "\"step\" is not a whole number"},
        {"\"step\": 1200", "\"step\": 1200.0", "members or spellings"},
        {"\"step\": 1200", "\"step\": 12e2", "members or spellings"},
        {"\"step\": 1200", "\"step\": 01200", "members or spellings"},
        {"\"step\": 1200", "\"step\":  1200", "members or spellings"},
        {"\"step\": 1200", "\"step\": -0", "members or spellings"},
        {"\"incarnation\": 3", "\"incarnation\": 9007199254740991", NULL},
        {"\"incarnation\": 3", "\"incarnation\": 9007199254740992", "\"incarnation\" is not a whole number"},
        {"\"incarnation\": 3", "\"incarnation\": 18446744073709551619", "\"incarnation\" is not a whole"},
        {"\"incarnation\": 3", "\"incarnation\": 1e400", "\"incarnation\" is not a whole number"},
        {"\"worse\": 2", "\"worse\": -2", "\"worse\" is not a whole number"},
        {"\"epoch_rows\": 4", "\"epoch_rows\": {}", "\"epoch_rows\" is not a whole number"},
        {"\"0x1p-1\"", "0.5", "\"best_logloss\" is not a number as a text"},
        {"\"0x1p-1\"", "\"\"", "\"best_logloss\" is not a number as a text"},
        {"\"0x1p-1\"", "\"0x1p-1 \"", "\"best_logloss\" is not a number as a text"},
        {"\"0x1p-1\"", "\"half\"", "\"best_logloss\" is not a number as a text"},
        {"\"0x1p-1\"", "\"0.5\"", "members or spellings"},
        {"\"0x1p-1\"", "\"0x2p-2\"", "members or spellings"},
        {"\"0x1p-1\"", "\" 0x1p-1\"", "members or spellings"},
        {"\"nan\"", "\"NaN\"", "members or spellings"},
        {"\"nan\"", "\"-nan\"", "members or spellings"},
        {"\"nan\"", "\"-inf\"", NULL},
        {"\"keys\": 5", "\"keys\": 0", "\"keys\" is not a whole number from 1"},
        {"\"keys\": 5", "\"keys\": 5000", "part-00000-of-00002.safetensors: its size does not fit its keys"},
        {"\"keys\": 5", "\"keys\": 9007199254740991", "its size does not fit its keys"},
        {"\"width\": 2", "\"width\": 0", "\"width\" is not a whole number from 1 to 65536"},
        {"\"width\": 2", "\"width\": 65537", "\"width\" is not a whole number"},
        {"\"width\": 2", "\"width\": 60", "its size does not fit its keys"},
        {"\"rows=100 seed=7\"", "7", "\"job\" is not a text"},
        {"\"rows=100 seed=7\"", "\"\"", NULL},
        {"\"rows=100 seed=7\"", "\"rows=100\\u0020seed=7\"", "members or spellings"},
        {"\"rows=100 seed=7\"", "\"rows=100\\u0000seed=7\"", "damaged"},
        {"\"rows=100 seed=7\"", "\"\x01\"", "members or spellings"},
        {"\"rows=100 seed=7\"", "\"\xff\"", "\"job\" is not a text"},
        {"\"0x1.8p-1\",\n", "\"-0x1.8p-1\",\n", "shares is not a number, or below 0"},
        {"\"0x1.8p-1\",\n", "\"inf\",\n", "shares is not a number"},
        {"\"0x1.8p-1\",\n", "\"nan\",\n", "shares is not a number"},
        {"\"0x1.8p-1\",\n", "1,\n", "shares is not a number"},
        {"\"shares\": [", "\"shares\": {}, \"x\": [", "\"shares\" is not a list"},
        {"\"parts\": 2", "\"parts\": 1", "\"files\" is not a list of its 1 parts"},
        {"\"parts\": 2", "\"parts\": 3", "\"files\" is not a list of its 3 parts"},
        {"\"parts\": 2", "\"parts\": 0", "\"parts\" is not a whole number from 1 to 2048"},
        {"\"parts\": 2", "\"parts\": 2049", "\"parts\" is not a whole number"},
        {"\"files\": [", "\"files\": 2, \"x\": [", "\"files\" is not a list"},
        {"\"part-00000-of", "\"../part-00000-of", "part-00000-of-00002.safetensors: it has another name"},
        {"\"part-00000-of", "\"/part-00000-of", "it has another name"},
        {"\"part-00000-of", "\"x/part-00000-of", "it has another name"},
        {"\"part-00000-of", "\"part-00001-of", "it has another name"},
        {"\"part-00000-of", "\"part-0000-of", "it has another name"},
        {"\"part-00000-of-00002", "\"part-00000-of-00003", "it has another name"},
        {"\"part-00000-of-00002.safetensors\"", "0", "it has another name"},
        {"{\"name\": \"part-00000", "{\"title\": \"part-00000", "it has another name"},
        {"\"bytes\": 224", "\"bytes\": 24", "its size does not fit its keys"},
        {"\"bytes\": 224", "\"bytes\": 2240", "its size does not fit its keys"},
        {"\"bytes\": 224", "\"bytes\": -224", "its size does not fit its keys"},
        {"\"bytes\": 224", "\"bytes\": 224.5", "its size does not fit its keys"},
        {"\"bytes\": 224", "\"bytes\": 1e300", "its size does not fit its keys"},
        {"\"bytes\": 224", "\"bytes\": \"224\"", "its size does not fit its keys"},
        {"ccddeeff\"}", "ccddeef\"}", "it has no SHA-256"},
        {"ccddeeff\"}", "ccddeefff\"}", "it has no SHA-256"},
        {"ccddeeff\"}", "ccddeefF\"}", "it has no SHA-256"},
        {"ccddeeff\"}", "ccddeefg\"}", "it has no SHA-256"},
        {"ccddeeff\"}", "ccddeeff\", \"more\": 1}", "members or spellings"},
        {"{\n  \"format", "[\n  \"format", "not a JSON object"},
        {"{\n  \"format", " {\n  \"format", "members or spellings"},
        {"{\n  \"format", "{}\n{\n  \"format", "its format is not"},
        {"\"keys\": 5,", "\"keys\": 5", "not a JSON object"},
    };

    (void)state;
    assert_ok(parse_sealed(golden_text, GOLDEN_BODY));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        const char *at = strstr(golden_text, edits[i].from);

        assert_non_null(at);
        const char *behind = at + strlen(edits[i].from);
        char *body = pace__format("%.*s%s%.*s", (int)(at - golden_text), golden_text, edits[i].to,
                                  (int)(golden_text + GOLDEN_BODY - behind), behind);

        pace_status status = parse_sealed(body, strlen(body));

        if (!edits[i].says != !status)
            fail_msg("status %d for: %s", status, body);
        if (status)
            assert_failed(status, PACE_BAD_DATA, edits[i].says);
        free(body);
    }
}

static void long_and_binary_texts_are_refused(void **state)
{
    size_t size = PACE__MANIFEST_BYTES_MAX;
    char *body = tiny_alloc(size + 1);

    (void)state;
    memset(body, ' ', size);
    assert_failed(parse_sealed(body, size), PACE_BAD_DATA, "more than the limit of 4194304");
    memset(body, '[', size);
    assert_failed(parse_sealed(body, size - PACE__MANIFEST_TAIL_BYTES), PACE_BAD_DATA, "not a JSON object");
    memcpy(body, golden_text, GOLDEN_BODY);
    body[GOLDEN_BODY - 2] = '\0';
    assert_failed(parse_sealed(body, GOLDEN_BODY), PACE_BAD_DATA, "not a text");
    assert_failed(parse_sealed("", 0), PACE_BAD_DATA, "not a JSON object");
    /* Would be six times as long when written again. */
    size_t start = (size_t)(strstr(golden_text, "rows=") - golden_text);

    memcpy(body, golden_text, start);
    memset(body + start, 1, (1 << 20));
    memcpy(body + start + (1 << 20), golden_text + start, GOLDEN_BODY - start);
    assert_failed(parse_sealed(body, GOLDEN_BODY + (1 << 20)), PACE_BAD_DATA, "\"job\" is not a text");
    free(body);
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
        assert_failed(check(path), PACE_BAD_DATA, ": not a file");
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

/* --- the directory of checkpoints --- */

/* "12.3 10.1" */
static void assert_listed(const char *root, const char *expected, size_t unfinished_expected)
{
    pace__checkpoint_entry *entries = NULL;
    size_t count = 99, unfinished = 99;
    char found[1024] = "", path[1024];

    assert_ok(pace__checkpoint_list(root, &said_log, &entries, &count, &unfinished));
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(found);

        snprintf(found + used, sizeof found - used, "%s%" PRIu64 ".%" PRIu64, i ? " " : "", entries[i].step,
                 entries[i].incarnation);
        snprintf(path, sizeof path, "%s/step-%012" PRIu64 ".%04" PRIu64, root, entries[i].step,
                 entries[i].incarnation);
        assert_string_equal(entries[i].path, path);
    }
    assert_string_equal(found, expected);
    assert_int_equal(unfinished, unfinished_expected);
    pace__checkpoint_list_free(entries, count);
}

static void begin_only(const char *root, uint64_t step, uint64_t incarnation)
{
    char *path;

    assert_ok(pace__checkpoint_begin(root, step, incarnation, &said_log, &path));
    free(path);
}

static void the_list_is_newest_first(void **state)
{
    const char *root = in(state, "run/checkpoints");

    assert_listed(root, "", 0);
    pace__checkpoint_prune(root, 1, 1, 1); /* of nothing */
    put_small(root, 90, 2);
    put_small(root, 1000, 1);
    put_small(root, 100, 10);
    put_small(root, 100, 2);
    put_small(root, PACE__CHECKPOINT_STEP_MAX, 1);
    put_small(root, 0, 123456);
    begin_only(root, 2000, 3);
    begin_only(root, 5, 1);
    assert_listed(root, "999999999999.1 1000.1 100.10 100.2 90.2 0.123456", 2);
    pace__checkpoint_entry *entries;
    size_t count;

    assert_ok(pace__checkpoint_list(root, &said_log, &entries, &count, NULL));
    assert_int_equal(count, 6);
    assert_ok(check(entries[0].path));
    pace__checkpoint_list_free(entries, count);
    put_text(in(state, "file"), "");
    assert_failed(pace__checkpoint_list(in(state, "file"), &said_log, &entries, &count, NULL), PACE_IO,
                  "file: cannot list the directory: Not a directory");
}

static const char *const strange_names[] = {"step-000000000007.safetensors",
                                            "step-7.0001",
                                            "step-000000000007.001",
                                            "step-0000000000070.0001",
                                            "step-000000000007.00001",
                                            "step-000000000007",
                                            "step-000000000007.0001.old",
                                            "step- 00000000007.0001",
                                            "step-+00000000007.0001",
                                            "xstep-000000000007.0001",
                                            "Step-000000000007.0001",
                                            "step-000000000007.-001",
                                            "best"};
#define STRANGE_NAMES (sizeof strange_names / sizeof *strange_names)

/* Names that are nearly a checkpoint's: neither listed nor counted nor removed. */
static void strange_names_are_left_alone(void **state)
{
    const char *root = in(state, "root");

    put_small(root, 10, 1);
    for (size_t i = 0; i < STRANGE_NAMES; i++) {
        char inside[256];

        snprintf(inside, sizeof inside, "%s/" PACE__MANIFEST_NAME, strange_names[i]);
        assert_int_equal(mkdir(file_of(root, strange_names[i]), 0777), 0);
        put_text(file_of(root, inside), "{}");
    }
    put_text(file_of(root, "step-000000000005.0001"), "a file"); /* the right name, but no directory */
    put_text(file_of(root, "step-000000000006.safetensors"), "an old checkpoint");
    assert_int_equal(symlink("step-000000000010.0001", file_of(root, "step-000000000008.0001")), 0);
    assert_listed(root, "10.1", 0);
    pace__checkpoint_prune(root, 1, 10, 1);
    assert_int_equal(count_entries(root), STRANGE_NAMES + 4);
    for (size_t i = 0; i < STRANGE_NAMES; i++)
        assert_int_equal(count_entries(file_of(root, strange_names[i])), 1);
    assert_listed(root, "10.1", 0);
}

static void the_newest_are_kept(void **state)
{
    const char *root = *state;

    for (uint64_t step = 1; step <= 6; step++)
        put_small(root, 10 * step, 1);
    pace__checkpoint_prune(root, 3, 60, 1);
    assert_listed(root, "60.1 50.1 40.1", 0);
    pace__checkpoint_prune(root, 1, 60, 1);
    assert_listed(root, "60.1", 0);
    pace__checkpoint_prune(root, 0, 60, 1);
    assert_listed(root, "60.1", 0);
    assert_int_equal(count_entries(root), 1);
}

/* Resumed from 20, the run has now written 30: 40 and 50, and the first 30, were passed over. */
static void what_was_passed_over_goes(void **state)
{
    const char *root = *state;

    for (uint64_t step = 1; step <= 5; step++)
        put_small(root, 10 * step, 1);
    begin_only(root, 60, 1);
    begin_only(root, 15, 1);
    put_small(root, 30, 2);
    begin_only(root, 25, 2);
    pace__checkpoint_prune(root, 3, 30, 2);
    assert_listed(root, "30.2 20.1 10.1", 0);
    assert_int_equal(count_entries(root), 3);
}

/* What is under way, and what a later incarnation does to a process that does not know that it is late. */
static void others_are_left_alone(void **state)
{
    const char *root = *state;

    put_small(root, 10, 1);
    put_small(root, 20, 1);
    put_small(root, 30, 1);
    begin_only(root, 40, 1);
    put_small(root, 15, 2);
    begin_only(root, 18, 2);
    put_small(root, 50, 2);
    pace__checkpoint_prune(root, 1, 20, 1);
    assert_listed(root, "50.2 30.1 20.1 15.2", 2);
}

/* Something of the user's makes a directory stay, but it no longer counts, and its own files are gone. */
static void only_own_files_are_removed(void **state)
{
    const char *root = *state;
    char *path = write_small(root, 10, 1);

    put_text(file_of(path, "notes.txt"), "precious");
    put_text(file_of(path, "part-00000-of-00002.safetensors.bak"), "precious");
    put_text(file_of(path, "part-00002-of-00002.safetensors"), "no such part");
    put_text(file_of(path, "part-00001-of-00009.safetensors.tmp"), "a leftover");
    put_text(file_of(path, "manifest.json.tmp"), "a leftover");
    put_small(root, 20, 1);
    pace__checkpoint_prune(root, 1, 20, 1);
    assert_listed(root, "20.1", 1);
    assert_int_equal(count_entries(path), 3);
    assert_true(pace__exists(file_of(path, "notes.txt")));
    free(path);
    path = write_small(root, 15, 1);
    assert_int_equal(unlink(file_of(path, PACE__MANIFEST_NAME)), 0);
    assert_int_equal(mkdir(file_of(path, PACE__MANIFEST_NAME), 0777), 0); /* cannot be removed as a file */
    pace__checkpoint_prune(root, 1, 20, 1);
    assert_int_equal(count_entries(path), 3);
    assert_failed(pace__checkpoint_begin(root, 15, 1, &said_log, &(char *){NULL}), PACE_IO,
                  "manifest.json: cannot be removed");
    free(path);
}

static void an_earlier_try_is_cleared_away(void **state)
{
    char *path = write_small(*state, 10, 1), *again = NULL;

    put_text(file_of(path, "part-00000-of-00001.safetensors.tmp"), "half");
    assert_ok(pace__checkpoint_begin(*state, 10, 1, &said_log, &again));
    assert_string_equal(again, path);
    assert_int_equal(count_entries(path), 0);
    assert_listed(*state, "", 1);
    free(again);
    free(path);
    path = write_small(*state, 10, 1);
    assert_ok(check(path));
    pace__checkpoint_discard(path);
    assert_false(pace__exists(path));
    pace__checkpoint_discard(path); /* of nothing */
    free(path);
    put_text(in(state, "file"), "");
    assert_failed(pace__checkpoint_begin(in(state, "file"), 1, 1, &said_log, &again), PACE_IO, "file");
}

/* --- writing fails --- */

static void a_part_that_is_not_there_is_not_committed(void **state)
{
    float *parameters = make_parameters(5, 2, 1);
    pace__manifest manifest = make_manifest(10, 1, 5, 2, 2);
    char *path = write_checkpoint(*state, parameters, &manifest);
    const char *part = file_of(path, small_files[2]);

    assert_int_equal(unlink(file_of(path, PACE__MANIFEST_NAME)), 0);
    assert_int_equal(truncate(part, 100), 0);
    assert_failed(pace__checkpoint_commit(path, &manifest, &said_log), PACE_IO, "has 100 bytes, but");
    assert_int_equal(unlink(part), 0);
    assert_failed(pace__checkpoint_commit(path, &manifest, &said_log), PACE_IO, part);
    assert_int_equal(count_entries(path), 1);
    assert_listed(*state, "", 1);
    pace__manifest_release(&manifest);
    free(path);
    free(parameters);
}

static void limit_files_to(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A disk that fills up half-way, as the size limit of a process plays it. */
static void a_disk_that_fills_up_leaves_nothing(void **state)
{
    float *parameters = make_parameters(1000, 2, 1);
    pace__manifest manifest = make_manifest(10, 1, 1000, 2, 1);
    struct rlimit old;
    char *path = NULL;

    assert_ok(pace__checkpoint_begin(*state, 10, 1, &said_log, &path));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    limit_files_to(4000);
    pace_status part = write_part(path, parameters, 0, &manifest);

    limit_files_to(old.rlim_cur);
    assert_failed(part, PACE_IO, "part-00000-of-00001.safetensors.tmp: cannot write: File too large");
    assert_int_equal(count_entries(path), 0);
    assert_string_equal(manifest.part[0].name, "");
    assert_ok(write_part(path, parameters, 0, &manifest));
    limit_files_to(300);
    pace_status commit = pace__checkpoint_commit(path, &manifest, &said_log);

    limit_files_to(old.rlim_cur);
    signal(SIGXFSZ, SIG_DFL);
    assert_failed(commit, PACE_IO, "manifest.json.tmp: cannot write: File too large");
    assert_int_equal(count_entries(path), 1);
    assert_listed(*state, "", 1);
    pace__checkpoint_discard(path);
    assert_int_equal(count_entries(*state), 0);
    pace__manifest_release(&manifest);
    free(path);
    free(parameters);
}

/* A device that is always full stands where the file is to be written. */
static void a_full_disk_is_told(void **state)
{
    float *parameters = make_parameters(5, 2, 1);
    pace__manifest manifest = make_manifest(10, 1, 5, 2, 1);
    char *path = NULL;

    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_ok(pace__checkpoint_begin(*state, 10, 1, &said_log, &path));
    assert_int_equal(symlink("/dev/full", file_of(path, "part-00000-of-00001.safetensors.tmp")), 0);
    assert_failed(write_part(path, parameters, 0, &manifest), PACE_IO,
                  "part-00000-of-00001.safetensors.tmp: cannot write: No space left on device");
    assert_int_equal(count_entries(path), 0);
    assert_ok(write_part(path, parameters, 0, &manifest));
    assert_int_equal(symlink("/dev/full", file_of(path, "manifest.json.tmp")), 0);
    assert_failed(pace__checkpoint_commit(path, &manifest, &said_log), PACE_IO,
                  "manifest.json.tmp: cannot write: No space left on device");
    assert_int_equal(count_entries(path), 1);
    assert_ok(pace__checkpoint_commit(path, &manifest, &said_log));
    assert_loads(path, parameters, 5, 2);
    pace__manifest_release(&manifest);
    free(path);
    free(parameters);
}

#define with_directory(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_directory(what_was_written_comes_back),
        with_directory(large_parts_come_back),
        with_directory(any_number_of_holders_can_take_over),
        with_directory(numbers_are_exact),
        with_directory(a_manifest_can_be_read_by_people),
        with_directory(other_texts_are_refused),
        with_directory(long_and_binary_texts_are_refused),
        with_directory(a_changed_byte_is_found),
        with_directory(every_other_length_is_found),
        with_directory(a_missing_file_is_found),
        with_directory(messages_say_what_is_wrong),
        with_directory(files_cannot_change_places),
        with_directory(what_a_part_holds_is_checked),
        with_directory(the_list_is_newest_first),
        with_directory(strange_names_are_left_alone),
        with_directory(the_newest_are_kept),
        with_directory(what_was_passed_over_goes),
        with_directory(others_are_left_alone),
        with_directory(only_own_files_are_removed),
        with_directory(an_earlier_try_is_cleared_away),
        with_directory(a_part_that_is_not_there_is_not_committed),
        with_directory(a_disk_that_fills_up_leaves_nothing),
        with_directory(a_full_disk_is_told),
    };

    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
