#include "series/child.h"

#include "base/clock.h"
#include "launch/child.h"
#include "launch/launch.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* --- what it says --- */

static void ignore_message(void *user, const pace_relay_message *message)
{
    (void)user;
    (void)message;
}

static void add_printed(void *user, const char *line)
{
    pace__job_end *end = user;
    size_t used = strlen(end->out);

    snprintf(end->out + used, sizeof end->out - used, "%s\n", line);
}

/* An error stays, whatever is said behind it. */
static void note_said(void *user, const char *line)
{
    static const char mark[] = "paceline: error: ";
    pace__job_end *end = user;
    bool is_error = strncmp(line, mark, sizeof mark - 1) == 0;

    if (*line == '\0' || (!is_error && end->code))
        return;
    end->code = is_error; /* until it has ended: an error was said */
    snprintf(end->last, sizeof end->last, "%s", is_error ? line + sizeof mark - 1 : line);
}

/* --- its life --- */

/* Ours but for the options: pointers to the same texts. NULL when out of memory. */
static char **other_variables(void)
{
    size_t count = 0, kept = 0;

    while (environ[count])
        count++;
    char **list = malloc((count + 1) * sizeof *list);

    for (size_t i = 0; list && i < count; i++) {
        if (strncmp(environ[i], "PACELINE_", 9) != 0)
            list[kept++] = environ[i];
    }
    if (list)
        list[kept] = NULL;
    return list;
}

typedef struct stopping {
    const _Atomic int *stop;
    uint64_t asked_ns; /* 0: not yet */
    bool killed;
} stopping;

/* Invariant 1. */
static void pass_stop_on(stopping *self, const pace__child *child)
{
    int level = self->stop ? *self->stop : 0;

    if (level == 0 || child->ended)
        return;
    assert(child->pid > 1);
    if (self->asked_ns == 0) {
        kill(child->pid, SIGTERM);
        self->asked_ns = pace__now_ns();
    } else if (!self->killed && (level >= 2 || pace__seconds_since(self->asked_ns) > PACE__CHILD_STOP_S)) {
        kill(-child->pid, SIGKILL); /* its session */
        self->killed = true;
    }
}

/* Until it has ended; what others hold open of its pipes is not waited for. */
static bool serve(pace__child *child, pace_relay_reader *const readers[2], const _Atomic int *stop)
{
    stopping self = {.stop = stop};

    while (!child->ended) {
        pass_stop_on(&self, child);
        pace__child_serve(child, readers);
    }
    for (int i = 0; i < 20 && pace__child_open(child); i++)
        pace__child_serve(child, readers);
    return self.asked_ns != 0;
}

static void settle(pace__job_end *end, int code)
{
    if (WIFSIGNALED(code)) {
        end->code = 128 + WTERMSIG(code);
        snprintf(end->last, sizeof end->last, "ended by signal %d (%s)", WTERMSIG(code),
                 strsignal(WTERMSIG(code)));
    } else {
        end->code = WEXITSTATUS(code);
    }
}

pace_status pace__child_run(char *const *words, const _Atomic int *stop, const pace_log *log,
                            pace__job_end *end)
{
    pace_relay_target printed = {ignore_message, add_printed, end}, said = {ignore_message, note_said, end};
    pace_relay_reader *readers[2] = {pace_relay_reader_create(1, &printed),
                                     pace_relay_reader_create(1, &said)};
    pace__child child = PACE__NO_CHILD;
    char **environment = other_variables();
    uint64_t start_ns = pace__now_ns();
    pace_status status = PACE_FAILED;
    bool stopped = false;

    end->code = 0;
    end->last[0] = end->out[0] = '\0';
    if (!readers[0] || !readers[1] || !environment)
        pace_fail(log, PACE_FAILED, "out of memory");
    else
        status = pace__child_start(words, environment, SIGTERM, false, log, &child);
    if (!status) {
        stopped = serve(&child, readers, stop);
        settle(end, child.code);
        end->seconds = pace__seconds_since(start_ns);
    }
    pace__child_close(&child);
    free(environment);
    pace_relay_reader_free(readers[0]);
    pace_relay_reader_free(readers[1]);
    return !status && stopped ? PACE_INTERRUPTED : status;
}

/* --- its words --- */

static size_t count_words(char *const *words)
{
    size_t count = 0;

    while (words && words[count])
        count++;
    return count;
}

static pace_status append(char ***words, const char *const *more, const pace_log *log)
{
    size_t count = count_words(*words), added = count_words((char *const *)(uintptr_t)more);
    char **longer = realloc(*words, (count + added + 1) * sizeof *longer);

    if (!longer)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *words = longer;
    for (size_t i = 0; i < added; i++) {
        longer[count + i] = strdup(more[i]);
        longer[count + i + 1] = NULL;
        if (!longer[count + i])
            return pace_fail(log, PACE_FAILED, "out of memory");
    }
    return PACE_OK;
}

pace_status pace__child_words(const char *verb, const pace_option_part *parts, const char *const *more,
                              const pace_log *log, char ***words)
{
    static const pace_option_part none[] = {{0}};
    char **list;
    pace_status status = pace__launch_words(verb, parts ? parts : none, NULL, log, &list);

    if (status)
        return status;
    status = append(&list, more, log);
    if (status)
        pace_options_free_words(list);
    else
        *words = list;
    return status;
}
