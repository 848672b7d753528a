#include "data/text/tokens_internal.h"

#include "base/json.h"

#include <assert.h>
#include <stdlib.h>
#include <utf8proc.h>

#define ENTITY_NAME_MAX 8
#define APOSTROPHE      0x2019
#define FINAL_SIGMA     0x3c2
#define SIGMA           0x3c3
#define REPLACEMENT     0xfffd

typedef struct entity {
    char name[ENTITY_NAME_MAX + 1];
    uint16_t character;
} entity;

/* By name, in the order of strcmp. */
static const entity entities[] = {
    {"AElig", 0xc6},    {"Aacute", 0xc1},  {"Acirc", 0xc2},   {"Agrave", 0xc0},   {"Aring", 0xc5},
    {"Atilde", 0xc3},   {"Auml", 0xc4},    {"Ccedil", 0xc7},  {"Dagger", 0x2021}, {"ETH", 0xd0},
    {"Eacute", 0xc9},   {"Ecirc", 0xca},   {"Egrave", 0xc8},  {"Euml", 0xcb},     {"Iacute", 0xcd},
    {"Icirc", 0xce},    {"Igrave", 0xcc},  {"Iuml", 0xcf},    {"Ntilde", 0xd1},   {"OElig", 0x152},
    {"Oacute", 0xd3},   {"Ocirc", 0xd4},   {"Ograve", 0xd2},  {"Oslash", 0xd8},   {"Otilde", 0xd5},
    {"Ouml", 0xd6},     {"Prime", 0x2033}, {"Scaron", 0x160}, {"THORN", 0xde},    {"Uacute", 0xda},
    {"Ucirc", 0xdb},    {"Ugrave", 0xd9},  {"Uuml", 0xdc},    {"Yacute", 0xdd},   {"Yuml", 0x178},
    {"aacute", 0xe1},   {"acirc", 0xe2},   {"acute", 0xb4},   {"aelig", 0xe6},    {"agrave", 0xe0},
    {"amp", '&'},       {"apos", '\''},    {"aring", 0xe5},   {"atilde", 0xe3},   {"auml", 0xe4},
    {"bdquo", 0x201e},  {"brvbar", 0xa6},  {"bull", 0x2022},  {"ccedil", 0xe7},   {"cedil", 0xb8},
    {"cent", 0xa2},     {"circ", 0x2c6},   {"copy", 0xa9},    {"curren", 0xa4},   {"dagger", 0x2020},
    {"deg", 0xb0},      {"divide", 0xf7},  {"eacute", 0xe9},  {"ecirc", 0xea},    {"egrave", 0xe8},
    {"emsp", 0x2003},   {"ensp", 0x2002},  {"eth", 0xf0},     {"euml", 0xeb},     {"euro", 0x20ac},
    {"frac12", 0xbd},   {"frac14", 0xbc},  {"frac34", 0xbe},  {"gt", '>'},        {"hearts", 0x2665},
    {"hellip", 0x2026}, {"iacute", 0xed},  {"icirc", 0xee},   {"iexcl", 0xa1},    {"igrave", 0xec},
    {"iquest", 0xbf},   {"iuml", 0xef},    {"laquo", 0xab},   {"ldquo", 0x201c},  {"lsaquo", 0x2039},
    {"lsquo", 0x2018},  {"lt", '<'},       {"macr", 0xaf},    {"mdash", 0x2014},  {"micro", 0xb5},
    {"middot", 0xb7},   {"nbsp", 0xa0},    {"ndash", 0x2013}, {"not", 0xac},      {"ntilde", 0xf1},
    {"oacute", 0xf3},   {"ocirc", 0xf4},   {"oelig", 0x153},  {"ograve", 0xf2},   {"ordf", 0xaa},
    {"ordm", 0xba},     {"oslash", 0xf8},  {"otilde", 0xf5},  {"ouml", 0xf6},     {"para", 0xb6},
    {"permil", 0x2030}, {"plusmn", 0xb1},  {"pound", 0xa3},   {"prime", 0x2032},  {"quot", '"'},
    {"raquo", 0xbb},    {"rdquo", 0x201d}, {"reg", 0xae},     {"rsaquo", 0x203a}, {"rsquo", 0x2019},
    {"sbquo", 0x201a},  {"scaron", 0x161}, {"sect", 0xa7},    {"shy", 0xad},      {"sup1", 0xb9},
    {"sup2", 0xb2},     {"sup3", 0xb3},    {"szlig", 0xdf},   {"thinsp", 0x2009}, {"thorn", 0xfe},
    {"tilde", 0x2dc},   {"times", 0xd7},   {"trade", 0x2122}, {"uacute", 0xfa},   {"ucirc", 0xfb},
    {"ugrave", 0xf9},   {"uml", 0xa8},     {"uuml", 0xfc},    {"yacute", 0xfd},   {"yen", 0xa5},
    {"yuml", 0xff},     {"zwj", 0x200d},   {"zwnj", 0x200c},
};

