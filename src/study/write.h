/* write.h - what a study leaves besides its results: DIR/table.md, DIR/table.csv, DIR/table.json and DIR/report.html, each whole
 * or not at all. */
#ifndef STUDY_WRITE_H
#define STUDY_WRITE_H

#include "study/figures.h"

/* The figures of all sections. */
pace_status pace__study_write(const pace__study *study, const pace__figures *figures, const pace_log *log);

/* As a terminal shows them, to be freed; NULL when out of memory. */
char *pace__study_text(const pace__figures *figures, size_t count);

#endif
