#include "events/directory.h"

#include "files/open.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGINNING "events.out.tfevents."
#define DIGITS    10
#define END       "-end"

/* --- names --- */

static bool is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits <= DIGITS && text[digits] == '\0';
}

bool pace__is_event_role(const char *name)
{
    return strcmp(name, "chief") == 0 || strcmp(name, "evaluator") == 0 ||
           (strncmp(name, "worker", 6) == 0 && is_number(name + 6)) ||
           (strncmp(name, "ps", 2) == 0 && is_number(name + 2));
}

void pace__event_file_name(uint64_t number, bool end, char name[PACE__EVENT_NAME_MAX])
{
    assert(number <= PACE__EVENT_NUMBER_MAX);
    snprintf(name, PACE__EVENT_NAME_MAX, BEGINNING "%010" PRIu64 ".paceline%s", number, end ? END : "");
}

/* Is it spelled as we do? */
static bool is_ours(const char *name, uint64_t *number, bool *end)
{
    char again[PACE__EVENT_NAME_MAX];
    size_t beginning = strlen(BEGINNING), length = strlen(name);

    if (strncmp(name, BEGINNING, beginning) != 0 || strspn(name + beginning, "0123456789") != DIGITS)
        return false;
    *number = strtoull(name + beginning, NULL, 10);
    *end = length > strlen(END) && strcmp(name + length - strlen(END), END) == 0;
    pace__event_file_name(*number, *end, again);
    return strcmp(name, again) == 0;
}

/* --- a walk over all files of ours --- */

typedef struct walk {
    void (*file)(struct walk *walk, int role_fd, const char *name, uint64_t number, bool end);
    void (*role)(struct walk *walk, int fd, const char *name); /* behind its files; may be NULL */
    pace__event_files found;
    bool failed;
} walk;

/* Takes the descriptor over. */
static void walk_role(walk *self, int fd)
{
    DIR *listing = fdopendir(fd);

    if (!listing) {
        close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(listing));) {
        uint64_t number;
        bool end;

        if (is_ours(entry->d_name, &number, &end))
            self->file(self, fd, entry->d_name, number, end);
    }
    closedir(listing);
}

static void walk_all(walk *self, const char *directory)
{
    int fd = pace__open_directory(AT_FDCWD, directory);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;

    if (!listing) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(listing));) {
        int role_fd = pace__is_event_role(entry->d_name) ? pace__open_directory(fd, entry->d_name) : -1;

        if (role_fd < 0)
            continue;
        walk_role(self, role_fd);
        if (self->role)
            self->role(self, fd, entry->d_name);
    }
    closedir(listing);
}

static void count_file(walk *self, int role_fd, const char *name, uint64_t number, bool end)
{
    struct stat info;

    (void)end;
    if (number > self->found.last)
        self->found.last = number;
    if (fstatat(role_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode))
        self->found.bytes += (uint64_t)info.st_size;
}

pace__event_files pace__event_files_find(const char *directory)
{
    walk finding = {.file = count_file};

    walk_all(&finding, directory);
    return finding.found;
}

static void remove_end(walk *self, int role_fd, const char *name, uint64_t number, bool end)
{
    (void)self;
    (void)number;
    if (end)
        unlinkat(role_fd, name, 0);
}

void pace__event_files_reopen(const char *directory)
{
    walk removing = {.file = remove_end};

    walk_all(&removing, directory);
}

static void remove_file(walk *self, int role_fd, const char *name, uint64_t number, bool end)
{
    (void)number;
    (void)end;
    /* A directory by that name is none of ours. */
    self->failed |= unlinkat(role_fd, name, 0) != 0 && errno != ENOENT && errno != EISDIR && errno != EPERM;
}

static void remove_role(walk *self, int fd, const char *name)
{
    (void)self;
    unlinkat(fd, name, AT_REMOVEDIR); /* with something of others in it, it stays */
}

pace_status pace__event_files_remove(const char *directory, const pace_log *log)
{
    walk removing = {.file = remove_file, .role = remove_role};

    walk_all(&removing, directory);
    return removing.failed ? pace_fail(log, PACE_IO, "%s: cannot be emptied: %s", directory, strerror(errno))
                           : PACE_OK;
}
