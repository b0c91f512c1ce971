// The functions of programmatic dependent launches, which NVRTC does not have.
__device__ inline void cudaGridDependencySynchronize() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ inline void cudaTriggerProgrammaticLaunchCompletion() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
