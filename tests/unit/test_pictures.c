#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/picture/pictures_internal.h"
#include "made_pictures.h"
#include "support.h"

#include <zstd.h>

static pace_texts words_of(const char *const *items, size_t count)
{
    return (pace_texts){(const char **)(uintptr_t)items, count};
}

typedef struct opened {
    pace__picture_sources sources;
    pace__class_names names;
    pace__pictures pictures;
    pace__picture_scratch scratch;
} opened;

static pace_status open_like(void **state, const pace_texts *inputs, const pace_texts *tests, int format,
                             const pace__class_names *like, opened *made)
{
    const char *directory = in(state, "list");
    pace__listing_plan plan = {
        .sources = &made->sources, .directory = directory, .classes = like, .tell_grey = true};

    *made = (opened){0};
    mkdir(directory, 0777);
    pace_status status = pace__pictures_find(inputs, tests, format, &said_log, &made->sources);

    if (!status)
        status = pace__pictures_list(&plan, &said_log, &made->names);
    return status ? status : pace__pictures_open(directory, &said_log, &made->pictures);
}

static void close_all(opened *made)
{
    pace__pictures_close(&made->pictures);
    pace__class_names_release(&made->names);
    pace__picture_sources_release(&made->sources);
    pace__picture_scratch_release(&made->scratch);
}

static pace_status open_one(void **state, const char *input, opened *made)
{
    pace_texts inputs = words_of(&input, 1);

    return open_like(state, &inputs, NULL, PACE_IMAGES_AUTO, NULL, made);
}

/* It cannot be opened, and one message says why. */
static void refuse(void **state, const char *input, int format, pace_status status, const char *part)
{
    pace_texts inputs = words_of(&input, 1);
    opened made;

    assert_failed(open_like(state, &inputs, NULL, format, NULL, &made), status, part);
    close_all(&made);
}

static void expect_raw(opened *made, uint64_t number, uint64_t picture, uint32_t side, uint32_t channels)
{
    pace__picture_data data;
    const char *reason = pace__pictures_fetch(&made->pictures, number, &made->scratch, &data);

    if (reason)
        fail_msg("picture %llu: %s", (unsigned long long)number, reason);
    assert_true(data.raw && data.height == side && data.width == side && data.channels == channels);
    for (uint32_t i = 0; i < side * side * channels; i++)
        assert_int_equal(data.bytes[i],
                         made_pixel(picture, i / channels / side, i / channels % side, i % channels));
}

static void expect_reason(opened *made, uint64_t number, const char *part)
{
    pace__picture_data data;
    const char *reason = pace__pictures_fetch(&made->pictures, number, &made->scratch, &data);

    if (!reason || !strstr(reason, part))
        fail_msg("picture %llu: %s", (unsigned long long)number, reason ? reason : "no reason");
}

/* --- IDX --- */

static void put_idx(void **state, const char *folder, const char *stem, uint64_t first, uint32_t count,
                    uint32_t side, uint32_t channels)
{
    char name[256];
    bytes_made made = made_idx(first, count, side, channels);

    mkdir(in(state, folder), 0777);
    snprintf(name, sizeof name, "%s/%s-images-idx%d-ubyte", folder, stem, channels == 1 ? 3 : 4);
    put_bytes(in(state, name), &made);
    made = made_idx_labels(count, 3);
    snprintf(name, sizeof name, "%s/%s-labels-idx1-ubyte", folder, stem);
    put_bytes(in(state, name), &made);
}

static void idx_files_are_read(void **state)
{
    char name[600];
    opened made;

    put_idx(state, "mnist", "train", 0, 40, 9, 1);
    put_idx(state, "mnist", "t10k", 40, 7, 9, 1);
    assert_ok(open_one(state, in(state, "mnist"), &made));
    assert_int_equal(made.sources.format, PACE_IMAGES_IDX);
    assert_true(made.pictures.facts.count == 47 && made.pictures.facts.inputs == 40);
    assert_true(made.pictures.facts.grey && made.pictures.facts.height == 9 &&
                made.pictures.facts.width == 9);
    assert_int_equal(made.names.count, 3);
    assert_string_equal(made.names.items[2], "2");
    for (uint64_t i = 0; i < 47; i++) {
        expect_raw(&made, i, i, 9, 1);
        assert_int_equal(pace__pictures_class(&made.pictures, i), (i < 40 ? i : i - 40) % 3);
    }
    pace__pictures_name(&made.pictures, 41, name, sizeof name);
    assert_non_null(strstr(name, "mnist/t10k-images-idx3-ubyte#1"));
    assert_true(made.sources.items[1].own_test);
    close_all(&made);
}

