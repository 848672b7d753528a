/*
 * Damaged data sets: refused with a message, or every row that is read is in range. Damage outside of the
 * arrays is always refused, before HDF5 sees it.
 *
 * The sets are made here, those of clicks by prep; an input says what to do to their files. The bits of its
 * first byte choose the set (1; with 8 it is the one of texts, with 16 that of pictures or, with 1,
 * features), whether checksums.json gets a right checksum of itself again (2), and whether rows are read by
 * a reader or a slice (4). Then come changes: a byte with the file (its lower 7 bits) and whether to cut it
 * (the highest), the offset in two bytes, and, unless it is cut there, the number of bytes and the bytes to
 * put there.
 *
 * With PACE_FUZZ_UNSEALED in the environment checksums.json is left out: what HDF5 does with damaged files.
 * That finds faults of HDF5, and is no part of the tests.
 */
#include "data/picture/class_names.h"
#include "data/picture/image_names.h"
#include "data/store/reader.h"
#include "data/store/slice.h"
#include "data/store/sums.h"
#include "data/text/vocabulary.h"
#include "files/file.h"

#include <assert.h>
#include <math.h>
#include <paceline/prep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define SETS       5
#define TEXTS      2 /* the set of texts */
#define PICTURES   3 /* and of pictures; behind it, of features */
#define FILES      4 /* of clicks and texts */
#define FILES_MAX  5
#define FILE_MAX   (1 << 16)
#define SUMS       0 /* checksums.json in file_names */
#define SUM_BYTES  32
#define RAW_ROWS   24
#define HEX_BEHIND 3 /* bytes behind the digits of the checksum of itself */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The numbers that checksums.h gives the others. */
static const char *const file_names[FILES] = {"checksums.json", "ids.h5", "part-00000.h5", "part-00001.h5"};
static const char *const text_file_names[FILES] = {"checksums.json", PACE__VOCABULARY_NAME, "part-00000.h5",
                                                   "part-00001.h5"};
static const char *const picture_file_names[FILES_MAX] = {
    "checksums.json", PACE__CLASS_NAMES_FILE, "part-00000.h5", "part-00001.h5", PACE__IMAGE_NAMES_FILE};

typedef struct image {
    char *path;
    uint8_t *bytes; /* as prep wrote it */
    size_t size;
    bool changed; /* on disk */
} image;

typedef struct sample {
    char *directory;
    image files[FILES_MAX];
    unsigned file_count;
    pace__checksums sums;
} sample;

typedef struct stage {
    char root[64];
    sample sets[SETS];
    bool unsealed;
} stage;

static stage *the_stage; /* made once: fuzz targets have no other place for it */

/* --- the sets --- */

static void say(void *user, pace_level level, const char *text)
{
    (void)user;
    fprintf(stderr, "%d %s\n", (int)level, text);
}

static const pace_log stderr_log = {.write = say};

static void write_raw(const char *path, int format)
{
    FILE *file = fopen(path, "w");

    assert(file);
    for (int row = 0; row < RAW_ROWS; row++) {
        fprintf(file, "%d", row % 3 == 0);
        for (int i = 0; i < 39 && format == PACE_FORMAT_CRITEO; i++)
            fprintf(file, i < 13 ? "\t%d" : "\t%08x", row * i % 5);
        for (int i = 0; i < row % 4 && format == PACE_FORMAT_SVMLIGHT; i++)
            fprintf(file, " %d:%g", 1 + row % 5 + 3 * i, 0.5 + i);
        fprintf(file, "\n");
    }
    assert(fclose(file) == 0);
}

/* The set as it is on disk. */
static void remember(sample *self, const char *const *names, unsigned count)
{
    self->file_count = count;
    assert(pace__checksums_read(self->directory, &self->sums, &stderr_log) == PACE_OK);
    assert(self->sums.count == count - 1);
    for (unsigned i = 0; i < count; i++) {
        image *file = &self->files[i];
        char *bytes;

        file->path = pace__format("%s/%s", self->directory, names[i]);
        assert(pace__read_file(file->path, FILE_MAX, &bytes, &file->size, &stderr_log) == PACE_OK);
        file->bytes = (uint8_t *)bytes;
    }
}

