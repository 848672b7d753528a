#include "score/predict.h"

#include <paceline/prep.h>

#define FIELD(name) offsetof(pace_predict_config, name)

const pace_option pace_predict_options[] = {
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory (or model file) to predict with",
     .required = true},
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "FILE", "where to write; default: standard output"},
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: what the model was trained on, and told by the first bytes",
     .choices = "auto|criteo|svmlight|tfrecord|jsonl|csv|tsv|tab|lines|folder"},
    {"text-field", 0, PACE_OPT_TEXT, FIELD(text_field), "reviewText", "NAME",
     "field or column that holds the text (jsonl, csv, tsv)"},
    {"max-bad-rows", 0, PACE_OPT_INT, FIELD(max_bad_rows), "0", "N",
     "leave out and count up to N bad rows instead of failing", .min = 0, .max = 1e15},
    {"top", 0, PACE_OPT_INT, FIELD(top), "1", "N",
     "pictures: write the N likeliest classes; those behind the first follow the path", .min = 1,
     .max = 65535},
    {0},
};

pace_status pace_predict(const pace_predict_config *config, const pace_log *log, pace_registry *registry,
                         uint64_t *rows)
{
    pace__scorer scorer;

    if (config->inputs.count == 0)
        return pace_fail(log, PACE_USAGE, "no input: name the files to read, or - for standard input");
    pace_status status = pace__scorer_open(config->run, log, &scorer);

    if (status)
        return status;
    if (scorer.saved.names.count > 0)
        status = pace__predict_images(&scorer, config, log, registry, rows);
    else if (scorer.saved.vocabulary)
        status = pace__predict_texts(&scorer, config, log, rows);
    else
        status = pace__predict_rows(&scorer, config, log, rows);
    pace__scorer_close(&scorer);
    return status;
}
