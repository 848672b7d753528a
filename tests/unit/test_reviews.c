/* Records of every format: what is read, what is wrong with bad ones, and that chunks do not matter. */
#include "data/text/reviews.h"
#include "files/crc32c.h"
#include "threads/thread.h"

#include <isa-l/igzip_lib.h>
#include <paceline/prep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support.h"

#define SHOWN_MAX 4096

typedef struct job {
    pace__review_options options;
    pace__review_files files;
    pace__input *input;
    pace__bad_rows bad;
    char shown[SHOWN_MAX]; /* "RATING:TEXT|" of each record; for one thread */
    atomic_uint_fast64_t records, sum;
} job;

/* The same for any order of records, but for no other records. */
static uint64_t sum_of(uint64_t offset, double rating, uint32_t crc)
{
    uint64_t bits;

    memcpy(&bits, &rating, sizeof bits);
    return pace__mix64(pace__mix64(bits) ^ offset << 20 ^ crc);
}

static void show(job *self, const pace__review *review)
{
    size_t used = strlen(self->shown);
    int size = review->size > 200 ? 200 : (int)review->size;

    if (isnan(review->rating))
        snprintf(self->shown + used, SHOWN_MAX - used, "-:%.*s|", size, review->text);
    else
        snprintf(self->shown + used, SHOWN_MAX - used, "%g:%.*s|", review->rating, size, review->text);
}

/* For sanitizers: bytes that may be read. */
static void touch(const char *bytes, size_t size)
{
    volatile char last = bytes[size - 1];

    (void)last;
}

static pace_status read_chunk(job *self, pace__review_reader *reader, const pace__chunk *chunk, bool alone)
{
    pace__review review;
    bool found;

    for (size_t at = 0, before = 0;; before = at) {
        pace_status status = pace__review_next(reader, chunk, &at, &found, &review);

        if (status || !found)
            return status;
        require(at > before && at <= chunk->size);
        require(review.offset >= chunk->offset && review.offset < chunk->offset + at);
        touch(review.text, review.size + PACE__TEXT_PADDING);
        require(pace__utf8_find_invalid(review.text, review.size) == review.size);
        if (alone)
            show(self, &review);
        atomic_fetch_add(&self->records, 1);
        atomic_fetch_add(&self->sum,
                         sum_of(review.offset, review.rating, pace__masked_crc32c(review.text, review.size)));
    }
}

static pace_status read_chunks(job *self, bool alone)
{
    pace__chunk chunk = {0};
    pace__review_reader *reader;
    pace_status status =
        pace__review_reader_create(&self->options, &self->files, &self->bad, &said_log, &reader);

    if (status)
        return status;
    while (!(status = pace__input_next(self->input, &chunk)) && chunk.size > 0) {
        status = read_chunk(self, reader, &chunk, alone);
        if (status)
            break;
    }
    pace__chunk_release(&chunk);
    pace__review_reader_free(reader);
    return status;
}

static pace_status read_as_member(void *arg, int thread)
{
    (void)thread;
    return read_chunks(arg, false);
}

static pace_status read_file(job *self, const char *word, uint64_t bad_max, int threads)
{
    pace_texts words = {&word, 1};
    pace_status status = pace__review_files_find(&words, &self->options, &said_log, &self->files);

    if (status)
        return status;
    assert_ok(pace__input_open((const char *const *)self->files.paths, self->files.count,
                               pace__review_boundary(self->options.format), &said_log, &self->input));
    self->bad = (pace__bad_rows){.max = bad_max, .input = self->input, .log = &said_log};
    status = threads == 1 ? read_chunks(self, true) : pace__team(threads, read_as_member, self, NULL);
    pace__input_close(self->input);
    pace__review_files_release(&self->files);
    return status;
}

static pace__review_options options_of(int format)
{
    return (pace__review_options){.format = format, .text_field = "text", .label_field = "stars"};
}

