/* preset_data.c - the data that a preset works on, made by gen and prep: each appears whole or not at all. */
#include "files/file.h"
#include "series/child.h"
#include "study/presets.h"

#include <stdlib.h>
#include <string.h>

char *pace__preset_word(const pace__study *study, const char *word)
{
    return strncmp(word, "@/", 2) == 0 ? pace__study_path(study, word + 2) : strdup(word);
}

/* In front of the preset's words, which may end with "--" and inputs. */
static pace_status run_words(const pace__preset_make *make, const char *const *words, const _Atomic int *stop,
                             const pace_log *log)
{
    char **command;
    pace__job_end *end = malloc(sizeof *end);
    pace_status status = end ? pace__child_words(make->verb, NULL, words, log, &command)
                             : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        status = pace__child_run(command, stop, log, end);
        pace_options_free_words(command);
    }
    if (!status && end->code)
        status = pace_fail(log, end->code < 128 ? (pace_status)end->code : PACE_FAILED, "%s: %s", make->verb,
                           end->last);
    free(end);
    return status;
}

static pace_status make_one(const pace__study *study, const pace__preset_make *make, const char *output,
                            const _Atomic int *stop, const pace_log *log)
{
    const char *words[PACE__PRESET_WORDS_MAX + 4] = {"--quiet", make->option ? make->option : "-o", output};
    char *owned[PACE__PRESET_WORDS_MAX] = {0};
    size_t count = 3, own = 0;
    pace_status status = PACE_OK;

    for (; own < PACE__PRESET_WORDS_MAX && make->words[own] && !status; own++) {
        owned[own] = pace__preset_word(study, make->words[own]);
        words[count++] = owned[own];
        if (!owned[own])
            status = pace_fail(log, PACE_FAILED, "out of memory");
    }
    if (!status) {
        pace_say(log, PACE_INFO, "%s: making %s", make->verb, output);
        status = run_words(make, words, stop, log);
    }
    while (own > 0)
        free(owned[--own]);
    return status;
}

pace_status pace__preset_data(const pace__study *study, const _Atomic int *stop, const pace_log *log)
{
    const pace__preset *preset = &pace__presets[study->preset];
    char *directory = pace__study_path(study, "data");
    pace_status status =
        directory ? pace__make_dirs(directory, log) : pace_fail(log, PACE_FAILED, "out of memory");

    for (size_t i = 0; i < PACE__PRESET_MAKES_MAX && preset->makes[i].verb && !status; i++) {
        char *output = pace__study_path(study, preset->makes[i].output);

        if (!output)
            status = pace_fail(log, PACE_FAILED, "out of memory");
        else if (!pace__exists(output))
            status = make_one(study, &preset->makes[i], output, stop, log);
        free(output);
    }
    free(directory);
    return status;
}
