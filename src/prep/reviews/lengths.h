/*
 * lengths.h - how long texts are: counted in bins of a fixed number, so that counts of many ranks are added up.
 *
 *     uint64_t counts[PACE__LENGTH_BINS] = {0};
 *     counts[pace__length_bin(words)]++;                        // for each text
 *     uint64_t room = pace__length_of_share(counts, PACE__WHOLE_SHARE); // of 95 % of the texts no word is cut
 *
 * A bin ends at a round number: at each 10 up to 1,000, each 100 up to 10,000, each 1,000 up to the longest row that
 * there is; the last one has all longer texts. So a length that is the end of a bin cuts exactly the texts of those
 * behind it.
 */
#ifndef PREP_REVIEWS_LENGTHS_H
#define PREP_REVIEWS_LENGTHS_H

#include <stdint.h>

#define PACE__LENGTH_BINS 247
#define PACE__WHOLE_SHARE 0.95 /* of the texts, that a row should have room for */

unsigned pace__length_bin(uint64_t words);
/* The longest text of a bin; of the last one, PACE__TEXT_LENGTH_MAX, which is shorter than the texts in it. */
uint64_t pace__length_bin_end(unsigned bin);

/* Texts of all lengths; and of those of which `length`, an end of a bin, cuts something. */
uint64_t pace__length_texts(const uint64_t counts[PACE__LENGTH_BINS]);
uint64_t pace__length_cut(const uint64_t counts[PACE__LENGTH_BINS], uint64_t length);
/* The least end of a bin that leaves so many of the texts whole; 0 if there is none, or no text. */
uint64_t pace__length_of_share(const uint64_t counts[PACE__LENGTH_BINS], double share);

/* --- the length of rows, where nobody says --- */

#define PACE__ROOM_MIN 100
#define PACE__ROOM_MAX 1000

/*
 * PACE__ROOM_MIN, unless it cuts more than a fifth of the texts: then room for all words of 95 % of them, up to PACE__ROOM_MAX, an
 * end of a bin; of so many texts that their rows would become larger than 4 GiB, less. docs/decisions/0063
 */
uint32_t pace__length_of_rows(const uint64_t counts[PACE__LENGTH_BINS]);

#endif
