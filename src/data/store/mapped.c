#include "data/store/mapped.h"

#include "data/store/near.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Copied at once, between two looks at what is in memory. */
#define CHUNK_BYTES ((size_t)512 << 10)
#define PAGES_MAX   (CHUNK_BYTES / 4096 + 1)

typedef struct part_map {
    pthread_rwlock_t lock;  /* of whoever copies, against whoever lets go */
    const pace__part *part; /* the nearest, as it was when all were mapped */
    int fd;
    char *bytes; /* NULL: not mapped */
    size_t size;
    bool was_mapped; /* from the beginning */
    atomic_bool lost;
} part_map;

struct pace__mapped {
    const pace__store *store;
    size_t page;
    part_map *parts; /* (store->info.parts) */
};

#ifdef F_SETLEASE

/* Where only this kernel changes files, and a lease therefore means something. */
static bool is_local(int fd)
{
    static const unsigned long kinds[] = {0xef53 /* ext */, 0x58465342 /* XFS */, 0x9123683e /* Btrfs */,
                                          0xf2f52010 /* F2FS */, 0x01021994 /* tmpfs */};
    struct statfs status;

    if (fstatfs(fd, &status) != 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if ((unsigned long)status.f_type == kinds[i])
            return true;
    }
    return false;
}

/* Of others' files the kernel does not tell what is in memory. */
static bool is_own(const struct stat *status)
{
    return geteuid() == 0 || geteuid() == status->st_uid;
}

/* Nobody is to get a signal. The kernel wants to send one to who took the lease, until it is told otherwise: meanwhile
 * it is one that is ignored. */
static bool take_lease(int fd)
{
    if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        return false;
    if (fcntl(fd, F_SETOWN, 0) == 0)
        return true;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

static bool has_lease(int fd)
{
    return fcntl(fd, F_GETLEASE) == F_RDLCK;
}

static void end_lease(int fd)
{
    fcntl(fd, F_SETLEASE, F_UNLCK);
}

#else

static bool is_local(int fd)
{
    (void)fd;
    return false;
}

static bool is_own(const struct stat *status)
{
    (void)status;
    return false;
}

static bool take_lease(int fd)
{
    (void)fd;
    return false;
}

static bool has_lease(int fd)
{
    (void)fd;
    return false;
}

static void end_lease(int fd)
{
    (void)fd;
}

#endif

/* The lease comes first: what is then found out about the file stays true. */
static void map_part(part_map *self)
{
    struct stat status;

    if (!is_local(self->fd) || !take_lease(self->fd))
        return;
    if (fstat(self->fd, &status) == 0 && is_own(&status) && status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, self->fd, 0);

        self->size = (size_t)status.st_size;
        self->bytes = bytes == MAP_FAILED ? NULL : bytes;
        self->was_mapped = self->bytes != NULL;
    }
    if (!self->bytes)
        end_lease(self->fd);
}

static void unmap_part(part_map *self)
{
    if (!self->bytes)
        return;
    munmap(self->bytes, self->size);
    self->bytes = NULL;
    end_lease(self->fd);
}

static bool is_small(const pace__store *store)
{
    uint64_t bytes = 0;
    struct stat status;

    for (uint32_t i = 0; i < store->info.parts; i++)
        bytes += fstat(store->parts[i].fd, &status) == 0 ? (uint64_t)status.st_size : PACE__MAPPED_BYTES_MAX;
    return bytes <= PACE__MAPPED_BYTES_MAX;
}

pace__mapped *pace__mapped_open(const pace__store *store)
{
    pace__mapped *self = is_small(store) ? calloc(1, sizeof *self) : NULL;

    if (!self)
        return NULL;
    *self = (pace__mapped){.store = store, .page = (size_t)sysconf(_SC_PAGESIZE)};
    self->parts = calloc(store->info.parts ? store->info.parts : 1, sizeof *self->parts);
    if (!self->parts) {
        free(self);
        return NULL;
    }
    for (uint32_t i = 0; i < store->info.parts; i++) {
        self->parts[i].part = pace__nearest(&store->parts[i]);
        self->parts[i].fd = self->parts[i].part->fd;
        pthread_rwlock_init(&self->parts[i].lock, NULL);
        map_part(&self->parts[i]);
    }
    return self;
}

void pace__mapped_close(pace__mapped *mapped)
{
    if (!mapped)
        return;
    for (uint32_t i = 0; i < mapped->store->info.parts; i++) {
        unmap_part(&mapped->parts[i]);
        pthread_rwlock_destroy(&mapped->parts[i].lock);
    }
    free(mapped->parts);
    free(mapped);
}

/* --- copying --- */

/* NULL: another copy of the part was mapped, or none. */
static part_map *map_of(const pace__mapped *self, const pace__part *part)
{
    part_map *map = self ? &self->parts[pace__part_itself(part) - self->store->parts] : NULL;

    return map && map->part == part ? map : NULL;
}

static bool all_in_memory(const pace__mapped *self, const char *from, size_t bytes)
{
    unsigned char pages[PAGES_MAX];
    size_t lead = (uintptr_t)from % self->page, count = (lead + bytes + self->page - 1) / self->page;

    if (mincore((void *)(from - lead), lead + bytes, pages) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!(pages[i] & 1))
            return false;
    }
    return true;
}

/* Under the lock. */
static bool copy(const pace__mapped *self, const part_map *part, char *into, size_t bytes, uint64_t at)
{
    if (at > part->size || bytes > part->size - at)
        return false;
    for (size_t done = 0, chunk; done < bytes; done += chunk) {
        const char *from = part->bytes + at + done;

        chunk = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
        if (!all_in_memory(self, from, chunk))
            return false;
        memcpy(into + done, from, chunk);
    }
    return true;
}

/* From now on rows are compared; only then may others write. */
static void let_go(part_map *part)
{
    pthread_rwlock_wrlock(&part->lock);
    if (part->bytes && !has_lease(part->fd)) {
        atomic_store(&part->lost, true);
        unmap_part(part);
    }
    pthread_rwlock_unlock(&part->lock);
}

bool pace__mapped_copy(pace__mapped *mapped, const pace__part *part, void *into, size_t bytes, uint64_t at)
{
    part_map *from = map_of(mapped, part);

    if (!from || pthread_rwlock_tryrdlock(&from->lock) != 0)
        return false;
    bool mapped_here = from->bytes != NULL, held = mapped_here && has_lease(from->fd);
    bool copied = held && copy(mapped, from, into, bytes, at);

    pthread_rwlock_unlock(&from->lock);
    if (mapped_here && !held)
        let_go(from);
    return copied;
}

void pace__mapped_look(pace__mapped *mapped)
{
    for (uint32_t i = 0; mapped && i < mapped->store->info.parts; i++) {
        if (!atomic_load(&mapped->parts[i].lost) && !has_lease(mapped->parts[i].fd))
            let_go(&mapped->parts[i]);
    }
}

bool pace__mapped_lost(const pace__mapped *mapped, const pace__part *part)
{
    const part_map *map = map_of(mapped, part);

    return map && atomic_load(&map->lost);
}

bool pace__mapped_holds(const pace__mapped *mapped, const pace__part *part)
{
    const part_map *map = map_of(mapped, part);

    return map && map->was_mapped && !atomic_load(&map->lost);
}
