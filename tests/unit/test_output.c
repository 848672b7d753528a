/* Where outputs go: to new files, in place of old ones, into pipes and devices; never through a link to a file. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/open.h"
#include "files/output.h"

#include "support.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static pace_status put(const char *path, bool force, const char *text)
{
    pace__output output;
    pace_status status = pace__output_open(&output, path, force, &said_log);

    if (status)
        return status;
    return pace__output_close(&output,
                              pace__write_all(output.fd, text, strlen(text), output.name, &said_log));
}

static void assert_holds(const char *path, const char *wanted)
{
    char *text = get_text(path);

    assert_string_equal(text, wanted);
    free(text);
}

static void files_are_replaced_if_asked(void **state)
{
    const char *path = in(state, "out");

    assert_ok(put(path, false, "first"));
    assert_failed(put(path, false, "second"), PACE_USAGE, "exists; use --force");
    assert_holds(path, "first");
    assert_ok(put(path, true, "second"));
    assert_holds(path, "second");
    assert_failed(put(*state, true, "x"), PACE_USAGE, "is a directory");
    assert_int_equal(count_entries(*state), 1);
}

static void nothing_goes_through_a_link(void **state)
{
    const char *path = in(state, "link"), *file = in(state, "precious");

    put_text(file, "precious");
    assert_int_equal(symlink("precious", path), 0);
    assert_failed(put(path, false, "x"), PACE_USAGE, "is a link to a file");
    assert_failed(put(path, true, "x"), PACE_USAGE, "is a link to a file");
    assert_holds(file, "precious");
    assert_int_equal(unlink(file), 0);
    assert_failed(put(path, true, "x"), PACE_USAGE, "leads nowhere");
    assert_int_equal(count_entries(*state), 1);
}

static void devices_are_written(void **state)
{
    const char *path = in(state, "link");

    assert_ok(put("/dev/null", false, "x"));
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_ok(put(path, false, "x"));
    assert_failed(put("/dev/full", true, "x"), PACE_IO, "/dev/full: ");
}

static void a_socket_is_named(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", in(state, "socket"));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_failed(put(in(state, "socket"), true, "x"), PACE_IO, "is a socket, not a file");
    close(fd);
}

/* Another process, which ends well if it reads just this from the pipe. */
static pid_t start_reader(const char *path, const char *wanted)
{
    char text[64] = "";
    pid_t child = fork();

    assert_true(child >= 0);
    if (child > 0)
        return child;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = 0;

    for (ssize_t got = 1; got > 0 && size + 1 < sizeof text; size += got > 0 ? (size_t)got : 0)
        got = read(fd, text + size, sizeof text - 1 - size);
    _exit(strcmp(text, wanted) != 0);
}

static void assert_read_well(pid_t child)
{
    int code;

    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

static void a_pipe_with_a_reader_is_written(void **state)
{
    const char *path = in(state, "pipe"), *link = in(state, "link");

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(symlink("pipe", link), 0);
    pid_t reader = start_reader(path, "a line\n");

    assert_ok(put(path, false, "a line\n"));
    assert_read_well(reader);
    reader = start_reader(path, "another\n");
    assert_ok(put(link, true, "another\n"));
    assert_read_well(reader);
}

static void a_pipe_without_a_reader_is_not_waited_for(void **state)
{
    const char *path = in(state, "pipe");

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_failed(put(path, true, "x"), PACE_IO, "is a pipe that nobody reads");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_replaced_if_asked),
        TEST(nothing_goes_through_a_link),
        TEST(devices_are_written),
        TEST(a_socket_is_named),
        TEST(a_pipe_with_a_reader_is_written),
        TEST(a_pipe_without_a_reader_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
