#include "base/locale.h"
#include "options/internal.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* ---- the nearest name ---- */

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Damerau-Levenshtein in its restricted form: a swapped pair counts as one, no part is edited twice. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][PACE_OPTION_NAME_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_length; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;

            row[j] = smallest(last[j] + 1, row[j - 1] + 1, last[j - 1] + change);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                row[j] = smallest(row[j], before[j - 2] + 1, row[j]);
        }
        size_t *spare = before;

        before = last;
        last = row;
        row = spare;
    }
    return last[b_length];
}

/* More edits than this make a different word, not a typo. */
static size_t edits_allowed(size_t length)
{
    return length <= 2 ? 0 : length <= 4 ? 1 : length <= 8 ? 2 : 3;
}

bool pace__nearest_offer(pace__nearest *nearest, const char *candidate)
{
    size_t word_length = strlen(nearest->word), length = strlen(candidate);

    assert(length < PACE_OPTION_NAME_MAX);
    if (word_length >= PACE_OPTION_NAME_MAX)
        return false;
    size_t distance = edit_distance(nearest->word, word_length, candidate, length);

    /* An abbreviation counts as one typo. */
    if (word_length >= 3 && word_length < length && strncmp(nearest->word, candidate, word_length) == 0)
        distance = 1;
    bool close = distance <= edits_allowed(word_length > length ? word_length : length);

    if (!close || (nearest->found && distance >= nearest->distance))
        return false;
    nearest->found = true;
    nearest->distance = distance;
    return true;
}

const char *pace_nearest_name(const char *word, const char *const *names)
{
    pace__nearest nearest = {.word = word};
    const char *best = NULL;

    for (; *names; names++) {
        if (pace__nearest_offer(&nearest, *names))
            best = *names;
    }
    return best;
}

/* ---- the list of --help ---- */

#define HELP_COLUMN 28 /* where the explanations start */
#define HELP_MAX    2048

static const char *argument_name(const pace_option *row)
{
    static const char *const names[] = {
        [PACE_OPT_INT] = "N",     [PACE_OPT_SIZE] = "BYTES",  [PACE_OPT_REAL] = "X",
        [PACE_OPT_TEXT] = "TEXT", [PACE_OPT_CHOICE] = "WORD", [PACE_OPT_LIST] = "TEXT",
    };

    return row->argument ? row->argument : names[row->kind];
}

static int print_left(const pace_option *row, FILE *out)
{
    char letter[] = {'-', row->letter, ',', '\0'};
    const char *shown = row->letter ? letter : "";

    if (row->kind == PACE_OPT_FLAG)
        return fprintf(out, "  %-3s --%s", shown, row->name);
    return fprintf(out, row->implied ? "  %-3s --%s [%s]" : "  %-3s --%s %s", shown, row->name,
                   argument_name(row));
}

/* "a, b, c" of "a|b|c" */
static void join_choices(const char *choices, char *text, size_t size)
{
    char word[PACE_OPTION_NAME_MAX];
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; pace__choice_word(choices, i, word) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", word);
}

/* "on" or nothing for a flag, the text of anything else; NULL: nothing is worth telling. */
static const char *value_text(const pace_option *row, const void *field, char text[PACE_VALUE_TEXT_MAX])
{
    if (row->kind == PACE_OPT_TEXT)
        return *(const char *const *)field;
    if (row->kind == PACE_OPT_LIST)
        return NULL;
    if (row->kind == PACE_OPT_FLAG)
        return *(const bool *)field ? "on" : NULL;
    pace__value_print(row, field, text);
    return text;
}

static const char *default_text(const pace_option *row)
{
    bool on = false;
    char why[PACE_WHY_MAX];

    if (row->usual || row->kind != PACE_OPT_FLAG || !row->fallback)
        return row->usual ? row->usual : row->fallback;
    pace__value_parse(row, row->fallback, &on, why);
    return on ? "on" : NULL;
}

/* What is worth knowing besides the help text: "default 512", "a, b, c; default a", "required". With a field, its
 * value is the default. */
static void describe_value(const pace_option *row, const void *field, char *text, size_t size)
{
    char choices[512] = "", value[PACE_VALUE_TEXT_MAX];
    const char *fallback =
        field && !pace__value_is_default(row, field) ? value_text(row, field, value) : default_text(row);

    if (row->kind == PACE_OPT_CHOICE)
        join_choices(row->choices, choices, sizeof choices);
    if (row->required)
        fallback = "required";
    snprintf(text, size, "%s%s%s%s", choices, choices[0] && fallback ? "; " : "",
             fallback && !row->required ? "default " : "", fallback ? fallback : "");
}

void pace_print_wrapped(const char *text, size_t size, int column, int indent, int columns, FILE *out)
{
    const char *end = text + size, *blanks = " \n";

    for (bool first = true; text < end; first = false) {
        while (text < end && strchr(blanks, *text))
            text++;
        const char *word = text;

        while (text < end && !strchr(blanks, *text))
            text++;
        int length = (int)(text - word);

        if (length > 0 && !first && column + 1 + length > columns) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        if (length > 0)
            column += fprintf(out, "%s%.*s", first ? "" : " ", length, word);
    }
    fputc('\n', out);
}

static void print_row(const pace_option *row, const void *field, int columns, FILE *out)
{
    char value[768], text[HELP_MAX];
    int column = print_left(row, out);

    describe_value(row, field, value, sizeof value);
    snprintf(text, sizeof text, "%s%s%s%s", row->help ? row->help : "", value[0] ? " (" : "", value,
             value[0] ? ")" : "");
    if (column >= HELP_COLUMN - 1) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", HELP_COLUMN - column, "");
    pace_print_wrapped(text, strlen(text), HELP_COLUMN, HELP_COLUMN, columns, out);
}

static void print_table(const pace_option *table, const char *config, int columns, FILE *out)
{
    const char *group = table->group;

    if (!group)
        group = "Options";
    if (*group)
        fprintf(out, "%s:\n", group);
    for (; table->name; table++) {
        if (table->group && strcmp(group, table->group) != 0) {
            group = table->group;
            fprintf(out, *group ? "\n%s:\n" : "%s\n", group);
        }
        print_row(table, config ? config + table->offset : NULL, columns, out);
    }
}

void pace_options_print_help(const pace_option *table, int columns, FILE *out)
{
    PACE__C_LOCALE();
    print_table(table, NULL, columns, out);
}

void pace_options_print_values(const pace_option_part *part, bool changed, int columns, FILE *out)
{
    PACE__C_LOCALE();
    const char *config = part->config;

    if (!changed)
        print_table(part->table, config, columns, out);
    for (const pace_option *row = part->table; changed && row->name; row++) {
        if (!pace__value_is_default(row, config + row->offset))
            print_row(row, config + row->offset, columns, out);
    }
}
