#include "print.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NAME_WIDTH 20

const char *cli_count_text(uint64_t count, char text[CLI_TEXT_MAX])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *walk = text;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *walk++ = ',';
        *walk++ = digits[i];
    }
    *walk = '\0';
    return text;
}

/* Three digits and the first unit that keeps the number below `step`. */
static const char *scaled_text(double value, double step, const char *const *units, char *text)
{
    while (units[1] && fabs(value) >= step * 0.9995) {
        value /= step;
        units++;
    }
    int decimals = fabs(value) >= 99.95 || value == floor(value) ? 0 : fabs(value) >= 9.995 ? 1 : 2;

    snprintf(text, CLI_TEXT_MAX, "%.*f%s", decimals, value, *units);
    return text;
}

const char *cli_short_text(double count, char text[CLI_TEXT_MAX])
{
    static const char *const units[] = {"", " k", " M", " G", " T", NULL};

    return scaled_text(count, 1000, units, text);
}

const char *cli_bytes_text(double bytes, char text[CLI_TEXT_MAX])
{
    static const char *const units[] = {" bytes", " KiB", " MiB", " GiB", " TiB", NULL};

    return scaled_text(bytes, 1024, units, text);
}

const char *cli_seconds_text(double seconds, char text[CLI_TEXT_MAX])
{
    if (seconds < 59.95) {
        snprintf(text, CLI_TEXT_MAX, seconds < 9.995 ? "%.2f s" : "%.1f s", seconds);
        return text;
    }
    uint64_t whole = seconds < 1e15 ? (uint64_t)(seconds + 0.5) : (uint64_t)1e15;

    if (whole < 3600)
        snprintf(text, CLI_TEXT_MAX, "%d:%02d min", (int)(whole / 60), (int)(whole % 60));
    else
        snprintf(text, CLI_TEXT_MAX, "%" PRIu64 ":%02d:%02d h", whole / 3600, (int)(whole / 60 % 60),
                 (int)(whole % 60));
    return text;
}

const char *cli_rate_text(double count, double seconds, const char *unit, char text[CLI_TEXT_MAX])
{
    char number[CLI_TEXT_MAX];

    if (seconds <= 0)
        snprintf(text, CLI_TEXT_MAX, "-");
    else if (strcmp(unit, "bytes") == 0)
        snprintf(text, CLI_TEXT_MAX, "%.40s/s", cli_bytes_text(count / seconds, number));
    else
        snprintf(text, CLI_TEXT_MAX, "%.30s %.24s/s", cli_short_text(count / seconds, number), unit);
    return text;
}

void cli_print_row(FILE *out, const char *name, const char *format, ...)
{
    va_list arguments;

    fprintf(out, "%-*s ", NAME_WIDTH, name);
    va_start(arguments, format);
    vfprintf(out, format, arguments);
    va_end(arguments);
    fputc('\n', out);
}

/* Of more than two classes. */
static void print_class_scores(FILE *out, const pace_scores *scores)
{
    char a[CLI_TEXT_MAX];

    cli_print_row(out, "rows scored", "%s", cli_count_text(scores->n, a));
    cli_print_row(out, "classes", "%s", cli_count_text(scores->classes, a));
    cli_print_row(out, "log-loss", "%.5f (always the mean: %.5f)", scores->logloss, scores->null_logloss);
    cli_print_row(out, "accuracy", "%.5f (always the majority: %.5f)", scores->accuracy,
                  scores->null_accuracy);
    if (scores->classes > 5)
        cli_print_row(out, "top-5 accuracy", "%.5f", scores->top5);
    cli_print_row(out, "precision", "%.5f (mean over the classes)", scores->precision);
    cli_print_row(out, "recall", "%.5f (mean over the classes)", scores->recall);
    cli_print_row(out, "F1", "%.5f (mean over the classes)", scores->f1);
}

void cli_print_scores(FILE *out, const pace_scores *scores)
{
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX];

    if (scores->classes > 2) {
        print_class_scores(out, scores);
        return;
    }

    cli_print_row(out, "rows scored", "%s", cli_count_text(scores->n, a));
    cli_print_row(out, "log-loss", "%.5f (always the mean: %.5f)", scores->logloss, scores->null_logloss);
    if (isnan(scores->auc))
        cli_print_row(out, "AUC", "- (only one class occurs)");
    else
        cli_print_row(out, "AUC", "%.5f", scores->auc);
    cli_print_row(out, "accuracy", "%.5f (always the majority: %.5f)", scores->accuracy,
                  scores->null_accuracy);
    cli_print_row(out, "precision", "%.5f", scores->precision);
    cli_print_row(out, "recall", "%.5f", scores->recall);
    cli_print_row(out, "F1", "%.5f", scores->f1);
    cli_print_row(out, "mean predicted", "%.5f (actual: %.5f)", scores->mean_predicted, scores->mean_actual);
    cli_print_row(out, "positives", "%s found, %s missed", cli_count_text(scores->true_positives, a),
                  cli_count_text(scores->false_negatives, b));
    cli_print_row(out, "negatives", "%s found, %s missed", cli_count_text(scores->true_negatives, a),
                  cli_count_text(scores->false_positives, b));
}

