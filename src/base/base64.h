/*
 * base64.h - bytes as text of 64 characters, as in data: URLs and policies of pages.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

#define PACE__BASE64_TEXT(bytes) (4 * (((bytes) + 2) / 3) + 1)

/* `text` has room for PACE__BASE64_TEXT(size). */
void pace__base64(const void *bytes, size_t size, char *text);

#endif
