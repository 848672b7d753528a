/* What a search decides: what may be tried, which candidates there are, who goes on; and what it keeps of a run. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tune/told.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* --- what is tried --- */

static pace_status read_tries(int model, pace__tries *tries, const char *const *items, size_t count)
{
    pace_texts texts = {(const char **)(uintptr_t)items, count};

    return pace__tries_read(&texts, model, &said_log, tries);
}

static void tries_are_ranges_and_lists(void **state)
{
    static const char *const items[] = {"lr=0.01..0.3", "epochs=2..4", "l2=0,1e-6,1e-6,1e-5", "exact=on,off",
                                        "clip=-1..5"};
    pace__tries tries;

    (void)state;
    assert_ok(read_tries(PACE_MODEL_LOGREG, &tries, items, 5));
    assert_int_equal(tries.count, 5);
    assert_true(tries.of[0].count == 0 && tries.of[0].logarithmic);
    assert_true(tries.of[0].low == 0.01 && tries.of[0].high == 0.3);
    assert_false(tries.of[1].logarithmic); /* ends that are near */
    assert_int_equal(tries.of[2].count, 3);
    assert_string_equal(tries.of[2].values[2], "1e-5");
    assert_int_equal(tries.of[3].count, 2);
    assert_false(tries.of[4].logarithmic); /* an end below 0 */
    assert_true(pace__combinations(&tries) == UINT64_MAX);
    assert_int_equal(pace__grid_size(&tries), 5 * 3 * 3 * 2 * 5);
    pace__tries_release(&tries);
}

static void texts_have_commas(void **state)
{
    static const char *const items[] = {"augment=flip\\,crop,none", "train=top,from:../x"};
    pace__tries tries;

    (void)state;
    assert_ok(read_tries(PACE_MODEL_CNN, &tries, items, 2));
    assert_true(tries.of[0].own);
    assert_int_equal(tries.of[0].count, 2);
    assert_string_equal(tries.of[0].values[0], "flip,crop");
    assert_string_equal(tries.of[1].values[1], "from:../x"); /* of texts there are no ranges */
    pace__tries_release(&tries);
}

static void refused(const char *item, const char *why)
{
    pace__tries tries;

    assert_failed(read_tries(PACE_MODEL_LOGREG, &tries, &item, 1), PACE_USAGE, why);
    pace__tries_release(&tries);
}

static void bad_tries_are_named(void **state)
{
    static const char *const twice[] = {"lr=1", "lr=2"};
    pace__tries tries;

    (void)state;
    refused("lr", "say what to try");
    refused("lr=", "say what to try");
    refused("=1", "say what to try");
    refused("lrr=1", "no such option (did you mean lr?)");
    refused("learning_rate=1", "did you mean lr?");
    refused("hidden=32,64", "--try hidden: is for --model rnn, not for logreg");
    refused("hosts=a", "--try hosts: it is the same for all runs");
    refused("workers=1,2", "the same for all runs");
    refused("model=rnn", "the same for all runs");
    refused("validation=0.1,0.2", "the same for all runs");
    refused("lr=1,x", "--try lr: 'x': not a number");
    refused("lr=1e9", "out of range");
    refused("lr=0..1", "'0': must be above 0");
    refused("epochs=1.5..3", "not a whole number");
    refused("seed=1..9223372036854775807", "at most 1000000000000000");
    refused("lr=1..0.5", "from the lower to the higher end");
    refused("lr=0.5..0.5", "from the lower to the higher end");
    refused("lr=0.1..0.5,1", "either a range");
    refused("optimizer=adagrad..adam", "ranges are of numbers");
    refused("optimizer=adamm", "did you mean adam?");
    refused("l2=0,,1", "--try l2: '': not a number");
    assert_failed(read_tries(PACE_MODEL_LOGREG, &tries, twice, 2), PACE_USAGE, "given twice");
    pace__tries_release(&tries);
    assert_failed(read_tries(PACE_MODEL_LOGREG, &tries, NULL, 0), PACE_USAGE, "nothing to try");
}

/* --- candidates --- */

