#include "base/file.h"
#include "data/linear_file.h"
#include "data/parse.h"

#include <errno.h>
#include <math.h>
#include <paceline/prep.h>
#include <paceline/score.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIELD(name) offsetof(pace_predict_config, name)

const pace_option pace_predict_options[] = {
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory (or model file) to predict with",
     .required = true},
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "FILE", "where to write; default: standard output"},
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: what the model was trained on", .choices = "auto|criteo|svmlight|tfrecord"},
    {"max-bad-rows", 0, PACE_OPT_INT, FIELD(max_bad_rows), "0", "N",
     "leave out and count up to N bad rows instead of failing", .min = 0, .max = 1e15},
    {0},
};

static pace_status choose_format(const pace_predict_config *config, const pace__linear *model,
                                 const pace_log *log, int *format)
{
    bool criteo = model->encoding.kind == PACE__CRITEO;

    *format = config->format;
    if (*format == PACE_FORMAT_AUTO && criteo)
        *format = PACE_FORMAT_CRITEO;
    for (size_t i = 0; *format == PACE_FORMAT_AUTO && i < config->inputs.count; i++) {
        pace_status status = pace__input_detect(config->inputs.items[i], format, log);

        if (status)
            return status;
    }
    if (*format == PACE_FORMAT_AUTO)
        return pace_fail(log, PACE_USAGE, "%s: cannot tell the format: say --format svmlight or tfrecord",
                         config->inputs.items[0]);
    if (criteo != (*format == PACE_FORMAT_CRITEO))
        return pace_fail(log, PACE_USAGE, "%s: the model was trained on %s rows; the input is %s",
                         config->run, criteo ? "criteo" : "numbered (svmlight or tfrecord)",
                         criteo ? "not" : "criteo");
    return PACE_OK;
}

static double probability(const pace__linear *model, const pace__raw_rows *rows, size_t row, bool has_values)
{
    double z = model->bias;

    for (uint64_t at = rows->start[row]; at < rows->start[row + 1]; at++) {
        float weight = pace__linear_find(model, rows->ids[at]);

        z += has_values ? (double)weight * rows->values[at] : weight;
    }
    return 1 / (1 + exp(-z));
}

static pace_status predict_all(const pace__linear *model, pace__input *input, int format,
                               const pace_predict_config *config, FILE *out, const char *name,
                               const pace_log *log, uint64_t *count)
{
    pace__bad_rows bad = {.max = (uint64_t)config->max_bad_rows, .input = input, .log = log};
    pace__parser parser = {
        .encoding = &model->encoding, .labels_optional = true, .ids_unbounded = true, .bad = &bad};
    bool has_values =
        model->encoding.kind == PACE__NUMBERED || model->encoding.numeric == PACE_NUMERIC_VALUES;
    pace__parse_fn *parse = pace__parser_of(format);
    pace__raw_rows rows;
    pace__chunk chunk = {0};
    pace_status status = pace__raw_rows_init(&rows, log);

    while (!status && !(status = pace__input_next(input, &chunk)) && chunk.size > 0) {
        for (size_t at = 0; at < chunk.size && !status;) {
            status = parse(&parser, &chunk, &at, &rows);
            for (size_t row = 0; row < rows.rows && !status; row++)
                fprintf(out, "%.9g\n", probability(model, &rows, row, has_values));
            *count += rows.rows;
            if (ferror(out))
                status = pace_fail(log, PACE_IO, "%s: cannot write: %s", name, strerror(errno));
        }
    }
    if (!status && fflush(out) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot write: %s", name, strerror(errno));
    if (bad.count > 0 && !status)
        pace_say(log, PACE_WARN,
                 "%llu bad rows were left out: the output has fewer lines than the input has rows",
                 (unsigned long long)bad.count);
    pace__chunk_release(&chunk);
    pace__raw_rows_release(&rows);
    return status;
}

/* --- where the lines go --- */

typedef struct destination {
    FILE *file;
    const char *name;
    char *temporary; /* NULL: written in place */
} destination;

/* Writing the output must not destroy what is still to be read. */
static pace_status check_not_input(const struct stat *output, const pace_predict_config *config,
                                   const pace_log *log)
{
    struct stat info;

    for (size_t i = 0; i < config->inputs.count; i++) {
        if (stat(config->inputs.items[i], &info) == 0 && info.st_dev == output->st_dev &&
            info.st_ino == output->st_ino)
            return pace_fail(log, PACE_USAGE, "%s: is an input too: give --output another file",
                             config->output);
    }
    return PACE_OK;
}

/* A file appears whole or not at all. Pipes, devices and links (/dev/stdout is one) are written as they are.
 */
static pace_status open_destination(const pace_predict_config *config, destination *to, const pace_log *log)
{
    struct stat info, link;

    *to = (destination){.file = stdout, .name = "standard output"};
    if (!config->output || strcmp(config->output, "-") == 0)
        return PACE_OK;
    to->name = config->output;
    bool exists = lstat(to->name, &link) == 0;

    if (stat(to->name, &info) == 0 && S_ISREG(info.st_mode) && check_not_input(&info, config, log))
        return PACE_USAGE;
    if (!exists || S_ISREG(link.st_mode)) {
        to->temporary = pace__format("%s.tmp", to->name);
        if (!to->temporary)
            return pace_fail(log, PACE_FAILED, "out of memory");
    }
    to->file = fopen(to->temporary ? to->temporary : to->name, "w");
    if (to->file)
        return PACE_OK;
    free(to->temporary);
    return pace_fail(log, PACE_IO, "%s: cannot create: %s", to->name, strerror(errno));
}

static pace_status close_destination(destination *to, pace_status status, const pace_log *log)
{
    if (to->file != stdout && fclose(to->file) != 0 && !status)
        status = pace_fail(log, PACE_IO, "%s: cannot write: %s", to->name, strerror(errno));
    if (to->temporary && !status && rename(to->temporary, to->name) != 0)
        status =
            pace_fail(log, PACE_IO, "%s: cannot rename to %s: %s", to->temporary, to->name, strerror(errno));
    if (to->temporary && status)
        unlink(to->temporary);
    free(to->temporary);
    return status;
}

pace_status pace_predict(const pace_predict_config *config, const pace_log *log, pace_registry *registry,
                         uint64_t *rows)
{
    destination to;
    pace__linear model;
    pace__input *input = NULL;
    uint64_t count = 0;
    int format;

    (void)registry;
    if (config->inputs.count == 0)
        return pace_fail(log, PACE_USAGE, "no input: name the files to read, or - for standard input");
    pace_status status = pace__linear_read(config->run, &model, log);

    if (status)
        return status;
    status = choose_format(config, &model, log, &format);
    if (!status)
        status = pace__input_open(config->inputs.items, config->inputs.count, pace__boundary_of(format), log,
                                  &input);
    if (!status)
        status = open_destination(config, &to, log);
    if (!status) {
        status = predict_all(&model, input, format, config, to.file, to.name, log, &count);
        status = close_destination(&to, status, log);
    }
    if (input)
        pace__input_close(input);
    pace__linear_release(&model);
    if (!status)
        *rows = count;
    return status;
}
