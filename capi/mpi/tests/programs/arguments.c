/* Tries one wrong argument after another in every collective, and prints what became of each call: the class of its
 * code, and how often the handler of its communicator was called. The lines are to be equal with and without the
 * library.
 *
 * All ranks of a call give the same wrong argument. Where only the root has to look at it, the root calls alone: MPI
 * refuses the call before it waits for another rank. Calls that MPI does not refuse have right results.
 *
 *     arguments [--seconds N] [--from CASE] */
#include "check.h"

enum { RANKS = 8, EACH = 3, MOST = RANKS * EACH };

typedef enum {
    ALLREDUCE, ALLGATHER, REDUCE_SCATTER_BLOCK, BCAST, REDUCE, SCATTER, GATHER, ALLTOALL,
    ALLGATHERV, REDUCE_SCATTER, GATHERV, SCATTERV, ALLTOALLV, BARRIER, WHATS
} What;
static const char *const names[WHATS] = {
    "Allreduce", "Allgather", "Reduce_scatter_block", "Bcast", "Reduce", "Scatter", "Gather", "Alltoall",
    "Allgatherv", "Reduce_scatter", "Gatherv", "Scatterv", "Alltoallv", "Barrier"};

/* The properties of a collective: what it has, and which side the root alone gives. */
enum {
    SENDS = 1,
    COMBINES = 2,
    ROOTED = 4,
    SEND_BLOCKS = 8,
    RECV_BLOCKS = 16,
    ROOT_SENDS = 32,
    ROOT_RECEIVES = 64,
    RECEIVES = 128,
    OWN_BLOCK = 256
};
static const int has[WHATS] = {
    SENDS | COMBINES | RECEIVES,
    SENDS | RECEIVES | OWN_BLOCK,
    SENDS | COMBINES | RECEIVES,
    ROOTED | RECEIVES,
    SENDS | COMBINES | ROOTED | ROOT_RECEIVES | RECEIVES,
    SENDS | ROOTED | ROOT_SENDS | RECEIVES | OWN_BLOCK,
    SENDS | ROOTED | ROOT_RECEIVES | RECEIVES | OWN_BLOCK,
    SENDS | RECEIVES,
    SENDS | RECV_BLOCKS | RECEIVES | OWN_BLOCK,
    SENDS | COMBINES | SEND_BLOCKS | RECEIVES,
    SENDS | ROOTED | RECV_BLOCKS | ROOT_RECEIVES | RECEIVES | OWN_BLOCK,
    SENDS | ROOTED | SEND_BLOCKS | ROOT_SENDS | RECEIVES | OWN_BLOCK,
    SENDS | SEND_BLOCKS | RECV_BLOCKS | RECEIVES,
    0};

/* The arguments of a call. */
typedef struct {
    void *send, *recv;
    int sends, receives, root;
    MPI_Datatype sent, received;
    MPI_Op op;
    MPI_Comm comm;
    int *send_counts, *from, *recv_counts, *to;
} Arguments;

static int given[MOST], taken[MOST], counts[RANKS], places[RANKS], others[RANKS];
static MPI_Datatype raw;
static int handled;

static void handle(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
    handled++;
}

static Arguments right(What what, MPI_Comm comm) {
    Arguments a = {given, taken, EACH, EACH, 0, MPI_INT, MPI_INT, MPI_SUM, comm, counts, places, others, places};
    (void)what;
    for (int i = 0; i < MOST; i++) {
        given[i] = 100 * world_rank + i;
        taken[i] = -1;
    }
    for (int r = 0; r < RANKS; r++) {
        counts[r] = others[r] = EACH;
        places[r] = EACH * r;
    }
    return a;
}

