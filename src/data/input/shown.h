/* shown.h - a piece of raw input, made fit to be shown in a message. */
#ifndef DATA_INPUT_SHOWN_H
#define DATA_INPUT_SHOWN_H

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PACE__SHOWN_MAX 32

typedef struct pace__shown {
    char text[PACE__SHOWN_MAX + sizeof "..."];
} pace__shown;

/*
 * Longer texts are cut between characters. Controls, and bytes that are no UTF-8, become '?', because messages are
 * one line for any terminal.
 */
static inline pace__shown pace__show(const char *text, size_t size)
{
    pace__shown shown = {{0}};
    size_t at = 0, length;

    for (; at < size; at += length) {
        length = pace__utf8_length(text + at, size - at);
        bool known = length > 0;

        length = known ? length : 1;
        if (at + length > PACE__SHOWN_MAX)
            break;
        bool controls = length == 1 ? (unsigned char)text[at] < ' ' || text[at] == 0x7f
                                    : length == 2 && text[at] == '\xc2' && (unsigned char)text[at + 1] < 0xa0;

        if (known && !controls)
            memcpy(shown.text + at, text + at, length);
        else
            memset(shown.text + at, '?', length);
    }
    if (at < size)
        memcpy(shown.text + at, "...", 3);
    return shown;
}

#endif
