// The host's side of a generated kernel in C++17, on the CUDA driver and NVRTC: devices, the memory of a plan, launches,
// and a check with known data. `roundelay emit cuda ALGORITHM --headers DIR` writes it beside the kernel and a program
// that uses it. Every error is a std::runtime_error with the call and the driver's words.
//
// A plan is for one kernel, one count and all ranks, which are dealt to the devices of this process in rows: eight ranks
// on two devices are ranks 0 to 3 and 4 to 7. Launches of a plan follow one another on the devices' own streams.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <cuda.h>
#include <nvrtc.h>

namespace roundelay {

using u32 = uint32_t;
using u64 = uint64_t;

// The facts of a kernel for one count; the generated program has them.
struct KernelFacts {
    const char* name;
    u32 nranks;
    u64 count;                      // elements of a unit, as NCCL counts
    u32 element_bytes;
    std::vector<int64_t> words;     // the table that the kernel reads
    std::vector<u32> group_ranks;   // the rank of each stream, in the order of the grid
    u64 posted_words;               // counters of a rank, for each CTA of a stream
    bool counts_launches;
    u64 scratch_bytes;              // of each rank
    bool scale_outputs;             // a second kernel divides averages
    bool one_device;                // one launch begins and ends all ranks
    bool whole_lines;               // lines of LL128, which NVLink keeps together
    u32 threads, walkers, in_flight;
    u32 worth;                      // CTAs of a stream that the largest move pays for
    std::vector<u64> input_elements, output_elements; // of each rank
};

inline void check(CUresult result, const std::string& call) {
    if (result != CUDA_SUCCESS) {
        const char* words = nullptr;
        cuGetErrorString(result, &words);
        throw std::runtime_error(call + ": " + (words != nullptr ? words : "an unknown error"));
    }
}

// A device of the process, with a context and a stream.
struct Device {
    int ordinal;
    CUcontext context = nullptr;
    CUstream stream = nullptr;

    explicit Device(int at) : ordinal(at) {
        CUdevice device;
        check(cuDeviceGet(&device, at), "finding device " + std::to_string(at));
        check(cuDevicePrimaryCtxRetain(&context, device), "opening device " + std::to_string(at));
        enter();
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
    }
    void enter() const { check(cuCtxSetCurrent(context), "entering device " + std::to_string(ordinal)); }
    int attribute(CUdevice_attribute which) const {
        int value = 0;
        check(cuDeviceGetAttribute(&value, which, ordinal), "asking device " + std::to_string(ordinal));
        return value;
    }
    void finish() const {
        enter();
        check(cuStreamSynchronize(stream), "waiting for device " + std::to_string(ordinal));
    }
};

// Memory of devices and of the host, freed together.
class Owned {
    std::vector<std::pair<const Device*, CUdeviceptr>> device_;
    std::vector<void*> host_;
    std::vector<CUmodule> modules_;

  public:
    Owned() = default;
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
        for (const auto& [device, at] : device_) {
            cuCtxSetCurrent(device->context);
            cuStreamSynchronize(device->stream); // a kernel may use it
            cuMemFree(at);
        }
        for (void* at : host_) {
            cuMemFreeHost(at);
        }
        for (CUmodule module : modules_) {
            cuModuleUnload(module);
        }
    }
    CUdeviceptr allocate(const Device& device, u64 bytes) {
        device.enter();
        CUdeviceptr at = 0;
        check(cuMemAlloc(&at, std::max<u64>(bytes, 1)), "allocating " + std::to_string(bytes) + " bytes");
        device_.emplace_back(&device, at);
        return at;
    }
    void* pin(u64 bytes) {
        void* at = nullptr;
        check(cuMemHostAlloc(&at, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), "pinning memory");
        host_.push_back(at);
        std::memset(at, 0, bytes);
        return at;
    }
    CUmodule load(const std::string& code) {
        CUmodule module;
        check(cuModuleLoadData(&module, code.data()), "loading the kernel");
        modules_.push_back(module);
        return module;
    }
};