static const char *word_of(void **state, int format, const char *bytes, size_t size)
{
    static char word[600];
    const char *path = in(state, "file");

    assert_ok(pace__write_file_atomically(path, bytes, size, &said_log));
    snprintf(word, sizeof word, "%s%s", path, format == PACE_REVIEWS_LINES ? "=3" : "");
    return word;
}

static void check_good(void **state, pace__review_options options, const char *text, const char *expected)
{
    job self = {.options = options};
    pace_status status = read_file(&self, word_of(state, options.format, text, strlen(text)), 0, 1);

    if (status || strcmp(self.shown, expected) != 0)
        fail_msg("of format %d:\n%s\ncame %s\nnot %s\nstatus %d, messages:\n%s", options.format, text,
                 self.shown, expected, status, said);
    assert_string_equal(said, "");
}

/* The first record that is bad, and what comes when it may be. */
static void check_bad(void **state, pace__review_options options, const char *text, const char *message,
                      const char *rest)
{
    char part[600];
    const char *word = word_of(state, options.format, text, strlen(text));
    job self = {.options = options}, again = self;

    snprintf(part, sizeof part, "%s:%s (--max-bad-rows N skips such rows)", in(state, "file"), message);
    assert_failed(read_file(&self, word, 0, 1), PACE_BAD_DATA, part);
    assert_ok(read_file(&again, word, 1, 1));
    snprintf(part, sizeof part, "W %s:%s: row skipped\n", in(state, "file"), message);
    assert_string_equal(said, part);
    assert_string_equal(again.shown, rest);
    assert_int_equal(again.bad.count, 1);
    said_clear();
}

