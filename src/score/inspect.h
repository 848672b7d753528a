/*
 * inspect.h - the parts of inspect: each adds to a JSON object what there is to say. Internal to score.
 */
#ifndef SCORE_INSPECT_H
#define SCORE_INSPECT_H

#include "data/text/vocabulary.h"
#include "model/file.h"

#include <cjson/cJSON.h>
#include <paceline/inspect.h>

void pace__add_number(cJSON *to, const char *name, double value);
void pace__add_encoding(cJSON *to, const pace__encoding *encoding);
void pace__add_vocabulary(cJSON *to, const pace__vocabulary *vocabulary);

/* `file`: the one of the set's files that was asked for, or NULL. */
pace_status pace__describe_set(const char *path, const char *file, cJSON *to, const pace_log *log);

pace_status pace__describe_model(const pace__model_file *file, const pace_inspect_config *config, cJSON *to,
                                 const pace_log *log);
void pace__describe_tensors(const pace__model_file *file, cJSON *to);

/* A file that is no safetensors file. */
bool pace__looks_raw(const char *path);
/* PACE_BAD_DATA, with what it looks like and who takes such files. */
pace_status pace__refuse_raw(const char *path, const pace_log *log);

#endif
