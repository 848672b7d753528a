/* Local copies of parts: the same rows from nearer by, and never others. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "data/stage/stage.h"
#include "data/stage/stage_files.h"
#include "data/store/near.h"
#include "data/store/reader.h"
#include "data/store/slice.h"
#include "data/store/sums.h"

#include "tiny_pictures.h"
#include "tiny_texts.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_NS (UINT64_C(20) * 1000000000)

static const tiny_plan plans[] = {
    {.train = 3000, .test = 300, .ids = 200, .columns = 5, .parts = 3, .seed = 1},
    {.train = 3000,
     .test = 300,
     .ids = 200,
     .has_values = true,
     .parts = 3,
     .seed = 2}, /* rows differ in length */
};
#define PLANS 2
#define KINDS (PLANS + 2)

static void write_set(void **state, const char *name, const tiny_plan *plan)
{
    tiny_set set = tiny_make(*plan);

    assert_ok(pace__remove_tree(in(state, name), &said_log));
    tiny_write(&set, in(state, name));
    tiny_free(&set);
    assert_ok(pace__store_seal(in(state, name), &said_log));
}

static void write_kind(void **state, size_t kind)
{
    if (kind < PLANS) {
        write_set(state, "set", &plans[kind]);
        return;
    }
    assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    if (kind == PLANS) {
        tiny_texts set = tiny_texts_make(
            (tiny_texts_plan){.train = 500, .test = 100, .words = 40, .length = 9, .parts = 3, .seed = 5});

        tiny_texts_write(&set, in(state, "set"));
        tiny_texts_free(&set);
    } else {
        tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[0]);

        tiny_pictures_write(&set, in(state, "set"));
        tiny_pictures_free(&set);
    }
    assert_ok(pace__store_seal(in(state, "set"), &said_log));
}

static pace__store open_set(void **state, const char *name)
{
    pace__store store;

    assert_ok(pace__store_open(in(state, name), &store, &said_log));
    return store;
}

/* A fast one into DIR/disk, unless something else is said. */
static pace__stage_options options_of(void **state)
{
    mkdir(in(state, "disk"), 0777);
    return (pace__stage_options){.parent = in(state, "disk"), .rate = 0, .speaks = true, .warns = true};
}

static pace__stage *stage_all(void **state, pace__store *store)
{
    pace__stage_options options = options_of(state);
    pace__stage *stage = pace__stage_open(store, &options, &said_log);

    assert_non_null(stage);
    assert_true(pace__stage_wait(stage, MOST_NS));
    return stage;
}

/* A checksum of all rows, in an order. */
static uint64_t read_rows(const pace__store *store)
{
    uint64_t sum = 0;

    for (int set = 0; set < PACE__SETS; set++) {
        pace__slice slice;
        uint64_t rows = store->info.rows[set], batch = 100;

        assert_ok(pace__slice_init(&slice, store, set, 7, batch, &said_log));
        for (uint64_t at = 0; at < rows; at += batch) {
            assert_ok(pace__slice_read(&slice, at, rows - at < batch ? rows - at : batch));
            sum = sum * 31 + pace__rows_checksum(&slice.rows);
        }
        pace__slice_release(&slice);
    }
    return sum;
}

static const char *directory_of(void **state)
{
    static char name[64];

    snprintf(name, sizeof name, "disk/paceline-stage-%lu", (unsigned long)geteuid());
    return in(state, name);
}

/* How many names there begin with part- and end so. */
static size_t count_copies(void **state, bool whole)
{
    DIR *listing = opendir(directory_of(state));
    size_t count = 0;

    for (const struct dirent *entry; listing && (entry = readdir(listing));)
        count += strncmp(entry->d_name, "part-", 5) == 0 && (strstr(entry->d_name, ".tmp-") == NULL) == whole;
    if (listing)
        closedir(listing);
    return count;
}

static int warnings_said(void)
{
    int count = said[0] == 'W';

    for (const char *at = said; (at = strstr(at, "\nW ")); at++)
        count++;
    return count;
}

/* Flips a bit of the first training row's ids, or pixels, in a copy or a part. */
static void damage(const pace__part *part, const char *path)
{
    const pace__part_set *set = &part->sets[PACE__TRAIN];
    off_t at = (off_t)(set->ids_at ? set->ids_at : set->pixels_at);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    uint8_t byte;

    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void make_old(const char *path)
{
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){{.tv_sec = 1}, {.tv_sec = 1}}, 0), 0);
}

