/* The live page: addresses, who may ask for what, figures for Prometheus, and a server that is really asked. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "serve/address.h"
#include "serve/request.h"
#include "serve/serve.h"
#include "serve/texts.h"
#include "support.h"

#include "made_runs.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#define ANSWER_MAX (1 << 20)
#define WAIT_MS    60000

/* --- pure parts --- */

static void expect_address(const char *text, const char *wanted, bool loopback)
{
    pace__address address;
    char written[PACE__ADDRESS_TEXT];

    assert_true(pace__address_parse(text, &address));
    pace__address_text(&address, written);
    assert_string_equal(written, wanted);
    assert_int_equal(pace__address_is_loopback(&address), loopback);
}

static void addresses_are_numbers(void **state)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "node1:80",
                                        "127.0.0.1:",
                                        "127.0.0.1:65536",
                                        ":80",
                                        "1.2.3:80",
                                        "[::1:80",
                                        "::1:80",
                                        "[::1]80",
                                        "[127.0.0.1]:80",
                                        "-1",
                                        "127.0.0.1:8 ",
                                        "0x50",
                                        "127.0.0.1:80:80",
                                        "localhost.evil:80"};
    pace__address address;

    (void)state;
    expect_address("auto", "127.0.0.1:8640", true);
    expect_address("9000", "127.0.0.1:9000", true);
    expect_address("localhost:9000", "127.0.0.1:9000", true);
    expect_address("127.1.2.3", "127.1.2.3:8640", true);
    expect_address("0.0.0.0:0", "0.0.0.0:0", false);
    expect_address("192.168.1.7:80", "192.168.1.7:80", false);
    expect_address("[::1]:80", "[::1]:80", true);
    expect_address("[::]", "[::]:8640", false);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (pace__address_parse(wrong[i], &address))
            fail_msg("\"%s\" is no address", wrong[i]);
    }
}

static unsigned judge(pace__request request, const char *token)
{
    if (!request.method)
        request.method = "GET";
    if (!request.path)
        request.path = "/";
    return pace__request_judge(&request, token).status;
}

static void loopback_is_called_by_its_name(void **state)
{
    (void)state;
    assert_int_equal(judge((pace__request){.host = "localhost:8640"}, NULL), 200);
    assert_int_equal(judge((pace__request){.host = "LOCALHOST"}, NULL), 200);
    assert_int_equal(judge((pace__request){.host = "127.0.0.1:1"}, NULL), 200);
    assert_int_equal(judge((pace__request){.host = "[::1]:9000"}, NULL), 200);
    assert_int_equal(judge((pace__request){.host = NULL}, NULL), 403);
    assert_int_equal(judge((pace__request){.host = ""}, NULL), 403);
    assert_int_equal(judge((pace__request){.host = "evil.example"}, NULL), 403);
    assert_int_equal(judge((pace__request){.host = "localhost.evil.example"}, NULL), 403);
    assert_int_equal(judge((pace__request){.host = "localhost:80.evil.example"}, NULL), 403);
    assert_int_equal(judge((pace__request){.host = "localhost:"}, NULL), 403);
}

static void others_need_the_token(void **state)
{
    static const char token[] = "0123456789abcdef0123456789abcdef";

    (void)state;
    assert_int_equal(judge((pace__request){.token = token}, token), 200);
    assert_int_equal(
        judge((pace__request){.authorization = "Bearer 0123456789abcdef0123456789abcdef"}, token), 200);
    assert_int_equal(
        judge((pace__request){.authorization = "bearer 0123456789abcdef0123456789abcdef"}, token), 200);
    assert_int_equal(judge((pace__request){.host = "localhost"}, token), 403);
    assert_int_equal(judge((pace__request){.token = ""}, token), 403);
    assert_int_equal(judge((pace__request){.token = "0123456789abcdef0123456789abcde"}, token), 403);
    assert_int_equal(judge((pace__request){.token = "0123456789abcdef0123456789abcdef0"}, token), 403);
    assert_int_equal(judge((pace__request){.token = "1123456789abcdef0123456789abcdef"}, token), 403);
    assert_int_equal(judge((pace__request){.authorization = "0123456789abcdef0123456789abcdef"}, token), 403);
    assert_int_equal(judge((pace__request){.path = "/nothing"}, token), 403); /* and not 404 */
}