// The first `count` devices, each of which reads and writes the others' memory.
inline std::vector<Device> open_devices(int count) {
    check(cuInit(0), "starting the driver");
    int there = 0;
    check(cuDeviceGetCount(&there), "counting devices");
    if (count < 1 || count > there) {
        throw std::runtime_error(std::to_string(count) + " devices are asked for, and there are " + std::to_string(there));
    }
    std::vector<Device> devices;
    for (int at = 0; at < count; ++at) {
        devices.emplace_back(at);
    }
    for (const Device& from : devices) {
        for (const Device& to : devices) {
            int can = 1;
            if (from.ordinal != to.ordinal) {
                check(cuDeviceCanAccessPeer(&can, from.ordinal, to.ordinal), "asking for access to a peer");
                const std::string pair = "device " + std::to_string(from.ordinal) + " to " + std::to_string(to.ordinal);
                if (can == 0) {
                    throw std::runtime_error(pair + ": no access to the peer's memory");
                }
                from.enter();
                const CUresult enabled = cuCtxEnablePeerAccess(to.context, 0);
                if (enabled != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
                    check(enabled, pair);
                }
            }
        }
    }
    return devices;
}

// Compiles the file `name`.cu in `folder`, which also has the headers, for a device.
inline std::string compile(const KernelFacts& kernel, const std::string& folder, const Device& device, bool several) {
    const std::string path = folder + "/" + kernel.name + ".cu";
    std::ifstream file(path);
    if (!file) {
        throw std::runtime_error(path + ": cannot be read");
    }
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const int arch = 10 * device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
        device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    // The host's engine rounds each product, so nothing is fused.
    std::vector<std::string> options = {"--gpu-architecture=sm_" + std::to_string(arch), "--std=c++17", "--fmad=false",
        "--define-macro=ROUNDELAY_THREADS=" + std::to_string(kernel.threads), "--define-macro=ROUNDELAY_CTAS=1",
        "--define-macro=ROUNDELAY_IN_FLIGHT=" + std::to_string(kernel.in_flight), "--include-path=" + folder};
    // 16-bit floats are in CUDA's headers.
    const char* home = std::getenv("CUDA_HOME");
    options.push_back("--include-path=" + std::string(home != nullptr ? home : "/usr/local/cuda") + "/include");
    if (several) {
        options.push_back("--define-macro=ROUNDELAY_SCOPE_SYS=1");
    }
    std::vector<const char*> given;
    for (const std::string& option : options) {
        given.push_back(option.c_str());
    }
    nvrtcProgram program;
    const std::string name = std::string(kernel.name) + ".cu";
    if (nvrtcCreateProgram(&program, text.c_str(), name.c_str(), 0, nullptr, nullptr) != NVRTC_SUCCESS) {
        throw std::runtime_error("NVRTC takes no program");
    }
    const nvrtcResult compiled = nvrtcCompileProgram(program, int(given.size()), given.data());
    if (compiled != NVRTC_SUCCESS) {
        size_t size = 0;
        nvrtcGetProgramLogSize(program, &size);
        std::string log(size, '\0');
        nvrtcGetProgramLog(program, log.data());
        throw std::runtime_error(path + ": " + nvrtcGetErrorString(compiled) + "\n" + log);
    }
    size_t size = 0;
    nvrtcGetCUBINSize(program, &size);
    std::string code(size, '\0');
    nvrtcGetCUBIN(program, code.data());
    nvrtcDestroyProgram(&program);
    return code;
}

// The words of a launch and the addresses of a rank's memory, as base.cuh has them.
struct LaunchWords {
    u64 facts, ranks, control, launches, count, parts, first_group, poll_limit_ns, finish_scale;
    u64 stage[5]; // of ranks in several processes
};
struct RankMemory {
    u64 input, output, scratch, posted, waited;
};

// A kernel on devices, ready to be launched.
class Plan {
    struct Part {
        CUfunction function = nullptr, scale = nullptr;
        LaunchWords words{};
        u32 first_rank = 0, ranks = 0, streams = 0;
        CUdeviceptr table = 0;
    };

