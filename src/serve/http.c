#include "serve/http.h"

#include "base/clock.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES 16384
#define KEPT_BYTES  8192 /* the kernel takes twice as many */

/* One that is connected. */
typedef struct visitor {
    struct visitor *next;
    struct MHD_Connection *connection;
    uint64_t since_ns; /* it connected, was answered, or a reader got the last byte of an event */
    bool was_answered, reads_events, is_resting;
} visitor;

/* A reader of /events: what it is getting. */
typedef struct stream {
    pace__http *http;
    visitor *visitor;
    pace__reader reader;
    pace__served_text text;
    size_t sent;
    bool has_ended;
} stream;

struct pace__http {
    const char *token;
    const pace__http_source *source;
    struct MHD_Daemon *daemon;
    struct MHD_Response *page;
    visitor *visitors;
    bool is_ending;
};

/* --- answers --- */

static void add_headers(struct MHD_Response *response, const char *type, const char *policy)
{
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Content-Security-Policy", policy);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer"); /* the address may hold the token */
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Connection", "close"); /* invariant 3 */
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status, const char *type,
                                   const void *bytes, size_t size)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);

    if (!response)
        return MHD_NO;
    add_headers(response, type, "default-src 'none'");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);

    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_metrics(pace__http *http, struct MHD_Connection *connection)
{
    pace__served_text text = {0};

    http->source->metrics(http->source->user, &text);
    enum MHD_Result result =
        text.failed
            ? answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain", "out of memory\n", 14)
            : answer_text(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text.bytes,
                          text.size);

    pace__served_release(&text);
    return result;
}

/* --- readers of /events --- */

static visitor *find_visitor(const pace__http *http, const struct MHD_Connection *connection)
{
    visitor *found = http->visitors;

    while (found && found->connection != connection)
        found = found->next;
    return found;
}

static void free_stream(void *cls)
{
    stream *self = cls;

    pace__served_release(&self->text);
    free(self);
}

/* The next event, if there is one; behind the last, the end. */
static bool load_next(stream *self)
{
    const pace__http_source *source = self->http->source;

    self->text.size = self->sent = 0;
    self->visitor->since_ns = pace__now_ns();
    source->events(source->user, &self->reader, &self->text);
    if (self->http->is_ending && !self->has_ended) {
        pace__served_add(&self->text, "event: end\ndata: {}\n\n");
        self->has_ended = true;
    }
    return self->text.size > 0;
}

static ssize_t read_stream(void *cls, uint64_t position, char *buffer, size_t room)
{
    stream *self = cls;

    (void)position;
    if (self->sent == self->text.size) {
        if (self->has_ended || self->text.failed)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (!load_next(self)) {
            self->visitor->is_resting = true;
            MHD_suspend_connection(self->visitor->connection);
            return 0;
        }
    }
    size_t left = self->text.size - self->sent, taken = left < room ? left : room;

    memcpy(buffer, self->text.bytes + self->sent, taken);
    self->sent += taken;
    return (ssize_t)taken;
}

static enum MHD_Result answer_events(pace__http *http, struct MHD_Connection *connection)
{
    visitor *of = find_visitor(http, connection);
    stream *self = of ? calloc(1, sizeof *self) : NULL;

    if (!self)
        return MHD_NO;
    self->http = http;
    self->visitor = of;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES, read_stream, self, free_stream);

    if (!response) {
        free(self);
        return MHD_NO;
    }
    of->reads_events = true;
    add_headers(response, "text/event-stream", "default-src 'none'");
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);

    MHD_destroy_response(response);
    return result;
}

/* --- requests --- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static pace__request request_of(struct MHD_Connection *connection, const char *method, const char *path)
{
    const char *length = header(connection, "Content-Length");

    return (pace__request){.method = method,
                           .path = path,
                           .host = header(connection, "Host"),
                           .authorization = header(connection, "Authorization"),
                           .token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token"),
                           .has_body = header(connection, "Transfer-Encoding") ||
                                       (length && strcmp(length, "0") != 0)};
}

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body, size_t *body_size,
                              void **own)
{
    pace__http *http = cls;
    pace__request request = request_of(connection, method, path);
    pace__judgement judged = pace__request_judge(&request, http->token);
    visitor *of = find_visitor(http, connection);
    char text[256];

    (void)version, (void)body, (void)own;
    if (of && !of->was_answered) {
        of->was_answered = true;
        of->since_ns = pace__now_ns();
    }
    if (*body_size > 0) /* of a body that was refused already: what is left of it on the way */
        return MHD_NO;
    if (judged.status != MHD_HTTP_OK) {
        int size = snprintf(text, sizeof text, "%u: %s\n", judged.status, judged.reason);

        return answer_text(connection, judged.status, "text/plain", text, (size_t)size);
    }
    switch (judged.wanted) {
    case PACE__WANTS_PAGE:
        return MHD_queue_response(connection, MHD_HTTP_OK, http->page);
    case PACE__WANTS_EVENTS:
        return answer_events(http, connection);
    case PACE__WANTS_METRICS:
        return answer_metrics(http, connection);
    case PACE__WANTS_HEALTH:
        return answer_text(connection, MHD_HTTP_OK, "text/plain", "ok\n", 3);
    }
    return MHD_NO;
}

