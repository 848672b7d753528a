/*
 * internal.h - the parts behind <paceline/options.h>: one value, the YAML file, the nearest name.
 */
#ifndef OPTIONS_INTERNAL_H
#define OPTIONS_INTERNAL_H

#include <paceline/options.h>

/* Names, keys and choice words are shorter than this. */
#define PACE_OPTION_NAME_MAX 64

/* Configuration files are smaller than this. */
#define PACE_CONFIG_BYTES_MAX ((size_t)1 << 20)

#define PACE_WHY_MAX 320

/*
 * Reads `text` into the row's field at `field` and checks its range. False: the field is untouched and `why`
 * says what is wrong, to be put behind the value. A PACE_OPT_TEXT field points to `text` afterwards. Not for
 * lists.
 */
bool pace__value_parse(const pace_option *row, const char *text, void *field, char why[PACE_WHY_MAX]);

/* Is it a word of those that switch something on or off, and no number? */
bool pace__flag_word(const char *text, bool *on);

/* The number, flag or choice in a form that pace__value_parse reads back without loss. Not for texts and
 * lists. */
#define PACE_VALUE_TEXT_MAX 64
void pace__value_print(const pace_option *row, const void *field, char text[PACE_VALUE_TEXT_MAX]);

/* The tables of a config as parts of it; there are fewer than PACE_OPTIONS_TABLES_MAX. */
void pace__options_parts(const pace_option_table *tables, const void *config,
                         pace_option_part parts[PACE_OPTIONS_TABLES_MAX]);

/* All fields of a table without lists become their defaults. */
void pace__options_reset(const pace_option *table, void *config);

/* Is it what it would be without anybody saying so? */
bool pace__value_is_default(const pace_option *row, const void *field);

/*
 * What a job is, in words: the options of these marks (PACE_MARK_BIT of each), "name=value", in the order of the
 * tables, with a blank between two. The one way to say so: checkpoints are known by it, ranks compare it, and an
 * option that decides something takes a row in a table and nothing else. To be freed; NULL when out of memory.
 */
#define PACE_MARK_BIT(mark) (1u << (mark))
char *pace__options_marked(const pace_option_part *parts, unsigned marks);

/* The same as the command that repeats it: "paceline VERB arguments --name value ...", fit for a shell. Flags that are
 * as by default and what has no value are left out. To be freed; NULL when out of memory. */
char *pace__options_command(const char *verb, const pace_texts *arguments, const pace_option_part *parts,
                            unsigned marks);

/* `before`, and the words behind it with a blank in front of each, in quotes where a shell needs them. To be freed; NULL when out of
 * memory. */
char *pace__shell_line(const char *before, char *const *words);

/* Tells which options of these marks have other values now, in the order of the tables, which must be the same in both
 * lists; a part that is not ends the comparison. Texts are those of messages. */
typedef void pace__difference_fn(void *user, const pace_option *row, const char *before, const char *now);
void pace__options_compare(const pace_option_part *before, const pace_option_part *now, unsigned marks,
                           pace__difference_fn *differs, void *user);

/* Reads a file as --config does, and nothing else. */
pace_status pace__options_read(pace_options *options, const char *path);

/* Copies word `index` of "a|b|c"; false behind the last one. */
bool pace__choice_word(const char *choices, int index, char word[PACE_OPTION_NAME_MAX]);

/* Finds the best of several candidates: start with {.word = word} and offer each; the last that was accepted
 * is it. */
typedef struct pace__nearest {
    const char *word;
    bool found;
    size_t distance; /* of the best so far */
} pace__nearest;

/* True if the candidate is close enough to be meant and closer than those before. */
bool pace__nearest_offer(pace__nearest *nearest, const char *candidate);

/* Our names for what other tools call `word`, as far as that is known, in turn; NULL: no more. */
const char *pace__synonym(const char *word, int turn);
/* Batch_Size is batch-size here. Longer words are cut. */
void pace__plain_name(const char *word, char name[PACE_OPTION_NAME_MAX]);

/* Who gets the entries of a YAML mapping: `key` once for each, then `value` for its scalar or for each item
 * of its sequence. */
typedef struct pace__yaml_target {
    pace_status (*key)(void *user, const char *key, bool sequence, int line);
    pace_status (*value)(void *user, const char *text, int line); /* NULL text: null */
    void *user;
} pace__yaml_target;

/* Reads a file that holds one flat mapping, or nothing. Stops at the first status that is not PACE_OK. */
pace_status pace__yaml_read(const char *path, const pace__yaml_target *target, const pace_log *log);

#endif
