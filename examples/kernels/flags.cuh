// Accesses of flags, named by their order in PTX, and a barrier of all ranks that is right.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ inline void put_release(u32* at, u32 value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ inline void put_relaxed(u32* at, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ inline u32 get_acquire(const u32* at) {
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

__device__ inline u32 get_relaxed(const u32* at) {
    u32 value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

/// Returns what was there; the new value is stored if that was the old one.
__device__ inline u32 cas_release(u32* at, u32 old, u32 value) {
    u32 was;
    asm volatile("atom.release.sys.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(was) : "l"(at), "r"(old), "r"(value) : "memory");
    return was;
}

__device__ inline u32 cas_acquire(u32* at, u32 old, u32 value) {
    u32 was;
    asm volatile("atom.acquire.sys.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(was) : "l"(at), "r"(old), "r"(value) : "memory");
    return was;
}

/// The blocks of this number meet on all ranks: all of them see behind it what was stored before
/// it. A row of the pads has a flag for each block and rank, and epochs rise.
__device__ inline void meet(u32* const* pads, u32 row, u32 rank, u32 ranks, u32 epoch) {
    __syncthreads();
    if (threadIdx.x < ranks) {
        u32 first = (row * gridDim.x + blockIdx.x) * ranks;
        put_release(pads[threadIdx.x] + first + rank, epoch);
        while ((int)(get_acquire(pads[rank] + first + threadIdx.x) - epoch) < 0) {}
    }
    __syncthreads();
}
