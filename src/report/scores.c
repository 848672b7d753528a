/* How good the models are, beyond a number: calibration, ROC, who was taken for whom, what weighs most. */
#include "report/markup.h"
#include "report/page.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define CLASSES_MAX 20

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static double number(const cJSON *value)
{
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static const cJSON *test_of(const pace__page_run *run)
{
    return member(run->history->summary, "test");
}

static const cJSON *curve_of(const pace__page_run *run, const char *name)
{
    const cJSON *list = member(member(run->history->summary, "curves"), name);

    return cJSON_IsArray(list) && cJSON_GetArraySize(list) > 0 ? list : NULL;
}

static bool has_curve(const pace__page_run *runs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (curve_of(&runs[i], name))
            return true;
    }
    return false;
}

/* --- calibration and ROC --- */

static void put_bins(FILE *out, const pace__page_run *run, bool named)
{
    const cJSON *bin;

    cJSON_ArrayForEach(bin, curve_of(run, "bins"))
    {
        pace__row_begin(out);
        if (named)
            pace__put_cell(out, run->name);
        pace__put_cell_amount(out, number(cJSON_GetArrayItem(bin, 0)), PACE__REAL);
        pace__put_cell_amount(out, number(cJSON_GetArrayItem(bin, 1)), PACE__REAL);
        pace__put_cell_amount(out, number(cJSON_GetArrayItem(bin, 2)), PACE__COUNT);
        pace__row_end(out);
    }
}

static void put_points(FILE *out, const pace__page_run *run, bool named)
{
    const cJSON *list = curve_of(run, "roc");
    size_t all = list ? (size_t)cJSON_GetArraySize(list) : 0, shown = all < 11 ? all : 11;

    for (size_t i = 0; i < shown; i++) {
        const cJSON *point = cJSON_GetArrayItem(list, (int)pace__table_place(i, shown, all));

        pace__row_begin(out);
        if (named)
            pace__put_cell(out, run->name);
        pace__put_cell_amount(out, number(cJSON_GetArrayItem(point, 0)), PACE__SHARE);
        pace__put_cell_amount(out, number(cJSON_GetArrayItem(point, 1)), PACE__SHARE);
        pace__row_end(out);
    }
}

static void put_curves(FILE *out, const pace__page_run *runs, size_t count)
{
    static const char *const bin_headings[] = {"Run", ">Predicted, mean", ">Positive, share", ">Rows", NULL};
    static const char *const roc_headings[] = {"Run", ">False positives, of negative rows",
                                               ">True positives, of positive rows", NULL};

    fputs("<div class=\"charts\">\n", out);
    pace__figure_begin(out, "calibration", -1,
                       "Calibration: how many of the rows are positive, by what was predicted");
    pace__figure_table(out);
    pace__table_begin(out, bin_headings + (count == 1));
    for (size_t i = 0; i < count; i++)
        put_bins(out, &runs[i], count > 1);
    pace__table_end(out);
    pace__figure_end(out);
    pace__figure_begin(out, "roc", -1, "ROC: what is found, against what is taken for it");
    pace__figure_table(out);
    pace__table_begin(out, roc_headings + (count == 1));
    for (size_t i = 0; i < count; i++)
        put_points(out, &runs[i], count > 1);
    pace__table_end(out);
    pace__figure_end(out);
    fputs("</div>\n", out);
}

/* --- confusion --- */

static void put_yes_no(FILE *out, const cJSON *confusion)
{
    static const char *const headings[] = {"Label", ">Predicted 1", ">Predicted 0", NULL};

    pace__table_begin(out, headings);
    pace__row_begin(out);
    pace__put_cell(out, "1");
    pace__put_cell_amount(out, number(member(confusion, "tp")), PACE__COUNT);
    pace__put_cell_amount(out, number(member(confusion, "fn")), PACE__COUNT);
    pace__row_end(out);
    pace__row_begin(out);
    pace__put_cell(out, "0");
    pace__put_cell_amount(out, number(member(confusion, "fp")), PACE__COUNT);
    pace__put_cell_amount(out, number(member(confusion, "tn")), PACE__COUNT);
    pace__row_end(out);
    pace__table_end(out);
}

