/* Times one collective of an MPI library as users of it would: f32 sum, out of place, private buffers, results verified.
 *
 *     driver [--pinned] [--rewritten] [--part] [--seconds N] OP SIZE...
 *
 *     OP           AllReduce ReduceScatter ReduceScatterBlock AllGather Broadcast Reduce AllGatherV ReduceScatterV
 *                  The last two have a count for each block: those of odd ranks are 16 times those of even ones.
 *     SIZE         in bytes, as nccl-tests counts it: the larger of a rank's input and output
 *     --part       SIZE is the smaller of both, as Intel's benchmarks count it
 *     --pinned     rank r stays on the r-th allowed core, counted round; the launcher must bind no rank
 *     --rewritten  each rank writes its input again before each timed call, and no more than that call is timed
 *     --seconds    a rank that lives longer ends, whatever becomes of the launcher
 *
 * A sample is a row of calls after a barrier, of at least a millisecond, or one call where that lasts as long. Its time
 * is the slowest rank's. With --rewritten the calls of a row are timed one by one, each after a barrier. Rank 0 prints
 * `SIZE MICROSECONDS WRONG` for each size: the median over the samples, and the number of wrong elements of all ranks,
 * before the samples and after them. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 101, FEWEST = 5, LONGEST_ROW = 4096 };
/* Seconds for the samples of a size, if the fewest are done. */
static const double ENOUGH = 0.7;
/* Seconds that a row of calls lasts at least. */
static const double SAMPLE = 1e-3;

static int rank, nranks;
static float *input, *output;
static int *counts, *places;
/* How often inputs were written. */
static int turn;

