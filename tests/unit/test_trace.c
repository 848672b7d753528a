/* From spans to a trace and a table: written, and read back by somebody else's parser. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"

#include "data/input/decompress.h"
#include "job/profile.h"
#include "roles/collect.h"

#include <cjson/cJSON.h>

#define BASE_NS  UINT64_C(1000000000000)
#define TEXT_MAX ((size_t)64 << 20)

static const char *const roles[] = {"chief", "worker1", "ps0"};

/* --- packs whose times are known --- */

typedef struct made {
    const char *name, *shape;
    uint32_t depth;
    int32_t peer;
    uint64_t begin_us, end_us, flops, bytes;
} made;

/* On one track; times are of a clock that is `ahead_ns` ahead. */
static pace__span_pack *make_pack(const char *label, const made *spans, size_t count, uint64_t ahead_ns)
{
    uint64_t bytes =
        sizeof(pace__span_pack) + sizeof(pace__packed_track) + count * (sizeof(pace__packed_span) + 80) + 1;
    pace__span_pack *pack = calloc(1, bytes);
    uint32_t place = 1;

    assert_non_null(pack);
    *pack = (pace__span_pack){.mark = UINT64_C(0x316e617073636170),
                              .bytes = bytes,
                              .tracks = 1,
                              .texts_bytes = (uint32_t)(count * 80 + 1),
                              .spans = count};
    pace__packed_track *track = (pace__packed_track *)pace__packed_tracks(pack);
    pace__packed_span *to = (pace__packed_span *)pace__packed_spans(pack);
    char *texts = (char *)pace__packed_text(pack, 0);

    snprintf(track->label, sizeof track->label, "%s", label);
    track->count = count;
    for (size_t i = 0; i < count; i++) {
        to[i] = (pace__packed_span){.begin_ns = BASE_NS + ahead_ns + 1000 * spans[i].begin_us,
                                    .end_ns = BASE_NS + ahead_ns + 1000 * spans[i].end_us,
                                    .flops = spans[i].flops,
                                    .bytes = spans[i].bytes,
                                    .name = place,
                                    .peer = spans[i].peer,
                                    .depth = spans[i].depth};
        place += (uint32_t)sprintf(texts + place, "%.30s", spans[i].name) + 1;
        if (spans[i].shape) {
            to[i].shape = place;
            place += (uint32_t)sprintf(texts + place, "%.30s", spans[i].shape) + 1;
        }
    }
    said_clear();
    assert_ok(pace__span_pack_check(pack, bytes, 3, "a test", &said_log));
    return pack;
}

static const made worker_spans[] = {
    {"gradient", NULL, 0, -1, 100, 300, 0, 0},
    {"X.W", "64 x 39", 1, -1, 110, 210, 200000, 0},
    {"X^T.error", "64 x 39", 1, -1, 210, 260, 20000, 400000},
    {"wait", NULL, 0, 2, 300, 500, 0, 0},
    {"a \"name\"\n\xff", NULL, 0, -1, 500, 500, 0, 0},
};

/* --- the trace --- */

static cJSON *read_trace(const char *path)
{
    pace__stream *stream;
    size_t got;
    int fd;
    char *text = malloc(TEXT_MAX + 1);

    assert_non_null(text);
    assert_ok(pace__open(path, PACE__TO_READ, &said_log, &fd));
    assert_ok(pace__stream_open(fd, path, NULL, &said_log, &stream));
    assert_ok(pace__stream_read(stream, text, TEXT_MAX, &got));
    pace__stream_close(stream);
    close(fd);
    assert_true(got < TEXT_MAX);
    text[got] = '\0';
    cJSON *trace = cJSON_Parse(text);

    assert_non_null(trace);
    free(text);
    return cJSON_GetObjectItem(trace, "traceEvents") ? trace : NULL;
}

static double number(const cJSON *event, const char *name)
{
    const cJSON *member = cJSON_GetObjectItem(event, name);

    assert_true(cJSON_IsNumber(member));
    return member->valuedouble;
}

