#include "print_profile.h"

#include "print.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* Of a group; profile/ops.json has all of them. */
#define ROWS_MAX 40

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(member) ? member->valuedouble : 0;
}

static const char *text_of(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text ? text : "";
}

/* --- operations --- */

typedef struct widths {
    int op, shape;
} widths;

static int longest(int width, const char *text)
{
    int length = (int)strlen(text);

    return length > width ? length : width;
}

static widths measure(const cJSON *ops)
{
    widths found = {(int)strlen("op"), (int)strlen("shape")};
    const cJSON *op;

    cJSON_ArrayForEach(op, ops)
    {
        found.op = longest(found.op, text_of(op, "op"));
        found.shape = longest(found.shape, text_of(op, "shape"));
    }
    return found;
}

/* "12.3 GFLOP/s", "4.5 GB/s" or nothing. */
static const char *rate_text(const cJSON *op, char text[CLI_TEXT_MAX])
{
    double gflops = number_of(op, "gflops"), gbytes = number_of(op, "gbytes_s");

    text[0] = '\0';
    if (gflops > 0)
        snprintf(text, CLI_TEXT_MAX, "%.3g GFLOP/s", gflops);
    else if (gbytes > 0)
        snprintf(text, CLI_TEXT_MAX, "%.3g GB/s", gbytes);
    return text;
}

static const char *part_text(double part, char text[CLI_TEXT_MAX])
{
    text[0] = '\0';
    if (part > 0)
        snprintf(text, CLI_TEXT_MAX, part < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * part);
    return text;
}

static void print_op(FILE *out, const cJSON *op, widths width)
{
    char calls[CLI_TEXT_MAX] = "", rate[CLI_TEXT_MAX], peak[CLI_TEXT_MAX];
    double count = number_of(op, "calls");

    if (count > 0)
        cli_count_text((uint64_t)count, calls);
    fprintf(out, "  %-*s  %-*s  %9s  %10.3f  %5.1f %%  %13s  %6s\n", width.op, text_of(op, "op"), width.shape,
            text_of(op, "shape"), calls, 1e3 * number_of(op, "total_s"), 100 * number_of(op, "share"),
            rate_text(op, rate), part_text(number_of(op, "of_peak"), peak));
}

static void print_group(FILE *out, const cJSON *group)
{
    const cJSON *ops = cJSON_GetObjectItemCaseSensitive(group, "ops"), *op;
    double threads = number_of(group, "threads"), dropped = number_of(group, "dropped_spans"),
           refused = number_of(group, "refused_threads");
    widths width = measure(ops);
    int row = 0, count = cJSON_GetArraySize(ops);

    fprintf(out, "\n%s: %.0f thread%s, %.3f s recorded\n", text_of(group, "group"), threads,
            threads == 1 ? "" : "s", number_of(group, "recorded_s"));
    fprintf(out, "  %-*s  %-*s  %9s  %10s  %7s  %13s  %6s\n", width.op, "op", width.shape, "shape", "calls",
            "total ms", "share", "rate", "of peak");
    cJSON_ArrayForEach(op, ops)
    {
        if (row++ < ROWS_MAX || row == count) /* the last is what is in no span */
            print_op(out, op, width);
    }
    if (count > ROWS_MAX + 1)
        fprintf(out, "  (%d more are in profile/ops.json)\n", count - ROWS_MAX - 1);
    if (dropped > 0)
        fprintf(out, "  %.0f spans were dropped: their threads had no room left, and are known up to then\n",
                dropped);
    if (refused > 0)
        fprintf(out, "  %.0f threads were not recorded\n", refused);
}

/* --- all of it --- */

static void print_head(FILE *out, const cJSON *profile)
{
    double gflops = number_of(profile, "peak_gflops"), gbytes = number_of(profile, "peak_gbytes_s");

    double first = number_of(profile, "first_step"), end = number_of(profile, "end_step");

    if (end > first)
        fprintf(out, "\nprofile of steps %.0f to %.0f", first, end - 1);
    else
        fprintf(out, "\nprofile of no step: none was left");
    if (gflops > 0 && gbytes > 0)
        fprintf(out, "; one core of this machine, measured: %.4g GFLOP/s (f32), %.3g GB/s from memory",
                gflops, gbytes);
    fputc('\n', out);
}

static void print_clocks(FILE *out, const cJSON *profile)
{
    const cJSON *clock, *worst = NULL;

    cJSON_ArrayForEach(clock, cJSON_GetObjectItemCaseSensitive(profile, "clocks"))
    {
        if (!worst || number_of(clock, "error_s") > number_of(worst, "error_s"))
            worst = clock;
    }
    if (worst && number_of(worst, "error_s") > 0)
        fprintf(out, "clocks were set beside the chief's to within %.1f us (%s is the worst known)\n",
                1e6 * number_of(worst, "error_s"), text_of(worst, "role"));
}

void cli_print_profile(FILE *out, const char *run, const char *json)
{
    cJSON *profile = cJSON_Parse(json);
    const cJSON *group;

    if (profile)
        print_head(out, profile);
    cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(profile, "groups")) print_group(out, group);
    if (profile) {
        fputs("\nshare: of the time of the threads of its kind, without what is inside in spans of its own; "
              "rates are "
              "those of one thread\n",
              out);
        print_clocks(out, profile);
        cli_print_row(out, "trace", "%s/profile/trace.json.gz (for ui.perfetto.dev or chrome://tracing)",
                      run);
    }
    cJSON_Delete(profile);
}