static void rows_of_every_kind_are_the_same_from_copies(void **state)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        write_kind(state, kind);
        pace__store store = open_set(state, "set");
        uint64_t expected = read_rows(&store);
        pace__stage *stage = stage_all(state, &store);

        assert_int_equal(read_rows(&store), expected);
        pace__stage_figures figures = pace__stage_figures_of(stage);

        assert_int_equal(figures.copied, figures.wanted);
        assert_true(figures.read_near > 0 && figures.found == 0 && figures.dropped == 0);
        /* but for where rows of different lengths begin */
        assert_true(kind == 1 ? figures.read_source > 8 * store.info.rows[PACE__TRAIN]
                              : figures.read_source == 0);
        pace__stage_close(stage, false);

        stage = stage_all(state, &store); /* the next run finds them */
        figures = pace__stage_figures_of(stage);
        assert_true(figures.copied == 0 && figures.found == figures.wanted);
        assert_int_equal(read_rows(&store), expected);
        pace__stage_close(stage, true); /* and removes them */
        assert_false(pace__exists(directory_of(state)));
        assert_int_equal(read_rows(&store), expected);
        pace__store_close(&store);
    }
    assert_int_equal(warnings_said(), 0);
}

/* They decide whose the rows are, and so are read from the source: that counts, too. */
static void lengths_of_texts_are_read_from_the_source(void **state)
{
    uint32_t length[100];
    pace__slice slice;

    write_kind(state, PLANS);
    pace__store store = open_set(state, "set");
    pace__stage *stage = stage_all(state, &store);

    assert_ok(pace__slice_init(&slice, &store, PACE__TRAIN, 7, 100, &said_log));
    assert_ok(pace__slice_lengths(&slice, 50, 100, length));
    assert_int_equal(pace__stage_figures_of(stage).read_source, sizeof length);
    assert_int_equal(pace__stage_figures_of(stage).read_near, 0);
    pace__slice_release(&slice);
    pace__stage_close(stage, false);
    pace__store_close(&store);
}

/* Copies that are there are mapped, as parts are. */
static void a_reader_of_several_passes_takes_copies(void **state)
{
    write_kind(state, 0);
    pace__store store = open_set(state, "set");
    pace__stage *stage = stage_all(state, &store);
    pace__reader_plan plan = {
        .batch = 64, .last = 3 * store.info.rows[PACE__TRAIN], .seed = 3, .consumers = 1};
    pace__reader *reader;
    const pace__piece *piece;
    uint64_t rows = 0;

    assert_ok(pace__reader_create(&store, &plan, &said_log, &reader));
    while (assert_ok(pace__reader_next(reader, 0, &piece)), piece)
        rows += piece->rows.rows;
    assert_int_equal(rows, plan.last);
    pace__reader_free(reader);
    assert_int_equal(pace__stage_figures_of(stage).read_source, 0);
    pace__stage_close(stage, false);
    pace__store_close(&store);
}

static void a_set_that_was_changed_is_copied_again(void **state)
{
    tiny_set other = tiny_make(plans[0]);

    write_set(state, "set", &plans[0]);
    pace__store store = open_set(state, "set");

    pace__stage_close(stage_all(state, &store), false);
    pace__store_close(&store);

    other.rows[PACE__TRAIN].ids[2] ^= 1; /* nothing else differs, and times tell nothing */
    assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    tiny_write(&other, in(state, "set"));
    tiny_free(&other);
    assert_ok(pace__store_seal(in(state, "set"), &said_log));
    make_old(in(state, "set/part-00000.h5"));
    store = open_set(state, "set");
    uint64_t expected = read_rows(&store);
    pace__stage *stage = stage_all(state, &store);

    assert_int_equal(pace__stage_figures_of(stage).copied,
                     store.checksums.files[1].bytes); /* that part alone */
    assert_int_equal(read_rows(&store), expected);
    pace__stage_close(stage, false);
    pace__store_close(&store);

    write_set(state, "moved", &plans[0]); /* the first again, in another place */
    store = open_set(state, "moved");
    stage = stage_all(state, &store);
    assert_int_equal(pace__stage_figures_of(stage).copied, 0);
    pace__stage_close(stage, false);
    pace__store_close(&store);
}

