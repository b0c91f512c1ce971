/* Times one collective of an MPI library as users of it would: f32 sum, out of place, results verified.
 *
 *     driver OP SIZE...     OP: AllReduce ReduceScatter AllGather Broadcast Reduce; SIZE in bytes, as
 *                           nccl-tests counts it: the larger of a rank's input and output
 *
 * A sample is one call, after a barrier, or a row of calls where one is too short for the clock. Its time is the
 * slowest rank's. Rank 0 prints `SIZE MICROSECONDS WRONG` for each size: the median over the samples, and the
 * number of wrong elements of all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 101, FEWEST = 5 };
/* Seconds for the samples of a size, if the fewest are done. */
static const double ENOUGH = 0.7;
/* Seconds of a call below which a sample is a row of them. */
static const double SHORT = 50e-6;

static int rank, nranks;
static float *input, *output;
static int *counts;

static void call(const char *op, int count) {
    if (!strcmp(op, "AllReduce"))
        MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (!strcmp(op, "ReduceScatter"))
        MPI_Reduce_scatter(input, output, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (!strcmp(op, "AllGather"))
        MPI_Allgather(input, count, MPI_FLOAT, output, count, MPI_FLOAT, MPI_COMM_WORLD);
    else if (!strcmp(op, "Reduce"))
        MPI_Reduce(input, output, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    else /* Broadcast has one buffer: the root's is the input of all. */
        MPI_Bcast(rank == 0 ? input : output, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

/* Small integers: sums are exact in any order. */
static float value(int of, size_t at) { return (float)((at * 7 + (size_t)of * 13) % 64); }

static float sum(size_t at) {
    float all = 0;
    for (int r = 0; r < nranks; r++) all += value(r, at);
    return all;
}

static double wrong_elements(const char *op, int count) {
    double wrong = 0;
    for (size_t i = 0; i < (size_t)count; i++) {
        if (!strcmp(op, "AllReduce") || (!strcmp(op, "Reduce") && rank == 0))
            wrong += output[i] != sum(i);
        else if (!strcmp(op, "ReduceScatter"))
            wrong += output[i] != sum((size_t)rank * count + i);
        else if (!strcmp(op, "Broadcast") && rank != 0)
            wrong += output[i] != value(0, i);
        else if (!strcmp(op, "AllGather"))
            for (int r = 0; r < nranks; r++) wrong += output[(size_t)r * count + i] != value(r, i);
    }
    double all;
    MPI_Allreduce(&wrong, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    const char *op = argc > 1 ? argv[1] : "";
    const char *known = " AllReduce ReduceScatter AllGather Broadcast Reduce ";
    if (argc < 3 || !strstr(known, op)) {
        fprintf(stderr, "usage: driver OP SIZE...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int a = 2; a < argc; a++) {
        size_t size = strtoull(argv[a], NULL, 10), units = size / sizeof(float);
        int shared = !strcmp(op, "ReduceScatter") || !strcmp(op, "AllGather");
        int count = (int)(shared ? units / nranks : units);
        size_t bytes = (units * sizeof(float) + 4095) / 4096 * 4096 + 4096;
        input = aligned_alloc(4096, bytes);
        output = aligned_alloc(4096, bytes);
        counts = malloc(nranks * sizeof(int));
        if (!input || !output || !counts) MPI_Abort(MPI_COMM_WORLD, 3);
        for (int r = 0; r < nranks; r++) counts[r] = count;
        for (size_t i = 0; i < units; i++) input[i] = value(rank, i);
        memset(output, 0xA5, bytes);
        call(op, count);
        double wrong = wrong_elements(op, count);

        /* Ranks that wait for a core take far longer than the clock needs. */
        double once = MPI_Wtime(), slowest;
        call(op, count);
        once = MPI_Wtime() - once;
        MPI_Allreduce(&once, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        int row = slowest < SHORT ? 64 : 1;

        double samples[SAMPLES], begun = MPI_Wtime();
        int done = 0, again = 1;
        while (again) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            for (int i = 0; i < row; i++) call(op, count);
            double took = (MPI_Wtime() - start) / row;
            MPI_Reduce(&took, &samples[done], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            done++;
            again = done < SAMPLES && (done < FEWEST || MPI_Wtime() - begun < ENOUGH);
            MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        if (rank == 0) {
            qsort(samples, done, sizeof(double), by_value);
            printf("%zu %.4f %.0f\n", size, samples[done / 2] * 1e6, wrong);
            fflush(stdout);
        }
        free(input);
        free(output);
        free(counts);
    }
    MPI_Finalize();
    return 0;
}
