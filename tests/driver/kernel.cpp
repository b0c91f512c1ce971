// A kernel's text as a library that the driver for tests calls: the shim without its jobs.
#define main unused_main
#include "shim_main.cpp"
#undef main

#include <thread>

thread_local Index gridDim, blockIdx;

// The argument of `roundelay_driven`, which driven.cuh has for one element type at a time.
struct Driven {
    roundelay::u64 words[12];
};
extern "C" void roundelay_driven(const Driven call) __attribute__((weak));

// What a thread calls before and after it uses the device, as the driver has it.
struct Turns {
    void (*begin)(void* of);
    void (*end)(void* of);
    void* of;
};

namespace {

using namespace roundelay;

// A thread's use of the device.
struct Turn {
    const Turns& turns;

    explicit Turn(const Turns& of) : turns(of) {
        if (turns.begin != nullptr) {
            turns.begin(turns.of);
        }
    }
    Turn(const Turn&) = delete;
    ~Turn() {
        if (turns.end != nullptr) {
            turns.end(turns.of);
        }
    }
};

// One thread a block, one block after another.
void drive(unsigned grid, const Driven& call, const Turns& turns) {
    const Turn turn(turns);
    Cta cta = {};
    cta.threads = 1;
    gridDim.x = grid;
    for (unsigned i = 0; i < grid; ++i) {
        cta.index = int(i);
        blockIdx.x = i;
        self = {&cta, 0, 0};
        roundelay_driven(call);
    }
}

} // namespace

// Runs the kernel of that name on a grid of CTAs, until the last has ended.
extern "C" void fake_run(const char* name, unsigned grid, const void* argument, const Turns& turns) {
    if (std::string(name) == "roundelay_driven") {
        return drive(grid, *static_cast<const Driven*>(argument), turns);
    }
    // Of each CTA, whatever the driver was asked for.
    constexpr int THREADS = 2;
    const Launch launch = *static_cast<const Launch*>(argument);
    barrier_limit_ns = 4 * launch.poll_limit_ns + 20000000000;
    shim::Kernel found = {nullptr, 0};
    for (const auto& [known, kernel] : kernels()) {
        if (known == name) {
            found = kernel;
        }
    }
    if (found.run == nullptr) {
        die(2, std::string("no kernel ") + name);
    }
    std::vector<Cta> ctas(grid);
    std::vector<std::thread> running;
    for (unsigned i = 0; i < grid; ++i) {
        ctas[i] = {};
        ctas[i].index = int(i);
        ctas[i].threads = THREADS;
        ctas[i].walkers = found.walkers;
        for (int thread = 0; thread < THREADS + found.walkers; ++thread) {
            running.emplace_back([&, i, thread] {
                const Turn turn(turns);
                self = {&ctas[i], thread, 0};
                found.run(launch);
            });
        }
    }
    for (std::thread& thread : running) {
        thread.join();
    }
}
