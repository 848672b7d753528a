/*
 * Any bytes as the config.yaml of a run: refused with one message of one line, or options that are within their
 * limits, which are written and read again as the same, and from which a plan can be made as --resume makes it.
 */
#include "job/job.h"
#include "options/internal.h"

#include "fuzzing.h"

#include <paceline/kernels.h>
#include <stdlib.h>

/* As job/resume.c has it. */
typedef struct recorded {
    pace_train_config config;
    pace_model_options kinds[PACE_MODELS_MAX];
    int kernels;
    pace_options *options;
} recorded;

static pace_status read_recorded(const char *path, recorded *self, const pace_log *log)
{
    *self = (recorded){0};
    self->options = pace_options_create(pace_train_options, &self->config, log);
    assert(self->options && pace_train_add_kinds(self->options, self->kinds) == PACE_OK);
    assert(pace_options_add(self->options, pace__kernels_option, &self->kernels) == PACE_OK);
    pace_status status = pace__options_read(self->options, path);

    return status ? status : pace_train_take_kind(&self->config, self->kinds, self->options, log);
}

/* What is written of it; NULL: texts that are not UTF-8 cannot be. */
static char *write_again(const recorded *self, const char *path, const pace_log *log, size_t *size)
{
    pace_option_part parts[4];
    char *text;

    pace__record_parts(&self->config, &self->kernels, parts);
    if (pace_options_write_yaml(parts, path, log))
        return NULL;
    assert(pace__read_file(path, PACE_CONFIG_BYTES_MAX, &text, size, log) == PACE_OK);
    return text;
}

static void check_again(const recorded *first, const pace_log *log)
{
    static recorded second;
    size_t sizes[2];
    char *path = pace__format("%s/config.yaml", scratch()),
         *before = write_again(first, path, log, &sizes[0]);

    if (before) {
        assert(read_recorded(path, &second, log) == PACE_OK);
        char *after = write_again(&second, path, log, &sizes[1]);

        assert(after && sizes[0] == sizes[1] && memcmp(before, after, sizes[0]) == 0);
        pace_options_free(second.options);
        free(after);
    }
    free(before);
    free(path);
}

static void plan(recorded *self)
{
    pace__dataset data = {.kind = PACE__ROWS_SPARSE,
                          .columns = 39,
                          .row_entries_max = 39,
                          .ids = 1000,
                          .features = 5000,
                          .rows = 1000,
                          .test_rows = 100,
                          .positives = 300};
    pace_train_config settled = self->config;
    pace__job_plan plan = {0};
    pace_status status = pace__plan_cluster(&settled, NULL, &plan);

    if (!status)
        status = pace__plan_decide(&settled, &data, NULL, &plan);
    if (!status)
        pace__plan_identity(&plan, &settled, &self->config);
    pace__plan_release(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static recorded first;
    int errors = 0;
    pace_log log = {check_message, &errors};
    unnamed file = unnamed_make(data, size);
    pace_status status = read_recorded(file.path, &first, &log);

    assert(status == PACE_OK || status == PACE_USAGE || status == PACE_BAD_DATA);
    assert(errors == (status != PACE_OK));
    if (!status) {
        check_again(&first, &log);
        plan(&first);
    }
    pace_options_free(first.options);
    close(file.fd);
    return 0;
}
