/*
 * heaviest.h - the features of a loaded model that weigh most, for inspect: "heaviest", a list of objects.
 *
 * What a feature weighs is the kind's word; the sign is shown, the size decides.
 */
#ifndef MODEL_HEAVIEST_H
#define MODEL_HEAVIEST_H

#include "model/model.h"

/* Of the portrait->top heaviest of loaded->ids, the heaviest first. `weight` tells by the place in that list. */
void pace__add_heaviest(const pace__loaded *loaded, const pace__portrait *portrait,
                        float (*weight)(const pace__loaded *loaded, uint32_t place));

#endif
