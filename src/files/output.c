#include "files/output.h"

#include "files/file.h"
#include "files/open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pace_status open_whole(pace__output *output, const char *path)
{
    pace__new_file_sweep(path);
    pace_status status = pace__new_file_begin(path, output->log, &output->file);

    if (status)
        return status;
    output->whole = true;
    output->fd = output->file.fd;
    return PACE_OK;
}

/* In place: pipes and devices, which a rename would replace. */
static pace_status open_direct(pace__output *output, const char *path)
{
    pace_status status = pace__open_special(path, output->log, &output->fd);

    output->direct = !status;
    return status;
}

pace_status pace__output_open(pace__output *output, const char *path, bool force, const pace_log *log)
{
    struct stat info, own;

    *output = (pace__output){.fd = STDOUT_FILENO, .name = "standard output", .log = log};
    if (strcmp(path, "-") == 0)
        return PACE_OK;
    output->name = path;
    bool is_link = lstat(path, &own) == 0 && S_ISLNK(own.st_mode);

    if (stat(path, &info) != 0)
        return is_link ? pace_fail(log, PACE_USAGE, "%s: is a link that leads nowhere: name a file to write",
                                   path)
                       : open_whole(output, path);
    if (S_ISDIR(info.st_mode))
        return pace_fail(log, PACE_USAGE, "%s: is a directory; name a file to write", path);
    if (!S_ISREG(info.st_mode))
        return open_direct(output, path);
    if (is_link) /* as /dev/stdout may be; a rename would take its place */
        return pace_fail(log, PACE_USAGE,
                         "%s: is a link to a file: name that file itself (of standard output, -)", path);
    if (!force)
        return pace_fail(log, PACE_USAGE, "%s: exists; use --force to replace it", path);
    return open_whole(output, path);
}

pace_status pace__output_close(pace__output *output, pace_status status)
{
    if (output->whole)
        return pace__new_file_end(&output->file, status);
    if (output->direct && close(output->fd) != 0 && !status)
        status = pace_fail(output->log, PACE_IO, "%s: cannot write: %s", output->name, strerror(errno));
    return status;
}

/* --- inputs --- */

/* Without links: the path, or the nearest directory above it that is there. To be freed; NULL: out of memory, or the working
 * directory was removed. */
static char *real_path(const char *path)
{
    char *part = pace__format("%s%s", path[0] == '/' ? "" : "./", path), *real = NULL;

    while (part && !(real = realpath(part, NULL)) && errno != ENOMEM) {
        char *slash = strrchr(part, '/');

        if (!slash) /* not even "." is there: the working directory was removed */
            break;
        slash[slash == part] = '\0';
    }
    free(part);
    return real;
}

/* Is it that, or does it lie within that? */
static bool lies_in(const char *path, const struct stat *outer)
{
    char *real = real_path(path);
    struct stat info;
    bool inside = false;

    for (char *slash = real; slash && !inside;) {
        inside = stat(real, &info) == 0 && info.st_dev == outer->st_dev && info.st_ino == outer->st_ino;
        slash = strrchr(real, '/');
        if (slash == real && real[1] == '\0')
            break;
        slash[slash == real] = '\0';
    }
    free(real);
    return inside;
}

static bool is_there(const char *input, struct stat *info)
{
    return input && strcmp(input, "-") != 0 && stat(input, info) == 0;
}

pace_status pace__output_outside(const char *output, const char *const *inputs, size_t count,
                                 const pace_log *log)
{
    struct stat info;
    pace_status status = pace__check_way(output, log);

    for (size_t i = 0; i < count && !status; i++) {
        if (is_there(inputs[i], &info) && lies_in(output, &info))
            status = pace_fail(log, PACE_USAGE, "%s: is part of what is read (%s): choose another output",
                               output, inputs[i]);
    }
    return status;
}

pace_status pace__output_apart(const char *output, const char *const *inputs, size_t count,
                               const pace_log *log)
{
    struct stat own, info;
    bool exists = stat(output, &own) == 0;

    for (size_t i = 0; exists && i < count; i++) {
        if (is_there(inputs[i], &info) && !lies_in(output, &info) && lies_in(inputs[i], &own))
            return pace_fail(log, PACE_USAGE, "%s: holds what is read (%s): choose another output", output,
                             inputs[i]);
    }
    return pace__output_outside(output, inputs, count, log);
}
