/* Nine collectives of MPI with results that are checked to the last bit, and that nothing beside them is written.
 *
 *     collectives [--seconds N] [--simple]
 *
 * Elements are small integers in every type, so any order of summation gives the same. Ranks of one call describe the
 * same elements by different types: plain ones, one contiguous type for all, a vector with gaps, and an absolute address.
 * Each call is made by the functions with large counts, too, where MPI has them.
 *
 * With `--simple` a rank describes what it sends and what it receives in one way, and never by absolute addresses: Intel
 * MPI 2021.18 gives wrong results or crashes without it. */
#define _GNU_SOURCE
#include "elements.h"

#include <time.h>

/* Ranks of a call come at different times now and then. */
static void begin(const char *call, long n) {
    now("%s of %ld on %s, call %d, root %d%s", call, n, comm_name, turn, root, in_place ? ", in place" : "");
    if (turn % 32 == 0 && turn / 32 % nranks == me) usleep(2000);
}

/* Whether the function with a large count is to be called: its name is another. */
#if MPI_VERSION >= 4
#define CALL(NAME, ...) (large ? NAME##_c(__VA_ARGS__) : NAME(__VA_ARGS__))
#else
#define CALL(NAME, ...) NAME(__VA_ARGS__)
#endif

static int simple;

static int layout(int after) { return simple ? (me + turn) % ABSOLUTE : (me + turn + after) % LAYOUTS; }

static void bcast(const Kind *kind, long n) {
    Buffer b = buffer(kind, n, 1, layout(0));
    if (me == root) set(&b, 0, root, 0);
    begin("MPI_Bcast", n);
    CALL(MPI_Bcast, b.where, b.count, b.type, root, comm);
    verify(&b, "MPI_Bcast", of_root, 1);
    drop(&b);
}

/* With one type for all blocks of a buffer, a call has `count` of it for each. */
static void gather(const Kind *kind, long n) {
    Buffer from = buffer(kind, n, 1, layout(0)), to = buffer(kind, n, nranks, layout(1));
    set(&from, 0, me, 0);
    begin("MPI_Gather", n);
    if (me != root) {
        CALL(MPI_Gather, from.where, from.count, from.type, NULL, 0, MPI_DATATYPE_NULL, root, comm);
    } else {
        if (in_place) set(&to, me, me, 0);
        void *send = in_place ? MPI_IN_PLACE : from.where;
        CALL(MPI_Gather, send, from.count, from.type, to.where, to.count, to.type, root, comm);
        verify(&to, "MPI_Gather", of_all, nranks);
    }
    drop(&from);
    drop(&to);
}

static void scatter(const Kind *kind, long n) {
    Buffer from = buffer(kind, n, nranks, layout(2)), to = buffer(kind, n, 1, layout(0));
    begin("MPI_Scatter", n);
    if (me != root) {
        CALL(MPI_Scatter, NULL, 0, MPI_DATATYPE_NULL, to.where, to.count, to.type, root, comm);
    } else {
        for (int r = 0; r < nranks; r++) set(&from, r, me, r);
        void *receive = in_place ? MPI_IN_PLACE : to.where;
        CALL(MPI_Scatter, from.where, from.count, from.type, receive, to.count, to.type, root, comm);
    }
    if (me != root || !in_place) verify(&to, "MPI_Scatter", of_root_to_me, 1);
    drop(&from);
    drop(&to);
}

static void allgather(const Kind *kind, long n) {
    Buffer from = buffer(kind, n, 1, layout(0)), to = buffer(kind, n, nranks, layout(3));
    set(&from, 0, me, 0);
    if (in_place) set(&to, me, me, 0);
    begin("MPI_Allgather", n);
    void *send = in_place ? MPI_IN_PLACE : from.where;
    CALL(MPI_Allgather, send, from.count, from.type, to.where, to.count, to.type, comm);
    verify(&to, "MPI_Allgather", of_all, nranks);
    drop(&from);
    drop(&to);
}

