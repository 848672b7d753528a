#include "job/recorded.h"

#include "files/sealed.h"
#include "job/job.h"
#include "options/internal.h"

#include <stdlib.h>

#define CONFIG_BYTES_MAX ((size_t)1 << 20)

pace_status pace__recorded_read(const char *run, pace__recorded *was, const pace_log *log)
{
    char *path = pace__run_path(run, PACE__RUN_CONFIG);
    pace_status status = PACE_FAILED;

    was->options = path ? pace_options_create(pace_train_options, &was->config, log) : NULL;
    if (was->options)
        status = pace_train_add_kinds(was->options, was->kinds);
    if (was->options && !status)
        status = pace_options_add(was->options, pace__kernels_option, &was->kernels);
    if (!was->options || status)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    if (!status && !pace__has_sealed_lines(path, CONFIG_BYTES_MAX)) /* it may say anything */
        status = pace_fail(log, PACE_BAD_DATA, "%s: damaged, or changed", path);
    if (!status)
        status = pace__options_read(was->options, path);
    if (!status)
        status = pace_train_take_kind(&was->config, was->kinds, was->options, log);
    free(path);
    return status;
}

void pace__recorded_release(pace__recorded *was)
{
    pace_options_free(was->options);
    was->options = NULL;
}
