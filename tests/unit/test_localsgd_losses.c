/* What workers learn that train by themselves and merge, beside what one learns. Of numbers, not of threads: sanitizers leave
 * it out (Makefile). */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "merging_jobs.h"

#include <math.h>

/* Without penalties; and with one that decides what is learned: if each worker's were charged, it would be far off. */
static void losses_are_close_to_those_of_mode_local(void **state)
{
    static const double l1[] = {0, 0, 0.0005, 0, 0.0005}, l2[] = {0, 0.02, 0, 0, 0.002};
    make_set(state,
             (tiny_plan){.train = 60000, .test = 20000, .ids = 311, .columns = 7, .parts = 2, .seed = 1});
    for (size_t i = 0; i < 5; i++) {
        pace_train_config config = settings(state, 1);

        config.length.batch = 512;
        config.length.epochs = 1;
        config.cluster.exchange = 0;
        config.optimiser.rule = i < 3 ? PACE_ADAGRAD : PACE_SGD;
        config.optimiser.lr = i < 3 ? 0.07 : 0; /* by default, rows of so few entries have a higher one */
        config.optimiser.l1 = l1[i];
        config.optimiser.l2 = l2[i];
        double local = train_alone(&config).test.logloss;

        for (config.cluster.workers = 2; config.cluster.workers <= 4; config.cluster.workers *= 2) {
            double found = train(&config).test.logloss;

            print_message("l1 %g, l2 %g, %d workers: %.5f against %.5f, %+.3f %%\n", l1[i], l2[i],
                          (int)config.cluster.workers, found, local, 100 * (found / local - 1));
            assert_true(fabs(found / local - 1) < 0.002);
        }
    }
}

/* Of texts mode local takes steps, and so does every worker. SGD has a mean of each. */
static void losses_of_texts_are_close_to_those_of_mode_local(void **state)
{
    static const int rules[] = {PACE_ADAGRAD, PACE_FTRL, PACE_SGD};
    static const double l2[] = {0, 0, 0, 0.005};

    make_text_set(
        state,
        (tiny_texts_plan){.train = 60000, .test = 20000, .words = 3000, .length = 19, .parts = 2, .seed = 1});
    for (size_t i = 0; i < 4; i++) {
        pace_train_config config = settings(state, 1);

        config.own.logreg.ngram = 1;
        config.length.batch = 128;
        config.length.epochs = 1;
        config.cluster.exchange = 0;
        config.optimiser.rule = rules[i % 3];
        config.optimiser.l2 = l2[i];
        double local = train_alone(&config).test.logloss;

        for (config.cluster.workers = 2; config.cluster.workers <= 4; config.cluster.workers *= 2) {
            double found = train(&config).test.logloss;

            print_message("texts, rule %d, l2 %g, %d workers: %.5f against %.5f, %+.3f %%\n", rules[i % 3],
                          l2[i], (int)config.cluster.workers, found, local, 100 * (found / local - 1));
            assert_true(fabs(found / local - 1) < 0.002);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(losses_are_close_to_those_of_mode_local, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(losses_of_texts_are_close_to_those_of_mode_local, make_directory,
                                        remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