/* --- connections --- */

/* What the kernel keeps for a reader that does not read hides that it does not. */
static void keep_little(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int bytes = KEPT_BYTES;

    if (info)
        setsockopt(info->connect_fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static void note_connection(void *cls, struct MHD_Connection *connection, void **own,
                            enum MHD_ConnectionNotificationCode what)
{
    pace__http *http = cls;

    (void)own;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        keep_little(connection);
        visitor *made = calloc(1, sizeof *made);

        if (!made)
            return; /* it is served, but for events, and libmicrohttpd's own limits are those that hold */
        *made = (visitor){.next = http->visitors, .connection = connection, .since_ns = pace__now_ns()};
        http->visitors = made;
        return;
    }
    for (visitor **at = &http->visitors; *at; at = &(*at)->next) {
        if ((*at)->connection == connection) {
            visitor *gone = *at;

            *at = gone->next;
            free(gone);
            return;
        }
    }
}

/* Invariant 2. What is shut down is closed by libmicrohttpd, which then says so. */
static void cut_off_slow(pace__http *http)
{
    for (visitor *each = http->visitors; each; each = each->next) {
        double limit_s = each->was_answered ? PACE__HTTP_TAKING_S : PACE__HTTP_ASKING_S;

        if (each->is_resting || pace__seconds_since(each->since_ns) < limit_s)
            continue;
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(each->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        if (info)
            shutdown(info->connect_fd, SHUT_RDWR);
    }
}

static void wake_readers(pace__http *http)
{
    for (visitor *each = http->visitors; each; each = each->next) {
        if (each->is_resting) {
            each->is_resting = false;
            MHD_resume_connection(each->connection);
        }
    }
}

/* --- turns --- */

static void be_silent(void *cls, const char *format, va_list arguments)
{
    (void)cls, (void)format,
        (void)arguments; /* what a client does wrong is its own matter, and may hold a token */
}

static int wait_ms(const pace__http *http, int at_most)
{
    MHD_UNSIGNED_LONG_LONG soon;

    if (MHD_get_timeout(http->daemon, &soon) == MHD_YES && soon < (MHD_UNSIGNED_LONG_LONG)at_most)
        return (int)soon;
    return at_most;
}

void pace__http_turn(pace__http *http, int wake_fd, int milliseconds)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    uint64_t start_ns = pace__now_ns();
    int left = milliseconds;

    do {
        struct pollfd both[] = {{.fd = info->epoll_fd, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};

        poll(both, 2, wait_ms(http, left));
        MHD_run(http->daemon);
        cut_off_slow(http);
        if (both[1].revents)
            return;
        left = milliseconds - (int)(1e3 * pace__seconds_since(start_ns));
    } while (left > 0);
}

void pace__http_publish(pace__http *http)
{
    wake_readers(http);
    MHD_run(http->daemon);
}

bool pace__http_finish(pace__http *http)
{
    http->is_ending = true;
    wake_readers(http);
    MHD_run(http->daemon);
    for (const visitor *each = http->visitors; each; each = each->next) {
        if (each->reads_events)
            return false;
    }
    return true;
}

/* --- life --- */

static struct MHD_Response *make_page(const pace__http_source *source)
{
    struct MHD_Response *page =
        MHD_create_response_from_buffer(source->page->size, source->page->bytes, MHD_RESPMEM_PERSISTENT);

    if (page)
        add_headers(page, "text/html; charset=utf-8", source->policy);
    return page;
}

pace_status pace__http_open(int fd, const char *token, const pace__http_source *source, const pace_log *log,
                            pace__http **http)
{
    pace__http *made = calloc(1, sizeof *made);

    if (made)
        *made = (pace__http){.token = token, .source = source, .page = make_page(source)};
    if (made && made->page)
        made->daemon = MHD_start_daemon(
            MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, made, MHD_OPTION_EXTERNAL_LOGGER,
            be_silent, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
            (unsigned)PACE__HTTP_CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
            (unsigned)PACE__HTTP_PER_ADDRESS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)PACE__HTTP_IDLE_S,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, PACE__HTTP_REQUEST_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
            note_connection, made, MHD_OPTION_END);
    if (made && made->daemon) {
        *http = made;
        return PACE_OK;
    }
    close(fd);
    if (made && made->page)
        MHD_destroy_response(made->page);
    free(made);
    return pace_fail(log, PACE_FAILED, "--dashboard: the server cannot be started");
}

/* Nobody may rest when the daemon is stopped. */
void pace__http_close(pace__http *http)
{
    if (!http)
        return;
    http->is_ending = true;
    wake_readers(http);
    MHD_run(http->daemon);
    MHD_stop_daemon(http->daemon);
    MHD_destroy_response(http->page);
    free(http);
}
