/*
 * Roundelay: proved collectives between the processes of one host, and their compiler.
 *
 * A world is a number of processes that run collectives together; each of them is a rank. All ranks make the same calls
 * in the same order, as in MPI and NCCL. A function that can fail returns ROUNDELAY_SUCCESS, or the number of the code of
 * its error: 428 is E0428, which `roundelay explain E0428` explains. The text of the error is roundelay_last_error().
 *
 * Handles are numbers; 0 is none. A handle that was given back, or was never made, is an error (E0406). Functions may be
 * called by any thread. The calls of one world must be asked for in one order, so two threads that call for the same
 * world at once need an order of their own; a second call while another is in progress is E0412.
 *
 * Link with -lroundelay, or by `pkg-config --cflags --libs roundelay`.
 */
#ifndef ROUNDELAY_H
#define ROUNDELAY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns: 0, -1 (of roundelay_wait alone), or the number of an error's code. */
#define ROUNDELAY_SUCCESS 0
#define ROUNDELAY_UNDER_WAY (-1)

/* Collectives. `count` is c in the lengths of input and output, as elements at each of n ranks. */
enum {
    ROUNDELAY_ALL_REDUCE = 0,     /* every rank gets the reduction of all inputs; c, c */
    ROUNDELAY_REDUCE_SCATTER = 1, /* rank r gets block r of the reduction; n*c, c */
    ROUNDELAY_ALL_GATHER = 2,     /* every rank gets all inputs, in the order of ranks; c, n*c */
    ROUNDELAY_BROADCAST = 3,      /* every rank gets the root's input; c at the root, c */
    ROUNDELAY_REDUCE = 4,         /* the root gets the reduction of all inputs; c, c at the root */
    ROUNDELAY_SCATTER = 5,        /* rank r gets block r of the root's input; n*c at the root, c */
    ROUNDELAY_GATHER = 6,         /* the root gets all inputs, in the order of ranks; c, n*c at the root */
    ROUNDELAY_ALL_TO_ALL = 7      /* rank r gets block r of every rank's input; n*c, n*c */
};

/* Any collective, where one may be chosen. */
#define ROUNDELAY_ANY (-1)

/*
 * Element types. The codes are NCCL's. The FLOAT8 types are those of OFP8, and their reductions saturate (SATFINITE): a
 * finite result beyond the largest finite value becomes the largest one, with its sign.
 */
enum {
    ROUNDELAY_INT8 = 0,
    ROUNDELAY_UINT8 = 1,
    ROUNDELAY_INT32 = 2,
    ROUNDELAY_UINT32 = 3,
    ROUNDELAY_INT64 = 4,
    ROUNDELAY_UINT64 = 5,
    ROUNDELAY_FLOAT16 = 6,
    ROUNDELAY_FLOAT32 = 7,
    ROUNDELAY_FLOAT64 = 8,
    ROUNDELAY_BFLOAT16 = 9,
    ROUNDELAY_FLOAT8_E4M3 = 10,
    ROUNDELAY_FLOAT8_E5M2 = 11
};

/*
 * Reduce ops. Those that NCCL has are NCCL's codes. Integers wrap around; an average of them truncates toward zero. The
 * bitwise and the logical ops are for integers (E0431); what is not 0 is true, and a logical result is 0 or 1.
 */
enum {
    ROUNDELAY_SUM = 0,
    ROUNDELAY_PROD = 1,
    ROUNDELAY_MAX = 2,
    ROUNDELAY_MIN = 3,
    ROUNDELAY_AVG = 4,
    ROUNDELAY_BAND = 5,
    ROUNDELAY_BOR = 6,
    ROUNDELAY_BXOR = 7,
    ROUNDELAY_LAND = 8,
    ROUNDELAY_LOR = 9,
    ROUNDELAY_LXOR = 10
};

typedef uint64_t roundelay_world_t;
typedef uint64_t roundelay_request_t;

/*
 * What a world is made with. Begin with ROUNDELAY_OPTIONS_INIT. Without a flag for it, the environment variable
 * ROUNDELAY_CHECK (`first` or `never`) says whether first calls check themselves, ROUNDELAY_WAYS (`measured`, `usual`
 * or `kept`) how ways are chosen, and ROUNDELAY_SITES (0 or 1) whether sites are kept; another value is E0406.
 */
typedef struct roundelay_options {
    uint64_t size;       /* of this structure, as the caller knows it */
    uint64_t timeout_ms; /* the deadline of every wait in milliseconds; 0 is the default, a minute */
    uint32_t level;      /* of the optimizer: 0 nothing, 1 drops signals and joins moves, 2 fuses moves */
    uint32_t flags;      /* any of the following, added up */
} roundelay_options_t;

