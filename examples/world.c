/*
 * Four processes that call proved collectives, from C.
 *
 *     cargo xtask capi --prefix /usr/local
 *     cc examples/world.c $(pkg-config --cflags --libs roundelay) -o world
 *     roundelay launch -n 4 -- ./world
 */
#include <roundelay.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 1000

static void check(int status, const char *what)
{
    if (status != ROUNDELAY_SUCCESS) {
        fprintf(stderr, "%s: E%04d: %s\n", what, status, roundelay_last_error());
        exit(1);
    }
}

int main(void)
{
    roundelay_world_t world;
    uint32_t rank, nranks;
    check(roundelay_init_from_env(NULL, &world), "joining");
    check(roundelay_rank(world, &rank), "the rank");
    check(roundelay_nranks(world, &nranks), "the number of ranks");

    float input[COUNT], output[COUNT];
    for (int i = 0; i < COUNT; i++)
        input[i] = (float)(rank + i);
    check(roundelay_call(world, ROUNDELAY_ALL_REDUCE, input, output, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 0),
          "the sum");
    for (int i = 0; i < COUNT; i++) {
        float expected = (float)(nranks * (nranks - 1) / 2 + nranks * (uint32_t)i);
        if (output[i] != expected) {
            fprintf(stderr, "element %d is %f, not %f\n", i, (double)output[i], (double)expected);
            return 1;
        }
    }

    /* An algorithm of one's own, proved for this number of ranks at its first call. */
    const char *page = "algorithm Star(root: Rank = 0) -> Broadcast {\n"
                       "    let hub = peer(root);\n"
                       "    if rank == root {\n"
                       "        copy(local.input, local.output);\n"
                       "        for d in 1..nranks {\n"
                       "            let other = peer((root + d) % nranks);\n"
                       "            other.TxAck();\n"
                       "            other.RxDataSignal();\n"
                       "        }\n"
                       "    } else {\n"
                       "        hub.RxAck();\n"
                       "        copy(hub.output, local.output);\n"
                       "        hub.TxDataSignal();\n"
                       "    }\n"
                       "}\n";
    check(roundelay_use(world, page, NULL, ROUNDELAY_BROADCAST, 0, UINT64_MAX), "the page");

    /* Two calls under way at once, in memory that all ranks can touch. */
    int64_t *shared;
    check(roundelay_alloc(world, nranks * sizeof *shared, (void **)&shared), "memory");
    int64_t root_says = rank == nranks - 1 ? 42 : 0;
    shared[rank] = 100 + rank;
    roundelay_request_t said, gathered;
    check(roundelay_start(world, ROUNDELAY_BROADCAST, &root_says, &root_says, 1, ROUNDELAY_INT64, ROUNDELAY_SUM,
                          nranks - 1, &said),
          "the broadcast");
    check(roundelay_start(world, ROUNDELAY_ALL_GATHER, shared + rank, shared, 1, ROUNDELAY_INT64, ROUNDELAY_SUM, 0,
                          &gathered),
          "the gathering");
    check(roundelay_wait(said, -1), "the broadcast");
    check(roundelay_wait(gathered, -1), "the gathering");
    for (uint32_t r = 0; r < nranks; r++)
        if (root_says != 42 || shared[r] != 100 + r)
            return 1;

    /* A count for each block: rank r gives r elements, and rank 0 none. */
    uint64_t mine = rank, *counts = malloc(nranks * sizeof *counts);
    float *all = malloc(nranks * nranks * sizeof *all);
    for (uint32_t r = 0; r < nranks; r++)
        counts[r] = r;
    check(roundelay_call_v(world, ROUNDELAY_ALL_GATHER, input, &mine, NULL, all, counts, NULL, ROUNDELAY_FLOAT32,
                           ROUNDELAY_SUM, 0),
          "the blocks");
    for (uint32_t r = 0, at = 0; r < nranks; r++)
        for (uint32_t i = 0; i < r; i++, at++)
            if (all[at] != (float)(r + i))
                return 1;
    free(counts);
    free(all);

    /* What is wrong is said, and nothing happens. */
    if (roundelay_call(world, ROUNDELAY_REDUCE, input, output, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, nranks) != 411)
        return 1;

    check(roundelay_barrier(world), "the barrier");
    if (rank == 0)
        printf("%u ranks agree, says Roundelay %s\n", nranks, roundelay_version());
    return roundelay_finalize(world);
}