static void samples_lie_in_their_ranges(void **state)
{
    static const char *const items[] = {"lr=0.001..1", "epochs=2..5", "batch=10..1000", "l2=0,1e-6,1e-5"};
    pace__tries tries;
    pace_train_config base = {0};
    int below = 0, epochs[6] = {0};

    (void)state;
    assert_ok(read_tries(PACE_MODEL_LOGREG, &tries, items, 4));
    for (uint64_t place = 0; place < 2000; place++) {
        pace__candidate candidate;
        pace_train_config config = base;

        pace__candidate_sample(&tries, 7, place, &candidate);
        pace__candidate_apply(&tries, &candidate, &config);
        assert_true(config.optimiser.lr >= 0.001 && config.optimiser.lr <= 1);
        assert_true(config.length.epochs >= 2 && config.length.epochs <= 5);
        assert_true(config.length.batch >= 10 && config.length.batch <= 1000);
        below += config.optimiser.lr < 0.0316; /* the middle, on a logarithmic scale */
        epochs[config.length.epochs]++;
    }
    assert_in_range(below, 900, 1100);
    for (int i = 2; i <= 5; i++)
        assert_in_range(epochs[i], 400, 600);
    pace__tries_release(&tries);
}

static void samples_follow_from_seed_and_place(void **state)
{
    static const char *const items[] = {"lr=0.001..1", "l2=0,1e-6,1e-5"};
    pace__tries tries;
    pace__candidate candidate;
    char one[PACE__CANDIDATE_TEXT], same[PACE__CANDIDATE_TEXT], other[PACE__CANDIDATE_TEXT];

    (void)state;
    assert_ok(read_tries(PACE_MODEL_LOGREG, &tries, items, 2));
    pace__candidate_sample(&tries, 1, 5, &candidate);
    pace__candidate_words(&tries, &candidate, one);
    pace__candidate_sample(&tries, 1, 5, &candidate);
    pace__candidate_words(&tries, &candidate, same);
    pace__candidate_sample(&tries, 2, 5, &candidate);
    pace__candidate_words(&tries, &candidate, other);
    assert_string_equal(one, same);
    assert_string_not_equal(one, other);
    assert_true(strncmp(one, "lr=0.", 5) == 0 && strstr(one, " l2="));
    assert_true(strcspn(one, " ") <= strlen("lr=0.00123")); /* three digits */
    pace__tries_release(&tries);
}

static void grids_have_all_points_once(void **state)
{
    static const char *const items[] = {"lr=0.01..100", "epochs=1..3", "l2=0,1"};
    pace__tries tries;
    pace__candidate candidate;
    char words[PACE__CANDIDATE_TEXT];

    (void)state;
    assert_ok(read_tries(PACE_MODEL_LOGREG, &tries, items, 3));
    assert_int_equal(pace__grid_size(&tries), 5 * 3 * 2);
    pace__candidate_on_grid(&tries, 0, &candidate);
    assert_string_equal(pace__candidate_words(&tries, &candidate, words), "lr=0.01 epochs=1 l2=0");
    pace__candidate_on_grid(&tries, 1, &candidate);
    assert_string_equal(pace__candidate_words(&tries, &candidate, words), "lr=0.01 epochs=1 l2=1");
    pace__candidate_on_grid(&tries, 2 * 6 + 3, &candidate);
    assert_string_equal(pace__candidate_words(&tries, &candidate, words), "lr=1 epochs=2 l2=1");
    pace__candidate_on_grid(&tries, 29, &candidate);
    assert_string_equal(pace__candidate_words(&tries, &candidate, words), "lr=100 epochs=3 l2=1");
    candidate = (pace__candidate){.is_default = true};
    assert_string_equal(pace__candidate_words(&tries, &candidate, words), "defaults");
    pace__tries_release(&tries);
}

static void what_changes_nothing_is_the_defaults(void **state)
{
    static const char *const items[] = {"cell=lstm,gru", "class-weight=balanced,2"};
    pace__tries tries;
    pace__candidate candidate;
    pace_train_config base = {.model = PACE_MODEL_RNN, .optimiser.class_weight = "balanced"};

    (void)state;
    assert_ok(read_tries(PACE_MODEL_RNN, &tries, items, 2));
    pace__candidate_on_grid(&tries, 0, &candidate);
    assert_false(pace__candidate_changes(&tries, &candidate, &base));
    pace__candidate_on_grid(&tries, 1, &candidate);
    assert_true(pace__candidate_changes(&tries, &candidate, &base));
    pace__candidate_on_grid(&tries, 2, &candidate);
    assert_true(pace__candidate_changes(&tries, &candidate, &base));
    pace__tries_release(&tries);
}

/* --- halving --- */

