/* What the bytes of containers and of pictures in them say. Pure: no files. */
#include "data/picture/picture.h"
#include "data/picture/pictures_internal.h"

#include <strings.h>

#define IDX_BYTES_TYPE  8
#define PNG_COLOUR_TYPE 25 /* where it is */

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

const char *pace__file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* --- IDX --- */

bool pace__is_idx(const void *bytes, size_t size)
{
    const uint8_t *head = bytes;

    return size >= 4 && head[0] == 0 && head[1] == 0 && head[2] == IDX_BYTES_TYPE &&
           (head[3] == 1 || head[3] == 3 || head[3] == 4);
}

const char *pace__idx_parse(const void *bytes, size_t size, pace__idx_head *head)
{
    const uint8_t *at = bytes;
    unsigned __int128 item = 1;

    if (!pace__is_idx(bytes, size))
        return "no IDX file of bytes with 1, 3 or 4 dimensions";
    *head = (pace__idx_head){.dimensions = at[3], .bytes = 4 + 4u * at[3]};
    if (size < head->bytes)
        return "ends within its head";
    for (unsigned i = 0; i < head->dimensions; i++) {
        head->size[i] = big_endian(at + 4 + (size_t)4 * i);
        item *= i > 0 ? head->size[i] : 1;
        if (i > 0 && head->size[i] == 0)
            return "a side of its pictures is 0";
        if (item > PACE__PICTURE_BYTES_MAX)
            return "its pictures are larger than the limit";
    }
    if (head->dimensions > 1 && (head->size[1] > PACE__FILE_SIDE_MAX || head->size[2] > PACE__FILE_SIDE_MAX))
        return "its pictures are larger than the limit";
    if (head->dimensions == 4 && head->size[3] != 1 && head->size[3] != 3)
        return "its pictures have neither 1 nor 3 channels";
    head->item = (uint64_t)item;
    head->total = head->bytes + (uint64_t)item * head->size[0];
    return NULL;
}

/* --- CIFAR --- */

/* The length of a name without .gz or .zst. */
static size_t bare_length(const char *name)
{
    size_t size = strlen(name);

    if (size > 3 && strcmp(name + size - 3, ".gz") == 0)
        return size - 3;
    return size > 4 && strcmp(name + size - 4, ".zst") == 0 ? size - 4 : size;
}

static bool bare_is(const char *name, const char *wanted)
{
    size_t size = bare_length(name);

    return size == strlen(wanted) && memcmp(name, wanted, size) == 0;
}

static bool is_cifar_100_name(const char *name)
{
    return bare_is(name, "train.bin") || bare_is(name, "test.bin");
}

bool pace__is_cifar_name(const char *name)
{
    size_t size = bare_length(name);
    bool batch =
        strncmp(name, "data_batch_", 11) == 0 && size > 15 && memcmp(name + size - 4, ".bin", 4) == 0;

    return batch || bare_is(name, "test_batch.bin") || is_cifar_100_name(name);
}

const char *pace__cifar_parse(const char *name, uint64_t bytes, pace__cifar_shape *shape)
{
    /* A size that fits both decides nothing: then the name does. */
    bool fine = is_cifar_100_name(name);

    if (bytes == 0)
        return "empty";
    for (int turn = 0; turn < 2; turn++, fine = !fine) {
        uint64_t record = PACE__CIFAR_PIXELS + (fine ? 2 : 1);

        if (bytes % record == 0) {
            *shape = (pace__cifar_shape){fine ? 2 : 1, fine ? 100 : 10, bytes / record};
            return NULL;
        }
        if (pace__is_cifar_name(name))
            return fine ? "its size is no multiple of 3074 bytes: cut short, or no CIFAR-100 file"
                        : "its size is no multiple of 3073 bytes: cut short, or no CIFAR-10 file";
    }
    return "its size is no multiple of 3073 or 3074 bytes: cut short, or no CIFAR file";
}

/* --- tf.Example --- */

enum { HEIGHT, WIDTH, CHANNELS, LABEL, NUMBERS };

typedef struct example {
    pace__span encoded, text;
    int encoded_rank; /* of the feature that it comes from; 0: none */
    int64_t numbers[NUMBERS];
    int number_rank[NUMBERS];
    const char *reason;
} example;

static const struct {
    const char *name;
    int what, rank; /* with two of the same, the higher rank counts */
} number_names[] = {
    {"image/height", HEIGHT, 2}, {"height", HEIGHT, 1},           {"image/width", WIDTH, 2},
    {"width", WIDTH, 1},         {"image/channels", CHANNELS, 3}, {"channels", CHANNELS, 2},
    {"depth", CHANNELS, 1},      {"image/class/label", LABEL, 2}, {"label", LABEL, 1},
};

static const struct {
    const char *name;
    int rank;
} encoded_names[] = {{"image/encoded", 3}, {"image_raw", 2}, {"image", 1}};

/* One value, of a list of bytes. */
static bool take_bytes(pace__span feature, pace__span *value)
{
    pace__span list;
    uint64_t kind;
    pace__wire_field field;
    bool found = false;

    if (pace__tf_list(feature, 1u << PACE__TF_BYTES, &list, &kind) != PACE__TF_SOUND)
        return false;
    while (list.at < list.end) {
        if (!pace__wire_next(&list, &field) || (field.number == 1 && found))
            return false;
        if (field.number == 1 && field.type == PACE__WIRE_BYTES) {
            *value = field.bytes;
            found = true;
        }
    }
    return found;
}

