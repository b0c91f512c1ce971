/* A job of NCCL as programs write it, with a library that has no NCCL behind it: LIBRARY RANK NRANKS FILE [die|each|revoke]. */
#include "job.h"

/* Rank 1 dies; the others hear of it from another call, and by the communicator. */
static int die(void *comm, void *from, void *to, void *stream) {
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    if (rank == 1) {
        usleep(300000);
        raise(SIGKILL);
    }
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    int state = 0;
    while (state == 0) {
        usleep(10000);
        NCCL(ncclCommGetAsyncError, (void *, int *), comm, &state);
    }
    if (state != 6 || strstr(last_error(), "rank 1") == NULL) {
        fprintf(stderr, "rank %d: the state is %d: %s\n", rank, state, last_error());
        return 1;
    }
    IS(6, nccl, ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    NCCL(ncclCommAbort, (void *), comm);
    puts(last_error());
    return 0;
}

/* Memory of the library's, of which operations take any. */
static void lend_memory(void *comm, void *stream) {
    void *lent = NULL, *none = &lent;
    const float one = (float)(rank + 1);
    float got[2], sent[2] = {one, 2 * one};
    NCCL(ncclMemAlloc, (void **, size_t), &lent, sizeof sent);
    CUDA(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), (uint64_t)(uintptr_t)lent, sent, sizeof sent);
    NCCL(ncclAllReduce, REDUCE, lent, lent, 2, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), got, (uint64_t)(uintptr_t)lent, sizeof got);
    if (got[0] != (float)(nranks * (nranks + 1) / 2) || got[1] != 2 * got[0]) exit(13);
    /* Ranks use it where it is from the second call on. */
    void *more = NULL;
    NCCL(ncclMemAlloc, (void **, size_t), &more, sizeof sent);
    for (int i = 0; i < 5; ++i) {
        NCCL(ncclAllReduce, REDUCE, lent, more, 2, F32, SUM, comm, stream);
        CUDA(cuStreamSynchronize, (void *), stream);
        float sum[2];
        CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), sum, (uint64_t)(uintptr_t)more, sizeof sum);
        if (sum[0] != (float)nranks * got[0] || sum[1] != (float)nranks * got[1]) exit(22);
    }
    NCCL(ncclMemFree, (void *), more);
    /* Smaller buffers than 64 KiB are copied. */
    enum { LARGE = 1 << 15 };
    static float large[LARGE];
    void *both[2];
    for (int i = 0; i < 2; ++i) NCCL(ncclMemAlloc, (void **, size_t), &both[i], sizeof large);
    for (int i = 0; i < LARGE; ++i) large[i] = (float)(rank + i % 7);
    CUDA(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), (uint64_t)(uintptr_t)both[0], large, sizeof large);
    for (int call = 0; call < 5; ++call) {
        NCCL(ncclAllReduce, REDUCE, both[0], both[1], LARGE, F32, SUM, comm, stream);
        CUDA(cuStreamSynchronize, (void *), stream);
        CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), large, (uint64_t)(uintptr_t)both[1], sizeof large);
        for (int i = 0; i < LARGE; ++i) {
            if (large[i] != (float)(nranks * (nranks - 1) / 2 + nranks * (i % 7))) exit(24);
        }
    }
    for (int i = 0; i < 2; ++i) NCCL(ncclMemFree, (void *), both[i]);
    IS(4, nccl, ncclMemFree, (void *), (char *)lent + 4);
    NCCL(ncclMemFree, (void *), lent);
    IS(4, nccl, ncclMemFree, (void *), lent);
    NCCL(ncclMemFree, (void *), NULL);
    NCCL(ncclMemAlloc, (void **, size_t), &none, 0);
    if (none != NULL) exit(14);
    IS(4, nccl, ncclMemAlloc, (void **, size_t), NULL, 8);
    IS(1, nccl, ncclMemAlloc, (void **, size_t), &lent, (size_t)1 << 60);
}

