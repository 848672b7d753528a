/* The registry: who is told what, in which order, and from several threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <paceline/registry.h>
#include <pthread.h>
#include <string.h>

typedef struct listener {
    char name;
    char *heard; /* all listeners append to one text: the order of the calls */
    int64_t sum;
    int calls;
} listener;

static void listen(void *user, const pace_record *record)
{
    listener *self = user;
    size_t length = strlen(self->heard);

    self->heard[length] = self->name;
    self->heard[length + 1] = '\0';
    self->sum += pace_record_find(record, "value")->value.integer;
    self->calls++;
}

static void emit_value(pace_registry *registry, int64_t value)
{
    pace_field fields[] = {PACE_TEXT("phase", "x"), PACE_INT("value", value)};

    pace_registry_emit(registry, "progress", fields, 2);
}

static void test_sinks_are_called_in_order(void **state)
{
    char heard[64] = "";
    listener a = {'a', heard, 0, 0}, b = {'b', heard, 0, 0}, c = {'c', heard, 0, 0};
    pace_sink sinks[] = {{listen, &a}, {listen, &b}, {listen, &c}};
    pace_registry *registry = pace_registry_create();

    (void)state;
    assert_non_null(registry);
    emit_value(registry, 1); /* nobody listens */
    for (int i = 0; i < 3; i++)
        pace_registry_attach(registry, &sinks[i]);
    emit_value(registry, 10);
    pace_registry_detach(registry, &sinks[1]);
    emit_value(registry, 100);
    pace_registry_detach(registry, &sinks[1]); /* not attached any more: nothing happens */
    pace_registry_attach(registry, &sinks[1]);
    emit_value(registry, 1000);
    assert_string_equal(heard, "abcacacb");
    assert_int_equal(a.sum, 1110);
    assert_int_equal(b.sum, 1010);
    assert_int_equal(c.sum, 1110);
    pace_registry_free(registry);
}

static void check_record(void *user, const pace_record *record)
{
    double *last = user;

    assert_string_equal(record->kind, "step");
    assert_int_equal(record->count, 3);
    assert_true(record->seconds >= *last); /* the clock never runs backwards */
    *last = record->seconds;
    assert_int_equal(pace_record_find(record, "step")->value.integer, 7);
    assert_true(pace_record_find(record, "loss")->type == PACE_FIELD_REAL);
    assert_true(pace_record_find(record, "loss")->value.real == 0.25);
    assert_string_equal(pace_record_find(record, "set")->value.text, "test");
    assert_null(pace_record_find(record, "los"));
    assert_null(pace_record_find(record, ""));
}

static void test_records_arrive_whole(void **state)
{
    double last = 0;
    pace_sink sink = {check_record, &last};
    pace_registry *registry = pace_registry_create();
    pace_field fields[] = {PACE_INT("step", 7), PACE_REAL("loss", 0.25), PACE_TEXT("set", "test")};

    (void)state;
    pace_registry_attach(registry, &sink);
    for (int i = 0; i < 3; i++)
        pace_registry_emit(registry, "step", fields, 3);
    assert_true(last > 0);
    pace_registry_free(registry);
}

static void test_nobody_is_fine(void **state)
{
    (void)state;
    emit_value(NULL, 1);
    pace_registry_free(NULL);
}

enum { THREADS = 4, ROUNDS = 2000 };

/* No lock of its own: the registry promises one call at a time. Under a thread sanitizer a broken promise is
 * a report. */
typedef struct counter {
    int64_t sum, calls;
} counter;

static void count_up(void *user, const pace_record *record)
{
    counter *self = user;

    self->sum += pace_record_find(record, "value")->value.integer;
    self->calls++;
}

static void *emit_many(void *registry)
{
    for (int i = 1; i <= ROUNDS; i++)
        emit_value(registry, i);
    return NULL;
}

static void *come_and_go(void *registry)
{
    counter own = {0};
    pace_sink sink = {count_up, &own};

    for (int i = 0; i < ROUNDS / 10; i++) {
        pace_registry_attach(registry, &sink);
        pace_registry_detach(registry, &sink);
    }
    return NULL;
}

static void test_threads(void **state)
{
    counter first = {0}, second = {0};
    pace_sink sinks[] = {{count_up, &first}, {count_up, &second}};
    pace_registry *registry = pace_registry_create();
    pthread_t emitters[THREADS], visitor;

    (void)state;
    pace_registry_attach(registry, &sinks[0]);
    pace_registry_attach(registry, &sinks[1]);
    assert_int_equal(pthread_create(&visitor, NULL, come_and_go, registry), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&emitters[i], NULL, emit_many, registry), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(emitters[i], NULL);
    pthread_join(visitor, NULL);
    assert_int_equal(first.calls, THREADS * ROUNDS);
    assert_int_equal(second.calls, THREADS * ROUNDS);
    assert_int_equal(first.sum, (int64_t)THREADS * ROUNDS * (ROUNDS + 1) / 2);
    assert_int_equal(second.sum, first.sum);
    pace_registry_free(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sinks_are_called_in_order),
        cmocka_unit_test(test_records_arrive_whole),
        cmocka_unit_test(test_nobody_is_fine),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