static void alltoall(const Kind *kind, long n) {
    Buffer from = buffer(kind, n, nranks, layout(1)), to = buffer(kind, n, nranks, layout(2));
    for (int r = 0; r < nranks; r++) set(in_place ? &to : &from, r, me, r);
    begin("MPI_Alltoall", n);
    void *send = in_place ? MPI_IN_PLACE : from.where;
    CALL(MPI_Alltoall, send, from.count, from.type, to.where, to.count, to.type, comm);
    verify(&to, "MPI_Alltoall", of_all_to_me, nranks);
    drop(&from);
    drop(&to);
}

/* Operations of MPI are for its own types only. */
static void allreduce(const Kind *kind, long n) {
    Buffer from = buffer(kind, n, 1, PLAIN), to = buffer(kind, n, 1, PLAIN);
    set(in_place ? &to : &from, 0, me, 0);
    begin("MPI_Allreduce", n);
    void *send = in_place ? MPI_IN_PLACE : from.where;
    CALL(MPI_Allreduce, send, to.where, to.count, to.type, op->op, comm);
    verify(&to, "MPI_Allreduce", folded, 1);
    drop(&from);
    drop(&to);
}

static void reduce(const Kind *kind, long n) {
    Buffer from = buffer(kind, n, 1, PLAIN), to = buffer(kind, n, 1, PLAIN);
    set(&from, 0, me, 0);
    begin("MPI_Reduce", n);
    if (me != root) {
        CALL(MPI_Reduce, from.where, NULL, from.count, from.type, op->op, root, comm);
    } else {
        if (in_place) set(&to, 0, me, 0);
        void *send = in_place ? MPI_IN_PLACE : from.where;
        CALL(MPI_Reduce, send, to.where, to.count, to.type, op->op, root, comm);
        verify(&to, "MPI_Reduce", folded, 1);
    }
    drop(&from);
    drop(&to);
}

static void reduce_scatter(const Kind *kind, long n) {
    Buffer from = buffer(kind, n, nranks, PLAIN), to = buffer(kind, n, in_place ? nranks : 1, PLAIN);
    for (int r = 0; r < nranks; r++) set(in_place ? &to : &from, r, me, r);
    begin("MPI_Reduce_scatter_block", n);
    void *send = in_place ? MPI_IN_PLACE : from.where;
    CALL(MPI_Reduce_scatter_block, send, to.where, (int)n, kind->type, op->op, comm);
    verify(&to, "MPI_Reduce_scatter_block", folded_to_me, 1);
    drop(&from);
    drop(&to);
}

/* No rank leaves before the last has come, by a clock that all of them have. */
static void barrier(void) {
    struct timespec time;
    begin("MPI_Barrier", 0);
    clock_gettime(CLOCK_REALTIME, &time);
    double came = (double)time.tv_sec + (double)time.tv_nsec * 1e-9, last;
    MPI_Barrier(comm);
    clock_gettime(CLOCK_REALTIME, &time);
    double left = (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
    MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, comm);
    if (left < last) fail("MPI_Barrier on %s let a rank go %g s before the last came", comm_name, last - left);
    checks++;
}

/* All nine, in place and not, from and to every rank. */
static void nine(const Kind *kind, long n) {
    for (in_place = 0; in_place < 2; in_place++) {
        turn++;
        allgather(kind, n);
        alltoall(kind, n);
        if (kind->ops & op->of) {
            allreduce(kind, n);
            reduce_scatter(kind, n);
        }
        for (root = 0; root < nranks; root++) {
            turn++;
            if (!in_place) bcast(kind, n);
            gather(kind, n);
            scatter(kind, n);
            if (kind->ops & op->of) reduce(kind, n);
        }
        root = 0;
    }
    in_place = 0;
    barrier();
}

/* Every operation on every type that it is for. */
static void operations(void) {
    for (int o = 0; o < OPS; o++)
        for (int k = 0; k < KINDS; k++) {
            op = &ops[o];
            if (!(kinds[k].ops & op->of)) continue;
            turn++;
            root = turn % nranks;
            for (in_place = 0; in_place < 2; in_place++) {
                allreduce(&kinds[k], 37);
                reduce(&kinds[k], 5);
                reduce_scatter(&kinds[k], 11);
            }
        }
    in_place = root = 0;
    op = &ops[0];
}

