// Runs a kernel's text on a CPU: `exe JOB RESULT`. A job gives the launch and all inputs; the result holds the control
// words, all outputs and the ops of part 0 of every stream. Files are little-endian words of 64 bits.
//
// Exit codes: 0 the result is written, 2 the job is not valid, 3 it takes too long, 4 the kernel broke a rule.
#include "host_shim.h"
#include "words.cuh"

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace roundelay {

namespace {

constexpr u64 JOB = 0x4a4f42;
constexpr u8 FILL = 0xa5;

[[noreturn]] void die(int code, const std::string& why) {
    fprintf(stderr, "shim: %s\n", why.c_str());
    _exit(code);
}

// ---- threads and their barriers ----------------------------------------------------------------------------

// A wait on a word in the kernel, of at most a second.
void sleep_while(const u32* word, u32 value) {
    const timespec second = {1, 0};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &second, nullptr, 0);
}

void wake_all(const u32* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

// The barrier of a CTA.
struct Barrier {
    u32 arrived = 0;
    u32 phase = 0;
    u32 any = 0;
    u32 result = 0;
};

struct Cta {
    int index;
    int threads; // that move
    int walkers;
    bool traced;
    Barrier barrier, everyone;
    std::string trace;
    alignas(16) u8 shared[SHARED_BYTES];
};

struct Thread {
    Cta* cta;
    int index;
    u64 random; // 0: no delays
};

thread_local Thread self;

// The time after which waits at a barrier are given up: long after any wait for a signal was.
u64 barrier_limit_ns;

u64 random_below(u64 limit) {
    self.random ^= self.random << 13;
    self.random ^= self.random >> 7;
    self.random ^= self.random << 17;
    return (self.random >> 11) % limit;
}

std::vector<std::pair<std::string, shim::Kernel>>& kernels() {
    static std::vector<std::pair<std::string, shim::Kernel>> all;
    return all;
}

} // namespace

int thread() { return self.index; }
int threads() { return self.cta->threads; }
int block_index() { return self.cta->index; }

u64 nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return u64(now.tv_sec) * 1000000000 + u64(now.tv_nsec);
}

void delay() {
    if (self.random == 0) {
        return;
    }
    switch (random_below(16)) {
    case 0:
    case 1:
        sched_yield();
        break;
    case 2: {
        const timespec pause = {0, long(random_below(100000))};
        nanosleep(&pause, nullptr);
        break;
    }
    case 3:
        for (u64 left = random_below(3000); left > 0; --left) {
            __atomic_signal_fence(__ATOMIC_SEQ_CST);
        }
        break;
    default:
        break;
    }
}

void make_room() {
    delay();
    sched_yield();
}

void shim::misaligned(u64 address, u64 alignment) {
    die(4, "an access to " + std::to_string(address) + " is not aligned for " + std::to_string(alignment) + " bytes");
}

bool shim::enter(const char* name, Kernel kernel) {
    kernels().emplace_back(name, kernel);
    return true;
}

void* shared_memory() { return self.cta->shared; }

void publish(u32* at, u32 value) {
    delay();
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
    wake_all(at);
}

u32 wait_until_not(const u32* at, u32 known) {
    delay();
    for (;;) {
        const u32 value = __atomic_load_n(at, __ATOMIC_ACQUIRE);
        if (value != known) {
            return value;
        }
        sleep_while(at, known);
    }
}

void trap() { die(4, "a program came where none does"); }

// The barrier of `count` threads.
static bool meet_at(Barrier& barrier, int threads, bool mine) {
    if (mine) {
        __atomic_store_n(&barrier.any, 1, __ATOMIC_RELAXED);
    }
    const u32 phase = __atomic_load_n(&barrier.phase, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&barrier.arrived, 1, __ATOMIC_ACQ_REL) == u32(threads)) {
        __atomic_store_n(&barrier.arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier.result, barrier.any, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier.any, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier.phase, phase + 1, __ATOMIC_RELEASE);
        wake_all(&barrier.phase);
    } else {
        const u64 since = nanoseconds();
        while (__atomic_load_n(&barrier.phase, __ATOMIC_ACQUIRE) == phase) {
            sleep_while(&barrier.phase, phase);
            if (nanoseconds() - since > barrier_limit_ns) {
                die(3, "a thread of CTA " + std::to_string(self.cta->index) + " waits where others of it never come");
            }
        }
    }
    return __atomic_load_n(&barrier.result, __ATOMIC_RELAXED) != 0;
}

bool shim::meet(bool mine) { return meet_at(self.cta->barrier, self.cta->threads, mine); }

