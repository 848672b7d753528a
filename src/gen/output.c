#include "gen/output.h"

#include "base/clock.h"
#include "base/random.h"
#include "files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In place: pipes and devices, and links (/dev/stdout is one), which a rename would replace. */
static pace_status open_special(pace__output *output, const char *path)
{
    output->fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (output->fd < 0)
        return pace_fail(output->log, PACE_IO, "%s: cannot open for writing: %s", path, strerror(errno));
    output->close = true;
    return PACE_OK;
}

static pace_status open_temporary(pace__output *output, const char *path)
{
    /* The name is unlike that of any other process, here or on another host that shares the directory. */
    uint64_t unique = pace__mix64(pace__now_ns() ^ (uint64_t)getpid() << 40);

    output->temporary = pace__format("%s.tmp-%016llx", path, (unsigned long long)unique);
    if (!output->temporary)
        return pace_fail(output->log, PACE_FAILED, "%s: out of memory", path);
    output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (output->fd < 0) {
        pace_status status = pace_fail(output->log, PACE_IO, "%s: cannot create: %s", path, strerror(errno));

        free(output->temporary);
        return status;
    }
    output->close = true;
    output->path = path;
    return PACE_OK;
}

pace_status pace__output_open(pace__output *output, const char *path, bool force, const pace_log *log)
{
    struct stat info;

    *output = (pace__output){.fd = STDOUT_FILENO, .name = "standard output", .log = log};
    if (strcmp(path, "-") == 0)
        return PACE_OK;
    output->name = path;
    if (stat(path, &info) != 0)
        return open_temporary(output, path);
    if (S_ISDIR(info.st_mode))
        return pace_fail(log, PACE_USAGE, "%s: is a directory; name a file to write", path);
    if (!S_ISREG(info.st_mode))
        return open_special(output, path);
    if (!force)
        return pace_fail(log, PACE_USAGE, "%s: exists; use --force to replace it", path);
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode) ? open_special(output, path)
                                                            : open_temporary(output, path);
}

pace_status pace__output_close(pace__output *output, pace_status status)
{
    if (!status && output->path && fsync(output->fd) != 0)
        status = pace_fail(output->log, PACE_IO, "%s: cannot write: %s", output->name, strerror(errno));
    if (output->close && close(output->fd) != 0 && !status)
        status = pace_fail(output->log, PACE_IO, "%s: cannot write: %s", output->name, strerror(errno));
    if (!output->path)
        return status;
    if (!status && rename(output->temporary, output->path) != 0)
        status = pace_fail(output->log, PACE_IO, "%s: cannot rename to %s: %s", output->temporary,
                           output->path, strerror(errno));
    if (status)
        unlink(output->temporary);
    else
        status = pace__sync_parent(output->path, output->log);
    free(output->temporary);
    return status;
}