static int call(What what, const Arguments *a) {
    switch (what) {
    case ALLREDUCE: return MPI_Allreduce(a->send, a->recv, a->receives, a->received, a->op, a->comm);
    case ALLGATHER:
        return MPI_Allgather(a->send, a->sends, a->sent, a->recv, a->receives, a->received, a->comm);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Reduce_scatter_block(a->send, a->recv, a->receives, a->received, a->op, a->comm);
    case BCAST: return MPI_Bcast(a->recv, a->receives, a->received, a->root, a->comm);
    case REDUCE: return MPI_Reduce(a->send, a->recv, a->receives, a->received, a->op, a->root, a->comm);
    case SCATTER:
        return MPI_Scatter(a->send, a->sends, a->sent, a->recv, a->receives, a->received, a->root, a->comm);
    case GATHER:
        return MPI_Gather(a->send, a->sends, a->sent, a->recv, a->receives, a->received, a->root, a->comm);
    case ALLTOALL:
        return MPI_Alltoall(a->send, a->sends, a->sent, a->recv, a->receives, a->received, a->comm);
    case ALLGATHERV:
        return MPI_Allgatherv(a->send, a->sends, a->sent, a->recv, a->recv_counts, a->to, a->received, a->comm);
    case REDUCE_SCATTER: return MPI_Reduce_scatter(a->send, a->recv, a->send_counts, a->received, a->op, a->comm);
    case GATHERV:
        return MPI_Gatherv(a->send, a->sends, a->sent, a->recv, a->recv_counts, a->to, a->received, a->root, a->comm);
    case SCATTERV:
        return MPI_Scatterv(a->send, a->send_counts, a->from, a->sent, a->recv, a->receives, a->received, a->root,
                            a->comm);
    case ALLTOALLV:
        return MPI_Alltoallv(a->send, a->send_counts, a->from, a->sent, a->recv, a->recv_counts, a->to, a->received,
                             a->comm);
    default: return MPI_Barrier(a->comm);
    }
}

/* Who gives a wrong argument: all ranks, the ranks that give this side, or the ranks that are not the root. */
typedef enum { ALL, OF_SEND, OF_RECV, OTHERS } Who;
/* The libraries that do not look at an argument: the call would crash, or wait for ever. */
enum { OPEN_MPI_CRASHES = 1, MPICH_CRASHES = 2 };

/* A wrong argument: the properties that a collective has, and those that it does not have. */
typedef struct {
    const char *name;
    int needs, lacks;
    Who who;
    int crashes;
    void (*make)(What, Arguments *);
} Wrong;

#define WRONG(NAME, BODY) \
    static void NAME(What what, Arguments *a) { \
        (void)what; \
        (void)a; \
        BODY; \
    }
WRONG(nothing, (void)0)
WRONG(send_null, a->send = NULL)
WRONG(recv_null, a->recv = NULL)
WRONG(send_in_place, a->send = MPI_IN_PLACE)
WRONG(recv_in_place, a->recv = MPI_IN_PLACE)
WRONG(both_in_place, a->send = a->recv = MPI_IN_PLACE)
WRONG(same, a->recv = a->send)
WRONG(same_value, a->recv = a->send; a->sends = a->receives = 1; counts[0] = counts[1] = 1)
WRONG(same_array, a->recv = a->send; a->recv_counts = a->send_counts)
WRONG(own_block, if (has[what] & ROOT_SENDS) a->recv = given + EACH * world_rank;
      else a->send = taken + EACH * world_rank)
WRONG(other_block, a->send = taken + EACH * (world_size - 1 - world_rank))
WRONG(send_count, a->sends = -1)
WRONG(recv_count, a->receives = -1)
WRONG(sent_null, a->sent = MPI_DATATYPE_NULL)
WRONG(received_null, a->received = MPI_DATATYPE_NULL)
WRONG(sent_raw, a->sent = raw)
WRONG(received_raw, a->received = raw)
WRONG(op_null, a->op = MPI_OP_NULL)
WRONG(op_of_no_numbers, a->op = MPI_MAXLOC)
WRONG(op_of_windows, a->op = MPI_REPLACE)
WRONG(bits_of_floats, a->op = MPI_BAND; a->sent = a->received = MPI_FLOAT)
WRONG(sum_of_bytes, a->sent = a->received = MPI_BYTE)
WRONG(sum_of_characters, a->sent = a->received = MPI_CHAR)
WRONG(root_below, a->root = -1)
WRONG(root_far_below, a->root = -77)
WRONG(root_above, a->root = world_size)
WRONG(comm_null, a->comm = MPI_COMM_NULL)
WRONG(send_counts_null, a->send_counts = NULL)
WRONG(from_null, a->from = NULL)
WRONG(recv_counts_null, a->recv_counts = NULL)
WRONG(to_null, a->to = NULL)
WRONG(send_counts_below, counts[world_size - 1] = -1)
WRONG(recv_counts_below, others[world_size - 1] = -1)
#ifndef OPEN_MPI
/* Handles are numbers, so one of another kind may be given. */
WRONG(sent_comm, a->sent = (MPI_Datatype)MPI_COMM_WORLD)
WRONG(received_comm, a->received = (MPI_Datatype)MPI_COMM_WORLD)
WRONG(op_comm, a->op = (MPI_Op)MPI_COMM_WORLD)
WRONG(comm_type, a->comm = (MPI_Comm)MPI_INT)
WRONG(comm_zero, a->comm = (MPI_Comm)0)
#endif

