#include "report/document.h"

#include "base/base64.h"
#include "files/sha256.h"
#include "report/assets.h"
#include "report/markup.h"

#define HASH_BYTES 32

static pace__asset style_asset(void)
{
    return (pace__asset){pace__asset_report_css, pace__asset_report_css_size};
}

static pace__asset charts_asset(void)
{
    return (pace__asset){pace__asset_chart_js, pace__asset_chart_js_size};
}

/* --- the policy --- */

static unsigned digit_of(char hex)
{
    return (unsigned)(hex <= '9' ? hex - '0' : hex - 'a' + 10);
}

/* 'sha256-...' of an asset, as the policy names it. */
static pace_status put_hash(FILE *out, const pace__asset *from, const pace_log *log)
{
    char hex[PACE__SHA256_HEX];
    unsigned char hash[HASH_BYTES];
    char text[PACE__BASE64_TEXT(HASH_BYTES)];
    pace__sha256 *sha = pace__sha256_create();

    if (!sha)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace__sha256_update(sha, from->bytes, from->size);
    pace__sha256_finish(sha, hex);
    for (size_t i = 0; i < HASH_BYTES; i++)
        hash[i] = (unsigned char)(digit_of(hex[2 * i]) << 4 | digit_of(hex[2 * i + 1]));
    pace__base64(hash, HASH_BYTES, text);
    fprintf(out, " 'sha256-%s'", text);
    return PACE_OK;
}

/* --- the document --- */

static void put_asset(FILE *out, const char *element, const pace__asset *from)
{
    fprintf(out, "<%s>", element);
    fwrite(from->bytes, 1, from->size, out);
    fprintf(out, "</%s>\n", element);
}

pace_status pace__document_begin(FILE *out, const char *title, const pace__asset *script, const pace_log *log)
{
    pace__asset style = style_asset(), charts = charts_asset();

    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
          "form-action 'none'; img-src data:; script-src",
          out);
    pace_status status = put_hash(out, &charts, log);

    if (!status)
        status = put_hash(out, script, log);
    fputs("; style-src", out);
    if (!status)
        status = put_hash(out, &style, log);
    fputs("\">\n<link rel=\"icon\" href=\"data:,\">\n<title>", out);
    pace__text(out, title);
    fputs(" - paceline</title>\n", out);
    put_asset(out, "style", &style);
    fputs("</head>\n<body>\n", out);
    return status;
}

void pace__document_end(FILE *out, const pace__asset *script)
{
    pace__asset charts = charts_asset();

    put_asset(out, "script", &charts);
    put_asset(out, "script", script);
    fputs("</body>\n</html>\n", out);
}
