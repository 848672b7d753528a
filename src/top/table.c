/* A line per role, with as many columns as there is room for. */
#include "top/screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef const char *cell_fn(const pace__view *view, const pace__role_view *role,
                            char text[PACE__AMOUNT_TEXT]);

typedef struct column {
    const char *title;
    int width;
    int rank; /* 0: always there; else those of a lower rank come first, all of one rank together */
    bool to_the_right;
    cell_fn *cell;
} column;

/* --- cells --- */

static const char *rows_cell(const pace__view *view, const pace__role_view *role,
                             char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_count(role->newest.rows > 0 ? role->rows_per_s : NAN, text);
}

static const char *share_cell(const pace__view *view, const pace__role_view *role,
                              char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_percent(role->row_share, text);
}

static const char *cpu_cell(const pace__view *view, const pace__role_view *role, char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_percent(role->cores, text);
}

static const char *memory_cell(const pace__view *view, const pace__role_view *role,
                               char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_bytes(role->newest.rss_bytes > 0 ? role->newest.rss_bytes : NAN, text);
}

static const char *net_cell(const pace__view *view, const pace__role_view *role, char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_bytes(role->sent_per_s + role->received_per_s, text);
}

static const char *sent_cell(const pace__view *view, const pace__role_view *role,
                             char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_bytes(role->sent_per_s, text);
}

static const char *received_cell(const pace__view *view, const pace__role_view *role,
                                 char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_bytes(role->received_per_s, text);
}

static const char *wait_cell(const pace__view *view, const pace__role_view *role,
                             char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_percent(role->wait, text);
}

static const char *whom_cell(const pace__view *view, const pace__role_view *role,
                             char text[PACE__AMOUNT_TEXT])
{
    if (role->is_known && role->is_silent && view->standing == PACE__STANDS_RUNNING)
        snprintf(text, PACE__AMOUNT_TEXT, "silent");
    else
        snprintf(text, PACE__AMOUNT_TEXT, "%s",
                 role->waits_for >= 0 ? view->roles[role->waits_for].name : "");
    return text;
}

static const char *data_cell(const pace__view *view, const pace__role_view *role,
                             char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_percent(role->data, text);
}

static const char *compute_cell(const pace__view *view, const pace__role_view *role,
                                char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_percent(role->compute, text);
}

static const char *exchange_cell(const pace__view *view, const pace__role_view *role,
                                 char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_percent(role->communicate, text);
}

static const char *still_cell(const pace__view *view, const pace__role_view *role,
                              char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_percent(role->still, text);
}

static const char *read_cell(const pace__view *view, const pace__role_view *role,
                             char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_bytes(role->disk_read_per_s, text);
}

static const char *write_cell(const pace__view *view, const pace__role_view *role,
                              char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_bytes(role->disk_write_per_s, text);
}

static const char *queue_cell(const pace__view *view, const pace__role_view *role,
                              char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_count(role->queue, text);
}

static const char *stale_cell(const pace__view *view, const pace__role_view *role,
                              char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    return pace__text_count(role->staleness, text);
}

/* The last, and as wide as is left: a name of any length. */
static const char *host_cell(const pace__view *view, const pace__role_view *role,
                             char text[PACE__AMOUNT_TEXT])
{
    (void)view;
    (void)text;
    return role->host;
}

/* --- which columns --- */

#define GAP       1
#define HOST      16
#define WHOM      9
#define RANKS_MAX 6
#define NET       4 /* which gives way to the two behind it */

/* In the order in which they stand. */
static const column columns[] = {
    {"rows/s", 6, 0, true, rows_cell},     {"share", 5, 0, true, share_cell},
    {"CPU", 5, 0, true, cpu_cell},         {"memory", 7, 0, true, memory_cell},
    {"net/s", 7, 0, true, net_cell},       {"sent/s", 7, 1, true, sent_cell},
    {"recv/s", 7, 1, true, received_cell}, {"disk r/s", 8, 5, true, read_cell},
    {"disk w/s", 8, 5, true, write_cell},  {"data", 5, 2, true, data_cell},
    {"compute", 7, 2, true, compute_cell}, {"exchange", 8, 3, true, exchange_cell},
    {"still", 5, 3, true, still_cell},     {"wait", 4, 0, true, wait_cell},
    {"for", WHOM, 0, false, whom_cell},    {"queue", 5, 4, true, queue_cell},
    {"stale", 5, 4, true, stale_cell},     {"host", HOST, 6, false, host_cell},
};

#define COLUMNS (sizeof columns / sizeof *columns)

typedef struct layout {
    bool is_shown[COLUMNS];
    int role_width;
} layout;

static int width_of(const layout *plan)
{
    int width = plan->role_width;

    for (size_t i = 0; i < COLUMNS; i++)
        width += plan->is_shown[i] ? GAP + columns[i].width : 0;
    return width;
}

static layout with_rank(layout plan, int rank)
{
    for (size_t i = 0; i < COLUMNS; i++)
        plan.is_shown[i] |= columns[i].rank == rank;
    if (rank == 1)
        plan.is_shown[NET] = false;
    return plan;
}

static layout plan_layout(const pace__view *view, int width)
{
    layout plan = {.role_width = 5};

    for (size_t i = 0; i < view->role_count; i++) {
        int length = (int)strlen(view->roles[i].name);

        plan.role_width = length > plan.role_width ? length : plan.role_width;
    }
    plan = with_rank(plan, 0);
    for (int rank = 1; rank <= RANKS_MAX; rank++) {
        layout wider = with_rank(plan, rank);

        if (width_of(&wider) > width)
            break;
        plan = wider;
    }
    return plan;
}

/* --- lines --- */

static pace__line begin_line(const pace_top_size *size)
{
    return (pace__line){.columns_max = size->columns, .is_utf8 = size->utf8};
}

static void draw_heading(pace__screen *screen, const layout *plan, const pace_top_size *size)
{
    pace__line line = begin_line(size);

    pace__line_cell(&line, "role", plan->role_width, false);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!plan->is_shown[i])
            continue;
        pace__line_put(&line, " ");
        pace__line_cell(&line, columns[i].title, columns[i].width, columns[i].to_the_right);
    }
    pace__screen_add(screen, line.text, PACE_TOP_HEADING);
}

static void draw_role(pace__screen *screen, const layout *plan, const pace__view *view,
                      const pace__role_view *role, const pace_top_size *size)
{
    pace__line line = begin_line(size);
    char text[PACE__AMOUNT_TEXT];

    pace__line_cell(&line, role->name, plan->role_width, false);
    for (size_t i = 0; i < COLUMNS && role->is_known; i++) {
        if (!plan->is_shown[i])
            continue;
        pace__line_put(&line, " ");
        pace__line_cell(&line, columns[i].cell(view, role, text), columns[i].width, columns[i].to_the_right);
    }
    if (!role->is_known)
        pace__line_put(&line, "  has not reported yet");
    pace__screen_add(screen, line.text, role->is_known ? PACE_TOP_PLAIN : PACE_TOP_FAINT);
}

void pace__table_draw(pace__screen *screen, const pace__view *view, const pace_top_size *size, size_t first,
                      size_t count)
{
    layout plan = plan_layout(view, size->columns);

    draw_heading(screen, &plan, size);
    for (size_t i = first; i < first + count && i < view->role_count; i++)
        draw_role(screen, &plan, view, &view->roles[i], size);
}
