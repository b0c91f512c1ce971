//! The flags of `ps`.

use clap::Args;

#[derive(Args)]
pub(crate) struct PsFlags {
    /// Only the worlds of this process and of the processes that it started: a rank, or a launcher such as
    /// `roundelay launch`, mpirun or torchrun; all worlds of this user if none is given
    #[arg(value_name = "PID|JOB")]
    pub(super) of: Option<u32>,
    /// Print also the last calls of each rank, up to 64
    #[arg(long)]
    pub(super) calls: bool,
    /// Print one document, for programs
    #[arg(long)]
    pub(super) json: bool,
    /// Print again each second, until Ctrl-C
    #[arg(long)]
    pub(super) watch: bool,
}
