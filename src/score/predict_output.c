#include "score/predict.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* A descriptor of its own, so that stdio can close it before the file gets its name. */
static FILE *open_stdio(const pace__output *output)
{
    int fd = dup(output->fd);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (!file && fd >= 0)
        close(fd);
    return file;
}

pace_status pace__predictions_open(const char *output, bool force, const pace_texts *inputs,
                                   const pace_log *log, pace__predictions *to)
{
    const char *path = output ? output : "-";

    *to = (pace__predictions){.file = stdout, .log = log};
    pace_status status = force && access(path, F_OK) == 0
                             ? pace__output_apart(path, inputs->items, inputs->count, log)
                             : PACE_OK;

    if (!status)
        status = pace__output_open(&to->output, path, force, log);
    if (status || to->output.fd == STDOUT_FILENO)
        return status;
    to->file = open_stdio(&to->output);
    if (to->file)
        return PACE_OK;
    return pace__output_close(&to->output,
                              pace_fail(log, PACE_IO, "%s: cannot open: %s", path, strerror(errno)));
}

pace_status pace__predictions_close(pace__predictions *to, pace_status status)
{
    if (!status)
        status = pace__predictions_flush(to);
    if (to->file != stdout && fclose(to->file) != 0 && !status)
        status = pace_fail(to->log, PACE_IO, "%s: cannot write: %s", to->output.name, strerror(errno));
    return pace__output_close(&to->output, status);
}

void pace__predictions_put(pace__predictions *to, double logit, pace__explainer *why)
{
    fprintf(to->file, "%.9g", 1 / (1 + exp(-logit)));
    if (why)
        pace__explanation_write(why, to->file);
    putc('\n', to->file);
    to->count++;
}

pace_status pace__predictions_flush(pace__predictions *to)
{
    if (fflush(to->file) != 0 || ferror(to->file))
        return pace_fail(to->log, PACE_IO, "%s: cannot write: %s", to->output.name, strerror(errno));
    return PACE_OK;
}

void pace__predictions_show(const pace__predictions *to, uint64_t done, uint64_t total, const char *unit,
                            pace_registry *registry)
{
    pace_field fields[] = {PACE_TEXT("phase", "predict"), PACE_INT("done", done), PACE_INT("total", total),
                           PACE_TEXT("unit", unit)};

    if (to->file != stdout)
        pace_registry_emit(registry, "progress", fields, 4);
}

void pace__predictions_warn(const pace__bad_rows *bad)
{
    if (bad->count > 0)
        pace_say(bad->log, PACE_WARN,
                 "%llu bad rows were left out: the output has fewer lines than the input has rows",
                 (unsigned long long)bad->count);
}
