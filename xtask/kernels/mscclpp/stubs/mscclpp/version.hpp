// What MSCCL++'s build makes of version.hpp.in.
#define MSCCLPP_VERSION 0
#define MSCCLPP_GIT_COMMIT "checkout"
