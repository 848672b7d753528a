#include "report/markup.h"
#include "report/page.h"

#include <assert.h>

/* The canvas is filled by assets/report.js, which goes by data-chart and data-run; without it, it is not shown. */
void pace__figure_begin(FILE *out, const char *chart, int index, const char *title)
{
    fprintf(out, "<figure class=\"chart\"><figcaption>");
    pace__text(out, title);
    fprintf(out,
            "</figcaption><div class=\"plot\"><canvas data-chart=\"%s\" data-run=\"%d\" role=\"img\" "
            "aria-label=\"",
            chart, index);
    pace__text(out, title);
    fputs("\"></canvas></div>\n", out);
}

void pace__figure_table(FILE *out)
{
    fputs("<details class=\"numbers\"><summary>Numbers</summary>\n", out);
}

void pace__figure_end(FILE *out)
{
    fputs("</details></figure>\n", out);
}

size_t pace__table_place(size_t row, size_t shown, size_t all)
{
    assert(row < shown && shown <= all);
    return shown < 2 ? all - 1 : row * (all - 1) / (shown - 1);
}
