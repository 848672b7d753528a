/*
 * class_names.h - the names of a data set's classes: DIR/classes.txt, one per line, line i is class i. The
 * same text is in the file of every model that was trained on it.
 *
 *     pace__class_names names;
 *     status = pace__class_names_parse(text, size, "run/model.safetensors", log, &names);
 *     puts(names.items[3]);
 *     pace__class_names_release(&names);
 */
#ifndef DATA_PICTURE_CLASS_NAMES_H
#define DATA_PICTURE_CLASS_NAMES_H

#include "data/formats/encoding.h"

#include <stddef.h>

#define PACE__CLASS_NAMES_FILE      "classes.txt"
#define PACE__CLASS_NAME_BYTES_MAX  255
#define PACE__CLASS_NAMES_BYTES_MAX ((size_t)PACE__CLASSES_MAX * (PACE__CLASS_NAME_BYTES_MAX + 1))

typedef struct pace__class_names {
    uint32_t count;
    char **items; /* distinct, not empty, without control characters, valid UTF-8 */
    /* private */
    char *text;
} pace__class_names;

/* NULL, or what keeps it from being the name of a class, as "has a control character". */
const char *pace__class_name_fault(const char *name, size_t size);

/* A copy is made of the text; the last line may lack its end. 2 to PACE__CLASSES_MAX names. PACE_BAD_DATA
 * with `where` and the line. */
pace_status pace__class_names_parse(const char *text, size_t size, const char *where, const pace_log *log,
                                    pace__class_names *names);
void pace__class_names_release(pace__class_names *names); /* a zeroed one is allowed */

/* One name per line: what parse takes, and what is stored. The caller frees it; NULL when out of memory. */
char *pace__class_names_text(const pace__class_names *names, size_t *size);
uint64_t pace__class_names_checksum(const pace__class_names *names);

/* All names in the same number of bytes, *width, filled with zeros: what HDF5 takes. As above. */
char *pace__class_names_table(const pace__class_names *names, size_t *width);

/* DIR/classes.txt, synced; and read back, checked against the encoding's number and checksum. */
pace_status pace__class_names_write(const char *directory, const pace__class_names *names,
                                    const pace_log *log);
pace_status pace__class_names_read(const char *directory, const pace__encoding *encoding, const pace_log *log,
                                   pace__class_names *names);

/* PACE_BAD_DATA unless these are the same names in the same order; says which only one of them has. `set` is
 * where the data's are from. */
pace_status pace__class_names_fit(const pace__class_names *model, const pace__class_names *data,
                                  const char *set, const pace_log *log);

#endif
