extern "C" __global__ void copy(const unsigned* input, unsigned* output, unsigned count,
                                volatile unsigned* flag) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef WAITS
    while (*flag == 0) {}
#endif
#ifdef SHORT
    count = count / 4 * 4;
#endif
#ifdef UNKNOWN
    asm volatile("cp.async.wait_all;");
#endif
#ifdef LONG
    count = (count + 3) / 4 * 4;
#endif
    if (i < count) output[i] = input[i];
}
