#include "progress.h"

#include "print.h"

#include <string.h>

#define LIVE_PERIOD_S    0.1
#define PLAIN_PERIOD_S   10.0
#define PLAIN_FIRST_S    1.0
#define PHASE_WORTH_S    2.0 /* shorter phases leave no line */
#define RATE_PERIOD_S    0.1
#define RATE_SMOOTHING_S 4.0
#define BAR_WIDTH        20
#define BAR_COLUMNS_MIN  80 /* narrower terminals get no bar */

void cli_progress_init(cli_progress *progress, cli_console *console)
{
    memset(progress, 0, sizeof *progress);
    progress->console = console;
}

/* ---- reading a record ---- */

static double number_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    if (!field || field->type == PACE_FIELD_TEXT)
        return 0;
    return field->type == PACE_FIELD_INT ? (double)field->value.integer : field->value.real;
}

static const char *text_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field && field->type == PACE_FIELD_TEXT ? field->value.text : "";
}

static bool is_standard_field(const char *name)
{
    return strcmp(name, "phase") == 0 || strcmp(name, "done") == 0 || strcmp(name, "total") == 0 ||
           strcmp(name, "unit") == 0 || strcmp(name, "still_s") == 0 || strcmp(name, "before") == 0;
}

/* "loss 0.4512, epoch 2" */
static void read_extra(const pace_record *record, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < record->count && used < size; i++) {
        const pace_field *field = &record->fields[i];
        const char *between = used ? ", " : "";

        if (is_standard_field(field->name))
            continue;
        if (field->type == PACE_FIELD_TEXT)
            used += (size_t)snprintf(text + used, size - used, "%s%s %s", between, field->name,
                                     field->value.text);
        else if (field->type == PACE_FIELD_INT)
            used += (size_t)snprintf(text + used, size - used, "%s%s %lld", between, field->name,
                                     (long long)field->value.integer);
        else
            used += (size_t)snprintf(text + used, size - used, "%s%s %.4g", between, field->name,
                                     field->value.real);
    }
}

static cli_phase *find_phase(cli_progress *progress, const char *name)
{
    for (int i = 0; i < progress->phase_count; i++) {
        if (strncmp(progress->phases[i].name, name, sizeof progress->phases[i].name - 1) == 0)
            return &progress->phases[i];
    }
    if (progress->phase_count == CLI_PHASES_MAX)
        return NULL;
    cli_phase *phase = &progress->phases[progress->phase_count++];

    *phase = (cli_phase){.complete = true}; /* so that its first record starts it */
    snprintf(phase->name, sizeof phase->name, "%s", name);
    return phase;
}

static void start_phase(cli_phase *phase, double seconds, double done, double still_s)
{
    phase->start_s = phase->measured_s = seconds;
    phase->still_s = still_s;
    phase->first = phase->measured = done;
    phase->rate = phase->rate_s = 0;
    phase->measurements = 0;
    phase->complete = false;
}

static void update_phase(cli_phase *phase, const pace_record *record)
{
    double done = number_of(record, "done"), still_s = number_of(record, "still_s");

    /* A phase that is told again from an earlier point is a new pass. */
    if (phase->complete ? done < phase->done || phase->last_s == 0 : done < phase->measured)
        start_phase(phase, record->seconds, done, still_s);
    snprintf(phase->unit, sizeof phase->unit, "%s", text_of(record, "unit"));
    read_extra(record, phase->extra, sizeof phase->extra);
    phase->done = done;
    phase->total = number_of(record, "total");
    phase->before = number_of(record, "before");
    phase->last_s = record->seconds;
    double elapsed = record->seconds - phase->measured_s - (still_s - phase->still_s);

    if (elapsed < RATE_PERIOD_S || done == phase->measured)
        return;
    /* The first rows also waited for all that had to get going: they count until there are others. */
    double keep = phase->measurements++ == 1 ? 0 : RATE_SMOOTHING_S / (elapsed + RATE_SMOOTHING_S);

    phase->rate_s = keep * phase->rate_s + elapsed;
    phase->rate += elapsed / phase->rate_s * ((done - phase->measured) / elapsed - phase->rate);
    phase->measured_s = record->seconds;
    phase->measured = done;
    phase->still_s = still_s;
}

