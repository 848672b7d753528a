#include "files/sha256.h"

#include "files/file.h"
#include "files/open.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES   ((size_t)256 << 10)
#define SAMPLES      64
#define SAMPLE_BYTES ((size_t)64 << 10)

/*
 * EVP calls on a context that was set up can only fail by a bug, so they are asserted and update returns
 * nothing.
 */
struct pace__sha256 {
    EVP_MD_CTX *context;
};

pace__sha256 *pace__sha256_create(void)
{
    pace__sha256 *sha = malloc(sizeof *sha);

    if (!sha)
        return NULL;
    sha->context = EVP_MD_CTX_new();
    if (!sha->context || EVP_DigestInit_ex(sha->context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(sha->context);
        free(sha);
        return NULL;
    }
    return sha;
}

void pace__sha256_update(pace__sha256 *sha, const void *bytes, size_t size)
{
    int done = EVP_DigestUpdate(sha->context, bytes, size);

    assert(done == 1);
    (void)done;
}

static void to_hex(const unsigned char *bytes, size_t count, char *hex)
{
    for (size_t i = 0; i < count; i++) {
        hex[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    hex[2 * count] = '\0';
}

void pace__sha256_finish(pace__sha256 *sha, char hex[PACE__SHA256_HEX])
{
    if (!sha)
        return;
    if (hex) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned size = 0;
        int done = EVP_DigestFinal_ex(sha->context, digest, &size);

        assert(done == 1 && size == 32);
        (void)done;
        to_hex(digest, size, hex);
    }
    EVP_MD_CTX_free(sha->context);
    free(sha);
}

static pace_status hash_file(int fd, const char *path, pace__sha256 *sha, char *buffer, const pace_log *log)
{
    for (;;) {
        ssize_t got = read(fd, buffer, READ_BYTES);

        if (got == 0)
            return PACE_OK;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return pace_fail(log, PACE_IO, "%s: cannot read: %s", path, strerror(errno));
        pace__sha256_update(sha, buffer, (size_t)got);
    }
}

/* The pieces of a file of `size` bytes: the first is at its beginning, the last at its end. */
static pace_status sample_file(int fd, const char *path, pace__sha256 *sha, char *buffer, const pace_log *log)
{
    struct stat info;

    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return pace_fail(log, PACE_NO_INPUT, "%s: not a file", path);
    uint64_t size = (uint64_t)info.st_size;

    if (size <= SAMPLES * SAMPLE_BYTES)
        return hash_file(fd, path, sha, buffer, log);
    pace__sha256_update(sha, &size, sizeof size);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t at = (size - SAMPLE_BYTES) / (SAMPLES - 1) * i;
        pace_status status =
            pace__pread_all(fd, buffer, SAMPLE_BYTES, i + 1 < SAMPLES ? at : size - SAMPLE_BYTES, path, log);

        if (status)
            return status;
        pace__sha256_update(sha, buffer, SAMPLE_BYTES);
    }
    return PACE_OK;
}

typedef pace_status hash_fn(int fd, const char *path, pace__sha256 *sha, char *buffer, const pace_log *log);

static pace_status hash_by(hash_fn *hash, const char *path, char hex[PACE__SHA256_HEX], const pace_log *log)
{
    int fd;
    pace_status status = pace__open(path, PACE__TO_READ, log, &fd);

    if (status)
        return status;
    pace__sha256 *sha = pace__sha256_create();
    char *buffer = malloc(READ_BYTES);

    if (!sha || !buffer)
        status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    else
        status = hash(fd, path, sha, buffer, log);
    pace__sha256_finish(sha, status ? NULL : hex);
    free(buffer);
    close(fd);
    return status;
}

pace_status pace__sha256_file(const char *path, char hex[PACE__SHA256_HEX], const pace_log *log)
{
    return hash_by(hash_file, path, hex, log);
}

pace_status pace__sha256_sample(const char *path, char hex[PACE__SHA256_HEX], const pace_log *log)
{
    return hash_by(sample_file, path, hex, log);
}
