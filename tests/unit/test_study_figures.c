/* What a study makes of its results: medians and what is compared, tables, the page; and the file that results are kept in. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "study/figures.h"
#include "study/page.h"
#include "study/table.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define CELLS_MAX 8

/* A study of one section, made by hand. */
typedef struct made {
    pace__study study;
    pace__cell_of cells[CELLS_MAX];
    pace__result results[4 * CELLS_MAX];
} made;

static void begin(made *self, pace__study_kind kind, size_t cells, int repeat)
{
    memset(self, 0, sizeof *self);
    self->study.name = "made";
    self->study.repeat = repeat;
    self->study.section_count = 1;
    self->study.results = self->results;
    self->study.sections[0] = (pace__section){
        .name = "part", .title = "A <title>", .kind = kind, .cells = self->cells, .count = cells};
}

static pace__result *add(made *self, size_t cell, int repeat, double seconds)
{
    pace__result *result = &self->results[self->study.result_count++];

    pace__result_clear(result);
    result->cell = cell;
    result->repeat = repeat;
    result->value[PACE__M_SECONDS] = seconds;
    result->value[PACE__M_ROWS_S] = 1000 / seconds;
    result->value[PACE__M_WALL] = 2 * seconds;
    return result;
}

static pace__cell_of cell(int mode, int64_t workers, int64_t batch)
{
    return (pace__cell_of){.mode = mode, .workers = workers, .ps = -1, .batch = batch};
}

static void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%.17g instead of %.17g", value, wanted);
}

static void medians_have_a_spread(void **state)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 2, 3};
    pace__spread spread = pace__spread_of(odd, 3);

    (void)state;
    assert_near(spread.median, 2);
    assert_near(spread.low, 1);
    assert_near(spread.high, 3);
    assert_near(pace__spread_of(even, 4).median, 2.5);
    assert_int_equal(pace__spread_of(NULL, 0).count, 0);
    assert_true(isnan(pace__spread_of(NULL, 0).median));
}

/* Two lines, that of each mode against its own fewest workers; one begins at two. */
static void make_scaling(made *self)
{
    begin(self, PACE__SCALING, 5, 3);
    self->cells[0] = cell(PACE_MODE_ALLREDUCE, 1, 100);
    self->cells[1] = cell(PACE_MODE_ALLREDUCE, 2, 100);
    self->cells[2] = cell(PACE_MODE_ALLREDUCE, 4, 100);
    self->cells[3] = cell(PACE_MODE_PS_SYNC, 2, 100);
    self->cells[4] = cell(PACE_MODE_PS_SYNC, 4, 100);
    add(self, 0, 1, 8);
    add(self, 0, 2, 10);
    add(self, 0, 3, 12);
    add(self, 1, 1, 5);
    add(self, 1, 2, 4);
    add(self, 2, 1, 2.5);
    add(self, 3, 1, 6);
    add(self, 4, 1, 4);
}

static void speedup_is_against_the_fewest_workers(void **state)
{
    made self;
    pace__figures figures;

    (void)state;
    make_scaling(&self);
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_near(pace__figure(&figures, 0, PACE__C_TIME).median, 10);
    pace__spread two = pace__figure(&figures, 1, PACE__C_SPEEDUP);

    assert_near(two.median, 10 / 4.5);
    assert_near(two.low, 2);
    assert_near(two.high, 2.5);
    assert_near(pace__figure(&figures, 2, PACE__C_EFFICIENCY).median, 1);
    assert_near(pace__figure(&figures, 3, PACE__C_SPEEDUP).median, 1);
    assert_near(pace__figure(&figures, 4, PACE__C_SPEEDUP).median, 1.5);
    assert_near(pace__figure(&figures, 4, PACE__C_EFFICIENCY).median, 0.75);
    pace__figures_release(&figures);
}

