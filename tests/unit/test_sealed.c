/* JSON that ends with a checksum of itself: any change is noticed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/sealed.h"

#include "support.h"

#define BODY "{\n  \"steps\": 1200,\n  \"text\": \"100 % of it\""

static pace_status check(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    pace_status status = pace__read_sealed(path, 1 << 20, &text, &size, &said_log);

    free(text);
    return status;
}

static void what_was_sealed_comes_back(void **state)
{
    const char *path = in(state, "file.json");
    char *text = NULL;
    size_t size = 0;

    assert_ok(pace__write_sealed(path, BODY, sizeof BODY - 1, &said_log));
    assert_ok(pace__read_sealed(path, 1 << 20, &text, &size, &said_log));
    assert_int_equal(size, strlen(text));
    assert_int_equal(strncmp(text, BODY ",\n  \"checksum\": \"", sizeof BODY - 1 + 17), 0);
    assert_string_equal(text + size - 4, "\"\n}\n");
    free(text);
}

static void every_byte_counts(void **state)
{
    const char *path = in(state, "file.json");

    assert_ok(pace__write_sealed(path, BODY, sizeof BODY - 1, &said_log));
    char *text = get_text(path);
    size_t size = strlen(text);

    for (size_t at = 0; at < size; at++) {
        text[at] ^= 1;
        put_text(path, text);
        assert_failed(check(path), PACE_BAD_DATA, path);
        text[at] ^= 1;
    }
    text[size - 1] = '\0';
    put_text(path, text);
    assert_failed(check(path), PACE_BAD_DATA, path);
    free(text);
}

static void texts_without_one_are_taken_as_they_are(void **state)
{
    put_text(in(state, "file.json"), BODY "\n}\n");
    assert_ok(check(in(state, "file.json")));
    put_text(
        in(state, "file.json"), BODY
        ",\n  \"model_sha256\": \"217e2e6bf96162764de5567d61a10c5374e0e93a7e17ad829f00403f47ce33e1\"\n}\n");
    assert_ok(check(in(state, "file.json")));
    assert_failed(check(in(state, "none.json")), PACE_NO_INPUT, "none.json");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_sealed_comes_back),
        TEST(every_byte_counts),
        TEST(texts_without_one_are_taken_as_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