/* The nth event of a rank with that phase and, if not NULL, name. */
static const cJSON *find_event(const cJSON *trace, const char *phase, int pid, const char *name, int nth)
{
    const cJSON *event;

    cJSON_ArrayForEach(event, cJSON_GetObjectItem(trace, "traceEvents"))
    {
        if (strcmp(cJSON_GetObjectItem(event, "ph")->valuestring, phase) == 0 &&
            number(event, "pid") == pid &&
            (!name || strcmp(cJSON_GetObjectItem(event, "name")->valuestring, name) == 0) && nth-- == 0)
            return event;
    }
    return NULL;
}

static const char *label_of(const cJSON *trace, int pid, const char *what)
{
    const cJSON *event = find_event(trace, "M", pid, what, 0);
    const cJSON *arguments = cJSON_GetObjectItem(event, "args");

    assert_non_null(event);
    const cJSON *name = cJSON_GetObjectItem(arguments, "name");

    return (name ? name : cJSON_GetObjectItem(arguments, "labels"))->valuestring;
}

static cJSON *write_trace(const char *path)
{
    pace__clock_offset none = {0}, ahead = {.offset_ns = 5000000000, .error_ns = 1500};
    pace__span_pack *chief = make_pack("main", worker_spans, 5, 0),
                    *worker = make_pack("main", worker_spans, 5, 5000000000);
    pace__trace *trace;

    assert_ok(pace__trace_begin(path, 3, roles, BASE_NS, &said_log, &trace));
    assert_ok(pace__trace_add(trace, 0, "here", chief, &none));
    assert_ok(pace__trace_add(trace, 1, NULL, worker, &ahead));
    assert_ok(pace__trace_end(trace, PACE_OK));
    free(chief);
    free(worker);
    return read_trace(path);
}

static void test_trace_is_read_back(void **state)
{
    cJSON *trace = write_trace(in(state, "trace.json.gz"));

    assert_string_equal(label_of(trace, 0, "process_name"), "chief (rank 0, host here)");
    assert_string_equal(label_of(trace, 1, "process_name"), "worker1 (rank 1)");
    assert_string_equal(label_of(trace, 1, "thread_name"), "main");
    assert_non_null(strstr(label_of(trace, 1, "process_labels"), "give or take 1.5 us"));
    for (int pid = 0; pid < 2; pid++) { /* clocks that are 5 s apart give the same times */
        const cJSON *dots = find_event(trace, "X", pid, "X.W", 0);

        assert_non_null(dots);
        assert_float_equal(number(dots, "ts"), 110, 0);
        assert_float_equal(number(dots, "dur"), 100, 0);
        assert_string_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(dots, "args"), "shape")->valuestring,
                            "64 x 39");
        assert_float_equal(number(cJSON_GetObjectItem(dots, "args"), "flops"), 200000, 0);
        assert_non_null(find_event(trace, "X", pid, "wait for ps0", 0));
        assert_non_null(find_event(trace, "X", pid, "a \"name\"\n\xef\xbf\xbd", 0));
        assert_null(find_event(trace, "X", pid, NULL, 5));
    }
    cJSON_Delete(trace);
}

/* More than fits into what is compressed at a time. */
static void test_long_traces_are_whole(void **state)
{
    enum { COUNT = 20000 };
    made *spans = calloc(COUNT, sizeof *spans);
    pace__trace *trace;

    for (uint64_t i = 0; i < COUNT; i++)
        spans[i] = (made){"op", "1 x 1", 0, -1, 2 * i, 2 * i + 1, i, 0};
    pace__span_pack *pack = make_pack("main", spans, COUNT, 0);
    const char *path = in(state, "trace.json.gz");

    assert_ok(pace__trace_begin(path, 3, roles, BASE_NS, &said_log, &trace));
    assert_ok(pace__trace_add(trace, 2, NULL, pack, &(pace__clock_offset){0}));
    assert_ok(pace__trace_end(trace, PACE_OK));
    cJSON *read = read_trace(path);
    double sum = 0;
    const cJSON *event;

    cJSON_ArrayForEach(event, cJSON_GetObjectItem(read, "traceEvents")) sum +=
        cJSON_GetObjectItem(event, "ts") ? number(event, "ts") : 0;
    assert_float_equal(sum, (double)COUNT * (COUNT - 1), 0);
    cJSON_Delete(read);
    free(pack);
    free(spans);
}

