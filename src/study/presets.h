/*
 * presets.h - published studies, to be repeated on generated data of a size that fits a small machine, with their figures
 * beside ours. Plain tables: what data to make, which cells, which options, what was published.
 */
#ifndef STUDY_PRESETS_H
#define STUDY_PRESETS_H

#include "study/study.h"

#define PACE__PRESET_WORDS_MAX    24
#define PACE__PRESET_MAKES_MAX    4
#define PACE__PRESET_SECTIONS_MAX 8

/* `paceline VERB words OPTION DIR/output`, unless the output is there. Words that begin with "@/" are below DIR. */
typedef struct pace__preset_make {
    const char *verb, *output;
    const char *option; /* that names the output; NULL: -o */
    const char *words[PACE__PRESET_WORDS_MAX];
} pace__preset_make;

typedef struct pace__preset_section {
    const char *name, *title, *about;
    pace__study_kind kind;
    const char *prep; /* of prep: "prep reviews" */
    const char *data; /* below DIR */
    const char *model;
    const char *words[PACE__PRESET_WORDS_MAX]; /* "@/" as above */
    const char *axes[PACE__AXES];              /* in their order: mode, workers, ps, batch, balance */
    int64_t rows;
    double threshold;
    const pace__published *published;
    size_t published_count;
} pace__preset_section;

typedef struct pace__preset {
    const char *name, *summary;
    pace__preset_make makes[PACE__PRESET_MAKES_MAX];
    pace__preset_section sections[PACE__PRESET_SECTIONS_MAX];
    size_t section_count;
} pace__preset;

extern const pace__preset pace__presets[];
extern const int pace__preset_count;

/* "@/data/x" is DIR/data/x; to be freed. NULL when out of memory. */
char *pace__preset_word(const pace__study *study, const char *word);

/* Makes what is missing of its data. PACE_INTERRUPTED in silence. */
pace_status pace__preset_data(const pace__study *study, const _Atomic int *stop, const pace_log *log);

#endif
