/* assets.h - files that the build puts into the program (tools/embed): the page's own, and Chart.js as Debian has it. */
#ifndef REPORT_ASSETS_H
#define REPORT_ASSETS_H

#include <stddef.h>

extern const unsigned char pace__asset_report_css[], pace__asset_report_js[], pace__asset_chart_js[];
extern const size_t pace__asset_report_css_size, pace__asset_report_js_size, pace__asset_chart_js_size;

#endif
