/*
 * The fast tokenisers against the plain one: the same words and hashes on any bytes. Words are not empty, not
 * too long, and each one, as a text, is the only word of it. And all find the same byte that is no UTF-8.
 * The first byte of an input is what stands behind the text, the rest is the text.
 */
#include "data/text/tokens_internal.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "wrong: %s\n", what);
        abort();
    }
}

static void check_same(const pace__tokens *plain, const pace__tokens *fast)
{
    check(plain->count == fast->count && plain->dropped == fast->dropped, "number of words");
    for (size_t i = 0; i < plain->count; i++) {
        uint32_t size = pace__token_size(plain, i);

        check(size > 0 && size <= PACE__TOKEN_BYTES_MAX, "size of a word");
        check(size == pace__token_size(fast, i) &&
                  memcmp(plain->text + plain->span[i].begin, fast->text + fast->span[i].begin, size) == 0,
              "a word");
        check(plain->hash[i] == fast->hash[i], "a hash");
    }
}

static void check_alone(const pace__tokens *tokens)
{
    pace__tokens alone = {0};

    for (size_t i = 0; i < tokens->count; i++) {
        char text[PACE__TOKEN_BYTES_MAX + PACE__TEXT_PADDING] = {0};
        uint32_t size = pace__token_size(tokens, i);

        memcpy(text, tokens->text + tokens->span[i].begin, size);
        check(pace__tokenise(&alone, text, size, NULL) == PACE_OK, "a word alone");
        check(alone.count == 1 && alone.hash[0] == tokens->hash[i] && pace__token_size(&alone, 0) == size &&
                  memcmp(alone.text + alone.span[0].begin, text, size) == 0,
              "a word alone");
    }
    pace__tokens_release(&alone);
}

/* In memory of just its size: this one may not overrun. */
static void check_utf8(const uint8_t *data, size_t size)
{
    char *exact = malloc(size > 0 ? size : 1);

    check(exact != NULL, "out of memory");
    memcpy(exact, data, size);
    size_t plain = pace__tokens_plain.find_invalid(exact, size);

    check(plain <= size, "the first invalid byte");
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++)
        check(!pace_kernels_run(set) || pace__tokens_of(set)->find_invalid(exact, size) == plain,
              "the first invalid byte");
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pace__tokens plain = {0}, fast = {0};

    if (size == 0)
        return 0;
    size--;
    check_utf8(data + 1, size);
    char *text = malloc(size + PACE__TEXT_PADDING);

    check(text != NULL, "out of memory");
    memcpy(text, data + 1, size);
    memset(text + size, data[0], PACE__TEXT_PADDING);
    check(pace__tokens_reserve(&plain, size, NULL) == PACE_OK, "room");
    check(pace__tokens_reserve(&fast, size, NULL) == PACE_OK, "room");
    pace__tokens_plain.tokenise(&plain, text, size);
    for (int set = PACE_KERNELS_PLAIN + 1; set < PACE__KERNELS_END; set++) {
        if (!pace_kernels_run(set))
            continue;
        pace__tokens_of(set)->tokenise(&fast, text, size);
        check_same(&plain, &fast);
    }
    check_alone(&plain);
    free(text);
    pace__tokens_release(&plain);
    pace__tokens_release(&fast);
    return 0;
}
