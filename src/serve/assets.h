/* assets.h - files that the build puts into the program (tools/embed): the page's own, and Chart.js as Debian has it. */
#ifndef SERVE_ASSETS_H
#define SERVE_ASSETS_H

#include <stddef.h>

extern const unsigned char pace__asset_page_html[], pace__asset_page_css[], pace__asset_page_js[],
    pace__asset_chart_js[];
extern const size_t pace__asset_page_html_size, pace__asset_page_css_size, pace__asset_page_js_size,
    pace__asset_chart_js_size;

#endif
