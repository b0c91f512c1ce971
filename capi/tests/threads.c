/* Threads that each have worlds of their own, of one rank; and one that waits for what another has started. */
#include <pthread.h>
#include <roundelay.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define THREADS 4
#define CALLS 50
#define COUNT 1000

static roundelay_request_t waited;

static int join(roundelay_world_t *world)
{
    uint8_t id[128];
    return roundelay_unique_id(id) || roundelay_init_id(id, 1, 0, NULL, world);
}

static void *calls(void *argument)
{
    roundelay_world_t world;
    float data[COUNT];
    (void)argument;
    if (join(&world))
        return "joining";
    for (int i = 0; i < CALLS; i++) {
        for (int j = 0; j < COUNT; j++)
            data[j] = (float)(i + j);
        if (roundelay_call(world, ROUNDELAY_ALL_REDUCE, data, data, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 0))
            return "a call";
        for (int j = 0; j < COUNT; j++)
            if (data[j] != (float)(i + j))
                return "a result";
        /* The error of one thread is not that of another. */
        if (roundelay_barrier(world + 1000) != 406 || !strstr(roundelay_last_error(), "no world"))
            return "an error";
    }
    return roundelay_finalize(world) ? "leaving" : NULL;
}

static void *waits(void *argument)
{
    (void)argument;
    return roundelay_wait(waited, -1) ? "waiting" : NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int failed = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, calls, NULL);
    for (int i = 0; i < THREADS; i++) {
        void *what;
        pthread_join(threads[i], &what);
        if (what) {
            fprintf(stderr, "%s: %s\n", (const char *)what, roundelay_last_error());
            failed = 1;
        }
    }

    roundelay_world_t world;
    static float data[COUNT];
    if (join(&world))
        return 1;
    for (int i = 0; i < CALLS; i++) {
        void *what;
        data[0] = (float)i;
        if (roundelay_start(world, ROUNDELAY_ALL_REDUCE, data, data, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 0, &waited))
            return 1;
        pthread_create(&threads[0], NULL, waits, NULL);
        pthread_join(threads[0], &what);
        if (what || data[0] != (float)i)
            return 1;
    }
    return failed || roundelay_finalize(world);
}
