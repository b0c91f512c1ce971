//! `cargo xtask nccl`: NCCL below `target/`, which the tests of the library that stands before it need. They need no
//! GPU.

use std::path::Path;

use crate::install::Packages;

/// NVIDIA's wheel: the library and its headers, which the tests compare the library's functions with.
const NCCL: Packages = Packages {
    folder: "nccl",
    into: "--target",
    names: &["nvidia-nccl-cu13==2.32.*"],
    files: &["nvidia/nccl/lib/libnccl.so.2", "nvidia/nccl/include/nccl.h"],
};

pub(crate) fn install(root: &Path) -> Result<(), String> {
    NCCL.install(root).map(drop)
}
