/* A job's data set, with the validation rows that --validation takes of its training rows. */
#include "job/job.h"

#include <inttypes.h>

pace_status pace__job_take_validation(pace__job *job, const pace_log *log)
{
    double fraction = job->config->validation;
    const pace__store *store = &job->store;

    if (fraction > 0 && store->carved == 0 && store->info.rows[PACE__VALIDATION] > 0)
        return pace_fail(
            log, PACE_USAGE,
            "--validation %g: %s has %" PRIu64
            " validation rows of its own, of 'prep --validation': leave it out, or prepare the data "
            "without them",
            fraction, store->path, store->info.rows[PACE__VALIDATION]);
    return pace__store_carve(&job->store, fraction, log);
}

pace_status pace__job_open_data(pace__job *job, const pace_log *log)
{
    pace_status status = pace__store_open(job->config->data, &job->store, log);

    if (status)
        return status;
    status = pace__job_take_validation(job, log);
    if (status)
        pace__store_close(&job->store);
    return status;
}
