/*
 * json.h - JSON text written into a buffer of fixed size, without allocation.
 *
 * The writer works like snprintf: it never writes beyond the buffer, and counts what it would have needed. So
 * a text is either written into a buffer that is known to be large enough, or measured first:
 *
 *     pace__json json = {0};                 // no buffer: only `size` grows
 *     write_all(&json, tensors);
 *     char *text = malloc(json.size);
 *     json = (pace__json){.text = text, .capacity = json.size};
 *     write_all(&json, tensors);             // json.size <= json.capacity: complete. No NUL is added.
 *
 * It adds no commas or braces by itself: pace__json_raw writes them. To read JSON there is cJSON.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pace__json {
    char *text;
    size_t capacity;
    size_t size; /* above capacity: the text was cut */
} pace__json;

void pace__json_raw(pace__json *json, const char *text);
void pace__json_integer(pace__json *json, int64_t value);
void pace__json_unsigned(pace__json *json, uint64_t value);

/* The fewest digits (15, 16 or 17) that read back as the same double; null if it is not finite. */
void pace__json_real(pace__json *json, double value);

/*
 * With quotes. Control characters are escaped; bytes that are no UTF-8 become U+FFFD, so that the text stays
 * valid.
 */
void pace__json_string(pace__json *json, const char *text);

/* cJSON prints strings as they are: the same text with U+FFFD for bytes that are no UTF-8. Frees `text`; NULL when out of
 * memory, or if it is NULL. */
char *pace__json_valid(char *text);

/*
 * The bytes of the UTF-8 character at the start of text[0..size): 1 to 4, or 0 if there is none. `size` is
 * above 0.
 */
unsigned pace__utf8_length(const char *text, size_t size);

/* Reading: which of the names the object's member has; -1: none. */
struct cJSON;
int pace__json_choice(const struct cJSON *object, const char *member, const char *const *names, int count);

/* The object's member, if it is a whole number from 0 on that JSON holds exactly: below 2^53. */
#define PACE__JSON_COUNT_MAX (UINT64_C(1) << 53)
bool pace__json_count(const struct cJSON *object, const char *member, uint64_t *value);

#endif