static void test_a_trace_that_failed_is_not_there(void **state)
{
    pace__trace *trace;

    assert_ok(pace__trace_begin(in(state, "trace.json.gz"), 3, roles, BASE_NS, &said_log, &trace));
    assert_int_equal(pace__trace_end(trace, PACE_FAILED), PACE_FAILED);
    assert_false(pace__exists(in(state, "trace.json.gz")));
    assert_int_equal(pace__trace_end(NULL, PACE_IO), PACE_IO);
}

/* --- the table --- */

static const pace__op *find(const pace__ops *ops, const char *name)
{
    for (uint32_t i = 0; i < ops->count; i++) {
        if (strcmp(ops->op[i].name, name) == 0)
            return &ops->op[i];
    }
    return NULL;
}

static void test_ops_add_up(void **state)
{
    pace__ops *ops = pace__ops_create();
    pace__span_pack *pack = make_pack("main", worker_spans, 5, 0),
                    *behind = make_pack("background", worker_spans, 2, 0);
    pace__peak peak = {.gflops = 4, .gbytes_s = 16};
    bool is_flops;
    double of_peak;

    (void)state;
    pace__ops_add(ops, "workers", roles, pack);
    pace__ops_add(ops, "workers", roles, pack);
    pace__ops_add(ops, "workers", roles, behind);
    assert_int_equal(ops->groups, 2);
    assert_string_equal(ops->group[1].name, "workers, background");
    assert_int_equal(ops->group[0].tracks, 2);
    assert_int_equal(ops->group[0].recorded_ns, 2 * 400000);
    const pace__op *gradient = find(ops, "gradient"), *dots = find(ops, "X.W"),
                   *back = find(ops, "X^T.error");

    assert_int_equal(gradient->calls, 2);
    assert_int_equal(gradient->total_ns, 2 * 200000);
    assert_int_equal(gradient->self_ns, 2 * 50000); /* without what is inside */
    assert_string_equal(dots->shape, "64 x 39");
    assert_int_equal(find(ops, "wait for ps0")->total_ns, 2 * 200000);
    assert_float_equal(pace__op_rate(dots, &peak, &is_flops, &of_peak), 2, 1e-9);
    assert_true(is_flops);
    assert_float_equal(of_peak, 0.5, 1e-9);
    assert_float_equal(pace__op_rate(back, &peak, &is_flops, &of_peak), 8, 1e-9);
    assert_false(is_flops);
    assert_float_equal(of_peak, 0.5, 1e-9);
    assert_float_equal(pace__op_rate(gradient, &peak, &is_flops, &of_peak), 0, 0);
    double gbytes_s, all_ns = (double)(dots->self_ns + back->self_ns);

    assert_float_equal(pace__ops_memory_share(ops, "workers", &peak, &gbytes_s),
                       (double)back->self_ns / all_ns, 1e-9); /* of all but waits */
    assert_float_equal(gbytes_s, 8, 1e-9);
    for (int i = 0; i < 3; i++) {
        peak.gbytes_s = (double[]){17, 6, 0}[i]; /* slower than memory; out of caches; not known */
        assert_float_equal(pace__ops_memory_share(ops, "workers", &peak, &gbytes_s), 0, 0);
    }
    free(behind);
    free(pack);
    free(ops);
}

