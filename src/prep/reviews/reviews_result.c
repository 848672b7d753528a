/* Rank 0's result as records, and back. */
#include "prep/reviews/reviews.h"

#include <string.h>

#define RESULT(name) offsetof(pace_prep_reviews_result, name)

const pace__result_field pace__reviews_result_fields[] = {
    {"train_rows", RESULT(train_rows)},
    {"test_rows", RESULT(test_rows)},
    {"validation_rows", RESULT(validation_rows)},
    {"train_positives", RESULT(train_positives)},
    {"test_positives", RESULT(test_positives)},
    {"validation_positives", RESULT(validation_positives)},
    {"bad_rows", RESULT(bad_rows)},
    {"dropped", RESULT(dropped)},
    {"duplicates", RESULT(duplicates)},
    {"words", RESULT(words)},
    {"stop_words", RESULT(stop_words)},
    {"distinct", RESULT(distinct)},
    {"vocabulary", RESULT(vocabulary)},
    {"stored", RESULT(stored)},
    {"unknown", RESULT(unknown)},
    {"cut", RESULT(cut)},
    {"length", RESULT(length)},
    {"length_whole", RESULT(length_whole)},
    {"empty", RESULT(empty)},
    {"too_long", RESULT(too_long)},
    {"bytes_read", RESULT(bytes_read)},
    {"bytes_written", RESULT(bytes_written)},
    {"bytes_spilled", RESULT(bytes_spilled)},
    {"word_bytes", RESULT(word_bytes)},
    {"ranks", RESULT(ranks)},
    {"processes", RESULT(processes)},
    {"positive", RESULT(positive), .real = true},
    {"bytes_skew", RESULT(bytes_skew), .real = true},
    {"rows_skew", RESULT(rows_skew), .real = true},
    {0},
};

void pace__reviews_emit_more(pace_registry *registry, const void *all)
{
    const pace_prep_reviews_result *result = all;

    for (uint64_t rank = 0; rank < result->ranks && result->processes > 1; rank++) {
        pace_field share[] = {PACE_INT("rank", rank), PACE_INT("bytes", result->rank_bytes[rank]),
                              PACE_INT("rows", result->rank_rows[rank])};

        pace_registry_emit(registry, "prepared rank", share, 3);
    }
}

static uint64_t count_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field && field->type == PACE_FIELD_INT ? (uint64_t)field->value.integer : 0;
}

static double real_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field && field->type == PACE_FIELD_REAL ? field->value.real : 0;
}

static void take_phase(pace_prep_reviews_result *result, const pace_record *record)
{
    const pace_field *phase = pace_record_find(record, "phase");

    for (int i = 0; i < PACE_PREP_PHASES; i++) {
        if (phase && phase->type == PACE_FIELD_TEXT &&
            strcmp(phase->value.text, pace_prep_phase_names[i]) == 0)
            result->phases[i] = (pace_prep_phase){.seconds = real_of(record, "seconds"),
                                                  .rows = count_of(record, "rows"),
                                                  .bytes = count_of(record, "bytes"),
                                                  .skew = real_of(record, "skew")};
    }
}

static void take_rank(pace_prep_reviews_result *result, const pace_record *record)
{
    uint64_t rank = count_of(record, "rank");

    if (rank >= PACE_PREP_RANKS_MAX)
        return;
    result->rank_bytes[rank] = count_of(record, "bytes");
    result->rank_rows[rank] = count_of(record, "rows");
}

void pace__reviews_take_more(void *result, const pace_record *record)
{
    if (strcmp(record->kind, "phase") == 0)
        take_phase(result, record);
    if (strcmp(record->kind, "prepared rank") == 0)
        take_rank(result, record);
}
