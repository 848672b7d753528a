/*
 * page.h - a study as one HTML document that needs nothing else: its tables, and plots with the spread of the repetitions, lines
 * of what would be ideal, and what others have published.
 *
 * Which plots a kind has is a table in charts.c; assets/study.js draws what it is told, and knows no kinds.
 */
#ifndef STUDY_PAGE_H
#define STUDY_PAGE_H

#include "study/figures.h"

#include <stdio.h>

pace_status pace__study_page(FILE *out, const pace__figures *figures, size_t count, const pace_log *log);

/* charts.c: the plots of a section, for one. How many there are, the title of each, and all as a JSON array. */
size_t pace__charts_count(const pace__figures *figures);
const char *pace__chart_title(const pace__figures *figures, size_t chart);
void pace__charts_put(FILE *out, const pace__figures *figures);

#endif