static const Wrong wrongs[] = {
    {"nothing", 0, 0, ALL, 0, nothing},
    {"send buffer null", SENDS, 0, OF_SEND, OPEN_MPI_CRASHES, send_null},
    {"receive buffer null", RECEIVES, 0, OF_RECV, OPEN_MPI_CRASHES, recv_null},
    {"send buffer MPI_IN_PLACE at the root", SENDS | ROOT_SENDS, 0, OF_SEND, 0, send_in_place},
    {"send buffer MPI_IN_PLACE at others", ROOT_RECEIVES, 0, OTHERS, MPICH_CRASHES, send_in_place},
    {"receive buffer MPI_IN_PLACE", RECEIVES, ROOT_SENDS, OF_RECV, 0, recv_in_place},
    {"receive buffer MPI_IN_PLACE at others", ROOT_SENDS, 0, OTHERS, MPICH_CRASHES, recv_in_place},
    {"both buffers MPI_IN_PLACE", SENDS, ROOT_SENDS, OF_RECV, 0, both_in_place},
    {"both buffers MPI_IN_PLACE at the root", ROOT_SENDS, 0, OF_SEND, 0, both_in_place},
    {"one buffer for both", SENDS, OWN_BLOCK, OF_RECV, 0, same},
    {"one buffer for both, one value", SENDS, OWN_BLOCK, OF_RECV, 0, same_value},
    {"one buffer and one array for both", SEND_BLOCKS | RECV_BLOCKS, 0, ALL, 0, same_array},
    {"own block in the other buffer", OWN_BLOCK, 0, OF_RECV, 0, own_block},
    {"another block in the other buffer", OWN_BLOCK, ROOTED, ALL, 0, other_block},
    {"send count -1", SENDS, COMBINES | SEND_BLOCKS, OF_SEND, 0, send_count},
    {"receive count -1", RECEIVES, COMBINES | RECV_BLOCKS, OF_RECV, 0, recv_count},
    {"count -1", COMBINES, SEND_BLOCKS, ALL, 0, recv_count},
    {"type sent null", SENDS, COMBINES, OF_SEND, 0, sent_null},
    {"type received null", RECEIVES, COMBINES, OF_RECV, 0, received_null},
    {"type null", COMBINES, 0, ALL, 0, received_null},
    {"type sent not committed", SENDS, COMBINES, OF_SEND, 0, sent_raw},
    {"type received not committed", RECEIVES, COMBINES, OF_RECV, 0, received_raw},
    {"type not committed", COMBINES, 0, ALL, 0, received_raw},
    {"op null", COMBINES, 0, ALL, 0, op_null},
    {"op of pairs", COMBINES, 0, ALL, 0, op_of_no_numbers},
    {"op of windows", COMBINES, 0, ALL, 0, op_of_windows},
    {"bitwise op of floats", COMBINES, 0, ALL, 0, bits_of_floats},
    {"sum of bytes", COMBINES, 0, ALL, 0, sum_of_bytes},
    {"sum of characters", COMBINES, 0, ALL, 0, sum_of_characters},
    {"root -1", ROOTED, 0, ALL, 0, root_below},
    {"root -77", ROOTED, 0, ALL, 0, root_far_below},
    {"root n", ROOTED, 0, ALL, 0, root_above},
    {"communicator null", 0, 0, ALL, 0, comm_null},
    {"send counts null", SEND_BLOCKS, 0, OF_SEND, MPICH_CRASHES, send_counts_null},
    {"send places null", SEND_BLOCKS, COMBINES, OF_SEND, MPICH_CRASHES, from_null},
    {"receive counts null", RECV_BLOCKS, 0, OF_RECV, MPICH_CRASHES, recv_counts_null},
    {"receive places null", RECV_BLOCKS, 0, OF_RECV, MPICH_CRASHES, to_null},
    {"a send count of -1", SEND_BLOCKS, 0, OF_SEND, 0, send_counts_below},
    {"a receive count of -1", RECV_BLOCKS, 0, OF_RECV, 0, recv_counts_below},
#ifndef OPEN_MPI
    {"type sent a communicator", SENDS, COMBINES, OF_SEND, 0, sent_comm},
    {"type received a communicator", RECEIVES, COMBINES, OF_RECV, 0, received_comm},
    {"type a communicator", COMBINES, 0, ALL, 0, received_comm},
    {"op a communicator", COMBINES, 0, ALL, 0, op_comm},
    {"communicator a type", 0, 0, ALL, 0, comm_type},
    {"communicator 0", 0, 0, ALL, 0, comm_zero},
#endif
};
enum { WRONGS = sizeof wrongs / sizeof *wrongs };

