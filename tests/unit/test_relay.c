/* What a rank writes arrives at its launcher, whatever is between the two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support.h"

#include <paceline/relay.h>
#include <paceline/version.h>

#define HEARD_MAX (1 << 20)

/* Everything that a reader hands over, a line each. */
typedef struct ear {
    char *heard;
    size_t used;
    pace_registry *registry;
} ear;

static void note(ear *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(ear *self, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    self->used += (size_t)vsnprintf(self->heard + self->used, HEARD_MAX - self->used, format, arguments);
    va_end(arguments);
    assert_true(self->used < HEARD_MAX);
}

static void hear(void *user, const pace_relay_message *message)
{
    ear *self = user;

    switch (message->kind) {
    case PACE_RELAY_HELLO:
        note(self, "%d hello %s %ld %s %s\n", message->rank, message->hello.host, message->hello.process,
             message->hello.job, message->hello.version);
        return;
    case PACE_RELAY_LOG:
        note(self, "%d %c %s\n", message->rank, "EWI"[message->level], message -> text);
        return;
    case PACE_RELAY_RECORD:
        note(self, "%d record\n", message->rank);
        assert_true(pace_relay_emit(message->text, self->registry));
        return;
    case PACE_RELAY_EXIT:
        note(self, "%d exit %d\n", message->rank, message->status);
        return;
    }
}

static void hear_other(void *user, const char *line)
{
    note(user, "other %s\n", line);
}

/* Two ends: a relay that writes into a pipe, and a reader of what has come out. */
typedef struct ends {
    pace_relay relay;
    int from;
    ear ear;
    pace_relay_reader *reader;
} ends;

static int open_ends(void **state)
{
    ends *e = calloc(1, sizeof *e);
    int pair[2];

    unsetenv("PMIX_RANK");
    unsetenv("PMI_RANK");
    unsetenv("OMPI_MCA_ess_base_jobid");
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    if (!e || pipe2(pair, O_NONBLOCK) != 0)
        return -1;
    pace_relay_init(&e->relay, pair[1]);
    e->from = pair[0];
    e->ear.heard = calloc(1, HEARD_MAX);
    e->ear.registry = pace_registry_create();
    e->reader = pace_relay_reader_create(8, &(pace_relay_target){hear, hear_other, &e->ear});
    *state = e;
    return 0;
}

static int close_ends(void **state)
{
    ends *e = *state;

    close(e->from);
    close(e->relay.fd);
    pace_relay_reader_free(e->reader);
    pace_registry_free(e->ear.registry);
    free(e->ear.heard);
    free(e);
    unsetenv("OMPI_COMM_WORLD_RANK");
    return 0;
}

/* Passes on what is in the pipe. */
static void carry(ends *e)
{
    char bytes[4096];

    for (ssize_t size; (size = read(e->from, bytes, sizeof bytes)) > 0;)
        pace_relay_reader_feed(e->reader, bytes, (size_t)size);
}

static void test_all_kinds(void **state)
{
    ends *e = *state;
    char wanted[512], host[256] = "";

    gethostname(host, sizeof host - 1);
    setenv("OMPI_MCA_ess_base_jobid", "12345", 1);
    setenv("OMPI_COMM_WORLD_RANK", "7", 1);
    pace_relay_init(&e->relay, e->relay.fd);
    pace_log log = {pace_relay_log, &e->relay};

    pace_relay_hello(&e->relay);
    pace_say(&log, PACE_INFO, "an information");
    pace_say(&log, PACE_WARN, "a warning");
    pace_say(&log, PACE_DEBUG, "not passed on");
    assert_int_equal(pace_fail(&log, PACE_IO, "%s", ""), PACE_IO);
    pace_say(&log, PACE_ERROR, "line\nends\tand \x1b[1m controls");
    pace_relay_exit(&e->relay, PACE_IO);
    carry(e);
    snprintf(wanted, sizeof wanted,
             "7 hello %s %ld 12345 %s\n7 I an information\n7 W a warning\n7 E \n7 E line?ends?and ?[1m "
             "controls\n7 exit 74\n",
             host, (long)getpid(), pace_version());
    assert_string_equal(e->ear.heard, wanted);
}

/* Any length up to the limit, cut anywhere on the way. */
static void test_lengths(void **state)
{
    ends *e = *state;
    pace_log log = {pace_relay_log, &e->relay};
    char text[PACE_LOG_TEXT_MAX], *bytes = malloc(1 << 16), *wanted = calloc(1, HEARD_MAX);
    size_t used = 0;

    assert_true(bytes && wanted);
    for (size_t length = 0; length < PACE_LOG_TEXT_MAX; length += length % 236 < 2 ? 1 : 67) {
        for (size_t i = 0; i < length; i++)
            text[i] = i % 5 == 4 && i + 1 < length ? ' ' : (char)('a' + (i + length) % 26);
        text[length] = '\0';
        used += (size_t)sprintf(wanted + used, "0 W %s\n", text);
        pace_say(&log, PACE_WARN, "%s", text);
        ssize_t size = read(e->from, bytes, 1 << 16);

        assert_true(size > 0 && size % PACE_RELAY_FRAME == 0);
        for (ssize_t at = 0, piece; at < size; at += piece) {
            piece = 1 + (at * 7 + (ssize_t)length) % 300;
            piece = piece < size - at ? piece : size - at;
            pace_relay_reader_feed(e->reader, bytes + at, (size_t)piece);
        }
    }
    assert_string_equal(e->ear.heard, wanted);
    free(wanted);
    free(bytes);
}

static void put(ends *e, const char *text)
{
    pace_relay_reader_feed(e->reader, text, strlen(text));
}

/* One frame, as a text. */
static const char *frame(int rank, const char *kind, const char *text)
{
    static char frames[8][PACE_RELAY_FRAME + 1];
    static unsigned turn;
    char *to = frames[turn++ % 8];

    snprintf(to, PACE_RELAY_FRAME + 1, "@paceline %05d %s %-236s\n", rank, kind, text);
    assert_int_equal(strlen(to), PACE_RELAY_FRAME);
    return to;
}

static void test_lines_of_others(void **state)
{
    ends *e = *state;
    char shortened[PACE_RELAY_FRAME + 1];

    put(e, "mpirun: Forwarding signal 10 to job\n\n  \n");
    put(e, "a library without a line end ");
    put(e, frame(2, "I.", "still heard"));
    put(e, "[1,3]<stderr>:");
    put(e, frame(3, "I.", "tagged"));
    snprintf(shortened, sizeof shortened, "%.200s\n", frame(1, "E.", "too short"));
    put(e, shortened);
    put(e, frame(8, "E.", "no such rank"));
    put(e, frame(1, "Z.", "no such kind"));
    put(e, frame(1, "E!", "no such mark"));
    put(e, frame(1, "X.", "no number"));
    put(e, frame(1, "H.", "only two"));
    put(e, "@paceline\nends here");
    pace_relay_reader_end(e->reader);
    const char *heard = e->ear.heard;

    assert_non_null(strstr(heard, "other mpirun: Forwarding signal 10 to job\nother   \n"));
    assert_non_null(strstr(heard, "\n2 I still heard\n"));
    assert_non_null(strstr(heard, "\nother a library without a line end \n"));
    assert_non_null(strstr(heard, "3 I tagged\n"));
    assert_non_null(strstr(heard, "other [1,3]<stderr>:\n"));
    assert_non_null(strstr(heard, "other @paceline\nother ends here\n"));
    static const char *const refused[] = {"too short",    "no such rank", "no such kind",
                                          "no such mark", "no number",    "only two"};

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *at = strstr(heard, refused[i]);

        assert_non_null(at);
        while (at > heard && at[-1] != '\n')
            at--;
        assert_memory_equal(at, "other @paceline 0000", 20);
    }
}