/* Test files are told by a word of their name. */
static void idx_files_of_tests(void **state)
{
    opened made;

    put_idx(state, "letters", "letters-train", 0, 6, 9, 1);
    put_idx(state, "letters", "letters-test", 6, 6, 9, 1);
    put_idx(state, "letters", "latest", 12, 6, 9, 1);
    assert_ok(open_one(state, in(state, "letters"), &made));
    assert_true(made.pictures.facts.count == 18 && made.pictures.facts.inputs == 12);
    assert_int_equal(made.sources.tests, 1);
    assert_non_null(strstr(made.sources.items[2].path, "letters-test-images"));
    close_all(&made);
}

static void idx_in_colour_and_compressed(void **state)
{
    bytes_made packed = {.at = malloc(100000)}, plain = made_idx(5, 11, 10, 3);
    opened made;

    put_idx(state, "colour", "train", 5, 11, 10, 3);
    packed.size = ZSTD_compress(packed.at, 100000, plain.at, plain.size, 3);
    assert_false(ZSTD_isError(packed.size));
    put_bytes(in(state, "colour/train-images-idx4-ubyte.zst"), &packed);
    free(plain.at);
    assert_int_equal(unlink(in(state, "colour/train-images-idx4-ubyte")), 0);
    assert_ok(open_one(state, in(state, "colour"), &made));
    assert_false(made.pictures.facts.grey);
    for (uint64_t i = 0; i < 11; i++)
        expect_raw(&made, i, 5 + i, 10, 3);
    pace__pictures_remove(in(state, "list"));
    assert_int_equal(count_entries(in(state, "list")), 0); /* the unpacked one, too */
    close_all(&made);
}

/* Changes one file of a sound pair, and puts it right again. */
static void damage(void **state, const char *name, size_t at, int byte, long cut, const char *part)
{
    char *bytes;
    size_t size;
    bytes_made made = {0};

    assert_ok(pace__read_file(in(state, name), 1 << 20, &bytes, &size, &said_log));
    add_bytes(&made, bytes, size);
    if (byte >= 0)
        made.at[at] = (uint8_t)byte;
    if (cut < 0)
        made.size -= (size_t)-cut;
    for (long i = 0; i < cut; i++)
        add_byte(&made, 0);
    put_bytes(in(state, name), &made);
    refuse(state, in(state, "mnist"), PACE_IMAGES_AUTO, PACE_BAD_DATA, part);
    add_bytes(&made, bytes, size);
    put_bytes(in(state, name), &made);
    free(bytes);
}

static void damaged_idx_files_are_refused(void **state)
{
    static const char pictures[] = "mnist/train-images-idx3-ubyte",
                      labels[] = "mnist/train-labels-idx1-ubyte";
    opened made;

    put_idx(state, "mnist", "train", 0, 40, 9, 1);
    damage(state, pictures, 0, -1, -1, "train-images-idx3-ubyte: damaged");
    damage(state, pictures, 0, -1, 1, "train-images-idx3-ubyte: damaged");
    damage(state, pictures, 0, -1, 16 - (16 + 40 * 81), "damaged"); /* only the head */
    damage(state, pictures, 7, 41, 0, "damaged");
    damage(state, pictures, 11, 0, 0, "0");
    damage(state, pictures, 8, 255, 0, "larger than the limit");
    damage(state, labels, 0, -1, -3, "train-labels-idx1-ubyte: damaged");
    damage(state, labels, 7, 39, -1, "has 40 pictures, but");
    damage(state, labels, 0, -1, -43, "damaged: ends within its head");
    assert_ok(open_one(state, in(state, "mnist"), &made));
    close_all(&made);
    assert_int_equal(unlink(in(state, labels)), 0);
    refuse(state, in(state, "mnist"), PACE_IMAGES_AUTO, PACE_USAGE, "its labels are missing");
    refuse(state, in(state, "nowhere"), PACE_IMAGES_AUTO, PACE_NO_INPUT, "nowhere");
    refuse(state, in(state, "mnist"), PACE_IMAGES_CIFAR, PACE_NO_INPUT, "no file of the format cifar");
}

