/*
 * table.h - the figures of a study as text: for a terminal, as Markdown, as CSV (a line for each row, with median, lowest and
 * highest of each figure) and as JSON. Written into a stream of memory, which is all that can fail.
 */
#ifndef STUDY_TABLE_H
#define STUDY_TABLE_H

#include "study/figures.h"

#include <stdio.h>

void pace__table_put_text(FILE *out, const pace__figures *figures);
void pace__table_put_markdown(FILE *out, const pace__figures *figures);
/* With its heading; columns of sections differ. */
void pace__table_put_csv(FILE *out, const pace__figures *figures);
/* Of all sections: {"study": ..., "sections": [...]}. NULL when out of memory; to be freed. */
char *pace__table_json(const pace__figures *figures, size_t count);

/* What stands below a table: what failed and why, and what the figures are of. One line each; NULL: no more. Written into
 * text, which is returned. */
#define PACE__NOTE_TEXT 768
const char *pace__table_note(const pace__figures *figures, size_t place, char text[PACE__NOTE_TEXT]);

#endif
