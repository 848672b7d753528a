/*
 * pictures.h - what pictures there are to read, and how to get at each of them.
 *
 * Sources are folders with a sub-folder of JPEG and PNG files for each class; csv tables with a path, from where the
 * table is, and a class in each row; or containers: IDX files (the
 * MNIST family), CIFAR-10 and CIFAR-100 in their binary form, TFRecords of tf.Example. Containers may be
 * compressed. All of a job's are of one format.
 *
 *     pace__picture_sources sources;
 *     pace__pictures_find(&inputs, &tests, PACE_IMAGES_AUTO, log, &sources);   // which files; looks at heads
 *     pace__pictures_list(&(pace__listing_plan){&sources, directory}, log, &names);   // one pass over them
 *     pace__pictures_open(directory, log, &pictures);                          // by every process
 *     reason = pace__pictures_fetch(&pictures, 17, &scratch, &picture);        // by any thread
 *
 * 1. Pictures have numbers: those of the inputs in the order of the inputs, sorted by name within a folder,
 *    then those of the test files. `inputs` of them come from the inputs.
 * 2. The list is in files of the directory, which are mapped: memory does not grow with the number of
 *    pictures, but for the names in one folder while it is sorted. Compressed containers are unpacked there,
 *    once. Whoever has made the directory removes it all (pace__pictures_remove).
 * 3. A picture has a label, which is a number of its source; the list knows which class it is. A picture
 *    whose label cannot be known has the class PACE__CLASS_NONE, and fetch says why.
 * 4. A container that is damaged as a whole (its head, its length) is PACE_BAD_DATA; what is wrong with one
 *    picture only is a reason.
 */
#ifndef DATA_PICTURE_PICTURES_H
#define DATA_PICTURE_PICTURES_H

#include "data/picture/class_names.h"

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/prep.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__PICTURES_MAX        ((uint64_t)UINT32_MAX)
#define PACE__PICTURE_BYTES_MAX   ((size_t)256 << 20) /* of one, in a file or record */
#define PACE__PICTURE_SOURCES_MAX (1u << 20)
#define PACE__CLASS_NONE          UINT32_MAX
#define PACE__PATH_FIELD          "path"
#define PACE__CLASS_FIELD         "label"

/* --- which files --- */

typedef struct pace__picture_source {
    char *path;   /* of folders: the one with the sub-folders */
    char *labels; /* of IDX: the file of labels; else NULL */
    bool test;
    bool own_test; /* a test file that was found beside the training files */
} pace__picture_source;

typedef struct pace__picture_sources {
    int format; /* PACE_IMAGES_*, not AUTO */
    pace__picture_source *items;
    size_t count, room;
    size_t tests; /* of them; they come last */
} pace__picture_sources;

/* By its suffix: .jpg, .jpeg or .png. Files in folders that are called otherwise are passed over. */
bool pace__is_picture_name(const char *name);

/* "auto", "folders", "idx", "cifar", "tfrecord" */
const char *pace__pictures_format_name(int format);

/* Words of a command to sources; `tests` may be NULL. Files that are not there are PACE_NO_INPUT; a format
 * that cannot be told, or files of several, PACE_USAGE. */
pace_status pace__pictures_find(const pace_texts *inputs, const pace_texts *tests, int format,
                                const pace_log *log, pace__picture_sources *sources);
void pace__picture_sources_release(pace__picture_sources *sources); /* a zeroed one is allowed */

/* --- the list --- */

typedef struct pace__listing_plan {
    const pace__picture_sources *sources;
    const char *directory;
    const pace__class_names *classes;     /* the only ones that there may be; NULL: those that are found */
    const char *path_field, *label_field; /* columns of tables; NULL: the usual ones */
    bool tell_grey;                       /* pictures in files are looked at until one is in colour */
    /* Called now and then; what fails ends the listing. May be NULL. */
    pace_status (*pulse)(void *user, uint64_t pictures);
    void *user;
} pace__listing_plan;

/* *names: the classes, plan->classes among them in their order; to be released by the caller. */
pace_status pace__pictures_list(const pace__listing_plan *plan, const pace_log *log,
                                pace__class_names *names);
void pace__pictures_remove(const char *directory);

/* What is true of all pictures; a file of the list. */
typedef struct pace__picture_facts {
    int format;
    bool grey;              /* all of them are, as far as was looked */
    uint32_t height, width; /* of all of them, where containers tell it; else 0 */
    uint64_t count, inputs;
    uint64_t files, labels, path_bytes;
    uint64_t skipped; /* files beside pictures */
    uint64_t bytes;   /* of containers, unpacked */
} pace__picture_facts;

typedef struct pace__picture_entry {
    uint64_t at;   /* in its container; of a file: where its path begins */
    int64_t label; /* PACE__LABEL_NONE: cannot be known */
    uint32_t size; /* bytes in the container */
    uint32_t file; /* the container, or PACE__NO_CONTAINER */
} pace__picture_entry;

#define PACE__LABEL_NONE   INT64_MIN
#define PACE__NO_CONTAINER UINT32_MAX

enum { PACE__PIXELS_PLAIN, PACE__PIXELS_PLANES, PACE__PIXELS_EXAMPLE };

typedef struct pace__picture_file {
    uint64_t path_at, opened_at; /* in the paths: its name, and the file to read, which may be unpacked */
    uint64_t first, count;       /* numbers */
    uint32_t height, width, channels;
    uint32_t layout; /* PACE__PIXELS_* */
} pace__picture_file;

typedef struct pace__picture_label {
    int64_t label;
    uint64_t class; /* index */
} pace__picture_label;

#define PACE__PICTURE_FDS_MAX 256

typedef struct pace__pictures {
    pace__picture_facts facts;
    const pace__picture_entry *entries; /* (count) */
    const pace__picture_file *files;    /* (files) */
    const pace__picture_label *labels;  /* (labels) by label */
    const char *paths;                  /* (path_bytes) each ends with a NUL */
    int fds[PACE__PICTURE_FDS_MAX];     /* of the first containers; others are opened for each picture */
} pace__pictures;

pace_status pace__pictures_open(const char *directory, const pace_log *log, pace__pictures *pictures);
void pace__pictures_close(pace__pictures *pictures); /* a zeroed one is allowed */

/* PACE__CLASS_NONE: not known. */
uint32_t pace__pictures_class(const pace__pictures *pictures, uint64_t number);

/* "folder/cat/1.jpg" or "train-images-idx3-ubyte#17", control characters replaced, cut to fit, with a NUL. */
void pace__pictures_name(const pace__pictures *pictures, uint64_t number, char *name, size_t room);

/* DIR/images.txt, synced: the names of all. */
pace_status pace__pictures_write_names(const pace__pictures *pictures, const char *directory,
                                       const pace_log *log);

/* --- one picture --- */

typedef struct pace__picture_data {
    const uint8_t *bytes; /* in the scratch */
    size_t size;          /* of an encoded one */
    bool raw;             /* bytes are pixels (height, width, channels); else a JPEG or PNG file's */
    uint32_t height, width, channels;
    uint64_t read; /* bytes of the source */
} pace__picture_data;

/* One per thread; zeroed before use. */
typedef struct pace__picture_scratch {
    uint8_t *bytes, *pixels;
    size_t room, pixel_room;
    char reason[256];
} pace__picture_scratch;

/* NULL, and *data is set; or why not, a text in the scratch. */
const char *pace__pictures_fetch(const pace__pictures *pictures, uint64_t number,
                                 pace__picture_scratch *scratch, pace__picture_data *data);
void pace__picture_scratch_release(pace__picture_scratch *scratch);

#endif
