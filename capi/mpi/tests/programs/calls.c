/* Two calls without a look at MPI's handles: whether a library takes them or not, the program goes on.
 *
 *     calls [begins]
 */
#include <stdio.h>
#include <stdlib.h>

int MPI_Init(int *, char ***);
int MPI_Barrier(void *);
int MPI_Allreduce(const void *, void *, int, void *, void *, void *);
int MPI_Finalize(void);

int main(int argc, char **argv) {
    int from = 3, to = 0;
    if (argc > 1) printf("MPI_Init %d\n", MPI_Init(&argc, &argv));
    printf("MPI_Allreduce %d\n", MPI_Allreduce(&from, &to, 1, NULL, NULL, NULL));
    printf("MPI_Barrier %d\n", MPI_Barrier(NULL));
    if (argc > 1) printf("MPI_Finalize %d\n", MPI_Finalize());
    return 0;
}
