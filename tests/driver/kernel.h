// What the text of `roundelay_driven` takes from CUDA beyond the shim.
#pragma once

#define __global__
#define __grid_constant__
#define __launch_bounds__(...)

struct Index {
    unsigned x;
};
extern thread_local Index gridDim, blockIdx;
