/* Training a part of a network on pictures: layers that stay as they are (--train from:LAYER), and the head alone on
 * features that are computed once (--train top). */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "picture_jobs.h"
#include "thinned.h"

#include <sys/prctl.h>

static const layout layouts[] = {
    {PACE_MODE_LOCAL, 1, -1, -1, false},   {PACE_MODE_ALLREDUCE, 2, -1, -1, false},
    {PACE_MODE_PS_SYNC, 2, 1, -1, true},   {PACE_MODE_PS_SYNC, 2, 0, -1, false},
    {PACE_MODE_PS_ASYNC, 2, 1, -1, false}, {PACE_MODE_PS_SSP, 3, 1, 1, false},
};

#define LAYOUTS (sizeof layouts / sizeof *layouts)

/* A network that has learned other pictures, as RUN/model.safetensors; returns the path. */
static const char *make_pretrained(void **state, const char *run, int64_t seed, uint32_t classes)
{
    tiny_pictures_plan others = plain_set;
    char name[64];

    snprintf(name, sizeof name, "%s-set", run);
    others.seed = (uint64_t)seed;
    others.classes = classes;
    make_set(state, name, others);
    pace_train_config config = settings(state);

    config.data = in(state, name);
    config.run = in(state, run);
    config.seed = seed;
    config.length.epochs = 4;
    train_alone(&config);
    snprintf(name, sizeof name, "%s/model.safetensors", run);
    return in(state, name);
}

static pace_train_config settings_from(void **state, const char *pretrained, const char *train)
{
    pace_train_config config = settings(state);
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % 8]; /* those of in() do not last for a whole test */

    snprintf(path, sizeof paths[0], "%s", pretrained);
    config.own.cnn.pretrained = path;
    config.own.cnn.train = train;
    return config;
}

static cnn_file read_model(void **state, const char *run)
{
    cnn_file model;

    assert_ok(cnn_read(in(state, run), &model));
    return model;
}

/* Where the layer's values begin, in weights and statistics. */
static void find_layer(const pace__cnn_net *net, const char *layer, size_t *weights, size_t *stats)
{
    uint32_t unit = pace__cnn_find_unit(net, layer);

    assert_true(unit <= net->units);
    *weights = unit < net->units ? net->unit[unit].weight_at : net->head_weight_at;
    *stats = unit < net->units ? net->unit[unit].mean_at : net->stats;
}

/* --- layers that stay as they are --- */

static void frozen_layers_stay_as_they_are(void **state)
{
    static const char *const layers[] = {"conv2", "conv4", "head"};
    const char *file = make_pretrained(state, "first", 3, 4);

    make_set(state, "set", plain_set);
    cnn_file before = read_model(state, "first");

    for (size_t i = 0; i < 3; i++) {
        for (size_t l = i % THINNED(3); l < LAYOUTS; l += THINNED(3)) {
            size_t weights, stats;
            char train_text[32], said_weights[64];

            snprintf(train_text, sizeof train_text, "from:%s", layers[i]);
            pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), train_text);

            lay_out(&config, layouts[l]);
            config.optimiser.l2 = 1e-3;
            config.own.cnn.augment = "flip";
            train(&config);
            cnn_file after = read_model(state, "run");

            find_layer(&after.net, layers[i], &weights, &stats);
            snprintf(said_weights, sizeof said_weights, "; %zu weights;", after.net.weights - weights);
            assert_said(said_weights);
            assert_memory_equal(after.weights, before.weights, weights * sizeof(float));
            assert_memory_equal(after.stats, before.stats, stats * sizeof(float));
            if (stats < after.net.stats)
                assert_memory_not_equal(after.stats + stats, before.stats + stats,
                                        (after.net.stats - stats) * sizeof(float));
            cnn_release(&after);
        }
    }
    (void)file;
    cnn_release(&before);
}

