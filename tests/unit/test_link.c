/* Links between threads: messages, sums, what is done while one waits. Failures: test_link_losses.c. The same over MPI: tests/mpi. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "links.h"

/* --- messages --- */

#define MESSAGES  300
#define BYTES_MAX 2000

static size_t length_of(uint64_t seed, int from, int to, int tag, int number)
{
    uint64_t place = (((uint64_t)from * RANKS_MAX + (uint64_t)to) * 16 + (uint64_t)tag) * MESSAGES;

    return pace__mix64(seed ^ pace__mix64(place + (uint64_t)number)) % (BYTES_MAX + 1);
}

static void fill(uint8_t *bytes, size_t size, int number)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + (size_t)number);
}

/* Everyone sends to everyone, itself too, with two tags, several messages under way. */
static pace_status exchange_all(job *self, pace__link *link, int rank)
{
    static const int tags[] = {0, PACE__LINK_TAGS_MAX - 1};
    pace__request out[RANKS_MAX][2] = {{{0}}}, in[RANKS_MAX][2] = {{{0}}};
    uint8_t(*buffers)[2][2][BYTES_MAX] = malloc(RANKS_MAX * sizeof *buffers), expected[BYTES_MAX];

    require(buffers != NULL);
    for (int number = 0; number < MESSAGES; number++) {
        for (int peer = 0; peer < self->size; peer++) {
            for (int t = 0; t < 2; t++) {
                size_t size = length_of(self->seed, rank, peer, tags[t], number);

                fill(buffers[peer][t][0], size, number);
                pace__link_receive(link, peer, tags[t], buffers[peer][t][1], BYTES_MAX, &in[peer][t]);
                pace__link_send(link, peer, tags[t], buffers[peer][t][0], size, &out[peer][t]);
            }
        }
        for (int peer = 0; peer < self->size; peer++) {
            for (int t = 1; t >= 0; t--) {
                size_t size = length_of(self->seed, peer, rank, tags[t], number);

                require(pace__link_wait(link, &in[peer][t], "a message") == PACE_OK);
                require(in[peer][t].bytes == size && in[peer][t].peer == peer && !in[peer][t].active);
                fill(expected, size, number);
                require(memcmp(expected, buffers[peer][t][1], size) == 0);
                require(pace__link_wait(link, &out[peer][t], "a send") == PACE_OK);
            }
        }
    }
    free(buffers);
    return PACE_OK;
}

static void everyone_sends_to_everyone(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MAX; size = size * 2 + (size == 1)) {
        uint64_t seed = (uint64_t)size * 31 + 5;

        print_message("%d ranks, seed %llu\n", size, (unsigned long long)seed);
        run_well((job){.work = exchange_all, .seed = seed}, size);
    }
}

/* Many sends of different lengths before the first receive is posted. */
static pace_status send_ahead(job *self, pace__link *link, int rank)
{
    enum { COUNT = 200 };
    static pace__request sends[COUNT];
    static uint32_t numbers[COUNT];
    uint32_t got[2];
    bool done;

    if (rank == 0) {
        for (uint32_t i = 0; i < COUNT; i++) {
            numbers[i] = i;
            pace__link_send(link, 1, 3, &numbers[i], sizeof *numbers * (i % 3 > 0), &sends[i]);
        }
        require(pace__link_done(link, &sends[0], &done) == PACE_OK && !done);
        atomic_store(&self->flag, 1);
        for (int i = 0; i < COUNT; i++)
            require(pace__link_wait(link, &sends[i], "a send") == PACE_OK);
        return PACE_OK;
    }
    await_flag(self, 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        size_t bytes = receive_now(link, i % 2 ? 0 : PACE__LINK_ANY, 3, got, sizeof got);

        require(bytes == (i % 3 > 0 ? 4 : 0));
        require(bytes == 0 || got[0] == i);
    }
    return PACE_OK;
}

static void messages_wait_in_order(void **state)
{
    (void)state;
    run_well((job){.work = send_ahead}, 2);
}

