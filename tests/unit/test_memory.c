/* Large arrays: base/memory.h. */
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static void pages_of_any_size_are_zero_and_ours(void **state)
{
    void *(*const kinds[])(size_t) = {pace__pages_alloc, pace__pages_alloc_sparse};
    const size_t sizes[] = {0, 1, 4095, 4096, 4097, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 5 * MIB, 8 * MIB};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i / 2];
        unsigned char *pages = kinds[i % 2](size);

        assert_non_null(pages);
        assert_int_equal((uintptr_t)pages % (i % 2 == 0 && size >= 2 * MIB ? 2 * MIB : 4096), 0);
        for (size_t at = 0; at < size; at++)
            assert_int_equal(pages[at], 0);
        for (size_t at = 0; at < size; at++)
            pages[at] = 255;
        pace__pages_free(pages, size);
    }
    pace__pages_free(NULL, 7);
}

static void too_much_is_refused(void **state)
{
    (void)state;
    assert_null(pace__pages_alloc(SIZE_MAX));
    assert_null(pace__pages_alloc_sparse(SIZE_MAX - 4096));
    assert_null(pace__pages_alloc(SIZE_MAX / 2)); /* more than there are addresses */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_any_size_are_zero_and_ours),
        cmocka_unit_test(too_much_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
