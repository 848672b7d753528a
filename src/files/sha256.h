/*
 * sha256.h - SHA-256 of a stream or a file, as 64 hexadecimal digits. The only module that touches libcrypto.
 *
 *     pace__sha256 *sha = pace__sha256_create();      // NULL when out of memory
 *     pace__sha256_update(sha, bytes, size);          // any number of times
 *     pace__sha256_finish(sha, hex);                  // fills hex and frees
 */
#ifndef FILES_SHA256_H
#define FILES_SHA256_H

#include <paceline/log.h>
#include <stddef.h>

/* Digits and the NUL behind them. */
#define PACE__SHA256_HEX 65

typedef struct pace__sha256 pace__sha256;

pace__sha256 *pace__sha256_create(void);
void pace__sha256_update(pace__sha256 *sha, const void *bytes, size_t size);

/* Ends and frees. A NULL `hex` only frees; a NULL `sha` does nothing. */
void pace__sha256_finish(pace__sha256 *sha, char hex[PACE__SHA256_HEX]);

/* PACE_NO_INPUT if the file cannot be opened, PACE_IO if it cannot be read. */
pace_status pace__sha256_file(const char *path, char hex[PACE__SHA256_HEX], const pace_log *log);

/* The same in a time that does not grow with the file: of its size, and of 64 pieces of 64 KiB that are spread over it
 * evenly. Below 4 MiB that is all of it; larger files of the same size are told apart unless they differ in few
 * places. */
pace_status pace__sha256_sample(const char *path, char hex[PACE__SHA256_HEX], const pace_log *log);

#endif
