/*
 * pictures_internal.h - what the parts of pictures.h share: the heads of containers and the contents of
 * records, as pure functions of bytes; and a list while it is made.
 */
#ifndef DATA_PICTURE_PICTURES_INTERNAL_H
#define DATA_PICTURE_PICTURES_INTERNAL_H

#include "data/input/tfrecord.h"
#include "data/picture/picture_internal.h"
#include "data/picture/pictures.h"

#include <stdio.h>

/* --- IDX --- */

#define PACE__IDX_HEAD_MAX 20

typedef struct pace__idx_head {
    unsigned dimensions; /* 1: labels; 3: grey pictures; 4: pictures with channels */
    uint32_t size[4];
    unsigned bytes; /* of the head */
    uint64_t item;  /* bytes of a picture or label */
    uint64_t total; /* bytes of the file */
} pace__idx_head;

/* Whether it begins as IDX of bytes with 1, 3 or 4 dimensions does. */
bool pace__is_idx(const void *bytes, size_t size);
/* NULL, or what is wrong with the head. */
const char *pace__idx_parse(const void *bytes, size_t size, pace__idx_head *head);

/* --- CIFAR --- */

enum {
    PACE__CIFAR_SIDE = 32,
    PACE__CIFAR_PIXELS = 3 * PACE__CIFAR_SIDE * PACE__CIFAR_SIDE,
};

typedef struct pace__cifar_shape {
    uint32_t labels; /* bytes in front of the pixels; the last of them is the class */
    uint32_t classes;
    uint64_t count;
} pace__cifar_shape;

/* By the file's name and size; NULL, or what is wrong. */
const char *pace__cifar_parse(const char *name, uint64_t bytes, pace__cifar_shape *shape);
/* data_batch_*.bin, test_batch.bin, train.bin, test.bin; also with .gz or .zst behind. */
bool pace__is_cifar_name(const char *name);

/* --- tf.Example --- */

typedef struct pace__picture_example {
    pace__span encoded; /* of a JPEG or PNG file, or pixels */
    bool raw;
    uint32_t height, width, channels; /* of raw ones */
    int64_t label;
    pace__span text; /* the class's name, or empty */
} pace__picture_example;

/* NULL, or why it has no picture or label: a text that lives for ever. */
const char *pace__picture_example_parse(pace__span data, pace__picture_example *example);
/* The same of a record's data, with its checksum behind it. */
const char *pace__picture_record_parse(pace__span data, pace__picture_example *example);

/* --- files --- */

/* Whether a JPEG or PNG file has colours, as its head says. */
enum { PACE__COLOURS_UNKNOWN, PACE__COLOURS_NONE, PACE__COLOURS_SOME };
int pace__picture_colours(const uint8_t *bytes, size_t size);

/* The last part of a path. */
const char *pace__file_name(const char *path);

/* NULL, or why a picture's file cannot be read. */
const char *pace__picture_file_read(const char *path, pace__picture_scratch *scratch, size_t *size);

/* --- names of classes --- */

/* In an order that its user keeps. A zeroed one is empty. */
typedef struct pace__name_list {
    char **items;
    size_t count, room;
} pace__name_list;

/* A copy of the name gets this place, at most `count`, and those behind it the next ones. False: out of memory. */
bool pace__name_list_insert(pace__name_list *list, size_t place, const char *name);
void pace__name_list_release(pace__name_list *list);

/* --- a list while it is made --- */

typedef struct pace__found_label {
    int64_t label;
    char *name; /* NULL: not told */
} pace__found_label;

typedef struct pace__listing {
    const pace__listing_plan *plan;
    const pace_log *log;
    FILE *entries, *files, *paths;
    pace__picture_facts facts;
    bool seen_shape;
    pace__found_label *labels; /* by label */
    size_t label_count, label_room;
    bool names_differ; /* a label has two names */
    char *known_names; /* of all classes, lines; NULL: not known */
    size_t known_size;
    const char *skipped; /* an example; owned */
    /* The first picture without a label: its container, place in it, and what is wrong. */
    const char *fault_path, *fault;
    uint64_t fault_at;
    pace__picture_scratch scratch;
} pace__listing;

pace_status pace__listing_pulse(pace__listing *self);
/* *at: where the path, `first` and `second` with a slash between (second may be NULL), begins. */
pace_status pace__listing_add_path(pace__listing *self, const char *first, const char *second, uint64_t *at);
pace_status pace__listing_add_file(pace__listing *self, const pace__picture_file *file);
pace_status pace__listing_add(pace__listing *self, const pace__picture_entry *entry);
/* Notes a label that occurs, and its name, if it has one. */
pace_status pace__listing_note_label(pace__listing *self, int64_t label, pace__span name);
/* The next picture, number `at` of its container, has no label. */
void pace__listing_note_fault(pace__listing *self, const char *path, uint64_t at, const char *fault);
/* Of a container, or of a picture; sides of 0: not told. */
void pace__listing_note_shape(pace__listing *self, uint32_t height, uint32_t width, int colours);

/* The sorted names of all classes; what they are called is told as one of `what`. A label is a place among them. */
pace_status pace__listing_keep_names(pace__listing *self, const pace__name_list *names, const char *what);

pace_status pace__list_folders(pace__listing *self);
pace_status pace__list_tables(pace__listing *self);
pace_status pace__list_containers(pace__listing *self);

#endif
