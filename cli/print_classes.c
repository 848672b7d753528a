/* Tables of an evaluation with classes. Names come from files that anybody may have written. */
#include "print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SHOWN    32 /* characters that a table shows of a name */
#define CLASSES_SHOWN 100
#define MATRIX_MAX    20
#define LOWEST_SHOWN  20
#define PAIRS_SHOWN   20

/* --- cells --- */

static bool is_behind_first(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80; /* of a character of several bytes */
}

static int characters(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += !is_behind_first(*text);
    return count;
}

/* Padded to `width` characters; a longer text is cut and ends in "..". */
static void print_name(FILE *out, const char *text, int width)
{
    int count = characters(text), kept = count > width ? width - 2 : count, at = 0;

    for (; *text; text++) {
        at += !is_behind_first(*text);
        if (at > kept)
            break;
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
    }
    fprintf(out, "%s%*s", kept < count ? ".." : "", count < width ? width - count : 0, "");
}

static int name_width(const pace_class_scores *classes)
{
    int width = 5; /* "class" */

    for (uint32_t i = 0; i < classes->classes; i++) {
        int count = characters(classes->names[i]);

        width = count > width ? count : width;
    }
    return width < NAME_SHOWN ? width : NAME_SHOWN;
}

/* --- figures by class --- */

typedef struct ranked {
    double by;
    uint32_t class, other;
} ranked;

static int by_value(const void *left, const void *right)
{
    const ranked *a = left, *b = right;

    if (a->by != b->by)
        return a->by < b->by ? -1 : 1;
    return a->class != b->class ? (a->class < b->class ? -1 : 1)
                                : (a->other > b->other) - (a->other < b->other);
}

static void print_class(FILE *out, const pace_class_scores *classes, uint32_t i, int width)
{
    char count[CLI_TEXT_MAX];

    print_name(out, classes->names[i], width);
    fprintf(out, " %11s  %9.5f  %9.5f  %9.5f\n", cli_count_text(classes->n[i], count), classes->precision[i],
            classes->recall[i], classes->f1[i]);
}

/* Of very many classes only those that the model knows worst. */
static void print_lowest(FILE *out, const pace_class_scores *classes, int width)
{
    ranked *order = malloc(classes->classes * sizeof *order);

    for (uint32_t i = 0; order && i < classes->classes; i++)
        order[i] = (ranked){classes->f1[i], i, 0};
    if (order)
        qsort(order, classes->classes, sizeof *order, by_value);
    for (uint32_t i = 0; order && i < LOWEST_SHOWN; i++)
        print_class(out, classes, order[i].class, width);
    fprintf(out, "(of %u classes those with the lowest F1; --json lists all)\n", classes->classes);
    free(order);
}

static void print_figures(FILE *out, const pace_class_scores *classes)
{
    int width = name_width(classes);

    fprintf(out, "\n%-*s %11s  %9s  %9s  %9s\n", width, "class", "rows", "precision", "recall", "F1");
    if (classes->classes > CLASSES_SHOWN) {
        print_lowest(out, classes, width);
        return;
    }
    for (uint32_t i = 0; i < classes->classes; i++)
        print_class(out, classes, i, width);
}

/* --- what is taken for what --- */

static int digits(uint64_t number)
{
    int count = 1;

    while (number /= 10)
        count++;
    return count;
}

static void print_matrix(FILE *out, const pace_class_scores *classes)
{
    uint32_t n = classes->classes;
    int width = name_width(classes), cell = 2;

    for (size_t i = 0; i < (size_t)n * n; i++)
        cell = digits(classes->confusion[i]) > cell ? digits(classes->confusion[i]) : cell;
    fprintf(out, "\nRows: the class; columns: what it was taken for.\n%*s", width + 3, "");
    for (uint32_t column = 0; column < n; column++)
        fprintf(out, "  %*" PRIu32, cell, column);
    fputc('\n', out);
    for (uint32_t row = 0; row < n; row++) {
        fprintf(out, "%2" PRIu32 " ", row);
        print_name(out, classes->names[row], width);
        for (uint32_t column = 0; column < n; column++)
            fprintf(out, "  %*" PRIu64, cell, classes->confusion[(size_t)row * n + column]);
        fputc('\n', out);
    }
}

/* The pairs that are confused most often. */
static size_t find_pairs(const pace_class_scores *classes, ranked pairs[PAIRS_SHOWN])
{
    uint32_t n = classes->classes;
    size_t found = 0;

    for (uint32_t row = 0; row < n; row++) {
        for (uint32_t column = 0; column < n; column++) {
            ranked pair = {-(double)classes->confusion[(size_t)row * n + column], row, column};
            size_t at = found;

            if (row == column || pair.by == 0)
                continue;
            while (at > 0 && by_value(&pair, &pairs[at - 1]) < 0)
                at--;
            if (at == PAIRS_SHOWN)
                continue;
            found += found < PAIRS_SHOWN;
            memmove(pairs + at + 1, pairs + at, (found - at - 1) * sizeof *pairs);
            pairs[at] = pair;
        }
    }
    return found;
}

static void print_pairs(FILE *out, const pace_class_scores *classes)
{
    ranked pairs[PAIRS_SHOWN];
    size_t count = find_pairs(classes, pairs);
    int width = name_width(classes);

    if (count == 0)
        return;
    fprintf(out, "\nConfused most often:\n");
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%9.0f  ", -pairs[i].by);
        print_name(out, classes->names[pairs[i].class], width);
        fputs("  taken for  ", out);
        cli_print_plain(out, classes->names[pairs[i].other]);
        fputc('\n', out);
    }
}

/* --- mistakes --- */

static void print_mistakes(FILE *out, const pace_eval_result *result)
{
    char count[CLI_TEXT_MAX];
    char **names = result->classes.names;

    if (result->worst_count == 0)
        return;
    fprintf(out, "\n%s taken for another class; the surest mistakes:\n",
            cli_count_text(result->mistakes, count));
    for (size_t i = 0; i < result->worst_count; i++) {
        const pace_mistake *mistake = &result->worst[i];

        fprintf(out, "%9.5f  ", mistake->probability);
        cli_print_plain(out, mistake->path);
        fputs(": ", out);
        cli_print_plain(out, names[mistake->actual]);
        fputs(", taken for ", out);
        cli_print_plain(out, names[mistake->predicted]);
        fputc('\n', out);
    }
}

void cli_print_evaluation(FILE *out, const pace_eval_result *result)
{
    const pace_class_scores *classes = &result->classes;

    cli_print_scores(out, &result->scores);
    if (classes->classes == 0)
        return;
    if (classes->classes == 2)
        cli_print_row(out, "positive class", "%s", classes->names[1]);
    print_figures(out, classes);
    if (classes->confusion && classes->classes <= MATRIX_MAX)
        print_matrix(out, classes);
    else if (classes->confusion)
        print_pairs(out, classes);
    print_mistakes(out, result);
}
