/* Two ranks, of which one does not make its third call until it is killed; the calls come from two functions. */
#include <roundelay.h>
#include <stdio.h>
#include <unistd.h>

static int reduced(roundelay_world_t world, float *data, uint64_t count)
{
    return roundelay_call(world, ROUNDELAY_ALL_REDUCE, data, data, count, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 0);
}

static int started(roundelay_world_t world, float *data, uint64_t count)
{
    roundelay_request_t request;
    if (roundelay_start(world, ROUNDELAY_ALL_REDUCE, data, data, count, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 0, &request))
        return 1;
    return roundelay_wait(request, -1);
}

int main(void)
{
    roundelay_options_t options = ROUNDELAY_OPTIONS_INIT;
    roundelay_world_t world;
    uint32_t rank;
    static float data[1000];
    options.flags = ROUNDELAY_SITES;
    if (roundelay_init_from_env(&options, &world) || roundelay_rank(world, &rank))
        return 1;
    if (reduced(world, data, 1000) || started(world, data, 500))
        return 2;
    if (rank == 1)
        pause();
    printf("%d\n", reduced(world, data, 10));
    return 0;
}