/* Flags of options. */
enum {
    /* The first call of each shape checks itself on known data: E0433 on all ranks for wrong data. All ranks say so. */
    ROUNDELAY_CHECK_FIRST = 1,
    /* No call checks itself, whatever ROUNDELAY_CHECK says. */
    ROUNDELAY_CHECK_NEVER = 2,
    /* Data takes the usual ways, and nothing is measured (roundelay_ways). The flag of rank 0 of the host holds. */
    ROUNDELAY_USUAL_WAYS = 4,
    /*
     * `roundelay ps` tells the places in the program from which the calls of this rank come: lines of Python, or else
     * addresses of code, such as train+0x1139, of which `addr2line -e train 0x1139` tells the line. It takes some
     * microseconds a call.
     */
    ROUNDELAY_SITES = 8
};

#define ROUNDELAY_OPTIONS_INIT {sizeof(roundelay_options_t), 0, 2, 0}

/* The version of the library, such as "0.1.0". */
const char *roundelay_version(void);

/* The text of the last error of the calling thread, "" if there was none. It stays until the thread's next error. */
const char *roundelay_last_error(void);

/* Makes an id of 128 bytes, by which one world meets. One process makes it and hands it to the others. */
int roundelay_unique_id(uint8_t *id);

/*
 * Joins the world that a launcher started this process in: `roundelay launch`, torchrun, mpirun of Open MPI, MPICH or
 * Intel MPI, or srun. `options` may be NULL. Returns when all ranks have joined, or E0427 with what was tried.
 */
int roundelay_init_from_env(const roundelay_options_t *options, roundelay_world_t *world);

/* Joins the world of an id of 128 bytes, as rank `rank` of `nranks`. */
int roundelay_init_id(const uint8_t *id, uint32_t nranks, uint32_t rank, const roundelay_options_t *options,
                      roundelay_world_t *world);

/*
 * Brings bytes together: `mine` has `bytes` of them, and `all` gets as many of each rank, in the order of ranks. It
 * returns 0, or anything else if it failed.
 */
typedef int (*roundelay_allgather_t)(const void *mine, void *all, uint64_t bytes, void *context);

/*
 * Joins a world by what brings the processes together already, such as MPI or a store. It is called once, and once more
 * where ranks are on several hosts: the second time its bytes have the key of the job, by which the hosts meet by TCP.
 */
int roundelay_init_allgather(uint32_t nranks, uint32_t rank, roundelay_allgather_t allgather, void *context,
                             const roundelay_options_t *options, roundelay_world_t *world);

/* The rank of this process, counted from 0. */
int roundelay_rank(roundelay_world_t world, uint32_t *rank);

/* The number of ranks. */
int roundelay_nranks(roundelay_world_t world, uint32_t *nranks);

/*
 * Makes a call, and returns when this rank is done. A buffer without elements may be NULL. In place are equal pointers
 * for collectives whose input and output are equally long; the input of an all-gather that is block r of the output of
 * rank r; and so on, as in NCCL. All-to-all has no form in place. Other overlaps are refused (E0406).
 *
 * Errors: E0411 for a root that is no rank; E0414 where ranks make different calls; E0405 where a rank does not come
 * within the deadline; E0428 where one ended; E0413 after another rank gave up. After the last three every later call
 * fails with the first cause, and outputs are undefined.
 */
int roundelay_call(roundelay_world_t world, int collective, const void *input, void *output, uint64_t count, int dtype,
                   int op, uint32_t root);

/*
 * Starts a call, and returns at once. Calls are made in the order in which they were started, by a thread of the
 * library; roundelay_call waits for those under way. The buffers are the library's until the request is done.
 */
int roundelay_start(roundelay_world_t world, int collective, const void *input, void *output, uint64_t count, int dtype,
                    int op, uint32_t root, roundelay_request_t *request);

/*
 * Makes a call with a count for each block, as MPI's v forms have it, and returns when this rank is done. A buffer has
 * these blocks, in the order of ranks:
 *
 *   all-gather      input: 1, its own                output: n, one of each rank
 *   reduce-scatter  input: n, one for each rank      output: 1, its own
 *   gather          input: 1, its own                output: n at the root, elsewhere none
 *   scatter         input: n at the root, else none  output: 1, its own
 *   all-to-all      input: n, one for each rank      output: n, one of each rank
 *
 * `input_counts[i]` is the number of elements of block i, which may be 0, and `input_starts[i]` the place of its first
 * element, in elements from `input`; places may have any order and may be negative. Where `input_starts` is NULL, the
 * blocks lie one behind the other. So for the output. Arrays of no blocks may be NULL. In place, a block of the input is
 * the same block of the output, as in roundelay_call.
 *
 * Errors beside those of roundelay_call: E0432 for counts whose sum is beyond 2^46, for two counts of one block, and for
 * blocks of the output that overlap; E0404 for an address that is not aligned; E0414 where two ranks give different
 * counts for one block; E0319 for an algorithm (roundelay_use) that is right for equal counts alone.
 */
