/* Threads of one process that each make calls on a communicator of their own, at the same time.
 *
 *     threads [--seconds N]
 *
 * Where MPI has no MPI_THREAD_MULTIPLE, the program says so in a line that begins with `SKIPPED`. */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, CALLS = 100, COUNT = 500 };

typedef struct {
    MPI_Comm comm;
    int of;
} Thread;

/* Each thread has its own order of sizes and roots, so that no two do the same at once. */
static void calls_on(MPI_Comm comm, int of, int calls) {
    int rank, size, sent[COUNT], *received;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    received = malloc(sizeof(int) * COUNT * size);
    if (!received) fail("no memory");
    for (int call = 0; call < calls; call++) {
        int count = 1 + (call * 37 + of * 101) % COUNT, root = (call + of) % size;
        for (int i = 0; i < count; i++) sent[i] = rank + i + call + of * 1000;
        MPI_Allreduce(sent, received, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count; i++) {
            int right = size * (i + call + of * 1000) + size * (size - 1) / 2;
            if (received[i] != right) fail("thread %d, call %d: element %d is %d, not %d", of, call, i, received[i], right);
        }
        MPI_Bcast(sent, count, MPI_INT, root, comm);
        for (int i = 0; i < count; i++)
            if (sent[i] != root + i + call + of * 1000) fail("thread %d, call %d: a broadcast gave %d", of, call, sent[i]);
        MPI_Allgather(&rank, 1, MPI_INT, received, 1, MPI_INT, comm);
        for (int r = 0; r < size; r++)
            if (received[r] != r) fail("thread %d, call %d: rank %d gave %d", of, call, r, received[r]);
        if (call % 10 == of) MPI_Barrier(comm);
    }
    free(received);
}

static void *calls(void *argument) {
    Thread *thread = argument;
    MPI_Comm copy;
    calls_on(thread->comm, thread->of, CALLS);
    /* Communicators are made and freed beside the other threads' calls. */
    for (int i = 0; i < 5; i++) {
        MPI_Comm_dup(thread->comm, &copy);
        calls_on(copy, thread->of, 10);
        MPI_Comm_free(&copy);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    Thread arguments[THREADS];
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    at_most(seconds_of(argc, argv, 120));
    if (level < MPI_THREAD_MULTIPLE) {
        if (world_rank == 0) printf("SKIPPED: this MPI has level %d of threads\n", level);
        MPI_Finalize();
        return 0;
    }
    now("calls of %d threads", THREADS);
    for (int i = 0; i < THREADS; i++) {
        arguments[i].of = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &arguments[i].comm);
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, calls, &arguments[i])) fail("no thread %d", i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&arguments[i].comm);
    if (world_rank == 0) printf("OK: %d threads on %d ranks\n", THREADS, world_size);
    MPI_Finalize();
    return 0;
}
