/*
 * score.h - how good a trained model is, and what it says about new rows.
 */
#ifndef PACELINE_SCORE_H
#define PACELINE_SCORE_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/registry.h>

typedef struct pace_scores {
    uint64_t n;
    double accuracy, precision, recall, f1; /* at probability 0.5; a ratio without cases is 0 */
    double auc;                             /* ties count half; NaN if only one class occurs */
    double logloss;
    uint64_t true_positives, false_positives, true_negatives, false_negatives;
    double mean_predicted, mean_actual; /* calibration is their ratio */
    double null_accuracy, null_logloss; /* of always predicting the majority / the mean label */
    /* With more than two classes precision, recall and f1 are means over the classes (one without cases
     * counts 0), auc and the counts and means above are NaN or 0. */
    uint64_t classes; /* 0 or 2: a yes/no label */
    double top5;      /* accuracy, the label being among the five likeliest; NaN with two classes */
} pace_scores;

/* Class by class. */
typedef struct pace_class_scores {
    uint32_t classes;                /* 0: the model's classes have no names */
    char **names;                    /* (classes) */
    uint64_t *n, *predicted;         /* rows of the class; rows that were taken for it */
    double *precision, *recall, *f1; /* a ratio without cases is 0 */
    uint64_t *confusion;             /* (classes, classes): row, the class; column, what it was taken for;
                                        NULL with more than 1,000 classes */
} pace_class_scores;

void pace_class_scores_release(pace_class_scores *scores); /* a zeroed one is allowed */

/* One JSON object on one line, in the form of summary.json's "test"; NaN is null. The caller frees it; NULL
 * when out of memory. */
char *pace_scores_to_json(const pace_scores *scores);

typedef struct pace_eval_config {
    const char *run;
    const char *data;
    int set;                 /* PACE_SET_* */
    const char *errors;      /* the file for all rows that the model gets wrong; NULL: none */
    bool force;              /* replace an existing file */
    const _Atomic int *stop; /* nonzero: stop, leave nothing, return PACE_INTERRUPTED; may be NULL */
} pace_eval_config;

enum {
    PACE_SET_AUTO,
    PACE_SET_TRAIN,
    PACE_SET_TEST,
    PACE_SET_VALIDATION
}; /* auto: /test if the data set has one, else all rows */

extern const pace_option pace_eval_options[];

/* Scores the model of a run on a data set. A set that does not fit the model is PACE_BAD_DATA. */
pace_status pace_eval(const pace_eval_config *config, const pace_log *log, pace_registry *registry,
                      pace_scores *scores);

/* How many of a model's surest mistakes are named. */
#define PACE_EVAL_WORST 10

/* A picture that the model takes for another class. */
typedef struct pace_mistake {
    char *path; /* as its data set was made from it */
    uint32_t actual, predicted;
    double probability; /* of the class predicted */
} pace_mistake;

typedef struct pace_eval_result {
    pace_scores scores;
    /* Of pictures only, else zeroed. */
    pace_class_scores classes;
    uint64_t mistakes;
    pace_mistake *worst; /* the first ones, the surest first */
    size_t worst_count;
} pace_eval_result;

/* The same with everything that is known; to be released by the caller. */
pace_status pace_eval_fully(const pace_eval_config *config, const pace_log *log, pace_registry *registry,
                            pace_eval_result *result);
void pace_eval_result_release(pace_eval_result *result); /* a zeroed one is allowed */

/* As pace_scores_to_json, and of pictures besides "classes" (a list of objects), "confusion" (a list of
 * lists; of two classes as ever), "mistakes" and "errors", the first of them. */
char *pace_eval_result_to_json(const pace_eval_result *result);

typedef struct pace_predict_config {
    pace_texts inputs; /* the positional arguments; "-" for standard input */
    const char *run;
    const char *output;     /* NULL or "-": standard output */
    int format;             /* PACE_FORMAT_* (prep.h) or PACE_PREDICT_*; csv and tsv are tables and texts */
    const char *text_field; /* of texts in jsonl, csv and tsv; NULL: "reviewText" */
    int64_t max_bad_rows;
    int64_t top;             /* of pictures: so many of the likeliest classes; 0 is as 1 */
    int64_t explain;         /* so many reasons, or of pictures rows and columns of a heat map; 0: none */
    bool force;              /* replace an existing file */
    const _Atomic int *stop; /* nonzero: stop, leave nothing, return PACE_INTERRUPTED; may be NULL */
} pace_predict_config;

/* Formats of texts, behind those of clicks. Where the format is not told and a file is not recognised, every
 * line is a text. */
enum { PACE_PREDICT_JSONL = 6, PACE_PREDICT_TAB, PACE_PREDICT_LINES, PACE_PREDICT_FOLDER };

extern const pace_option pace_predict_options[];

/* Writes one probability per row, in input order. Rows may lack their label. *rows is set on success. Texts on
 * standard input are answered as they come. Inputs of a model on pictures are files and folders; their lines
 * are class, probability and path, and with `top` the next classes and their probabilities behind it. With `explain` the
 * heaviest features and what they add to the logit follow, or the rows of a heat map. A picture that
 * cannot be read is named and has no line; more of them than max_bad_rows, or nothing else, is PACE_BAD_DATA, and the
 * lines of all others are written. */
pace_status pace_predict(const pace_predict_config *config, const pace_log *log, pace_registry *registry,
                         uint64_t *rows);

#endif