static void weak_speedup_is_of_rows(void **state)
{
    made self;
    pace__figures figures;

    (void)state;
    begin(&self, PACE__WEAK, 2, 1);
    self.cells[0] = cell(PACE_MODE_ALLREDUCE, 1, 100);
    self.cells[1] = cell(PACE_MODE_ALLREDUCE, 4, 400);
    add(&self, 0, 1, 10)->value[PACE__M_ROWS_S] = 100;
    add(&self, 1, 1, 12.5)->value[PACE__M_ROWS_S] = 320;
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_near(pace__figure(&figures, 1, PACE__C_SPEEDUP).median, 3.2);
    assert_near(pace__figure(&figures, 1, PACE__C_EFFICIENCY).median, 0.8); /* t1 / tN */
    pace__figures_release(&figures);
}

static void balance_is_against_off(void **state)
{
    made self;
    pace__figures figures;

    (void)state;
    begin(&self, PACE__BALANCE, 2, 1);
    self.cells[0] = self.cells[1] = cell(PACE_MODE_ALLREDUCE, 4, 100);
    self.cells[1].balance = 2;
    add(&self, 0, 1, 9);
    add(&self, 1, 1, 6);
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_near(pace__figure(&figures, 1, PACE__C_SPEEDUP).median, 1.5);
    pace__figures_release(&figures);
}

/* A cell that has failed has a row and a note; what would be compared with it is compared with the next. */
static void failed_cells_are_said(void **state)
{
    made self;
    pace__figures figures;
    char text[PACE__NOTE_TEXT], figure[PACE__FIGURE_TEXT];

    (void)state;
    begin(&self, PACE__SCALING, 2, 1);
    self.cells[0] = cell(PACE_MODE_ALLREDUCE, 1, 100);
    self.cells[1] = cell(PACE_MODE_ALLREDUCE, 2, 100);
    pace__result *bad = add(&self, 0, 1, NAN);

    bad->status = 65;
    strcpy(bad->error, "rows are damaged");
    add(&self, 1, 1, 6);
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_near(pace__figure(&figures, 1, PACE__C_SPEEDUP).median, 1);
    assert_int_equal(pace__figure(&figures, 0, PACE__C_SPEEDUP).count, 0);
    assert_string_equal(pace__figure_text(&figures, 0, PACE__C_RUNS, false, figure), "0, 1 failed");
    assert_string_equal(pace__table_note(&figures, 0, text),
                        "failed: allreduce, 1 worker, batch 100: exit code 65: rows are damaged");
    assert_null(pace__table_note(&figures, 1, text));
    pace__figures_release(&figures);
}

static void set_curve(pace__result *result, const double *loss, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        result->curve.t[i] = 10 * (double)(i + 1);
        result->curve.epoch[i] = 0.5 * (double)(i + 1);
        result->curve.loss[i] = loss[i];
    }
    result->curve.count = count;
}

static void thresholds_are_what_all_reach(void **state)
{
    made self;
    pace__figures figures;

    (void)state;
    begin(&self, PACE__CONVERGE, 2, 1);
    self.cells[0] = cell(PACE_MODE_ALLREDUCE, 1, 100);
    self.cells[1] = cell(PACE_MODE_ALLREDUCE, 2, 100);
    set_curve(add(&self, 0, 1, 9), (double[]){0.7, 0.5, 0.4, 0.45}, 4);
    set_curve(add(&self, 1, 1, 6), (double[]){0.6, 0.5, 0.5}, 3);
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_near(figures.threshold, 0.5);
    assert_near(pace__figure(&figures, 0, PACE__C_TO_TIME).median, 20);
    assert_near(pace__figure(&figures, 1, PACE__C_TO_EPOCHS).median, 1);
    pace__figures_release(&figures);
    self.study.sections[0].threshold = 0.45; /* that one never comes to */
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_near(pace__figure(&figures, 0, PACE__C_TO_TIME).median, 30);
    assert_int_equal(pace__figure(&figures, 1, PACE__C_TO_TIME).count, 0);
    pace__figures_release(&figures);
}