static double bytes_sent(void **state)
{
    char *text = get_text(in(state, "run/summary.json"));
    cJSON *summary = cJSON_Parse(text);
    double bytes = cJSON_GetObjectItem(summary, "bytes_sent")->valuedouble;

    cJSON_Delete(summary);
    free(text);
    return bytes;
}

/* Behind conv4 there is about half of the network; the head is next to nothing. */
static void nothing_of_frozen_layers_is_sent(void **state)
{
    static const char *const parts[] = {"all", "from:conv4", "from:head"};
    double bytes[3];

    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    for (size_t l = 1; l < 4; l += THINNED(2)) {
        for (size_t i = 0; i < 3; i++) {
            pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), parts[i]);

            lay_out(&config, layouts[l]);
            config.cluster.evaluator = false;
            config.own.cnn.bn = PACE_BN_LOCAL; /* nothing but gradients and weights */
            train(&config);
            bytes[i] = bytes_sent(state);
        }
        if (!(bytes[1] < 0.7 * bytes[0] && bytes[2] < 0.25 * bytes[0]))
            fail_msg("layout %zu: %g bytes, from conv4 %g, from head %g", l, bytes[0], bytes[1], bytes[2]);
    }
}

/* Frozen layers see running statistics, so that what is trained depends on nobody else's rows. */
static void more_workers_compute_the_same(void **state)
{
    static const char *const parts[] = {"from:conv3", "from:head", "top"};

    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    for (size_t i = 0; i < 3; i += THINNED(2)) {
        cnn_file one = {0};

        for (size_t l = 0; l < 4; l++) {
            pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), parts[i]);

            config.optimiser.rule = PACE_MOMENTUM; /* see test_train_images.c */
            config.optimiser.lr = 0.02;
            lay_out(&config, layouts[l]);
            train(&config);
            cnn_file model = read_model(state, "run");

            if (l == 0) {
                one = model;
                continue;
            }
            if (!(model_distance(&one, &model) < 1e-3))
                fail_msg("part %zu, layout %zu: weights differ by %g", i, l, model_distance(&one, &model));
            cnn_release(&model);
        }
        cnn_release(&one);
    }
}

static void a_run_with_frozen_layers_resumes(void **state)
{
    static const char *const parts[] = {"all", "from:conv3", "top"};

    make_pretrained(state, "first", 3, 4);
    make_pretrained(state, "second", 4, 4);
    make_set(state, "set", plain_set);
    for (size_t i = 0; i < 3; i++) {
        for (size_t l = 0; l < 4; l += THINNED(3)) {
            pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), parts[i]);
            pace_train_config again, other;

            lay_out(&config, layouts[l]);
            config.records.log_every = 1;
            sha expected = sha_of(&config);

            interrupt(config, 5);
            again = resumed(config);
            if (l == 0) {
                other = settings_from(state, in(state, "second/model.safetensors"), parts[i]);
                other.records.log_every = 1;
                other = resumed(other);
                fail_to_train(&other, PACE_USAGE, "step-000000000005");
            }
            assert_sha(&again, expected);
        }
    }
}

/* Killed before its first checkpoint, it begins again with the file's weights. */
static void a_run_that_begins_again_keeps_its_weights(void **state)
{
    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    for (size_t l = 0; l < 3; l++) {
        pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "all"), again;

        lay_out(&config, layouts[l]);
        sha expected = sha_of(&config);

        config.own.cnn.pretrained = NULL;
        assert_string_not_equal(sha_of(&config).hex, expected.hex);
        config.own.cnn.pretrained = in(state, "first/model.safetensors");
        again = resumed(config);
        assert_ok(pace__runstate_write(in(state, "run"), &(pace__runstate){.incarnation = 1}, &said_log));
        assert_int_equal(unlink(in(state, "run/model.safetensors")), 0);
        assert_int_equal(unlink(in(state, "run/summary.json")), 0);
        assert_sha(&again, expected);
        assert_said("begins at step 0");
    }
}

