#include "top/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_AT_FIRST 32
#define TEXT_BYTES     1024
#define ROLES_FIRST    6 /* invariant 2 */

void pace__screen_add(pace__screen *screen, const char *text, pace_top_style style)
{
    if (screen->count == screen->capacity) {
        size_t larger = screen->capacity ? 2 * screen->capacity : LINES_AT_FIRST;
        pace_top_line *lines = realloc(screen->lines, larger * sizeof *lines);

        if (!lines) {
            screen->failed = true;
            return;
        }
        screen->lines = lines;
        screen->capacity = larger;
    }
    size_t bytes = strlen(text);

    while (bytes > 0 && text[bytes - 1] == ' ') /* nobody sees them, and who copies lines would have them */
        bytes--;
    char *copy = strndup(text, bytes);

    if (copy)
        screen->lines[screen->count++] = (pace_top_line){copy, style};
    else
        screen->failed = true;
}

/* To the first `count` lines. */
static void cut(pace__screen *screen, size_t count)
{
    while (screen->count > count)
        free(screen->lines[--screen->count].text);
}

void pace__screen_release(pace__screen *screen)
{
    cut(screen, 0);
    free(screen->lines);
    *screen = (pace__screen){0};
}

void pace__screen_wrap(pace__screen *screen, const char *text, const pace_top_size *size,
                       pace_top_style style)
{
    while (*text) {
        size_t bytes = pace__text_wrap(text, size->columns, size->utf8);
        pace__line line = {.columns_max = size->columns, .is_utf8 = size->utf8};

        pace__line_format(&line, "%.*s", (int)bytes, text);
        pace__screen_add(screen, line.text, style);
        text += bytes;
        text += strspn(text, " ");
    }
}

/* --- below the table --- */

static void draw_verdict(pace__screen *screen, const pace__verdict *verdict, const pace_top_size *size)
{
    char text[2 * PACE__VERDICT_TEXT];

    pace__verdict_line(verdict, text);
    if (!text[0])
        return;
    pace__screen_wrap(screen, text, size, PACE_TOP_PLAIN);
    if (!verdict->advice[0])
        return;
    char advice[2 * PACE__VERDICT_TEXT];

    snprintf(advice, sizeof advice, "What would help: %s", verdict->advice);
    pace__screen_wrap(screen, advice, size, PACE_TOP_PLAIN);
}

static void draw_foot(pace__screen *screen, const pace__view *view, const pace__screen_news *news,
                      const pace_top_size *size)
{
    draw_verdict(screen, &view->verdict, size);
    if (news->is_gone) { /* so is all else that could be said to be missing */
        pace__screen_wrap(screen, "The run directory is gone: this is what was last seen of it", size,
                          PACE_TOP_BAD);
        return;
    }
    for (size_t i = 0; i < PACE__HISTORY_LACKS_MAX && view->history->lacks[i]; i++) {
        char text[TEXT_BYTES];

        snprintf(text, sizeof text, "Missing: %s", view->history->lacks[i]);
        pace__screen_wrap(screen, text, size, PACE_TOP_BAD);
    }
}

/* --- all of it --- */

/* Which roles are shown: [first, first + count). */
typedef struct stretch {
    size_t first, count;
} stretch;

/* Of the words below, what leaves room for the first roles, their heading, what is said of the others, and blank lines. */
static void shorten_foot(pace__screen *foot, size_t head, size_t roles, const pace_top_size *size)
{
    size_t wanted = head + 4 + (roles < ROLES_FIRST ? roles : ROLES_FIRST), rows = (size_t)size->rows;

    if (size->rows > 0 && roles > 0 && wanted + foot->count > rows)
        cut(foot, rows > wanted ? rows - wanted : 0);
}

/* `taken` lines are above and below, blank ones included; the line that tells of the others is one more. */
static stretch choose_roles(size_t roles, size_t taken, const pace_top_size *size)
{
    size_t rows = size->rows > 0 ? (size_t)size->rows : SIZE_MAX,
           first = size->first > 0 ? (size_t)size->first : 0;

    if (rows == SIZE_MAX || taken + roles <= rows)
        return (stretch){0, roles};
    size_t count = rows > taken + 2 ? rows - taken - 1 : 1;

    return (stretch){first + count > roles ? roles - count : first, count};
}

static void tell_of_others(pace__screen *screen, const stretch *shown, size_t roles,
                           const pace_top_size *size)
{
    pace__line line = {.columns_max = size->columns, .is_utf8 = size->utf8};

    if (shown->count >= roles)
        return;
    pace__line_format(&line, "roles %zu to %zu of %zu: up and down show others", shown->first + 1,
                      shown->first + shown->count, roles);
    pace__screen_add(screen, line.text, PACE_TOP_FAINT);
}

static void draw(pace__screen *screen, const pace__view *view, const pace__screen_news *news,
                 const pace_top_size *size)
{
    pace__screen foot = {0};

    draw_foot(&foot, view, news, size);
    pace__head_draw(screen, view, news, size);
    shorten_foot(&foot, screen->count, view->role_count, size);
    if (view->role_count > 0) {
        size_t taken = screen->count + 2 + (foot.count ? foot.count + 1 : 0);
        stretch shown = choose_roles(view->role_count, taken, size);

        pace__screen_add(screen, "", PACE_TOP_PLAIN);
        screen->first = shown.first;
        pace__table_draw(screen, view, size, shown.first, shown.count);
        tell_of_others(screen, &shown, view->role_count, size);
    }
    if (foot.count)
        pace__screen_add(screen, "", PACE_TOP_PLAIN);
    for (size_t i = 0; i < foot.count; i++)
        pace__screen_add(screen, foot.lines[i].text, foot.lines[i].style);
    screen->failed |= foot.failed;
    pace__screen_release(&foot);
    if (size->rows > 0)
        cut(screen, (size_t)size->rows);
}

static int within(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

void pace__screen_draw(pace__screen *screen, const pace__view *view, const pace__screen_news *news,
                       const pace_top_size *size)
{
    pace_top_size bounded = *size;

    bounded.columns = within(size->columns, PACE_TOP_COLUMNS_MIN, PACE_TOP_COLUMNS_MAX);
    cut(screen, 0);
    screen->failed = false;
    draw(screen, view, news, &bounded);
}