static void make_sample(sample *self, const char *root, int format)
{
    char *raw = pace__format("%s/raw", root);
    const char *inputs[] = {raw};

    self->directory = pace__format("%s/set%d", root, format);
    pace_prep_clicks_config config = {.common.inputs = {inputs, 1},
                                      .common.output = self->directory,
                                      .format = format,
                                      .features = format == PACE_FORMAT_CRITEO ? 5000 : 0,
                                      .common.holdout = 0.25,
                                      .common.threads = 1,
                                      .common.memory = 128000000,
                                      .common.parts = 2,
                                      .common.seed = 1};
    pace_prep_clicks_result result;

    write_raw(raw, format);
    assert(pace_prep_clicks(&config, &stderr_log, NULL, &result) == PACE_OK);
    remember(self, file_names, FILES);
    free(raw);
}

static void finish_sums(const pace__store_info *info, const pace__part *part)
{
    for (int set = 0; set < PACE__SETS; set++)
        assert(pace__sums_again(info, part, set, 0, part->sets[set].rows, &stderr_log) == PACE_OK);
}

#define TEXT_ROWS   6 /* of each set in each part */
#define TEXT_LENGTH 4

static void write_texts(const pace__part *part, int set)
{
    uint8_t label[TEXT_ROWS];
    uint32_t ids[TEXT_ROWS * TEXT_LENGTH] = {0}, length[TEXT_ROWS];
    const pace__part_set *to = &part->sets[set];

    for (uint32_t row = 0; row < TEXT_ROWS; row++) {
        label[row] = row % 2;
        length[row] = 1 + row % TEXT_LENGTH;
        for (uint32_t i = 0; i < length[row]; i++)
            ids[row * TEXT_LENGTH + i] = 1 + (row + i) % 5;
    }
    assert(pace__pwrite_all(part->fd, label, sizeof label, to->label_at, "", NULL) == PACE_OK);
    assert(pace__pwrite_all(part->fd, ids, sizeof ids, to->ids_at, "", NULL) == PACE_OK);
    assert(pace__pwrite_all(part->fd, length, sizeof length, to->length_at, "", NULL) == PACE_OK);
}

static void write_text_part(const sample *self, const pace__store_info *info, uint32_t index)
{
    pace__part part = {.fd = -1};

    for (int set = 0; set < PACE__SETS; set++) {
        part.sets[set].rows = TEXT_ROWS;
        part.sets[set].lead = index * TEXT_ROWS;
        part.sets[set].entries = (uint64_t)TEXT_ROWS * TEXT_LENGTH;
    }
    assert(pace__part_create(self->directory, index, info, &part, &stderr_log) == PACE_OK);
    for (int set = 0; set < PACE__SETS; set++)
        write_texts(&part, set);
    finish_sums(info, &part);
    pace__part_close(&part);
}

static void make_texts(sample *self, const char *root)
{
    static const pace__word words[] = {{"good", 4, 9}, {"bad", 3, 7}, {"book", 4, 2}}, stop = {"the", 3, 0};
    pace__vocabulary *vocabulary;

    self->directory = pace__format("%s/texts", root);
    assert(pace__make_dirs(self->directory, &stderr_log) == PACE_OK);
    assert(pace__vocabulary_create(words, 3, &stop, 1, &stderr_log, &vocabulary) == PACE_OK);
    pace__store_info info = {.encoding = {.kind = PACE__TEXT,
                                          .features = pace__vocabulary_ids(vocabulary),
                                          .length = TEXT_LENGTH,
                                          .vocabulary = pace__vocabulary_checksum(vocabulary)},
                             .columns = TEXT_LENGTH,
                             .ids_seen = pace__vocabulary_ids(vocabulary),
                             .row_entries_max = TEXT_LENGTH,
                             .parts = 2,
                             .command = "fuzz"};

    for (int set = 0; set < PACE__SETS; set++) {
        info.rows[set] = 2 * TEXT_ROWS;
        info.entries[set] = info.rows[set] * TEXT_LENGTH;
        info.positives[set] = TEXT_ROWS;
    }
    assert(pace__vocabulary_write(vocabulary, self->directory, &stderr_log) == PACE_OK);
    for (uint32_t i = 0; i < 2; i++)
        write_text_part(self, &info, i);
    pace__vocabulary_free(vocabulary);
    assert(pace__store_seal(self->directory, &stderr_log) == PACE_OK);
    remember(self, text_file_names, FILES);
}

#define PICTURE_ROWS    5 /* of each set in each part */
#define PICTURE_COLUMNS 12
#define CLASSES         3

