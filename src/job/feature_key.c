/* By what features of pictures are known: everything that they depend on. */
#include "data/store/checksums.h"
#include "data/store/sums.h"
#include "files/file.h"
#include "files/sha256.h"
#include "job/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Changes when the same inputs give other features, or a set of features holds more. */
#define FEATURES_VERSION 3

/* Pictures without sums are known by the sums of their files, and by when those were written. */
static pace_status hash_files(const pace__store *store, pace__sha256 *sha, const pace_log *log)
{
    char *sums = pace__format("%s/" PACE__CHECKSUMS_NAME, store->path), hex[PACE__SHA256_HEX] = "", text[128];
    pace_status status = sums ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status && pace__exists(sums)) { /* other programs write none */
        status = pace__sha256_file(sums, hex, log);
        pace__sha256_update(sha, hex, strlen(hex));
    }
    free(sums);
    for (uint32_t i = 0; i < store->info.parts && !status; i++) {
        struct stat found;

        if (fstat(store->parts[i].fd, &found) != 0)
            return pace_fail(log, PACE_IO, "%s: %s", store->parts[i].path, strerror(errno));
        int size = snprintf(text, sizeof text, " %lld@%lld.%09ld", (long long)found.st_size,
                            (long long)found.st_mtim.tv_sec, found.st_mtim.tv_nsec);

        pace__sha256_update(sha, text, (size_t)size);
    }
    return status;
}

pace_status pace__job_feature_key(const pace__job *job, uint64_t *key)
{
    uint64_t content = pace__store_content(&job->store);
    char text[512], hex[PACE__SHA256_HEX];
    pace__sha256 *sha = pace__sha256_create();

    if (!sha)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    int size = snprintf(text, sizeof text, "%d ", FEATURES_VERSION);

    size += job->plan.model.kind->feature_words(&job->plan.model, text + size, sizeof text - (size_t)size);
    size += snprintf(text + size, sizeof text - (size_t)size, " set=%016" PRIx64, content);
    pace__sha256_update(sha, text, (size_t)size);
    pace_status status = content ? PACE_OK : hash_files(&job->store, sha, job->log);

    pace__sha256_finish(sha, hex);
    hex[16] = '\0';
    *key = strtoull(hex, NULL, 16);
    return status;
}
