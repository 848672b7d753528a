#include "report/markup.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_NUMBER "\xe2\x80\x93"

/* --- amounts --- */

/* A comma before every three digits. */
static void group_digits(double value, char text[PACE__AMOUNT_TEXT])
{
    char digits[PACE__AMOUNT_TEXT / 2];
    int size = snprintf(digits, sizeof digits, "%.0f", fabs(value));
    char *to = text;

    if (value <= -0.5)
        *to++ = '-';
    for (int i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
}

/* Three digits, but all in front of the point. */
static int digits_behind(double value)
{
    double size = fabs(value);

    return size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
}

static void write_seconds(double seconds, char text[PACE__AMOUNT_TEXT])
{
    if (seconds >= 3600)
        snprintf(text, PACE__AMOUNT_TEXT, "%.0f h %02.0f min", floor(seconds / 3600),
                 floor(fmod(seconds, 3600) / 60));
    else if (seconds >= 600)
        snprintf(text, PACE__AMOUNT_TEXT, "%.0f min %02.0f s", floor(seconds / 60), floor(fmod(seconds, 60)));
    else if (seconds < 0.0995 && seconds > 0)
        snprintf(text, PACE__AMOUNT_TEXT, "%.3g ms", 1e3 * seconds);
    else
        snprintf(text, PACE__AMOUNT_TEXT, "%.*f s", digits_behind(seconds), seconds);
}

static void write_bytes(double bytes, const char *per, char text[PACE__AMOUNT_TEXT])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;

    while (fabs(bytes) >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, PACE__AMOUNT_TEXT, "%.*f %s%s", unit ? digits_behind(bytes) : 0, bytes, units[unit], per);
}

const char *pace__amount(double value, pace__unit unit, char text[PACE__AMOUNT_TEXT])
{
    if (!isfinite(value) || fabs(value) >= 1e18) {
        strcpy(text, isnan(value) ? NO_NUMBER : value > 0 ? "very large" : "very small");
        return text;
    }
    switch (unit) {
    case PACE__COUNT:
        group_digits(value, text);
        break;
    case PACE__REAL:
        if (fabs(value) >= 1e5)
            group_digits(value, text);
        else
            snprintf(text, PACE__AMOUNT_TEXT, "%.5g", value);
        break;
    case PACE__SECONDS:
        write_seconds(value, text);
        break;
    case PACE__BYTES:
        write_bytes(value, "", text);
        break;
    case PACE__RATE:
        write_bytes(value, "/s", text);
        break;
    case PACE__SHARE:
        snprintf(text, PACE__AMOUNT_TEXT, "%.*f %%", fabs(value) < 0.9995 && value != 0, 100 * value);
        break;
    }
    return text;
}

/* --- texts --- */

static void put_character(FILE *out, char character)
{
    switch (character) {
    case '<':
        fputs("&lt;", out);
        break;
    case '>':
        fputs("&gt;", out);
        break;
    case '&':
        fputs("&amp;", out);
        break;
    case '"':
        fputs("&quot;", out);
        break;
    case '\'':
        fputs("&#39;", out);
        break;
    default:
        /* Control characters have no place in a document. */
        if (((unsigned char)character < 0x20 && character != '\n' && character != '\t') || character == 0x7f)
            fputs("\xef\xbf\xbd", out);
        else
            fputc(character, out);
    }
}

void pace__text(FILE *out, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        unsigned length = pace__utf8_length(text, left);

        if (length > 1)
            fwrite(text, 1, length, out);
        else if (length == 1)
            put_character(out, *text);
        else
            fputs("\xef\xbf\xbd", out);
        length = length ? length : 1;
        text += length;
        left -= length;
    }
}

void pace__json_text(FILE *out, const char *text)
{
    pace__json json = {0};

    pace__json_string(&json, text);
    size_t size = json.size;
    char *quoted = malloc(size);

    if (!quoted) {
        fputs("\"\"", out);
        return;
    }
    json = (pace__json){.text = quoted, .capacity = size};
    pace__json_string(&json, text);
    for (size_t i = 0; i < size; i++) {
        if (quoted[i] == '<')
            fputs("\\u003c", out);
        else
            fputc(quoted[i], out);
    }
    free(quoted);
}

void pace__json_number(FILE *out, double value)
{
    if (!isfinite(value))
        fputs("null", out);
    else
        fprintf(out, "%.6g", value);
}

/* --- tables --- */

void pace__table_begin(FILE *out, const char *const *headings)
{
    fputs("<div class=\"table\" tabindex=\"0\"><table><thead><tr>", out);
    for (; *headings; headings++) {
        bool is_number = **headings == '>';

        fputs(is_number ? "<th class=\"n\">" : "<th>", out);
        pace__text(out, *headings + is_number);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
}

void pace__table_end(FILE *out)
{
    fputs("</tbody></table></div>\n", out);
}

void pace__row_begin(FILE *out)
{
    fputs("<tr>", out);
}

void pace__row_end(FILE *out)
{
    fputs("</tr>\n", out);
}

void pace__put_cell(FILE *out, const char *text)
{
    fputs("<td>", out);
    pace__text(out, text && *text ? text : NO_NUMBER);
    fputs("</td>", out);
}

void pace__put_cell_number(FILE *out, const char *text)
{
    fputs("<td class=\"n\">", out);
    pace__text(out, text);
    fputs("</td>", out);
}

void pace__put_cell_amount(FILE *out, double value, pace__unit unit)
{
    char text[PACE__AMOUNT_TEXT];

    pace__put_cell_number(out, pace__amount(value, unit, text));
}