void everyone_sync() { meet_at(self.cta->everyone, self.cta->threads + self.cta->walkers, false); }

// ---- traces ------------------------------------------------------------------------------------------------

// Whether this is the last thread of its CTA, which walks if one does.
static bool is_last() { return self.index == self.cta->threads + self.cta->walkers - 1; }

// Whether this thread writes traces.
static bool traces() { return self.cta->traced && is_last(); }

// Ends the process, as a machine may: with ROUNDELAY_SHIM_END="RANK N", that rank at its N-th signal.
static void end_at_signal() {
    static std::atomic<long> left = [] {
        const char *said = getenv("ROUNDELAY_SHIM_END"), *rank = getenv("ROUNDELAY_RANK");
        long of = 0, at = 0;
        return said != nullptr && rank != nullptr && sscanf(said, "%ld %ld", &of, &at) == 2 && of == atol(rank) ? at : 0;
    }();
    if (left > 0 && --left == 0) {
        raise(SIGKILL);
    }
}

void trace_signal(bool post, int kind, i64 from, i64 to, i64 lane) {
    if (is_last()) {
        end_at_signal();
    }
    if (!traces()) {
        return;
    }
    std::string& trace = self.cta->trace;
    trace += post ? "post " : "wait ";
    trace += SIGNAL_NAMES[kind];
    trace += ' ' + std::to_string(from) + ' ' + std::to_string(to) + ' ' + std::to_string(lane) + '\n';
}

void trace_move(const Traced* operands, int sources, int destinations, i64 len, bool finish) {
    if (!traces()) {
        return;
    }
    std::string& trace = self.cta->trace;
    trace += "move " + std::to_string(sources) + ' ' + std::to_string(destinations);
    for (int i = 0; i < sources + destinations; ++i) {
        const Traced& operand = operands[i];
        trace += ' ' + std::to_string(operand.rank) + '.' + "ios"[operand.buffer] + '+' + std::to_string(operand.offset);
    }
    trace += " x" + std::to_string(len) + (finish ? " finish\n" : "\n");
}

// ---- jobs --------------------------------------------------------------------------------------------------

namespace {

class Words {
    std::vector<u64> words;
    size_t next = 0;

  public:
    explicit Words(const char* path) {
        FILE* file = fopen(path, "rb");
        if (file == nullptr) {
            die(2, std::string("cannot open ") + path);
        }
        fseek(file, 0, SEEK_END);
        words.resize(size_t(ftell(file)) / 8);
        rewind(file);
        if (fread(words.data(), 8, words.size(), file) != words.size()) {
            die(2, std::string("cannot read ") + path);
        }
        fclose(file);
    }

    // Reads that many words, in place.
    u64* take(size_t count) {
        if (words.size() - next < count) {
            die(2, "the job ends early");
        }
        next += count;
        return words.data() + next - count;
    }

    u64 word() { return *take(1); }
};

// Memory between guards, which begins `shift` bytes after a multiple of 256.
class Buffer {
    static constexpr size_t GUARD = 256;
    std::vector<u8> memory;
    size_t start = 0;
    size_t bytes = 0;

  public:
    void allocate(size_t size, size_t shift) {
        bytes = size;
        memory.assign(bytes + 3 * GUARD, FILL);
        const u64 begin = u64(memory.data()) + GUARD;
        start = size_t((begin + GUARD - 1) / GUARD * GUARD + shift - u64(memory.data()));
    }

    u8* data() { return memory.data() + start; }
    u64 address() { return u64(data()); }
    size_t size() const { return bytes; }
    void fill(u8 value) { memset(data(), value, bytes); }

