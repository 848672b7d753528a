/* tensors.h - the tensors of a file, described to people. */
#ifndef MODEL_TENSORS_H
#define MODEL_TENSORS_H

#include "data/tensors/safetensors.h"

struct cJSON;
/* "tensors": a list of name, type and shape. */
void pace__add_tensors(const pace__safetensors *file, struct cJSON *to);

#endif