static void write_pictures(const pace__part *part, int set)
{
    uint16_t label[PICTURE_ROWS];
    uint32_t source[PICTURE_ROWS];
    uint8_t pixels[PICTURE_ROWS * PICTURE_COLUMNS];
    float features[PICTURE_ROWS * PICTURE_COLUMNS];
    const pace__part_set *to = &part->sets[set];

    for (uint32_t row = 0; row < PICTURE_ROWS; row++) {
        label[row] = row % CLASSES;
        source[row] = row;
    }
    for (uint32_t i = 0; i < PICTURE_ROWS * PICTURE_COLUMNS; i++) {
        pixels[i] = (uint8_t)(i * 3);
        features[i] = (float)i / 4 - 3;
    }
    assert(pace__pwrite_all(part->fd, label, sizeof label, to->label_at, "", NULL) == PACE_OK);
    assert(pace__pwrite_all(part->fd, source, sizeof source, to->source_at, "", NULL) == PACE_OK);
    if (to->pixels_at)
        assert(pace__pwrite_all(part->fd, pixels, sizeof pixels, to->pixels_at, "", NULL) == PACE_OK);
    else
        assert(pace__pwrite_all(part->fd, features, sizeof features, to->features_at, "", NULL) == PACE_OK);
}

static void write_picture_part(const sample *self, const pace__store_info *info, uint32_t index)
{
    pace__part part = {.fd = -1};

    for (int set = 0; set < PACE__SETS; set++) {
        part.sets[set].rows = PICTURE_ROWS;
        part.sets[set].entries = (uint64_t)PICTURE_ROWS * PICTURE_COLUMNS;
    }
    assert(pace__part_create(self->directory, index, info, &part, &stderr_log) == PACE_OK);
    for (int set = 0; set < PACE__SETS; set++)
        write_pictures(&part, set);
    finish_sums(info, &part);
    pace__part_close(&part);
}

static void make_pictures(sample *self, const char *root, int kind)
{
    static const char classes[] = "cat\ndog\nsnow leopard\n",
                      images[] = "a.jpg\nb.jpg\nc.png\nd.jpg\ne.jpg\n";
    pace__class_names names;

    self->directory = pace__format("%s/%s", root, kind == PACE__IMAGE ? "pictures" : "features");
    char *path = pace__format("%s/" PACE__IMAGE_NAMES_FILE, self->directory);

    assert(pace__make_dirs(self->directory, &stderr_log) == PACE_OK);
    assert(pace__class_names_parse(classes, sizeof classes - 1, "", &stderr_log, &names) == PACE_OK);
    assert(pace__class_names_write(self->directory, &names, &stderr_log) == PACE_OK);
    assert(pace__write_file_atomically(path, images, sizeof images - 1, &stderr_log) == PACE_OK);
    pace__store_info info = {.encoding = {.features = kind == PACE__IMAGE ? 0 : PICTURE_COLUMNS,
                                          .height = 2,
                                          .width = 2,
                                          .channels = 3,
                                          .classes = CLASSES,
                                          .class_names = pace__class_names_checksum(&names)},
                             .columns = PICTURE_COLUMNS,
                             .row_entries_max = PICTURE_COLUMNS,
                             .parts = 2,
                             .command = "fuzz"};

    info.encoding.kind = kind;
    for (int set = 0; set < PACE__SETS; set++) {
        info.rows[set] = 2 * PICTURE_ROWS;
        info.entries[set] = info.rows[set] * PICTURE_COLUMNS;
        info.positives[set] = 4;
    }
    for (uint32_t i = 0; i < 2; i++)
        write_picture_part(self, &info, i);
    pace__class_names_release(&names);
    assert(pace__store_seal(self->directory, &stderr_log) == PACE_OK);
    remember(self, picture_file_names, FILES_MAX);
    free(path);
}

static void remove_stage(void)
{
    pace__remove_tree(the_stage->root, &stderr_log);
    for (int set = 0; set < SETS; set++) {
        for (int i = 0; i < FILES_MAX; i++) {
            free(the_stage->sets[set].files[i].path);
            free(the_stage->sets[set].files[i].bytes);
        }
        free(the_stage->sets[set].directory);
        pace__checksums_release(&the_stage->sets[set].sums);
    }
    free(the_stage);
}