    KernelFacts kernel_;
    std::vector<Device>& devices_;
    std::vector<Part> parts_;
    std::vector<RankMemory> memory_;
    u64* control_ = nullptr;
    u32 ctas_ = 0;
    Owned owned_;

    u32 bound(size_t device) const { return u32(u64(kernel_.nranks) * device / devices_.size()); }
    u32 group(u32 rank) const {
        const auto& of = kernel_.group_ranks;
        return u32(std::lower_bound(of.begin(), of.end(), rank) - of.begin());
    }

  public:
    // A wait of a kernel gives up after `deadline_ns`.
    Plan(std::vector<Device>& devices, const KernelFacts& kernel, const std::string& folder, u64 deadline_ns = 60000000000)
        : kernel_(kernel), devices_(devices), parts_(devices.size()), memory_(kernel.nranks) {
        if (kernel.one_device && devices.size() > 1) {
            throw std::runtime_error("this kernel begins and ends all ranks at once: it is for one device");
        }
        for (const Device& from : devices) {
            for (const Device& to : devices) {
                int joined = 1;
                if (kernel.whole_lines && from.ordinal != to.ordinal) {
                    check(cuDeviceGetP2PAttribute(&joined, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from.ordinal,
                                                  to.ordinal), "asking for NVLink");
                }
                if (joined == 0) {
                    throw std::runtime_error("device " + std::to_string(from.ordinal) + " reaches device " +
                        std::to_string(to.ordinal) + " by PCIe, which does not keep the lines of protocol ll128 together");
                }
            }
        }
        ctas_ = kernel.worth;
        for (size_t at = 0; at < devices.size(); ++at) {
            Part& part = parts_[at];
            const Device& device = devices[at];
            part.first_rank = bound(at);
            part.ranks = bound(at + 1) - part.first_rank;
            part.words.first_group = group(part.first_rank);
            part.streams = group(bound(at + 1)) - u32(part.words.first_group);
            const std::string code = compile(kernel, folder, device, devices.size() > 1);
            device.enter();
            const CUmodule module = owned_.load(code);
            check(cuModuleGetFunction(&part.function, module, kernel.name), "finding the kernel");
            if (kernel.scale_outputs) {
                const std::string scale = std::string(kernel.name) + "_scale";
                check(cuModuleGetFunction(&part.scale, module, scale.c_str()), "finding the kernel that divides");
            }
            int resident = 0;
            check(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&resident, part.function, int(kernel.threads), 0, 0),
                "asking for the CTAs that a device holds");
            const u32 holds = u32(resident * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
            if (part.streams > holds) {
                throw std::runtime_error("device " + std::to_string(device.ordinal) + " holds " + std::to_string(holds) +
                    " CTAs at once, and its ranks have " + std::to_string(part.streams) + " streams: take more devices");
            }
            if (part.streams > 0) {
                ctas_ = std::max(1u, std::min(ctas_, holds / part.streams));
            }
        }
        const u64 control_words = 8 + 8 * kernel.group_ranks.size();
        devices[0].enter();
        void* control = owned_.pin(8 * control_words);
        control_ = static_cast<u64*>(control);
        for (size_t at = 0; at < devices.size(); ++at) {
            Part& part = parts_[at];
            const Device& device = devices[at];
            const auto zeros = [&](u64 bytes) {
                const CUdeviceptr made = owned_.allocate(device, bytes);
                check(cuMemsetD8Async(made, 0, std::max<u64>(bytes, 1), device.stream), "clearing memory");
                return u64(made);
            };
            const u64 counters = 8 * kernel.posted_words * ctas_;
            for (u32 rank = part.first_rank; rank < part.first_rank + part.ranks; ++rank) {
                memory_[rank] = {0, 0, zeros(kernel.scratch_bytes), zeros(counters), zeros(counters)};
            }
            part.table = CUdeviceptr(zeros(sizeof(RankMemory) * kernel.nranks));
            part.words.facts = zeros(8 * kernel.words.size());
            check(cuMemcpyHtoDAsync(CUdeviceptr(part.words.facts), kernel.words.data(), 8 * kernel.words.size(), device.stream),
                "copying the facts");
            CUdeviceptr mapped = 0;
            check(cuMemHostGetDevicePointer(&mapped, control, 0), "mapping the control block");
            part.words.control = u64(mapped);
            part.words.ranks = u64(part.table);
            part.words.launches = zeros(kernel.counts_launches ? 8 * u64(ctas_) * kernel.group_ranks.size() : 0);
            part.words.count = kernel.count;
            part.words.parts = ctas_;
            part.words.poll_limit_ns = deadline_ns;
            part.words.finish_scale = kernel.scale_outputs;
        }
        for (const Device& device : devices) {
            device.finish();
        }
    }
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;