static void assert_rungs(pace__rungs rungs, size_t count, const size_t *candidates)
{
    assert_int_equal(rungs.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rungs.candidates[i], candidates[i]);
    assert_int_equal(rungs.part[count - 1], 1);
}

static void budgets_are_kept(void **state)
{
    (void)state;
    assert_rungs(pace__rungs_make(20, UINT64_MAX, 5000, true), 3, (size_t[]){62, 20, 6});
    assert_rungs(pace__rungs_make(20, UINT64_MAX, 5000, false), 1, (size_t[]){20});
    assert_rungs(pace__rungs_make(20, 20, 5000, true), 1, (size_t[]){20}); /* it does for all */
    assert_rungs(pace__rungs_make(20, 30, 5000, true), 2, (size_t[]){30, 10});
    assert_rungs(pace__rungs_make(20, UINT64_MAX, 100, true), 2,
                 (size_t[]){30, 10}); /* a ninth is too short */
    assert_rungs(pace__rungs_make(20, UINT64_MAX, 30, true), 1, (size_t[]){20});
    assert_rungs(pace__rungs_make(1, UINT64_MAX, 5000, true), 1, (size_t[]){1});
    assert_rungs(pace__rungs_make(2, UINT64_MAX, 5000, true), 1, (size_t[]){2});
    assert_rungs(pace__rungs_make(4, UINT64_MAX, 5000, true), 3, (size_t[]){9, 3, 2});
    for (int64_t budget = 1; budget <= PACE__CANDIDATES_MAX; budget++) {
        pace__rungs rungs = pace__rungs_make(budget, UINT64_MAX, 5000, true);

        assert_true(pace__rungs_cost(&rungs) <= (double)budget + 1e-6);
        assert_true(rungs.candidates[0] >= (size_t)budget && rungs.candidates[0] <= PACE__CANDIDATES_MAX);
    }
    assert_int_equal(pace__rung_steps(5000, 9), 555);
    assert_int_equal(pace__rung_steps(5, 9), 1);
}

static void the_better_ones_go_on(void **state)
{
    const double loss[] = {0.5, 0.4, NAN, 0.3, 0.4, 0.6};
    size_t chosen[6];

    (void)state;
    assert_int_equal(pace__rungs_best(loss, 6, 3, chosen), 3);
    assert_int_equal(chosen[0], 3);
    assert_int_equal(chosen[1], 1); /* ties: the earlier one */
    assert_int_equal(chosen[2], 4);
    assert_int_equal(pace__rungs_promoted(loss, 6, 3, chosen), 3);
    assert_int_equal(chosen[1], 1);
    assert_int_equal(chosen[2], 0); /* the defaults, in the place of the last */
    assert_int_equal(pace__rungs_best(loss, 6, 1, chosen), 1);
    assert_int_equal(chosen[0], 3);
    assert_int_equal(pace__rungs_best(loss, 6, 9, chosen), 5);
    assert_int_equal(chosen[4], 5);
}

static void failed_defaults_are_not_favoured(void **state)
{
    const double loss[] = {NAN, 0.4, 0.3}, none[] = {NAN, NAN};
    size_t chosen[3];

    (void)state;
    assert_int_equal(pace__rungs_promoted(loss, 3, 1, chosen), 1);
    assert_int_equal(chosen[0], 2);
    assert_int_equal(pace__rungs_promoted(none, 2, 1, chosen), 0);
}

/* --- outcomes --- */

static pace__outcome good(unsigned part, double logloss)
{
    pace__outcome outcome = {.there = true, .part = part, .steps = 100 / part, .seconds = 2};

    outcome.validation = (pace__scored){1000, {logloss, 0.75, 0.7, NAN}};
    return outcome;
}

