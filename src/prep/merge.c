#include "base/clock.h"
#include "base/locale.h"
#include "data/store/merge_file.h"
#include "data/store/reader.h"
#include "files/file.h"
#include "files/new_file.h"
#include "files/output.h"
#include "prep/common.h"
#include "prep/parts.h"

#include <errno.h>
#include <paceline/prep.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FIELD(name) offsetof(pace_merge_config, name)

const pace_option pace_merge_options[] = {
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "FILE", "HDF5 file to write", .required = true},
    {"sets", 0, PACE_OPT_INT, FIELD(sets), "8", "N", "groups to divide the training rows into", .min = 1,
     .max = PACE__PARTS_MAX},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace an existing file"},
    {0},
};

typedef struct merging {
    const pace_merge_config *config;
    const pace_log *log;
    pace_registry *registry;
    pace__store store;
    pace__merge_file *file;
    uint64_t done;
} merging;

static void report(const merging *self)
{
    pace_field fields[] = {PACE_TEXT("phase", "merge"), PACE_INT("done", self->done),
                           PACE_INT("total", pace__store_rows(&self->store.info)), PACE_TEXT("unit", "rows")};

    pace_registry_emit(self->registry, "progress", fields, 4);
}

/* Rows first .. last - 1 of a set become a group. */
static pace_status copy_rows(merging *self, int set, uint64_t first, uint64_t last, const char *name)
{
    pace__reader_plan plan = {.set = set,
                              .sequential = true,
                              .batch = PACE__PIECE_ROWS,
                              .first = first,
                              .last = last,
                              .consumers = 1};
    const _Atomic int *stop = self->config->stop;
    const pace__piece *piece;
    pace__reader *reader;
    pace_status status = pace__merge_file_begin(self->file, name);

    if (status || first == last)
        return status;
    status = pace__reader_create(&self->store, &plan, self->log, &reader);
    if (status)
        return status;
    while (!(status = stop && *stop ? PACE_INTERRUPTED : pace__reader_next(reader, 0, &piece)) && piece) {
        status = pace__merge_file_append(self->file, &piece->rows);
        if (status)
            break;
        self->done += piece->rows.rows;
        report(self);
    }
    pace__reader_free(reader);
    return status;
}

static pace_status copy_all(merging *self)
{
    const uint64_t *rows = self->store.info.rows;
    uint32_t sets = (uint32_t)self->config->sets;
    pace_status status = PACE_OK;

    for (uint32_t set = 0; set < sets && !status; set++) {
        char name[24];

        snprintf(name, sizeof name, "set%u", set);
        status = copy_rows(self, PACE__TRAIN, pace__part_begin(rows[PACE__TRAIN], sets, set),
                           pace__part_begin(rows[PACE__TRAIN], sets, set + 1), name);
    }
    if (!status && rows[PACE__TEST] > 0)
        status = copy_rows(self, PACE__TEST, 0, rows[PACE__TEST], "test");
    if (!status && rows[PACE__VALIDATION] > 0)
        status =
            copy_rows(self, PACE__VALIDATION, 0, rows[PACE__VALIDATION], pace__set_names[PACE__VALIDATION]);
    return status;
}

/* HDF5 writes into the file that was begun for it, by its name. */
static pace_status merge_to(merging *self, uint64_t *bytes)
{
    struct stat info = {0};
    pace__new_file begun;
    pace_status status = pace__new_file_begin(self->config->output, self->log, &begun);

    if (status)
        return status;
    pace__new_file_unlock(&begun);
    status = pace__merge_file_create(begun.temporary, self->config->output, &self->store,
                                     (uint32_t)self->config->sets, self->log, &self->file);
    if (!status)
        status = pace__merge_file_close(self->file, copy_all(self));
    pace__new_file_lock(&begun);
    if (!status && fstat(begun.fd, &info) != 0)
        status = pace_fail(self->log, PACE_IO, "%s: cannot read: %s", self->config->output, strerror(errno));
    *bytes = (uint64_t)info.st_size;
    status = pace__new_file_end(&begun, status);
    if (status == PACE_INTERRUPTED)
        pace_say(self->log, PACE_ERROR, PACE__INTERRUPTED_TEXT);
    return status;
}

pace_status pace_merge(const pace_merge_config *config, const pace_log *log, pace_registry *registry,
                       pace_merge_result *result)
{
    PACE__C_LOCALE();
    merging self = {.config = config, .log = log, .registry = registry};
    uint64_t start_ns = pace__now_ns(), bytes = 0;

    struct stat info;

    if (lstat(config->output, &info) == 0 && !S_ISREG(info.st_mode)) /* a link's target would be lost, too */
        return pace_fail(log, PACE_USAGE, "%s: is no plain file", config->output);
    if (!config->force && pace__exists(config->output))
        return pace_fail(log, PACE_USAGE, "%s: already exists (--force replaces it)", config->output);
    pace_status status = pace__output_apart(config->output, &config->data, 1, log);

    if (!status)
        status = pace__store_open(config->data, &self.store, log);
    if (status)
        return status;
    pace__store_warn(&self.store, log);
    pace__new_file_sweep(config->output);
    status = merge_to(&self, &bytes);
    if (!status)
        *result = (pace_merge_result){.train_rows = self.store.info.rows[PACE__TRAIN],
                                      .test_rows = self.store.info.rows[PACE__TEST],
                                      .validation_rows = self.store.info.rows[PACE__VALIDATION],
                                      .sets = (uint64_t)config->sets,
                                      .bytes = bytes,
                                      .seconds = pace__seconds_since(start_ns)};
    pace__store_close(&self.store);
    return status;
}
