// MSCCL++'s file as it is, and what its host code writes before the first call.
#include <allreduce_allpair_packet.cu>

// A channel to each peer: from the own input into the peer's scratch memory.
extern "C" __global__ void set_up(mscclpp::DeviceHandle<mscclpp::MemoryChannel>* channels, void** scratch, void* input,
                                  int rank, int ranks) {
  for (int at = 0; at < ranks - 1; ++at) {
    channels[at].dst_ = scratch[at < rank ? at : at + 1];
    channels[at].src_ = input;
  }
}