/* Frames of a text that come mixed with those of other ranks. */
static void test_mixed_ranks(void **state)
{
    ends *e = *state;
    char wanted[1024];

    put(e, frame(1, "E+", "one"));
    put(e, frame(2, "W+", "two"));
    put(e, frame(1, "E.", "and more"));
    put(e, frame(3, "I.", "three"));
    put(e, "noise\n");
    put(e, frame(2, "W.", "and the rest"));
    snprintf(wanted, sizeof wanted, "1 E %-236s%s\n3 I three\nother noise\n2 W %-236s%s\n", "one", "and more",
             "two", "and the rest");
    assert_string_equal(e->ear.heard, wanted);
}

static void test_long_lines_are_cut(void **state)
{
    ends *e = *state;

    for (int i = 0; i < 3000; i++)
        put(e, "0123456789");
    put(e, frame(1, "E.", "lost with the line that it stands on"));
    put(e, frame(1, "E.", "heard"));
    const char *end = strchr(e->ear.heard, '\n');

    assert_int_equal(end - e->ear.heard, strlen("other ") + 4096);
    assert_string_equal(end, "\n1 E heard\n");
}

/* ---- records ---- */

typedef struct copy {
    int calls;
    char kind[16], phase[64];
    int64_t done, least;
    double loss, third, none;
} copy;

