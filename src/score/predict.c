#include "score/predict.h"

#include "base/locale.h"
#include "files/file.h"
#include "score/explain.h"

#include <paceline/prep.h>
#include <string.h>

#define FIELD(name) offsetof(pace_predict_config, name)

const pace_option pace_predict_options[] = {
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory (or model file) to predict with",
     .required = true},
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "FILE", "where to write; default: standard output"},
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: what the model was trained on, and told by the first bytes",
     .choices = "auto|criteo|svmlight|tfrecord|csv|tsv|jsonl|tab|lines|folder"},
    {"text-field", 0, PACE_OPT_TEXT, FIELD(text_field), PACE__TEXT_FIELD, "NAME",
     "field or column that holds the text (jsonl, csv, tsv)"},
    {"max-bad-rows", 0, PACE_OPT_INT, FIELD(max_bad_rows), "0", "N",
     "leave out and count up to N bad rows instead of failing (bad pictures are left out in any case; more "
     "than N end "
     "with exit code 65)",
     .min = 0, .max = 1e15},
    {"top", 0, PACE_OPT_INT, FIELD(top), "1", "N",
     "pictures: write the N likeliest classes; those behind the first follow the path", .min = 1,
     .max = 65535},
    {"explain", 0, PACE_OPT_INT, FIELD(explain), "0", "N",
     "behind each line why: the N heaviest features and what each adds to the logit; pictures: a heat map of "
     "N "
     "x N cells",
     .min = 0, .max = PACE__REASONS_MAX},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace an existing file"},
    {0},
};

/* Options that mean something to another sort of model only. */
static pace_status check_sort(const pace__scorer *scorer, const pace_predict_config *config,
                              const pace_log *log)
{
    bool pictures = scorer->saved.names.count > 0, texts = !pictures && scorer->saved.vocabulary;

    if (config->top > 1 && !pictures)
        return pace_fail(log, PACE_USAGE, "--top is for pictures: the model of %s says yes or no",
                         config->run);
    if (config->text_field && strcmp(config->text_field, PACE__TEXT_FIELD) != 0 && !texts)
        return pace_fail(log, PACE_USAGE, "--text-field is for texts: the model of %s takes none",
                         config->run);
    return PACE_OK;
}

static pace_status predict_sort(pace__scorer *scorer, const pace_predict_config *config, const pace_log *log,
                                pace_registry *registry, uint64_t *rows)
{
    if (scorer->saved.names.count > 0)
        return pace__predict_images(scorer, config, log, registry, rows);
    return scorer->saved.vocabulary ? pace__predict_texts(scorer, config, log, registry, rows)
                                    : pace__predict_rows(scorer, config, log, registry, rows);
}

pace_status pace_predict(const pace_predict_config *config, const pace_log *log, pace_registry *registry,
                         uint64_t *rows)
{
    PACE__C_LOCALE();
    pace__scorer scorer;

    if (config->inputs.count == 0)
        return pace_fail(log, PACE_USAGE, "no input: name the files to read, or - for standard input");
    pace_status status = config->force && config->output && pace__exists(config->output)
                             ? pace__output_apart(config->output, &config->run, 1, log)
                             : PACE_OK;

    if (!status)
        status = pace__scorer_open(config->run, log, &scorer);
    if (status)
        return status;
    status = check_sort(&scorer, config, log);
    if (!status)
        status = predict_sort(&scorer, config, log, registry, rows);
    pace__scorer_close(&scorer);
    if (status == PACE_INTERRUPTED)
        pace_say(log, PACE_ERROR, PACE__INTERRUPTED_TEXT);
    return status;
}
