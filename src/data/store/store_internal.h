/* store_internal.h - what writing and reading a data set share. Internal to store*.c. */
#ifndef DATA_STORE_STORE_INTERNAL_H
#define DATA_STORE_STORE_INTERNAL_H

#include "data/store/store.h"
#include "files/file.h"

#include <hdf5.h>

#define PACE__STORE_VERSION 2

/* The attribute `kind` of a part. */
enum { PACE__STORE_SPARSE, PACE__STORE_TEXT, PACE__STORE_IMAGE, PACE__STORE_FEATURES, PACE__STORE_KINDS };
static const char *const pace__store_kinds[PACE__STORE_KINDS] = {"sparse", "text", "image", "features"};

/*
 * HDF5 prints its own error stack unless told not to; the setting belongs to the calling thread. And at exit
 * it closes what is open, which crashes for a file whose last bytes could not be written: everything is
 * closed by then that can be.
 */
static inline void pace__hdf5_silence(void)
{
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* Attributes of a file or group. */
bool pace__hdf5_put_text(hid_t object, const char *name, const char *text);
bool pace__hdf5_put_number(hid_t object, const char *name, int64_t value);
/* A fixed-length text attribute as a new string, or NULL. */
char *pace__hdf5_get_text(hid_t object, const char *name);

/*
 * Looks an array up: its type must be `type`, its layout contiguous, its first size *rows (or, if *rows is
 * UINT64_MAX, anything: it is set), its second `columns` (0: it has none), and all of it must lie within the
 * file.
 */
bool pace__hdf5_get_array(hid_t parent, const char *name, hid_t type, uint64_t *rows, uint64_t columns,
                          uint64_t file_bytes, uint64_t *at);

/* Attributes and arrays of an open part; part->path and part->fd are set already. `before`: rows of each set in
 * the parts before it. */
pace_status pace__part_read(hid_t file, uint32_t index, const uint64_t before[PACE__SETS],
                            pace__store_info *info, pace__part *part, const pace_log *log);

static inline bool pace__is_text(const pace__store_info *info)
{
    return info->encoding.kind == PACE__TEXT;
}

static inline int pace__store_kind(const pace__encoding *encoding)
{
    switch (encoding->kind) {
    case PACE__TEXT:
        return PACE__STORE_TEXT;
    case PACE__IMAGE:
        return PACE__STORE_IMAGE;
    case PACE__FEATURES:
        return PACE__STORE_FEATURES;
    default:
        return PACE__STORE_SPARSE;
    }
}

#endif