/* --- CIFAR --- */

static void cifar_10_is_read(void **state)
{
    bytes_made made = made_cifar(0, 20, 10, false);
    opened open;

    mkdir(in(state, "cifar"), 0777);
    made.at[3 * 3073] = 10; /* no such label */
    put_bytes(in(state, "cifar/data_batch_1.bin"), &made);
    made = made_cifar(20, 5, 10, false);
    put_bytes(in(state, "cifar/data_batch_2.bin"), &made);
    made = made_cifar(25, 4, 10, false);
    put_bytes(in(state, "cifar/test_batch.bin"), &made);
    put_text(in(state, "cifar/batches.meta.txt"),
             "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
    put_text(in(state, "cifar/readme.html"), "x");
    assert_ok(open_one(state, in(state, "cifar"), &open));
    assert_true(open.pictures.facts.count == 29 && open.pictures.facts.inputs == 25);
    assert_string_equal(open.names.items[9], "truck");
    for (uint64_t i = 0; i < 29; i++) {
        if (i != 3)
            expect_raw(&open, i, i, 32, 3);
    }
    assert_int_equal(pace__pictures_class(&open.pictures, 3), PACE__CLASS_NONE);
    expect_reason(&open, 3, "label is out of range");
    assert_int_equal(pace__pictures_class(&open.pictures, 4), 4);
    close_all(&open);

    put_text(in(state, "cifar/batches.meta.txt"), "airplane\nautomobile\n");
    refuse(state, in(state, "cifar"), PACE_IMAGES_AUTO, PACE_BAD_DATA, "2 names of 10 classes");
    assert_int_equal(unlink(in(state, "cifar/batches.meta.txt")), 0);
    made = made_cifar(20, 5, 10, false);
    made.size--;
    put_bytes(in(state, "cifar/data_batch_2.bin"), &made);
    refuse(state, in(state, "cifar"), PACE_IMAGES_AUTO, PACE_BAD_DATA, "no multiple of 3073");
    put_bytes(in(state, "cifar/data_batch_2.bin"), &made);
    refuse(state, in(state, "cifar"), PACE_IMAGES_AUTO, PACE_BAD_DATA, "empty");
}

static void cifar_100_has_the_fine_label(void **state)
{
    bytes_made made = made_cifar(0, 30, 100, true);
    pace__cifar_shape shape;
    opened open;

    put_bytes(in(state, "train.bin"), &made);
    assert_ok(open_one(state, in(state, "train.bin"), &open));
    assert_int_equal(open.names.count, 30); /* those that occur */
    for (uint64_t i = 0; i < 30; i++) {
        expect_raw(&open, i, i, 32, 3);
        assert_int_equal(pace__pictures_class(&open.pictures, i), i);
    }
    close_all(&open);
    /* A size that fits both is what the name says. */
    assert_null(pace__cifar_parse("train.bin", 3073 * 3074, &shape));
    assert_int_equal(shape.classes, 100);
    assert_null(pace__cifar_parse("mine.bin", 3073 * 3074, &shape));
    assert_int_equal(shape.classes, 10);
    assert_null(pace__cifar_parse("mine.bin", 3074, &shape));
    assert_int_equal(shape.classes, 100);
    assert_non_null(pace__cifar_parse("mine.bin", 3075, &shape));
}

/* --- TFRecord --- */

static void put_records(void **state, const char *name)
{
    bytes_made file = {0}, features = {0};

    add_encoded_record(&file, 0, 2, "two words");
    add_encoded_record(&file, 1, 1, "one");
    bytes_made pixels = made_idx(2, 1, 8, 1);

    add_bytes_feature(&features, "image_raw", pixels.at + 16, 64);
    add_integer_feature(&features, "height", 8, false);
    add_integer_feature(&features, "width", 8, true);
    add_integer_feature(&features, "depth", 1, false);
    add_integer_feature(&features, "label", 1, false);
    free(pixels.at);
    add_record(&file, &features);
    add_encoded_record(&file, 3, 1000, "many");
    put_bytes(in(state, name), &file);
}

static void records_are_read(void **state)
{
    pace__picture_data data;
    opened open;

    put_records(state, "pictures.tfrecord");
    assert_ok(open_one(state, in(state, "pictures.tfrecord"), &open));
    assert_int_equal(open.sources.format, PACE_IMAGES_TFRECORD);
    assert_int_equal(open.pictures.facts.count, 4);
    assert_int_equal(open.names.count, 3);
    assert_string_equal(open.names.items[0], "one");
    assert_string_equal(open.names.items[1], "two words");
    assert_string_equal(open.names.items[2], "many");
    assert_false(open.pictures.facts.grey);
    assert_int_equal(pace__pictures_class(&open.pictures, 0), 1);
    assert_int_equal(pace__pictures_class(&open.pictures, 3), 2);
    expect_raw(&open, 2, 2, 8, 1);
    assert_null(pace__pictures_fetch(&open.pictures, 3, &open.scratch, &data));
    bytes_made png = made_png(3, 12, 12, 3);

    assert_false(data.raw);
    assert_int_equal(data.size, png.size);
    assert_memory_equal(data.bytes, png.at, png.size);
    free(png.at);
    close_all(&open);
}

static void labels_without_names_are_numbers(void **state)
{
    bytes_made file = {0};
    opened open;

    add_encoded_record(&file, 0, 7, "crane");
    add_encoded_record(&file, 1, -3, NULL);
    add_encoded_record(&file, 2, 7, "crane");
    put_bytes(in(state, "a.tfrecord"), &file);
    assert_ok(open_one(state, in(state, "a.tfrecord"), &open));
    assert_int_equal(open.names.count, 2);
    assert_string_equal(open.names.items[0], "-3");
    assert_string_equal(open.names.items[1], "7");
    assert_said("the numbers are taken");
    close_all(&open);
}

/* What cannot be the name of a class is none, and no reason to fail. */
static void labels_with_bad_names_are_numbers(void **state)
{
    char longer[302] = {0};
    const char *const names[] = {"", "bad\xff", "tab\tstop", "c1\xc2\x9b", memset(longer, 'x', 300)};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bytes_made file = {0};
        opened open;

        add_encoded_record(&file, 0, 7, "crane");
        add_encoded_record(&file, 1, 9, names[i]);
        put_bytes(in(state, "a.tfrecord"), &file);
        said_clear();
        assert_ok(open_one(state, in(state, "a.tfrecord"), &open));
        assert_int_equal(open.names.count, 2);
        assert_string_equal(open.names.items[0], "7");
        assert_string_equal(open.names.items[1], "9");
        assert_said("the numbers are taken");
        close_all(&open);
    }
}

