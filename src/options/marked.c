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

/* "none" for what has no value; the default in the words of --help, where it has some. */
static void show_value(const pace_option *row, const void *field, char text[PACE_DIFFERENCE_TEXT])
{
    FILE *out = fmemopen(text, PACE_DIFFERENCE_TEXT, "w");

    text[0] = '\0';
    if (out && row->usual && pace__value_is_default(row, field))
        fputs(row->usual, out);
    else if (out)
        print_value(out, row, field);
    if (out)
        fclose(out);
    text[PACE_DIFFERENCE_TEXT - 1] = '\0';
    if (!text[0])
        strcpy(text, "none");
}

void pace__options_compare(const pace_option_part *before, const pace_option_part *now, unsigned marks,
                           pace__difference_fn *differs, void *user)
{
    char was[PACE_DIFFERENCE_TEXT], is[PACE_DIFFERENCE_TEXT];

    for (; before->table && before->table == now->table; before++, now++) {
        for (const pace_option *row = before->table; row->name; row++) {
            if (!(marks & PACE_MARK_BIT(row->mark)))
                continue;
            show_value(row, (const char *)before->config + row->offset, was);
            show_value(row, (const char *)now->config + row->offset, is);
            if (strcmp(was, is) != 0)
                differs(user, row, was, is);
        }
    }
}
