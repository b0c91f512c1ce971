//! `cargo xtask nvrtc`: CUDA's compiler below `target/`, which tests of kernels need.

use std::path::Path;

use crate::install::Packages;

/// CUDA's compiler and disassembler from NVIDIA's wheels, which need neither a GPU nor a driver: the library, the headers
/// that kernels include, and the tools with which tests count instructions.
const NVRTC: Packages = Packages {
    folder: "nvrtc",
    into: "--target",
    names: &[
        "nvidia-cuda-nvrtc==13.0.*",
        "nvidia-cuda-runtime==13.0.*",
        "nvidia-cuda-nvdisasm==13.2.*",
    ],
    files: &[
        "nvidia/cu13/lib/libnvrtc.so.13",
        "nvidia/cu13/include/cuda_bf16.h",
        "nvidia/cu13/include/cuda_fp8.h",
        "nvidia/cu13/bin/nvdisasm",
    ],
};

pub(crate) fn install(root: &Path) -> Result<(), String> {
    let why = |why| format!("{why}; or set ROUNDELAY_NVRTC to a CUDA toolkit's NVRTC");
    NVRTC.install(root).map(drop).map_err(why)
}
