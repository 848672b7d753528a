/* store_internal.h - what writing and reading a data set share. Internal to store.c and store_write.c. */
#ifndef DATA_STORE_INTERNAL_H
#define DATA_STORE_INTERNAL_H

#include "base/file.h"
#include "data/store.h"

#include <hdf5.h>

#define PACE__STORE_VERSION 2

static const char *const pace__set_names[PACE__SETS] = {"train", "test"};
static const char *const pace__store_kinds[] = {"sparse", "text"};

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

static inline bool pace__is_text(const pace__store_info *info)
{
    return info->encoding.kind == PACE__TEXT;
}

static inline char *pace__part_path(const char *directory, uint32_t index)
{
    return pace__format("%s/part-%05u.h5", directory, index);
}

#endif
