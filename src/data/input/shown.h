/* shown.h - a piece of raw input, made fit to be shown in a message. */
#ifndef DATA_INPUT_SHOWN_H
#define DATA_INPUT_SHOWN_H

#include <stddef.h>
#include <string.h>

#define PACE__SHOWN_MAX 32

typedef struct pace__shown {
    char text[PACE__SHOWN_MAX + sizeof "..."];
} pace__shown;

/*
 * Longer texts are cut; bytes that are no printable ASCII become '?', because messages are one line for any
 * terminal.
 */
static inline pace__shown pace__show(const char *text, size_t size)
{
    pace__shown shown = {{0}};
    size_t length = size > PACE__SHOWN_MAX ? PACE__SHOWN_MAX : size;

    for (size_t i = 0; i < length; i++)
        shown.text[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    if (size > length)
        memcpy(shown.text + length, "...", 3);
    return shown;
}

#endif