static void keep(void *user, const pace_record *record)
{
    copy *c = user;
    const pace_field *none = pace_record_find(record, "none");

    c->calls++;
    snprintf(c->kind, sizeof c->kind, "%s", record->kind);
    snprintf(c->phase, sizeof c->phase, "%s", pace_record_find(record, "phase")->value.text);
    c->done = pace_record_find(record, "done")->value.integer;
    c->least = pace_record_find(record, "least")->value.integer;
    c->loss = pace_record_find(record, "loss")->value.real;
    c->third = pace_record_find(record, "third")->value.real;
    c->none = none->value.real;
    assert_int_equal(none->type, PACE_FIELD_REAL);
    assert_int_equal(pace_record_find(record, "loss")->type, PACE_FIELD_REAL);
    assert_int_equal(record->count, 6);
    assert_string_equal(record->fields[2].name, "least");
}

static void emit(ends *e, const char *kind, int64_t done)
{
    pace_field fields[] = {PACE_TEXT("phase", "tr\"ain\n\xc3\xa9"),
                           PACE_INT("done", done),
                           PACE_INT("least", INT64_MIN),
                           PACE_REAL("loss", 1.0),
                           PACE_REAL("third", 1.0 / 3),
                           PACE_REAL("none", NAN)};

    pace_relay_record(&e->relay, &(pace_record){kind, 0, fields, 6});
}

static void test_records(void **state)
{
    ends *e = *state;
    copy got = {0};
    pace_sink sink = {keep, &got};

    pace_registry_attach(e->ear.registry, &sink);
    emit(e, "eval", 9007199254740993);
    carry(e);
    assert_string_equal(e->ear.heard, "0 record\n");
    assert_int_equal(got.calls, 1);
    assert_string_equal(got.kind, "eval");
    assert_string_equal(got.phase, "tr\"ain\n\xc3\xa9");
    assert_true(got.done == 9007199254740993 && got.least == INT64_MIN);
    assert_true(got.loss == 1 && got.third == 1.0 / 3 && isnan(got.none));
    assert_false(pace_relay_emit("{\"kind\":\"x\"}", e->ear.registry));
    assert_false(pace_relay_emit("{\"kind\":\"x\",\"fields\":[[\"a\",\"int\",5]]}", e->ear.registry));
    assert_false(pace_relay_emit("{\"kind\":", e->ear.registry));
    assert_false(pace_relay_emit("", e->ear.registry));
    assert_int_equal(got.calls, 1);
}

static int count_records(ends *e)
{
    int count = 0;

    carry(e);
    for (const char *at = e->ear.heard; (at = strstr(at, "record\n")); at++)
        count++;
    e->ear.used = 0;
    e->ear.heard[0] = '\0';
    return count;
}

/* A burst of progress becomes one record; what ends a phase always passes, and so do rare kinds. */
static void test_frequent_records(void **state)
{
    ends *e = *state;
    copy got = {0};
    pace_sink sink = {keep, &got};

    pace_registry_attach(e->ear.registry, &sink);
    for (int i = 0; i < 50; i++)
        emit(e, "progress", i);
    int passed = count_records(e);

    assert_true(passed >= 1 && passed < 50);
    for (int i = 0; i < 20; i++)
        emit(e, "eval", i);
    assert_int_equal(count_records(e), 20);
    pace_registry_detach(e->ear.registry, &sink);
    pace_field last[] = {PACE_INT("done", 7), PACE_INT("total", 7)};

    for (int i = 0; i < 3; i++)
        pace_relay_record(&e->relay, &(pace_record){"progress", 0, last, 2});
    assert_int_equal(count_records(e), 3);
    e->relay.rank = 1;
    emit(e, "eval", 1);
    assert_int_equal(count_records(e), 0);
}