static void only_four_paths_are_read(void **state)
{
    static const char *const paths[] = {"/", "/events", "/metrics", "/healthz"},
                             *const wrong[] = {"", "//", "/index.html", "/metrics/", "/..", "*"};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(judge((pace__request){.host = "localhost", .path = paths[i]}, NULL), 200);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(judge((pace__request){.host = "localhost", .path = wrong[i]}, NULL), 404);
    assert_int_equal(judge((pace__request){.host = "localhost", .method = "HEAD"}, NULL), 200);
    assert_int_equal(judge((pace__request){.host = "localhost", .method = "POST"}, NULL), 405);
    assert_int_equal(judge((pace__request){.host = "localhost", .method = "get"}, NULL), 405);
    assert_int_equal(judge((pace__request){.host = "localhost", .has_body = true}, NULL), 413);
}

static void tokens_differ(void **state)
{
    char a[PACE__TOKEN_TEXT], b[PACE__TOKEN_TEXT];

    (void)state;
    assert_true(pace__token_draw(a) && pace__token_draw(b));
    assert_int_equal(strspn(a, "0123456789abcdef"), PACE__TOKEN_DIGITS);
    assert_string_not_equal(a, b);
}

static void the_policy_names_what_the_page_has(void **state)
{
    pace__served_text page = {0};
    char policy[PACE__POLICY_TEXT];

    (void)state;
    assert_true(pace__served_page_make(&page, policy));
    pace__served_add_bytes(&page, "", 1);
    assert_non_null(strstr(policy, "default-src 'none'"));
    assert_null(strstr(policy, "unsafe"));
    assert_null(strstr(page.bytes, "http://"));
    assert_null(strstr(page.bytes, "src="));
    assert_null(strstr(page.bytes, " style=\""));
    pace__served_release(&page);
}

/* --- figures --- */

static void put_job(made_run *run)
{
    made_start(run, 0, 1000);
    for (int t = 1; t <= 12; t++) {
        made_sample(run, (made_state){.role = "chief",
                                      .waits_for = "ps0",
                                      .t = t,
                                      .rows = 100.0 * t,
                                      .compute_s = 0.25 * t,
                                      .wait_s = 0.75 * t,
                                      .cpu_s = 0.5 * t,
                                      .rss_bytes = 1 << 20});
        made_flow(run, t, "chief", "ps0", 1000.0 * t, 3000.0 * t);
        made_sample(run, (made_state){.role = "ps0",
                                      .t = t,
                                      .communicate_s = 0.5 * t,
                                      .wait_s = 0.5 * t,
                                      .requests = 30.0 * t,
                                      .looks = 20.0 * t});
    }
    made_step(run, 12, 12, 0.125);
}

static void expect(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* Every name has its help and its type once, before its figures, and what only grows ends with _total. */
static void check_format(const char *text)
{
    char copy[ANSWER_MAX], *rest, help[256] = "", type[256] = "", kind[16] = "", name[256];

    snprintf(copy, sizeof copy, "%s", text);
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "# HELP %255s", name) == 1) {
            assert_string_not_equal(name, help);
            strcpy(help, name);
        } else if (sscanf(line, "# TYPE %255s %15s", name, kind) == 2) {
            assert_string_equal(name, help);
            strcpy(type, name);
            bool is_total = strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0;

            assert_int_equal(is_total, strcmp(kind, "counter") == 0);
        } else {
            double value;
            char *blank = strrchr(line, ' ');

            assert_non_null(blank);
            assert_int_equal(sscanf(blank, "%lf", &value), 1);
            assert_int_equal(strncmp(line, type, strlen(type)), 0);
            assert_true(line[strlen(type)] == '{' || line[strlen(type)] == ' ');
        }
    }
}

