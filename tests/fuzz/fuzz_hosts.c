/*
 * Any bytes as a host file: refused with one message of one line, or hosts on which the ranks of a cluster are
 * placed. Each then is on a host that may take it, and none has more ranks than slots; and if they are not
 * placed, some of the roles have more ranks than the hosts that may take any of them have slots. The first three
 * bytes are the cluster, the rest is the file.
 */
#include "launch/internal.h"

#include "fuzzing.h"

#include <stdbool.h>
#include <stdlib.h>

#define CHIEF  PACE__ROLES /* a role of its own, where some line says so */
#define PLACES (PACE__ROLES + 1)

typedef struct placement {
    pace__cluster cluster;
    const pace__host *hosts;
    size_t count;
    bool chief_named;
} placement;

static int place_of(const placement *self, int rank)
{
    return rank == 0 && self->chief_named ? CHIEF : (int)pace__role_of(&self->cluster, rank);
}

static bool may_take(const pace__host *host, unsigned places)
{
    return host->roles == 0 || (host->roles & places) != 0;
}

static void check_placed(const placement *self, const int *host_of)
{
    int *ranks = calloc(self->count, sizeof *ranks);

    assert(ranks);
    for (int rank = 0; rank < pace__cluster_size(&self->cluster); rank++) {
        assert(host_of[rank] >= 0 && (size_t)host_of[rank] < self->count);
        assert(may_take(&self->hosts[host_of[rank]], 1u << place_of(self, rank)));
        assert(++ranks[host_of[rank]] <= self->hosts[host_of[rank]].slots);
    }
    free(ranks);
}

/* Is there a set of roles without enough slots? There is, if and only if no placement exists. */
static bool is_impossible(const placement *self)
{
    for (unsigned places = 1; places < 1u << PLACES; places++) {
        int64_t slots = 0, wanted = 0;

        for (size_t host = 0; host < self->count; host++)
            slots += may_take(&self->hosts[host], places) ? self->hosts[host].slots : 0;
        for (int rank = 0; rank < pace__cluster_size(&self->cluster); rank++)
            wanted += (places & 1u << place_of(self, rank)) != 0;
        if (wanted > slots)
            return true;
    }
    return false;
}

static void check_words(const placement *self, const int *host_of)
{
    pace__launch_plan plan = {.cluster = self->cluster, .words = (char *[]){"paceline", NULL}};

    for (int engine = PACE__OPEN_MPI; engine <= PACE__MPICH; engine++) {
        char **words = pace__launcher_words((pace__engine)engine, "mpirun", &plan, "/", self->hosts, host_of);

        assert(words && words[0]);
        pace_options_free_words(words);
    }
}

static void place(const placement *self)
{
    int errors = 0, *host_of = calloc((size_t)pace__cluster_size(&self->cluster), sizeof *host_of);
    pace_log log = {check_message, &errors};

    assert(host_of);
    pace_status status = pace__hosts_place(&self->cluster, self->hosts, self->count, host_of, &log);

    assert(status == PACE_OK || status == PACE_USAGE);
    assert(errors == (status != PACE_OK) && is_impossible(self) == (status != PACE_OK));
    if (!status) {
        check_placed(self, host_of);
        check_words(self, host_of);
    }
    free(host_of);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t choice[3];

    take(&data, &size, choice, sizeof choice);
    int errors = 0;
    pace_log log = {check_message, &errors};
    unnamed file = unnamed_make(data, size);
    pace__host *hosts = NULL;
    placement self = {.cluster = {1 + choice[0] % 64, choice[1] % 16, choice[2] & 1}};
    pace_status status = pace__hosts_read(file.path, &log, &hosts, &self.count);

    assert(status == PACE_OK || status == PACE_USAGE);
    assert(errors == (status != PACE_OK));
    if (!status) {
        self.hosts = hosts;
        for (size_t i = 0; i < self.count; i++)
            self.chief_named = self.chief_named || (hosts[i].roles & PACE__HOST_CHIEF) != 0;
        place(&self);
        free(hosts);
    }
    close(file.fd);
    return 0;
}