/* One value, of a list of int64, packed or not. */
static bool take_integer(pace__span feature, int64_t *value)
{
    pace__span list;
    uint64_t kind, bits = 0;
    pace__wire_field field;
    size_t found = 0;

    if (pace__tf_list(feature, 1u << PACE__TF_INTEGERS, &list, &kind) != PACE__TF_SOUND)
        return false;
    while (list.at < list.end) {
        if (!pace__wire_next(&list, &field))
            return false;
        if (field.number != 1)
            continue;
        if (field.type == PACE__WIRE_VARINT) {
            bits = field.scalar;
            found++;
        }
        for (; field.bytes.at < field.bytes.end; found++) {
            if (!pace__wire_varint(&field.bytes, &bits))
                return false;
        }
    }
    *value = (int64_t)bits;
    return found == 1;
}

static bool take_feature(void *user, pace__span name, pace__span feature)
{
    example *self = user;

    for (size_t i = 0; i < sizeof number_names / sizeof *number_names; i++) {
        int what = number_names[i].what, rank = number_names[i].rank;

        if (!pace__span_is(name, number_names[i].name) || rank <= self->number_rank[what])
            continue;
        if (!take_integer(feature, &self->numbers[what])) {
            self->reason = what == LABEL ? "its label is not one int64" : "a side of it is not one int64";
            return false;
        }
        self->number_rank[what] = rank;
    }
    for (size_t i = 0; i < sizeof encoded_names / sizeof *encoded_names; i++) {
        int rank = encoded_names[i].rank;

        if (!pace__span_is(name, encoded_names[i].name) || rank <= self->encoded_rank)
            continue;
        if (!take_bytes(feature, &self->encoded)) {
            self->reason = "its picture is not one text of bytes";
            return false;
        }
        self->encoded_rank = rank;
    }
    if (pace__span_is(name, "image/class/text") && !take_bytes(feature, &self->text))
        self->text = (pace__span){name.end, name.end};
    return true;
}

static const char *check_pixels(const example *found, pace__picture_example *made)
{
    const int64_t *numbers = found->numbers;
    int64_t channels = found->number_rank[CHANNELS] ? numbers[CHANNELS] : 0;
    size_t size = pace__span_size(found->encoded);

    if (!found->number_rank[HEIGHT] || !found->number_rank[WIDTH])
        return "its picture is neither JPEG nor PNG, and its height and width are not told";
    if (numbers[HEIGHT] < 1 || numbers[HEIGHT] > PACE__FILE_SIDE_MAX || numbers[WIDTH] < 1 ||
        numbers[WIDTH] > PACE__FILE_SIDE_MAX)
        return "its height or width is out of range";
    uint64_t pixels = (uint64_t)numbers[HEIGHT] * (uint64_t)numbers[WIDTH];

    if (channels == 0)
        channels = size == 3 * pixels ? 3 : 1;
    if (channels != 1 && channels != 3)
        return "it has neither 1 nor 3 channels";
    if (size != pixels * (uint64_t)channels)
        return "its bytes are not as many as its height, width and channels say";
    made->raw = true;
    made->height = (uint32_t)numbers[HEIGHT];
    made->width = (uint32_t)numbers[WIDTH];
    made->channels = (uint32_t)channels;
    return NULL;
}

const char *pace__picture_example_parse(pace__span data, pace__picture_example *made)
{
    example found = {.text = {data.end, data.end}};
    bool malformed;

    if (!pace__tf_visit(data, take_feature, &found, &malformed))
        return malformed || !found.reason ? "malformed tf.Example message" : found.reason;
    if (!found.encoded_rank)
        return "it has none of the features image/encoded, image_raw and image";
    if (!found.number_rank[LABEL])
        return "it has neither of the features image/class/label and label";
    if (found.numbers[LABEL] == PACE__LABEL_NONE)
        return "its label is out of range";
    *made =
        (pace__picture_example){.encoded = found.encoded, .label = found.numbers[LABEL], .text = found.text};
    return pace__is_picture(found.encoded.at, pace__span_size(found.encoded)) ? NULL
                                                                              : check_pixels(&found, made);
}

const char *pace__picture_record_parse(pace__span data, pace__picture_example *made)
{
    return pace__record_is_sound(data.at, pace__span_size(data))
               ? pace__picture_example_parse(data, made)
               : "the checksum of its data is wrong: damaged";
}

/* --- files --- */

bool pace__is_picture_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && dot > name &&
           (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 || strcasecmp(dot, ".png") == 0);
}

/* The number of components is in the frame header, behind segments that are skipped. */
static int jpeg_colours(const uint8_t *bytes, size_t size)
{
    for (size_t at = 2; at + 10 <= size;) {
        uint8_t marker = bytes[at + 1];

        if (bytes[at] != 0xff)
            return PACE__COLOURS_UNKNOWN;
        if (marker == 0xff) {
            at++;
            continue;
        }
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc)
            return bytes[at + 9] == 1 ? PACE__COLOURS_NONE : PACE__COLOURS_SOME;
        at += 2 + ((size_t)bytes[at + 2] << 8 | bytes[at + 3]);
    }
    return PACE__COLOURS_UNKNOWN;
}

int pace__picture_colours(const uint8_t *bytes, size_t size)
{
    if (!pace__is_picture(bytes, size))
        return PACE__COLOURS_UNKNOWN;
    if (bytes[0] == 0xff)
        return jpeg_colours(bytes, size);
    if (size <= PNG_COLOUR_TYPE)
        return PACE__COLOURS_UNKNOWN;
    return bytes[PNG_COLOUR_TYPE] & 2 ? PACE__COLOURS_SOME : PACE__COLOURS_NONE; /* a palette, too */
}
