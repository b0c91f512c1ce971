// Programs that call the driver for tests as CUDA's callers would: each case is a function, in one process or in
// several that the case begins before the driver does.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

// Ends the process unless a call returns this code.
#define EXPECT(CODE, ...) expect(CODE, (__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define OK(...) EXPECT(CUDA_SUCCESS, __VA_ARGS__)
// Ends the process unless two numbers are equal.
#define SAME(A, B) same((long long)(A), (long long)(B), #A " is " #B, __FILE__, __LINE__)

void expect(CUresult code, CUresult result, const char* call, const char* file, int line);
void same(long long a, long long b, const char* what, const char* file, int line);

// A process of a case.
struct Rank {
    int rank, nranks;

    // Waits for all ranks.
    void meet() const;
    // Gives a descriptor to a rank, and takes one that another gave.
    void give(int to, int fd) const;
    int take() const;
    // Memory of the host that all ranks have.
    template <class T> T* shared() const { return reinterpret_cast<T*>(bytes()); }
    void* bytes() const;
    // Begins the driver, and a context of a device.
    CUcontext begin(int device = 0) const;
};

// Runs a function in that many processes, which must end well; `dies` is the rank that a fault ends, or -1.
void in_processes(int nranks, const std::function<void(const Rank&)>& run, int dies = -1);
// Whether a fault ends a process that touches an address.
bool faults(CUdeviceptr at, bool write = false);

// An allocation of a device with a descriptor, a mapping of it, and access to it.
CUmemAllocationProp shareable(int device = 0);
CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t bytes, int device = 0);

// The kernel that counts in turns with another, on words that both reach, and a launch of it.
struct Told {
    CUdeviceptr mine, theirs;
    uint64_t rounds, first, rest[6];
};
CUfunction counting();
CUresult launch(CUfunction function, CUstream stream, Told told);

constexpr size_t MIB = 1 << 20;

struct Case {
    const char* name;
    void (*run)();
};
extern const Case MEMORY[], VMM[], IPC[], STREAMS[], TURNS[];
