/* encoding_json.h - what the kinds of encodings share when they are read from JSON. Internal to encoding_json.c and
 * sheet_json.c. */
#ifndef DATA_FORMATS_ENCODING_JSON_H
#define DATA_FORMATS_ENCODING_JSON_H

#include "data/formats/encoding.h"

#include <cjson/cJSON.h>

/* By PACE_NUMERIC_*. */
extern const char *const pace__numeric_names[];

pace_status pace__bad_encoding(const char *where, const char *what, const pace_log *log);
/* The member, if it is a whole number between the two. */
bool pace__encoding_integer(const cJSON *object, const char *name, uint64_t min, uint64_t max,
                            uint64_t *value);
pace_status pace__encoding_scheme(const cJSON *object, int known, bool required, const char *where,
                                  const pace_log *log);

/* NULL when out of memory. */
char *pace__sheet_to_json(const pace__encoding *encoding);
pace_status pace__sheet_from_json(const cJSON *object, const char *where, pace__encoding *encoding,
                                  const pace_log *log);

#endif
