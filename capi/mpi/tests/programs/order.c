/* Sums in a promised order: with ROUNDELAY_ORDER=all, a float has the bits of 0 + (1 + (2 + ...)) in a message of any
 * length, at any place, by MPI_Allreduce, MPI_Reduce and MPI_Reduce_scatter_block. */
#include "check.h"

enum { MOST = 1 << 18, LENGTHS = 7 };

static const int lengths[LENGTHS] = {1, 3, 64, 1000, 4096, 70001, MOST};
static float mine[MOST], sums[MOST];

/* The contribution of a rank, whose sums round. */
static float part(int rank) {
    return (float)(rank % 2 ? 1 : -1) * 1e6f / (float)(3 * rank + 1) + 0.1f * (float)rank;
}

static float promised(void) {
    float sum = part(world_size - 1);
    for (int rank = world_size - 2; rank >= 0; rank--) sum = part(rank) + sum;
    return sum;
}

static void same(const float *found, int count, const char *call, int length) {
    float expected = promised();
    for (int i = 0; i < count; i++) {
        if (memcmp(&found[i], &expected, sizeof expected) != 0) {
            fail("%s of %d: element %d is %.9g, not %.9g", call, length, i, (double)found[i], (double)expected);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    at_most(60);
    for (int i = 0; i < MOST; i++) mine[i] = part(world_rank);
    for (int at = 0; at < LENGTHS; at++) {
        int count = lengths[at];
        now("MPI_Allreduce of %d", count);
        MPI_Allreduce(mine, sums, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        same(sums, count, "MPI_Allreduce", count);
        now("MPI_Reduce of %d", count);
        MPI_Reduce(mine, sums, count, MPI_FLOAT, MPI_SUM, 1 % world_size, MPI_COMM_WORLD);
        if (world_rank == 1 % world_size) same(sums, count, "MPI_Reduce", count);
        if (count * world_size > MOST) continue;
        now("MPI_Reduce_scatter_block of %d", count);
        MPI_Reduce_scatter_block(mine, sums, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        same(sums, count, "MPI_Reduce_scatter_block", count);
    }
    if (world_rank == 0) printf("OK: one order\n");
    MPI_Finalize();
    return 0;
}
