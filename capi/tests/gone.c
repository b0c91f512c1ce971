/* Two ranks on two hosts, by TCP. Rank 1 is killed when it has received the only message; rank 0 sends short ones a second
 * later, whose connection is closed and then reset, and says the error. */
#include <roundelay.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

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
    error = roundelay_send(world, &data, 1, ROUNDELAY_FLOAT32, 1);
    sleep(1);
    while (!error)
        error = roundelay_send(world, &data, 1, ROUNDELAY_FLOAT32, 1);
    printf("%d\n", error);
    return 0;
}