    // The device of a rank, on which its input and its output are.
    const Device& device(u32 rank) const {
        size_t at = 0;
        while (bound(at + 1) <= rank) {
            ++at;
        }
        return devices_[at];
    }

    // Launches the kernel on these buffers of all ranks, in rank order, and does not wait. In place, a rank's input and
    // output are in one buffer, as with NCCL.
    void launch(const std::vector<CUdeviceptr>& inputs, const std::vector<CUdeviceptr>& outputs) {
        if (inputs.size() != kernel_.nranks || outputs.size() != kernel_.nranks) {
            throw std::runtime_error("a launch takes an input and an output of each rank");
        }
        wait(); // the tables of addresses are in use until the launch before is over
        for (u32 rank = 0; rank < kernel_.nranks; ++rank) {
            memory_[rank].input = u64(inputs[rank]);
            memory_[rank].output = u64(outputs[rank]);
        }
        for (size_t at = 0; at < devices_.size(); ++at) {
            devices_[at].enter();
            check(cuMemcpyHtoDAsync(parts_[at].table, memory_.data(), sizeof(RankMemory) * memory_.size(), devices_[at].stream),
                "copying addresses");
        }
        for (const Device& device : devices_) {
            device.finish();
        }
        for (size_t at = 0; at < devices_.size(); ++at) {
            Part& part = parts_[at];
            const Device& device = devices_[at];
            device.enter();
            void* arguments[] = {&part.words};
            if (part.streams > 0) {
                check(cuLaunchCooperativeKernel(part.function, part.streams * ctas_, 1, 1, kernel_.threads, 1, 1, 0,
                          device.stream, arguments), std::string("launching ") + kernel_.name);
            }
            if (kernel_.scale_outputs && part.ranks > 0) {
                check(cuLaunchKernel(part.scale, part.ranks * ctas_, 1, 1, kernel_.threads - kernel_.walkers, 1, 1, 0,
                          device.stream, arguments, nullptr), "launching the kernel that divides");
            }
        }
    }

    // Waits for the last launch. A wait of the kernel that gave up is an error; the plan is then of no further use.
    void wait() {
        for (const Device& device : devices_) {
            device.finish();
        }
        if (const u64 gave_up = reinterpret_cast<volatile u64*>(control_)[0]; gave_up != 0) {
            const u64* record = control_ + 8 + 8 * (gave_up - 1);
            throw std::runtime_error("rank " + std::to_string(kernel_.group_ranks[gave_up - 1]) + " waited in vain: step " +
                std::to_string(record[1]) + " of its stream, for post " + std::to_string(record[2]) + ", has seen " +
                std::to_string(record[3]));
        }
    }
};

// ---- a check with known data -----------------------------------------------------------------------------------

// The form of elements: integers of some bits, or floats with some bits of exponent and fraction.
struct Elements {
    u32 bytes, exponent, fraction; // exponent 0: an integer
};

