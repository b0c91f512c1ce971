// Slices of a device's time: without MPS, a device runs the work of one process at a time, for so long and no longer
// while others want it. A process holds a token of the device while its threads run; a signal stops those that run
// still when their slice is over. Work that waits for an event or a value of a stream wants no slice.
//
// The token is a file of ROUNDELAY_FAKE_MACHINE. A process has a seat at it, which is locked for as long as it lives.
#include "driver.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fake {

static constexpr u32 SEATS = 64;
static const int STOP = SIGRTMIN + 3;

static void wait_while(const std::atomic<u32>& word, u32 value, long nanoseconds) {
    const timespec pause = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    syscall(SYS_futex, &word, FUTEX_WAIT, value, &pause, nullptr, 0);
}
static void wake(const std::atomic<u32>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

static std::string file_of(const std::string& kind, int device) {
    const char* folder = getenv("ROUNDELAY_FAKE_MACHINE");
    if (folder == nullptr) {
        fprintf(stderr, "the driver for tests: ROUNDELAY_FAKE_MACHINE names no folder\n");
        abort();
    }
    return std::string(folder) + "/" + kind + "-" + std::to_string(device);
}

int occupy(int device) {
    const int fd = open(file_of("exclusive", device).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

// Who has the device, and who wants it.
struct Token {
    std::atomic<u32> holder; // a seat and 1, or nobody
    std::atomic<u32> wants[SEATS];
};

struct Slices {
    int device, fd = -1;
    u32 seat = 0;
    Token* token = nullptr;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<pthread_t> threads; // that run, or would
    std::atomic<u32> open{0}, stopped{0};

    // Whether the process of a seat lives.
    bool lives(u32 of) const {
        struct flock lock = {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        lock.l_start = of;
        lock.l_len = 1;
        return of == seat || (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK);
    }

    bool sit() {
        fd = ::open(file_of("slices", device).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, off_t(PAGE)) != 0) {
            return false;
        }
        void* at = mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        token = static_cast<Token*>(at);
        for (; at != MAP_FAILED && seat < SEATS; ++seat) {
            struct flock lock = {};
            lock.l_type = F_WRLCK;
            lock.l_whence = SEEK_SET;
            lock.l_start = seat;
            lock.l_len = 1;
            if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
                token->wants[seat] = 0;
                return true;
            }
        }
        return false;
    }

    void acquire() {
        token->wants[seat] = 1;
        for (;;) {
            u32 holder = token->holder;
            if (holder == seat + 1) {
                return;
            }
            const bool free = holder == 0 || !lives(holder - 1);
            if (free && token->holder.compare_exchange_strong(holder, seat + 1)) {
                return;
            }
            wait_while(token->holder, holder, 500000);
        }
    }

    // The next process that wants the device, or nobody.
    u32 next() const {
        for (u32 i = 1; i < SEATS; ++i) {
            const u32 other = (seat + i) % SEATS;
            if (token->wants[other] != 0 && lives(other)) {
                return other + 1;
            }
        }
        return 0;
    }

    void release() {
        token->wants[seat] = 0;
        token->holder = next();
        wake(token->holder);
    }

    void run(long slice_ns, bool preempts) {
        for (;;) {
            std::unique_lock<std::mutex> hold(mutex);
            changed.wait(hold, [&] { return !threads.empty(); });
            hold.unlock();
            acquire();
            open = 1;
            wake(open);
            hold.lock();
            const auto idle = [&] { return threads.empty(); };
            const auto over = std::chrono::nanoseconds(slice_ns);
            while (!changed.wait_for(hold, over, idle) && (next() == 0 || !preempts)) {
            }
            open = 0;
            while (stopped < threads.size()) {
                for (const pthread_t thread : threads) {
                    pthread_kill(thread, STOP);
                }
                hold.unlock();
                std::this_thread::sleep_for(std::chrono::microseconds(20));
                hold.lock();
            }
            hold.unlock();
            release();
        }
    }

    // A thread that a signal finds waiting here looks again before it runs.
    void wait_until_open() {
        static thread_local bool waits = false;
        while (!waits) {
            waits = true;
            stopped += 1;
            while (open == 0) {
                wait_while(open, 0, 1000000000);
            }
            stopped -= 1;
            waits = false;
            if (open != 0) {
                return;
            }
        }
    }
};

static thread_local Slices* mine = nullptr;

// Keeps the thread from running until its process has the device again.
static void stop(int) {
    const int before = errno;
    if (mine != nullptr) {
        mine->wait_until_open();
    }
    errno = before;
}

static long slice_ns() {
    const char* given = getenv("ROUNDELAY_FAKE_SLICE");
    return given == nullptr ? 0 : 1000 * atol(given);
}

static Slices* slices_of(int device) {
    static std::mutex mutex;
    static std::map<int, Slices*> all;
    std::lock_guard<std::mutex> hold(mutex);
    Slices*& found = all[device];
    if (found == nullptr) {
        struct sigaction action = {};
        action.sa_handler = stop;
        action.sa_flags = SA_RESTART;
        sigaction(STOP, &action, nullptr);
        found = new Slices;
        found->device = device;
        if (!found->sit()) {
            fprintf(stderr, "the driver for tests: no place at the slices of device %d\n", device);
            abort();
        }
        const bool preempts = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, device) != 0;
        std::thread([=] { found->run(slice_ns(), preempts); }).detach();
    }
    return found;
}

static void begin_turn(void* of) {
    auto* slices = static_cast<Slices*>(of);
    {
        std::lock_guard<std::mutex> hold(slices->mutex);
        mine = slices;
        slices->threads.push_back(pthread_self());
        slices->changed.notify_all();
    }
    slices->wait_until_open();
}

static void end_turn(void* of) {
    auto* slices = static_cast<Slices*>(of);
    std::lock_guard<std::mutex> hold(slices->mutex);
    mine = nullptr;
    auto& all = slices->threads;
    all.erase(std::find(all.begin(), all.end(), pthread_self()));
    slices->changed.notify_all();
}

Turns turns_of(int device) {
    return slice_ns() == 0 ? Turns{nullptr, nullptr, nullptr} : Turns{begin_turn, end_turn, slices_of(device)};
}

} // namespace fake
