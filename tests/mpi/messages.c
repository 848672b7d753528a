/* Messages over MPI between a few ranks: order, lengths, tags, any sender, oneself, big ones, sums. */
#include "ranks.h"

#define RANKS_MAX 16
#define MESSAGES  100
#define BIG_BYTES ((size_t)6 << 20)

static size_t length_of(int from, int to, int tag, int number, size_t limit)
{
    uint64_t x = (((uint64_t)from * RANKS_MAX + (uint64_t)to) * 16 + (uint64_t)tag) * MESSAGES;

    return (x + (uint64_t)number) * 0x9e3779b97f4a7c15u % (limit + 1);
}

static uint8_t byte_of(int from, int number, size_t at)
{
    return (uint8_t)((size_t)from * 3 + (size_t)number * 5 + at * 7 + (at >> 8));
}

typedef struct lane {
    pace__request in, out;
    uint8_t *in_bytes, *out_bytes;
} lane;

static void begin_lane(pace__link *link, lane *with, int peer, int tag, int number, size_t limit)
{
    int rank = pace__link_rank(link);
    size_t size = length_of(rank, peer, tag, number, limit);

    for (size_t i = 0; i < size; i++)
        with->out_bytes[i] = byte_of(rank, number, i);
    pace__link_receive(link, peer, tag, with->in_bytes, limit, &with->in);
    pace__link_send(link, peer, tag, with->out_bytes, size, &with->out);
}

static void end_lane(pace__link *link, lane *with, int peer, int tag, int number, size_t limit)
{
    size_t size = length_of(peer, pace__link_rank(link), tag, number, limit);

    require(pace__link_wait(link, &with->in, "a message") == PACE_OK);
    require(with->in.bytes == size && with->in.peer == peer);
    for (size_t i = 0; i < size; i++)
        require(with->in_bytes[i] == byte_of(peer, number, i));
    require(pace__link_wait(link, &with->out, "a send") == PACE_OK);
}

/* All ranks with all, themselves too, at the same time. */
static void exchange(pace__link *link, int messages, size_t limit)
{
    static const int tags[] = {0, PACE__LINK_TAGS_MAX - 1};
    int size = pace__link_size(link);
    lane lanes[RANKS_MAX][2] = {{{{0}}}};

    for (int i = 0; i < 2 * size; i++) {
        lanes[i / 2][i % 2].in_bytes = malloc(limit);
        lanes[i / 2][i % 2].out_bytes = malloc(limit);
        require(lanes[i / 2][i % 2].in_bytes && lanes[i / 2][i % 2].out_bytes);
    }
    for (int number = 0; number < messages; number++) {
        for (int i = 0; i < 2 * size; i++)
            begin_lane(link, &lanes[i / 2][i % 2], i / 2, tags[i % 2], number, limit);
        for (int i = 2 * size - 1; i >= 0; i--)
            end_lane(link, &lanes[i / 2][i % 2], i / 2, tags[i % 2], number, limit);
    }
    for (int i = 0; i < 2 * size; i++) {
        free(lanes[i / 2][i % 2].in_bytes);
        free(lanes[i / 2][i % 2].out_bytes);
    }
}

/* Several under way in one direction: they come in the order they were sent. */
static void keep_order(pace__link *link)
{
    int rank = pace__link_rank(link), size = pace__link_size(link), numbers[MESSAGES], got;
    pace__request out[MESSAGES] = {{0}};

    for (int i = 0; i < MESSAGES; i++) {
        numbers[i] = i;
        pace__link_send(link, (rank + 1) % size, 2, &numbers[i], sizeof got, &out[i]);
    }
    for (int i = 0; i < MESSAGES; i++) {
        require(receive_now(link, (rank + size - 1) % size, 2, &got, sizeof got) == sizeof got);
        require(got == i);
    }
    for (int i = 0; i < MESSAGES; i++)
        require(pace__link_wait(link, &out[i], "a send") == PACE_OK);
}

static void receive_from_any(pace__link *link)
{
    int rank = pace__link_rank(link), size = pace__link_size(link), next[RANKS_MAX] = {0}, got[2];
    pace__request in = {0};

    for (int i = 0; i < MESSAGES && rank > 0; i++)
        send_now(link, 0, 3, (int[2]){rank, i}, sizeof got);
    for (int i = 0; i < MESSAGES * (size - 1) && rank == 0; i++) {
        pace__link_receive(link, PACE__LINK_ANY, 3, got, sizeof got, &in);
        require(pace__link_wait(link, &in, "anything") == PACE_OK);
        require(in.bytes == sizeof got && got[0] == in.peer && got[1] == next[in.peer]++);
    }
}

static void cancel(pace__link *link)
{
    pace__request in = {0};
    int never = 0;

    pace__link_receive(link, PACE__LINK_ANY, 4, &never, sizeof never, &in);
    pace__link_cancel(link, &in);
    require(!in.active && never == 0);
}

static void count_traffic(pace__link *link)
{
    int rank = pace__link_rank(link), size = pace__link_size(link);
    pace__traffic out = pace__link_traffic(link, (rank + 1) % size, 2),
                  in = pace__link_traffic(link, (rank + size - 1) % size, 2);

    require(out.messages_sent == MESSAGES && out.bytes_sent == MESSAGES * sizeof(int));
    require(in.messages_received == MESSAGES && in.bytes_received == MESSAGES * sizeof(int));
}

/* The last rank is no worker, if there are several. */
static void sum(pace__link *link, int workers)
{
    enum { COUNT = 30000 };
    static float floats[3][COUNT];
    pace__request requests[3] = {{0}};
    int rank = pace__link_rank(link);

    if (rank >= workers)
        return;
    for (int s = 0; s < 3; s++) {
        for (int i = 0; i < COUNT; i++)
            floats[s][i] = (float)(i % 100 + s + rank);
        pace__link_sum(link, floats[s], COUNT, &requests[s]);
    }
    for (int s = 2; s >= 0; s--) {
        require(pace__link_wait(link, &requests[s], "a sum") == PACE_OK);
        for (int i = 0; i < COUNT; i++)
            require(floats[s][i] == (float)((i % 100 + s) * workers + workers * (workers - 1) / 2));
    }
}

int main(int argc, char **argv)
{
    int ranks = argc == 2 ? atoi(argv[1]) : 0, workers = ranks > 1 ? ranks - 1 : 1, rank, size;
    bool launched = pace__launched(&rank, &size);
    pace__link *link = open_link(workers, LONG_NS);

    require(pace__link_size(link) == ranks && ranks <= RANKS_MAX);
    require(launched && rank == pace__link_rank(link) && size == ranks);
    exchange(link, MESSAGES, 3000);
    exchange(link, 2, BIG_BYTES);
    keep_order(link);
    receive_from_any(link);
    cancel(link);
    count_traffic(link);
    sum(link, workers);
    pace__link_close(link);
    return 0;
}
