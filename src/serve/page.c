/*
 * The page: one answer with all that it needs, so that nothing else has to be asked for. Style and scripts stand in it as
 * they are, and the policy names their sums: a browser runs these, and nothing that came from elsewhere.
 */
#include "base/base64.h"
#include "files/sha256.h"
#include "serve/assets.h"
#include "serve/texts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define SUM_TEXT 64 /* 'sha256-...' */

/* 64 hexadecimal digits as 44 of base 64. */
static void to_base64(const char *hex, char text[PACE__BASE64_TEXT(32)])
{
    unsigned char bytes[32];

    for (int i = 0; i < 32; i++) {
        unsigned byte;

        sscanf(hex + 2 * i, "%2x", &byte);
        bytes[i] = (unsigned char)byte;
    }
    pace__base64(bytes, sizeof bytes, text);
}

static bool sum_of(const unsigned char *bytes, size_t size, char text[SUM_TEXT])
{
    char hex[PACE__SHA256_HEX], base64[PACE__BASE64_TEXT(32)];
    pace__sha256 *sha = pace__sha256_create();

    if (!sha)
        return false;
    pace__sha256_update(sha, bytes, size);
    pace__sha256_finish(sha, hex);
    to_base64(hex, base64);
    snprintf(text, SUM_TEXT, "'sha256-%s'", base64);
    return true;
}

bool pace__served_page_make(pace__served_text *text, char policy[PACE__POLICY_TEXT])
{
    char css[SUM_TEXT], chart[SUM_TEXT], own[SUM_TEXT];

    if (!sum_of(pace__asset_page_css, pace__asset_page_css_size, css) ||
        !sum_of(pace__asset_chart_js, pace__asset_chart_js_size, chart) ||
        !sum_of(pace__asset_page_js, pace__asset_page_js_size, own))
        return false;
    int length =
        snprintf(policy, PACE__POLICY_TEXT,
                 "default-src 'none'; style-src %s; script-src %s %s; connect-src 'self'; img-src data:; "
                 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                 css, chart, own);

    assert(length > 0 && length < PACE__POLICY_TEXT);
    pace__served_add(text, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                           "<title>paceline</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>");
    pace__served_add_bytes(text, pace__asset_page_css, pace__asset_page_css_size);
    pace__served_add(text, "</style>\n</head>\n<body>\n");
    pace__served_add_bytes(text, pace__asset_page_html, pace__asset_page_html_size);
    pace__served_add(text, "<script>");
    pace__served_add_bytes(text, pace__asset_chart_js, pace__asset_chart_js_size);
    pace__served_add(text, "</script>\n<script>");
    pace__served_add_bytes(text, pace__asset_page_js, pace__asset_page_js_size);
    pace__served_add(text, "</script>\n</body>\n</html>\n");
    return !text->failed;
}
