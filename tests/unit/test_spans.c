/* Spans: what is recorded, how it nests, what happens when there is no room; packed, and read by somebody else. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"
#include "threads/background.h"
#include "threads/crew.h"
#include "threads/thread.h"
#include "watch/span_pack.h"

#include <time.h>

#define RANKS 3

static pace__spans *start(size_t room)
{
    pace__spans *spans = pace__spans_create_with(8, room);

    assert_non_null(spans);
    pace__spans_join(spans, "main", -1);
    pace__spans_switch(spans, true);
    return spans;
}

static void stop(pace__spans *spans)
{
    pace__spans_leave();
    pace__spans_free(spans);
}

static pace__span_pack *packed(pace__spans *spans)
{
    pace__span_pack *pack = pace__spans_pack(spans);

    assert_non_null(pack);
    said_clear();
    assert_ok(pace__span_pack_check(pack, pack->bytes, RANKS, "a test", &said_log));
    return pack;
}

static const char *name_of(const pace__span_pack *pack, uint64_t span)
{
    return pace__packed_text(pack, pace__packed_spans(pack)[span].name);
}

static void inner(void)
{
    PACE__SPAN_OF("inner", "2 x 3", 12, 34);
}

static void outer(void)
{
    PACE__SPAN("outer");
    inner();
    {
        PACE__SPAN("block");
        inner();
    }
    inner();
}

static void test_spans_nest(void **state)
{
    static const char *const names[] = {"outer", "inner", "block", "inner", "inner", "outer"};
    static const uint32_t depths[] = {0, 1, 1, 2, 1, 0};
    pace__spans *spans = start(100);

    (void)state;
    outer();
    outer();
    pace__span_pack *pack = packed(spans);
    const pace__packed_span *span = pace__packed_spans(pack);

    assert_int_equal(pack->tracks, 1);
    assert_string_equal(pace__packed_tracks(pack)->label, "main");
    assert_int_equal(pack->spans, 10);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(name_of(pack, (uint64_t)i), names[i]);
        assert_int_equal(span[i].depth, depths[i]);
        assert_int_equal(span[i].peer, -1);
    }
    assert_string_equal(pace__packed_text(pack, span[1].shape), "2 x 3");
    assert_string_equal(pace__packed_text(pack, span[0].shape), "");
    assert_int_equal(span[1].flops, 12);
    assert_int_equal(span[1].bytes, 34);
    assert_true(span[3].begin_ns >= span[2].begin_ns && span[3].end_ns <= span[2].end_ns &&
                span[2].end_ns <= span[0].end_ns);
    free(pack);
    stop(spans);
}

static void test_nothing_is_recorded_where_nobody_wants_it(void **state)
{
    pace__spans *spans = pace__spans_create(1);

    (void)state;
    outer(); /* it has not joined */
    pace__spans_join(spans, "main", -1);
    outer(); /* it is off */
    {
        PACE__SPAN("begun before");
        pace__spans_switch(spans, true);
        inner();
        pace__spans_switch(spans, false);
        inner();
    }
    assert_ptr_equal(pace__spans_here(), spans);
    assert_int_equal(atomic_load(&pace__track_here->count), 1);
    assert_int_equal(pace__track_here->depth, 0);
    pace__spans_leave();
    assert_null(pace__spans_here());
    assert_null(pace__span_text("%d", 1));
    outer();
    assert_int_equal(atomic_load(&pace__spans_track(spans, 0)->count), 1);
    pace__spans_free(spans);
}

static void test_a_full_track_counts_what_it_drops(void **state)
{
    pace__spans *spans = start(7);

    (void)state;
    for (int i = 0; i < 4; i++)
        outer();
    pace__span_pack *pack = packed(spans);

    assert_int_equal(pack->spans, 7);
    assert_int_equal(pace__packed_tracks(pack)->dropped, 13);
    assert_int_equal(pace__track_here->depth, 0);
    free(pack);
    stop(spans);
}

static void test_what_is_under_way_ends_when_it_is_packed(void **state)
{
    pace__spans *spans = start(100);

    (void)state;
    {
        PACE__SPAN("outer");
        inner();
        pace__span_pack *pack = packed(spans);

        assert_true(pace__packed_spans(pack)[0].end_ns >= pace__packed_spans(pack)[1].end_ns);
        free(pack);
    }
    stop(spans);
}

/* --- waits --- */