/* Training that hardly moves is where the file was; another number of classes begins with a new head. */
static void a_network_begins_with_the_weights_of_a_file(void **state)
{
    make_pretrained(state, "first", 3, 3);
    make_pretrained(state, "second", 3, 4);
    make_set(state, "set", plain_set);
    for (size_t l = 0; l < 3; l++) {
        for (int same = 0; same < 2; same++) {
            const char *run = same ? "first" : "second";
            char path[64];

            snprintf(path, sizeof path, "%s/model.safetensors", run);
            pace_train_config config = settings_from(state, in(state, path), "all");

            lay_out(&config, layouts[l]);
            config.length.steps = 1;
            config.optimiser.lr = 1e-9;
            train(&config);
            assert_said(same ? "the head is its own" : "the head begins anew");
            cnn_file before = read_model(state, run), after = read_model(state, "run");
            size_t body = after.net.head_weight_at, all = same ? after.net.weights : body;

            assert_true(array_distance(before.weights, after.weights, all) < 1e-6);
            assert_true(array_distance(before.stats, after.stats, after.net.stats) < 0.5);
            cnn_release(&before);
            cnn_release(&after);
        }
    }
}

/* --- the head alone --- */

/* Names in a directory that do not begin with a dot: caches that are whole. */
static size_t count_caches(void **state, const char *name)
{
    DIR *directory = opendir(in(state, name));
    size_t count = 0;

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

/* The only one. */
static const char *find_cache(void **state, const char *name)
{
    DIR *directory = opendir(in(state, name));
    char path[512] = "";

    assert_non_null(directory);
    assert_int_equal(count_caches(state, name), 1);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] != '.')
            snprintf(path, sizeof path, "%s/%.64s", name, entry->d_name);
    }
    closedir(directory);
    return in(state, path);
}

static void the_head_learns_in_every_mode(void **state)
{
    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    for (size_t l = 0; l < LAYOUTS; l++) {
        pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");

        lay_out(&config, layouts[l]);
        config.own.cnn.feature_cache = in(state, "cache");
        config.length.epochs = 12;
        pace_train_result result = train(&config);

        assert_said(l ? "features: taken from " : "features: 290 pictures through 4 layers");
        assert_learned(&result, "layout", l);
        assert_int_equal(count_caches(state, "cache"), 1);
        eval_agrees(state, &result.test); /* by the whole network, on the pictures */
        cnn_file before = read_model(state, "first"), after = read_model(state, "run");

        assert_memory_equal(before.weights, after.weights, after.net.head_weight_at * sizeof(float));
        assert_memory_equal(before.stats, after.stats, after.net.stats * sizeof(float));
        cnn_release(&before);
        cnn_release(&after);
    }
}

/* Pictures that go through the frozen layers in every step make the same head as features that are kept. */
static void features_are_what_the_layers_make(void **state)
{
    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");

    config.optimiser.rule = PACE_MOMENTUM;
    config.optimiser.lr = 0.02;
    train(&config);
    cnn_file top = read_model(state, "run");

    config.own.cnn.train = "from:head";
    train(&config);
    cnn_file head = read_model(state, "run");

    assert_true(model_distance(&top, &head) < 1e-4);
    cnn_release(&top);
    cnn_release(&head);
}

/* In the run's directory if nothing else is said; --force keeps them, since their name says what they are. */
static void features_are_computed_once(void **state)
{
    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");
    sha expected = sha_of(&config);

    assert_said("features: 290 pictures");
    assert_sha(&config, expected);
    assert_said("features: taken from ");
    assert_int_equal(count_caches(state, "run/features"), 1);
    config.cluster.threads = 2;
    assert_int_equal(pace__remove_tree(in(state, "run/features"), &said_log), PACE_OK);
    assert_sha(&config, expected);
    assert_said("features: 290 pictures");
}