static pace_status count_anybody(job *self, pace__link *link, int rank)
{
    int next[RANKS_MAX] = {0}, message[2];
    pace__request request = {0};

    if (rank > 0) {
        for (int i = 0; i < 50; i++)
            send_now(link, 0, 1, (int[2]){rank, i}, sizeof message);
        return PACE_OK;
    }
    for (int i = 0; i < 50 * (self->size - 1); i++) {
        pace__link_receive(link, PACE__LINK_ANY, 1, message, sizeof message, &request);
        require(pace__link_wait(link, &request, "anything") == PACE_OK);
        require(request.peer == message[0] && message[1] == next[request.peer]++);
    }
    return PACE_OK;
}

static void a_receive_from_any_says_who_sent(void **state)
{
    (void)state;
    run_well((job){.work = count_anybody}, 6);
}

static void a_receive_can_be_cancelled(void **state)
{
    job self = {0};
    pace__request request = {0};
    int number = 5, got[3] = {0};
    bool done;

    (void)state;
    open_job(&self, 1, 1, LONG_NS, LONG_NS);
    pace__link_receive(self.links[0], PACE__LINK_ANY, 2, &got[0], sizeof got[0], &request);
    pace__link_cancel(self.links[0], &request);
    assert_false(request.active);
    assert_ok(pace__link_done(self.links[0], &request, &done));
    assert_true(done);
    pace__link_cancel(self.links[0], &request); /* nothing to cancel */
    pace__link_receive(self.links[0], 0, 2, &got[1], sizeof got[1], &request);
    send_now(self.links[0], 0, 2, &number, sizeof number);
    assert_ok(pace__link_wait(self.links[0], &request, "it"));
    assert_int_equal(got[0], 0);
    assert_int_equal(got[1], 5);
    pace__link_close(self.links[0]);
    pace__link_close(NULL);
}

static void a_message_without_room_is_a_bug(void **state)
{
    job self = {0};
    pace__request in = {0}, out = {0};
    char text[8] = "1234567", small[4];

    (void)state;
    open_job(&self, 1, 1, LONG_NS, LONG_NS);
    pace__link_set_name(self.links[0], 0, "chief (rank 0, host a)");
    pace__link_receive(self.links[0], 0, 2, small, sizeof small, &in);
    pace__link_send(self.links[0], 0, 2, text, sizeof text, &out);
    pace_status status = pace__link_wait(self.links[0], &in, "it");

    assert_failed(status, PACE_BUG, "a message of chief (rank 0, host a) with tag 2 is longer than 4 bytes");
    assert_int_equal(pace__link_pulse(self.links[0]),
                     PACE_BUG); /* asked again, it says the same, in silence */
    assert_string_equal(said, "");
    pace__link_fail(self.links[0], status, "told");
    pace__link_close(self.links[0]);
}

static pace_status count_traffic(job *self, pace__link *link, int rank)
{
    uint8_t bytes[100] = {0};

    (void)self;
    for (int i = 0; i < 3 && rank == 0; i++)
        send_now(link, 1, 4, bytes, 10);
    for (int i = 0; i < 3 && rank == 1; i++)
        receive_now(link, PACE__LINK_ANY, 4, bytes, sizeof bytes);
    for (int i = 0; i < 50; i++) /* signs of life do not count */
        require(pace__link_pulse(link) == PACE_OK);
    pace__traffic with_other = pace__link_traffic(link, 1 - rank, 4),
                  none = pace__link_traffic(link, rank, 4), other_tag = pace__link_traffic(link, 1 - rank, 5);

    require(with_other.messages_sent == (rank == 0 ? 3 : 0));
    require(with_other.bytes_sent == (rank == 0 ? 30 : 0));
    require(with_other.messages_received == (rank == 1 ? 3 : 0));
    require(with_other.bytes_received == (rank == 1 ? 30 : 0));
    require(none.messages_sent + none.messages_received + none.bytes_sent + none.bytes_received == 0);
    require(other_tag.messages_sent + other_tag.messages_received == 0);
    return PACE_OK;
}

static void traffic_is_counted(void **state)
{
    (void)state;
    run_well((job){.work = count_traffic}, 2);
}

/* --- sums --- */