static void test_jsonl(void **state)
{
    static const char *const cases[][2] = {
        {"{\"text\": \"good\", \"stars\": 5.0}\n{\"stars\": 1, \"text\": \"so\\\"so\\n\"}\n",
         "5:good|1:so\"so\n|"},
        {"\xef\xbb\xbf{\"text\": \"bom\", \"stars\": 2}", "2:bom|"},
        {"\r\n\n  \n{\"text\": \"crlf\", \"stars\": 2}\r\n\t\r\n{\"text\": \"x\", \"stars\": -1.5e1}\r\n",
         "2:crlf|-15:x|"},
        {"{\"text\": \"a\", \"stars\": true}\n{\"text\": \"b\", \"stars\": false}", "1:a|0:b|"},
        {"{\"text\": \"a\", \"stars\": \"Positive\"}\n{\"text\": \"b\", \"stars\": \" 4.5 \"}\n"
         "{\"text\": \"c\", \"stars\": \"\\u0034\"}",
         "1:a|4.5:b|4:c|"},
        {"  {\"text\":\"last\",\"text\":\"\xc3\xa4\",\"stars\":1e0}", "1:\xc3\xa4|"},
        {"", ""},
        {"\n\n", ""},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        check_good(state, options_of(PACE_REVIEWS_JSONL), cases[i][0], cases[i][1]);
}

#define GOOD_JSON "{\"text\": \"ok\", \"stars\": 1}\r\n"

static void test_bad_jsonl(void **state)
{
    static const char *const cases[][2] = {
        {"{\"text\": \"a\", \"stars\": 1,}", "2: byte 26: a name in quotes is expected"},
        {"{\"text\": \"a\", \"stars\": 1", "2: byte 25: a comma or } is expected"},
        {"{\"text\": \"a\xff\", \"stars\": 1}", "2: byte 12: not UTF-8"},
        {"[1]", "2: byte 1: an object is expected"},
        {"{\"stars\": 1}", "2: the field \"text\" is missing"},
        {"{\"stars\": 1, \"text\": null}", "2: the field \"text\" is no string"},
        {"{\"text\": \"a\"}", "2: the field \"stars\" is missing"},
        {"{\"text\": \"a\", \"stars\": null}", "2: the field \"stars\" is null"},
        {"{\"text\": \"a\", \"stars\": [1]}", "2: the field \"stars\" is no number"},
        {"{\"text\": \"a\", \"stars\": \"five\"}",
         "2: the label \"five\" is no finite number, nor pos, neg, true or false"},
        {"{\"text\": \"a\", \"stars\": \"NaN\"}",
         "2: the label \"NaN\" is no finite number, nor pos, neg, true or false"},
        {"{\"text\": \"a\", \"stars\": 1e999}",
         "2: the label \"1e999\" is no finite number, nor pos, neg, true or false"},
        {"{\"text\": \"\", \"stars\": 1}", "2: empty text"},
        {"{\"text\": \" \\n\\t \", \"stars\": 1}", "2: empty text"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = pace__format("%s%s\r\n%s", GOOD_JSON, cases[i][0], GOOD_JSON);

        check_bad(state, options_of(PACE_REVIEWS_JSONL), text, cases[i][1], "1:ok|1:ok|");
        free(text);
    }
}

static void test_csv(void **state)
{
    static const char *const cases[][2] = {
        {"text,stars\ngood,5\nbad,1\n", "5:good|1:bad|"},
        {"\xef\xbb\xbf\"text\",id,\"stars\"\r\n\"a, b\",7,5.0\r\nc,8,1", "5:a, b|1:c|"},
        {"\r\n\n stars , text \nneg,x\n\n  \r\npos,\"y\"", "0:x|1:y|"},
        {"id,stars,text\n1,2,\"say \"\"hi\"\"\"\n2,3,\"two\n\nlines\r\n\"\n",
         "2:say \"hi\"|3:two\n\nlines\r\n|"},
        {"stars,text\n4,5\" screen\n\"3\",\"\"\"\"\n\"2\",x\"\"y", "4:5\" screen|3:\"|2:x\"\"y|"},
        {"stars,text,stars\n4,a,5\n", "4:a|"},
        {"stars,text\n", ""},
        {"", ""},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        check_good(state, options_of(PACE_REVIEWS_CSV), cases[i][0], cases[i][1]);
}

static void test_bad_csv(void **state)
{
    static const struct {
        const char *text, *message, *rest;
    } cases[] = {
        {"1,\"a\" b\n2,ok\n", "2: text follows a closing quote: quotes within quotes have to be doubled",
         "2:ok|"},
        {"1,\"a\"b\"c,\"\n2\"\n2,ok\n",
         "2: text follows a closing quote: quotes within quotes have to be doubled", "2:ok|"},
        {"1\n2,ok\n", "2: 1 column, but the header has 2", "2:ok|"},
        {"1,a,b\n2,ok", "2: 3 columns, but the header has 2", "2:ok|"},
        {"2,\"o\nk\"\n,a\n", "4: the label \"\" is no finite number, nor pos, neg, true or false", "2:o\nk|"},
        {"2,ok\ninf,\"a\nb\"\n", "3: the label \"inf\" is no finite number, nor pos, neg, true or false",
         "2:ok|"},
        {"2,ok\r\n1,\" \n \"\r\n", "3: empty text", "2:ok|"},
        {"1,\"a\nb\xc3\"\n2,ok\n", "3: byte 2 is no UTF-8", "2:ok|"},
        {"2,ok\n\n1,\"a\n\nb,c\n",
         "4: the quote that is opened here is not closed: all 8 bytes up to the end are in it", "2:ok|"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = pace__format("stars,text\n%s", cases[i].text);

        check_bad(state, options_of(PACE_REVIEWS_CSV), text, cases[i].message, cases[i].rest);
        free(text);
    }
}

static void test_tsv(void **state)
{
    pace__review_options options = options_of(PACE_REVIEWS_TSV);
    static const struct {
        const char *text, *message, *rest;
    } bad[] = {
        {"text\tstars\na\t1\nb\n", "3: 1 column, but the header has 2", "1:a|"},
        {"text\tstars\na\t1\nb\t2\t3\n", "3: 3 columns, but the header has 2", "1:a|"},
        {"text\tstars\r\na\t1\r\nb\txx\r\n",
         "3: the label \"xx\" is no finite number, nor pos, neg, true or false", "1:a|"},
        {"text\tstars\n\t1\na\t1", "2: empty text", "1:a|"},
        {"text\tstars\nab\xe2\x82\t1\na\t1", "2: byte 3 is no UTF-8", "1:a|"},
    };

    check_good(state, options, "text\tstars\n\"a, \"\"b\t4\n", "4:\"a, \"\"b|");
    check_good(state, options, "\xef\xbb\xbfid\tstars\ttext\r\n\r\n7\tTRUE\t\"x\r\n8\t2\ty", "1:\"x|2:y|");
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        check_bad(state, options, bad[i].text, bad[i].message, bad[i].rest);
}

static void test_tab(void **state)
{
    pace__review_options options = options_of(PACE_REVIEWS_TAB);

    check_good(state, options,
               "\xef\xbb\xbf"
               "1\tgood\tvery\r\n\nneg\tbad",
               "1:good\tvery|0:bad|");
    check_bad(state, options, "1\ta\nb\n", "2: there is no tab, which has to follow the label", "1:a|");
    check_bad(state, options, "x\ta\n1\tb\n",
              "1: the label \"x\" is no finite number, nor pos, neg, true or false", "1:b|");
    check_bad(state, options, "\ta\n1\tb\n",
              "1: the label \"\" is no finite number, nor pos, neg, true or false", "1:b|");
    check_bad(state, options, "1\ta\n1\t \n", "2: empty text", "1:a|");
    check_bad(state, options, "1\ta\n1\t\xc0\n", "2: byte 3 is no UTF-8", "1:a|");
}

static void test_lines(void **state)
{
    pace__review_options options = options_of(PACE_REVIEWS_LINES);

    check_good(state, options,
               "\xef\xbb\xbf"
               "a\r\n\r\n \nb, \"c\"\td",
               "3:a|3:b, \"c\"\td|");
    check_bad(state, options, "a\nb\x80", "2: byte 2 is no UTF-8", "3:a|");
}

static void test_records_without_labels(void **state)
{
    static const struct {
        int format;
        const char *text, *expected;
    } cases[] = {
        {PACE_REVIEWS_JSONL,
         "{\"text\": \"a\"}\n{\"text\": \"b\", \"stars\": null}\n{\"text\": \"c\", \"stars\": \"\"}\n"
         "{\"text\": \"d\", \"stars\": 2}",
         "-:a|-:b|-:c|2:d|"},
        {PACE_REVIEWS_CSV, "id,text\n1,a\n", "-:a|"},
        {PACE_REVIEWS_CSV, "text\na\n\"b\"\n", "-:a|-:b|"},
        {PACE_REVIEWS_CSV, "text,stars\na,\nb,1", "-:a|1:b|"},
        {PACE_REVIEWS_TSV, "text\tstars\na\t\nb\t1", "-:a|1:b|"},
        {PACE_REVIEWS_TAB, "a\n1\tb\n\tc", "-:a|1:b|-:c|"},
        /* Ratings that cannot be read are none, and texts may be empty. */
        {PACE_REVIEWS_TAB, "good\tx\n1\tb\n1\t", "-:x|1:b|1:|"},
        {PACE_REVIEWS_CSV, "text,stars\na,many\n,1\n", "-:a|1:|"},
        {PACE_REVIEWS_JSONL,
         "{\"text\": \"a\", \"stars\": \"many\"}\n{\"text\": \"\", \"stars\": [1]}\n\n{\"text\": \" \"}",
         "-:a|-:|-: |"},
    };
    pace__review_options options;

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        options = options_of(cases[i].format);
        options.labels_optional = true;
        check_good(state, options, cases[i].text, cases[i].expected);
    }
    /* Every line is answered. */
    options = options_of(PACE_REVIEWS_LINES);
    options.labels_optional = true;
    check_good(state, options,
               "\xef\xbb\xbf"
               "\na\r\n\r\n \nb",
               "3:|3:a|3:|3: |3:b|");
    check_good(state, options, "a\n\n", "3:a|3:|");
    check_bad(state, options, "\nb\x80", "2: byte 2 is no UTF-8", "3:|");
    options = options_of(PACE_REVIEWS_TAB);
    check_bad(state, options, "good\tx\n1\tb",
              "1: the label \"good\" is no finite number, nor pos, neg, true or false", "1:b|");
}

static void put_in_folder(void **state, const char *name, const char *text)
{
    assert_ok(pace__write_file_atomically(in(state, name), text, strlen(text), &said_log));
}

static void test_folder(void **state)
{
    job self = {.options = options_of(PACE_REVIEWS_FOLDER)}, again = self, third = self;

    assert_ok(pace__make_dirs(in(state, "set/pos"), &said_log));
    assert_ok(pace__make_dirs(in(state, "set/neg"), &said_log));
    put_in_folder(state, "set/pos/2.txt", "\xef\xbb\xbfgood\n\nreally\n");
    put_in_folder(state, "set/pos/1.txt", "fine");
    put_in_folder(state, "set/neg/1.txt", "bad");
    assert_ok(read_file(&self, in(state, "set"), 0, 1));
    assert_string_equal(self.shown, "0:bad|1:fine|1:good\n\nreally\n|");
    /* An empty file is one of blanks. */
    put_in_folder(state, "set/neg/2.txt", "");
    put_in_folder(state, "set/neg/3.txt", "\n \n");
    put_in_folder(state, "set/pos/4.txt", "x\ny\xff");
    assert_ok(read_file(&again, in(state, "set"), 3, 1));
    assert_string_equal(again.shown, "0:bad|1:fine|1:good\n\nreally\n|");
    assert_said("set/neg/2.txt:1: empty text: row skipped");
    assert_said("set/neg/3.txt:1: empty text: row skipped");
    assert_said("set/pos/4.txt:2: byte 2 is no UTF-8: row skipped");
    said_clear();
    assert_failed(read_file(&third, in(state, "set"), 0, 1), PACE_BAD_DATA, "set/neg/2.txt:1: empty text");
}

static void test_missing_columns(void **state)
{
    static const struct {
        int format;
        const char *text, *message;
    } cases[] = {
        {PACE_REVIEWS_CSV, "id,\"body\",stars\n1,a,5\n",
         ": there is no column \"text\", only \"id\", \"body\", \"stars\": name the column of the texts with "
         "--text-field"},
        {PACE_REVIEWS_TSV, "text\trating\na\t5\n",
         ": there is no column \"stars\", only \"text\", \"rating\": name the column of the labels with "
         "--label-field"},
        {PACE_REVIEWS_TSV, "text,stars\na,5\n", ": there is no column \"text\", only \"text,stars\": "},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        job self = {.options = options_of(cases[i].format)};

        assert_failed(
            read_file(&self, word_of(state, cases[i].format, cases[i].text, strlen(cases[i].text)), 0, 1),
            PACE_USAGE, cases[i].message);
    }
    job self = {.options = options_of(PACE_REVIEWS_CSV)};

    assert_failed(read_file(&self, word_of(state, PACE_REVIEWS_CSV, "text,\"stars\na,5\n", 15), 0, 1),
                  PACE_BAD_DATA, "the header, which names the columns, does not end");
}

static void repeat(char *to, const char *piece, size_t size, size_t times)
{
    size_t whole = size * times;

    memcpy(to, piece, size);
    for (size_t done = size; done < whole; done *= 2)
        memcpy(to + done, to, done < whole - done ? done : whole - done);
}

#define PLAIN_TEXT "forty plain letters without any quotes .. "

/* A text of 10 MB in each format, with what has to be decoded in it. */
static void test_long_texts(void **state)
{
    static const struct {
        int format;
        const char *before, *piece, *decoded, *behind;
    } cases[] = {
        {PACE_REVIEWS_JSONL, "{\"text\": \"", PLAIN_TEXT "a\\\"b\\n", PLAIN_TEXT "a\"b\n",
         "\", \"stars\": 2}\n"},
        {PACE_REVIEWS_CSV, "stars,text\n2,\"", PLAIN_TEXT "a\"\"b\n", PLAIN_TEXT "a\"b\n", "\"\n"},
        {PACE_REVIEWS_TSV, "stars\ttext\n2\t", PLAIN_TEXT "a\"b,", PLAIN_TEXT "a\"b,", "\n"},
        {PACE_REVIEWS_TAB, "2\t", PLAIN_TEXT "a\tb,", PLAIN_TEXT "a\tb,", ""},
        {PACE_REVIEWS_LINES, "", PLAIN_TEXT "a\tb,", PLAIN_TEXT "a\tb,", ""},
    };
    enum { DECODED = sizeof PLAIN_TEXT - 1 + 4, PIECES = 10000000 / DECODED };

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        int format = cases[i].format;
        size_t before = strlen(cases[i].before), piece = strlen(cases[i].piece),
               behind = strlen(cases[i].behind), size = before + PIECES * piece + behind;
        char *text = tiny_alloc(size), *decoded = tiny_alloc((size_t)PIECES * DECODED);
        job self = {.options = options_of(format)};
        uint64_t offset = format == PACE_REVIEWS_CSV || format == PACE_REVIEWS_TSV ? 11 : 0;

        memcpy(text, cases[i].before, before);
        repeat(text + before, cases[i].piece, piece, PIECES);
        memcpy(text + size - behind, cases[i].behind, behind);
        repeat(decoded, cases[i].decoded, DECODED, PIECES);
        assert_ok(read_file(&self, word_of(state, format, text, size), 0, 1));
        assert_int_equal(self.records, 1);
        assert_int_equal(self.sum, sum_of(offset, format == PACE_REVIEWS_LINES ? 3 : 2,
                                          pace__masked_crc32c(decoded, (size_t)PIECES * DECODED)));
        free(text);
        free(decoded);
    }
}

/* Beyond the limit nothing is read on: the quote was opened in line 3. */
static void test_quote_without_end(void **state)
{
    static const char first[] = "stars,text\n1,a\n2,\"b\n";
    size_t size = PACE__RECORD_BYTES_MAX + 100;
    char *text = tiny_alloc(size);
    job self = {.options = options_of(PACE_REVIEWS_CSV)}, again = self;

    memset(text, 'x', size);
    memcpy(text, first, sizeof first - 1);
    assert_failed(read_file(&self, word_of(state, PACE_REVIEWS_CSV, text, size), 5, 1), PACE_BAD_DATA,
                  "file: line 3 (byte 17): the quote that is opened there is not closed within the limit of "
                  "16777216 bytes");
    text[17] = ' ';
    assert_failed(read_file(&again, word_of(state, PACE_REVIEWS_CSV, text, size), 5, 1), PACE_BAD_DATA,
                  "file: line 4 (byte 20): no record ends within the limit of 16777216 bytes");
    free(text);
}

static size_t gzip(const char *from, size_t size, char *to, size_t room)
{
    struct isal_zstream stream;

    isal_deflate_stateless_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = (uint8_t *)from;
    stream.avail_in = (uint32_t)size;
    stream.next_out = (uint8_t *)to;
    stream.avail_out = (uint32_t)room;
    assert_int_equal(isal_deflate_stateless(&stream), COMP_OK);
    return stream.total_out;
}

static void test_gzip(void **state)
{
    static const char text[] = "stars,text\n1,a\n2,\"b\nc\"\n";
    char zipped[1000];
    size_t size = gzip(text, sizeof text - 1, zipped, sizeof zipped);
    job self = {.options = options_of(PACE_REVIEWS_AUTO)}, cut = self;

    assert_ok(read_file(&self, word_of(state, PACE_REVIEWS_AUTO, zipped, size), 0, 1));
    assert_int_equal(self.options.format, PACE_REVIEWS_CSV);
    assert_string_equal(self.shown, "1:a|2:b\nc|");
    assert_failed(read_file(&cut, word_of(state, PACE_REVIEWS_AUTO, zipped, size - 9), 0, 1), PACE_BAD_DATA,
                  "/file: gzip data is cut short");
}

/* --- many records --- */

typedef struct made {
    char *text;
    size_t size, records;
    uint64_t sum;
} made;

/* One record, from a text with quotes, commas and newlines; returns its end. */
static char *put_record(char *to, int format, const char *text, unsigned stars)
{
    char quote = format == PACE_REVIEWS_CSV ? '"' : '\0';

    to += sprintf(to, format == PACE_REVIEWS_JSONL ? "{\"stars\": %u, \"text\": \"" : "%u%c", stars,
                  format == PACE_REVIEWS_CSV ? ',' : '\t');
    if (quote)
        *to++ = quote;
    for (; *text; text++) {
        if (*text == quote)
            *to++ = quote;
        if (format == PACE_REVIEWS_JSONL && (*text == '"' || *text == '\n'))
            *to++ = '\\';
        *to++ = format == PACE_REVIEWS_JSONL && *text == '\n' ? 'n' : *text;
    }
    if (quote)
        *to++ = quote;
    return to + sprintf(to, "%s\n", format == PACE_REVIEWS_JSONL ? "\"}" : stars % 2 ? "\r" : "");
}

#define SAMPLE_MAX 20000

/* A record to be used again and again: making each anew would take long. */
typedef struct sample {
    char bytes[SAMPLE_MAX];
    size_t size;
    unsigned stars;
    uint32_t crc;
} sample;

static void make_sample(sample *to, int format, pace__random *random)
{
    static const char *const words[] = {PLAIN_TEXT, "\"",   ",",     "\n",   " ",
                                        "\"\"",     "x,\"", "\",\"", "\n\"", "yz"};
    char text[SAMPLE_MAX / 2] = "-";
    unsigned count = (unsigned)pace__random_below(random, 200);
    size_t used = 1;

    for (unsigned i = 0; i < count; i++) {
        const char *word = words[i % 4 ? 0 : pace__random_below(random, 10)];

        if (format == PACE_REVIEWS_TSV && strchr(word, '\n'))
            continue;
        memcpy(text + used, word, strlen(word) + 1);
        used += strlen(word);
    }
    to->stars = 1 + count % 5;
    to->crc = pace__masked_crc32c(text, used);
    to->size = (size_t)(put_record(to->bytes, format, text, to->stars) - to->bytes);
}

static made make(int format, size_t size)
{
    static sample samples[97];
    made all = {.text = tiny_alloc(size + sizeof samples[0].bytes)};
    pace__random random = pace__random_at(11, (uint64_t)format);

    for (unsigned i = 0; i < 97; i++)
        make_sample(&samples[i], format, &random);
    if (format != PACE_REVIEWS_JSONL)
        all.size = (size_t)sprintf(all.text, format == PACE_REVIEWS_CSV ? "stars,text\n" : "stars\ttext\n");
    for (; all.size < size; all.records++) {
        const sample *next = &samples[pace__random_below(&random, 97)];

        memcpy(all.text + all.size, next->bytes, next->size);
        all.sum += sum_of(all.size, next->stars, next->crc);
        all.size += next->size;
    }
    return all;
}

static void test_chunks_and_threads_do_not_matter(void **state)
{
    static const int formats[] = {PACE_REVIEWS_JSONL, PACE_REVIEWS_CSV, PACE_REVIEWS_TSV};

    for (unsigned i = 0; i < 3; i++) {
        made all = make(formats[i], 2 * PACE__CHUNK_BYTES + 1000000);
        const char *word = word_of(state, formats[i], all.text, all.size);

        for (int threads = 2; threads <= 5; threads += 3) {
            job self = {.options = options_of(PACE_REVIEWS_AUTO)};

            assert_ok(read_file(&self, word, 0, threads));
            assert_int_equal(self.options.format, formats[i]);
            assert_int_equal(self.records, all.records);
            assert_int_equal(self.sum, all.sum);
        }
        free(all.text);
    }
}

typedef struct feed {
    const made *all;
    const char *path;
} feed;

static void *write_pipe(void *arg)
{
    const feed *self = arg;
    int fd = open(self->path, O_WRONLY);

    require(pace__write_all(fd, self->all->text, self->all->size, self->path, NULL) == PACE_OK);
    close(fd);
    return NULL;
}

/* Only one thread sees the header, which cannot be read twice; the others know it nevertheless. */
static void test_tables_from_pipes(void **state)
{
    const char *path = in(state, "pipe");

    assert_int_equal(mkfifo(path, 0600), 0);
    for (int format = PACE_REVIEWS_CSV; format <= PACE_REVIEWS_TSV; format++) {
        made all = make(format, 2 * PACE__CHUNK_BYTES + 1000000);
        job self = {.options = options_of(format)};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, write_pipe, &(feed){&all, path}), 0);
        assert_ok(read_file(&self, path, 0, 3));
        pthread_join(thread, NULL);
        assert_int_equal(self.records, all.records);
        assert_int_equal(self.sum, all.sum);
        free(all.text);
    }
}

