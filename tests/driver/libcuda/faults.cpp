// Faults: what the driver knows of an address that nobody may touch.
#include "driver.h"

#include <csignal>

#include <unistd.h>

namespace fake {

static struct sigaction before[2];

static const char* reason(u64 address, bool cut) {
    // The thread may have the lock itself.
    std::unique_lock<std::mutex> hold(memory.mutex, std::try_to_lock);
    if (!hold.owns_lock()) {
        return "an address";
    }
    const Range* range = range_at(address);
    if (range == nullptr) {
        return "an address that is not, or no longer, memory";
    }
    switch (range->kind) {
    case Kind::MAPPED: return "mapped memory without access";
    case Kind::OPENED: return cut ? "memory that its process has freed" : "opened memory";
    default: return "memory";
    }
}

static void fault(int signal, siginfo_t* info, void*) {
    char text[200];
    const int length = snprintf(text, sizeof text, "the driver for tests: an access to %s: %p\n",
                                reason(u64(info->si_addr), signal == SIGBUS), info->si_addr);
    const ssize_t written = write(STDERR_FILENO, text, size_t(length));
    (void)written;
    // The access comes again, and whoever was there before decides.
    sigaction(signal, &before[signal == SIGBUS], nullptr);
}

void explain_faults() {
    struct sigaction action = {};
    action.sa_sigaction = fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
}

} // namespace fake
