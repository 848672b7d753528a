/*
 * Any bytes as the saved model that a prep takes its encoding from (--like): refused with one message of one line,
 * or a data set that can be read, with the model's encoding. The first byte is the sort of rows, the rest the model.
 * The seeds are those of fuzz_saved.
 */
#include "data/store/store.h"
#include "saved/saved.h"

#include "stage.h"

static void check_set(const char *path, const char *like, const pace_log *log)
{
    pace__store store;
    pace__model_file file;
    pace__encoding encoding;

    assert(pace__store_open(path, &store, log) == PACE_OK);
    assert(pace__model_file_open(like, &file, log) == PACE_OK);
    assert(pace__saved_encoding(&file, &encoding, log) == PACE_OK);
    assert(pace__encoding_fits(&encoding, &store.info.encoding, log) == PACE_OK);
    pace__model_file_close(&file);
    pace__store_close(&store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t choice;
    int errors = 0;
    pace_log log = {check_message, &errors};

    if (!*scratch_path) {
        for (int set = 0; set < SETS; set++)
            write_raw(set, 3);
    }
    take(&data, &size, &choice, sizeof choice);
    int set = choice % SETS;
    unnamed like = unnamed_make(data, size);
    pace_status status = prepare(set, set_path(set), like.path, &log);

    assert(status == PACE_OK || status == PACE_BAD_DATA || status == PACE_USAGE);
    assert(errors == (status != PACE_OK));
    if (!status)
        check_set(set_path(set), like.path, &log);
    close(like.fd);
    return 0;
}