/* Between runs, or while it is in use. */
static void a_damaged_copy_is_left_for_the_source(void **state)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        for (int later = 0; later < 2; later++) {
            write_kind(state, kind);
            pace__store store = open_set(state, "set");
            uint64_t expected = read_rows(&store);
            pace__stage *stage = stage_all(state, &store);
            char *path = strdup(pace__nearest(&store.parts[1])->path);

            assert_string_not_equal(path, store.parts[1].path);
            if (!later)
                pace__stage_close(stage, false);
            else
                assert_int_equal(read_rows(&store), expected);
            damage(&store.parts[1], path);
            if (!later)
                make_old(path);
            if (!later)
                stage = stage_all(state, &store);
            said_clear();
            assert_int_equal(read_rows(&store), expected);
            assert_int_equal(read_rows(&store), expected);
            assert_int_equal(warnings_said(), 1);
            assert_int_equal(errors_said(), 0);
            assert_said("damaged");
            assert_ptr_equal(pace__nearest(&store.parts[1]), &store.parts[1]);
            assert_true(pace__nearest(&store.parts[0])->source != NULL);
            assert_false(pace__exists(path)); /* nobody will find it there */
            assert_true(pace__stage_figures_of(stage).read_source > 0);
            assert_int_equal(pace__stage_figures_of(stage).dropped, 1);
            pace__stage_close(stage, true);
            pace__store_close(&store);
            free(path);
            said_clear();
        }
    }
}

static void a_copy_that_was_cut_is_left_for_the_source(void **state)
{
    write_kind(state, 0);
    pace__store store = open_set(state, "set");
    uint64_t expected = read_rows(&store);
    pace__stage *stage = stage_all(state, &store);

    assert_int_equal(truncate(pace__nearest(&store.parts[2])->path, 3000), 0);
    assert_int_equal(read_rows(&store), expected);
    assert_int_equal(warnings_said(), 1);
    pace__stage_close(stage, false);
    pace__store_close(&store);
}

/* Once, and its reader says what is wrong with it, as without copies. */
static void a_damaged_source_is_not_copied(void **state)
{
    write_kind(state, 0);
    pace__store store = open_set(state, "set");
    pace__slice slice;

    damage(&store.parts[1], store.parts[1].path);
    damage(&store.parts[2], store.parts[2].path);
    pace__stage *stage = stage_all(state, &store);

    assert_int_equal(count_copies(state, true), 1);
    assert_int_equal(warnings_said(), 1);
    assert_said("part-00001.h5: its copy in ");
    assert_said("is dropped: rows are read from the part itself");
    assert_int_equal(pace__stage_figures_of(stage).dropped, 2);
    said_clear();
    assert_int_equal(count_copies(state, false), 0);
    assert_ok(pace__slice_init(&slice, &store, PACE__TRAIN, 7, 3000, &said_log));
    assert_failed(pace__slice_read(&slice, 0, 3000), PACE_BAD_DATA, ".h5: damaged");
    pace__slice_release(&slice);
    pace__stage_close(stage, false);
    pace__store_close(&store);
}

/* Waits until a copy has begun; one that is written at a byte a second does not end. */
static void await_begun(void **state)
{
    uint64_t start_ns = pace__now_ns();

    while (count_copies(state, false) == 0 && pace__now_ns() - start_ns < MOST_NS)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(count_copies(state, false), 1);
}

static void copy_for_ever(void **state)
{
    pace__stage_options options = options_of(state);
    pace__store store;

    options.rate = 1;
    if (pace__store_open(in(state, "set"), &store, NULL) != PACE_OK ||
        !pace__stage_open(&store, &options, NULL))
        _exit(1);
    for (;;)
        pause();
}

static void a_killed_copier_leaves_nothing_that_looks_whole(void **state)
{
    write_kind(state, 0);
    pid_t child = fork();

    if (child == 0)
        copy_for_ever(state);
    await_begun(state);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(count_copies(state, true), 0);

    pace__store store = open_set(state, "set");
    pace__stage *stage = stage_all(state, &store);

    assert_int_equal(pace__stage_figures_of(stage).copied, pace__stage_figures_of(stage).wanted);
    assert_int_equal(count_copies(state, true), 3);
    assert_int_equal(count_copies(state, false), 0);
    pace__stage_close(stage, false);
    pace__store_close(&store);
}

/* The second waits for the first, and goes on where that ends. */
static void one_copies_and_another_takes_over(void **state)
{
    write_kind(state, 0);
    pace__store store = open_set(state, "set"), same = open_set(state, "set");
    uint64_t expected = read_rows(&store);
    pace__stage_options slow = options_of(state), fast = slow;

    slow.rate = 1;
    pace__stage *first = pace__stage_open(&store, &slow, &said_log);

    await_begun(state);
    pace__stage *second = pace__stage_open(&same, &fast, &said_log);

    assert_false(pace__stage_wait(second, 1000000));
    assert_int_equal(read_rows(&same), expected);
    assert_int_equal(pace__stage_figures_of(second).copied, 0);
    pace__stage_close(first, false);
    assert_true(pace__stage_wait(second, MOST_NS));
    assert_int_equal(pace__stage_figures_of(second).copied, pace__stage_figures_of(second).wanted);

    first = pace__stage_open(&store, &slow, &said_log); /* finds what the second has copied */
    assert_int_equal(pace__stage_figures_of(first).found, pace__stage_figures_of(first).wanted);
    pace__stage_close(second, true); /* the first still uses them */
    assert_int_equal(count_copies(state, true), 3);
    pace__stage_close(first, true);
    assert_false(pace__exists(directory_of(state)));
    pace__store_close(&same);
    pace__store_close(&store);
}