static void cost_has_a_row_for_each_type(void **state)
{
    made self;
    pace__figures figures;
    char text[PACE__FIGURE_TEXT];

    (void)state;
    begin(&self, PACE__COST, 1, 1);
    self.cells[0] = (pace__cell_of){.mode = PACE_MODE_PS_SYNC, .workers = 3, .ps = 1, .batch = 100};
    add(&self, 0, 1, 1800);
    assert_ok(pace__prices_parse("a 1 EUR\nb 3 EUR slots=4 speed=2", "p", &said_log, &self.study.prices));
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_int_equal(figures.count, 2);
    assert_near(pace__figure(&figures, 0, PACE__C_COST).median, 2); /* four machines, half an hour */
    assert_near(pace__figure(&figures, 1, PACE__C_COST).median, 0.75);
    assert_near(pace__figure(&figures, 1, PACE__C_COST_TIME).median, 900);
    assert_string_equal(pace__figure_text(&figures, 1, PACE__C_COST, false, text), "0.75 EUR");
    pace__figures_release(&figures);
}

static void published_figures_stand_beside(void **state)
{
    static const pace__published published[] = {{.workers = 1, .metric = PACE__M_SECONDS, .value = 100},
                                                {.workers = 2, .metric = PACE__M_SECONDS, .value = 80}};
    made self;
    pace__figures figures;

    (void)state;
    make_scaling(&self);
    self.study.sections[0].published = published;
    self.study.sections[0].published_count = 2;
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_near(pace__figure(&figures, 1, (pace__column)(PACE__C_PUBLISHED + PACE__M_SECONDS)).median, 80);
    assert_near(pace__figure(&figures, 1, PACE__C_PUBLISHED_SPEEDUP).median, 1.25);
    assert_int_equal(pace__figure(&figures, 2, PACE__C_PUBLISHED_SPEEDUP).count, 0);
    pace__figures_release(&figures);
}

/* --- tables --- */

static char *written(void (*put)(FILE *out, const pace__figures *figures), const pace__figures *figures)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    put(out, figures);
    fclose(out);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("there is no \"%s\" in:\n%s", part, text);
}

/* A name may have what ends a cell of Markdown. */
static void a_name_is_one_cell(void **state)
{
    made self;
    pace__figures figures;

    (void)state;
    begin(&self, PACE__COST, 1, 1);
    self.cells[0] = cell(PACE_MODE_ALLREDUCE, 2, 100);
    add(&self, 0, 1, 1800);
    assert_ok(pace__prices_parse("a|b\\ 1 EUR", "p", &said_log, &self.study.prices));
    assert_true(pace__figures_make(&figures, &self.study, 0));
    char *markdown = written(pace__table_put_markdown, &figures);

    assert_has(markdown, "| a\\|b\\\\ |");
    free(markdown);
    pace__figures_release(&figures);
}

static void tables_are_written(void **state)
{
    made self;
    pace__figures figures;

    (void)state;
    make_scaling(&self);
    assert_true(pace__figures_make(&figures, &self.study, 0));
    char *text = written(pace__table_put_text, &figures),
         *markdown = written(pace__table_put_markdown, &figures),
         *csv = written(pace__table_put_csv, &figures), *json = pace__table_json(&figures, 1);

    assert_has(text, "mode       workers  batch  runs");
    assert_has(text, "allreduce        1    100     3  10.0 s \xc2\xb1"
                     "20 %");
    assert_has(markdown, "| allreduce | 4 | 100 | 1 | 2.50 s | 400 | 4 | 100 % |");
    assert_has(csv, "section,mode,workers,batch,runs,seconds,seconds_low,seconds_high,samples_per_second,");
    assert_has(csv, "part,\"allreduce\",1,100,\"3\",10,8,12,100,");
    assert_has(json, "\"mode\":\"ps-sync\",\"workers\":4,\"batch\":100,\"runs\":1,\"failed\":0,\"seconds\":{"
                     "\"median\":4,\"low\":4,\"high\":4}");
    free(text);
    free(markdown);
    free(csv);
    free(json);
    pace__figures_release(&figures);
}