static void figures_are_those_of_the_records(void **state)
{
    made_run run = made_begin(in(state, "r\xff\xc3\xbcu\"n\\"));
    pace__history *history;
    pace__view view;
    pace__served_text text = {0};

    put_job(&run);
    made_end(&run, PACE__RUN_INTERRUPTED);
    assert_int_equal(pace__history_open(run.path, &said_log, &history), PACE_OK);
    assert_true(pace__view_make(history, &view));
    pace__metrics_put(&text, &view);
    pace__served_add_bytes(&text, "", 1);
    expect(text.bytes, "r\xef\xbf\xbd\xc3\xbcu\\\"n\\\\\",model=\"logreg\",mode=\"ps-sync\"} 1\n");
    expect(text.bytes, "paceline_run_standing{standing=\"interrupted\"} 1\n");
    expect(text.bytes, "paceline_run_standing{standing=\"running\"} 0\n");
    expect(text.bytes, "\npaceline_loss 0.125\n");
    expect(text.bytes, "\npaceline_step 12\n");
    expect(text.bytes, "\npaceline_role_rows_total{role=\"chief\"} 1200\n");
    expect(text.bytes, "\npaceline_role_time_seconds_total{role=\"chief\",state=\"wait\"} 9\n");
    expect(text.bytes, "\npaceline_role_exchange_received_bytes_total{role=\"chief\"} 36000\n");
    expect(text.bytes, "\npaceline_role_requests_total{role=\"ps0\"} 360\n");
    check_format(text.bytes);
    pace__served_release(&text);
    pace__view_release(&view);
    pace__history_close(history);
}

/* --- a server --- */

/* The port of the address that was said last. */
static int port_said(void)
{
    const char *at = strstr(said, "dashboard: http://");

    assert_non_null(at);
    at = strchr(at + strlen("dashboard: http://"), ':');
    return atoi(at + 1);
}

static int call(int port, const char *request)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    return fd;
}