static void call(const char *op, int count) {
    if (!strcmp(op, "AllReduce"))
        MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (!strcmp(op, "AllGatherV"))
        MPI_Allgatherv(input, counts[rank], MPI_FLOAT, output, counts, places, MPI_FLOAT, MPI_COMM_WORLD);
    else if (!strcmp(op, "ReduceScatter") || !strcmp(op, "ReduceScatterV"))
        MPI_Reduce_scatter(input, output, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (!strcmp(op, "ReduceScatterBlock"))
        MPI_Reduce_scatter_block(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (!strcmp(op, "AllGather"))
        MPI_Allgather(input, count, MPI_FLOAT, output, count, MPI_FLOAT, MPI_COMM_WORLD);
    else if (!strcmp(op, "Reduce"))
        MPI_Reduce(input, output, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    else /* Broadcast has one buffer: the root's is the input of all. */
        MPI_Bcast(rank == 0 ? input : output, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

/* Small integers: sums are exact in any order. */
static float value(int of, size_t at) {
    return (float)((at * 7 + (size_t)of * 13 + (size_t)turn * 5) % 64);
}

/* Ranks with an input write it, other values each time. */
static void rewrite(const char *op, size_t count, size_t units) {
    turn++;
    size_t own = !strcmp(op, "AllGather") ? count : !strcmp(op, "AllGatherV") ? (size_t)counts[rank] : units;
    if (!strcmp(op, "Broadcast") && rank != 0) own = 0;
    for (size_t i = 0; i < own; i++) input[i] = value(rank, i);
}

static float sum(size_t at) {
    float all = 0;
    for (int r = 0; r < nranks; r++) all += value(r, at);
    return all;
}

static double wrong_elements(const char *op, int count) {
    double wrong = 0;
    if (!strcmp(op, "ReduceScatterV"))
        for (int i = 0; i < counts[rank]; i++) wrong += output[i] != sum((size_t)places[rank] + i);
    else if (!strcmp(op, "AllGatherV"))
        for (int r = 0; r < nranks; r++)
            for (int i = 0; i < counts[r]; i++) wrong += output[places[r] + i] != value(r, i);
    else for (size_t i = 0; i < (size_t)count; i++) {
        if (!strcmp(op, "AllReduce") || (!strcmp(op, "Reduce") && rank == 0))
            wrong += output[i] != sum(i);
        else if (!strncmp(op, "ReduceScatter", 13))
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

/* Binds this process to one core before MPI looks at them. */
static void pin(void) {
    const char *name = getenv("OMPI_COMM_WORLD_RANK");
    if (!name) name = getenv("PMI_RANK");
    cpu_set_t allowed, one;
    if (!name || sched_getaffinity(0, sizeof allowed, &allowed)) {
        fprintf(stderr, "driver: the launcher tells no rank, or the system no cores\n");
        exit(4);
    }
    int left = atoi(name) % CPU_COUNT(&allowed), core = 0;
    while (!CPU_ISSET(core, &allowed) || left-- > 0) core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_setaffinity(0, sizeof one, &one)) {
        fprintf(stderr, "driver: the system did not bind rank %s to core %d\n", name, core);
        exit(4);
    }
}

/* Whether MPI left it bound. */
static int pinned(void) {
    cpu_set_t allowed;
    return !sched_getaffinity(0, sizeof allowed, &allowed) && CPU_COUNT(&allowed) == 1;
}

/* Seconds of a row of calls on the slowest rank, for all ranks. */
static double timed_row(const char *op, int count, size_t units, int row, int rewritten) {
    double took = 0, slowest;
    if (rewritten) {
        for (int i = 0; i < row; i++) {
            rewrite(op, count, units);
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            call(op, count);
            took += MPI_Wtime() - start;
        }
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int i = 0; i < row; i++) call(op, count);
        took = MPI_Wtime() - start;
    }
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv) {
    int a = 1, pins = 0, rewritten = 0, part = 0;
    for (; a < argc && !strncmp(argv[a], "--", 2); a++) {
        if (!strcmp(argv[a], "--pinned")) pins = 1;
        if (!strcmp(argv[a], "--rewritten")) rewritten = 1;
        if (!strcmp(argv[a], "--part")) part = 1;
        if (!strcmp(argv[a], "--seconds") && a + 1 < argc) alarm(atoi(argv[++a]));
    }
    if (pins) pin();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    const char *op = a < argc ? argv[a++] : "";
    const char *known = " AllReduce ReduceScatter ReduceScatterBlock AllGather Broadcast Reduce AllGatherV ReduceScatterV ";
    if (a >= argc || !strstr(known, op)) {
        fprintf(stderr, "usage: driver [--pinned] [--rewritten] [--part] [--seconds N] OP SIZE...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (pins && !pinned()) {
        fprintf(stderr, "driver: MPI bound rank %d to other cores\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    for (; a < argc; a++) {
        size_t size = strtoull(argv[a], NULL, 10), units = size / sizeof(float);
        int shared = !strncmp(op, "ReduceScatter", 13) || !strncmp(op, "AllGather", 9);
        int count = (int)(shared && !part ? units / nranks : units);
        units = shared ? (size_t)count * nranks : units;
        size_t bytes = (units * sizeof(float) + 4095) / 4096 * 4096 + 4096;
        input = aligned_alloc(4096, bytes);
        output = aligned_alloc(4096, bytes);
        counts = malloc(nranks * sizeof(int));
        places = malloc(nranks * sizeof(int));
        if (!input || !output || !counts || !places) MPI_Abort(MPI_COMM_WORLD, 3);
        /* Of `units` elements in all, shares of 1 and 16; what is left over is the last rank's. */
        int uneven = op[strlen(op) - 1] == 'V', next = 0, weights = nranks / 2 * 17 + nranks % 2;
        for (int r = 0; r < nranks; r++) {
            counts[r] = !uneven ? count : r == nranks - 1 ? (int)units - next : (int)(units / weights) * (r % 2 ? 16 : 1);
            places[r] = next;
            next += counts[r];
        }
        rewrite(op, count, units);
        memset(output, 0xA5, bytes);
        call(op, count);
        double wrong = wrong_elements(op, count);

        int row = 1;
        while (timed_row(op, count, units, row, rewritten) < SAMPLE && row < LONGEST_ROW) row *= 2;

        double samples[SAMPLES], begun = MPI_Wtime();
        int done = 0, again = 1;
        while (again) {
            samples[done++] = timed_row(op, count, units, row, rewritten) / row;
            again = done < SAMPLES && (done < FEWEST || MPI_Wtime() - begun < ENOUGH);
            MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        memset(output, 0xA5, bytes);
        call(op, count);
        wrong += wrong_elements(op, count);
        if (rank == 0) {
            qsort(samples, done, sizeof(double), by_value);
            printf("%zu %.4f %.0f\n", size, samples[done / 2] * 1e6, wrong);
            fflush(stdout);
        }
        free(input);
        free(output);
        free(counts);
        free(places);
    }
    MPI_Finalize();
    return 0;
}
