/*
 * padded.h - texts as the scanners want them: with readable bytes behind, which go on as the text might.
 */
#ifndef TESTS_PADDED_H
#define TESTS_PADDED_H

#include "data/input/shown.h"

#include <stdlib.h>
#include <string.h>

/* A copy with `rest` over and over behind it, and nothing readable behind that. To be freed. */
static inline char *padded_with(const char *text, size_t size, const char *rest)
{
    char *copy = malloc(size + PACE__TEXT_PADDING);

    assert_non_null(copy);
    memcpy(copy, text, size);
    for (size_t i = 0; i < PACE__TEXT_PADDING; i++)
        copy[size + i] = rest[i % strlen(rest)];
    return copy;
}

#endif
