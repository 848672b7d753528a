/*
 * Any bytes as a request for the live page, and as the value of --dashboard. Lines are method, path, Host, Authorization,
 * token, body and address; one that is missing or empty is a header that was not sent. Whatever is answered was asked for with
 * the token or, on loopback, with its name; and what is an address is the same one again when it is written out.
 */
#include "serve/address.h"
#include "serve/request.h"

#include "fuzzing.h"

#include <stdlib.h>

static const char token[] = "0123456789abcdef0123456789abcdef";

/* The next line, to be freed; NULL: it is empty, or there is none. */
static char *next_line(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size ? memchr(*data, '\n', *size) : NULL;
    size_t length = end ? (size_t)(end - *data) : *size;
    char *line = length ? strndup((const char *)*data, length) : NULL;

    *data += length + (end != NULL);
    *size -= length + (end != NULL);
    return line;
}

static bool holds_token(const char *text)
{
    return text && strstr(text, token) != NULL;
}

static void try_request(const pace__request *request)
{
    pace__judgement guarded = pace__request_judge(request, token), open = pace__request_judge(request, NULL);

    assert(guarded.reason && open.reason);
    assert(guarded.status != 200 || holds_token(request->authorization) || holds_token(request->token));
    assert(open.status != 200 || pace__host_is_loopback(request->host));
    assert((guarded.status != 200 && open.status != 200) || !request->has_body);
}

static void try_address(const char *text)
{
    pace__address address, again;
    char written[PACE__ADDRESS_TEXT], twice[PACE__ADDRESS_TEXT];

    if (!pace__address_parse(text, &address))
        return;
    assert(address.port <= 65535);
    pace__address_text(&address, written);
    assert(pace__address_parse(written, &again));
    pace__address_text(&again, twice);
    assert(strcmp(written, twice) == 0);
    assert(pace__address_is_loopback(&address) == pace__address_is_loopback(&again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *lines[7];

    for (size_t i = 0; i < 7; i++)
        lines[i] = next_line(&data, &size);
    try_request(&(pace__request){.method = lines[0],
                                 .path = lines[1],
                                 .host = lines[2],
                                 .authorization = lines[3],
                                 .token = lines[4],
                                 .has_body = lines[5] != NULL});
    try_address(lines[6] ? lines[6] : "");
    for (size_t i = 0; i < 7; i++)
        free(lines[i]);
    return 0;
}