static void pages_have_charts_of_what_is_there(void **state)
{
    made self;
    pace__figures figures;
    char *page;
    size_t size;

    (void)state;
    make_scaling(&self);
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_int_equal(pace__charts_count(&figures), 4);
    FILE *out = open_memstream(&page, &size);

    assert_ok(pace__study_page(out, &figures, 1, &said_log));
    fclose(out);
    assert_has(page, "<h2>A &lt;title&gt;</h2>");
    assert_has(
        page,
        "{\"title\":\"Speedup\",\"type\":\"line\",\"x\":\"workers\",\"y\":\"speedup\",\"unit\":\"real\"");
    assert_has(page, "{\"label\":\"allreduce\",\"style\":\"\",\"points\":[[1,1,0.833333,1.25],[2,2.22222,2,2."
                     "5],[4,4,4,4]]}");
    assert_has(page, "{\"label\":\"ideal\",\"style\":\"ideal\",\"points\":[[1,1],[2,2],[4,4]]}");
    assert_has(page, "data-section=\"0\" data-chart=\"3\"");
    free(page);
    pace__figures_release(&figures);
    begin(&self, PACE__SCALING, 1, 1); /* nothing has run */
    self.cells[0] = cell(PACE_MODE_ALLREDUCE, 1, 100);
    assert_true(pace__figures_make(&figures, &self.study, 0));
    assert_int_equal(pace__charts_count(&figures), 0);
    pace__figures_release(&figures);
}

/* --- results as lines --- */

static void results_are_read_back(void **state)
{
    pace__result before, after;
    pace__cell_of of = {.mode = PACE_MODE_PS_SYNC, .workers = 2, .ps = 1, .batch = 100};

    (void)state;
    pace__result_clear(&before);
    before.repeat = 2;
    before.value[PACE__M_SECONDS] = 0.1;
    strcpy(before.bottleneck, "network");
    set_curve(&before, (double[]){0.7, 0.5}, 2);
    before.curve.of_test = true;
    cJSON *line = pace__result_to_json(&before, "modes", &of);

    assert_string_equal(cJSON_GetObjectItem(line, "cell")->valuestring,
                        "mode=ps-sync workers=2 ps=1 batch=100 steps=0 balance=off");
    pace__result_from_json(line, &after);
    cJSON_Delete(line);
    assert_int_equal(after.repeat, 2);
    assert_int_equal(after.status, 0);
    assert_near(after.value[PACE__M_SECONDS], 0.1);
    assert_true(isnan(after.value[PACE__M_AUC]));
    assert_string_equal(after.bottleneck, "network");
    assert_int_equal(after.curve.count, 2);
    assert_true(after.curve.of_test && after.curve.loss[1] == 0.5);
    line =
        cJSON_Parse("{\"repeat\":\"x\",\"status\":-3,\"values\":[1],\"curve\":{\"t\":[1,2],\"loss\":[1]}}");
    pace__result_from_json(line, &after); /* odd, and nothing breaks */
    assert_int_equal(after.repeat, 0);
    assert_int_equal(after.status, PACE_FAILED);
    assert_int_equal(after.curve.count, 0);
    cJSON_Delete(line);
}

static void write_text(const char *path, const char *text)
{
    assert_ok(pace__write_file_atomically(path, text, strlen(text), &said_log));
}