/* x -> first * x + second, modulo a prime: the second of two is done after the first, and they do not commute. */
typedef struct {
    int first, second;
} Map;
enum { PRIME = 1009 };

static Map then(Map a, Map b) {
    Map both = {b.first * a.first % PRIME, (b.first * a.second + b.second) % PRIME};
    return both;
}

static void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((Map *)inout)[i] = then(((Map *)in)[i], ((Map *)inout)[i]);
}

static void add_modulo(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] = (((int *)in)[i] + ((int *)inout)[i]) % PRIME;
}

static Map map(int of, int at) {
    Map map = {(of * 31 + at * 17) % (PRIME - 1) + 1, (of * 7 + at * 5) % PRIME};
    return map;
}

static void verify_maps(const char *call, const Map *out, int count, int first) {
    for (int i = 0; i < count; i++) {
        Map all = map(0, first + i);
        for (int r = 1; r < nranks; r++) all = then(all, map(r, first + i));
        if (out[i].first != all.first || out[i].second != all.second)
            fail("%s by a user's operation on %s: element %d is not as composed in rank order", call, comm_name, i);
    }
    checks++;
}

static void users_operations(void) {
    enum { EACH = 50 };
    MPI_Op composed, added;
    MPI_Datatype pair;
    int sums[2] = {me + 1000, me}, all[2];
    Map *in = malloc(sizeof(Map) * EACH * nranks), *out = malloc(sizeof(Map) * EACH * nranks);
    if (!in || !out) fail("no memory for maps");
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &composed);
    MPI_Op_create(add_modulo, 1, &added);
    for (int i = 0; i < EACH * nranks; i++) in[i] = map(me, i);
    now("a user's operations on %s", comm_name);
    MPI_Allreduce(in, out, EACH * nranks, pair, composed, comm);
    verify_maps("MPI_Allreduce", out, EACH * nranks, 0);
    MPI_Reduce_scatter_block(in, out, EACH, pair, composed, comm);
    verify_maps("MPI_Reduce_scatter_block", out, EACH, EACH * me);
    for (int r = 0; r < nranks; r++) {
        MPI_Reduce(in, out, EACH, pair, composed, r, comm);
        if (me == r) verify_maps("MPI_Reduce", out, EACH, 0);
    }
    MPI_Allreduce(sums, all, 2, MPI_INT, added, comm);
    int ranks = nranks * (nranks - 1) / 2;
    if (all[0] != (ranks + 1000 * nranks) % PRIME || all[1] != ranks % PRIME)
        fail("MPI_Allreduce by a user's sum on %s gave %d and %d", comm_name, all[0], all[1]);
    MPI_Op_free(&composed);
    MPI_Op_free(&added);
    MPI_Type_free(&pair);
    free(in);
    free(out);
}

/* Values with their places, of which the first counts where they are equal. */
static void locations(void) {
    struct { int value, at; } i[2] = {{me / 2, me}, {-me / 2, me}}, most[2], least[2];
    struct { double value; int at; } d = {.value = 100 - me / 2, .at = me}, found;
    int last = nranks - 1;
    now("values with their places on %s", comm_name);
    MPI_Allreduce(i, most, 2, MPI_2INT, MPI_MAXLOC, comm);
    MPI_Allreduce(i, least, 2, MPI_2INT, MPI_MINLOC, comm);
    MPI_Allreduce(&d, &found, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    if (most[0].value != last / 2 || most[0].at != last / 2 * 2 || most[1].value != 0 || most[1].at != 0)
        fail("MPI_MAXLOC on %s", comm_name);
    if (least[0].value != 0 || least[0].at != 0 || least[1].value != -last / 2 || least[1].at != last / 2 * 2)
        fail("MPI_MINLOC on %s", comm_name);
    if (found.value != 100 - last / 2 || found.at != last / 2 * 2) fail("MPI_MINLOC of doubles on %s", comm_name);
    checks += 3;
}

/* Two groups of ranks, each of which gets what the other has. */
static void intercommunicator(void) {
    MPI_Comm half, other;
    int upper = world_rank >= world_size / 2, lower = world_size / 2;
    int own = upper ? world_size - lower : lower, far = world_size - own, sum, from[64], expected = 0;
    if (world_size < 2 || world_size > 64) return;
    MPI_Comm_split(MPI_COMM_WORLD, upper, world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : lower, 7, &other);
    now("an intercommunicator");
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, other);
    MPI_Allgather(&world_rank, 1, MPI_INT, from, 1, MPI_INT, other);
    for (int r = 0; r < far; r++) {
        int rank = upper ? r : lower + r;
        expected += rank;
        if (from[r] != rank) fail("MPI_Allgather on an intercommunicator: element %d is %d", r, from[r]);
    }
    if (sum != expected) fail("MPI_Allreduce on an intercommunicator gave %d, not %d", sum, expected);
    int sent = world_rank, first;
    MPI_Comm_rank(half, &first);
    MPI_Bcast(&sent, 1, MPI_INT, upper ? 0 : first == 0 ? MPI_ROOT : MPI_PROC_NULL, other);
    if (upper && sent != 0) fail("MPI_Bcast on an intercommunicator gave %d", sent);
    MPI_Barrier(other);
    MPI_Comm_free(&other);
    MPI_Comm_free(&half);
    checks += 4;
}