static void test_large_records_are_left_out(void **state)
{
    ends *e = *state;
    char text[PACE_RELAY_TEXT_MAX];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    pace_field field = PACE_TEXT("phase", text);

    pace_relay_record(&e->relay, &(pace_record){"eval", 0, &field, 1});
    assert_int_equal(count_records(e), 0);
    text[sizeof text - 100] = '\0';
    pace_relay_record(&e->relay, &(pace_record){"eval", 0, &field, 1});
    assert_int_equal(count_records(e), 1);
}

/* ---- several threads, and a launcher that mixes ---- */

#define SPEAKERS 4
#define WORDS    200

static void *speak(void *user)
{
    pace_log log = {pace_relay_log, user};
    pace_relay *relay = user;

    for (int i = 0; i < WORDS; i++)
        pace_say(&log, PACE_INFO, "message %d of %d %0*d", i, relay->rank, 200 + 13 * (i % 40), i);
    return NULL;
}

/* Each rank has a pipe; whoever has something gets up to 4,096 bytes of it passed on, as launchers do. */
static void test_pieces_of_many_ranks(void **state)
{
    ends *e = *state;
    pace_relay relays[SPEAKERS];
    pthread_t threads[SPEAKERS];
    int from[SPEAKERS];
    char bytes[4096], wanted[64];

    for (int i = 0; i < SPEAKERS; i++) {
        int pair[2];

        assert_int_equal(pipe(pair), 0);
        from[i] = pair[0];
        pace_relay_init(&relays[i], pair[1]);
        relays[i].rank = i;
        assert_int_equal(pthread_create(&threads[i], NULL, speak, &relays[i]), 0);
    }
    for (int sum = 0; sum < SPEAKERS * WORDS;) {
        size_t before = e->ear.used;

        for (int i = 0; i < SPEAKERS; i++) {
            fcntl(from[i], F_SETFL, O_NONBLOCK);
            ssize_t size = read(from[i], bytes, sizeof bytes);

            if (size > 0)
                pace_relay_reader_feed(e->reader, bytes, (size_t)size);
        }
        for (size_t at = before; at < e->ear.used; at++)
            sum += e->ear.heard[at] == '\n';
    }
    for (int i = 0; i < SPEAKERS; i++) {
        pthread_join(threads[i], NULL);
        close(from[i]);
        close(relays[i].fd);
    }
    assert_null(strstr(e->ear.heard, "other"));
    for (int i = 0; i < SPEAKERS * WORDS; i++) {
        snprintf(wanted, sizeof wanted, "%d I message %d of %d ", i % SPEAKERS, i / SPEAKERS, i % SPEAKERS);
        assert_non_null(strstr(e->ear.heard, wanted));
    }
}

static void test_wanted(void **state)
{
    (void)state;
    unsetenv("PACELINE_RELAY");
    assert_false(pace_relay_wanted());
    setenv("PACELINE_RELAY", "0", 1);
    assert_false(pace_relay_wanted());
    setenv("PACELINE_RELAY", "1", 1);
    assert_true(pace_relay_wanted());
    unsetenv("PACELINE_RELAY");
}

int main(void)
{
#define RELAY_TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)
    const struct CMUnitTest tests[] = {
        RELAY_TEST(test_all_kinds),
        RELAY_TEST(test_lengths),
        RELAY_TEST(test_lines_of_others),
        RELAY_TEST(test_mixed_ranks),
        RELAY_TEST(test_long_lines_are_cut),
        RELAY_TEST(test_records),
        RELAY_TEST(test_frequent_records),
        RELAY_TEST(test_large_records_are_left_out),
        RELAY_TEST(test_pieces_of_many_ranks),
        cmocka_unit_test(test_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
