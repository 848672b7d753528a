/*
 * The first byte chooses what the rest is: the head of an IDX file, the size of a CIFAR file and its name, the
 * tf.Example of a record, or the head of a JPEG or PNG file. What is taken for good must be within its bounds.
 */
#include "data/picture/pictures_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_idx(const uint8_t *data, size_t size)
{
    pace__idx_head head;

    if (pace__idx_parse(data, size, &head))
        return;
    assert(pace__is_idx(data, size) && head.bytes <= size && head.bytes <= PACE__IDX_HEAD_MAX);
    assert(head.item >= 1 && head.item <= PACE__PICTURE_BYTES_MAX);
    assert(head.total == head.bytes + head.item * head.size[0]);
    assert(head.dimensions == 1 || (head.size[1] > 0 && head.size[2] > 0));
}

static void try_cifar(const uint8_t *data, size_t size)
{
    pace__cifar_shape shape;
    uint64_t bytes;
    char name[64] = "";

    if (size < sizeof bytes)
        return;
    memcpy(&bytes, data, sizeof bytes);
    bytes >>= 8; /* of a file */
    memcpy(name, data + sizeof bytes, size - sizeof bytes < 63 ? size - sizeof bytes : 63);
    if (!pace__cifar_parse(name, bytes, &shape))
        assert(shape.count >= 1 && shape.count * (PACE__CIFAR_PIXELS + shape.labels) == bytes);
}

static void try_example(const uint8_t *data, size_t size)
{
    pace__picture_example example;

    if (pace__picture_example_parse((pace__span){data, data + size}, &example))
        return;
    assert(example.encoded.at >= data && example.encoded.end <= data + size);
    assert(example.text.at <= example.text.end && example.text.end <= data + size);
    assert(example.label != PACE__LABEL_NONE);
    if (example.raw)
        assert((uint64_t)example.height * example.width * example.channels ==
               pace__span_size(example.encoded));
    else
        pace__picture_colours(example.encoded.at, pace__span_size(example.encoded));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    switch (data[0] & 3) {
    case 0:
        try_idx(data + 1, size - 1);
        break;
    case 1:
        try_cifar(data + 1, size - 1);
        break;
    case 2:
        try_example(data + 1, size - 1);
        break;
    default:
        assert(pace__picture_colours(data + 1, size - 1) <= PACE__COLOURS_SOME);
    }
    return 0;
}