/* An average whose contributions are multiplied, of a number for which that is another one than the quotient of the sum. */
static int average(void *comm, void *stream) {
    const float third = 1.0f / (float)nranks;
    float number = 1, expected = 1;
    while (expected == number) {
        number += 1;
        expected = number * third + number * third;
        for (int i = 2; i < nranks; ++i) expected += number * third;
    }
    void *const at = buffer(number, 1);
    NCCL(ncclAllReduce, REDUCE, at, at, 1, F32, AVG, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("AllReduce of parts", at, 0, 1, expected, 0);
    const int i32 = 2;
    int value = 7;
    CUDA(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), (uint64_t)(uintptr_t)at, &value, sizeof value);
    NCCL(ncclAllReduce, REDUCE, at, at, 1, i32, AVG, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), &value, (uint64_t)(uintptr_t)at, sizeof value);
    printf("%d\n", value);
    return 0;
}

/* What comes after a revocation is refused, and a part of the ranks goes on. */
static int revoke_comm(void *comm, void *from, void *to, void *stream) {
    void *rest = NULL;
    const int last = nranks - 1;
    int count = 0;
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    IS(4, nccl, ncclCommRevoke, (void *, int), comm, 1);
    NCCL(ncclCommRevoke, (void *, int), NULL, 0);
    NCCL(ncclCommRevoke, (void *, int), comm, 0);
    IS(5, nccl, ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    if (strstr(last_error(), "ncclCommRevoke") == NULL) return 1;
    NCCL(ncclCommSplit, (void *, int, int, void **, void *), comm, rank == last ? 1 : 0, 0, &rest, NULL);
    NCCL(ncclCommCount, (void *, int *), rest, &count);
    if (count != (rank == last ? 1 : last)) return 1;
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, rest, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("AllReduce of a part", to, 0, COUNT, (float)(rank == last ? nranks : last * (last + 1) / 2), (float)count);
    NCCL(ncclCommDestroy, (void *), rest);
    if (rank != last) {
        NCCL(ncclCommShrink, (void *, const int *, int, void **, void *, int), comm, &last, 1, &rest, NULL, 0);
        NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, rest, stream);
        CUDA(cuStreamSynchronize, (void *), stream);
        has("AllReduce of the rest", to, 0, COUNT, (float)(last * (last + 1) / 2), (float)last);
        NCCL(ncclCommDestroy, (void *), rest);
    }
    NCCL(ncclCommDestroy, (void *), comm);
    puts("revoked");
    return 0;
}

/* A graph that is launched twice; the first of a shape cannot be in one. */
static void capture(void *comm, void *stream) {
    const float sum = (float)(nranks * (nranks + 1) / 2), n = (float)nranks;
    void *const from = buffer((float)(rank + 1), 2 * COUNT), *const to = buffer(-1, 2 * COUNT);
    CUDA(cuStreamBeginCapture_v2, (void *, int), stream, 0);
    IS(5, nccl, ncclAllReduce, REDUCE, from, to, 2 * COUNT - 1, F32, SUM, comm, stream);
    if (strstr(last_error(), "a graph captures the first") == NULL) exit(21);
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    void *const runs = captured(stream);
    for (int i = 0; i < 2; ++i) {
        launch_on_zeros(runs, to, stream);
        CUDA(cuStreamSynchronize, (void *), stream);
        has("AllReduce of a graph", to, 0, COUNT, sum, n);
    }
    CUDA(cuGraphExecDestroy, (void *), runs);
}

#define PREMUL (int *, void *, int, int, void *)