enum { SUMS = 3, SUM_FLOATS = 1000, SUM_WORKERS = 3 };

/* Several at a time; the last rank is no worker. */
static pace_status sum_some(job *self, pace__link *link, int rank)
{
    static float all[RANKS_MAX][SUMS][SUM_FLOATS];
    pace__request requests[SUMS] = {{0}};

    (void)self;
    for (int round = 0; round < 20 && rank < SUM_WORKERS; round++) {
        for (int s = 0; s < SUMS; s++) {
            for (int i = 0; i < SUM_FLOATS; i++)
                all[rank][s][i] = (float)(i + s * 10 + rank * 100 + round);
            pace__link_sum(link, all[rank][s], s == 2 ? 0 : SUM_FLOATS, &requests[s]);
        }
        for (int s = SUMS - 1; s >= 0; s--)
            require(pace__link_wait(link, &requests[s], "a sum") == PACE_OK);
        for (int s = 0; s < 2; s++) {
            for (int i = 0; i < SUM_FLOATS; i++)
                require(all[rank][s][i] == (float)(3 * (i + s * 10 + round) + 300));
        }
    }
    return PACE_OK;
}

static void workers_sum(void **state)
{
    job self = {.work = sum_some};

    (void)state;
    open_job(&self, SUM_WORKERS + 1, SUM_WORKERS, LONG_NS, LONG_NS);
    assert_ok(run_job(&self));
    for (int i = 0; i < self.size; i++)
        pace__link_close(self.links[i]);
}

/* --- idle --- */

typedef struct idler {
    pace__link *link;
    int calls, busy, depth;
    pace_status status; /* at the 100th call */
    uint64_t began_ns;  /* the wait around it */
} idler;

static pace_status idle(void *user, bool *busy)
{
    idler *self = user;
    pace__request request = {0};
    char byte = 1;

    assert_int_equal(self->depth++, 0);
    *busy = self->calls++ < self->busy;
    if (self->calls == 50) { /* it may use the link, and even wait */
        pace__link_receive(self->link, 0, 1, &byte, 1, &request);
        send_now(self->link, 0, 1, &byte, 1);
        assert_ok(pace__link_wait(self->link, &request, "it"));
    }
    self->depth--;
    return self->calls == 100 ? self->status : PACE_OK;
}

static void waits_do_other_work(void **state)
{
    job self = {0};
    pace__request request = {0};
    char byte = 0;

    (void)state;
    open_job(&self, 1, 1, 200 * MS, 200 * MS);
    idler other = {.link = self.links[0], .busy = 80, .status = PACE_INTERRUPTED};

    pace__link_on_idle(self.links[0], idle, &other);
    pace__link_receive(self.links[0], 0, 0, &byte, 1, &request);
    assert_int_equal(pace__link_wait(self.links[0], &request, "it"), PACE_INTERRUPTED);
    assert_int_equal(other.calls, 100);
    assert_string_equal(said, "");
    pace__link_on_idle(self.links[0], NULL, NULL); /* and the wait may go on */
    send_now(self.links[0], 0, 0, &byte, 1);
    assert_ok(pace__link_wait(self.links[0], &request, "it"));
    assert_int_equal(other.calls, 100);
    pace__link_close(self.links[0]);
}

/* A wait inside the idle function is another one: it does not begin the wait around it anew. */
static pace_status wait_a_moment(void *user, bool *busy)
{
    idler *self = user;
    uint64_t began_ns = self->link->wait_began_ns;
    unsigned turns = 0;

    *busy = false;
    if (self->calls > 1)
        assert_int_equal(began_ns, self->began_ns);
    if (self->calls == 1)
        self->began_ns = began_ns;
    assert_ok(pace__link_turn(self->link, NULL, 0, "a moment", &turns));
    return ++self->calls == 100 ? PACE_INTERRUPTED : PACE_OK;
}

static void waits_in_waits_are_their_own(void **state)
{
    job self = {0};
    pace__request request = {0};
    char byte = 0;

    (void)state;
    open_job(&self, 1, 1, LONG_NS, LONG_NS);
    idler other = {.link = self.links[0]};

    pace__link_on_idle(self.links[0], wait_a_moment, &other);
    pace__link_receive(self.links[0], 0, 0, &byte, 1, &request);
    assert_int_equal(pace__link_wait(self.links[0], &request, "it"), PACE_INTERRUPTED);
    pace__link_cancel(self.links[0], &request);
    pace__link_close(self.links[0]);
}