/* Characters 128 to 159 of Windows-1252; 0 where it has none. */
static const uint16_t windows_1252[32] = {0x20ac, 0,      0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
                                          0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0,      0x17d,  0,
                                          0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                          0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0,      0x17e,  0x178};

unsigned pace__utf8_encode(uint32_t character, char *utf8)
{
    unsigned size;
    uint32_t bytes = pace__utf8_bytes(character, &size);

    memcpy(utf8, &bytes, sizeof bytes);
    return size;
}

static bool is_letter(char byte)
{
    return (unsigned)((byte | 0x20) - 'a') < 26;
}

static bool is_digit(char byte)
{
    return (unsigned)(byte - '0') < 10;
}

/* Of categories with words, only these have members with a lower case. */
static uint32_t lower_case(uint32_t character, int category)
{
    if (category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT ||
        category == UTF8PROC_CATEGORY_NL)
        return (uint32_t)utf8proc_tolower((utf8proc_int32_t)character);
    return character == FINAL_SIGMA ? SIGMA : character;
}

static pace__character make_character(uint32_t code)
{
    int category = utf8proc_get_property((utf8proc_int32_t)code)->category;
    uint32_t kind = PACE__SEPARATOR;

    if (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME)
        kind = PACE__MARK;
    else if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO)
        kind = PACE__WORD;
    else if (code == APOSTROPHE || code == '\'')
        kind = PACE__APOSTROPHE;
    return kind << PACE__KIND_SHIFT | lower_case(code, category);
}

/* The bytes of the tag at text[0] == '<'; 0 if it is none. */
static size_t tag_bytes(const char *text, size_t size)
{
    size_t limit = size < PACE__TAG_BYTES_MAX ? size : PACE__TAG_BYTES_MAX;
    size_t name = limit > 1 && text[1] == '/' ? 2 : 1;

    if (limit <= name || !(is_letter(text[name]) || (name == 1 && text[1] == '!')))
        return 0;
    for (size_t at = name + 1; at < limit && text[at] != '<'; at++) {
        if (text[at] == '>')
            return at + 1;
    }
    return 0;
}

static int compare_name(const void *name, const void *other)
{
    return strcmp(name, ((const entity *)other)->name);
}

/* Behind the '&'. Returns the bytes up to and with the ';', or 0. */
static size_t named_entity(const char *text, size_t size, uint32_t *code)
{
    char name[ENTITY_NAME_MAX + 1] = {0};
    size_t length = 0;

    while (length < size && length < ENTITY_NAME_MAX && (is_letter(text[length]) || is_digit(text[length]))) {
        name[length] = text[length];
        length++;
    }
    if (length == size || text[length] != ';')
        return 0;
    const entity *found =
        bsearch(name, entities, sizeof entities / sizeof *entities, sizeof *entities, compare_name);

    if (!found)
        return 0;
    *code = found->character;
    return length + 1;
}

static uint32_t numbered_character(uint32_t number)
{
    if (number >= 128 && number < 160 && windows_1252[number - 128])
        return windows_1252[number - 128];
    return number > 0x10ffff || (number >= 0xd800 && number < 0xe000) ? REPLACEMENT : number;
}