static void make_stage(void)
{
    the_stage = calloc(1, sizeof *the_stage);
    assert(the_stage);
    bool in_memory = access("/dev/shm", W_OK) == 0;

    snprintf(the_stage->root, sizeof the_stage->root, "%s/paceline-fuzz.XXXXXX",
             in_memory ? "/dev/shm" : "/tmp");
    assert(mkdtemp(the_stage->root));
    atexit(remove_stage);
    make_sample(&the_stage->sets[0], the_stage->root, PACE_FORMAT_CRITEO);
    make_sample(&the_stage->sets[1], the_stage->root, PACE_FORMAT_SVMLIGHT);
    make_texts(&the_stage->sets[TEXTS], the_stage->root);
    make_pictures(&the_stage->sets[PICTURES], the_stage->root, PACE__IMAGE);
    make_pictures(&the_stage->sets[PICTURES + 1], the_stage->root, PACE__FEATURES);
    the_stage->unsealed = getenv("PACE_FUZZ_UNSEALED") != NULL;
    for (int i = 0; i < SETS && the_stage->unsealed; i++)
        unlink(the_stage->sets[i].files[SUMS].path);
}

/* --- changes --- */

static void put_file(const image *file, const uint8_t *bytes, size_t size)
{
    FILE *out = fopen(file->path, "wb");

    assert(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0);
}

/* A changed copy of a file. */
typedef struct change {
    uint8_t bytes[FILE_MAX];
    size_t size;
    bool used;
} change;

static change *change_of(change *changes, const sample *set, unsigned file)
{
    change *self = &changes[file];

    if (!self->used) {
        memcpy(self->bytes, set->files[file].bytes, set->files[file].size);
        self->size = set->files[file].size;
        self->used = true;
    }
    return self;
}

static void read_changes(change *changes, const sample *set, const uint8_t *data, size_t size)
{
    while (size >= 3) {
        change *to = change_of(changes, set, (data[0] & 127u) % set->file_count);
        bool cut = data[0] & 128;
        size_t at = (data[1] | (size_t)data[2] << 8) % (to->size + 1), count = 0;

        data += 3;
        size -= 3;
        if (cut) {
            to->size = at;
            continue;
        }
        if (size > 0) {
            count = data[0];
            data++;
            size--;
        }
        count = count < size ? count : size;
        count = count < to->size - at ? count : to->size - at;
        memcpy(to->bytes + at, data, count);
        data += count;
        size -= count;
    }
}

