/* Test rows that the model is surest of, and wrong: mistakes.json, which has their words and pictures in it. */
#include "files/file.h"
#include "report/markup.h"
#include "report/page.h"
#include "run/rundir.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const cJSON *mistake, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(mistake, name));
}

/* What could end the attribute is not base64, and not ours. */
static bool is_base64(const char *text)
{
    return text &&
           text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")] == '\0';
}

static void put_shown(FILE *out, const cJSON *mistake)
{
    const char *png = text_of(mistake, "png"), *text = text_of(mistake, "text"),
               *name = text_of(mistake, "name");

    fputs("<td class=\"mistake\">", out);
    if (is_base64(png))
        fprintf(out, "<img alt=\"\" src=\"data:image/png;base64,%s\"> ", png);
    pace__text(out, text ? text : name ? name : "");
    fputs("</td>", out);
}

static void put_table(FILE *out, const cJSON *worst)
{
    static const char *const headings[] = {"It is", "Taken for", ">Probability", "Row", NULL};
    const cJSON *mistake;

    pace__table_begin(out, headings);
    cJSON_ArrayForEach(mistake, worst)
    {
        pace__row_begin(out);
        pace__put_cell(out, text_of(mistake, "actual"));
        pace__put_cell(out, text_of(mistake, "predicted"));
        pace__put_cell_amount(
            out, cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(mistake, "probability")), PACE__SHARE);
        put_shown(out, mistake);
        pace__row_end(out);
    }
    pace__table_end(out);
}

void pace__page_put_mistakes(FILE *out, const pace__page_run *run)
{
    char *path = pace__run_path(run->history->path, PACE__RUN_MISTAKES), *text = NULL,
         number[PACE__AMOUNT_TEXT];
    size_t size;
    cJSON *mistakes = NULL;

    if (path && run->history->summary && pace__exists(path) &&
        pace__read_file(path, PACE__MISTAKES_BYTES_MAX, &text, &size, NULL) == PACE_OK)
        mistakes = cJSON_Parse(text);
    const cJSON *worst = cJSON_GetObjectItemCaseSensitive(mistakes, "worst");

    if (cJSON_GetArraySize(worst) > 0) {
        double all = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(mistakes, "mistakes"));

        fprintf(out,
                "<h3>Worst mistakes</h3>\n<p>Of %s test rows that the model takes for another class, those "
                "that it is surest of.</p>\n",
                pace__amount(all, PACE__COUNT, number));
        put_table(out, worst);
    }
    cJSON_Delete(mistakes);
    free(text);
    free(path);
}