/* What features depend on gives them another name; what they do not depend on does not. */
static void a_cache_is_never_out_of_date(void **state)
{
    tiny_pictures_plan other = plain_set, larger = plain_set, third = plain_set;
    size_t caches = 1;

    other.seed++;
    third.seed += 2;
    larger.side++;
    make_pretrained(state, "first", 3, 3);
    make_pretrained(state, "second", 4, 3);
    make_set(state, "set", plain_set);
    make_set(state, "other", other);
    make_set(state, "larger", larger);
    pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");

    config.own.cnn.feature_cache = in(state, "cache");
    train_alone(&config);
    assert_said("features: 290 pictures");
    pace_train_config same[] = {config, config, config, config, config};

    same[0].seed = 9;
    same[1].optimiser.lr = 0.1;
    same[2].length.epochs = 3;
    same[3].own.cnn.smoothing = 0.1;
    same[4].optimiser.dropout = 0.3;
    for (size_t i = 0; i < 5; i++) {
        train_alone(&same[i]);
        assert_said("features: taken from ");
    }
    pace_train_config others[] = {config, config, config, config};

    others[0].data = in(state, "other");
    others[1].data = in(state, "larger");
    others[2].own.cnn.pretrained = in(state, "second/model.safetensors");
    for (size_t i = 0; i < 4; i++) {
        if (i == 3) { /* prepared anew, with the same shape, under the same name */
            assert_ok(pace__remove_tree(in(state, "set"), &said_log));
            make_set(state, "set", third);
        }
        train_alone(&others[i]);
        assert_said("features: 290 pictures");
        assert_int_equal(count_caches(state, "cache"), ++caches);
    }
    make_set(state, "again", plain_set); /* another file, written later, with the same pictures */
    config.data = in(state, "again");
    train_alone(&config);
    assert_said("features: taken from ");
}

static void turn_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+");
    int byte;

    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    fputc(byte ^ 0x5a, file);
    assert_int_equal(fclose(file), 0);
}

/* Whatever is wrong with it, the message has its name, and without it the features are computed anew. */
static void a_damaged_cache_is_refused(void **state)
{
    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");
    pace_train_result result;

    config.own.cnn.feature_cache = in(state, "cache");
    sha expected = sha_of(&config);

    for (int kind = 0; kind < 4; kind++) {
        const char *cache = find_cache(state, "cache");
        char path[640];

        snprintf(path, sizeof path, "%s/%s", cache, kind == 3 ? "classes.txt" : "part-00001.h5");
        if (kind == 0)
            turn_byte(path, 40);
        else if (kind == 1)
            assert_int_equal(truncate(path, 3000), 0);
        else
            assert_int_equal(unlink(path), 0);
        said_clear();
        pace_status status = pace_train(&config, &said_log, NULL, &result);

        if (status == PACE_OK || errors_said() != 1 || !strstr(said, cache))
            fail_msg("kind %d: status %d; the messages are:\n%s", kind, status, said);
        assert_ok(pace__remove_tree(cache, &said_log));
        assert_sha(&config, expected);
        assert_said("features: 290 pictures");
    }
}

typedef struct counted_stop {
    _Atomic int stop;
    int left; /* progress records until it is raised */
} counted_stop;

static void stop_after_some(void *user, const pace_record *record)
{
    counted_stop *self = user;
    const pace_field *phase = pace_record_find(record, "phase");

    if (strcmp(record->kind, "progress") == 0 && phase && strcmp(phase->value.text, "features") == 0 &&
        --self->left == 0)
        self->stop = 1;
    if (strcmp(record->kind, "step") == 0) /* other ranks were so fast that there was no such record */
        self->stop = 1;
}

/* Stopped while it computes features, at the given record of progress. */
static void interrupt_features(run_fn *run, pace_train_config config, int records)
{
    counted_stop self = {0, records};
    pace_sink sink = {stop_after_some, &self};
    pace_registry *registry = pace_registry_create();
    pace_train_result result;

    config.stop = &self.stop;
    said_clear();
    pace_registry_attach(registry, &sink);
    pace_status status = run(&config, registry, &result);

    assert_failed(status, PACE_INTERRUPTED, self.left <= 0 ? "the same command goes on" : "--resume");
    pace_registry_free(registry);
}

