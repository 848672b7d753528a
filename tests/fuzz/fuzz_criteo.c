/*
 * The fast Criteo parsers against the plain one: the same rows, bad rows and messages on any bytes. The first
 * byte of an input chooses the options, the rest is the text.
 */
#include "../unit/parsed.h"
#include "data/formats/criteo.h"

#include <paceline/prep.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t feature_choices[] = {64, 1000, PACE__FEATURES_DEFAULT, UINT64_C(1) << 33};

static void compare(parse_case test, const parsed_text *plain)
{
    bool with_values = test.encoding->numeric == PACE_NUMERIC_VALUES;
    parsed_text fast;

    parsed_run(&test, &fast);
    const char *difference = parsed_difference(plain, &fast, with_values);

    if (difference) {
        fprintf(stderr, "the parsers differ in %s\n", difference);
        abort();
    }
    parsed_release(&fast);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    int numeric = data[0] & 1 ? PACE_NUMERIC_VALUES : PACE_NUMERIC_BINS;
    pace__encoding encoding;
    parsed_text plain;

    pace__encoding_criteo(feature_choices[data[0] >> 2 & 3], numeric, &encoding, NULL);
    parse_case test = {.parse = pace__parse_criteo_plain,
                       .encoding = &encoding,
                       .labels_optional = data[0] >> 1 & 1,
                       .bad_max = data[0] >> 4,
                       .text = (const char *)data + 1,
                       .size = size - 1};

    parsed_run(&test, &plain);
    for (int set = PACE_KERNELS_PLAIN + 1; set < PACE__KERNELS_END; set++) {
        test.parse = pace__criteo_of(set)->parse;
        if (pace_kernels_run(set))
            compare(test, &plain);
    }
    parsed_release(&plain);
    return 0;
}
