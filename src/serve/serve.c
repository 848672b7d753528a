#include "serve/serve.h"

#include "base/clock.h"
#include "base/locale.h"
#include "run/rundir.h"
#include "serve/address.h"
#include "serve/http.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define TICK_MS      1000
#define NICENESS     10
#define FINISH_S     0.5
#define STOP_MS      2000
#define WITHOUT_LOCK 15 /* ticks after which a run is looked at although nobody seems to have it */
#define HOST_TEXT    256

struct pace__serve {
    char *run;
    pace__address address;
    char token[PACE__TOKEN_TEXT]; /* "": none is asked for */
    char policy[PACE__POLICY_TEXT];
    pace__served_text page;
    pace__http_source source;
    pace__http *http;
    int wake, ended; /* eventfds: it is time to stop; the thread is as good as over */
    _Atomic bool is_stopping;
    pthread_t thread;
    /* The thread's. */
    pace__history *history;  /* NULL: there is no run yet */
    pace__served_text now;   /* the newest event */
    uint64_t version, pulse; /* the second rises when nothing has been new for a while */
    unsigned ticks, quiet_ticks;
};

/* --- what is served --- */

static void put_now(pace__json *json, const void *user)
{
    pace__view_put(json, user);
}

static void put_series(pace__json *json, const void *user)
{
    pace__series_put(json, user);
}

static void put_waiting(pace__json *json, const void *user)
{
    pace__json_raw(json, "{\"run\":");
    pace__json_string(json, ((const pace__serve *)user)->run);
    pace__json_raw(json, ",\"standing\":\"starting\",\"roles\":[],\"lacks\":[]}");
}

static void make_now(pace__serve *self, pace__served_text *text)
{
    pace__view view;

    pace__served_add(text, "event: now\ndata: ");
    if (!self->history) {
        pace__served_add_json(text, put_waiting, self);
    } else if (pace__view_make(self->history, &view)) {
        pace__served_add_json(text, put_now, &view);
        pace__view_release(&view);
    } else {
        text->failed = true;
    }
    pace__served_add(text, "\n\n");
}

static void give_metrics(void *user, pace__served_text *text)
{
    pace__serve *self = user;
    pace__view view;

    pace__served_add(text,
                     "# HELP paceline_run_found Whether there is a run directory to look at.\n"
                     "# TYPE paceline_run_found gauge\npaceline_run_found %d\n",
                     self->history != NULL);
    if (!self->history)
        return;
    if (!pace__view_make(self->history, &view)) {
        text->failed = true;
        return;
    }
    pace__metrics_put(text, &view);
    pace__view_release(&view);
}

/* The course so far comes first, and again if it is another one. */
static void give_events(void *user, pace__reader *reader, pace__served_text *text)
{
    pace__serve *self = user;

    if (self->history && reader->generation != self->history->generation) {
        pace__served_add(text, "event: series\ndata: ");
        pace__served_add_json(text, put_series, self->history);
        pace__served_add(text, "\n\n");
        reader->generation = self->history->generation;
    }
    if (reader->version != self->version)
        pace__served_add_bytes(text, self->now.bytes, self->now.size);
    else if (reader->pulse != self->pulse)
        pace__served_add(text, ": nothing new\n\n");
    reader->version = self->version;
    reader->pulse = self->pulse;
}

/* --- looking --- */

/* A directory may hold an earlier run, until somebody takes it over. */
static void find_run(pace__serve *self)
{
    if (pace__run_is_held(self->run) || self->ticks >= WITHOUT_LOCK)
        pace__history_open(self->run, NULL, &self->history);
}

/* Everyone hears of it if something has changed. */
static void tick(pace__serve *self)
{
    pace__served_text made = {0};

    if (self->history)
        pace__history_update(self->history);
    else
        find_run(self);
    self->ticks++;
    make_now(self, &made);
    bool is_new =
        !made.failed && (made.size != self->now.size || memcmp(made.bytes, self->now.bytes, made.size) != 0);

    if (is_new) {
        pace__served_text before = self->now;

        self->now = made;
        made = before;
        self->version++;
    }
    pace__served_release(&made);
    self->quiet_ticks = is_new ? 0 : self->quiet_ticks + 1;
    if (self->quiet_ticks == PACE__HTTP_PULSE_S) {
        self->quiet_ticks = 0;
        self->pulse++;
        is_new = true;
    }
    if (is_new)
        pace__http_publish(self->http);
}