static void ledgers_go_on(void **state)
{
    char *directory = strdup(in(state, "study"));
    pace__ledger ledger, other;

    assert_ok(pace__ledger_open(directory, "study", "scaling of x", false, &said_log, &ledger));
    assert_null(pace__ledger_next(&ledger));
    assert_ok(pace__ledger_add(&ledger, "{\"a\":1}", &said_log));
    assert_int_equal(pace__ledger_open(directory, "study", "scaling of x", false, &said_log, &other),
                     PACE_USAGE);
    assert_said("another study is writing into it");
    assert_ok(pace__write_all(ledger.fd, "{\"b\"", 4, "it", &said_log)); /* cut by a crash */
    pace__ledger_close(&ledger);
    assert_ok(pace__ledger_open(directory, "study", "scaling of x", false, &said_log, &ledger));
    assert_string_equal(pace__ledger_next(&ledger), "{\"a\":1}");
    assert_null(pace__ledger_next(&ledger));
    assert_ok(pace__ledger_add(&ledger, "{\"c\":1}", &said_log));
    pace__ledger_close(&ledger);
    assert_ok(pace__ledger_open(directory, "study", "scaling of x", false, &said_log, &ledger));
    pace__ledger_next(&ledger);
    assert_string_equal(pace__ledger_next(&ledger), "{\"c\":1}");
    pace__ledger_close(&ledger);
    assert_int_equal(pace__ledger_open(directory, "study", "scaling of y", false, &said_log, &ledger),
                     PACE_USAGE);
    assert_said("holds another study (scaling of x)");
    assert_ok(pace__ledger_open(directory, "study", "scaling of y", true, &said_log, &ledger));
    assert_null(pace__ledger_next(&ledger));
    pace__ledger_close(&ledger);
    free(directory);
}

/* All of the first line but its end. */
static void a_first_line_that_was_cut_is_written_again(void **state)
{
    char *directory = strdup(in(state, "cut"));
    pace__ledger ledger;

    assert_ok(pace__make_dirs(directory, &said_log));
    write_text(in(state, "cut/results.jsonl"), "{\"paceline_study\":1,\"study\":\"modes\"}");
    assert_int_equal(pace__ledger_open(directory, "study", "batch", false, &said_log, &ledger), PACE_USAGE);
    assert_said("holds another study (modes)");
    assert_ok(pace__ledger_open(directory, "study", "modes", false, &said_log, &ledger));
    assert_null(pace__ledger_next(&ledger));
    assert_ok(pace__ledger_add(&ledger, "{\"a\":1}", &said_log));
    pace__ledger_close(&ledger);
    assert_ok(pace__ledger_open(directory, "study", "modes", false, &said_log, &ledger));
    assert_string_equal(pace__ledger_next(&ledger), "{\"a\":1}");
    pace__ledger_close(&ledger);
    free(directory);
}

static void other_files_are_left_alone(void **state)
{
    char *directory = strdup(in(state, "theirs"));
    pace__ledger ledger;

    assert_ok(pace__make_dirs(directory, &said_log));
    write_text(in(state, "theirs/thesis"), "years of work\n");
    assert_int_equal(pace__ledger_open(directory, "study", "modes", true, &said_log, &ledger), PACE_USAGE);
    assert_said("holds no study");
    write_text(in(state, "theirs/results.jsonl"), "{\"mine\":1}\n");
    assert_int_equal(pace__ledger_open(directory, "study", "modes", true, &said_log, &ledger), PACE_USAGE);
    assert_said("was not written by a study");
    free(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_have_a_spread),
        cmocka_unit_test(speedup_is_against_the_fewest_workers),
        cmocka_unit_test(weak_speedup_is_of_rows),
        cmocka_unit_test(balance_is_against_off),
        cmocka_unit_test(failed_cells_are_said),
        cmocka_unit_test(thresholds_are_what_all_reach),
        cmocka_unit_test(cost_has_a_row_for_each_type),
        cmocka_unit_test(published_figures_stand_beside),
        cmocka_unit_test(tables_are_written),
        cmocka_unit_test(a_name_is_one_cell),
        cmocka_unit_test(pages_have_charts_of_what_is_there),
        cmocka_unit_test(results_are_read_back),
        cmocka_unit_test_setup_teardown(ledgers_go_on, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(a_first_line_that_was_cut_is_written_again, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(other_files_are_left_alone, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
