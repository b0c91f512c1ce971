// Modules, which are found by a hash of their machine code, and launches of their kernels.
#include "driver.h"

#include <dlfcn.h>

#include "../hash.h"

struct CUmod_st {
    void* library;
};
struct CUfunc_st {
    CUmodule module;
    std::string name;
};

namespace fake {

// CTAs of a kernel that a multiprocessor holds.
static constexpr int RESIDENT = 2;

using Run = void (*)(const char* name, unsigned grid, const void* launch, const Turns& turns);

struct Addresses {
    u64 (*ranks)[5];
    u64 first, count, at[64][2];
};

static CUresult launch(CUfunction function, unsigned grid, CUstream stream, void** params) {
    TRY(usable());
    if (function->name == "roundelay_bind") {
        const Addresses call = *static_cast<Addresses*>(params[0]);
        return push_copy(stream, [call] {
            for (u64 i = 0; i < call.count; ++i) {
                call.ranks[call.first + i][0] = call.at[i][0];
                call.ranks[call.first + i][1] = call.at[i][1];
            }
        });
    }
    // The words of what is driven from the host, and those of a kernel.
    const size_t words = function->name == "roundelay_driven" ? 12 : 14;
    const auto* first = static_cast<const u64*>(params[0]);
    const auto run = reinterpret_cast<Run>(dlsym(function->module->library, "fake_run"));
    const int device = stream_of(stream)->context->device;
    return push(stream, [=, argument = std::vector<u64>(first, first + words)] {
        run(function->name.c_str(), grid, argument.data(), turns_of(device));
    });
}

} // namespace fake

using namespace fake;

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    TRY(usable());
    TRY(outside_captures());
    const auto* code = static_cast<const unsigned char*>(image);
    const char* folder = getenv("ROUNDELAY_FAKE");
    // The code is a text: see libnvrtc.cpp.
    const std::string name = hex(hash(code, strlen(static_cast<const char*>(image)) + 1)) + ".so";
    const std::string path = std::string(folder == nullptr ? "." : folder) + "/" + name;
    // What binds is in here.
    *module = new CUmod_st{dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)};
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) {
    TRY(usable());
    return outside_captures();
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    TRY(usable());
    const std::string wanted = name;
    if (module->library == nullptr && wanted != "roundelay_bind") {
        return CUDA_ERROR_NOT_FOUND;
    }
    *function = new CUfunc_st{module, wanted};
    return CUDA_SUCCESS;
}
CUresult cuFuncLoad(CUfunction) { return usable(); }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction, int, size_t, unsigned) {
    *blocks = RESIDENT;
    return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** params, void**) {
    return launch(function, grid, stream, params);
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   unsigned, CUstream stream, void** params) {
    const int most = RESIDENT * attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    return grid > unsigned(most) ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : launch(function, grid, stream, params);
}
}
