/* Makes many calls of a few shapes, so that contests between MPI and the library begin, end and are obeyed, on a
 * communicator of all ranks and on parts of it, whose ranks are in contests of their own at once. Values are integers,
 * whose sums are exact, and other ones in each call. Floats of three ranks and more are in no contest. Sums of small
 * integers that overflow have equal bits in all calls: MPI's may saturate. */
#include "check.h"

enum { CALLS = 110, LARGEST = 1 << 19 };
static int sent[LARGEST], got[LARGEST];
static float from[1024], sums[1024];
enum { SMALL = 67 };

/* Adds up bytes of all ranks, as signed and as unsigned numbers. */
static void small_sums(int turn) {
    static signed char first[SMALL];
    static unsigned char first_unsigned[SMALL];
    signed char in[SMALL], out[SMALL];
    unsigned char in_unsigned[SMALL], out_unsigned[SMALL];
    memset(in, 100, sizeof in);
    memset(in_unsigned, 200, sizeof in_unsigned);
    MPI_Allreduce(in, out, SMALL, MPI_SIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(in_unsigned, out_unsigned, SMALL, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
    if (turn == 0) {
        memcpy(first, out, sizeof out);
        memcpy(first_unsigned, out_unsigned, sizeof out_unsigned);
    }
    if (memcmp(first, out, sizeof out) || memcmp(first_unsigned, out_unsigned, sizeof out_unsigned))
        fail("sum %d of bytes begins with %d and %d, the first one with %d and %d", turn, out[0], out_unsigned[0],
             first[0], first_unsigned[0]);
}

static void calls_of(MPI_Comm comm, int count, int turn) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    now("call %d of %d elements", turn, count);
    for (int i = 0; i < count; i++) sent[i] = 3 * rank + turn + i % 7;
    MPI_Allreduce(sent, got, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        if (got[i] != 3 * size * (size - 1) / 2 + size * (turn + i % 7))
            fail("Allreduce %d of %d: element %d is %d", turn, count, i, got[i]);
    int root = turn % size;
    if (rank == root) memcpy(got, sent, sizeof(int) * (size_t)count);
    MPI_Bcast(got, count, MPI_INT, root, comm);
    for (int i = 0; i < count; i++)
        if (got[i] != 3 * root + turn + i % 7) fail("Bcast %d of %d: element %d is %d", turn, count, i, got[i]);
}

int main(int argc, char **argv) {
    at_most(seconds_of(argc, argv, 100));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half);
    for (int turn = 0; turn < CALLS; turn++) {
        calls_of(MPI_COMM_WORLD, 4096, turn);
        calls_of(half, 1024, turn);
        if (turn % 2 == 0) calls_of(MPI_COMM_WORLD, 8, turn);
        small_sums(turn);
        for (int i = 0; i < 1024; i++) from[i] = 1.0f / (float)(world_rank + i + 1);
        MPI_Allreduce(from, sums, 1024, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        static float first[1024];
        if (turn == 0) memcpy(first, sums, sizeof sums);
        if (memcmp(first, sums, sizeof sums)) fail("call %d has other bits than the first", turn);
    }
    for (int turn = 0; turn < 75; turn++) calls_of(MPI_COMM_WORLD, LARGEST, turn);
    MPI_Comm_free(&half);
    if (world_rank == 0) printf("OK: contests\n");
    MPI_Finalize();
    return 0;
}
