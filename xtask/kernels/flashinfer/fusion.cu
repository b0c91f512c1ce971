// The kernels of FlashInfer's fused AllReduce, which are those of TensorRT-LLM, for one number of ranks; and what the
// host writes before the first call.
#include <array>
#include <flashinfer/comm/trtllm_allreduce_fusion.cuh>
namespace fusion = flashinfer::trtllm_allreduce_fusion;
using Params = fusion::AllReduceFusionParams<__nv_bfloat16>;
constexpr auto all_reduce = fusion::AllReduceFusionPattern::kAllReduce;
template __global__ void fusion::allreduce_fusion_kernel_oneshot_lamport<all_reduce, __nv_bfloat16, RANKS, true, true>(Params);
template __global__ void fusion::allreduce_fusion_kernel_twoshot_sync<all_reduce, __nv_bfloat16, RANKS, true>(
    Params, std::array<int, RANKS>, std::array<int, RANKS>);

// The table of a rank: all ranks' buffers, flags and mailboxes, and the own control words.
extern "C" __global__ void set_up(void** workspace, void** others, int* control, int mail_bytes) {
  for (int at = 0; at < 3 * RANKS; ++at) workspace[at] = others[at];
  workspace[3 * RANKS] = control;
  control[3] = mail_bytes;
}
