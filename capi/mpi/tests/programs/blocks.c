/* The five collectives of MPI with a count for each block, each beside the same call by MPI itself (`PMPI_`).
 *
 *     blocks [--seconds N]
 *
 * Vectors of counts are zeros, ones, one heavy block, and random ones; blocks lie one behind the other, or in any order
 * with gaps, in plain elements or in a type with gaps. Sums are of small integers, so any order gives the same bits. The
 * functions with large counts are called, too, where MPI has them. */
#define _GNU_SOURCE
#include "check.h"

#include <time.h>

#define MOST 24
#define SHAPES 6

static int me, nranks, turn, large, in_place, root;
static MPI_Comm comm;
static unsigned state = 7;

static unsigned draw(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

/* A type of the blocks: the bytes of a value, and the ints from one value to the next. */
typedef struct {
    MPI_Datatype type;
    int ints, stride;
} Kind;

static Kind kinds[3];

/* The count of block `at` of `n`, alike on all ranks. */
static void counts_of(int shape, int *counts, int n) {
    for (int i = 0; i < n; i++)
        switch (shape) {
        case 0: counts[i] = 0; break;
        case 1: counts[i] = 1; break;
        case 2: counts[i] = i == n - 1 ? 50000 : 1; break;
        case 3: counts[i] = i == 0 ? 9000 : 0; break;
        case 4: counts[i] = (int)draw(40); break;
        default: counts[i] = draw(3) ? 0 : (int)draw(3000);
        }
}

/* Whether blocks lie in the order from behind: in every second turn, and in the next round of all shapes in the others. */
static int is_turned(void) {
    return (turn + turn / SHAPES) % 2;
}

/* The places of blocks: one behind the other, or in the order from behind with gaps. Returns the values of a buffer. */
static int places_of(const int *counts, int *places, int n) {
    int next = 0;
    for (int k = 0; k < n; k++) {
        int i = is_turned() ? n - 1 - k : k;
        places[i] = next;
        next += counts[i] + (is_turned() ? 2 : 0);
    }
    return next + 1;
}

/* Two buffers with the same contents: one for each of the two libraries. */
typedef struct {
    int *ours, *theirs;
    size_t ints;
} Pair;

static Pair pair(long values, const Kind *kind) {
    size_t ints = (size_t)values * (size_t)kind->stride + 8;
    Pair p = {malloc(ints * sizeof(int)), malloc(ints * sizeof(int)), ints};
    for (size_t i = 0; i < ints; i++) p.ours[i] = p.theirs[i] = (int)((i * 7 + (size_t)me * 1001 + (size_t)turn) % 999);
    return p;
}

static void compare(Pair p, const char *call) {
    for (size_t i = 0; i < p.ints; i++)
        if (p.ours[i] != p.theirs[i])
            fail("%s, call %d, root %d%s: int %zu is %d, and %d by MPI", call, turn, root, in_place ? ", in place" : "", i,
                 p.ours[i], p.theirs[i]);
    free(p.ours);
    free(p.theirs);
}

static void drop(Pair p) {
    free(p.ours);
    free(p.theirs);
}

#if MPI_VERSION >= 4
#define LARGE 1

/* Wide copies of arrays. */
typedef struct {
    MPI_Count counts[MOST * MOST];
    MPI_Aint places[MOST * MOST];
} Wide;

static Wide widened(const int *counts, const int *places, int n) {
    static Wide w;
    for (int i = 0; i < n; i++) {
        w.counts[i] = counts[i];
        w.places[i] = places ? places[i] : 0;
    }
    return w;
}
#else
#define LARGE 0
#endif

static void allgatherv(const int *counts, const Kind *kind) {
    int places[MOST];
    Pair from = pair(counts[me] + 1, kind), to = pair(places_of(counts, places, nranks), kind);
    const void *send = in_place ? MPI_IN_PLACE : (void *)from.ours;
    now("MPI_Allgatherv, call %d", turn);
#if LARGE
    Wide w = widened(counts, places, nranks);
    if (large)
        MPI_Allgatherv_c(send, counts[me], kind->type, to.ours, w.counts, w.places, kind->type, comm);
    else
#endif
        MPI_Allgatherv(send, counts[me], kind->type, to.ours, counts, places, kind->type, comm);
    PMPI_Allgatherv(send, counts[me], kind->type, to.theirs, counts, places, kind->type, comm);
    compare(to, "MPI_Allgatherv");
    drop(from);
}

static void reduce_scatter(const int *counts) {
    const Kind *kind = &kinds[0];
    int places[MOST], total = 0;
    for (int i = 0; i < nranks; i++) total += counts[i];
    Pair from = pair(total, kind), to = pair(in_place ? total : counts[me], kind);
    MPI_Op op = turn % 3 ? MPI_SUM : MPI_MAX;
    const void *ours = in_place ? MPI_IN_PLACE : (void *)from.ours;
    now("MPI_Reduce_scatter, call %d", turn);
    (void)places;
#if LARGE
    Wide w = widened(counts, NULL, nranks);
    if (large)
        MPI_Reduce_scatter_c(ours, to.ours, w.counts, kind->type, op, comm);
    else
#endif
        MPI_Reduce_scatter(ours, to.ours, counts, kind->type, op, comm);
    PMPI_Reduce_scatter(ours, to.theirs, counts, kind->type, op, comm);
    /* In place, MPI says nothing of what lies behind the result. */
    if (in_place)
        for (size_t i = (size_t)counts[me]; i < to.ints; i++) to.ours[i] = to.theirs[i] = 0;
    compare(to, "MPI_Reduce_scatter");
    drop(from);
}

static void gatherv(const int *counts, const Kind *kind) {
    int places[MOST];
    Pair from = pair(counts[me] + 1, kind), to = pair(places_of(counts, places, nranks), kind);
    int here = me == root;
    const void *send = in_place && here ? MPI_IN_PLACE : (void *)from.ours;
    const int *all = here ? counts : NULL, *at = here ? places : NULL;
    now("MPI_Gatherv, call %d", turn);
#if LARGE
    Wide w = widened(counts, places, nranks);
    if (large)
        MPI_Gatherv_c(send, counts[me], kind->type, here ? to.ours : NULL, here ? w.counts : NULL,
                      here ? w.places : NULL, here ? kind->type : MPI_DATATYPE_NULL, root, comm);
    else
#endif
        MPI_Gatherv(send, counts[me], kind->type, here ? to.ours : NULL, all, at, here ? kind->type : MPI_DATATYPE_NULL,
                    root, comm);
    PMPI_Gatherv(send, counts[me], kind->type, to.theirs, all, at, kind->type, root, comm);
    compare(to, "MPI_Gatherv");
    drop(from);
}

static void scatterv(const int *counts, const Kind *kind) {
    int places[MOST];
    Pair from = pair(places_of(counts, places, nranks), kind), to = pair(counts[me] + 1, kind);
    int here = me == root;
    void *ours = in_place && here ? MPI_IN_PLACE : (void *)to.ours;
    void *theirs = in_place && here ? MPI_IN_PLACE : (void *)to.theirs;
    const int *all = here ? counts : NULL, *at = here ? places : NULL;
    now("MPI_Scatterv, call %d", turn);
#if LARGE
    Wide w = widened(counts, places, nranks);
    if (large)
        MPI_Scatterv_c(here ? from.ours : NULL, here ? w.counts : NULL, here ? w.places : NULL,
                       here ? kind->type : MPI_DATATYPE_NULL, ours, counts[me], kind->type, root, comm);
    else
#endif
        MPI_Scatterv(here ? from.ours : NULL, all, at, here ? kind->type : MPI_DATATYPE_NULL, ours, counts[me],
                     kind->type, root, comm);
    PMPI_Scatterv(from.theirs, all, at, kind->type, theirs, counts[me], kind->type, root, comm);
    compare(to, "MPI_Scatterv");
    drop(from);
}

static void alltoallv(const int *matrix, const Kind *kind) {
    int sends[MOST], receives[MOST], from_places[MOST], to_places[MOST];
    for (int i = 0; i < nranks; i++) {
        /* In place a rank gives to each as many as it gets. */
        sends[i] = in_place ? matrix[(me < i ? me : i) * nranks + (me < i ? i : me)] : matrix[me * nranks + i];
        receives[i] = in_place ? sends[i] : matrix[i * nranks + me];
    }
    Pair from = pair(places_of(sends, from_places, nranks), kind), to = pair(places_of(receives, to_places, nranks), kind);
    const void *send = in_place ? MPI_IN_PLACE : (void *)from.ours;
    now("MPI_Alltoallv, call %d", turn);
#if LARGE
    Wide s = widened(sends, from_places, nranks), r = widened(receives, to_places, nranks);
    if (large)
        MPI_Alltoallv_c(send, s.counts, s.places, kind->type, to.ours, r.counts, r.places, kind->type, comm);
    else
#endif
        MPI_Alltoallv(send, sends, from_places, kind->type, to.ours, receives, to_places, kind->type, comm);
    PMPI_Alltoallv(send, sends, from_places, kind->type, to.theirs, receives, to_places, kind->type, comm);
    compare(to, "MPI_Alltoallv");
    drop(from);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    at_most(seconds_of(argc, argv, 120));
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    /* Ranks in another order. */
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &nranks);
    if (nranks > MOST) fail("at most %d ranks", MOST);
    kinds[0] = (Kind){MPI_INT, 1, 1};
    MPI_Type_contiguous(2, MPI_INT, &kinds[1].type);
    kinds[1].ints = kinds[1].stride = 2;
    MPI_Datatype gaps;
    MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
    MPI_Type_create_resized(gaps, 0, 4 * (MPI_Aint)sizeof(int), &kinds[2].type);
    kinds[2].ints = 2;
    kinds[2].stride = 4;
    MPI_Type_commit(&kinds[1].type);
    MPI_Type_commit(&kinds[2].type);
    int calls = 0;
    for (turn = 0; turn < 2 * SHAPES; turn++)
        for (int kind = 0; kind < 3; kind++)
            for (in_place = 0; in_place < 2; in_place++)
                for (large = 0; large <= LARGE; large++) {
                    int counts[MOST], matrix[MOST * MOST];
                    counts_of(turn % SHAPES, counts, nranks);
                    counts_of(turn % SHAPES, matrix, nranks * nranks);
                    root = turn % nranks;
                    allgatherv(counts, &kinds[kind]);
                    gatherv(counts, &kinds[kind]);
                    scatterv(counts, &kinds[kind]);
                    alltoallv(matrix, &kinds[kind]);
                    if (kind == 0) reduce_scatter(counts);
                    calls += 4 + (kind == 0);
                }
    MPI_Type_free(&kinds[1].type);
    MPI_Type_free(&kinds[2].type);
    MPI_Type_free(&gaps);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    if (world_rank == 0) printf("OK: %d calls with a count for each block on %d ranks\n", calls, world_size);
    return 0;
}
