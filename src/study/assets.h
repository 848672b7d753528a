/* assets.h - the script that the build puts into the program (tools/embed), and every study's report has. */
#ifndef STUDY_ASSETS_H
#define STUDY_ASSETS_H

#include <stddef.h>

extern const unsigned char pace__asset_study_js[];
extern const size_t pace__asset_study_js_size;

#endif