/* Sums of multiples, by a number of the host and by one of the device. */
static void multiply(void *comm, void *stream) {
    enum { I32 = 2, F16 = 6, F64 = 8, F8E4M3 = 10, DEVICE = 0, HOST = 1 };
    const float sum = (float)(nranks * (nranks + 1) / 2), n = (float)nranks;
    float half = 0.5f, twice = 2;
    int op = -1, other = -1, third = -1;
    void *const from = buffer((float)(rank + 1), COUNT), *const to = buffer(-1, COUNT), *const number = buffer(2, 4);
    void *const rows = buffer((float)(10 * rank), nranks * COUNT);
    NCCL(ncclRedOpCreatePreMulSum, PREMUL, &op, &half, F32, HOST, comm);
    half = 9;
    NCCL(ncclRedOpCreatePreMulSum, PREMUL, &other, number, F32, DEVICE, comm);
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, op, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("AllReduce of halves", to, 0, COUNT, sum / 2, n / 2);
    has("its input", from, 0, COUNT, (float)(rank + 1), 1);
    NCCL(ncclReduceScatter, REDUCE, rows, to, COUNT, F32, other, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("ReduceScatter of doubles", to, 0, COUNT, 10 * n * (n - 1), 2 * n);
    /* The number of the device is read when the operation runs. */
    twice = 4;
    CUDA(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), (uint64_t)(uintptr_t)number, &twice, sizeof twice);
    NCCL(ncclReduce, ROOTED, from, to, COUNT, F32, other, 1, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    if (rank == 1) has("Reduce of fourfolds", to, 0, COUNT, 4 * sum, 4 * n);
    /* An operator may go before the group that has it ends; in place. */
    NCCL(ncclGroupStart, (void));
    NCCL(ncclAllReduce, REDUCE, from, from, COUNT, F32, op, comm, stream);
    NCCL(ncclRedOpDestroy, (int, void *), op, comm);
    NCCL(ncclGroupEnd, (void));
    CUDA(cuStreamSynchronize, (void *), stream);
    has("AllReduce of halves in place", from, 0, COUNT, sum / 2, n / 2);
    /* Integers, f16, f64 and fp8: each of one type, and of as many bits as it has. */
    const int three = 3;
    int32_t ints[3] = {rank, 5, -rank};
    const uint16_t one_and_half = 0x3e00;
    uint16_t halves[2] = {0x3c00, (uint16_t)(0x4000 + rank)};
    const double tiny = 0x1p-40;
    double doubles[2] = {1, (double)rank};
    const uint8_t one = 0x38;
    uint8_t eights[3] = {0x38, 0x38, 0x7e};
    struct {
        const void *number;
        void *values;
        size_t count;
        int type, size;
    } types[] = {
        {&three, ints, 3, I32, 4}, {&one_and_half, halves, 2, F16, 2}, {&tiny, doubles, 2, F64, 8}, {&one, eights, 3, F8E4M3, 1}};
    for (int i = 0; i < 4; ++i) {
        NCCL(ncclRedOpCreatePreMulSum, PREMUL, &third, (void *)types[i].number, types[i].type, HOST, comm);
        const size_t bytes = types[i].count * (size_t)types[i].size;
        CUDA(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), (uint64_t)(uintptr_t)to, types[i].values, bytes);
        NCCL(ncclAllReduce, REDUCE, to, to, types[i].count, types[i].type, third, comm, stream);
        CUDA(cuStreamSynchronize, (void *), stream);
        CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), types[i].values, (uint64_t)(uintptr_t)to, bytes);
        NCCL(ncclRedOpDestroy, (int, void *), third, comm);
    }
    const int others = nranks * (nranks - 1) / 2;
    if (ints[0] != 3 * others || ints[1] != 15 * nranks || ints[2] != -3 * others) exit(17);
    /* 3 x 1.5 is 4.5. */
    if (nranks == 3 && halves[0] != 0x4480) exit(18);
    /* 3, and the largest number, as sums saturate. */
    if (nranks == 3 && (eights[0] != 0x44 || eights[2] != 0x7e)) exit(23);
    if (doubles[0] != nranks * tiny || doubles[1] != others * tiny) exit(19);
    NCCL(ncclAllReduce, REDUCE, NULL, NULL, 0, F32, other, comm, stream);
    IS(4, nccl, ncclAllReduce, REDUCE, from, to, COUNT, F32, op, comm, stream);
    IS(4, nccl, ncclAllReduce, REDUCE, from, to, COUNT, F16, other, comm, stream);
    IS(4, nccl, ncclRedOpDestroy, (int, void *), op, comm);
    IS(4, nccl, ncclRedOpDestroy, (int, void *), SUM, comm);
    IS(4, nccl, ncclRedOpDestroy, (int, void *), other, NULL);
    IS(4, nccl, ncclRedOpCreatePreMulSum, PREMUL, NULL, &half, F32, HOST, comm);
    IS(4, nccl, ncclRedOpCreatePreMulSum, PREMUL, &op, NULL, F32, HOST, comm);
    IS(4, nccl, ncclRedOpCreatePreMulSum, PREMUL, &op, &half, 12, HOST, comm);
    IS(4, nccl, ncclRedOpCreatePreMulSum, PREMUL, &op, &half, F32, 2, comm);
    IS(4, nccl, ncclRedOpCreatePreMulSum, PREMUL, &op, (char *)number + 1, F32, DEVICE, comm);
    IS(4, nccl, ncclRedOpCreatePreMulSum, PREMUL, &op, &half, F32, HOST, NULL);
    NCCL(ncclRedOpDestroy, (int, void *), other, comm);
}

