/*
 * scorer.h - a trained model, whatever it is, as those see it who want its logits.
 *
 *     pace__scorer scorer;
 *     pace__scorer_open("run1", log, &scorer);
 *     pace__scorer_fit(&scorer, &store);                   // the rows of a data set, or ...
 *     pace__scorer_logits(&scorer, &rows, logits);
 *
 *     pace__text_batch batch;                              // ... texts as they come
 *     pace__text_batch_init(&batch, &scorer);
 *     pace__text_batch_add(&batch, text, size);
 *     pace__scorer_logits(&scorer, &batch.rows, logits);
 *     pace__text_batch_clear(&batch);
 *
 * A model on sparse rows that was not fitted to a data set takes rows whose ids are places in the list of ids
 * that the model knows (pace__scorer_place): predict_rows.c makes them from original ids.
 *
 * A model on pictures takes rows of pixels, a data set's or any others of its encoding; predict_images.c
 * makes them from files.
 *
 * One thread at a time. It must stay where it was opened: no copies.
 */
#ifndef SCORE_SCORER_H
#define SCORE_SCORER_H

#include "data/store/store.h"
#include "math/batch.h"
#include "model/ids.h"
#include "saved/saved.h"

typedef struct pace__scorer {
    pace__saved saved;
    /* private */
    const pace_log *log;
    pace__id_index ids; /* of a model on sparse rows */
    float *weights;     /* of its keys, in the order of a data set's ids; NULL: the file's */
    pace__model *model;
} pace__scorer;

/* RUN/model.safetensors, or the file itself. The log must outlive the scorer. */
pace_status pace__scorer_open(const char *path, const pace_log *log, pace__scorer *scorer);
void pace__scorer_close(pace__scorer *scorer); /* a zeroed one is allowed */

/* From now on rows are those of this data set; PACE_BAD_DATA if they mean something else to the model. After a
 * failure there are no logits until another set fits. */
pace_status pace__scorer_fit(pace__scorer *scorer, const pace__store *store);

/* Logits of a row: 1, that of yes or of class 1; else one for each class. */
uint32_t pace__scorer_outputs(const pace__scorer *scorer);

/* (rows, outputs), of any number of rows. */
pace_status pace__scorer_logits(pace__scorer *scorer, const pace__rows *rows, float *logits);

/* The place of an original id; that of all which the model does not know. */
static inline uint32_t pace__scorer_place(const pace__scorer *scorer, uint64_t id)
{
    return pace__id_place(&scorer->ids, id);
}

/* --- texts as they come --- */

#define PACE__TEXT_BATCH_ROWS 256

/* Up to PACE__TEXT_BATCH_ROWS texts, as the model's data set would hold them; all labels are 0. */
typedef struct pace__text_batch {
    pace__rows rows;
    /* private */
    const pace__scorer *scorer;
    pace__tokens tokens;
    uint32_t *ids, length[PACE__TEXT_BATCH_ROWS];
    uint8_t label[PACE__TEXT_BATCH_ROWS];
} pace__text_batch;

/* The scorer is one of texts, and outlives the batch. */
pace_status pace__text_batch_init(pace__text_batch *batch, const pace__scorer *scorer);
void pace__text_batch_release(pace__text_batch *batch); /* a zeroed one is allowed */

/* Valid UTF-8 with PACE__TEXT_PADDING readable bytes behind it. The batch must not be full. */
pace_status pace__text_batch_add(pace__text_batch *batch, const char *text, size_t size);
void pace__text_batch_clear(pace__text_batch *batch);

#endif