int roundelay_call_v(roundelay_world_t world, int collective, const void *input, const uint64_t *input_counts,
                     const int64_t *input_starts, void *output, const uint64_t *output_counts,
                     const int64_t *output_starts, int dtype, int op, uint32_t root);

/* Starts a call with a count for each block, as roundelay_start does with one count. The arrays may be freed at once. */
int roundelay_start_v(roundelay_world_t world, int collective, const void *input, const uint64_t *input_counts,
                      const int64_t *input_starts, void *output, const uint64_t *output_counts,
                      const int64_t *output_starts, int dtype, int op, uint32_t root, roundelay_request_t *request);

/*
 * Waits for a call that was started, for so many milliseconds at most, or for ever where they are negative. Returns
 * ROUNDELAY_UNDER_WAY where it is not done, and nothing else happens; else the call's outcome, and the handle is gone.
 * 0 milliseconds ask whether it is done.
 */
int roundelay_wait(roundelay_request_t request, int64_t timeout_ms);

/* Gives a request back without waiting. The call is made all the same; its error is that of the next call. */
int roundelay_release(roundelay_request_t request);

/*
 * Sends to rank `to`, which receives as many elements of the same type; returns when the buffer may be used again.
 * Messages have nothing to do with calls and their order, and another thread may be in a call meanwhile.
 */
int roundelay_send(roundelay_world_t world, const void *buffer, uint64_t count, int dtype, uint32_t to);

/* Receives the next message of rank `from`. E0402 and E0403 for one of another length or type, which is gone then. */
int roundelay_recv(roundelay_world_t world, void *buffer, uint64_t count, int dtype, uint32_t from);

/* Returns when all ranks have called it. */
int roundelay_barrier(roundelay_world_t world);

/*
 * Runs an algorithm from now on for calls of its collective of `min_bytes` to `max_bytes` bytes, nccl-tests' size: of
 * the larger of a rank's two buffers. `source` is a text in the language, or the path of a .coll file, or the name of
 * an algorithm of the library. `algorithm` may be NULL, or name the one of several that is meant and set parameters:
 * "MyRing slices=4". `collective` says of which collective it must be, or ROUNDELAY_ANY. If the collective has a root,
 * its parameter `root` is that of each call. It is proved for the number of ranks at the first call. All ranks must use
 * the same: a call in which they do not is refused (E0414).
 */
int roundelay_use(roundelay_world_t world, const char *source, const char *algorithm, int collective,
                  uint64_t min_bytes, uint64_t max_bytes);

/*
 * Keeps promises about the order of reductions from now on: only algorithms whose certificate has them run, and the order
 * does not change between calls. `promises` is a list such as "all_counts,rank_order,roundings=1", or "all"; all ranks
 * give the same. Until it is called, the promises are those of the environment variable ROUNDELAY_ORDER. An algorithm
 * (roundelay_use) that breaks a promise is refused when it is called: E0317, E0320.
 */
int roundelay_promise(roundelay_world_t world, const char *promises);

/* Promises about the order of a reduction, as bits. */
enum {
    ROUNDELAY_ALL_RANKS = 1,    /* all ranks that hold an element have reduced it in one order */
    ROUNDELAY_ALL_ELEMENTS = 2, /* all elements are reduced in one order */
    ROUNDELAY_ALL_COUNTS = 4,   /* an element's order does not depend on its place or on the count */
    ROUNDELAY_RANK_ORDER = 8,   /* contributions are taken in the order of the ranks */
    ROUNDELAY_EVERY_RUN = 16,   /* the order is the same in every run */
};

/*
 * Returns the promises that the algorithm of a call keeps, as bits, and the most roundings of a result in a type narrower
 * than f32; both are 0 for a collective that does not reduce.
 */
int roundelay_order(roundelay_world_t world, int collective, uint64_t count, int dtype, int op, uint32_t root,
                    uint32_t *promises, uint32_t *roundings);