static void test_turns_of_a_wait_are_one_span(void **state)
{
    pace__spans *spans = start(100);
    uint64_t now = pace__now_ns();

    (void)state;
    for (uint64_t i = 0; i < 50; i++)
        pace__span_wait(1, now + 10 * i, now + 10 * (i + 1));
    pace__span_wait(2, now + 500, now + 600);           /* somebody else */
    pace__span_wait(2, now + 10000000, now + 10000100); /* later */
    pace__span_wait(-1, now + 10000100, now + 10000200);
    {
        const pace__span *span = pace__track_here->span;

        assert_int_equal(atomic_load(&pace__track_here->count), 4);
        assert_int_equal(span[0].begin_ns, now);
        assert_int_equal(span[0].end_ns, now + 500);
        assert_int_equal(span[0].peer, 1);
        assert_int_equal(span[1].peer, 2);
        assert_int_equal(span[3].peer, -1);
    }
    stop(spans);
}

/* What was recorded in a wait is no part of it, and the wait does not reach out of what it lies in. */
static void test_waits_and_work_do_not_overlap(void **state)
{
    pace__spans *spans = start(100);
    uint64_t before = pace__now_ns();

    (void)state;
    inner();
    pace__span_wait(0, before, pace__now_ns());
    {
        PACE__SPAN("outer");
        pace__span_wait(0, before, pace__now_ns());
        pace__span_past("late", before);
    }
    pace__span_wait(0, before, before);    /* no time at all */
    pace__span_pack *pack = packed(spans); /* which looks whether they nest */

    assert_string_equal(name_of(pack, 1), "wait");
    assert_true(pace__packed_spans(pack)[1].begin_ns >= pace__packed_spans(pack)[0].end_ns);
    free(pack);
    stop(spans);
}

/* --- threads --- */

#define MANY 20000

static void many_spans(void *arg, int thread)
{
    (void)arg;
    (void)thread;
    for (int i = 0; i < MANY; i++)
        inner();
}

static pace_status many_of_a_team(void *arg, int thread)
{
    many_spans(arg, thread);
    return PACE_OK;
}

static void many_in_background(void *arg)
{
    many_spans(arg, 0);
}

/* Of inner(), in tracks of that label. */
static uint64_t spans_of(const pace__span_pack *pack, const char *label)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < pack->tracks; i++) {
        const pace__packed_track *track = &pace__packed_tracks(pack)[i];

        for (uint64_t j = 0; j < track->count && strcmp(track->label, label) == 0; j++)
            count += strcmp(name_of(pack, track->first + j), "inner") == 0;
    }
    return count;
}

static void test_threads_record_side_by_side(void **state)
{
    pace__spans *spans = start(3 * MANY);
    pace__background *background;
    pace__crew *crew;

    (void)state;
    assert_ok(pace__crew_create(3, 1, NULL, &said_log, &crew));
    assert_ok(pace__background_create(&said_log, &background));
    pace__background_start(background, many_in_background, NULL);
    pace__crew_run(crew, many_spans, NULL);
    free(packed(spans)); /* while one goes on */
    pace__background_wait(background);
    pace__crew_free(crew);
    pace__background_free(background);
    assert_ok(pace__team(3, many_of_a_team, NULL, &said_log));
    pace__span_pack *pack = packed(spans);

    assert_int_equal(spans_of(pack, "main"),
                     2 * MANY); /* as thread 0 of the crew, and as the last of the team */
    assert_int_equal(spans_of(pack, "background"), MANY);
    assert_int_equal(spans_of(pack, "thread 0"), MANY);
    assert_int_equal(spans_of(pack, "thread 1"), 2 * MANY); /* of both, one after the other */
    assert_int_equal(spans_of(pack, "thread 2"), MANY);
    assert_int_equal(pack->refused, 0);
    free(pack);
    stop(spans);
}

static pace_status stay(void *arg, int thread)
{
    (void)arg;
    (void)thread;
    inner();
    return PACE_OK;
}

static void test_threads_without_room_are_counted(void **state)
{
    pace__spans *spans = pace__spans_create_with(1, 10);

    (void)state;
    pace__spans_join(spans, "main", -1);
    pace__spans_switch(spans, true);
    assert_ok(pace__team(3, stay, NULL, &said_log));
    pace__span_pack *pack = packed(spans);

    assert_int_equal(pack->tracks, 1);
    assert_int_equal(pack->refused, 2);
    free(pack);
    stop(spans);
}

static void test_texts_stay(void **state)
{
    pace__spans *spans = start(10);
    const char *first = pace__span_text("conv%d %s", 3, "forward"), *last = first;

    (void)state;
    for (int i = 0; i < 10000 && strcmp(last, "...") != 0; i++)
        last = pace__span_text("text %d", i);
    assert_string_equal(last, "...");
    assert_string_equal(first, "conv3 forward");
    stop(spans);
}