// A small number as an element: exact, or an error.
inline u64 encode(Elements elements, u64 number) {
    if (elements.exponent == 0 || number == 0) {
        return number;
    }
    u32 power = 0;
    while (number >> (power + 1) != 0) {
        ++power;
    }
    if (power > elements.fraction && number % (u64(1) << (power - elements.fraction)) != 0) {
        throw std::runtime_error("the known data is not exact in this type");
    }
    const u64 biased = power + (u64(1) << (elements.exponent - 1)) - 1;
    const u64 below = number - (u64(1) << power);
    const u64 fraction = power <= elements.fraction ? below << (elements.fraction - power) : below >> (power - elements.fraction);
    return biased << elements.fraction | fraction;
}

// The source of a unit of an output: a unit of one rank's input, or of all ranks' inputs.
struct Source {
    int rank; // -1: all
    u32 unit;
};

// Element `i` of the input of `rank`: 0 or 1, and 1 for so few ranks that every sum is exact.
inline u64 known(Elements elements, u32 nranks, u32 rank, u64 i) {
    const u64 most = elements.exponent == 0 ? 32 : u64(2) << elements.fraction;
    return ((rank + i) % nranks < most && (rank * 7 + i * 5 + i / 3) % 3 != 0) ? 1 : 0;
}

// Runs a plan three times on known data, and compares every element. `fold` combines two contributions; `divide` is
// whether the op is an average.
inline void demonstrate(Plan& plan, const KernelFacts& kernel, Elements elements, const std::vector<std::vector<Source>>& wanted,
    u64 (*fold)(u64, u64), bool divide) {
    const u64 scale = divide ? kernel.nranks : 1;
    const auto number = [&](u32 rank, u64 i) { return scale * known(elements, kernel.nranks, rank, i); };
    Owned owned;
    std::vector<CUdeviceptr> inputs, outputs;
    for (u32 rank = 0; rank < kernel.nranks; ++rank) {
        const Device& device = plan.device(rank);
        inputs.push_back(owned.allocate(device, kernel.input_elements[rank] * elements.bytes));
        outputs.push_back(owned.allocate(device, kernel.output_elements[rank] * elements.bytes));
        std::vector<unsigned char> bytes(kernel.input_elements[rank] * elements.bytes);
        for (u64 i = 0; i < kernel.input_elements[rank]; ++i) {
            const u64 element = encode(elements, number(rank, i));
            std::memcpy(&bytes[i * elements.bytes], &element, elements.bytes);
        }
        check(cuMemcpyHtoDAsync(inputs[rank], bytes.data(), bytes.size(), device.stream), "copying an input");
        device.finish();
    }
    u64 compared = 0;
    for (int run = 0; run < 3; ++run) {
        plan.launch(inputs, outputs);
        plan.wait();
        for (u32 rank = 0; rank < kernel.nranks; ++rank) {
            const Device& device = plan.device(rank);
            std::vector<unsigned char> bytes(kernel.output_elements[rank] * elements.bytes);
            device.enter();
            check(cuMemcpyDtoHAsync(bytes.data(), outputs[rank], bytes.size(), device.stream), "copying an output");
            device.finish();
            for (u64 i = 0; i < kernel.output_elements[rank]; ++i) {
                const Source source = wanted[rank][i / kernel.count];
                const u64 at = source.unit * kernel.count + i % kernel.count;
                u64 value = number(source.rank < 0 ? 0 : u32(source.rank), at);
                for (u32 other = 1; source.rank < 0 && other < kernel.nranks; ++other) {
                    value = fold(value, number(other, at));
                }
                const u64 right = encode(elements, source.rank < 0 ? value / scale : value);
                u64 got = 0;
                std::memcpy(&got, &bytes[i * elements.bytes], elements.bytes);
                if (got != right) {
                    throw std::runtime_error("wrong: rank " + std::to_string(rank) + ", element " + std::to_string(i) + " of run " +
                        std::to_string(run));
                }
                ++compared;
            }
        }
    }
    std::cout << kernel.name << ": 3 launches of " << kernel.nranks << " ranks, " << compared << " elements, 0 wrong\n";
}

} // namespace roundelay