static void finish(pace__serve *self)
{
    uint64_t start_ns = pace__now_ns();

    tick(self);
    while (!pace__http_finish(self->http) && pace__seconds_since(start_ns) < FINISH_S)
        pace__http_turn(self->http, -1, 20);
}

static void *serve(void *user)
{
    PACE__C_LOCALE();
    pace__serve *self = user;
    uint64_t next_ns = pace__now_ns();

    setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS); /* of this thread alone */
    while (!self->is_stopping) {
        uint64_t now_ns = pace__now_ns();

        if (now_ns >= next_ns) {
            tick(self);
            next_ns = pace__now_ns() + TICK_MS * UINT64_C(1000000);
            continue;
        }
        pace__http_turn(self->http, self->wake, (int)((next_ns - now_ns) / 1000000) + 1);
    }
    finish(self);
    eventfd_write(self->ended, 1);
    return NULL;
}

/* --- life --- */

static void release(pace__serve *self)
{
    pace__http_close(self->http);
    pace__history_close(self->history);
    pace__served_release(&self->now);
    pace__served_release(&self->page);
    if (self->wake >= 0)
        close(self->wake);
    if (self->ended >= 0)
        close(self->ended);
    free(self->run);
    free(self);
}

/* The one time that a token is said. */
static void say_address(const pace__serve *self, const pace_log *log)
{
    char text[PACE__ADDRESS_TEXT], host[HOST_TEXT] = "";
    pace__address any = {0};
    bool is_everywhere = self->address.is_v6 ? IN6_IS_ADDR_UNSPECIFIED(&self->address.v6)
                                             : self->address.v4.s_addr == any.v4.s_addr;

    pace__address_text(&self->address, text);
    if (is_everywhere && gethostname(host, sizeof host - 1) == 0)
        pace_say(log, PACE_INFO,
                 "dashboard: http://%s:%u/?token=%s (all addresses of this machine; not encrypted)", host,
                 self->address.port, self->token);
    else if (self->token[0])
        pace_say(log, PACE_INFO, "dashboard: http://%s/?token=%s (not encrypted)", text, self->token);
    else
        pace_say(log, PACE_INFO, "dashboard: http://%s/", text);
}

static pace_status prepare(pace__serve *self, const pace__serve_plan *plan, const pace_log *log)
{
    if (!pace__address_parse(plan->address, &self->address))
        return pace_fail(log, PACE_USAGE,
                         "--dashboard %.200s: must be a numeric address and a port (127.0.0.1:8640, "
                         "[::1]:8640), or a port "
                         "of 127.0.0.1",
                         plan->address);
    if (!pace__address_is_loopback(&self->address) && !pace__token_draw(self->token))
        return pace_fail(log, PACE_IO, "--dashboard: there is no randomness for a token");
    self->run = strdup(plan->run);
    self->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!self->run || self->wake < 0 || self->ended < 0 || !pace__served_page_make(&self->page, self->policy))
        return pace_fail(log, PACE_FAILED, "--dashboard: out of memory");
    self->source = (pace__http_source){.page = &self->page,
                                       .policy = self->policy,
                                       .metrics = give_metrics,
                                       .events = give_events,
                                       .user = self};
    int fd;
    pace_status status = pace__address_listen(&self->address, log, &fd);

    return status ? status
                  : pace__http_open(fd, self->token[0] ? self->token : NULL, &self->source, log, &self->http);
}

/* Signals are for whoever waits for them. */
static int start_thread(pace__serve *self)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&self->thread, NULL, serve, self);

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

pace_status pace__serve_start(const pace__serve_plan *plan, const pace_log *log, pace__serve **started)
{
    pace__serve *self = calloc(1, sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    self->wake = self->ended = -1;
    pace_status status = prepare(self, plan, log);

    if (!status && start_thread(self) != 0)
        status = pace_fail(log, PACE_FAILED, "--dashboard: cannot start a thread");
    if (status) {
        release(self);
        return status;
    }
    say_address(self, log);
    *started = self;
    return PACE_OK;
}

/* A thread that hangs in a file of a dead server is left behind, with all that it has: the process ends soon. */
void pace__serve_stop(pace__serve *self)
{
    if (!self)
        return;
    struct pollfd ended = {.fd = self->ended, .events = POLLIN};

    self->is_stopping = true;
    eventfd_write(self->wake, 1);
    int got;

    while ((got = poll(&ended, 1, STOP_MS)) < 0 && errno == EINTR)
        continue;
    if (got != 1) {
        pthread_detach(self->thread);
        return;
    }
    pthread_join(self->thread, NULL);
    release(self);
}
