/* print.h - results for people and for programs. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <cjson/cJSON.h>
#include <paceline/score.h>
#include <stdint.h>
#include <stdio.h>

/* Long enough for each of the texts below. */
#define CLI_TEXT_MAX 64

/* They write into `text` and return it. */
const char *cli_count_text(uint64_t count, char text[CLI_TEXT_MAX]);   /* 1,234,567 */
const char *cli_short_text(double count, char text[CLI_TEXT_MAX]);     /* 1.23 M */
const char *cli_bytes_text(double bytes, char text[CLI_TEXT_MAX]);     /* 1.18 MiB */
const char *cli_seconds_text(double seconds, char text[CLI_TEXT_MAX]); /* 0.12 s, 3:05 min, 1:02:03 h */

/* One line of a result: a name and a value in columns. */
void cli_print_row(FILE *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cli_print_scores(FILE *out, const pace_scores *scores);
/* The scores, and tables of classes and mistakes where there are any. */
void cli_print_evaluation(FILE *out, const pace_eval_result *result);

/* Texts come from files that anybody may have written: nothing in them may steer a terminal. */
void cli_print_plain(FILE *out, const char *text);

/* 1.07 M rows/s, 253 MiB/s if the unit is "bytes"; "-" if no time has passed. */
const char *cli_rate_text(double count, double seconds, const char *unit, char text[CLI_TEXT_MAX]);

/* Prints the object on one line and frees it. PACE_FAILED if `object` is NULL: out of memory. */
pace_status cli_print_json(cJSON *object, const pace_log *log);

/* Prints a text that holds one JSON object, and frees it. */
void cli_print_json_text(char *text);

/* An indented listing of a JSON value. */
void cli_print_listing(FILE *out, const cJSON *value, int indent);

#endif