/* Behind the "&#". */
static size_t numeric_entity(const char *text, size_t size, uint32_t *code)
{
    bool hexadecimal = size > 0 && (text[0] | 0x20) == 'x';
    uint32_t number = 0, base = hexadecimal ? 16 : 10;
    size_t first = hexadecimal, at = first;

    for (; at < size && at < first + 7; at++) {
        bool letter = hexadecimal && (unsigned)((text[at] | 0x20) - 'a') < 6;

        if (!letter && !is_digit(text[at]))
            break;
        number = number * base + (uint32_t)(letter ? (text[at] | 0x20) - 'a' + 10 : text[at] - '0');
    }
    if (at == first || at == size || text[at] != ';')
        return 0;
    *code = numbered_character(number);
    return at + 1;
}

/* The entity at text[0] == '&'; *code is left alone if it is none. Returns its bytes, 0 if it is none. */
static size_t entity_bytes(const char *text, size_t size, uint32_t *code)
{
    bool numeric = size > 1 && text[1] == '#';
    size_t start = numeric ? 2 : 1;
    size_t bytes = numeric ? numeric_entity(text + start, size - start, code)
                           : named_entity(text + start, size - start, code);

    return bytes > 0 ? start + bytes : 0;
}

/* The character of the UTF-8 sequence of `length` bytes. */
static uint32_t decode(const char *text, unsigned length)
{
    uint32_t code = (unsigned char)text[0] & (0x7fu >> length);

    for (unsigned i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

pace__character pace__text_special(const char *text, size_t size, size_t *bytes)
{
    uint32_t code = ' ';

    if (text[0] == '<') {
        *bytes = tag_bytes(text, size);
    } else if (text[0] == '&') {
        *bytes = entity_bytes(text, size, &code);
    } else {
        unsigned length = pace__utf8_length(text, size);

        *bytes = length;
        if (length > 0)
            code = decode(text, length);
    }
    /* What is none of these is a byte that separates. */
    *bytes += *bytes == 0;
    return make_character(code);
}

/* What becomes of letters and digits; 0 for all other bytes. */
static const char ascii_words[256] = {
    ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4', ['5'] = '5', ['6'] = '6', ['7'] = '7',
    ['8'] = '8', ['9'] = '9', ['A'] = 'a', ['a'] = 'a', ['B'] = 'b', ['b'] = 'b', ['C'] = 'c', ['c'] = 'c',
    ['D'] = 'd', ['d'] = 'd', ['E'] = 'e', ['e'] = 'e', ['F'] = 'f', ['f'] = 'f', ['G'] = 'g', ['g'] = 'g',
    ['H'] = 'h', ['h'] = 'h', ['I'] = 'i', ['i'] = 'i', ['J'] = 'j', ['j'] = 'j', ['K'] = 'k', ['k'] = 'k',
    ['L'] = 'l', ['l'] = 'l', ['M'] = 'm', ['m'] = 'm', ['N'] = 'n', ['n'] = 'n', ['O'] = 'o', ['o'] = 'o',
    ['P'] = 'p', ['p'] = 'p', ['Q'] = 'q', ['q'] = 'q', ['R'] = 'r', ['r'] = 'r', ['S'] = 's', ['s'] = 's',
    ['T'] = 't', ['t'] = 't', ['U'] = 'u', ['u'] = 'u', ['V'] = 'v', ['v'] = 'v', ['W'] = 'w', ['w'] = 'w',
    ['X'] = 'x', ['x'] = 'x', ['Y'] = 'y', ['y'] = 'y', ['Z'] = 'z', ['z'] = 'z',
};

/* The word that is being read: text[begin .. end), and maybe an apostrophe behind it. */
typedef struct open_word {
    size_t begin, end;
    bool apostrophe;
} open_word;

static inline void append(pace__tokens *tokens, open_word *word, const char *bytes, size_t size)
{
    if (word->apostrophe)
        tokens->text[word->end++] = '\'';
    word->apostrophe = false;
    memcpy(tokens->text + word->end, bytes, size);
    word->end += size;
}

/* Ends the word, if there is one. */
static void finish(pace__tokens *tokens, open_word *word)
{
    size_t size = word->end - word->begin;

    if (size > PACE__TOKEN_BYTES_MAX) {
        tokens->dropped++;
    } else if (size > 0) {
        const char *text = tokens->text + word->begin;

        tokens->hash[tokens->count] = pace__token_hash(text, size);
        tokens->first[tokens->count] = pace__token_word(text, size);
        tokens->second[tokens->count] = pace__token_second(text, size);
        tokens->span[tokens->count++] = (pace__token_span){(uint32_t)word->begin, (uint32_t)word->end};
    }
    *word = (open_word){word->end, word->end, false};
}

/* Anything but an ASCII letter or digit. Returns the bytes that it takes. */
static size_t add_character(pace__tokens *tokens, open_word *word, const char *text, size_t size)
{
    uint32_t kind = text[0] == '\'' ? PACE__APOSTROPHE : PACE__SEPARATOR;
    bool open = word->end > word->begin && !word->apostrophe;
    pace__character character = 0;
    size_t bytes = 1;
    char utf8[4];

    if (pace__is_special(text[0])) {
        character = pace__text_special(text, size, &bytes);
        kind = pace__kind_of(character);
    }
    if (kind == PACE__WORD || (kind == PACE__MARK && open))
        append(tokens, word, utf8, pace__utf8_encode(pace__code_of(character), utf8));
    else if (kind == PACE__APOSTROPHE && open)
        word->apostrophe = true;
    else
        finish(tokens, word);
    return bytes;
}

static void tokenise(pace__tokens *tokens, const char *text, size_t size)
{
    open_word word = {0, 0, false};

    tokens->count = tokens->dropped = 0;
    for (size_t at = 0; at < size;) {
        char letter = ascii_words[(unsigned char)text[at]];

        if (letter) {
            append(tokens, &word, &letter, 1);
            at++;
        } else {
            at += add_character(tokens, &word, text + at, size - at);
        }
    }
    finish(tokens, &word);
}

pace_status pace__tokenise(pace__tokens *tokens, const char *text, size_t size, const pace_log *log)
{
    pace_status status = pace__tokens_reserve(tokens, size, log);

    if (status)
        return status;
    pace__tokens_of(pace_kernels_in_use())->tokenise(tokens, text, size);
    return PACE_OK;
}

pace_status pace__tokens_reserve(pace__tokens *tokens, size_t size, const pace_log *log)
{
    assert(size <= PACE__TEXT_BYTES_MAX);
    if (size <= tokens->text_bytes_max && tokens->text)
        return PACE_OK;
    size_t room = size > 2 * tokens->text_bytes_max ? size : 2 * tokens->text_bytes_max;

    room = room < PACE__TEXT_BYTES_MAX ? room : PACE__TEXT_BYTES_MAX;
    size_t bytes = pace__tokens_text_bytes(room);
    /* Words have a byte between them; vectors of 64 bytes are stored whole. */
    size_t count = bytes / 2 + 1 + 8;

    pace__tokens_release(tokens);
    tokens->text = malloc(bytes + 2 * 64);
    tokens->span = malloc(count * sizeof *tokens->span);
    tokens->hash = malloc(count * sizeof *tokens->hash);
    tokens->first = malloc(count * sizeof *tokens->first);
    tokens->second = malloc(count * sizeof *tokens->second);
    if (!tokens->text || !tokens->span || !tokens->hash || !tokens->first || !tokens->second) {
        pace__tokens_release(tokens);
        return pace_fail(log, PACE_FAILED, "out of memory for the words of a text of %zu bytes", size);
    }
    tokens->text_bytes_max = room;
    return PACE_OK;
}

void pace__tokens_release(pace__tokens *tokens)
{
    free(tokens->text);
    free(tokens->span);
    free(tokens->hash);
    free(tokens->first);
    free(tokens->second);
    *tokens = (pace__tokens){0};
}

static size_t find_invalid(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        unsigned length = pace__utf8_length(text + at, size - at);

        if (length == 0)
            break;
        at += length;
    }
    return at;
}

const pace__tokens_kernels pace__tokens_plain = {.tokenise = tokenise, .find_invalid = find_invalid};

size_t pace__utf8_find_invalid(const char *text, size_t size)
{
    return pace__tokens_of(pace_kernels_in_use())->find_invalid(text, size);
}