static void outcomes_are_lines(void **state)
{
    static const char *const items[] = {"lr=0.1,0.2"};
    pace__tries tries;
    pace__outcome outcome = good(9, 0.5), back;

    (void)state;
    assert_ok(read_tries(PACE_MODEL_LOGREG, &tries, items, 1));
    strcpy(outcome.settings[0], "0.1");
    cJSON *line = pace__outcome_to_json(&outcome, &tries, "lr=0.1");

    assert_true(pace__outcome_from_json(line, &tries, &back));
    assert_true(back.there && back.part == 9 && back.steps == 11 && back.status == 0 && back.test.n == 0);
    assert_true(back.validation.n == 1000 && back.validation.value[PACE__SCORE_LOGLOSS] == 0.5);
    assert_true(isnan(back.validation.value[PACE__SCORE_F1]));
    assert_string_equal(back.settings[0], "0.1");
    cJSON_Delete(line);
    assert_false(pace__outcome_from_json(NULL, &tries, &back));
    line = cJSON_Parse("{\"part\":1,\"status\":-3,\"steps\":1e300,\"validation\":[],\"settings\":7}");
    assert_true(pace__outcome_from_json(line, &tries, &back));
    assert_true(back.status == PACE_FAILED && back.steps == 0 && back.validation.n == 0);
    assert_true(isnan(pace__outcome_loss(&back, PACE__SCORE_LOGLOSS)));
    cJSON_Delete(line);
    pace__tries_release(&tries);
}

static void higher_scores_are_lower_losses(void **state)
{
    pace__outcome outcome = good(1, 0.5), failed = good(1, 0.5);

    (void)state;
    failed.status = PACE_FAILED;
    assert_true(pace__outcome_loss(&outcome, PACE__SCORE_LOGLOSS) == 0.5);
    assert_true(pace__outcome_loss(&outcome, PACE__SCORE_ACCURACY) == 0.25);
    assert_true(isnan(pace__outcome_loss(&outcome, PACE__SCORE_F1)));
    assert_true(isnan(pace__outcome_loss(&failed, PACE__SCORE_LOGLOSS)));
    assert_false(pace__outcome_is_final(&failed));
    strcpy(failed.error, "diverged at step 5");
    assert_true(pace__outcome_is_final(&failed) && pace__outcome_is_final(&outcome));
    failed.status = 137;
    assert_false(pace__outcome_is_final(&failed));
}

/* What frozen layers make of pictures is made once for all runs; where there are none, there is no place for it. */
static void runs_share_features(void **state)
{
    static const char *const items[] = {"train=top,all"};
    pace__search search = {.features = "out/features"};
    pace__entry entry = {.steps = 900};

    (void)state;
    pace_train_defaults(PACE_MODEL_CNN, &search.base);
    assert_ok(read_tries(PACE_MODEL_CNN, &search.tries, items, 1));
    pace__candidate_on_grid(&search.tries, 0, &entry.candidate);
    pace_train_config config = pace__search_config(&search, &entry, 9, "run");

    assert_string_equal(config.own.cnn.feature_cache, "out/features");
    assert_int_equal(config.length.steps, 100);
    pace__candidate_on_grid(&search.tries, 1, &entry.candidate);
    config = pace__search_config(&search, &entry, 1, "run");
    assert_null(config.own.cnn.feature_cache);
    assert_int_equal(config.length.steps, 0);
    pace__tries_release(&search.tries);
}

/* Whoever came further stands before others, whatever they have scored. */
static void tables_begin_with_the_best(void **state)
{
    static pace__entry entries[5];
    pace__search search = {
        .entries = entries, .count = 5, .rungs = pace__rungs_make(4, UINT64_MAX, 5000, true)};
    size_t order[5];

    (void)state;
    entries[0].outcomes[0] = good(9, 0.4);
    entries[0].outcomes[2] = good(1, 0.6);
    entries[1].outcomes[0] = good(9, 0.1);
    entries[2].outcomes[0] = (pace__outcome){.there = true, .part = 9, .status = 1};
    entries[3].outcomes[2] = good(1, 0.6);
    entries[4].outcomes[2] = good(1, 0.5);
    pace__search_rank(&search, order);
    assert_memory_equal(order, ((size_t[]){4, 0, 3, 1, 2}), sizeof order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tries_are_ranges_and_lists),
        cmocka_unit_test(texts_have_commas),
        cmocka_unit_test(bad_tries_are_named),
        cmocka_unit_test(samples_lie_in_their_ranges),
        cmocka_unit_test(samples_follow_from_seed_and_place),
        cmocka_unit_test(grids_have_all_points_once),
        cmocka_unit_test(what_changes_nothing_is_the_defaults),
        cmocka_unit_test(budgets_are_kept),
        cmocka_unit_test(the_better_ones_go_on),
        cmocka_unit_test(failed_defaults_are_not_favoured),
        cmocka_unit_test(outcomes_are_lines),
        cmocka_unit_test(higher_scores_are_lower_losses),
        cmocka_unit_test(runs_share_features),
        cmocka_unit_test(tables_begin_with_the_best),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