/* All of them bad is more than what is wrong with one: it is told before there is a set of no classes. */
static void without_any_label_the_first_fault_is_told(void **state)
{
    bytes_made file = {0}, features = {0};

    add_bytes_feature(&features, "image/encoded", "\xff\xd8\xff", 3);
    add_record(&file, &features);
    features = (bytes_made){0};
    add_integer_feature(&features, "label", 1, true);
    add_record(&file, &features);
    put_bytes(in(state, "a.tfrecord"), &file);
    refuse(state, in(state, "a.tfrecord"), PACE_IMAGES_AUTO, PACE_BAD_DATA,
           "a.tfrecord#0: it has neither of the features image/class/label and label");
    file = made_cifar(0, 3, 1, false);
    for (size_t i = 0; i < 3; i++)
        file.at[i * 3073] = 200;
    put_bytes(in(state, "data_batch_1.bin"), &file);
    refuse(state, in(state, "data_batch_1.bin"), PACE_IMAGES_AUTO, PACE_BAD_DATA,
           "data_batch_1.bin#0: its label is out of range");
}

static void damaged_records(void **state)
{
    bytes_made file = {0}, features = {0};
    opened open;

    /* What is wrong with one picture is its own affair. */
    add_encoded_record(&file, 0, 0, NULL);
    size_t second = file.size;

    add_encoded_record(&file, 1, 1, NULL);
    size_t third = file.size;

    add_integer_feature(&features, "label", 1, true);
    add_record(&file, &features);
    features = (bytes_made){0};
    add_bytes_feature(&features, "image", "no picture", 10);
    add_integer_feature(&features, "label", 1, true);
    add_record(&file, &features);
    add_encoded_record(&file, 4, 1, NULL);
    file.at[second + 60] ^= 1;
    bytes_made sound = {0};

    add_bytes(&sound, file.at, file.size);
    put_bytes(in(state, "a.tfrecord"), &file);
    assert_ok(open_one(state, in(state, "a.tfrecord"), &open));
    assert_int_equal(open.pictures.facts.count, 5);
    expect_reason(&open, 1, "checksum of its data is wrong");
    expect_reason(&open, 2, "none of the features");
    expect_reason(&open, 3, "height and width are not told");
    assert_int_equal(pace__pictures_class(&open.pictures, 1), PACE__CLASS_NONE);
    assert_int_equal(pace__pictures_class(&open.pictures, 4), 1);
    close_all(&open);

    /* A length that is wrong leads nowhere; neither does an end that is missing. */
    add_bytes(&file, sound.at, sound.size);
    file.at[third] ^= 1;
    put_bytes(in(state, "a.tfrecord"), &file);
    refuse(state, in(state, "a.tfrecord"), PACE_IMAGES_AUTO, PACE_BAD_DATA,
           "checksum of its length is wrong");
    for (size_t cut = 1; cut < 20; cut += 6) {
        add_bytes(&file, sound.at, sound.size - cut);
        put_bytes(in(state, "a.tfrecord"), &file);
        refuse(state, in(state, "a.tfrecord"), PACE_IMAGES_AUTO, PACE_BAD_DATA, "the file ends within it");
    }
    free(sound.at);
}

