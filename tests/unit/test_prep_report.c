/* prep reviews: what it tells of itself, and what it keeps from sets that it is to be like. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "prep/common.h"
#include "prep/options.h"
#include "prep/parts.h"

#include "review_preps.h"

#include <errno.h>
#include <hdf5.h>
#include <signal.h>

static pace_prep_reviews_config settings(const char **inputs, size_t count, const char *output)
{
    pace_prep_reviews_config config = settings_of(inputs, count, output);

    config.format = PACE_REVIEWS_TAB;
    config.length = 100;
    config.stopwords = "english";
    config.common.force = true;
    return config;
}

static void refuse(const pace_prep_reviews_config *config, const char *message)
{
    pace_prep_reviews_result result;

    said_clear();
    assert_failed(pace_prep_reviews(config, &said_log, NULL, &result), PACE_USAGE, message);
}

/* Removes an attribute from the parts of a set, and the checksums, which know better. */
static void forget(const char *set, const char *attribute, uint32_t parts)
{
    char path[600];

    for (uint32_t i = 0; i < parts; i++) {
        snprintf(path, sizeof path, "%s/part-%05u.h5", set, i);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);

        assert_true(file >= 0 && H5Adelete(file, attribute) >= 0);
        H5Fclose(file);
    }
    snprintf(path, sizeof path, "%s/%s", set, PACE__CHECKSUMS_NAME);
    assert_true(unlink(path) == 0 || errno == ENOENT);
}

/* --- phases --- */

typedef struct heard {
    pace_prep_phase phases[PACE_PREP_PHASES];
    size_t count;
} heard;

static void hear(void *user, const pace_record *record)
{
    heard *self = user;

    if (strcmp(record->kind, "phase") != 0)
        return;
    for (int i = 0; i < PACE_PREP_PHASES; i++) {
        if (strcmp(pace_record_find(record, "phase")->value.text, pace_prep_phase_names[i]) == 0)
            self->phases[i] =
                (pace_prep_phase){.seconds = pace_record_find(record, "seconds")->value.real,
                                  .rows = (uint64_t)pace_record_find(record, "rows")->value.integer,
                                  .bytes = (uint64_t)pace_record_find(record, "bytes")->value.integer,
                                  .skew = pace_record_find(record, "skew")->value.real};
    }
    self->count++;
}

static void phases_tell_rows_and_bytes(void **state)
{
    const char *inputs[] = {in(state, "a"), in(state, "b")}, *tests[] = {in(state, "c")};
    const char *texts[] = {"5\tgood film\n3\tfair film\n", "1\tbad film\n", "4\tfine\n2\tpoor film\n"};
    pace_prep_reviews_config config = settings(inputs, 2, in(state, "set"));
    pace_registry *registry = pace_registry_create();
    heard told = {0};
    pace_sink sink = {hear, &told};
    pace_prep_reviews_result result;

    put_text(inputs[0], texts[0]);
    put_text(inputs[1], texts[1]);
    put_text(tests[0], texts[2]);
    config.common.test = (pace_texts){tests, 1};
    pace_registry_attach(registry, &sink);
    assert_ok(pace_prep_reviews(&config, &said_log, registry, &result));
    assert_int_equal(told.count, PACE_PREP_PHASES);
    assert_memory_equal(told.phases, result.phases, sizeof told.phases);
    assert_int_equal(result.phases[PACE_PREP_MAP].rows, 3);
    assert_int_equal(result.phases[PACE_PREP_MAP].bytes, strlen(texts[0]) + strlen(texts[1]));
    assert_int_equal(result.phases[PACE_PREP_REDUCE].rows, 4);
    assert_int_equal(result.phases[PACE_PREP_REDUCE].bytes, result.word_bytes);
    assert_int_equal(result.phases[PACE_PREP_MAP_TEST].rows, 2);
    assert_int_equal(result.phases[PACE_PREP_MAP_TEST].bytes, strlen(texts[2]));
    assert_int_equal(result.phases[PACE_PREP_WRITE].rows, 5);
    assert_int_equal(result.phases[PACE_PREP_WRITE].bytes, result.bytes_written);
    assert_int_equal(result.rank_rows[0] + result.rank_rows[1], 5);
    assert_int_equal(result.rank_bytes[0] + result.rank_bytes[1], result.bytes_read);
    for (int i = 0; i < PACE_PREP_PHASES; i++) {
        assert_true(result.phases[i].seconds > 0);
        assert_true(result.phases[i].skew >= 1 && result.phases[i].skew <= 2);
    }
    /* One that fails has no phases behind the failure. */
    told = (heard){0};
    put_text(tests[0], "no rating\n");
    assert_int_equal(pace_prep_reviews(&config, &said_log, registry, &result), PACE_BAD_DATA);
    assert_int_equal(told.count, 2);
    pace_registry_free(registry);
}

/* --- what ranks compare --- */

