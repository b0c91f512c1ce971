//! `cargo xtask nvrtc`: CUDA's compiler below `target/`, from NVIDIA's wheels. It needs neither a GPU nor a driver.

use std::path::Path;

use crate::install::Packages;

/// The library, and the headers that kernels include.
const NVRTC: Packages = Packages {
    folder: "nvrtc",
    into: "--target",
    names: &["nvidia-cuda-nvrtc==13.0.*", "nvidia-cuda-runtime==13.0.*"],
    files: &[
        "nvidia/cu13/lib/libnvrtc.so.13",
        "nvidia/cu13/include/cuda_bf16.h",
        "nvidia/cu13/include/cuda_fp8.h",
    ],
};

pub(crate) fn install(root: &Path) -> Result<(), String> {
    let installed = NVRTC.install(root);
    installed
        .map(drop)
        .map_err(|why| format!("{why}; or set ROUNDELAY_NVRTC to a CUDA toolkit's NVRTC"))
}
