//! The flags of `roundelay ncclrun`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
#[command(override_usage = "roundelay ncclrun [OPTIONS] -- PROGRAM [ARGS]...")]
pub(crate) struct NcclrunFlags {
    /// NCCL's own library, or its folder; that of `ROUNDELAY_NCCL`, of the program's Python, or of the system if none
    /// is given
    #[arg(long, value_name = "PATH")]
    pub(super) nccl: Option<PathBuf>,
    /// Have the loader audit every request for NCCL, too, for programs that open it by its path
    #[arg(long)]
    pub(super) audit: bool,
    /// Have rank 0 say at the end which calls were taken and which passed on, and why
    #[arg(long)]
    pub(super) report: bool,
    /// The library that the program's processes preload; `libroundelay_nccl.so` beside this command if none is given
    #[arg(long, value_name = "FILE")]
    pub(super) library: Option<PathBuf>,
    /// The program and its arguments, as they would be without this command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "ARGS")]
    pub(super) command: Vec<OsString>,
}
