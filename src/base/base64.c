#include "base/base64.h"

#include <stdint.h>

void pace__base64(const void *bytes, size_t size, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *at = bytes;

    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t group =
            (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (left > 2 ? at[i + 2] : 0u);

        *text++ = digits[group >> 18];
        *text++ = digits[group >> 12 & 63];
        *text++ = left > 1 ? digits[group >> 6 & 63] : '=';
        *text++ = left > 2 ? digits[group & 63] : '=';
    }
    *text = '\0';
}
