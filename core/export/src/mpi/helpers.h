/* Returns the error of an MPI call that fails. */
#define TRY(call)                    \
    do {                             \
        const int error_ = (call);   \
        if (error_ != MPI_SUCCESS) { \
            return error_;           \
        }                            \
    } while (0)
@@ element
/* The element at which a piece begins: pieces differ by one element at most. */
static long long element(const run *r, long long piece) {
    return piece * r->count / PIECES;
}
@@ part
/* `pieces` pieces of the input or the output, from `piece` on. */
static span part(const run *r, char *buffer, long long piece, long long pieces) {
    const long long first = element(r, piece);
    const span s = {buffer + first * r->extent, (int)(element(r, piece + pieces) - first)};
    return s;
}
@@ slot
/* The same pieces at the beginning of a slot. */
static span slot(const run *r, scratch buffer, long long nth, long long piece, long long pieces) {
    const long long len = element(r, piece + pieces) - element(r, piece);
    const span s = {buffer.first + nth * buffer.slot * r->extent, (int)len};
    return s;
}
@@ within
/* The same pieces in a slot at whose beginning piece `base` is. */
static span within(const run *r, scratch buffer, long long nth, long long base, long long piece,
                   long long pieces) {
    const long long first = element(r, piece);
    char *begin = buffer.first + (nth * buffer.slot + first - element(r, base)) * r->extent;
    const span s = {begin, (int)(element(r, piece + pieces) - first)};
    return s;
}
@@ start_send
/* Until `sends[nth]` is finished, the elements must not change. */
static int start_send(run *r, int nth, int to, int tag, span from) {
    return MPI_Isend(from.first, from.len, r->type, to, tag, r->comm, &r->sends[nth]);
}
@@ start_receive
/* When `receives[nth]` is finished, the elements are there. */
static int start_receive(run *r, int nth, int from, int tag, span to) {
    return MPI_Irecv(to.first, to.len, r->type, from, tag, r->comm, &r->receives[nth]);
}
@@ finish
static int finish(MPI_Request *request) {
    return MPI_Wait(request, MPI_STATUS_IGNORE);
}
@@ finish_all
static int finish_all(int n, MPI_Request *requests) {
    return MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}
@@ copy
/* Copies within the rank. Elements with gaps go by a message to itself, which leaves gaps alone. */
static int copy(run *r, span to, span from) {
    if (to.first == from.first || to.len == 0) {
        return MPI_SUCCESS;
    }
    if (r->dense) {
        memmove(to.first, from.first, (size_t)to.len * (size_t)r->extent);
        return MPI_SUCCESS;
    }
    return MPI_Sendrecv(from.first, from.len, r->type, r->rank, COPIES, to.first, to.len, r->type,
                        r->rank, COPIES, r->comm, MPI_STATUS_IGNORE);
}
@@ reduce
/* to = from op to */
static int reduce(run *r, span to, span from) {
    return MPI_Reduce_local(from.first, to.first, to.len, r->type, r->op);
}
@@ fold
/* to = from[n - 1] op (... op (from[1] op from[0])); `to` may be any of them. */
static int fold(run *r, span to, int n, const span *from) {
    span all = to;
    for (int i = 1; i < n; i++) {
        if (from[i].first == to.first) {
            all.first = r->spare.first;
        }
    }
    TRY(copy(r, all, from[0]));
    for (int i = 1; i < n; i++) {
        TRY(reduce(r, all, from[i]));
    }
    return copy(r, to, all);
}
@@ own_communicator
/* Messages go through a duplicate of the caller's communicator, so that none is taken for one of
 * the caller's. It is made at the first call, and freed with the communicator. */
static int free_own(MPI_Comm comm, int key, void *own, void *extra) {
    (void)comm, (void)key, (void)extra;
    const int error = MPI_Comm_free((MPI_Comm *)own);
    free(own);
    return error;
}

static int own_communicator(MPI_Comm comm, MPI_Comm *result) {
    static int key = MPI_KEYVAL_INVALID;
    if (key == MPI_KEYVAL_INVALID) {
        TRY(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_own, &key, NULL));
    }
    MPI_Comm *own = NULL;
    int known = 0;
    TRY(MPI_Comm_get_attr(comm, key, &own, &known));
    if (!known) {
        own = malloc(sizeof *own);
        if (own == NULL) {
            return MPI_ERR_NO_MEM;
        }
        int error = MPI_Comm_dup(comm, own);
        if (error == MPI_SUCCESS) {
            error = MPI_Comm_set_attr(comm, key, own);
            if (error != MPI_SUCCESS) {
                MPI_Comm_free(own);
            }
        }
        if (error != MPI_SUCCESS) {
            free(own);
            return error;
        }
    }
    *result = *own;
    return MPI_SUCCESS;
}
