#include "screen.h"

#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REFRESH_MS    1000
#define COLUMNS_USUAL 80

/* All that a signal handler can reach. */
static volatile sig_atomic_t ended_by;

static void note_signal(int signal_number)
{
    ended_by = signal_number;
}

/* Without SA_RESTART: whoever waits for a key is woken up. */
static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = {.sa_handler = note_signal}, before;

        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

bool cli_screen_speaks_utf8(void)
{
    setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int cli_screen_columns(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return columns && atoi(columns) > 0 ? atoi(columns) : COLUMNS_USUAL;
}

/* --- drawing --- */

static void prepare_styles(void)
{
    if (!has_colors())
        return;
    start_color();
    use_default_colors();
    init_pair(PACE_TOP_GOOD, COLOR_GREEN, -1);
    init_pair(PACE_TOP_BAD, COLOR_RED, -1);
}

/* Colour is never alone: what is good or bad is said in words, too. */
static attr_t attributes_of(pace_top_style style)
{
    switch (style) {
    case PACE_TOP_TITLE:
        return A_BOLD;
    case PACE_TOP_HEADING:
        return A_REVERSE;
    case PACE_TOP_FAINT:
        return A_DIM;
    case PACE_TOP_GOOD:
        return A_BOLD | COLOR_PAIR(PACE_TOP_GOOD);
    case PACE_TOP_BAD:
        return A_BOLD | COLOR_PAIR(PACE_TOP_BAD);
    default:
        return A_NORMAL;
    }
}

/* `first`: roles that are to be scrolled away; afterwards, that are. */
static void draw(pace_top *top, int *first, bool utf8)
{
    pace_top_size size = {.columns = COLS, .rows = LINES, .first = *first, .utf8 = utf8};
    size_t count = 0;
    const pace_top_line *lines = pace_top_draw(top, &size, &count);

    erase();
    for (size_t i = 0; lines && i < count; i++) {
        attrset((int)attributes_of(lines[i].style));
        mvaddstr((int)i, 0, lines[i].text);
    }
    attrset(A_NORMAL);
    refresh();
    *first = pace_top_first(top);
}

/* --- keys --- */

typedef struct watcher {
    int first; /* roles that are scrolled away */
    bool is_over;
} watcher;

static void take_key(watcher *self, int key)
{
    switch (key) {
    case 'q':
    case 'Q':
        self->is_over = true;
        break;
    case KEY_DOWN:
    case 'j':
        self->first++;
        break;
    case KEY_UP:
    case 'k':
        self->first--;
        break;
    case KEY_NPAGE:
    case ' ':
        self->first += LINES / 2;
        break;
    case KEY_PPAGE:
        self->first -= LINES / 2;
        break;
    case KEY_HOME:
        self->first = 0;
        break;
    default:
        break; /* a new size among them: all is drawn anew */
    }
    if (self->first < 0)
        self->first = 0;
}

/* Milliseconds on a clock that nobody sets. */
static long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000L + now.tv_nsec / 1000000L;
}

/* Until a key or a signal comes, the terminal has another size, or it is time to look again. */
static void await_key(watcher *self, long until_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    long left_ms = until_ms - now_ms();

    if (poll(&input, 1, left_ms > 0 ? (int)left_ms : 0) > 0 && input.revents & (POLLHUP | POLLERR | POLLNVAL))
        self->is_over = true; /* nobody is there any more */
    for (int key; (key = getch()) != ERR;)
        take_key(self, key);
}

static void watch(pace_top *top, bool utf8)
{
    watcher self = {0};
    long next_ms = now_ms() + REFRESH_MS;

    while (!self.is_over && !ended_by) {
        draw(top, &self.first, utf8);
        await_key(&self, next_ms);
        if (now_ms() < next_ms)
            continue;
        pace_top_update(top);
        next_ms = now_ms() + REFRESH_MS;
    }
}

bool cli_screen_show(pace_top *top)
{
    bool utf8 = cli_screen_speaks_utf8();

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return false;
    SCREEN *screen = newterm(NULL, stdout, stdin);

    if (!screen)
        return false;
    if (!tigetstr("cup")) { /* nothing can be put anywhere on it */
        delscreen(screen);
        return false;
    }
    catch_signals();
    prepare_styles();
    cbreak();
    noecho();
    nodelay(stdscr, TRUE);
    keypad(stdscr, TRUE);
    curs_set(0);
    watch(top, utf8);
    endwin();
    delscreen(screen);
    if (ended_by) {
        signal(ended_by, SIG_DFL);
        raise(ended_by);
    }
    return true;
}