/* --- folders --- */

static void make_folders(void **state)
{
    static const char *const folders[] = {"pets", "pets/dog", "pets/cat", "pets/cat/b",
                                          "more", "more/cow", "more/dog"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        mkdir(in(state, folders[i]), 0777);
    put_png(in(state, "pets/cat/c.png"), 1, 10, 3);
    put_png(in(state, "pets/cat/b/x.PNG"), 2, 10, 1);
    put_png(in(state, "pets/cat/a\nb.png"), 3, 10, 1);
    put_png(in(state, "pets/dog/1.png"), 4, 10, 1);
    put_png(in(state, "pets/dog/2.png"), 5, 10, 1);
    put_text(in(state, "pets/dog/.DS_Store"), "x");
    put_text(in(state, "pets/dog/notes.txt"), "x");
    put_text(in(state, "pets/readme"), "x");
    put_png(in(state, "more/cow/1.png"), 6, 10, 1);
    put_png(in(state, "more/dog/1.png"), 7, 10, 1);
}

static void folders_are_classes(void **state)
{
    static const char *const endings[] = {"more/cow/1.png",   "more/dog/1.png", "pets/cat/a?b.png",
                                          "pets/cat/b/x.PNG", "pets/cat/c.png", "pets/dog/1.png",
                                          "pets/dog/2.png"};
    static const uint32_t classes[] = {1, 2, 0, 0, 0, 2, 2};
    char name[600];
    opened open;

    make_folders(state);
    const char *both[] = {in(state, "more"), in(state, "pets/")};
    pace_texts inputs = words_of(both, 2);

    assert_ok(open_like(state, &inputs, NULL, PACE_IMAGES_AUTO, NULL, &open));
    assert_int_equal(open.pictures.facts.count, 7);
    assert_int_equal(open.pictures.facts.skipped, 3);
    assert_said("3 files were passed over");
    assert_int_equal(open.names.count, 3);
    assert_string_equal(open.names.items[0], "cat");
    assert_string_equal(open.names.items[1], "cow");
    for (uint64_t i = 0; i < 7; i++) {
        pace__pictures_name(&open.pictures, i, name, sizeof name);
        if (strlen(name) < strlen(endings[i]) ||
            strcmp(name + strlen(name) - strlen(endings[i]), endings[i]) != 0) {
            char *place = strstr(name, "pets//"); /* as the user has written it */

            assert_non_null(place);
            assert_string_equal(place + 6, endings[i] + 5);
        }
        assert_int_equal(pace__pictures_class(&open.pictures, i), classes[i]);
    }
    assert_false(open.pictures.facts.grey); /* one is in colour */
    assert_ok(pace__pictures_write_names(&open.pictures, *state, &said_log));
    char *names = get_text(in(state, "images.txt"));
    size_t lines = 0;

    for (const char *at = names; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 7);
    free(names);
    close_all(&open);
    assert_ok(open_one(state, in(state, "more"), &open));
    assert_true(open.pictures.facts.grey);
    close_all(&open);
}

/* Links to pictures and classes are followed; what cannot be read is a picture with a reason, not nothing. */
static void links_and_pipes(void **state)
{
    opened open;

    make_folders(state);
    assert_int_equal(symlink("1.png", in(state, "more/cow/2-link.png")), 0);
    assert_int_equal(symlink("nowhere", in(state, "more/cow/3-lost.png")), 0);
    assert_int_equal(mkfifo(in(state, "more/cow/4-pipe.png"), 0666), 0);
    assert_int_equal(symlink("../dog", in(state, "more/cow/round")), 0);
    assert_int_equal(symlink("../pets/cat", in(state, "more/cat")), 0);
    assert_ok(open_one(state, in(state, "more"), &open));
    assert_int_equal(open.pictures.facts.count, 3 + 4 + 1); /* cat, cow, dog */
    assert_int_equal(open.names.count, 3);
    assert_int_equal(open.pictures.facts.skipped, 1);
    assert_said("more/cow/round");
    for (uint64_t i = 0; i < 8; i++) {
        pace__picture_data data;

        if (i == 5)
            expect_reason(&open, i, "cannot open");
        else if (i == 6)
            expect_reason(&open, i, "not a file");
        else
            assert_null(pace__pictures_fetch(&open.pictures, i, &open.scratch, &data));
    }
    close_all(&open);
}

static void a_data_set_is_no_class(void **state)
{
    opened open;

    make_folders(state);
    mkdir(in(state, "more/data"), 0777);
    put_text(in(state, "more/data/part-00000.h5"), "x");
    put_png(in(state, "more/data/1.png"), 1, 9, 1);
    assert_ok(open_one(state, in(state, "more"), &open));
    assert_int_equal(open.names.count, 2);
    assert_int_equal(open.pictures.facts.count, 2);
    assert_said("more/data");
    close_all(&open);
}

static void folders_that_cannot_name_a_class(void **state)
{
    static const char *const names[] = {"more/tab\tstop", "more/line\nbreak", "more/c1\xc2\x9b",
                                        "more/bad\xff"};

    make_folders(state);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mkdir(in(state, names[i]), 0777);
        refuse(state, in(state, "more"), PACE_IMAGES_AUTO, PACE_BAD_DATA,
               i < 3 ? "has a control character: rename it" : "is no UTF-8: rename it");
        assert_int_equal(rmdir(in(state, names[i])), 0);
    }
}