/* Parts that were complete stay so; the others are computed. Train and test rows of a part are a record each. */
static void interrupted_features_go_on(void **state)
{
    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");

    config.own.cnn.feature_cache = in(state, "whole");
    sha expected = sha_of(&config);
    char *whole = strdup(find_cache(state, "whole"));

    config.own.cnn.feature_cache = in(state, "cache");
    interrupt_features(run_alone, config, 3); /* in the middle of the second part */
    assert_int_equal(count_caches(state, "cache"), 0);
    said_clear();
    assert_sha(&config, expected);
    assert_said("features: 194 pictures"); /* two parts of three */
    for (int part = 0; part < 3; part++) {
        char left[640], right[640];

        snprintf(left, sizeof left, "%s/part-%05d.h5", whole, part);
        snprintf(right, sizeof right, "%s/part-%05d.h5", find_cache(state, "cache"), part);
        assert_same_file(left, right);
    }
    assert_int_equal(count_entries(in(state, "cache")), 1);
    free(whole);
}

/* Several ranks share the parts; each picture is computed once. */
static void ranks_share_the_work(void **state)
{
    tiny_pictures_plan parts = plain_set;

    parts.parts = 16;
    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", parts);
    for (size_t l = 1; l < LAYOUTS; l++) {
        char name[16];
        long all = 0;

        snprintf(name, sizeof name, "cache%zu", l);
        pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");

        lay_out(&config, layouts[l]);
        config.own.cnn.feature_cache = in(state, name);
        train(&config);
        for (const char *at = said; (at = strstr(at, "I features: ")); at++)
            all += strtol(at + 12, NULL, 10);
        assert_int_equal(count_caches(state, name), 1);
        assert_int_equal(count_entries(in(state, name)), 1);
        assert_in_range(all, 0, 290); /* only the chief speaks, and others may have been faster */
    }
}

static void interrupted_ranks_go_on(void **state)
{
    tiny_pictures_plan parts = plain_set;

    parts.parts = 8;
    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", parts);
    for (size_t l = 1; l < 3; l++) {
        char name[16];

        snprintf(name, sizeof name, "cache%zu", l);
        pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");

        lay_out(&config, layouts[l]);
        sha expected = sha_of(&config);

        config.own.cnn.feature_cache = in(state, name);
        interrupt_features(train_ranks, config, 2);
        assert_sha(&config, expected);
    }
}

/* Sets without test rows, and pictures of two classes. */
static void small_sets_have_features_too(void **state)
{
    tiny_pictures_plan no_test = plain_set, two = plain_set;

    no_test.test = 0;
    two.classes = 2;
    make_pretrained(state, "first", 3, 3);
    make_set(state, "no-test", no_test);
    make_set(state, "two", two);
    pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");

    config.data = in(state, "no-test");
    pace_train_result result = train_alone(&config);

    assert_false(result.has_test);
    assert_true(isfinite(result.train_loss));
    for (int head = PACE_HEAD_SOFTMAX; head <= PACE_HEAD_LOGIT; head++) {
        config.data = in(state, "two");
        config.own.cnn.head = head;
        config.optimiser.class_weight = "balanced";
        config.length.epochs = 12;
        result = train_alone(&config);
        assert_learned(&result, "head", (size_t)head);
    }
}

/* A dry run says what would be done, and does nothing. */
static void a_dry_run_computes_nothing(void **state)
{
    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "top");
    pace_train_result result;

    config.own.cnn.feature_cache = in(state, "cache");
    config.dry_run = true;
    said_clear();
    assert_ok(pace_train(&config, &said_log, NULL, &result));
    assert_said("features: will be computed once and kept in ");
    assert_false(pace__exists(in(state, "cache")));
    assert_false(pace__exists(in(state, "run")));
    config.dry_run = false;
    train_alone(&config);
    config.dry_run = true;
    said_clear();
    assert_ok(pace_train(&config, &said_log, NULL, &result));
    assert_said("features: will be taken from ");
}