/* Uses a communicator that the calls are then of. Its ranks may have made other calls before. */
static void on(MPI_Comm used, const char *name) {
    turn = 0;
    comm = used;
    comm_name = name;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &nranks);
}

static void rounds(void) {
    const long counts[] = {0, 1, 2, 7, 1000, 4099};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        nine(&kinds[c % KINDS], counts[c]);
        nine(&kinds[(c + 1 + nranks) % KINDS], counts[c]);
    }
    operations();
    users_operations();
    locations();
}

/* Communicators that come and go while others are in use. */
static void come_and_go(void) {
    MPI_Comm before = MPI_COMM_NULL;
    for (int i = 0; i < 40; i++) {
        MPI_Comm copy;
        if (i % 3) MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        else MPI_Comm_split(MPI_COMM_WORLD, (world_rank + i) % 2, i % 2 ? world_rank : -world_rank, &copy);
        on(copy, "a communicator that goes");
        turn = i;
        allreduce(&kinds[0], 100);
        if (before != MPI_COMM_NULL) {
            on(before, "the communicator before it");
            turn = i;
            bcast(&kinds[1], 50);
            MPI_Comm_free(&before);
        }
        before = copy;
    }
    MPI_Comm_free(&before);
}

int main(int argc, char **argv) {
    MPI_Comm copy, half, backwards, quarter, of_host;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    at_most(seconds_of(argc, argv, 300));
    for (int i = 1; i < argc; i++) simple |= !strcmp(argv[i], "--simple");
    name_all();
    op = &ops[0];

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(copy, world_rank % 2, world_rank, &half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &backwards);
    MPI_Comm_split(half, world_rank / 2 % 2 ? 1 : MPI_UNDEFINED, 0, &quarter);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &of_host);
    for (large = 0; large < 2; large++) {
        on(MPI_COMM_WORLD, "MPI_COMM_WORLD");
        rounds();
        on(backwards, "a communicator in the other order");
        rounds();
        on(half, "a communicator of every other rank");
        rounds();
    }
    large = 0;
    on(MPI_COMM_WORLD, "MPI_COMM_WORLD");
    nine(&kinds[0], 70001);
    nine(&kinds[1], 20000);
    on(copy, "a copy of MPI_COMM_WORLD");
    nine(&kinds[2], 129);
    MPI_Comm_free(&copy);
    on(of_host, "the ranks of one host");
    nine(&kinds[1], 300);
    on(MPI_COMM_SELF, "MPI_COMM_SELF");
    rounds();
    if (quarter != MPI_COMM_NULL) {
        on(quarter, "a communicator of some ranks");
        nine(&kinds[3], 33);
        MPI_Comm_free(&quarter);
    }
    come_and_go();
    intercommunicator();
    MPI_Comm_free(&backwards);
    MPI_Comm_free(&half);
    MPI_Comm_free(&of_host);

    long all;
    MPI_Reduce(&checks, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (world_rank == 0) printf("OK: collectives on %d ranks, %ld results\n", world_size, all);
    MPI_Finalize();
    return 0;
}
