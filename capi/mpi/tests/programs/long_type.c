/* Sends one value of a type that is longer than an `int` counts, with a gap between its parts: all bytes arrive, and the gap is as
 * it was. */
#include "check.h"

enum { GAP = 16 };

int main(int argc, char **argv) {
    at_most(seconds_of(argc, argv, 900));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    size_t half = (size_t)1 << 30, rest = half + 8, bytes = half + GAP + rest;
    unsigned char *data = malloc(bytes);
    if (!data) fail("no memory");
    memset(data, world_rank == 0 ? 7 : 1, bytes);
    memset(data + half, 3, GAP);
    MPI_Datatype parts[2], both;
    int ones[2] = {1, 1};
    MPI_Aint places[2] = {0, (MPI_Aint)(half + GAP)};
    MPI_Type_contiguous((int)half, MPI_CHAR, &parts[0]);
    MPI_Type_contiguous((int)rest, MPI_CHAR, &parts[1]);
    MPI_Type_create_struct(2, ones, places, parts, &both);
    MPI_Type_commit(&both);
    now("a broadcast of %zu bytes", bytes);
    if (MPI_Bcast(data, 1, both, 0, MPI_COMM_WORLD)) fail("the broadcast is refused");
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (i >= half && i < half + GAP ? 3 : 7)) fail("byte %zu is %d", i, data[i]);
    free(data);
    if (world_rank == 0) printf("OK: a long type\n");
    MPI_Finalize();
    return 0;
}
