/* What the tests say of an exported function. */
#include <mpi.h>

typedef int collective_fn(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

enum collective { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SCATTER, GATHER, ALL_TO_ALL };

struct algorithm {
    const char *name;
    collective_fn *call;
    enum collective collective;
    int root;
    int in_place; /* proved so */
    int in_order; /* ops need not commute */
    int longest;  /* units of the longest message */
};

extern const struct algorithm algorithms[];
extern const int algorithm_count;
