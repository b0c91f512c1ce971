
// What the engine runs: the function of the kernel library that @NAME@.json names.
extern "C" unsigned int @NAME@Kernel(void* param) {
    return Submit(*static_cast<const Call*>(param)) == HCCL_SUCCESS ? 0 : 1;
}

namespace {

// The folder of @NAME@.json and of the kernel library, which has the same name.
#ifndef ROUNDELAY_KERNELS
#define ROUNDELAY_KERNELS "/usr/local/roundelay"
#endif

HcclResult Launch(const Call& call, aclrtStream stream) {
    static aclrtBinHandle binary = nullptr;
    static std::once_flag once;
    static aclError loaded = 0;
    std::call_once(once, [] {
        aclrtBinaryLoadOption option = {};
        option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
        option.value.cpuKernelMode = 1; // a custom operator: the library beside the JSON file
        aclrtBinaryLoadOptions options = {&option, 1};
        loaded = aclrtBinaryLoadFromFile(ROUNDELAY_KERNELS "/@NAME@.json", &options, &binary);
    });
    aclrtFuncHandle function = nullptr;
    aclrtArgsHandle arguments = nullptr;
    aclrtParamHandle param = nullptr;
    Call copied = call;
    if (loaded != 0 || aclrtBinaryGetFunction(binary, "@NAME@Kernel", &function) != 0 ||
        aclrtKernelArgsInit(function, &arguments) != 0 ||
        aclrtKernelArgsAppend(arguments, &copied, sizeof(copied), &param) != 0 ||
        aclrtKernelArgsFinalize(arguments) != 0) {
        return HCCL_E_RUNTIME;
    }
    aclrtLaunchKernelAttr attribute = {};
    attribute.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT;
    attribute.value.timeout = 27 * 68; // s, as the sample has it
    aclrtLaunchKernelCfg config = {&attribute, 1};
    return aclrtLaunchKernelWithConfig(function, 1, stream, &config, arguments, nullptr) == 0 ? HCCL_SUCCESS
                                                                                              : HCCL_E_RUNTIME;
}

} // namespace
