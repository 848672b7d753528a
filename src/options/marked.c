/* marked.c - options as words "name=value", by what they decide. */
#include "options/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Words are told apart by blanks: what is one in a value, and the sign for that itself, go as %20. */
static void print_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (isspace((unsigned char)*text) || iscntrl((unsigned char)*text) || *text == '%')
            fprintf(out, "%%%02x", (unsigned)(unsigned char)*text);
        else
            fputc(*text, out);
    }
}

static void print_value(FILE *out, const pace_option *row, const void *field)
{
    char text[PACE_VALUE_TEXT_MAX];

    if (row->kind == PACE_OPT_TEXT) {
        const char *value = *(const char *const *)field;

        print_text(out, value ? value : "");
    } else if (row->kind == PACE_OPT_LIST) {
        const pace_texts *list = field;

        for (size_t i = 0; i < list->count; i++) {
            fputs(i ? ":" : "", out);
            print_text(out, list->items[i]);
        }
    } else {
        pace__value_print(row, field, text);
        fputs(text, out);
    }
}

char *pace__options_marked(const pace_option_part *parts, unsigned marks)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const char *before = "";

    for (; out && parts->table; parts++) {
        for (const pace_option *row = parts->table; row->name; row++) {
            if (!(marks & PACE_MARK_BIT(row->mark)))
                continue;
            fprintf(out, "%s%s=", before, row->name);
            print_value(out, row, (const char *)parts->config + row->offset);
            before = " ";
        }
    }
    if (out && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
