/*
 * The fast Criteo parser against the plain one: the same rows, bad rows and messages on any bytes. The first
 * byte of an input chooses the options, the rest is the text.
 */
#include "../unit/parsed.h"
#include "base/cpu.h"
#include "data/formats/criteo.h"

#include <paceline/prep.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t feature_choices[] = {64, 1000, PACE__FEATURES_DEFAULT, UINT64_C(1) << 33};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || !pace__cpu_runs(PACE_KERNELS_V4))
        return 0;
    int numeric = data[0] & 1 ? PACE_NUMERIC_VALUES : PACE_NUMERIC_BINS;
    pace__encoding encoding;
    parsed_text plain, fast;

    pace__encoding_criteo(feature_choices[data[0] >> 2 & 3], numeric, &encoding, NULL);
    parse_case test = {.parse = pace__parse_criteo_plain,
                       .encoding = &encoding,
                       .labels_optional = data[0] >> 1 & 1,
                       .bad_max = data[0] >> 4,
                       .text = (const char *)data + 1,
                       .size = size - 1};

    parsed_run(&test, &plain);
    test.parse = pace__parse_criteo_avx512;
    parsed_run(&test, &fast);
    const char *difference = parsed_difference(&plain, &fast, numeric == PACE_NUMERIC_VALUES);

    if (difference) {
        fprintf(stderr, "the parsers differ in %s\n", difference);
        abort();
    }
    parsed_release(&fast);
    parsed_release(&plain);
    return 0;
}
