/* Two ranks, of which one does not make its third call before it is ended. */
#include "check.h"

int main(int argc, char **argv) {
    at_most(seconds_of(argc, argv, 60));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    static int data[1000];
    MPI_Allreduce(MPI_IN_PLACE, data, 1000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(data, 500, MPI_INT, 0, MPI_COMM_WORLD);
    if (world_rank == 1) pause();
    MPI_Allreduce(MPI_IN_PLACE, data, 10, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
