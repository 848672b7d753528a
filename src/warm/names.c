/* What two models call the same: original ids, words, names of classes. */
#include "math/batch.h"
#include "model/ids.h"
#include "warm/warm.h"

#include <stdlib.h>
#include <string.h>

static pace_status make_room(uint32_t count, const pace_log *log, uint32_t **place)
{
    *place = malloc(((size_t)count + 1) * sizeof **place);
    return *place ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory: %u names", count);
}

/* --- ids --- */

static pace_status match_ids(const pace__store *store, const pace__loaded *model, const pace_log *log,
                             uint32_t *place)
{
    pace__id_index index = {0};
    uint64_t *original = NULL;
    pace_status status = pace__store_read_ids(store, &original, log);

    if (!status)
        status = pace__id_index_init(&index, model->ids, model->count, log);
    for (uint32_t id = 0; !status && id < store->info.ids_seen; id++) {
        uint32_t found = pace__id_place(&index, original[id]);

        place[id] = found < model->count ? found : PACE__NAME_NEW;
    }
    pace__id_index_release(&index);
    free(original);
    return status;
}

/* --- words --- */

static uint32_t find_word(const pace__vocabulary *vocabulary, const pace__word *word)
{
    uint32_t id =
        pace__vocabulary_find(vocabulary, pace__word_hash(word->text, word->size), word->text, word->size);

    return id < PACE__ID_WORDS || id == PACE__ID_STOP ? PACE__NAME_NEW : id;
}

/* Padding, unknown words and empty texts are the same everywhere. */
static pace_status match_words(const pace__store *store, const pace__vocabulary *theirs, const pace_log *log,
                               pace__names *names, uint32_t *place)
{
    pace__vocabulary *ours = NULL;
    pace_status status = pace__vocabulary_read(store->path, &store->info.encoding, log, &ours);

    if (status)
        return status;
    for (uint32_t id = 0; id < names->count; id++) {
        pace__word word = pace__vocabulary_word(ours, id);

        place[id] = id < PACE__ID_WORDS ? id : find_word(theirs, &word);
    }
    names->same = pace__vocabulary_checksum(ours) == pace__vocabulary_checksum(theirs);
    pace__vocabulary_free(ours);
    return PACE_OK;
}

/* --- classes --- */

typedef struct named {
    const char *name;
    uint32_t place;
} named;

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const named *)left)->name, ((const named *)right)->name);
}

static pace_status match_classes(const pace__store *store, const pace__class_names *theirs,
                                 const pace_log *log, pace__names *names, uint32_t *place)
{
    pace__class_names ours = {0};
    named *sorted = malloc(((size_t)theirs->count + 1) * sizeof *sorted);
    pace_status status = sorted ? pace__class_names_read(store->path, &store->info.encoding, log, &ours)
                                : pace_fail(log, PACE_FAILED, "out of memory: %u names", theirs->count);

    for (uint32_t i = 0; !status && i < theirs->count; i++)
        sorted[i] = (named){theirs->items[i], i};
    if (!status)
        qsort(sorted, theirs->count, sizeof *sorted, compare_names);
    names->same = !status && ours.count == theirs->count;
    for (uint32_t i = 0; i < ours.count; i++) {
        const named *found =
            bsearch(&(named){.name = ours.items[i]}, sorted, theirs->count, sizeof *sorted, compare_names);

        place[i] = found ? found->place : PACE__NAME_NEW;
        names->same &= place[i] == i;
    }
    pace__class_names_release(&ours);
    free(sorted);
    return status;
}

/* --- all --- */

pace_status pace__warm_names(const pace__store *store, const pace__saved *saved, const pace_log *log,
                             pace__names *names)
{
    const pace__encoding *encoding = &store->info.encoding;
    pace__names found = {.count = pace__has_classes(encoding) ? encoding->classes : store->info.ids_seen};
    uint32_t *place = NULL;
    pace_status status = make_room(found.count, log, &place);

    if (!status && encoding->kind == PACE__TEXT)
        status = match_words(store, saved->vocabulary, log, &found, place);
    else if (!status && pace__has_classes(encoding))
        status = match_classes(store, &saved->names, log, &found, place);
    else if (!status)
        status = match_ids(store, &saved->model, log, place);
    if (status) {
        free(place);
        return status;
    }
    found.place = place;
    *names = found;
    return PACE_OK;
}