/* Together with the directory, which has nothing whole in it yet. */
static void one_cleans_up_and_another_copies(void **state)
{
    write_kind(state, 0);
    pace__store store = open_set(state, "set"), same = open_set(state, "set");
    pace__stage_options slow = options_of(state), fast = slow;

    slow.rate = 1;
    pace__stage *first = pace__stage_open(&store, &slow, &said_log);

    await_begun(state);
    pace__stage *second = pace__stage_open(&same, &fast, &said_log);

    pace__stage_close(first, true);
    assert_true(pace__stage_wait(second, MOST_NS));
    assert_int_equal(pace__stage_figures_of(second).copied, pace__stage_figures_of(second).wanted);
    assert_int_equal(warnings_said(), 0);
    pace__stage_close(second, true);
    pace__store_close(&same);
    pace__store_close(&store);
}

/* What nobody uses makes room; what somebody uses stays; what does not fit stays where it is. */
static void copies_stay_within_their_bytes(void **state)
{
    tiny_plan other = plans[0];

    other.seed = 9;
    write_set(state, "set", &plans[0]);
    write_set(state, "other", &other);
    pace__store store = open_set(state, "set"), another = open_set(state, "other");
    pace__stage_options options = options_of(state);

    options.bytes_max = store.checksums.files[1].bytes * 2 + 100;
    pace__stage *stage = pace__stage_open(&store, &options, &said_log);

    assert_said("stay there");
    assert_true(pace__stage_wait(stage, MOST_NS));
    assert_int_equal(count_copies(state, true), 2);
    pace__stage *second = pace__stage_open(&another, &options, &said_log);

    assert_true(pace__stage_wait(second, MOST_NS));
    assert_int_equal(pace__stage_figures_of(second).copied, 0);
    pace__stage_close(second, false);
    pace__stage_close(stage, false);
    second = pace__stage_open(&another, &options, &said_log);
    assert_true(pace__stage_wait(second, MOST_NS));
    assert_true(pace__stage_figures_of(second).copied > store.checksums.files[1].bytes);
    assert_int_equal(count_copies(state, true), 2);
    pace__stage_close(second, false);
    pace__store_close(&another);
    pace__store_close(&store);
}

static void expect_nothing_staged(pace__store *store, const pace__stage_options *options, const char *reason)
{
    said_clear();
    assert_null(pace__stage_open(store, options, &said_log));
    assert_int_equal(warnings_said(), 1);
    assert_int_equal(errors_said(), 0);
    assert_said(reason);
    assert_null(store->parts[0].near);
    read_rows(store);
}

static void where_nothing_can_be_staged_nothing_fails(void **state)
{
    write_kind(state, 0);
    pace__store store = open_set(state, "set");
    pace__stage_options options = options_of(state),
                        nowhere = {.parent = in(state, "nowhere"), .warns = true};

    expect_nothing_staged(&store, &nowhere, "no such directory");
    mkdir(in(state, "elsewhere"), 0777);
    assert_int_equal(symlink(in(state, "elsewhere"), directory_of(state)), 0);
    expect_nothing_staged(&store, &options, "is a link");
    unlink(directory_of(state));
    pace__store_close(&store);
    unlink(in(state, "set/checksums.json"));
    store = open_set(state, "set");
    expect_nothing_staged(&store, &options, "has no checksums");
    pace__store_close(&store);
}

/* Looked at as if something were staged, without anything being made. */
static void a_dry_run_says_what_would_be(void **state)
{
    write_kind(state, 0);
    pace__store store = open_set(state, "set");
    pace__stage_options options = options_of(state),
                        nowhere = {.parent = in(state, "nowhere"), .warns = true, .dry = true};

    options.dry = true;
    expect_nothing_staged(&store, &nowhere, "nothing would be staged: ");
    assert_said("nowhere: no such directory. Rows would be read from ");
    assert_null(strstr(said, "staging: "));
    put_text(directory_of(state), "");
    expect_nothing_staged(&store, &options, "is a link, a file");
    unlink(directory_of(state));
    said_clear();
    assert_null(pace__stage_open(&store, &options, &said_log));
    assert_int_equal(warnings_said(), 0);
    assert_said("would be copied");
    assert_false(pace__exists(directory_of(state)));
    pace__store_close(&store);
}