/* Configurations of calls. */
static void configure(void *comm, void *stream) {
    const float sum = (float)(nranks * (nranks + 1) / 2), n = (float)nranks;
    void *const from = buffer((float)(rank + 1), COUNT), *const to = buffer(-1, COUNT);
    Config config = CONFIG;
    config.most = 2;
    CUDA(cuEventCreate, (void **, unsigned), &config.launched, 2);
    NCCL(ncclAllReduceConfig, REDUCE_CONFIG, from, to, COUNT, F32, SUM, comm, stream, &config);
    CUDA(cuEventSynchronize, (void *), config.launched);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("AllReduceConfig", to, 0, COUNT, sum, n);
    config.selection = "allreduce:nvls";
    IS(5, nccl, ncclAllReduceConfig, REDUCE_CONFIG, from, to, COUNT, F32, SUM, comm, stream, &config);
    if (strstr(last_error(), "algSelection") == NULL) exit(20);
    config.forces = 0;
    NCCL(ncclAllReduceConfig, REDUCE_CONFIG, from, to, COUNT, F32, SUM, comm, stream, &config);
    config.magic = 1;
    IS(4, nccl, ncclAllReduceConfig, REDUCE_CONFIG, from, to, COUNT, F32, SUM, comm, stream, &config);
}

#define SEND (const void *, size_t, int, int, void *, void *)
#define RECV (void *, size_t, int, int, void *, void *)