static void classes_of_another_set(void **state)
{
    static const char list[] = "zebra\ndog\ncow\n";
    pace__class_names like;
    opened open;

    make_folders(state);
    assert_ok(pace__class_names_parse(list, sizeof list - 1, "list", &said_log, &like));
    const char *one = in(state, "more");
    pace_texts inputs = words_of(&one, 1);

    assert_ok(open_like(state, &inputs, NULL, PACE_IMAGES_AUTO, &like, &open));
    assert_int_equal(open.names.count, 3);
    assert_int_equal(pace__pictures_class(&open.pictures, 0), 2);
    assert_int_equal(pace__pictures_class(&open.pictures, 1), 1);
    close_all(&open);
    one = in(state, "pets");
    assert_failed(open_like(state, &inputs, NULL, PACE_IMAGES_AUTO, &like, &open), PACE_BAD_DATA,
                  "has the class \"cat\", which is none of those");
    close_all(&open);
    pace__class_names_release(&like);
}

static void what_is_no_source(void **state)
{
    make_folders(state);
    mkdir(in(state, "sets"), 0777);
    mkdir(in(state, "sets/train"), 0777);
    mkdir(in(state, "sets/test"), 0777);
    mkdir(in(state, "one"), 0777);
    refuse(state, in(state, "one"), PACE_IMAGES_AUTO, PACE_NO_INPUT, "neither sub-folders");
    mkdir(in(state, "one/only"), 0777);
    refuse(state, in(state, "one"), PACE_IMAGES_AUTO, PACE_BAD_DATA, "there are no pictures");
    put_png(in(state, "one/only/1.png"), 1, 9, 1);
    refuse(state, in(state, "one"), PACE_IMAGES_AUTO, PACE_BAD_DATA,
           "all pictures are of one class, \"only\"");
    refuse(state, in(state, "sets"), PACE_IMAGES_AUTO, PACE_USAGE, "sets, not classes");
    refuse(state, in(state, "pets/cat/c.png"), PACE_IMAGES_AUTO, PACE_USAGE, "a single picture");
    refuse(state, in(state, "pets/readme"), PACE_IMAGES_AUTO, PACE_USAGE, "cannot tell its format");
    refuse(state, in(state, "pets/readme"), PACE_IMAGES_TFRECORD, PACE_BAD_DATA,
           "not of the format tfrecord");
    refuse(state, in(state, "pets/readme"), PACE_IMAGES_CIFAR, PACE_BAD_DATA, "no multiple of 3073 or 3074");
    refuse(state, "-", PACE_IMAGES_AUTO, PACE_USAGE, "standard input");
    put_records(state, "a.tfrecord");
    const char *mixed[] = {in(state, "pets"), in(state, "a.tfrecord")};
    pace_texts inputs = words_of(mixed, 2);
    opened open;

    assert_failed(open_like(state, &inputs, NULL, PACE_IMAGES_AUTO, NULL, &open), PACE_USAGE,
                  "give pictures of one format");
    close_all(&open);
}

