/* Exported functions with a count for each block, beside the same calls by MPI itself. `counts.h` has the counts, the
 * number of functions, and a row for each: its name, the collective and the function. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"

static int me, n;

/* Fills both outputs with what no result is. */
static void clear(int *a, int *b, int len) {
    for (int i = 0; i < len; i++) a[i] = b[i] = -7;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int wrong = 0;
    for (int f = 0; f < FUNCTIONS; f++)
        for (int times = 0; times <= 3; times += times ? 2 : 1) {
            /* The counts and places of this rank's blocks, as MPI takes them. */
            int all[RANKS], at[RANKS], sends[RANKS], from[RANKS], receives[RANKS], to[RANKS];
            int total = 0, sent = 0, received = 0;
            for (int r = 0; r < RANKS; r++) {
                all[r] = counts[r] * times;
                at[r] = total;
                total += all[r];
                sends[r] = matrix[me * RANKS + r] * times;
                from[r] = sent;
                sent += sends[r];
                receives[r] = matrix[r * RANKS + me] * times;
                to[r] = received;
                received += receives[r];
            }
            int most = total + sent + received + 1;
            int *in = malloc(most * sizeof(int)), *ours = malloc(most * sizeof(int)), *theirs = malloc(most * sizeof(int));
            for (int i = 0; i < most; i++) in[i] = me * 1000 + i;
            clear(ours, theirs, most);
            const char *what = functions[f].collective;
            MPI_Comm comm = MPI_COMM_WORLD;
            if (!strcmp(what, "AllGather"))
                MPI_Allgatherv(in, all[me], MPI_INT, theirs, all, at, MPI_INT, comm);
            else if (!strcmp(what, "ReduceScatter"))
                MPI_Reduce_scatter(in, theirs, all, MPI_INT, MPI_SUM, comm);
            else if (!strcmp(what, "Gather"))
                MPI_Gatherv(in, all[me], MPI_INT, theirs, all, at, MPI_INT, 0, comm);
            else if (!strcmp(what, "Scatter"))
                MPI_Scatterv(in, all, at, MPI_INT, theirs, all[me], MPI_INT, 0, comm);
            else
                MPI_Alltoallv(in, sends, from, MPI_INT, theirs, receives, to, MPI_INT, comm);
            int code = functions[f].run(in, ours, times, MPI_INT, MPI_SUM, comm);
            int other = code != MPI_SUCCESS || memcmp(ours, theirs, most * sizeof(int));
            if (other) fprintf(stderr, "%s, %d times the counts, rank %d: code %d\n", functions[f].name, times, me, code);
            wrong += other;
            free(in);
            free(ours);
            free(theirs);
        }
    int sum = 0;
    MPI_Allreduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0) printf("%d functions, %d wrong\n", FUNCTIONS, sum);
    MPI_Finalize();
    return sum != 0;
}