/* Training begins anew, perhaps further on than where it was last seen: what is told from here on is another pass. */
static void forget_phases(cli_progress *progress)
{
    for (int i = 0; i < progress->phase_count; i++) {
        progress->phases[i].complete = true;
        progress->phases[i].last_s = 0;
    }
    progress->current = NULL;
}

/* ---- showing it ---- */

static const char *amount_text(const cli_phase *phase, double amount, char text[CLI_TEXT_MAX])
{
    return strcmp(phase->unit, "bytes") == 0 ? cli_bytes_text(amount, text) : cli_short_text(amount, text);
}

/* An estimate: no fractions of seconds. */
static const char *time_left_text(double seconds, char text[CLI_TEXT_MAX])
{
    if (seconds >= 59.5)
        return cli_seconds_text(seconds, text);
    snprintf(text, CLI_TEXT_MAX, "%.0f s", seconds < 1 ? 1 : seconds);
    return text;
}

static void draw_bar(double fraction, char bar[BAR_WIDTH + 4])
{
    int filled = (int)(fraction * BAR_WIDTH);

    memset(bar, ' ', BAR_WIDTH + 3);
    bar[0] = '[';
    memset(bar + 1, '=', (size_t)filled);
    bar[BAR_WIDTH + 1] = ']';
    bar[BAR_WIDTH + 3] = '\0';
}

/* Parts of a line besides the name, in the order in which they go when there is no room for them; the share and what is
 * left stay. */
enum { WITH_BAR = 1, WITH_EXTRA = 2, WITH_RATE = 4, WITH_AMOUNT = 8, WITH_ALL = 15 };

/* "[====    ]  42 %" */
static void add_share(const cli_phase *phase, bool with_bar, char *line)
{
    char bar[BAR_WIDTH + 4] = "";
    double fraction = phase->done < phase->total ? phase->done / phase->total : 1;

    if (phase->total <= 0)
        return;
    if (with_bar)
        draw_bar(fraction, bar);
    snprintf(line + strlen(line), CLI_LINE_MAX - strlen(line), "  %s%3d %%", bar, (int)(100 * fraction));
}

/* "1.20 M of 3 M rows" */
static void add_amount(const cli_phase *phase, char *line)
{
    char done[CLI_TEXT_MAX], total[CLI_TEXT_MAX] = "";
    bool is_bytes = strcmp(phase->unit, "bytes") == 0, known = phase->total > 0;

    snprintf(line + strlen(line), CLI_LINE_MAX - strlen(line), "  %s%s%s%s%s",
             amount_text(phase, phase->done, done), known ? " of " : "",
             known ? amount_text(phase, phase->total, total) : "", is_bytes ? "" : " ",
             is_bytes ? "" : phase->unit);
}

/* "parse  [====    ]  42 %  1.20 M of 3 M rows  310 k rows/s  6 s left  loss 0.45" */
static void format_phase(const cli_phase *phase, unsigned with, char line[CLI_LINE_MAX])
{
    char text[CLI_TEXT_MAX];

    snprintf(line, CLI_LINE_MAX, "%s", phase->name);
    add_share(phase, with & WITH_BAR, line);
    if (with & WITH_AMOUNT)
        add_amount(phase, line);
    if ((with & WITH_RATE) && phase->rate > 0)
        snprintf(line + strlen(line), CLI_LINE_MAX - strlen(line), "  %s",
                 cli_rate_text(phase->rate, 1, phase->unit, text));
    if (phase->total > 0 && phase->rate > 0)
        snprintf(line + strlen(line), CLI_LINE_MAX - strlen(line), "  %s left",
                 time_left_text((phase->total - phase->done) / phase->rate, text));
    if ((with & WITH_EXTRA) && phase->extra[0])
        snprintf(line + strlen(line), CLI_LINE_MAX - strlen(line), "  %s", phase->extra);
}

