#include "data/store/describe.h"

#include "data/picture/class_names.h"
#include "data/store/reader.h"
#include "data/text/vocabulary.h"

#include <stdlib.h>

pace__dataset pace__store_describe(const pace__store_info *info)
{
    pace__dataset data = pace__encoding_describe(&info->encoding);

    data.columns = info->columns;
    data.row_entries_max = info->row_entries_max;
    data.ids = info->ids_seen;
    data.has_values = info->has_values;
    data.like = info->like;
    data.rows = info->rows[PACE__TRAIN];
    data.test_rows = info->rows[PACE__TEST];
    data.validation_rows = info->rows[PACE__VALIDATION];
    data.entries = info->entries[PACE__TRAIN];
    data.positives = info->positives[PACE__TRAIN];
    return data;
}

static pace_status read_vocabulary(const pace__store *store, const pace_log *log, pace__origin *origin)
{
    pace__vocabulary *vocabulary;
    pace_status status = pace__vocabulary_read(store->path, &store->info.encoding, log, &vocabulary);

    if (status)
        return status;
    status = pace__vocabulary_to_text(vocabulary, log, &origin->vocabulary, &origin->vocabulary_size);
    pace__vocabulary_free(vocabulary);
    return status;
}

static pace_status read_class_names(const pace__store *store, const pace_log *log, pace__origin *origin)
{
    pace__class_names names;
    pace_status status = pace__class_names_read(store->path, &store->info.encoding, log, &names);

    if (status)
        return status;
    origin->class_names = pace__class_names_text(&names, &origin->class_names_size);
    pace__class_names_release(&names);
    return origin->class_names ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
}

static char *encoding_text(const pace__encoding *encoding)
{
    pace__encoding pictures = *encoding;

    if (encoding->kind != PACE__FEATURES)
        return pace__encoding_to_json(encoding);
    pictures.kind = PACE__IMAGE;
    pictures.features = pictures.origin = 0;
    return pace__encoding_to_json(&pictures);
}

static pace_status read_rows(const void *set, uint64_t rows_max, pace__take_rows_fn *take, void *user,
                             const pace_log *log)
{
    const pace__store *store = set;
    uint64_t rows = store->info.rows[PACE__TRAIN];
    pace__reader_plan plan = {.set = PACE__TRAIN,
                              .sequential = true,
                              .batch = PACE__PIECE_ROWS,
                              .last = rows < rows_max ? rows : rows_max,
                              .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;
    pace_status status = pace__reader_create(store, &plan, log, &reader);

    if (status)
        return status;
    while (!status && !(status = pace__reader_next(reader, 0, &piece)) && piece)
        status = take(user, &piece->rows);
    pace__reader_free(reader);
    return status;
}

pace_status pace__origin_read(const pace__store *store, const pace_log *log, pace__origin *origin)
{
    const pace__encoding *encoding = &store->info.encoding;

    *origin = (pace__origin){.encoding = encoding_text(encoding), .read_rows = read_rows, .set = store};
    pace_status status = !origin->encoding              ? pace_fail(log, PACE_FAILED, "out of memory")
                         : encoding->kind == PACE__TEXT ? read_vocabulary(store, log, origin)
                         : pace__has_classes(encoding)  ? read_class_names(store, log, origin)
                                                        : pace__store_read_ids(store, &origin->original, log);

    if (status)
        pace__origin_release(origin);
    return status;
}

void pace__origin_release(pace__origin *origin)
{
    free(origin->encoding);
    free(origin->vocabulary);
    free(origin->class_names);
    free(origin->original);
    *origin = (pace__origin){0};
}
