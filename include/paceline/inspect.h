/* inspect.h - what a data set, model, checkpoint or run directory holds. */
#ifndef PACELINE_INSPECT_H
#define PACELINE_INSPECT_H

#include <paceline/log.h>
#include <paceline/options.h>

typedef struct pace_inspect_config {
    const char *path; /* the positional argument */
    int64_t top;      /* how many of the heaviest features to list */
} pace_inspect_config;

extern const pace_option pace_inspect_options[];

/* Describes the path as a JSON object (what it is, sizes, attributes, heaviest features). The caller frees
 * the text. It is NULL behind an error, but for a run with files that are damaged or gone: then it tells the rest. */
pace_status pace_inspect(const pace_inspect_config *config, const pace_log *log, char **json);

#endif
