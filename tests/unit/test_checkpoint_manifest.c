/* The text of a manifest: people can read it, and any other text is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "checkpoint/internal.h"

#include "support.h"

static pace__part_record golden_parts[] = {
    {"part-00000-of-00002.safetensors", 224,
     "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"},
    {"part-00001-of-00002.safetensors", 216,
     "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"}};
static uint64_t golden_from[] = {1100, 1202};
static uint32_t golden_rows[] = {32, 32, 51, 13};
static pace__manifest golden = {.incarnation = 3,
                                .position = {1200, 0.5, 2, 3, 4, NAN, INFINITY},
                                .keys = 5,
                                .width = 2,
                                .job = "rows=100 seed=7",
                                .parts = 2,
                                .part = golden_parts,
                                .divisions = {2, 2, golden_from, golden_rows}};

static const char golden_text[] =
    "{\n"
    "  \"format\": \"paceline checkpoint 2\",\n"
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
    "  \"divisions\": [\n"
    "    {\"from\": 1100, \"rows\": [32, 32]},\n"
    "    {\"from\": 1202, \"rows\": [51, 13]}],\n"
    "  \"parts\": 2,\n"
    "  \"files\": [\n"
    "    {\"name\": \"part-00000-of-00002.safetensors\", \"bytes\": 224, \"sha256\": "
    "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"},\n"
    "    {\"name\": \"part-00001-of-00002.safetensors\", \"bytes\": 216, \"sha256\": "
    "\"ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100\"}],\n"
    "  \"checksum\": \"b15ba89c04331334\"\n"
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

/* Of a version before there were divisions: the run can go on, and what is written again is the same. */
static void manifests_of_before_can_be_read(void **state)
{
    const char *start = strstr(golden_text, "  \"divisions\""), *end = strstr(golden_text, "  \"parts\"");
    char body[sizeof golden_text];
    int size = snprintf(body, sizeof body, "%.*s  \"shares\": [],\n%.*s", (int)(start - golden_text),
                        golden_text, (int)(GOLDEN_BODY - (size_t)(end - golden_text)), end);

    (void)state;
    *strstr(body, "checkpoint 2") = 'C'; /* neither of them */
    assert_failed(parse_sealed(body, (size_t)size), PACE_BAD_DATA, "its format is neither");
    memcpy(strstr(body, "Checkpoint 2"), "checkpoint 1", 12);
    assert_ok(parse_sealed(body, (size_t)size));
}

/* Of a run that keeps its best: one member more, which others do not have. */
static void the_best_is_told_where_there_is_one(void **state)
{
    pace__manifest with = golden, found;
    size_t size = 0;

    (void)state;
    with.position.best_step = 1100;
    char *text = pace__manifest_text(&with, &size);

    assert_non_null(text);
    assert_ok(pace__manifest_parse(text, size, "M", &said_log, &found));
    assert_int_equal(found.position.best_step, 1100);
    pace__manifest_release(&found);
    char *at = strstr(text, "\"best_step\": 1100");

    assert_non_null(at);
    memcpy(at, "\"best_step\": 1300", 17);
    assert_failed(parse_sealed(text, size - PACE__MANIFEST_TAIL_BYTES), PACE_BAD_DATA, "still to come");
    memcpy(at, "\"best_step\": 0000", 17);
    assert_failed(parse_sealed(text, size - PACE__MANIFEST_TAIL_BYTES), PACE_BAD_DATA, "");
    free(text);
}

/* What a checksum does not find: texts that somebody wrote so. */
static void other_texts_are_refused(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } edits[] = {
        {"checkpoint 2", "checkpoint 3", "its format is neither \"paceline checkpoint 2\" nor"},
        {"checkpoint 2", "checkpoint 1", "divided among workers is not a list"}, /* those have no divisions */
        {"\"paceline checkpoint 2\"", "1", "its format is neither"},
        {"  \"format\": \"paceline checkpoint 2\",\n", "", "its format is neither"},
        {"\"format\": ", "\"format\": \"paceline checkpoint 2\",\n  \"format\": ", "members or spellings"},
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
        {"[51, 13]", "[51, -13]", "one of its divisions is not"},
        {"[51, 13]", "[51, 1.5]", "one of its divisions is not"},
        {"[51, 13]", "[51, \"13\"]", "one of its divisions is not"},
        {"[51, 13]", "[51, 4294967296]", "one of its divisions is not"},
        {"[51, 13]", "[51, 4294967295]", "one of its divisions is not"}, /* more rows than a step can have */
        {"[51, 13]", "[0, 0]", "one of its divisions is not"},
        {"[51, 13]", "[51]", "one of its divisions is not"}, /* of another number of workers */
        {"[51, 13]", "[]", "one of its divisions is not"},
        {"[51, 13]", "64", "one of its divisions is not"},
        {"\"from\": 1202", "\"from\": 1100", "one of its divisions is not a step behind the one before"},
        {"\"from\": 1202", "\"from\": -1", "one of its divisions is not"},
        {"\"from\": 1202", "\"to\": 1202", "one of its divisions is not"},
        {"\"divisions\": [", "\"divisions\": {}, \"x\": [", "divided among workers is not a list"},
        {"\"divisions\": [", "\"shares\": [], \"x\": [", "divided among workers is not a list"},
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
        {"{\n  \"format", "{}\n{\n  \"format", "its format is neither"},
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

#define with_directory(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_directory(a_manifest_can_be_read_by_people),    with_directory(manifests_of_before_can_be_read),
        with_directory(the_best_is_told_where_there_is_one), with_directory(other_texts_are_refused),
        with_directory(long_and_binary_texts_are_refused),
    };

    return cmocka_run_group_tests_name("checkpoint manifest", tests, NULL, NULL);
}
