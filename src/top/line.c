#include "top/line.h"

#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* --- characters --- */

static uint32_t code_of(const char *text, unsigned length)
{
    static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)text[0] & lead[length];

    for (unsigned i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

/* Names of runs may be in any script; those of East Asia take two columns. */
static int columns_of(uint32_t code)
{
    static const uint32_t wide[][2] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                       {0xf900, 0xfaff}, {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                       {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        if (code >= wide[i][0] && code <= wide[i][1])
            return 2;
    }
    return 1;
}

/* Characters that move the cursor, or turn the direction of what follows. */
static bool steers(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* The character at the start of a text: its bytes, and what stands for it. */
typedef struct character {
    unsigned bytes, shown_bytes;
    int columns;
    const char *shown;
} character;

static character next_character(const char *text, bool is_utf8)
{
    unsigned length = pace__utf8_length(text, strlen(text));
    character next = {.bytes = length ? length : 1, .shown_bytes = 1, .columns = 1, .shown = "?"};
    uint32_t code = length ? code_of(text, length) : 0;

    if (length == 0 || steers(code) || (length > 1 && !is_utf8))
        return next;
    next.shown = text;
    next.shown_bytes = length;
    next.columns = columns_of(code);
    return next;
}

int pace__text_columns(const char *text, bool is_utf8)
{
    int columns = 0;

    while (*text) {
        character next = next_character(text, is_utf8);

        columns += next.columns;
        text += next.bytes;
    }
    return columns;
}

size_t pace__text_wrap(const char *text, int columns, bool is_utf8)
{
    size_t taken = 0, blank = 0;
    int used = 0;

    while (text[taken]) {
        character next = next_character(text + taken, is_utf8);

        if (text[taken] == ' ')
            blank = taken;
        if (used + next.columns > columns)
            return blank ? blank : taken ? taken : next.bytes;
        used += next.columns;
        taken += next.bytes;
    }
    return taken;
}

/* --- lines --- */

void pace__line_put(pace__line *line, const char *text)
{
    while (*text) {
        character next = next_character(text, line->is_utf8);

        if (line->columns + next.columns > line->columns_max ||
            line->bytes + next.shown_bytes >= sizeof line->text)
            return;
        memcpy(line->text + line->bytes, next.shown, next.shown_bytes);
        line->bytes += next.shown_bytes;
        line->text[line->bytes] = '\0';
        line->columns += next.columns;
        text += next.bytes;
    }
}

void pace__line_format(pace__line *line, const char *format, ...)
{
    char text[PACE__LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pace__line_put(line, text);
}

void pace__line_pad(pace__line *line, int column)
{
    while (line->columns < column && line->columns < line->columns_max)
        pace__line_put(line, " ");
}

void pace__line_cell(pace__line *line, const char *text, int width, bool to_the_right)
{
    int end = line->columns + width, all = line->columns_max;
    int blanks = width - pace__text_columns(text, line->is_utf8);

    if (to_the_right && blanks > 0)
        pace__line_pad(line, line->columns + blanks);
    line->columns_max = end < all ? end : all;
    pace__line_put(line, text);
    pace__line_pad(line, end);
    line->columns_max = all;
}

/* --- amounts --- */

/* Three digits and the first unit that keeps the number below `step`. */
static const char *scaled(double value, double step, const char *const *units, char *text)
{
    if (!isfinite(value)) {
        strcpy(text, "-");
        return text;
    }
    while (units[1] && fabs(value) >= step * 0.9995) {
        value /= step;
        units++;
    }
    int decimals = fabs(value) >= 99.95 || value == floor(value) ? 0 : fabs(value) >= 9.995 ? 1 : 2;

    snprintf(text, PACE__AMOUNT_TEXT, "%.*f%s", decimals, value, *units);
    return text;
}

const char *pace__text_count(double count, char text[PACE__AMOUNT_TEXT])
{
    static const char *const units[] = {"", "k", "M", "G", "T", NULL};

    return scaled(count, 1000, units, text);
}

const char *pace__text_bytes(double bytes, char text[PACE__AMOUNT_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};

    return scaled(bytes, 1024, units, text);
}

const char *pace__text_percent(double share, char text[PACE__AMOUNT_TEXT])
{
    if (isfinite(share))
        snprintf(text, PACE__AMOUNT_TEXT, "%.0f%%", fmin(100 * share, 999999));
    else
        strcpy(text, "-");
    return text;
}

const char *pace__text_seconds(double seconds, char text[PACE__AMOUNT_TEXT])
{
    if (!isfinite(seconds)) {
        strcpy(text, "-");
        return text;
    }
    uint64_t whole = (uint64_t)fmin(fmax(seconds, 0) + 0.5, 1e12);

    if (whole < 60)
        snprintf(text, PACE__AMOUNT_TEXT, "%" PRIu64 " s", whole);
    else if (whole < 3600)
        snprintf(text, PACE__AMOUNT_TEXT, "%" PRIu64 ":%02" PRIu64 " min", whole / 60, whole % 60);
    else
        snprintf(text, PACE__AMOUNT_TEXT, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " h", whole / 3600,
                 whole / 60 % 60, whole % 60);
    return text;
}

const char *pace__text_whole(double count, char text[PACE__AMOUNT_TEXT])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%.0f", fmin(fmax(count, 0), 1e15));
    char *walk = text;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *walk++ = ',';
        *walk++ = digits[i];
    }
    *walk = '\0';
    return text;
}