/* Reads until `part` has come, or with NULL to the end. */
static char *read_until(int fd, const char *part)
{
    char *text = calloc(1, ANSWER_MAX);
    size_t size = 0;

    assert_non_null(text);
    while (!part || !strstr(text, part)) {
        struct pollfd input = {.fd = fd, .events = POLLIN};

        if (poll(&input, 1, WAIT_MS) != 1)
            fail_msg("\"%s\" has not come, but:\n%s", part ? part : "the end", text);
        ssize_t got = read(fd, text + size, ANSWER_MAX - 1 - size);

        if (got <= 0 && part)
            fail_msg("ended without \"%s\":\n%s", part, text);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    return text;
}

static char *fetch(int port, const char *request)
{
    int fd = call(port, request);
    char *text = read_until(fd, NULL);

    close(fd);
    return text;
}

static pace__serve *start(const char *run, const char *address)
{
    pace__serve *serve;

    said[0] = '\0';
    assert_int_equal(
        pace__serve_start(&(pace__serve_plan){.run = run, .address = address}, &said_log, &serve), PACE_OK);
    return serve;
}

static void a_page_is_served(void **state)
{
    made_run run = made_begin(in(state, "run"));

    made_hold(&run);
    made_standing(&run, PACE__RUN_RUNNING);
    put_job(&run);
    pace__serve *serve = start(run.path, "0");
    int port = port_said();
    char *text = fetch(port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");

    expect(text, "HTTP/1.1 200 ");
    expect(text, "\r\nX-Content-Type-Options: nosniff\r\n");
    expect(text, "\r\nCache-Control: no-store\r\n");
    expect(text, "\r\n\r\nok\n");
    free(text);
    text = fetch(port, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    expect(text, "Content-Security-Policy: default-src 'none'; style-src 'sha256-");
    expect(text, "</html>");
    free(text);
    text = fetch(port, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    expect(text, "HTTP/1.1 403 ");
    free(text);
    text = fetch(port, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody");
    expect(text, "HTTP/1.1 405 ");
    free(text);
    /* What is new comes by itself, and at the end the end. */
    int fd = call(port, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");

    free(read_until(fd, "event: series"));
    made_step(&run, 13, 13, 0.0625);
    free(read_until(fd, "\"loss\":0.0625"));
    text = fetch(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect(text, "\npaceline_loss 0.0625\n");
    check_format(strstr(text, "\r\n\r\n") + 4);
    free(text);
    made_end(&run, PACE__RUN_DONE);
    pace__serve_stop(serve);
    text = read_until(fd, NULL);
    expect(text, "\"standing\":\"done\"");
    expect(text, "event: end");
    free(text);
    close(fd);
}

/* An earlier run is not shown, and a directory that is not there yet is waited for. */
static void a_run_is_waited_for(void **state)
{
    made_run run = made_begin(in(state, "run"));

    put_job(&run);
    pace__serve *serve = start(run.path, "0");
    int fd = call(port_said(), "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    char *text = read_until(fd, "event: now");

    assert_null(strstr(text, "event: series"));
    free(text);
    made_hold(&run);
    made_standing(&run, PACE__RUN_RUNNING);
    free(read_until(fd, "\"standing\":\"running\""));
    pace__serve_stop(serve);
    close(fd);
    made_end(&run, PACE__RUN_DONE);
}

static void elsewhere_a_token_is_asked_for(void **state)
{
    pace__serve *serve = start(in(state, "run"), "0.0.0.0:0");
    int port = port_said();
    char token[PACE__TOKEN_TEXT] = "", request[256];

    assert_int_equal(sscanf(strstr(said, "?token="), "?token=%32[0-9a-f]", token), 1);
    assert_int_equal(strlen(token), PACE__TOKEN_DIGITS);
    char *text = fetch(port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");

    expect(text, "HTTP/1.1 403 ");
    free(text);
    snprintf(request, sizeof request, "GET /healthz?token=%s HTTP/1.1\r\nHost: node1\r\n\r\n", token);
    text = fetch(port, request);
    expect(text, "HTTP/1.1 200 ");
    free(text);
    snprintf(request, sizeof request,
             "GET /metrics HTTP/1.1\r\nHost: node1\r\nAuthorization: Bearer %s\r\n\r\n", token);
    text = fetch(port, request);
    expect(text, "HTTP/1.1 200 ");
    expect(text, "paceline_run_found 0\n");
    free(text);
    pace__serve_stop(serve);
}

static void what_cannot_be_listened_on_is_refused(void **state)
{
    pace__serve *serve = start(in(state, "run"), "0"), *second;
    char port[32];

    snprintf(port, sizeof port, "%d", port_said());
    assert_int_equal(
        pace__serve_start(&(pace__serve_plan){.run = in(state, "run"), .address = port}, &said_log, &second),
        PACE_IO);
    expect(said, "cannot listen on 127.0.0.1:");
    assert_int_equal(pace__serve_start(&(pace__serve_plan){.run = in(state, "run"), .address = "node1:80"},
                                       &said_log, &second),
                     PACE_USAGE);
    expect(said, "--dashboard node1:80: must be a numeric address");
    pace__serve_stop(serve);
    pace__serve_stop(NULL);
}

/* As many as there may be, who say nothing: others are refused, and all of it goes away with the server. */
static void many_are_too_many(void **state)
{
    pace__serve *serve = start(in(state, "run"), "0");
    int fds[64], port = port_said(), ended = 0;

    for (size_t i = 0; i < 64; i++)
        fds[i] = call(port, "GET /ev");
    for (size_t i = 0; i < 64; i++) {
        struct pollfd input = {.fd = fds[i], .events = POLLIN};

        ended += poll(&input, 1, i == 63 ? WAIT_MS : 0) == 1;
    }
    assert_true(ended >= 1);
    pace__serve_stop(serve);
    for (size_t i = 0; i < 64; i++)
        close(fds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_numbers),
        cmocka_unit_test(loopback_is_called_by_its_name),
        cmocka_unit_test(others_need_the_token),
        cmocka_unit_test(only_four_paths_are_read),
        cmocka_unit_test(tokens_differ),
        cmocka_unit_test(the_policy_names_what_the_page_has),
        cmocka_unit_test_setup_teardown(figures_are_those_of_the_records, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(a_page_is_served, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(a_run_is_waited_for, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(elsewhere_a_token_is_asked_for, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(what_cannot_be_listened_on_is_refused, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(many_are_too_many, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