static void test_ops_as_json(void **state)
{
    pace__ops *ops = pace__ops_create();
    pace__span_pack *pack = make_pack("main", worker_spans, 5, 0);
    pace__json json = {.text = malloc(PACE__OPS_JSON_BYTES), .capacity = PACE__OPS_JSON_BYTES - 1};
    const cJSON *op;
    double shares = 0, last = 1;

    (void)state;
    pace__ops_add(ops, "workers", roles, pack);
    pace__json_raw(&json, "{");
    pace__ops_put(&json, ops, &(pace__peak){0});
    pace__json_raw(&json, "}");
    assert_true(json.size < json.capacity);
    json.text[json.size] = '\0';
    cJSON *read = cJSON_Parse(json.text);
    const cJSON *group = cJSON_GetArrayItem(cJSON_GetObjectItem(read, "groups"), 0),
                *all = cJSON_GetObjectItem(group, "ops");

    assert_non_null(group);
    assert_int_equal(cJSON_GetArraySize(all), 6); /* and what is in no span */
    cJSON_ArrayForEach(op, all)
    {
        double share = number(op, "share");

        if (cJSON_GetObjectItem(op, "calls")->valueint > 0) {
            assert_true(share <= last); /* the longest first */
            last = share;
        }
        assert_null(cJSON_GetObjectItem(op, "of_peak"));
        shares += share;
    }
    assert_float_equal(shares, 1, 1e-9);
    cJSON_Delete(read);
    free(json.text);
    free(pack);
    free(ops);
}

/* Operations that there is no room for are counted; the rest of the table is right. */
static void test_too_many_ops(void **state)
{
    enum { COUNT = PACE__OPS_MAX + 100 };
    made *spans = calloc(COUNT, sizeof *spans);
    char(*names)[16] = calloc(COUNT, sizeof *names);
    pace__ops *ops = pace__ops_create();

    (void)state;
    for (uint64_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "op %d", (int)i);
        spans[i] = (made){names[i], NULL, i % 2 ? 1 : 0, -1, 2 * i - i % 2 * 2, 2 * i + 2 - i % 2 * 2, 0, 0};
        if (i % 2)
            spans[i].end_us = spans[i - 1].end_us;
    }
    pace__span_pack *pack = make_pack("main", spans, COUNT, 0);
    pace__json json = {0};

    pace__ops_add(ops, "workers", roles, pack);
    assert_int_equal(ops->count, PACE__OPS_MAX);
    assert_int_equal(ops->more, 100);
    pace__ops_put(&json, ops, &(pace__peak){0});
    assert_true(json.size < PACE__OPS_JSON_BYTES);
    free(pack);
    free(ops);
    free(names);
    free(spans);
}

/* --- windows and clocks --- */

static void expect_window(uint64_t first, uint64_t last, uint64_t wanted, uint64_t begin, uint64_t end)
{
    uint64_t window[2];

    pace__profile_window(first, last, wanted, window);
    assert_int_equal(window[0], begin);
    assert_int_equal(window[1], end);
}

static void test_windows(void **state)
{
    (void)state;
    expect_window(0, 1000, 100, 10, 110);
    expect_window(500, 1000, 100, 510, 610);
    expect_window(0, 50, 100, 5, 50);
    expect_window(0, 5, 100, 0, 5);
    expect_window(0, 1000, UINT64_MAX, 10, 1000);
    expect_window(7, 7, 100, 7, 7);
}

static void test_clocks(void **state)
{
    uint64_t best_ns = UINT64_MAX;
    pace__clock_offset clock = {0};

    (void)state;
    pace__clock_judge(1000, 3000, 5000000, &best_ns, &clock);
    assert_int_equal(clock.offset_ns, 4998000);
    assert_int_equal(clock.error_ns, 1000);
    pace__clock_judge(10000, 10100, 5008030, &best_ns, &clock); /* quicker, and so surer */
    assert_int_equal(clock.offset_ns, 4997980);
    assert_int_equal(clock.error_ns, 50);
    pace__clock_judge(20000, 29000, 1, &best_ns, &clock);
    assert_int_equal(clock.offset_ns, 4997980);
    best_ns = UINT64_MAX;
    pace__clock_judge(1000000, 1000100, 50, &best_ns, &clock); /* behind */
    assert_int_equal(clock.offset_ns, -1000000);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(test_trace_is_read_back),
        IN_DIRECTORY(test_long_traces_are_whole),
        IN_DIRECTORY(test_a_trace_that_failed_is_not_there),
        cmocka_unit_test(test_ops_add_up),
        cmocka_unit_test(test_ops_as_json),
        cmocka_unit_test(test_too_many_ops),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_clocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