/* --- what is refused --- */

static void what_does_not_fit_is_refused(void **state)
{
    static const char *const trains[] = {"all", "from:conv2", "top"};
    static const char empty[] = "";

    make_pretrained(state, "first", 3, 3);
    make_set(state, "set", plain_set);
    put_text(in(state, "text"), "these are no weights");
    put_text(in(state, "empty"), empty);
    for (size_t i = 0; i < 3; i++) {
        pace_train_config config = settings_from(state, in(state, "none.safetensors"), trains[i]);

        fail_to_train(&config, PACE_NO_INPUT, "none.safetensors");
        config.own.cnn.pretrained = in(state, "text");
        fail_to_train(&config, PACE_BAD_DATA, in(state, "text"));
        config.own.cnn.pretrained = in(state, "empty");
        fail_to_train(&config, PACE_BAD_DATA, in(state, "empty"));
        config.own.cnn.pretrained = in(state, "first/model.safetensors");
        config.own.cnn.name_map = in(state, "nomap");
        fail_to_train(&config, PACE_NO_INPUT, in(state, "nomap"));
        config.own.cnn.name_map = NULL;
        config.own.cnn.width = 0.25;
        fail_to_train(&config, PACE_BAD_DATA, "first/model.safetensors");
        config.own.cnn.width = 0.125;
        config.own.cnn.arch = PACE_ARCH_RESNET20;
        if (i != 1) /* it has no conv2 */
            fail_to_train(&config, PACE_BAD_DATA, "first/model.safetensors");
        lay_out(&config, layouts[1]);
        config.own.cnn.arch = PACE_ARCH_SMALL;
        config.own.cnn.pretrained = in(state, "text");
        pace_train_result result;

        said_clear();
        assert_failed(train_ranks(&config, NULL, &result), PACE_BAD_DATA, in(state, "text"));
    }
    assert_false(pace__exists(in(state, "run/model.safetensors")));
    pace_train_config config = settings_from(state, in(state, "first/model.safetensors"), "from:nonsense");

    fail_to_train(&config, PACE_USAGE, "conv1");
    config.own.cnn.train = "from:";
    fail_to_train(&config, PACE_USAGE, "from:");
    config.own.cnn.train = "top";
    config.own.cnn.augment = "flip";
    fail_to_train(&config, PACE_USAGE, "--augment");
    config.own.cnn.augment = "none";
    train_alone(&config);
    config.data = find_cache(state, "run/features");
    fail_to_train(&config, PACE_USAGE, "feature cache");
    config.own.cnn.train = "all";
    config.own.cnn.pretrained = NULL;
    fail_to_train(&config, PACE_USAGE, "feature");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* see test_train_images.c */
    const struct CMUnitTest tests[] = {
        TEST(frozen_layers_stay_as_they_are),
        TEST(nothing_of_frozen_layers_is_sent),
        TEST(more_workers_compute_the_same),
        TEST(a_run_with_frozen_layers_resumes),
        TEST(a_run_that_begins_again_keeps_its_weights),
        TEST(a_network_begins_with_the_weights_of_a_file),
        TEST(the_head_learns_in_every_mode),
        TEST(features_are_what_the_layers_make),
        TEST(features_are_computed_once),
        TEST(a_cache_is_never_out_of_date),
        TEST(a_damaged_cache_is_refused),
        TEST(interrupted_features_go_on),
        TEST(ranks_share_the_work),
        TEST(interrupted_ranks_go_on),
        TEST(small_sets_have_features_too),
        TEST(a_dry_run_computes_nothing),
        TEST(what_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
