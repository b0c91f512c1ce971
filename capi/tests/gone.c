/* Two ranks on two hosts, by TCP. Rank 1 is killed when it has received a message; rank 0 goes on sending short ones, the
 * first of which tell it by a reset connection, and says the error. */
#include <roundelay.h>
#include <signal.h>
#include <stdio.h>

int main(void)
{
    roundelay_world_t world;
    uint32_t rank;
    float data = 1;
    int error = 0;
    if (roundelay_init_from_env(NULL, &world) || roundelay_rank(world, &rank))
        return 1;
    if (rank == 1) {
        if (roundelay_recv(world, &data, 1, ROUNDELAY_FLOAT32, 0))
            return 2;
        raise(SIGKILL);
    }
    while (!error)
        error = roundelay_send(world, &data, 1, ROUNDELAY_FLOAT32, 1);
    printf("%d\n", error);
    return 0;
}