/* Whether the library crashes or waits in this call, without any other library. */
static int is_skipped(What what, const Wrong *w) {
#ifdef OPEN_MPI
    /* Some functions of Open MPI do not look at one of these. */
    if (w->crashes & OPEN_MPI_CRASHES || (what == ALLGATHER && w->make == comm_null)) return 1;
    if (what == SCATTER && (w->make == send_count || w->make == sent_null)) return 1;
    return what == ALLGATHERV && (w->make == recv_counts_null || w->make == recv_counts_below);
#else
    return w->crashes & MPICH_CRASHES || (what == BCAST && w->make == recv_in_place);
#endif
}

/* Whether this library refuses a call in which the root alone makes a mistake, before it waits for the other ranks. */
static int is_refused(What what, const Wrong *w) {
#ifdef OPEN_MPI
    int aliases = w->make == same || w->make == same_value || w->make == own_block;
    return w->make != received_raw && (w->make != sent_raw || what != SCATTER) && (!aliases || what == REDUCE);
#else
    (void)what;
    (void)w;
    return 1;
#endif
}

/* Whether this rank makes the call: where one rank alone makes a mistake, it makes the call alone. */
static int is_caller(What what, const Wrong *w) {
    int of_root = (w->who == OF_SEND && has[what] & ROOT_SENDS) || (w->who == OF_RECV && has[what] & ROOT_RECEIVES);
    if (w->who == OTHERS) return world_rank != 0;
    if (w->make == own_block && has[what] & ROOT_SENDS) of_root = 1;
    return !of_root || world_rank == 0 || !is_refused(what, w);
}

static void tried(What what, const Wrong *wrong, int number) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    Arguments a = right(what, comm);
    if (is_caller(what, wrong) && (wrong->who != OF_RECV || world_rank == 0 || !(has[what] & ROOT_RECEIVES)))
        wrong->make(what, &a);
    now("case %d: %s, %s", number, names[what], wrong->name);
    handled = 0;
    if (is_caller(what, wrong)) {
        int class = 0, code = call(what, &a);
        long sum = 0;
        if (code) MPI_Error_class(code, &class);
        /* The results of blocks that overlap are not defined. */
        if (!code && a.send != a.recv)
            for (int i = 0; i < MOST; i++) sum = (sum * 31 + taken[i] * 7 + given[i]) % 1000003;
        printf("rank %d, %03d, %s, %s: class %d, %d handled, sum %ld\n", world_rank, number, names[what], wrong->name,
               class, handled, sum);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    int number = 0, from = 0;
    at_most(seconds_of(argc, argv, 200));
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--from")) from = atoi(argv[i + 1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Type_contiguous(1, MPI_INT, &raw);
    for (int what = 0; what < WHATS; what++)
        for (int w = 0; w < WRONGS; w++)
            if ((has[what] & wrongs[w].needs) == wrongs[w].needs && !(has[what] & wrongs[w].lacks)) {
                if (number >= from && !is_skipped((What)what, &wrongs[w])) tried((What)what, &wrongs[w], number);
                number++;
            }
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) printf("OK: %d cases\n", number);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
