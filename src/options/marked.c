/* marked.c - options in words, by what they decide: "name=value", or the command line that repeats it. */
#include "options/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Words are told apart by blanks, and items of a list by colons: what is one in a value, and the sign for that itself,
 * go as %20. */
static void print_text(FILE *out, const char *text, bool item)
{
    for (; *text; text++) {
        bool apart = isspace((unsigned char)*text) || iscntrl((unsigned char)*text) || (item && *text == ':');

        if (apart || *text == '%')
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

        print_text(out, value ? value : "", false);
    } else if (row->kind == PACE_OPT_LIST) {
        const pace_texts *list = field;

        for (size_t i = 0; i < list->count; i++) {
            fputs(i ? ":" : "", out);
            print_text(out, list->items[i], true);
        }
    } else {
        pace__value_print(row, field, text);
        fputs(text, out);
    }
}

/* Words that say nothing new are not said: what was made before has none of them. */
static bool is_left_out(const pace_option *row, const void *field)
{
    return row->late && pace__value_is_default(row, field);
}

char *pace__options_marked(const pace_option_part *parts, unsigned marks)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const char *before = "";

    for (; out && parts->table; parts++) {
        for (const pace_option *row = parts->table; row->name; row++) {
            const void *field = (const char *)parts->config + row->offset;

            if (!(marks & PACE_MARK_BIT(row->mark)) || is_left_out(row, field))
                continue;
            fprintf(out, "%s%s=", before, row->name);
            print_value(out, row, field);
            before = " ";
        }
    }
    if (out && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* "none" for what has no value; the default in the words of --help, where it has some. NULL when out of memory. */
static char *show_value(const pace_option *row, const void *field)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    if (row->usual && pace__value_is_default(row, field))
        fputs(row->usual, out);
    else
        print_value(out, row, field);
    if (ftell(out) == 0)
        fputs("none", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

void pace__options_compare(const pace_option_part *before, const pace_option_part *now, unsigned marks,
                           pace__difference_fn *differs, void *user)
{
    for (; before->table && before->table == now->table; before++, now++) {
        for (const pace_option *row = before->table; row->name; row++) {
            if (!(marks & PACE_MARK_BIT(row->mark)))
                continue;
            char *was = show_value(row, (const char *)before->config + row->offset),
                 *is = show_value(row, (const char *)now->config + row->offset);

            if (!was || !is || strcmp(was, is) != 0)
                differs(user, row, was ? was : "?", is ? is : "?");
            free(was);
            free(is);
        }
    }
}

/* --- as a command --- */

/* In quotes if a shell needs them. */
static void print_shell_word(FILE *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-,=:";

    if (*text && strspn(text, plain) == strlen(text)) {
        fputs(text, out);
        return;
    }
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
    fputc('\'', out);
}

char *pace__shell_line(const char *before, char *const *words)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fputs(before, out);
    for (; *words; words++) {
        fputc(' ', out);
        print_shell_word(out, *words);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void print_option(FILE *out, const pace_option *row, const char *text)
{
    fprintf(out, " --%s ", row->name);
    print_shell_word(out, text);
}

static void print_row(FILE *out, const pace_option *row, const void *field)
{
    char value[PACE_VALUE_TEXT_MAX];
    const pace_texts *list = field;
    const char *text = NULL;

    switch (row->kind) {
    case PACE_OPT_FLAG:
        if (!pace__value_is_default(row, field))
            fprintf(out, " --%s%s", *(const bool *)field ? "" : "no-", row->name);
        return;
    case PACE_OPT_LIST:
        for (size_t i = 0; i < list->count; i++)
            print_option(out, row, list->items[i]);
        return;
    case PACE_OPT_TEXT:
        text = *(const char *const *)field;
        break;
    default:
        pace__value_print(row, field, value);
        text = value;
    }
    if (text)
        print_option(out, row, text);
}

char *pace__options_command(const char *verb, const pace_texts *arguments, const pace_option_part *parts,
                            unsigned marks)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fprintf(out, "paceline %s", verb);
    for (size_t i = 0; i < arguments->count; i++) {
        fputc(' ', out);
        print_shell_word(out, arguments->items[i]);
    }
    for (; parts->table; parts++) {
        for (const pace_option *row = parts->table; row->name; row++) {
            const void *field = (const char *)parts->config + row->offset;

            if ((marks & PACE_MARK_BIT(row->mark)) && !is_left_out(row, field))
                print_row(out, row, field);
        }
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
