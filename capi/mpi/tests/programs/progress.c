/* What MPI must get on with while a rank waits in a collective: messages and windows of the same ranks.
 *
 *     progress [--seconds N]
 *
 * One rank starts to send more than any MPI keeps by itself and goes into a collective; another receives it first and
 * goes there then. The same with a window that another rank writes to. A library that waits without letting MPI go on
 * never ends; after the seconds the program says what it did. */
#define _GNU_SOURCE
#include "check.h"

enum { BYTES = 1 << 20, CALLS = 9, TURNS = 3 };

static int *numbers, *others;

/* A collective after which rank `last` is known to have come, on rank `first`. */
static void collective(int which, int first, int last, MPI_Comm comm) {
    int one = 1;
    switch (which) {
    case 0: MPI_Allreduce(&one, others, 1, MPI_INT, MPI_SUM, comm); break;
    case 1: MPI_Barrier(comm); break;
    case 2: MPI_Allgather(&one, 1, MPI_INT, others, 1, MPI_INT, comm); break;
    case 3: MPI_Alltoall(numbers, 1, MPI_INT, others, 1, MPI_INT, comm); break;
    case 4: MPI_Reduce_scatter_block(numbers, others, 1, MPI_INT, MPI_SUM, comm); break;
    case 5: MPI_Bcast(others, 1, MPI_INT, last, comm); break;
    case 6: MPI_Reduce(&one, others, 1, MPI_INT, MPI_SUM, first, comm); break;
    case 7: MPI_Gather(&one, 1, MPI_INT, others, 1, MPI_INT, first, comm); break;
    default: MPI_Scatter(numbers, 1, MPI_INT, others, 1, MPI_INT, last, comm); break;
    }
}

static const char *const names[CALLS] = {
    "MPI_Allreduce", "MPI_Barrier", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter_block",
    "MPI_Bcast",     "MPI_Reduce",  "MPI_Gather",    "MPI_Scatter",
};

static void messages(int which, int first, int last, int turn) {
    enum { COUNT = BYTES / sizeof(int) };
    static int sent[COUNT], received[COUNT];
    MPI_Request request;
    if (world_rank == first) {
        for (int i = 0; i < COUNT; i++) sent[i] = i + turn;
        now("%s while a message of this rank is on its way", names[which]);
        MPI_Isend(sent, COUNT, MPI_INT, last, turn, MPI_COMM_WORLD, &request);
        collective(which, first, last, MPI_COMM_WORLD);
        now("MPI_Wait after %s", names[which]);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (world_rank == last) {
        now("MPI_Recv from a rank that is in %s", names[which]);
        MPI_Recv(received, COUNT, MPI_INT, first, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; i++)
            if (received[i] != i + turn) fail("element %d of a message during %s is %d", i, names[which], received[i]);
        now("%s after MPI_Recv", names[which]);
        collective(which, first, last, MPI_COMM_WORLD);
    } else {
        now("%s as a rank beside the message", names[which]);
        collective(which, first, last, MPI_COMM_WORLD);
    }
}

/* The same with a collective of the other kind: started, and waited for before or after. */
static void started(int which, int first, int last, MPI_Comm copy) {
    MPI_Request request;
    int one = 1, all = 0;
    now("MPI_Iallreduce with %s", names[which]);
    MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, copy, &request);
    if (world_rank == last) MPI_Wait(&request, MPI_STATUS_IGNORE);
    collective(which, first, last, MPI_COMM_WORLD);
    if (world_rank != last) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (all != world_size) fail("MPI_Iallreduce beside %s gave %d", names[which], all);
}

static void windows(int which, int first, int last, int turn) {
    enum { COUNT = BYTES / sizeof(int) };
    static int written[COUNT];
    MPI_Win window;
    static int memory[COUNT];
    int *own = memory;
    now("the making of a window");
    /* One that ranks of a host may write to by themselves, and one for which they may need its owner. */
    if (turn % 2) MPI_Win_allocate(BYTES, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    else MPI_Win_create(own, BYTES, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    memset(own, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == last) {
        for (int i = 0; i < COUNT; i++) written[i] = i * 3 + turn;
        now("MPI_Put into the window of a rank that is in %s", names[which]);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, first, 0, window);
        MPI_Put(written, COUNT, MPI_INT, first, 0, COUNT, MPI_INT, window);
        MPI_Win_unlock(first, window);
    }
    now("%s with a window", names[which]);
    collective(which, first, last, MPI_COMM_WORLD);
    if (world_rank == first) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, first, 0, window);
        for (int i = 0; i < COUNT; i++)
            if (own[i] != i * 3 + turn) fail("element %d of a window after %s is %d", i, names[which], own[i]);
        MPI_Win_unlock(first, window);
    }
    now("MPI_Win_free");
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    MPI_Comm copy;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    at_most(seconds_of(argc, argv, 120));
    numbers = calloc(world_size, sizeof(int));
    others = calloc(world_size, sizeof(int));
    if (!numbers || !others) fail("no memory");
    if (world_size < 2) fail("two ranks are needed");
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int turn = 0; turn < TURNS; turn++)
        for (int which = 0; which < CALLS; which++) {
            int first = turn % world_size, last = (turn + 1 + which % (world_size - 1)) % world_size;
            messages(which, first, last, turn);
            started(which, first, last, copy);
            windows(which, first, last, turn);
        }
    MPI_Comm_free(&copy);
    free(numbers);
    free(others);
    if (world_rank == 0) printf("OK: progress on %d ranks\n", world_size);
    MPI_Finalize();
    return 0;
}
