/* Names of classes: read, written, and everything refused that could not be told apart or shown. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/picture/class_names.h"

#include "support.h"

static pace__class_names parse(const char *text)
{
    pace__class_names names;

    assert_ok(pace__class_names_parse(text, strlen(text), "where", &said_log, &names));
    return names;
}

static void refuse(const char *text, size_t size, const char *message)
{
    pace__class_names names = {.count = 99};

    said_clear();
    assert_failed(pace__class_names_parse(text, size, "where", &said_log, &names), PACE_BAD_DATA, message);
    assert_int_equal(names.count, 99);
}

static void lines_are_names(void **state)
{
    static const char *const texts[] = {"cat\nhot dog\nK\xc3\xa4se\n", "cat\nhot dog\nK\xc3\xa4se"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        pace__class_names names = parse(texts[i]);
        size_t size, width;
        char *text = pace__class_names_text(&names, &size), *table = pace__class_names_table(&names, &width);

        assert_int_equal(names.count, 3);
        assert_string_equal(names.items[0], "cat");
        assert_string_equal(names.items[1], "hot dog");
        assert_string_equal(names.items[2], "K\xc3\xa4se");
        assert_string_equal(text, texts[0]);
        assert_int_equal(size, strlen(texts[0]));
        assert_int_equal(width, 7);
        assert_memory_equal(table, "cat\0\0\0\0hot dogK\xc3\xa4se\0\0", 21);
        free(table);
        free(text);
        pace__class_names_release(&names);
        assert_null(names.items);
    }
}

static void faults_are_named(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "0 classes"},
        {"one\n", "1 classes"},
        {"one\n\ntwo\n", "line 2 of the class names is empty"},
        {"\n\n", "line 1 of the class names is empty"},
        {"one\r\ntwo\r\n", "line 1 of the class names has a control character"},
        {"one\ntw\to\n", "line 2 of the class names has a control character"},
        {"one\ntwo\x7f\n", "line 2 of the class names has a control character"},
        {"one\n\xc2\x9btwo\n", "line 2 of the class names has a control character"},
        {"one\n\xfftwo\n", "line 2 of the class names is no UTF-8"},
        {"one\ntwo\xc3\n", "line 2 of the class names is no UTF-8"},
        {"b\na\nc\na\n", "lines 2 and 4 of the class names are the same: a"},
    };
    char longest[2 * PACE__CLASS_NAME_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(cases[i].text, strlen(cases[i].text), cases[i].message);
    refuse("a\nb\0c\n", 6, "line 2 of the class names has a control character");
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "a\n", 2);
    refuse(longest, 2 + PACE__CLASS_NAME_BYTES_MAX + 1, "line 2 of the class names is too long");
    pace__class_names names;

    assert_ok(pace__class_names_parse(longest, 2 + PACE__CLASS_NAME_BYTES_MAX, "where", &said_log, &names));
    pace__class_names_release(&names);
    names = parse("\xc2\xa0\nno\xc2\xa0"
                  "break\n"); /* U+00A0 is none */
    pace__class_names_release(&names);
}

static void there_may_be_many_but_not_more(void **state)
{
    char *text = tiny_alloc((size_t)(PACE__CLASSES_MAX + 1) * 8);
    pace__class_names names;
    size_t size = 0, before = 0;

    (void)state;
    for (unsigned i = 0; i <= PACE__CLASSES_MAX; i++) {
        before = size;
        size += (size_t)snprintf(text + size, 8, "%u\n", i);
    }
    refuse(text, size, "65536 classes");
    assert_ok(pace__class_names_parse(text, before, "where", &said_log, &names));
    assert_int_equal(names.count, PACE__CLASSES_MAX);
    assert_string_equal(names.items[65534], "65534");
    pace__class_names_release(&names);
    free(text);
}

static void the_checksum_tells_names_apart(void **state)
{
    static const char *const texts[] = {"a\nb\n", "b\na\n", "ab\nc\n", "a\nbc\n", "a\nb\nc\n", "a\nB\n"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    uint64_t sums[TEXTS];

    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        pace__class_names names = parse(texts[i]);

        sums[i] = pace__class_names_checksum(&names);
        pace__class_names_release(&names);
        for (size_t j = 0; j < i; j++)
            assert_true(sums[i] != sums[j]);
    }
    /* For ever: models and data sets of earlier versions hold it. */
    assert_true(sums[0] == UINT64_C(0xf865483384e6860f));
}

static void files_are_compared_with_the_encoding(void **state)
{
    pace__class_names names = parse("a\nb\nc\n"), back;
    pace__encoding encoding = {
        .kind = PACE__IMAGE, .classes = 3, .class_names = pace__class_names_checksum(&names)};
    const char *path = in(state, "classes.txt");

    assert_failed(pace__class_names_read(*state, &encoding, &said_log, &back), PACE_NO_INPUT, path);
    assert_ok(pace__class_names_write(*state, &names, &said_log));
    assert_ok(pace__class_names_read(*state, &encoding, &said_log, &back));
    assert_string_equal(back.items[2], "c");
    pace__class_names_release(&back);
    encoding.class_names++;
    assert_failed(pace__class_names_read(*state, &encoding, &said_log, &back), PACE_BAD_DATA, path);
    encoding.class_names--;
    encoding.classes = 4;
    assert_failed(pace__class_names_read(*state, &encoding, &said_log, &back), PACE_BAD_DATA, "has 4 and");
    put_text(path, "a\n\n");
    assert_failed(pace__class_names_read(*state, &encoding, &said_log, &back), PACE_BAD_DATA, "line 2");
    pace__class_names_release(&names);
}

/* Also if one is called "none", and if they are alike for longer than a message shows. */
static void other_classes_are_told_by_name(void **state)
{
    char *three[] = {"cat", "dog", "none"}, *turned[] = {"dog", "cat"};
    char *long_names[] = {"a name of sixty characters and more, which are all alike up to here: 1"};
    char *longer[] = {"a name of sixty characters and more, which are all alike up to here: 2"};
    pace__class_names model = {3, three, NULL}, data = {2, three, NULL}, other = {2, turned, NULL};
    pace__class_names one = {1, long_names, NULL}, two = {1, longer, NULL};

    (void)state;
    assert_ok(pace__class_names_fit(&model, &model, "set", &said_log));
    assert_failed(pace__class_names_fit(&model, &data, "set", &said_log), PACE_BAD_DATA, "other classes");
    assert_failed(pace__class_names_fit(&data, &model, "set", &said_log), PACE_BAD_DATA, "other classes");
    assert_failed(pace__class_names_fit(&one, &two, "set", &said_log), PACE_BAD_DATA, "other classes");
    assert_failed(pace__class_names_fit(&other, &data, "set", &said_log), PACE_BAD_DATA,
                  "class 0 is dog there, and cat here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_names),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(there_may_be_many_but_not_more),
        cmocka_unit_test(the_checksum_tells_names_apart),
        cmocka_unit_test(other_classes_are_told_by_name),
        cmocka_unit_test_setup_teardown(files_are_compared_with_the_encoding, make_directory,
                                        remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
