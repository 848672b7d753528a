/*
 * internal.h - what the files of this module share.
 */
#ifndef CHECKPOINT_INTERNAL_H
#define CHECKPOINT_INTERNAL_H

#include "checkpoint/checkpoint.h"

/* Numbers of a manifest pass through doubles: beyond this, two of them could look the same. */
#define PACE__MANIFEST_INTEGER_MAX ((UINT64_C(1) << 53) - 1)
/* The last lines of a manifest, from that of its checksum on. */
#define PACE__MANIFEST_TAIL_BYTES 35u

/* --- manifest.c --- */

/* The whole text, to be freed by the caller; NULL when out of memory. What no manifest may have is a bug. */
char *pace__manifest_text(const pace__manifest *manifest, size_t *size);
/* The last lines for the text that stands before them. No NUL is added. */
void pace__manifest_seal(const char *text, size_t size, char tail[PACE__MANIFEST_TAIL_BYTES]);

/* --- part.c --- */

void pace__part_name(unsigned part, unsigned parts, char name[PACE__PART_NAME_MAX]);
/* How many keys a part holds. */
uint64_t pace__part_places(uint64_t keys, unsigned part, unsigned parts);
/* A part file can have this size: its floats, and a header that is not longer than they come. */
bool pace__part_bytes_fit(uint64_t bytes, uint64_t places, unsigned width);
/* Opens a file of a checkpoint: one that is not there is PACE_BAD_DATA. */
pace_status pace__checkpoint_open(const char *path, const pace_log *log, int *fd, uint64_t *bytes);

#endif