/* The model knows what its classes are called. */
static const char *class_name(const pace__page_run *run, int class, char digits[16])
{
    const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(member(run->model, "classes"), class));

    snprintf(digits, 16, "%d", class);
    return name ? name : digits;
}

static void put_classes(FILE *out, const pace__page_run *run, const cJSON *taken_for)
{
    int classes = cJSON_GetArraySize(taken_for) < CLASSES_MAX ? cJSON_GetArraySize(taken_for) : CLASSES_MAX;
    char digits[16];

    fputs("<p>Rows: the class. Columns: what it was taken for.</p>\n"
          "<div class=\"table\" tabindex=\"0\"><table class=\"confusion\"><thead><tr><th></th>",
          out);
    for (int i = 0; i < classes; i++) {
        fputs("<th class=\"n\">", out);
        pace__text(out, class_name(run, i, digits));
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (int i = 0; i < classes; i++) {
        pace__row_begin(out);
        pace__put_cell(out, class_name(run, i, digits));
        for (int j = 0; j < classes; j++)
            pace__put_cell_amount(out, number(cJSON_GetArrayItem(cJSON_GetArrayItem(taken_for, i), j)),
                                  PACE__COUNT);
        pace__row_end(out);
    }
    pace__table_end(out);
}

static void put_confusion(FILE *out, const pace__page_run *run, bool named)
{
    const cJSON *yes_no = member(test_of(run), "confusion"), *taken_for = curve_of(run, "taken_for");

    if (!cJSON_IsObject(yes_no) && !taken_for)
        return;
    fputs("<div><h3>Confusion", out);
    if (named) {
        fputs(": ", out);
        pace__text(out, run->name);
    }
    fputs("</h3>\n", out);
    if (taken_for)
        put_classes(out, run, taken_for);
    else
        put_yes_no(out, yes_no);
    fputs("</div>\n", out);
}

/* --- all of it --- */

void pace__page_put_scores(FILE *out, const pace__page_run *runs, size_t count)
{
    bool scored = false;

    for (size_t i = 0; i < count; i++)
        scored |= cJSON_IsObject(test_of(&runs[i]));
    fputs("<section id=\"scores\"><h2>How good it is</h2>\n", out);
    if (!scored)
        fputs("<p class=\"lack\">There are no scores of a finished model on test rows.</p>\n", out);
    else if (has_curve(runs, count, "roc"))
        put_curves(out, runs, count);
    else if (!has_curve(runs, count, "taken_for"))
        fputs("<p class=\"lack\">The summary has neither calibration nor ROC: the run was made by an earlier "
              "version, "
              "or its test rows have one label.</p>\n",
              out);
    fputs("<div class=\"beside\">\n", out);
    for (size_t i = 0; i < count; i++)
        put_confusion(out, &runs[i], count > 1);
    fputs("</div></section>\n", out);
}

static void put_feature(FILE *out, const cJSON *feature)
{
    pace__row_begin(out);
    pace__put_cell(out, cJSON_GetStringValue(member(feature, "feature")));
    pace__put_cell_amount(out, number(member(feature, "weight")), PACE__REAL);
    pace__row_end(out);
}

void pace__page_put_model(FILE *out, const pace__page_run *run)
{
    static const char *const headings[] = {"Feature", ">Weight", NULL};
    const cJSON *heaviest = member(run->model, "heaviest"), *feature;
    int count = 0;

    fputs("<h3>What weighs most</h3>\n", out);
    if (run->model_lack) {
        fputs("<p class=\"lack\">", out);
        pace__text(out, run->model_lack);
        fputs("</p>\n", out);
    } else if (!cJSON_IsArray(heaviest) || cJSON_GetArraySize(heaviest) == 0) {
        fputs(
            "<p>This kind of model has no weight for a feature alone. Its mistakes are not listed: they take "
            "the data set, which a report does not read (paceline eval --errors lists those of "
            "pictures).</p>\n",
            out);
    } else {
        pace__table_begin(out, headings);
        cJSON_ArrayForEach(feature, heaviest)
        {
            if (count++ < PACE__TOP_FEATURES)
                put_feature(out, feature);
        }
        pace__table_end(out);
    }
}