static void words_tell_what_decides_the_bytes(void **state)
{
    const char *inputs[] = {"a b", "c%"};
    pace_prep_reviews_config config = settings(inputs, 2, "set");

    (void)state;
    config.common.holdout = 0.25;
    config.common.max_bad_rows = 3;
    char *words = pace__prep_words(pace_prep_reviews_tables, &config.common);

    assert_non_null(words);
    assert_non_null(strstr(words, " holdout=0.25 like= "));
    assert_non_null(strstr(words, " format=tab text-field=reviewText "));
    assert_non_null(strstr(words, " seed=1 parts=3 "));
    assert_non_null(strstr(words, " max-bad-rows=3"));
    assert_non_null(strstr(words, " inputs=a%20b:c%25"));
    assert_null(strstr(words, "threads="));
    assert_null(strstr(words, "memory="));
    free(words);
}

/* --- like --- */

static void like_keeps_what_is_positive(void **state)
{
    const char *inputs[] = {in(state, "in")}, *others[] = {in(state, "others")};
    pace_prep_reviews_config stars = settings(inputs, 1, in(state, "stars"));
    pace_prep_reviews_config later = settings(others, 1, in(state, "later"));

    put_text(inputs[0], "5\tgood film\n1\tbad film\n3\tfair film\n");
    prepare(&stars);
    stars.common.output = in(state, "from3");
    stars.positive = "3";
    prepare(&stars);
    /* All of them bad; without the other set, 1 would be the best there is. */
    put_text(others[0], "1\tbad film\n1\tbad\n");
    assert_int_equal(prepare(&later).train_positives, 2);
    later.common.like = in(state, "stars");
    assert_int_equal(prepare(&later).train_positives, 0);
    assert_true(prepare(&later).positive == 4);
    put_text(others[0], "3\tfair film\n1\tbad\n");
    later.common.like = in(state, "from3");
    assert_int_equal(prepare(&later).train_positives, 1);
    later.positive = "4";
    assert_int_equal(prepare(&later).train_positives, 0);
    /* A set that does not know: ratings above 1 mean stars, all else must be said. */
    forget(in(state, "from3"), "positive", 3);
    later.positive = "auto";
    assert_true(prepare(&later).positive == 4);
    put_text(others[0], "1\tgood film\n0\tbad\n");
    later.common.output = in(state, "none");
    refuse(&later, "say --positive");
    assert_false(pace__exists(in(state, "none")));
    later.positive = "1";
    assert_int_equal(prepare(&later).train_positives, 1);
}

static void like_refuses_what_contradicts(void **state)
{
    const char *inputs[] = {in(state, "in")};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));

    put_text(inputs[0], "5\tthe good film\n1\ta bad film\n");
    put_text(in(state, "stops"), "film\n");
    config.stopwords = in(state, "stops");
    prepare(&config);
    config.common.like = in(state, "set");
    config.common.output = in(state, "like");
    prepare(&config); /* the same stop words */
    config.stopwords = "english";
    prepare(&config); /* nothing was asked for */
    config.stopwords = "none";
    refuse(&config, "--stopwords none contradicts --like");
    config.stopwords = "english";
    config.keep_negations = false;
    refuse(&config, "--no-keep-negations contradicts --like");
    config.keep_negations = true;
    config.truncate = PACE_TRUNCATE_TAIL;
    refuse(&config, "--truncate tail contradicts --like");
    config.truncate = PACE_TRUNCATE_HEAD;
    config.pad = PACE_PAD_FRONT;
    refuse(&config, "--pad front contradicts --like");
}

static void clicks_are_not_like_texts(void **state)
{
    const char *inputs[] = {in(state, "in")}, *clicks[] = {in(state, "clicks")};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));
    pace_prep_clicks_config like = {.common.inputs = {clicks, 1},
                                    .common.output = in(state, "like"),
                                    .common.like = in(state, "set"),
                                    .common.threads = 1,
                                    .common.memory = (uint64_t)128 << 20,
                                    .common.parts = 1};
    pace_prep_clicks_result result;

    put_text(inputs[0], "5\tgood film\n1\tbad film\n");
    put_text(clicks[0], "1 1:1\n0 2:1\n");
    prepare(&config);
    said_clear();
    assert_failed(pace_prep_clicks(&like, &said_log, NULL, &result), PACE_USAGE, "use prep reviews");
    /* And the other way round. */
    like.common.like = NULL;
    assert_ok(pace_prep_clicks(&like, &said_log, NULL, &result));
    config.common.like = in(state, "like");
    config.common.output = in(state, "none");
    refuse(&config, "a data set of clicks");
}

/* --- duplicates --- */

static void texts_without_words_are_not_all_equal(void **state)
{
    const char *inputs[] = {in(state, "in")};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));
    char text[600], x[101] = "", y[101] = "";

    memset(x, 'x', 100);
    memset(y, 'y', 100);
    snprintf(text, sizeof text, "5\t!!!\n1\t???\n5\t!!!\n5\tgood %s\n1\tgood %s\n5\tgood %s\n1\tgood\n", x, y,
             x);
    put_text(inputs[0], text);
    config.dedup = true;
    pace_prep_reviews_result result = prepare(&config);

    assert_int_equal(result.duplicates, 2);
    assert_int_equal(result.train_rows, 5);
    assert_int_equal(result.too_long, 3);
}

