/*
 * probe.c - what a host of a lab is like, seen from a program: for test_lab.sh, which compiles it.
 *
 *     mpirun ... probe                   every rank: "rank 1 of 2 on host2"
 *     mpirun ... probe transfer BYTES    rank 0 sends them to rank 1; megabits per second
 *     probe spin SECONDS                 cores that one thread got in that time
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void spin(double duration)
{
    double begin = seconds(CLOCK_MONOTONIC), now = begin, cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);

    while (now < begin + duration)
        now = seconds(CLOCK_MONOTONIC);
    printf("%.3f\n", (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (now - begin));
}

/* Rank 1 answers with one byte, so that the clock stops when all has arrived. The first, empty round connects them. */
static void transfer(int rank, int bytes)
{
    char *buffer = calloc(1, (size_t)bytes);
    double begin = 0;

    if (!buffer)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int round = 0; round < 2; round++) {
        begin = MPI_Wtime();
        if (rank == 0) {
            MPI_Send(buffer, round ? bytes : 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(buffer, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
    if (rank == 0)
        printf("%.2f\n", 8e-6 * bytes / (MPI_Wtime() - begin));
    free(buffer);
}

int main(int argc, char **argv)
{
    int rank, size;
    char host[256] = "";

    if (argc == 3 && strcmp(argv[1], "spin") == 0) {
        spin(atof(argv[2]));
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host - 1);
    if (argc == 3 && strcmp(argv[1], "transfer") == 0)
        transfer(rank, atoi(argv[2]));
    else
        printf("rank %d of %d on %s\n", rank, size, host);
    MPI_Finalize();
    return 0;
}
