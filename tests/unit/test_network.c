/* What round trips between machines say of their network. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "plan/network.h"

#include <math.h>
#include <string.h>

#define MIB 1048576.0

static void is_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * wanted))
        fail_msg("%g instead of %g", value, wanted);
}

/* A link of so many bytes a second, 100 us away. */
static pace__echo echo_of(int peer, double bytes_s)
{
    return (pace__echo){peer, 200e-6, (uint64_t)MIB, 200e-6 + 2 * MIB / bytes_s};
}

static void a_link_is_what_a_large_message_takes_longer(void **state)
{
    pace__echo echo = echo_of(1, 12.5e6);
    pace__network network;

    (void)state;
    assert_true(pace__network_of(&echo, 1, &network));
    is_near(network.link_bytes_s, 12.5e6);
    is_near(network.latency_s, 100e-6);
    assert_int_equal(network.links, 1);
}

/* The slowest of several is known, and changes nothing. */
static void the_usual_link_counts(void **state)
{
    pace__echo echoes[] = {echo_of(1, 125e6), echo_of(2, 1e6), echo_of(3, 120e6)};
    pace__network network;

    (void)state;
    assert_true(pace__network_of(echoes, 3, &network));
    is_near(network.link_bytes_s, 120e6);
    assert_int_equal(network.slowest, 2);
    is_near(network.slowest_bytes_s, 1e6);
    assert_true(pace__network_of(echoes, 2, &network));
    is_near(network.link_bytes_s, 63e6);
}

/* A large message that is back before a small one: no speed follows from that. */
static void what_cannot_be_is_left_out(void **state)
{
    pace__echo echoes[] = {{1, 200e-6, 4096, 150e-6}, echo_of(2, 1e9)};
    pace__network network = {.links = 7};

    (void)state;
    assert_false(pace__network_of(echoes, 1, &network));
    assert_int_equal(network.links, 7);
    assert_false(pace__network_of(NULL, 0, &network));
    assert_true(pace__network_of(echoes, 2, &network));
    assert_int_equal(network.links, 1);
    assert_int_equal(network.slowest, 2);
}

static void the_usual_trip_is_that_of_a_quarter(void **state)
{
    double one[] = {3}, eight[] = {9, 2, 8, 3, 7, 4, 6, 100};

    (void)state;
    is_near(pace__usual_trip(one, 1), 3);
    is_near(pace__usual_trip(eight, 8), 4);
}

/* --- records --- */

typedef struct heard {
    pace__echo echo;
    int count;
} heard;

static void hear(void *user, const pace_record *record)
{
    heard *self = user;

    self->count += pace__echo_from(record, &self->echo);
}

static void records_are_read_back(void **state)
{
    pace_registry *registry = pace_registry_create();
    heard all = {0};
    pace_sink sink = {hear, &all};
    pace__echo echo = echo_of(3, 1e8);
    pace_field strange[] = {PACE_INT("peer", 1), PACE_REAL("small_s", 1e-3)};

    (void)state;
    pace_registry_attach(registry, &sink);
    pace__echo_emit(&echo, registry);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.echo.peer, 3);
    assert_true(all.echo.large_bytes == echo.large_bytes && all.echo.small_s == echo.small_s &&
                all.echo.large_s == echo.large_s);
    pace_registry_emit(registry, "ping", strange, 2);
    pace_registry_emit(registry, "ping", NULL, 0);
    echo.peer = 0; /* rank 0 itself */
    pace__echo_emit(&echo, registry);
    echo.peer = PACE__PING_HOSTS_MAX;
    pace__echo_emit(&echo, registry);
    echo = echo_of(1, 1e8);
    echo.small_s = NAN;
    pace__echo_emit(&echo, registry);
    echo.small_s = -1;
    pace__echo_emit(&echo, registry);
    echo = echo_of(1, 1e8);
    echo.large_bytes = 0;
    pace__echo_emit(&echo, registry);
    assert_int_equal(all.count, 1);
    pace_registry_free(registry);
}

static void words_say_how_it_is_known(void **state)
{
    pace__machine machine = {.link_bytes_s = 11.7e6, .latency_s = 43e-6};
    pace__given given = {.link_by = PACE__MEASURED, .latency_by = PACE__MEASURED};
    char text[PACE__NETWORK_TEXT];

    (void)state;
    assert_string_equal(pace__network_words(&machine, &given, text),
                        "0.0936 Gbit/s and 43 us between machines (measured)");
    given.latency_by = PACE__GIVEN;
    assert_string_equal(pace__network_words(&machine, &given, text),
                        "0.0936 Gbit/s (measured) and 43 us (given) between machines");
    assert_string_equal(pace__network_words(&machine, &(pace__given){0}, text),
                        "0.0936 Gbit/s and 43 us between machines (assumed)");
}

/* --- what is not asked --- */

/* Nothing is started for what is given, or where there is one machine. */
static void nobody_is_asked_for_what_is_known(void **state)
{
    pace__network_plan plan = {.hosts = "/nowhere/hosts", .launcher = "/nowhere/mpirun"};
    pace__given given = {
        .link_bytes_s = 1, .link_by = PACE__GIVEN, .latency_s = 2, .latency_by = PACE__GIVEN};

    (void)state;
    assert_int_equal(pace__network_learn(&plan, NULL, &given), PACE_OK);
    assert_true(given.link_bytes_s == 1 && given.latency_s == 2);
    plan.hosts = NULL;
    given = (pace__given){0};
    assert_int_equal(pace__network_learn(&plan, NULL, &given), PACE_OK);
    assert_int_equal(given.link_by, PACE__ASSUMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_is_what_a_large_message_takes_longer),
        cmocka_unit_test(the_usual_link_counts),
        cmocka_unit_test(what_cannot_be_is_left_out),
        cmocka_unit_test(the_usual_trip_is_that_of_a_quarter),
        cmocka_unit_test(records_are_read_back),
        cmocka_unit_test(words_say_how_it_is_known),
        cmocka_unit_test(nobody_is_asked_for_what_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