/* Messages: in one direction, in a ring, several to one rank in their order, between all, and to oneself. */
static void send_and_receive(void *comm, void *stream, void *other) {
    const int next = (rank + 1) % nranks, before = (rank + nranks - 1) % nranks, n = 64;
    void *const mine = buffer((float)(100 * rank), 4 * n), *const got = buffer(-1, 4 * n);
    if (rank == 0) NCCL(ncclSend, SEND, mine, (size_t)n, F32, 1, comm, stream);
    if (rank == 1) {
        NCCL(ncclRecv, RECV, got, (size_t)n, F32, 0, comm, stream);
        CUDA(cuStreamSynchronize, (void *), stream);
        has("Recv", got, 0, n, 0, 1);
    }
    /* Each rank waits for the one before it, but the last, which sends first in a group whose receive comes first. */
    NCCL(ncclGroupStart, (void));
    if (rank == nranks - 1) {
        NCCL(ncclRecv, RECV, got, (size_t)n, F32, before, comm, stream);
        NCCL(ncclSend, SEND, mine, (size_t)n, F32, 0, comm, other);
        NCCL(ncclGroupEnd, (void));
    } else {
        NCCL(ncclRecv, RECV, got, (size_t)n, F32, before, comm, stream);
        NCCL(ncclGroupEnd, (void));
        NCCL(ncclSend, SEND, mine, (size_t)n, F32, next, comm, stream);
    }
    CUDA(cuStreamSynchronize, (void *), stream);
    has("Recv of a chain", got, 0, n, (float)(100 * before), 1);
    NCCL(ncclGroupStart, (void));
    NCCL(ncclSend, SEND, mine, (size_t)n, F32, next, comm, stream);
    NCCL(ncclRecv, RECV, got, (size_t)n, F32, before, comm, stream);
    NCCL(ncclGroupEnd, (void));
    CUDA(cuStreamSynchronize, (void *), stream);
    has("Recv of a ring", got, 0, n, (float)(100 * before), 1);
    /* Two messages of two lengths, and a collective between them. */
    NCCL(ncclGroupStart, (void));
    if (rank == 2) {
        NCCL(ncclSend, SEND, mine, (size_t)n, F32, 0, comm, stream);
        NCCL(ncclSend, SEND, (float *)mine + n, (size_t)2 * n, F32, 0, comm, stream);
    }
    NCCL(ncclAllReduce, REDUCE, (float *)mine + 3 * n, (float *)mine + 3 * n, (size_t)1, F32, SUM, comm, stream);
    if (rank == 0) {
        NCCL(ncclRecv, RECV, (float *)got + 2 * n, (size_t)n, F32, 2, comm, other);
        NCCL(ncclRecv, RECV, got, (size_t)2 * n, F32, 2, comm, other);
    }
    NCCL(ncclGroupEnd, (void));
    CUDA(cuStreamSynchronize, (void *), other);
    CUDA(cuStreamSynchronize, (void *), stream);
    if (rank == 0) {
        has("the first message", got, 2 * n, n, 200, 1);
        float value;
        CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), &value, (uint64_t)(uintptr_t)got, sizeof value);
        if (value != 200 + (float)(n % 5)) exit(16);
    }
    /* To oneself, beside messages to another rank; what has no partner is refused. */
    NCCL(ncclGroupStart, (void));
    NCCL(ncclRecv, RECV, got, (size_t)n, F32, rank, comm, other);
    NCCL(ncclSend, SEND, mine, (size_t)n, F32, next, comm, stream);
    NCCL(ncclSend, SEND, mine, (size_t)n, F32, rank, comm, stream);
    NCCL(ncclRecv, RECV, (float *)got + n, (size_t)n, F32, before, comm, stream);
    NCCL(ncclGroupEnd, (void));
    CUDA(cuStreamSynchronize, (void *), stream);
    has("a message to oneself", got, 0, n, (float)(100 * rank), 1);
    IS(5, nccl, ncclSend, SEND, mine, (size_t)n, F32, rank, comm, stream);
    NCCL(ncclGroupStart, (void));
    NCCL(ncclSend, SEND, mine, (size_t)n, F32, rank, comm, stream);
    NCCL(ncclRecv, RECV, got, (size_t)2 * n, F32, rank, comm, stream);
    IS(5, nccl, ncclGroupEnd, (void));
    IS(4, nccl, ncclSend, SEND, mine, (size_t)n, F32, nranks, comm, stream);
    IS(4, nccl, ncclRecv, RECV, got, (size_t)n, F32, -1, comm, stream);
    NCCL(ncclSend, SEND, NULL, 0, F32, next, comm, stream);
}

#define SHRINK (void *, const int *, int, void **, void *, int)