/* --- who is who --- */

static void ranks_have_names(void **state)
{
    job self = {0};
    char text[2 * PACE__LINK_NAME_MAX];

    (void)state;
    open_job(&self, 3, 3, LONG_NS, LONG_NS);
    assert_int_equal(pace__link_size(self.links[2]), 3);
    assert_int_equal(pace__link_rank(self.links[2]), 2);
    assert_string_equal(pace__link_name(self.links[2], 1), "rank 1");
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    pace__link_set_name(self.links[2], 1, text);
    assert_int_equal(strlen(pace__link_name(self.links[2], 1)), PACE__LINK_NAME_MAX - 1);
    memcpy(text, "ps0", 4);
    pace__link_set_name(self.links[2], 1, text);
    text[0] = 'x';
    assert_string_equal(pace__link_name(self.links[2], 1), "ps0");
    for (int i = 0; i < 3; i++)
        pace__link_close(self.links[i]);
}

typedef struct environment {
    const char *set[8]; /* NAME, value, ... */
    bool launched;
    int rank, size;
} environment;

static const environment environments[] = {
    {{NULL}, false, 0, 0},
    {{"OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "4"}, true, 2, 4},
    {{"OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1", "PMIX_RANK", "0"}, true, 0, 1},
    {{"PMI_RANK", "3", "PMI_SIZE", "7"}, true, 3, 7},
    {{"PMIX_RANK", "1", "SLURM_STEP_NUM_TASKS", "5", "SLURM_PROCID", "1", "SLURM_STEP_ID", "0"}, true, 1, 5},
    {{"PMIX_RANK", "1"}, true, 1, 0},
    {{"SLURM_PROCID", "1", "SLURM_STEP_ID", "3", "SLURM_STEP_NUM_TASKS", "2"}, true, 1, 2},
    {{"SLURM_PROCID", "0", "SLURM_JOB_ID", "12", "SLURM_NTASKS", "4"}, false, 0, 0}, /* sbatch */
    {{"SLURM_PROCID", "0", "SLURM_STEP_ID", "4294967291", "SLURM_STEP_NUM_TASKS", "1"}, false, 0, 0},
    {{"SLURM_STEP_ID", "3", "SLURM_STEP_NUM_TASKS", "2"}, false, 0, 0},
    {{"OMPI_COMM_WORLD_RANK", "x", "OMPI_COMM_WORLD_SIZE", "-1"}, true, -1, 0},
    {{"PMI_RANK", "1x", "PMI_SIZE", "99999999999999999999"}, true, -1, 0},
};

static void clear_environment(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMIX_RANK",
                                        "SLURM_PROCID",
                                        "SLURM_JOB_ID",
                                        "SLURM_NTASKS",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NUM_TASKS"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static void launchers_are_recognised(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
        const environment *one = &environments[i];
        int rank = 0, size = 0;

        clear_environment();
        for (size_t v = 0; v < 8 && one->set[v]; v += 2)
            setenv(one->set[v], one->set[v + 1], 1);
        if (pace__launched(&rank, &size) != one->launched || rank != one->rank || size != one->size)
            fail_msg("environment %zu: rank %d of %d", i, rank, size);
    }
    clear_environment();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everyone_sends_to_everyone),
        cmocka_unit_test(messages_wait_in_order),
        cmocka_unit_test(a_receive_from_any_says_who_sent),
        cmocka_unit_test(a_receive_can_be_cancelled),
        cmocka_unit_test(a_message_without_room_is_a_bug),
        cmocka_unit_test(traffic_is_counted),
        cmocka_unit_test(workers_sum),
        cmocka_unit_test(waits_do_other_work),
        cmocka_unit_test(waits_in_waits_are_their_own),
        cmocka_unit_test(ranks_have_names),
        cmocka_unit_test(launchers_are_recognised),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