pace_status cli_print_json(cJSON *object, const pace_log *log)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;

    cJSON_Delete(object);
    if (!text)
        return pace_fail(log, PACE_FAILED, "out of memory");
    puts(text);
    cJSON_free(text);
    return PACE_OK;
}

void cli_print_json_text(char *text)
{
    size_t length = strlen(text);

    fputs(text, stdout);
    if (length == 0 || text[length - 1] != '\n')
        putchar('\n');
    free(text);
}

/* ---- a JSON value as an indented listing ---- */

void cli_print_plain(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

static bool begins_with(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);

    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Units stand in the names of members: "bytes_sent", "rss_bytes"; "seconds", "stall_s". */
static bool is_bytes(const char *name)
{
    return strcmp(name, "bytes") == 0 || begins_with(name, "bytes_") || ends_with(name, "_bytes");
}

static bool is_seconds(const char *name)
{
    return (strcmp(name, "seconds") == 0 || ends_with(name, "_s") || ends_with(name, "_seconds")) &&
           !ends_with(name, "_per_s");
}

/* A name may be NULL. Of numbers above a thousand, digits behind the point say nothing. */
static void print_number(FILE *out, const char *name, double number)
{
    char text[CLI_TEXT_MAX];

    if (name && number >= 0 && is_bytes(name))
        fputs(cli_bytes_text(number, text), out);
    else if (name && number >= 0 && is_seconds(name))
        fputs(cli_seconds_text(number, text), out);
    else if ((number == floor(number) || fabs(number) >= 1000) && fabs(number) < 1e15)
        fprintf(out, "%s%s", number < 0 ? "-" : "", cli_count_text((uint64_t)(fabs(number) + 0.5), text));
    else
        fprintf(out, "%.6g", number);
}

static void print_scalar(FILE *out, const cJSON *value)
{
    if (cJSON_IsString(value))
        cli_print_plain(out, value->valuestring[0] ? value->valuestring : "-");
    else if (cJSON_IsNumber(value))
        print_number(out, value->string, value->valuedouble);
    else
        fputs(cJSON_IsTrue(value) ? "yes" : cJSON_IsFalse(value) ? "no" : "-", out);
}

static bool is_nested(const cJSON *value)
{
    return cJSON_IsObject(value) || cJSON_IsArray(value);
}

static bool is_flat(const cJSON *value)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, value)
    {
        if (is_nested(item))
            return false;
    }
    return true;
}

/* "name value, name value" or "value, value"; "-" if there is nothing */
static void print_inline(FILE *out, const cJSON *value)
{
    const cJSON *item;
    const char *between = "";

    if (!value->child)
        fputc('-', out);
    cJSON_ArrayForEach(item, value)
    {
        fputs(between, out);
        if (item->string) {
            cli_print_plain(out, item->string);
            fputc(' ', out);
        }
        print_scalar(out, item);
        between = ", ";
    }
}

static void print_member(FILE *out, const cJSON *item, int indent, int width)
{
    fprintf(out, "%*s", indent, "");
    if (item->string)
        cli_print_plain(out, item->string);
    else
        fputc('-', out);
    int used = item->string ? (int)strlen(item->string) : 1;

    if (!is_nested(item) || !item->child || (is_flat(item) && (cJSON_IsArray(item) || !item->string))) {
        fprintf(out, "%*s", used < width ? width - used + 2 : 2, "");
        if (is_nested(item))
            print_inline(out, item);
        else
            print_scalar(out, item);
        fputc('\n', out);
        return;
    }
    fputc('\n', out);
    cli_print_listing(out, item, indent + 4);
}

void cli_print_listing(FILE *out, const cJSON *value, int indent)
{
    const cJSON *item;
    int width = 0;

    if (!is_nested(value)) {
        fprintf(out, "%*s", indent, "");
        print_scalar(out, value);
        fputc('\n', out);
        return;
    }
    cJSON_ArrayForEach(item, value)
    {
        int length = item->string ? (int)strlen(item->string) : 0;

        width = length > width ? length : width;
    }
    cJSON_ArrayForEach(item, value)
    {
        print_member(out, item, indent, width);
    }
}
