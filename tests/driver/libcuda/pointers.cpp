// What the driver knows of an address.
#include "driver.h"

namespace fake {

template <class T> static void put(void* at, T value) { memcpy(at, &value, sizeof value); }

// Writes an attribute of an address, of which `range` is none where the driver does not know it.
static CUresult tell(void* to, int number, u64 address, const Range* range) {
    const bool host = range != nullptr && (range->kind == Kind::HOST || range->kind == Kind::REGISTERED);
    const bool device = range != nullptr && !host;
    switch (number) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        // Mappings are no context's.
        put(to, range == nullptr || range->kind == Kind::MAPPED ? nullptr : range->context);
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put(to, range == nullptr ? 0u : unsigned(host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: put(to, range == nullptr ? CUdeviceptr(0) : CUdeviceptr(address)); break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (device) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        put(to, host ? reinterpret_cast<void*>(address) : nullptr);
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: put(to, 0u); break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        put(to, range == nullptr ? 0ull : static_cast<unsigned long long>(range->id));
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: put(to, 0u); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put(to, range == nullptr ? int(CU_DEVICE_INVALID) : host ? range->context->ordinal : ordinal_of(range->device));
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        put(to, range != nullptr && range->kind == Kind::PLAIN ? 1u : 0u);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        put(to, range == nullptr ? CUdeviceptr(0) : CUdeviceptr(range->base));
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: put(to, range == nullptr ? size_t(0) : size_t(range->bytes)); break;
    case CU_POINTER_ATTRIBUTE_MAPPED: put(to, range == nullptr ? 0u : 1u); break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put(to, range == nullptr || range->physical == nullptr ? u64(0) : range->physical->types);
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: put(to, 0u); break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put(to, range == nullptr              ? 0u
                : range->kind == Kind::MAPPED ? unsigned(range->access[size_t(current->device)])
                                              : unsigned(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
        CUmemoryPool pool = nullptr;
        if (range != nullptr && range->kind == Kind::POOL) {
            TRY(cuDeviceGetMemPool(&pool, range->context->ordinal));
        }
        put(to, pool);
        break;
    }
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

} // namespace fake

using namespace fake;

extern "C" {

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute number, CUdeviceptr address) {
    TRY(usable());
    std::lock_guard<std::mutex> hold(memory.mutex);
    const Range* range = range_at(address);
    return range == nullptr ? CUDA_ERROR_INVALID_VALUE : tell(value, number, address, range);
}
// Unlike the other one, it knows nothing of an address without an error.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* numbers, void** values, CUdeviceptr address) {
    TRY(usable());
    std::lock_guard<std::mutex> hold(memory.mutex);
    const Range* range = range_at(address);
    for (unsigned i = 0; i < count; ++i) {
        // Nor does the address of a device on the host.
        const bool host = numbers[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER;
        const CUresult told = tell(values[i], numbers[i], address, range);
        if (told != CUDA_SUCCESS && host) {
            *static_cast<void**>(values[i]) = nullptr;
        } else if (told != CUDA_SUCCESS) {
            return told;
        }
    }
    return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
    TRY(usable());
    std::lock_guard<std::mutex> hold(memory.mutex);
    const Range* range = range_at(address);
    if (range == nullptr) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != nullptr) {
        *base = range->base;
    }
    if (bytes != nullptr) {
        *bytes = range->bytes;
    }
    return CUDA_SUCCESS;
}
}
