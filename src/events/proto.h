/*
 * proto.h - messages of protocol buffers, written field by field into a buffer of fixed size, and the frame of a TFRecord
 * around each.
 *
 *     pace__proto out = {bytes, sizeof bytes};
 *     size_t record = pace__proto_record_begin(&out);
 *     pace__proto_real(&out, 1, 0.5);
 *     size_t inner = pace__proto_begin(&out, 5);       // a message in a message
 *     pace__proto_text(&out, 1, "brain", 5);
 *     pace__proto_end(&out, inner);
 *     pace__proto_record_end(&out, record);            // out.size <= out.capacity: all of it is there
 *
 * Like the JSON writer (base/json.h) it never writes beyond the buffer, and counts what it would have needed: without a
 * buffer it only measures. What is begun last is ended first.
 */
#ifndef EVENTS_PROTO_H
#define EVENTS_PROTO_H

#include <stddef.h>
#include <stdint.h>

typedef struct pace__proto {
    uint8_t *bytes;
    size_t capacity;
    size_t size; /* above capacity: it was cut, and is worth nothing */
} pace__proto;

void pace__proto_number(pace__proto *out, unsigned field, uint64_t value); /* integers, enums, bool */
void pace__proto_real(pace__proto *out, unsigned field, double value);
void pace__proto_single(pace__proto *out, unsigned field, float value);

/* Readers refuse a message whose text is no UTF-8: each byte that is none becomes a question mark. */
void pace__proto_text(pace__proto *out, unsigned field, const char *text, size_t size);

/* A message as a field: what is written until its end. Returns what the end wants to know. */
size_t pace__proto_begin(pace__proto *out, unsigned field);
void pace__proto_end(pace__proto *out, size_t begun);

/* u64 length, its checksum; the message; its checksum. */
size_t pace__proto_record_begin(pace__proto *out);
void pace__proto_record_end(pace__proto *out, size_t begun);

#endif