    bool guards_hold() const {
        for (size_t i = 0; i < memory.size(); ++i) {
            if ((i < start || i >= start + bytes) && memory[i] != FILL) {
                return false;
            }
        }
        return true;
    }
};

struct Rank {
    u64 input_bytes, output_bytes, input_offset, output_offset, shared_bytes;
    const u8* given;
    Buffer input, output, scratch; // in place, `output` holds both
    std::vector<u64> posted, waited;
};

struct Run {
    u64 trace, parts, threads, element, count, nranks, groups, repeats, seed, poll_limit_ns;
    i64 stuck_rank;
    u64 posted_words, waited_words, launches_words, scratch_bytes, in_place, finish_scale;
    const i64* facts;
    std::vector<Rank> ranks;
    std::vector<Memory> memories;
    std::vector<u64> control, launches;
    std::vector<Cta> ctas;
    // The outputs of the first repeat.
    std::vector<std::vector<u8>> outputs;
    std::string traces;
};

struct Start {
    Run* run;
    Cta* cta;
    int index;
    u64 random;
    shim::Kernel kernel;
};

void read_job(Run& run, Words& job) {
    if (job.word() != JOB) {
        die(2, "the job does not begin as one");
    }
    for (u64* field : {&run.trace, &run.parts, &run.threads, &run.element, &run.count, &run.nranks, &run.groups,
                       &run.repeats, &run.seed, &run.poll_limit_ns}) {
        *field = job.word();
    }
    run.stuck_rank = i64(job.word());
    for (u64* field : {&run.posted_words, &run.waited_words, &run.launches_words, &run.scratch_bytes,
                       &run.in_place, &run.finish_scale}) {
        *field = job.word();
    }
    if (run.parts == 0 || run.threads == 0 || run.threads > 4 || run.element == 0 || run.repeats == 0) {
        die(2, "a job has parts, elements, repeats and 1 to 4 threads per CTA");
    }
    const u64 facts = job.word();
    run.facts = reinterpret_cast<const i64*>(job.take(facts));
    run.ranks.resize(run.nranks);
    for (Rank& rank : run.ranks) {
        for (u64* field :
             {&rank.input_bytes, &rank.output_bytes, &rank.input_offset, &rank.output_offset, &rank.shared_bytes}) {
            *field = job.word();
        }
    }
    for (Rank& rank : run.ranks) {
        rank.given = reinterpret_cast<const u8*>(job.take((rank.input_bytes + 7) / 8));
    }
}

void allocate(Run& run) {
    for (u64 r = 0; r < run.nranks; ++r) {
        Rank& rank = run.ranks[r];
        // No kernel may rely on more than the alignment of an element.
        const size_t shift = r % 2 * run.element;
        Memory memory;
        if (run.in_place != 0) {
            rank.output.allocate(rank.shared_bytes, shift);
            memory.input = rank.output.address() + rank.input_offset;
            memory.output = rank.output.address() + rank.output_offset;
        } else {
            rank.input.allocate(rank.input_bytes, shift);
            rank.output.allocate(rank.output_bytes, shift);
            memory.input = rank.input.address();
            memory.output = rank.output.address();
        }
        rank.scratch.allocate(run.scratch_bytes, 0);
        rank.posted.assign(run.posted_words, 0);
        rank.waited.assign(run.waited_words, 0);
        memory.scratch = rank.scratch.address();
        memory.posted = u64(rank.posted.data());
        memory.waited = u64(rank.waited.data());
        run.memories.push_back(memory);
    }
    run.control.assign(8 + 8 * run.groups, 0);
    run.launches.assign(run.launches_words, 0);
    run.ctas.resize(run.groups * run.parts);
}

// The facts of a group.
const i64* described(const Run& run, u64 group) {
    return run.facts + run.facts[i64(Header::GroupsAt)] + GROUP_WORDS * i64(group);
}

void* enter_thread(void* argument) {
    const Start& start = *static_cast<Start*>(argument);
    Run& run = *start.run;
    self = {start.cta, start.index, start.random};
    const u64 group = u64(start.cta->index) / run.parts;
    if (run.stuck_rank >= 0 && described(run, group)[0] == run.stuck_rank) {
        return nullptr;
    }
    delay();
    start.kernel.run({run.facts, run.memories.data(), run.control.data(), run.launches.data(), run.count,
                  run.parts, 0, run.poll_limit_ns, run.finish_scale, {}});
    return nullptr;
}

// Runs one launch: all threads of all CTAs, until the last has returned.
void launch(Run& run, shim::Kernel kernel, bool traced, u64 seed) {
    for (size_t i = 0; i < run.ctas.size(); ++i) {
        Cta& cta = run.ctas[i];
        cta.index = int(i);
        cta.threads = int(run.threads);
        cta.walkers = kernel.walkers;
        cta.traced = traced && i % run.parts == 0;
        cta.barrier = cta.everyone = {};
        cta.trace.clear();
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 << 10);
    const size_t each = run.threads + size_t(kernel.walkers);
    std::vector<pthread_t> running(run.ctas.size() * each);
    std::vector<Start> starts(running.size());
    for (size_t i = 0; i < running.size(); ++i) {
        const u64 random = seed == 0 ? 0 : (seed * 0x9e3779b97f4a7c15 + i) * 0xd1342543de82ef95 | 1;
        starts[i] = {&run, &run.ctas[i / each], int(i % each), random, kernel};
        if (pthread_create(&running[i], &attributes, enter_thread, &starts[i]) != 0) {
            die(2, "too many threads: " + std::to_string(running.size()));
        }
    }
    for (pthread_t thread : running) {
        pthread_join(thread, nullptr);
    }
}

void prepare_buffers(Run& run) {
    for (Rank& rank : run.ranks) {
        rank.output.fill(FILL);
        u8* input = run.in_place != 0 ? rank.output.data() + rank.input_offset : rank.input.data();
        if (rank.input_bytes > 0) {
            memcpy(input, rank.given, rank.input_bytes);
        }
    }
}

std::vector<u8> output_of(Run& run, Rank& rank) {
    const u8* data = rank.output.data() + (run.in_place != 0 ? rank.output_offset : 0);
    return std::vector<u8>(data, data + rank.output_bytes);
}

// Fails the run with the reason, for an act that no schedule does, whatever its data.
void check(Run& run, u64 repeat) {
    for (u64 r = 0; r < run.nranks; ++r) {
        Rank& rank = run.ranks[r];
        const std::string of = " of rank " + std::to_string(r) + ", repeat " + std::to_string(repeat);
        if (!rank.input.guards_hold() || !rank.output.guards_hold() || !rank.scratch.guards_hold()) {
            die(4, "memory beside the buffers" + of + " was written");
        }
        if (run.in_place == 0 && memcmp(rank.input.data(), rank.given, rank.input_bytes) != 0) {
            die(4, "the input" + of + " was written");
        }
        if (repeat > 0 && output_of(run, rank) != run.outputs[r]) {
            die(4, "the output" + of + " is not that of the first");
        }
    }
}

void execute(Run& run) {
    const shim::Kernel *kernel = nullptr, *scale = nullptr;
    for (const auto& [name, entered] : kernels()) {
        const bool scales = name.size() > 6 && name.compare(name.size() - 6, 6, "_scale") == 0;
        (scales ? scale : kernel) = &entered;
    }
    if (kernel == nullptr || (run.finish_scale != 0 && scale == nullptr)) {
        die(2, "the text has no such kernel");
    }
    barrier_limit_ns = 4 * run.poll_limit_ns + 20000000000;
    signal(SIGALRM, [](int) { die(3, "a launch does not end"); });
    for (u64 repeat = 0; repeat < run.repeats && run.control[0] == 0; ++repeat) {
        alarm(unsigned(60 + 8 * run.poll_limit_ns / 1000000000));
        prepare_buffers(run);
        const u64 seed = run.seed == 0 ? 0 : run.seed + repeat;
        launch(run, *kernel, run.trace != 0, seed);
        std::string traces;
        for (u64 group = 0; group < run.groups && run.trace != 0; ++group) {
            const i64* words = described(run, group);
            traces += "group " + std::to_string(words[0]) + ' ' + std::to_string(words[1]) + '\n';
            traces += run.ctas[group * run.parts].trace;
        }
        if (run.finish_scale != 0) {
            launch(run, *scale, false, seed);
        }
        if (run.control[0] != 0) {
            run.traces = traces;
            break;
        }
        check(run, repeat);
        if (repeat == 0) {
            run.traces = traces;
            for (Rank& rank : run.ranks) {
                run.outputs.push_back(output_of(run, rank));
            }
        } else if (traces != run.traces) {
            die(4, "repeat " + std::to_string(repeat) + " did other ops than the first");
        }
    }
}

void put(FILE* file, const void* data, size_t bytes) {
    const u64 zero = 0;
    fwrite(data, 1, bytes, file);
    fwrite(&zero, 1, (8 - bytes % 8) % 8, file);
}

void write_result(Run& run, const char* path) {
    FILE* file = fopen(path, "wb");
    if (file == nullptr) {
        die(2, std::string("cannot write ") + path);
    }
    const u64 status = run.control[0] != 0, trace_bytes = run.traces.size();
    put(file, &status, 8);
    put(file, run.control.data(), 8 * run.control.size());
    for (Rank& rank : run.ranks) {
        const std::vector<u8> output = output_of(run, rank);
        put(file, output.data(), output.size());
    }
    put(file, &trace_bytes, 8);
    put(file, run.traces.data(), run.traces.size());
    if (fclose(file) != 0) {
        die(2, std::string("cannot write ") + path);
    }
}

} // namespace

} // namespace roundelay

int main(int arguments, char** argument) {
    using namespace roundelay;
    if (arguments != 3) {
        die(2, "usage: exe JOB RESULT");
    }
    Words job(argument[1]);
    Run run;
    read_job(run, job);
    allocate(run);
    execute(run);
    write_result(run, argument[2]);
}