/* --- what comes from somebody else --- */

static void expect_fault(const pace__span_pack *pack, size_t bytes, const char *fault)
{
    said_clear();
    assert_failed(pace__span_pack_check(pack, bytes, RANKS, "worker1", &said_log), PACE_BAD_DATA, fault);
}

static void test_damaged_packs_are_refused(void **state)
{
    pace__spans *spans = start(100);

    (void)state;
    outer();
    pace__span_pack *pack = packed(spans);
    pace__packed_span *span = (pace__packed_span *)pace__packed_spans(pack);
    pace__packed_track *track = (pace__packed_track *)pace__packed_tracks(pack);
    char *texts = (char *)pace__packed_text(pack, 0);

#define WITH(field, value, fault)                                                                            \
    do {                                                                                                     \
        __typeof__(field) kept = field;                                                                      \
        field = (value);                                                                                     \
        expect_fault(pack, pack->bytes, fault);                                                              \
        field = kept;                                                                                        \
    } while (0)
    expect_fault(pack, sizeof *pack - 1, "the spans of worker1 have something else");
    expect_fault(pack, (size_t)pack->bytes - 1, "another length");
    WITH(pack->mark, 1, "something else");
    WITH(pack->tracks, 2, "another length");
    WITH(pack->tracks, UINT32_MAX, "another length");
    WITH(pack->spans, UINT64_MAX, "another length");
    WITH(pack->texts_bytes, 0, "another length");
    WITH(track->count, 4, "spans of nobody");
    WITH(track->count, UINT64_MAX, "spans of nobody");
    WITH(track->first, 1, "spans of nobody");
    WITH(texts[pack->texts_bytes - 1], 'x', "texts without an end");
    WITH(span[2].name, pack->texts_bytes, "a name that is not there");
    WITH(span[2].shape, UINT32_MAX, "a name that is not there");
    WITH(span[2].peer, RANKS, "a rank that is not there");
    WITH(span[2].peer, -2, "a rank that is not there");
    WITH(span[2].depth, PACE__PACK_DEPTH_MAX, "more spans in each other");
    WITH(span[2].depth, 3, "spans that do not nest");
    WITH(span[2].begin_ns, 0, "times that go back");
    WITH(span[2].end_ns, UINT64_MAX, "spans that do not nest");
    WITH(span[2].end_ns, span[2].begin_ns - 1, "times that go back");
    memset(track->label, 'x', sizeof track->label);
    expect_fault(pack, pack->bytes, "a name without an end");
#undef WITH
    free(pack);
    stop(spans);
}

/* --- what it costs: told, not judged --- */

static double processor_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

__attribute__((noinline)) static void with_a_span(void)
{
    PACE__SPAN_OF("cost", "1 x 1", 1, 1);
    __asm__ volatile("");
}

__attribute__((noinline)) static void without_a_span(void)
{
    __asm__ volatile("");
}

static double cost_ns(void (*call)(void), int calls)
{
    double best = 1e9;

    for (int turn = 0; turn < 5; turn++) {
        double start_ns = processor_ns();

        for (int i = 0; i < calls; i++)
            call();
        best = fmin(best, (processor_ns() - start_ns) / calls);
    }
    return best;
}

static void test_cost(void **state)
{
    double bare = cost_ns(without_a_span, 1000000), off = cost_ns(with_a_span, 1000000);
    pace__spans *spans = start(500000);
    double on = cost_ns(with_a_span, 100000);

    (void)state;
    pace__spans_switch(spans, false);
    print_message("a span costs %.2f ns off, %.2f ns outside the window, %.1f ns on\n", off - bare,
                  cost_ns(with_a_span, 1000000) - bare, on - bare);
    stop(spans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_nest),
        cmocka_unit_test(test_nothing_is_recorded_where_nobody_wants_it),
        cmocka_unit_test(test_a_full_track_counts_what_it_drops),
        cmocka_unit_test(test_what_is_under_way_ends_when_it_is_packed),
        cmocka_unit_test(test_turns_of_a_wait_are_one_span),
        cmocka_unit_test(test_waits_and_work_do_not_overlap),
        cmocka_unit_test(test_threads_record_side_by_side),
        cmocka_unit_test(test_threads_without_room_are_counted),
        cmocka_unit_test(test_texts_stay),
        cmocka_unit_test(test_damaged_packs_are_refused),
        cmocka_unit_test(test_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