/* All but rank 1 go on, twice; which ranks they are is told wrongly before. */
static void shrink(void *comm, void *to, void *stream) {
    const int one = 1, twice[] = {1, 1}, none = nranks, all[] = {0, 1, 2};
    void *rest = NULL;
    if (rank == 1) {
        IS(4, nccl, ncclCommShrink, SHRINK, comm, &one, 1, &rest, NULL, 0);
        return;
    }
    IS(4, nccl, ncclCommShrink, SHRINK, comm, twice, 2, &rest, NULL, 0);
    IS(4, nccl, ncclCommShrink, SHRINK, comm, &none, 1, &rest, NULL, 0);
    IS(4, nccl, ncclCommShrink, SHRINK, comm, all, nranks, &rest, NULL, 0);
    IS(4, nccl, ncclCommShrink, SHRINK, comm, NULL, 1, &rest, NULL, 0);
    IS(4, nccl, ncclCommShrink, SHRINK, comm, &one, 1, NULL, NULL, 0);
    const int before = rank;
    for (int i = 0; i < 2; ++i) {
        int now = -1;
        NCCL(ncclCommShrink, SHRINK, comm, &one, 1, &rest, NULL, 0);
        NCCL(ncclCommUserRank, (void *, int *), rest, &now);
        if (now != (before == 0 ? 0 : before - 1)) exit(15);
        void *const mine = buffer((float)(now + 1), COUNT);
        NCCL(ncclAllReduce, REDUCE, mine, to, COUNT, F32, SUM, rest, stream);
        CUDA(cuStreamSynchronize, (void *), stream);
        has("AllReduce of the rest", to, 0, COUNT, (float)(nranks * (nranks - 1) / 2), (float)(nranks - 1));
        NCCL(ncclCommDestroy, (void *), rest);
    }
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    rank = atoi(argv[2]);
    nranks = atoi(argv[3]);
    begin(argv[1], rank);
    void *stream, *other, *comm = NULL, *part = NULL;
    int number, state;
    CUDA(cuStreamCreate, (void **, unsigned), &stream, 1);
    CUDA(cuStreamCreate, (void **, unsigned), &other, 1);
    NCCL(ncclGetVersion, (int *), &number);
    if (number < 23000) return 3;

    const Id id = meet(argv[4]);
    IS(4, nccl, ncclCommInitRank, (void **, int, Id, int), &comm, nranks, id, nranks);
    IS(4, nccl, ncclCommInitRank, (void **, int, Id, int), NULL, nranks, id, rank);
    const Config wrong = {.size = sizeof wrong, .magic = 1};
    IS(4, nccl, ncclCommInitRankConfig, (void **, int, Id, int, const void *), &comm, nranks, id, rank, &wrong);
    NCCL(ncclGroupStart, (void));
    NCCL(ncclCommInitRank, (void **, int, Id, int), &comm, nranks, id, rank);
    if (comm != NULL) return 10;
    NCCL(ncclGroupEnd, (void));
    NCCL(ncclCommCount, (void *, int *), comm, &number);
    if (number != nranks) return 4;
    NCCL(ncclCommUserRank, (void *, int *), comm, &number);
    if (number != rank) return 5;
    NCCL(ncclCommCuDevice, (void *, int *), comm, &number);
    if (number != rank) return 6;

    void *const from = buffer((float)(rank + 1), COUNT), *const to = buffer(-1, COUNT);
    if (argc > 5 && strcmp(argv[5], "each") == 0) return average(comm, stream);
    if (argc > 5 && strcmp(argv[5], "revoke") == 0) return revoke_comm(comm, from, to, stream);
    if (argc > 5) return die(comm, from, to, stream);
    void *const wide = buffer(-1, nranks * COUNT), *const rows = buffer((float)(10 * rank), nranks * COUNT);
    const float sum = (float)(nranks * (nranks + 1) / 2), n = (float)nranks;
    for (int i = 0; i < 3; ++i) NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("AllReduce", to, 0, COUNT, sum, n);
    NCCL(ncclCommGetAsyncError, (void *, int *), comm, &state);
    if (state != 0) return 7;

    /* A group over two streams, in which a wrong operation is an error at the call and at the end. */
    NCCL(ncclGroupStart, (void));
    NCCL(ncclGroupStart, (void));
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, MAX, comm, stream);
    NCCL(ncclGroupEnd, (void));
    NCCL(ncclAllGather, COPIED, from, wide, COUNT, F32, comm, other);
    NCCL(ncclGroupEnd, (void));
    CUDA(cuStreamSynchronize, (void *), stream);
    CUDA(cuStreamSynchronize, (void *), other);
    has("AllReduce, max", to, 0, COUNT, n, 1);
    for (int r = 0; r < nranks; ++r) has("AllGather", wide, r * COUNT, COUNT, (float)(r + 1), 1);
    NCCL(ncclGroupStart, (void));
    IS(4, nccl, ncclAllReduce, REDUCE, from, to, COUNT, 99, SUM, comm, stream);
    IS(4, nccl, ncclGroupEnd, (void));
    IS(5, nccl, ncclGroupEnd, (void));

    NCCL(ncclReduceScatter, REDUCE, rows, to, COUNT, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("ReduceScatter", to, 0, COUNT, 10 * n * (n - 1) / 2, n);
    NCCL(ncclBroadcast, COPIED_ROOT, from, to, COUNT, F32, 1, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("Broadcast", to, 0, COUNT, 2, 1);
    NCCL(ncclReduce, ROOTED, from, to, COUNT, F32, AVG, 2, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("Reduce", to, 0, COUNT, rank == 2 ? sum / n : 2, 1);
    NCCL(ncclAlltoAll, COPIED, wide, rows, COUNT, F32, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    for (int r = 0; r < nranks; ++r) has("AlltoAll", rows, r * COUNT, COUNT, (float)(rank + 1), 1);
    /* In place, and nothing. */
    NCCL(ncclAllReduce, REDUCE, from, from, COUNT, F32, SUM, comm, stream);
    NCCL(ncclAllReduce, REDUCE, NULL, NULL, 0, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("AllReduce in place", from, 0, COUNT, sum, n);

    IS(4, nccl, ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, NULL, stream);
    IS(4, nccl, ncclBroadcast, COPIED_ROOT, from, to, COUNT, F32, nranks, comm, stream);
    IS(4, nccl, ncclAllReduce, REDUCE, (char *)from + 1, to, COUNT, F32, SUM, comm, stream);
    send_and_receive(comm, stream, other);
    IS(5, nccl, ncclCommWindowRegister, (void *, void *, size_t, void **, int), comm, from, 4, &part, 0);
    if (strstr(last_error(), "ncclCommWindowRegister") == NULL) return 12;
    lend_memory(comm, stream);
    multiply(comm, stream);
    configure(comm, stream);
    capture(comm, stream);

    NCCL(ncclCommSplit, (void *, int, int, void **, void *), comm, rank == 0 ? -1 : 0, -rank, &part, NULL);
    if ((part == NULL) != (rank == 0)) return 9;
    if (part != NULL) {
        void *const mine = buffer((float)rank, COUNT);
        NCCL(ncclAllReduce, REDUCE, mine, to, COUNT, F32, SUM, part, stream);
        CUDA(cuStreamSynchronize, (void *), stream);
        has("AllReduce of a part", to, 0, COUNT, sum - n, n - 1);
        NCCL(ncclCommDestroy, (void *), part);
    }
    shrink(comm, to, stream);
    NCCL(ncclCommFinalize, (void *), comm);
    NCCL(ncclCommDestroy, (void *), comm);
    IS(4, nccl, ncclCommDestroy, (void *), comm);
    NCCL(ncclCommDestroy, (void *), NULL);
    printf("rank %d is done\n", rank);
    return 0;
}
