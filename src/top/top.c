#include "base/clock.h"
#include "base/json.h"
#include "base/locale.h"
#include "files/file.h"
#include "run/rundir.h"
#include "top/screen.h"

#include <math.h>
#include <stdlib.h>

const pace_option pace_top_options[] = {
    {"once", 0, PACE_OPT_FLAG, offsetof(pace_top_config, once), "false", NULL,
     "print the screen once, as in a pipe, instead of showing it until q is pressed", .group = ""},
    {0},
};

struct pace_top {
    pace__history *history;
    pace__screen screen;
    uint64_t changed_ns; /* when an update last brought something; 0: none has yet */
    bool is_gone;
};

pace_status pace_top_open(const char *run, const pace_log *log, pace_top **top)
{
    PACE__C_LOCALE();
    pace_top *made = calloc(1, sizeof *made);

    if (!made)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = pace__history_open(run, log, &made->history);

    if (status) {
        free(made);
        return status;
    }
    made->changed_ns = pace__now_ns();
    *top = made;
    return PACE_OK;
}

void pace_top_close(pace_top *top)
{
    PACE__C_LOCALE();
    if (!top)
        return;
    pace__screen_release(&top->screen);
    pace__history_close(top->history);
    free(top);
}

/* What a directory that is gone had told stays on the screen. */
void pace_top_update(pace_top *top)
{
    PACE__C_LOCALE();
    top->is_gone = !pace__run_exists(top->history->path);
    if (!top->is_gone && pace__history_update(top->history))
        top->changed_ns = pace__now_ns();
}

const pace_top_line *pace_top_draw(pace_top *top, const pace_top_size *size, size_t *count)
{
    PACE__C_LOCALE();
    pace__screen_news news = {.quiet_s = pace__seconds_since(top->changed_ns), .is_gone = top->is_gone};
    pace__view view;

    if (!pace__view_make(top->history, &view))
        return NULL;
    pace__screen_draw(&top->screen, &view, &news, size);
    pace__view_release(&view);
    *count = top->screen.count;
    return top->screen.failed ? NULL : top->screen.lines;
}

int pace_top_first(const pace_top *top)
{
    PACE__C_LOCALE();
    return (int)top->screen.first;
}

char *pace_top_json(pace_top *top)
{
    PACE__C_LOCALE();
    pace__view view;
    pace__json json = {0};

    if (!pace__view_make(top->history, &view))
        return NULL;
    pace__view_put(&json, &view);
    char *text = malloc(json.size + 1);

    if (text) {
        json = (pace__json){.text = text, .capacity = json.size};
        pace__view_put(&json, &view);
        text[json.size] = '\0';
    }
    pace__view_release(&view);
    return text;
}
