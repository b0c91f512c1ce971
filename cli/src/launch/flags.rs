//! The flags of `roundelay launch`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::values::{duration, process_count};

#[derive(Args)]
#[command(override_usage = "roundelay launch [OPTIONS] -n <RANKS> -- <PROGRAM> [ARGS]...")]
pub(crate) struct LaunchFlags {
    /// Processes to start, one for each rank, up to 1024
    #[arg(short = 'n', long, value_name = "RANKS", value_parser = process_count)]
    pub(super) nranks: u32,
    /// How long the job may take, such as 90s; then it is ended, and the exit code is 124
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) timeout: Option<Duration>,
    /// How long ranks may go on after another failed or after they were told to end, such as 500ms or 0
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(super) grace: Duration,
    /// Wait for the other ranks where one failed, however long they take
    #[arg(long)]
    pub(super) keep_going: bool,
    /// Begin each line that rank 3 prints with [3], as srun does with --label and mpirun with --tag-output
    #[arg(long)]
    pub(super) prefix: bool,
    /// The program that each rank runs, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(super) command: Vec<OsString>,
}