/* A part of a table that does not begin with the header. */
static void test_units_of_a_table(void **state)
{
    made all = make(PACE_REVIEWS_TSV, 300000);
    const char *path = word_of(state, PACE_REVIEWS_TSV, all.text, all.size);
    job self = {.options = options_of(PACE_REVIEWS_TSV)};
    pace_texts words = {&path, 1};

    assert_ok(pace__review_files_find(&words, &self.options, &said_log, &self.files));
    for (int rank = 0; rank < 3; rank++) {
        pace__unit *units;
        size_t count;

        assert_ok(pace__units_cut(&path, 1, PACE__LINES, rank, 3, &said_log, &units, &count));
        assert_ok(pace__input_open_units(&path, 1, PACE__LINES, units, count, &said_log, &self.input));
        self.bad = (pace__bad_rows){.input = self.input, .log = &said_log};
        assert_ok(read_chunks(&self, false));
        pace__input_close(self.input);
        free(units);
    }
    assert_int_equal(self.records, all.records);
    assert_int_equal(self.sum, all.sum);
    pace__review_files_release(&self.files);
    free(all.text);
}

static void test_fields_of_readers(void **state)
{
    pace__review_options options = {PACE_REVIEWS_JSONL, "a", "a", false};
    pace__review_reader *reader = NULL;

    (void)state;
    assert_failed(pace__review_reader_create(&options, NULL, NULL, &said_log, &reader), PACE_USAGE,
                  "\"a\" is given twice");
    assert_null(reader);
    pace__review_reader_free(NULL);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_jsonl),
        TEST(test_bad_jsonl),
        TEST(test_csv),
        TEST(test_bad_csv),
        TEST(test_tsv),
        TEST(test_tab),
        TEST(test_lines),
        TEST(test_records_without_labels),
        TEST(test_folder),
        TEST(test_missing_columns),
        TEST(test_long_texts),
        TEST(test_quote_without_end),
        TEST(test_gzip),
        TEST(test_chunks_and_threads_do_not_matter),
        TEST(test_tables_from_pipes),
        TEST(test_units_of_a_table),
        TEST(test_fields_of_readers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