/*
 * Returns the ways of data through the memory of this host that the world has chosen by measurement so far, a line each,
 * such as "OneShotMeshAllReduce, AllReduce of 65536 f32, sum: tiles of 512 KiB, inputs staged past the caches (30.1 us;
 * the usual way 128.9 us)". Rank 0 of the host measures; other ranks get an empty text. The text is valid until this
 * thread calls the function again. The environment variable ROUNDELAY_WAYS has the values measured, usual (no
 * measurements) and kept (later worlds of this host begin with the chosen ways).
 */
int roundelay_ways(roundelay_world_t world, const char **ways);

/*
 * Makes of the ranks of each color a world of its own, in the order of their keys, and of their ranks where keys are
 * the same; a color is a number of 32 bits, and -1 is none, which gets no world (0). All ranks call it.
 */
int roundelay_split(roundelay_world_t world, int64_t color, int64_t key, roundelay_world_t *part);

/*
 * Makes a second handle of this rank of a world, for calls by another algorithm: both handles make the calls of one rank,
 * in one order, and roundelay_use and roundelay_promise on one of them do not change the calls of the other. It begins
 * with the algorithms of `world`. The world is left when the last of its handles is finalized.
 */
int roundelay_share(roundelay_world_t world, roundelay_world_t *share);

/* After a failure, a new world of the ranks that are left, in their order; all of them call it. */
int roundelay_shrink(roundelay_world_t world, roundelay_world_t *rest);

/*
 * Lends memory, all zero, that all ranks can touch: calls copy nothing aside where the buffers of all ranks are such.
 * It is good until it is given back, or the world is left.
 */
int roundelay_alloc(roundelay_world_t world, uint64_t bytes, void **memory);

/* Gives memory back; NULL is nothing. */
int roundelay_free(void *memory);

/* Ends all calls of all ranks, for a reason in words or NULL: they and all later ones fail (E0413). */
int roundelay_abort(roundelay_world_t world, const char *why);

/*
 * Tells the other ranks that this rank does not make its next call, for a reason in words: the call is void for all, they
 * get the reason from theirs at once (E0414), and all go on. A call whose arguments are refused does it by itself.
 */
int roundelay_refuse(roundelay_world_t world, const char *why);

/*
 * Leaves a world, when the calls of this process are done that are under way, and the other ranks are done with the last
 * one; it waits for that for half of the deadline at most. A rank that leaves while others still need it is a failure of
 * theirs. E0414: a call was void from which this rank had returned; the world is left all the same.
 */
int roundelay_finalize(roundelay_world_t world);

/*
 * GPUs, on Linux. Each rank opens one, all ranks at once, and tries how it reaches the memory of the others; several ranks
 * may share one, for tests. The GPU is that of the number `device`, as the driver counts in this process. Calls on its memory
 * run the algorithms that the world uses, as those on memory of the host do, which go on as before. Those of ranks on several
 * hosts go through memory of the hosts.
 */
int roundelay_on_device(roundelay_world_t world, uint32_t device);

/*
 * Issues a call on memory of the rank's GPU, in the order of a stream, and returns at once; input and output may be one
 * buffer, as for roundelay_call. `stream` is a CUstream or cudaStream_t of the GPU's primary context, or NULL. The first call
 * of a shape compiles its kernel, and waits for all ranks: it cannot be captured, and later calls of the shape can be. The
 * error of an earlier call may come from a later one: E0405 where a rank did not come before the deadline, and E0428 where its
 * process ended.
 */
int roundelay_call_on_stream(roundelay_world_t world, int collective, const void *input, void *output, uint64_t count,
                             int dtype, int op, uint32_t root, void *stream);

/*
 * Lends memory of the rank's GPU, all zero, that all ranks can map: calls use buffers there where they are, from the second
 * call of a shape on, and copy those of other allocators into memory of their own where these cannot be mapped. It takes a
 * multiple of the driver's granule, mostly 2 MiB, and is good until roundelay_free gives it back, which waits for the work of
 * the GPU, or until the world is left.
 */
int roundelay_device_alloc(roundelay_world_t world, uint64_t bytes, void **memory);

/* Waits until all calls on the rank's GPU are over, and tells their error. */
int roundelay_device_wait(roundelay_world_t world);

/*
 * Runs an algorithm in this process, for all ranks: from the buffers at `inputs` to those at `outputs`, one for each
 * rank. `source` and `algorithm` are those of roundelay_use. It is proved before.
 */
int roundelay_run(const char *source, const char *algorithm, uint32_t nranks, const void *const *inputs,
                  void *const *outputs, uint64_t count, int dtype, int op);

#ifdef __cplusplus
}
#endif

#endif