/* Nobody waits for a pipe, or writes through a link. */
static void what_is_no_lock_is_said(void **state)
{
    static const char *const words[] = {"is a pipe", "is a link", "is a directory"};

    write_kind(state, 0);
    for (int kind = 0; kind < 3; kind++) {
        pace__store store = open_set(state, "set");
        pace__stage_options options = options_of(state);
        char *lock = pace__format("%s/lock", directory_of(state));

        mkdir(directory_of(state), 0700);
        assert_int_equal(kind == 0   ? mkfifo(lock, 0600)
                         : kind == 1 ? symlink(in(state, "elsewhere"), lock)
                                     : mkdir(lock, 0700),
                         0);
        said_clear();
        pace__stage *stage = pace__stage_open(&store, &options, &said_log);

        assert_non_null(stage);
        assert_true(pace__stage_wait(stage, MOST_NS));
        read_rows(&store);
        pace__stage_close(stage, true);
        assert_int_equal(warnings_said(), 1);
        assert_said(lock);
        assert_said(words[kind]);
        assert_said("Remove that or choose another directory for --stage");
        assert_false(pace__exists(in(state, "elsewhere")));
        assert_ok(pace__remove_tree(in(state, "disk"), &said_log));
        free(lock);
        pace__store_close(&store);
    }
}

static void what_others_put_there_stays(void **state)
{
    write_kind(state, 0);
    pace__store store = open_set(state, "set");
    pace__stage *stage = stage_all(state, &store);
    char *path = strdup(pace__nearest(&store.parts[0])->path);
    char *mine = pace__format("%s/mine.h5", directory_of(state));

    put_text(mine, "x");
    pace__stage_close(stage, false);
    assert_int_equal(rename(path, in(state, "kept.h5")), 0);
    assert_int_equal(symlink(in(state, "kept.h5"), path), 0);
    stage = stage_all(state, &store); /* the link is no copy */
    assert_int_equal(pace__stage_figures_of(stage).copied, store.checksums.files[1].bytes);
    pace__stage_close(stage, true);
    assert_true(pace__exists(mine) && pace__exists(in(state, "kept.h5")));
    free(mine);
    free(path);
    pace__store_close(&store);
}

/* It is removed in the middle of a copy. */
static void a_directory_that_vanishes_is_a_warning(void **state)
{
    write_kind(state, 0);
    pace__store store = open_set(state, "set");
    uint64_t expected = read_rows(&store);
    pace__stage_options options = options_of(state);

    options.rate = 4 * store.checksums.files[1].bytes; /* a quarter of a second for each */
    pace__stage *stage = pace__stage_open(&store, &options, &said_log);

    await_begun(state);
    assert_ok(pace__remove_tree(in(state, "disk"), &said_log));
    assert_true(pace__stage_wait(stage, MOST_NS));
    assert_int_equal(read_rows(&store), expected);
    assert_int_equal(warnings_said(), 1);
    assert_said("nothing more is copied");
    pace__stage_close(stage, true);
    pace__store_close(&store);
}

int main(void)
{
#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(rows_of_every_kind_are_the_same_from_copies),
        WITH_DIRECTORY(lengths_of_texts_are_read_from_the_source),
        WITH_DIRECTORY(a_reader_of_several_passes_takes_copies),
        WITH_DIRECTORY(a_set_that_was_changed_is_copied_again),
        WITH_DIRECTORY(a_damaged_copy_is_left_for_the_source),
        WITH_DIRECTORY(a_copy_that_was_cut_is_left_for_the_source),
        WITH_DIRECTORY(a_damaged_source_is_not_copied),
        WITH_DIRECTORY(a_killed_copier_leaves_nothing_that_looks_whole),
        WITH_DIRECTORY(one_copies_and_another_takes_over),
        WITH_DIRECTORY(one_cleans_up_and_another_copies),
        WITH_DIRECTORY(copies_stay_within_their_bytes),
        WITH_DIRECTORY(where_nothing_can_be_staged_nothing_fails),
        WITH_DIRECTORY(a_dry_run_says_what_would_be),
        WITH_DIRECTORY(what_is_no_lock_is_said),
        WITH_DIRECTORY(what_others_put_there_stays),
        WITH_DIRECTORY(a_directory_that_vanishes_is_a_warning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
