/*
 * Any bytes as what a launcher's pipe carries: frames of ranks, whole or in pieces, and lines of others, of which
 * some tell how a job ended. What is handed over is of a rank that exists, one line, and no longer than ranks
 * write; the same bytes in pieces of any size hand over the same. And any bytes as the supervisor's orders.
 * The first byte is the size of pieces, the rest is the stream.
 */
#include "launch/internal.h"
#include "launch/orders.h"

#include "fuzzing.h"

#include <stdlib.h>

#define RANKS 5

typedef struct ear {
    pace_registry *registry;
    pace__obituary obituary;
    uint64_t heard; /* a hash of all that was */
} ear;

static void note(ear *self, const char *text)
{
    for (; *text; text++) {
        assert(*text != '\n' && *text != '\r');
        self->heard = (self->heard ^ (unsigned char)*text) * 0x100000001b3u;
    }
    self->heard = (self->heard ^ 10) * 0x100000001b3u;
}

static void hear(void *user, const pace_relay_message *message)
{
    ear *self = user;

    assert(message->rank >= 0 && message->rank < RANKS);
    switch (message->kind) {
    case PACE_RELAY_HELLO:
        assert(*message->hello.host && *message->hello.job && *message->hello.version);
        note(self, message->hello.host);
        break;
    case PACE_RELAY_LOG:
        assert(message->level <= PACE_INFO && strlen(message->text) <= PACE_RELAY_TEXT_MAX);
        note(self, message->text);
        break;
    case PACE_RELAY_RECORD:
        note(self, pace_relay_emit(message->text, self->registry) ? "record" : "none");
        break;
    case PACE_RELAY_EXIT:
        note(self, "exit");
        break;
    }
}

static void hear_other(void *user, const char *line)
{
    ear *self = user;
    pace__event event = {0};

    assert(*line);
    note(self, line);
    if (pace__event_line(line, &event))
        assert(event.kind <= PACE__EVENT_NO_DAEMON);
    pace__obituary_line(&self->obituary, line);
    assert(self->obituary.code_count >= 0 && self->obituary.code_count <= PACE__LAUNCHED_MAX);
    for (int rank = 0; rank < RANKS; rank++)
        (void)pace__obituary_fits(&self->obituary, rank);
}

static void take_record(void *user, const pace_record *record)
{
    (void)user;
    assert(record->kind);
    for (size_t i = 0; i < record->count; i++)
        assert(record->fields[i].name &&
               (record->fields[i].type != PACE_FIELD_TEXT || record->fields[i].value.text));
}

static uint64_t read_stream(const uint8_t *data, size_t size, size_t piece)
{
    static ear self;
    pace_sink sink = {take_record, NULL};

    self = (ear){.registry = pace_registry_create(), .obituary.ranks = RANKS};
    pace_relay_target target = {hear, hear_other, &self};
    pace_relay_reader *reader = pace_relay_reader_create(RANKS, &target);

    assert(reader && self.registry);
    pace_registry_attach(self.registry, &sink);
    for (size_t at = 0; at < size; at += piece)
        pace_relay_reader_feed(reader, (const char *)data + at, size - at < piece ? size - at : piece);
    pace_relay_reader_end(reader);
    pace_relay_reader_free(reader);
    pace_registry_free(self.registry);
    return self.heard;
}

static void read_orders(const uint8_t *data, size_t size)
{
    unnamed file = unnamed_make(data, size);
    pace__orders orders = {.fd = file.fd};
    int rank = -1;

    assert(lseek(file.fd, 0, SEEK_SET) == 0);
    while (orders.fd >= 0) {
        if (pace__orders_next(&orders, &rank))
            assert(rank >= 0 && rank < PACE_RELAY_RANKS_MAX);
    }
    close(file.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t piece;

    take(&data, &size, &piece, sizeof piece);
    uint64_t whole = read_stream(data, size, size + 1);

    assert(read_stream(data, size, (size_t)piece + 1) == whole);
    read_orders(data, size);
    return 0;
}