static void unreadable_files_have_reasons(void **state)
{
    opened open;

    make_folders(state);
    assert_ok(open_one(state, in(state, "more"), &open));
    put_text(in(state, "more/cow/1.png"), "");
    expect_reason(&open, 0, "empty");
    assert_int_equal(unlink(in(state, "more/dog/1.png")), 0);
    expect_reason(&open, 1, "cannot open");
    mkdir(in(state, "more/dog/1.png"), 0777);
    expect_reason(&open, 1, "not a file");
    close_all(&open);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        TEST(idx_files_are_read),
        TEST(idx_files_of_tests),
        TEST(idx_in_colour_and_compressed),
        TEST(damaged_idx_files_are_refused),
        TEST(cifar_10_is_read),
        TEST(cifar_100_has_the_fine_label),
        TEST(records_are_read),
        TEST(labels_without_names_are_numbers),
        TEST(labels_with_bad_names_are_numbers),
        TEST(without_any_label_the_first_fault_is_told),
        TEST(damaged_records),
        TEST(folders_are_classes),
        TEST(links_and_pipes),
        TEST(a_data_set_is_no_class),
        TEST(folders_that_cannot_name_a_class),
        TEST(classes_of_another_set),
        TEST(what_is_no_source),
        TEST(unreadable_files_have_reasons),
    };

    return cmocka_run_group_tests_name("pictures", tests, NULL, NULL);
}