/* Puts the right digits into the last line of checksums.json. */
static void sign_again(change *sums)
{
    static const char key[] = "\"checksum\":\"";
    size_t ending = sizeof key - 1 + SUM_BYTES + HEX_BEHIND;
    char digits[SUM_BYTES + 1];

    if (!sums->used || sums->size < ending)
        return;
    uint8_t *line = sums->bytes + sums->size - ending;
    XXH128_hash_t hash = XXH3_128bits(sums->bytes, sums->size - ending);

    memcpy(line, key, sizeof key - 1);
    snprintf(digits, sizeof digits, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    memcpy(line + sizeof key - 1, digits, SUM_BYTES);
    memcpy(line + ending - HEX_BEHIND, "\"}\n", HEX_BEHIND);
}

static bool in_array(const pace__file_sum *sum, size_t at)
{
    for (unsigned i = 0; i < sum->arrays; i++) {
        if (at >= sum->array[i].at && at - sum->array[i].at < sum->array[i].bytes)
            return true;
    }
    return false;
}

/* True if something has changed that the checksums cover. `is_signed`: checksums.json may be another one that
 * means the same. */
static bool is_covered(const sample *set, const change *changes, bool is_signed)
{
    for (unsigned file = is_signed ? SUMS + 1 : SUMS; file < set->file_count; file++) {
        const image *from = &set->files[file];
        const change *to = &changes[file];

        if (!to->used)
            continue;
        if (to->size != from->size)
            return true;
        for (size_t at = 0; at < from->size; at++) {
            if (to->bytes[at] != from->bytes[at] &&
                (file == SUMS || !in_array(&set->sums.files[file - 1], at)))
                return true;
        }
    }
    return false;
}

static void apply(sample *set, const change *changes, bool unsealed)
{
    for (unsigned file = unsealed; file < set->file_count; file++) {
        image *to = &set->files[file];

        if (changes[file].used)
            put_file(to, changes[file].bytes, changes[file].size);
        else if (to->changed)
            put_file(to, to->bytes, to->size);
        to->changed = changes[file].used;
    }
}

/* --- reading --- */

typedef struct messages {
    const char *directory;
    int errors;
} messages;

static void check_message(void *user, pace_level level, const char *text)
{
    messages *self = user;

    self->errors += level == PACE_ERROR;
    assert(strncmp(text, self->directory, strlen(self->directory)) == 0);
    for (; *text; text++)
        assert((unsigned char)*text >= 0x20); /* a message is one line */
}

static void check_pictures(const pace__store *store, const pace__rows *rows)
{
    size_t entries = rows->rows * rows->columns;
    uint64_t sum = 0;

    for (size_t i = 0; i < rows->rows; i++) {
        assert(rows->classes[i] < store->info.encoding.classes);
        sum += rows->source[i];
    }
    for (size_t i = 0; i < entries && rows->pixels; i++)
        sum += rows->pixels[i];
    for (size_t i = 0; i < entries && rows->features; i++)
        assert(isfinite(rows->features[i]));
    (void)sum;
}

static void check_rows(const pace__store *store, const pace__rows *rows)
{
    if (rows->classes) {
        check_pictures(store, rows);
        return;
    }
    uint64_t at = rows->columns ? 0 : rows->start[0];
    uint64_t end = rows->columns ? rows->rows * rows->columns : rows->start[rows->rows];

    for (size_t i = 0; i < rows->rows; i++)
        assert(rows->label[i] <= 1 && (rows->columns || rows->start[i] <= rows->start[i + 1]));
    for (size_t i = 0; i < rows->rows && rows->length; i++)
        assert(rows->length[i] >= 1 && rows->length[i] <= rows->columns);
    for (; at < end; at++) {
        assert(rows->ids[at] + (rows->length != NULL) <= store->info.ids_seen);
        assert(!rows->values || isfinite(rows->values[at]));
    }
}

static pace_status read_slice(const pace__store *store, int set, const pace_log *log)
{
    uint64_t rows = store->info.rows[set];
    pace__slice slice;
    pace_status status = pace__slice_init(&slice, store, set, 1, rows, log);

    if (status)
        return status;
    status = pace__slice_read(&slice, 0, rows);
    if (!status)
        check_rows(store, &slice.rows);
    pace__slice_release(&slice);
    return status;
}

static pace_status read_pieces(const pace__store *store, int set, const pace_log *log)
{
    pace__reader_plan plan = {
        .set = set, .batch = 7, .seed = 1, .last = store->info.rows[set], .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;
    pace_status status = pace__reader_create(store, &plan, log, &reader);

    if (status)
        return status;
    while (!(status = pace__reader_next(reader, 0, &piece)) && piece)
        check_rows(store, &piece->rows);
    pace__reader_free(reader);
    return status;
}

static void check_status(pace_status status, messages *said)
{
    assert(status == PACE_OK || status == PACE_BAD_DATA);
    assert(said->errors == (status != PACE_OK));
    said->errors = 0;
}

static void read_original_ids(const pace__store *store, messages *said, const pace_log *log)
{
    uint64_t *ids = NULL;
    pace_status status = pace__store_read_ids(store, &ids, log);

    check_status(status, said);
    for (uint32_t i = 0; !status && i < store->info.ids_seen; i++)
        assert(ids[i] < store->info.encoding.features);
    free(ids);
}

static void read_names(const pace__store *store, messages *said, const pace_log *log)
{
    char *names[2] = {0};

    check_status(pace__image_names_read(store->path, (uint32_t[]){4, 1}, 2, log, names), said);
    pace__image_names_free(names, 2);
}

static void read_all(const sample *from, bool by_slice, bool must_fail)
{
    messages said = {.directory = from->directory};
    pace_log log = {check_message, &said};
    pace__store store;
    pace_status status = pace__store_open(from->directory, &store, &log);

    check_status(status, &said);
    assert(status || !must_fail);
    if (status)
        return;
    for (int set = 0; set < PACE__SETS; set++)
        check_status(by_slice ? read_slice(&store, set, &log) : read_pieces(&store, set, &log), &said);
    read_original_ids(&store, &said, &log);
    if (store.info.encoding.kind == PACE__IMAGE || store.info.encoding.kind == PACE__FEATURES)
        read_names(&store, &said, &log);
    pace__store_close(&store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static change changes[FILES_MAX];

    if (!the_stage)
        make_stage();
    if (size == 0)
        return 0;
    int which = data[0] & 16 ? PICTURES + (data[0] & 1) : data[0] & 8 ? TEXTS : data[0] & 1;
    sample *set = &the_stage->sets[which];

    for (int file = 0; file < FILES_MAX; file++)
        changes[file].used = false;
    read_changes(changes, set, data + 1, size - 1);
    bool is_signed = data[0] & 2;

    if (is_signed)
        sign_again(&changes[SUMS]);
    apply(set, changes, the_stage->unsealed);
    read_all(set, data[0] & 4, is_covered(set, changes, is_signed) && !the_stage->unsealed);
    return 0;
}