/* --- how it was made --- */

static void commands_are_cut_or_unknown(void **state)
{
    size_t size = 3 * PACE__COMMAND_BYTES_MAX;
    tiny_set set = tiny_make((tiny_plan){.train = 20, .ids = 9, .parts = 2, .seed = 3});
    pace_merge_config merge = {.data = in(state, "set"), .output = in(state, "all.h5"), .sets = 1};
    pace_merge_result result;
    char *command = malloc(size + 1);
    pace__store store;

    assert_non_null(command);
    for (size_t i = 0; i < size; i++)
        command[i] = "\xc3\xa4\xc3"[(i + 1) % 2]; /* a character of two bytes would be cut */
    command[size] = '\0';
    set.info.command = command;
    tiny_write(&set, merge.data);
    assert_ok(pace__store_open(merge.data, &store, &said_log));
    assert_int_equal(strlen(store.info.command), PACE__COMMAND_BYTES_MAX - 1 + 4);
    assert_memory_equal(store.info.command, command, PACE__COMMAND_BYTES_MAX - 1);
    assert_string_equal(store.info.command + PACE__COMMAND_BYTES_MAX - 1, " ...");
    pace__store_close(&store);
    forget(merge.data, "command", 2);
    assert_ok(pace_merge(&merge, &said_log, NULL, &result));
    assert_int_equal(result.train_rows, 20);
    free(command);
    tiny_free(&set);
}

static void words_of_commands_are_quoted(void **state)
{
    const char *inputs[] = {"plain.txt", "two words", "it's", "''", ""}, *tests[] = {"a b", "c"};
    pace_prep_clicks_config config = {
        .common = {.inputs = {inputs, 5}, .test = {tests, 2}, .parts = 3, .seed = -4}};

    (void)state;
    config.format = PACE_FORMAT_SVMLIGHT;
    char *text = pace__prep_command("prep clicks", pace_prep_clicks_tables, &config.common);

    assert_string_equal(text,
                        "paceline prep clicks plain.txt 'two words' 'it'\\''s' ''\\'''\\''' '' --test 'a b' "
                        "--test c --holdout 0 --format svmlight --features 0 --hash auto --numeric bins "
                        "--seed -4 --parts 3");
    free(text);
}

/* An option without a mark would be compared by nobody and recorded nowhere. */
static void every_option_is_marked(void **state)
{
    const pace_option_table *lists[] = {pace_prep_clicks_tables, pace_prep_reviews_tables,
                                        pace_prep_images_tables};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (const pace_option_table *table = lists[i]; table->rows; table++) {
            for (const pace_option *row = table->rows; row->name; row++)
                assert_int_not_equal(row->mark, PACE_MARK_NONE);
        }
    }
}

/* --- the command on a part --- */

static pace_status go_on(void *user)
{
    (void)user;
    return PACE_OK;
}

static pace_status end_it(void *user)
{
    (void)user;
    return PACE_INTERRUPTED;
}

static void a_command_whose_end_is_not_seen_has_failed(void **state)
{
    for (int looks = 0; looks < 2; looks++) {
        said_clear();
        signal(SIGCHLD, SIG_IGN);
        pace_status status =
            pace__run_on_part("true", in(state, "part"), looks ? go_on : NULL, NULL, &said_log);

        signal(SIGCHLD, SIG_DFL);
        assert_failed(status, PACE_FAILED, "cannot tell how the command ended");
    }
    assert_ok(pace__run_on_part("true", in(state, "part"), go_on, NULL, &said_log));
    assert_int_equal(pace__run_on_part("sleep 100", in(state, "part"), end_it, NULL, &said_log),
                     PACE_INTERRUPTED);
}

static void no_more_processes_than_can_start(void **state)
{
    (void)state;
    assert_int_equal(pace__prep_processes(1, 1), 1);
    assert_int_equal(pace__prep_processes(16, 1), 16);
    assert_int_equal(pace__prep_processes(17, 1), 16);
    assert_int_equal(pace__prep_processes(999, 2), 32);
    assert_int_equal(pace__prep_processes(999, 64), 999);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        TEST(phases_tell_rows_and_bytes),       TEST(words_tell_what_decides_the_bytes),
        TEST(like_keeps_what_is_positive),      TEST(like_refuses_what_contradicts),
        TEST(clicks_are_not_like_texts),        TEST(texts_without_words_are_not_all_equal),
        TEST(commands_are_cut_or_unknown),      TEST(words_of_commands_are_quoted),
        TEST(every_option_is_marked),           TEST(a_command_whose_end_is_not_seen_has_failed),
        TEST(no_more_processes_than_can_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
