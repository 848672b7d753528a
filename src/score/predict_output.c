#include "files/file.h"
#include "score/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writing the output must not destroy what is still to be read. */
static pace_status check_not_input(const struct stat *file, const char *output, const pace_texts *inputs,
                                   const pace_log *log)
{
    struct stat info;

    for (size_t i = 0; i < inputs->count; i++) {
        if (stat(inputs->items[i], &info) == 0 && info.st_dev == file->st_dev && info.st_ino == file->st_ino)
            return pace_fail(log, PACE_USAGE, "%s: is an input too: give --output another file", output);
    }
    return PACE_OK;
}

/* A file appears whole or not at all. Pipes, devices and links (/dev/stdout is one) are written as they are.
 */
pace_status pace__predictions_open(const char *output, const pace_texts *inputs, const pace_log *log,
                                   pace__predictions *to)
{
    struct stat info, link;

    *to = (pace__predictions){.file = stdout, .name = "standard output", .log = log};
    if (!output || strcmp(output, "-") == 0)
        return PACE_OK;
    to->name = output;
    bool exists = lstat(to->name, &link) == 0;

    if (stat(to->name, &info) == 0 && S_ISREG(info.st_mode) && check_not_input(&info, output, inputs, log))
        return PACE_USAGE;
    if (!exists || S_ISREG(link.st_mode)) {
        to->temporary = pace__format("%s.tmp", to->name);
        if (!to->temporary)
            return pace_fail(log, PACE_FAILED, "out of memory");
    }
    to->file = fopen(to->temporary ? to->temporary : to->name, "w");
    if (to->file)
        return PACE_OK;
    free(to->temporary);
    return pace_fail(log, PACE_IO, "%s: cannot create: %s", to->name, strerror(errno));
}

pace_status pace__predictions_close(pace__predictions *to, pace_status status)
{
    const pace_log *log = to->log;

    if (!status)
        status = pace__predictions_flush(to);
    if (to->file != stdout && fclose(to->file) != 0 && !status)
        status = pace_fail(log, PACE_IO, "%s: cannot write: %s", to->name, strerror(errno));
    if (to->temporary && !status && rename(to->temporary, to->name) != 0)
        status =
            pace_fail(log, PACE_IO, "%s: cannot rename to %s: %s", to->temporary, to->name, strerror(errno));
    if (to->temporary && status)
        unlink(to->temporary);
    free(to->temporary);
    return status;
}

void pace__predictions_put(pace__predictions *to, double logit)
{
    fprintf(to->file, "%.9g\n", 1 / (1 + exp(-logit)));
    to->count++;
}

pace_status pace__predictions_flush(pace__predictions *to)
{
    if (fflush(to->file) != 0 || ferror(to->file))
        return pace_fail(to->log, PACE_IO, "%s: cannot write: %s", to->name, strerror(errno));
    return PACE_OK;
}

void pace__predictions_warn(const pace__bad_rows *bad)
{
    if (bad->count > 0)
        pace_say(bad->log, PACE_WARN,
                 "%llu bad rows were left out: the output has fewer lines than the input has rows",
                 (unsigned long long)bad->count);
}
