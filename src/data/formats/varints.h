/* varints.h - lists of packed varints, as tf.Example has its ids (data/input/tfrecord.h). Internal to tfrecord.c. */
#ifndef DATA_FORMATS_VARINTS_H
#define DATA_FORMATS_VARINTS_H

#include "base/cpu.h"
#include "data/input/tfrecord.h"

typedef enum pace__packed { PACE__PACKED_SOUND, PACE__PACKED_TOO_MANY, PACE__PACKED_MALFORMED } pace__packed;

typedef struct pace__varint_kernels {
    /* At most `room` ids. 64 bytes behind the list are readable: they are at least in a chunk's slack. */
    pace__packed (*unpack)(pace__span packed, uint64_t *ids, size_t room, size_t *count);
} pace__varint_kernels;

PACE__TABLES(pace__varint_kernels, pace__varints)

#endif