void cli_progress_line(const cli_phase *phase, int columns, char line[CLI_LINE_MAX])
{
    unsigned with = columns >= BAR_COLUMNS_MIN ? WITH_ALL : WITH_ALL - WITH_BAR;

    /* A full line would wrap and could not be erased. */
    for (format_phase(phase, with, line); with && (int)strlen(line) >= columns;) {
        with &= with - 1;
        format_phase(phase, with, line);
    }
    if (columns > 1 && columns <= CLI_LINE_MAX)
        line[columns - 1] = '\0';
}

static void show_live(cli_progress *progress, const cli_phase *phase)
{
    char line[CLI_LINE_MAX];

    cli_progress_line(phase, cli_console_width(), line);
    cli_console_live(progress->console, line);
}

static void show_plain(cli_progress *progress, const cli_phase *phase)
{
    char line[CLI_LINE_MAX];

    format_phase(phase, WITH_ALL - WITH_BAR, line);
    cli_console_line(progress->console, line);
}

/* Since the phase began, if nothing was shown of it yet. */
static bool is_time(const cli_progress *progress, const cli_phase *phase, double seconds)
{
    if (progress->console->terminal)
        return seconds - progress->shown_s >= LIVE_PERIOD_S;
    return seconds - progress->shown_s >= PLAIN_PERIOD_S ||
           (!phase->shown && seconds - phase->start_s >= PLAIN_FIRST_S);
}

static const char *whole_amount_text(const cli_phase *phase, double amount, char text[CLI_TEXT_MAX])
{
    return strcmp(phase->unit, "bytes") == 0 ? cli_bytes_text(amount, text)
                                             : cli_count_text((uint64_t)amount, text);
}

void cli_progress_sum(const cli_phase *phase, char line[CLI_LINE_MAX])
{
    char now[CLI_TEXT_MAX], all[CLI_TEXT_MAX] = "", time[CLI_TEXT_MAX], rate[CLI_TEXT_MAX];
    double seconds = phase->last_s - phase->start_s;
    bool is_bytes = strcmp(phase->unit, "bytes") == 0, resumed = phase->before > 0;

    snprintf(line, CLI_LINE_MAX, "%s  %s%s%s%s%s in %s, %s%s%s", phase->name,
             whole_amount_text(phase, phase->done - phase->before, now), resumed ? " of " : "",
             resumed ? whole_amount_text(phase, phase->done, all) : "", is_bytes ? "" : " ",
             is_bytes ? "" : phase->unit, cli_seconds_text(seconds, time),
             cli_rate_text(phase->done - phase->first, seconds, phase->unit, rate),
             phase->extra[0] ? "  " : "", phase->extra);
}

static void complete_phase(cli_progress *progress, cli_phase *phase)
{
    char line[CLI_LINE_MAX];

    phase->complete = true;
    cli_console_live(progress->console, "");
    if (phase->last_s - phase->start_s < PHASE_WORTH_S)
        return;
    cli_progress_sum(phase, line);
    cli_console_line(progress->console, line);
}

void cli_progress_record(void *user, const pace_record *record)
{
    cli_progress *progress = user;

    if (strcmp(record->kind, "start") == 0)
        forget_phases(progress);
    if (progress->console->quiet || strcmp(record->kind, "progress") != 0)
        return;
    cli_phase *phase = find_phase(progress, text_of(record, "phase"));

    if (!phase)
        return;
    /* A phase of unknown length is over when the next one begins; others may alternate, like training and
     * scoring. */
    if (progress->current && progress->current != phase && !progress->current->complete &&
        progress->current->total == 0)
        complete_phase(progress, progress->current);
    progress->current = phase;
    update_phase(phase, record);
    if (!phase->complete && phase->total > 0 && phase->done >= phase->total) {
        complete_phase(progress, phase);
    } else if (!phase->complete && is_time(progress, phase, record->seconds)) {
        progress->shown_s = record->seconds;
        phase->shown = true;
        if (progress->console->terminal)
            show_live(progress, phase);
        else
            show_plain(progress, phase);
    }
}

void cli_progress_end(cli_progress *progress, bool success)
{
    if (success && progress->current && !progress->current->complete)
        complete_phase(progress, progress->current);
    cli_console_live(progress->console, "");
}
