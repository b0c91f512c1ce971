//! The mode of the process: over the real NCCL, or alone.

use std::env;
use std::sync::LazyLock;

use roundelay_kernels::library_files::{ALONE, NCCL};

/// Whether there is no NCCL behind the library, as the variable says that names the real one.
pub(crate) fn is_alone() -> bool {
    static ON: LazyLock<bool> = LazyLock::new(|| env::var_os(NCCL).is_some_and(|is| is == ALONE));
    *ON
}
