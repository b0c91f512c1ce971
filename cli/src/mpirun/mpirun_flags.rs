//! The flags of `roundelay mpirun`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args)]
#[command(override_usage = "roundelay mpirun [OPTIONS] -- [MPIRUN'S ARGUMENTS] PROGRAM [ARGS]...")]
pub(crate) struct MpirunFlags {
    /// The treatment of the collectives that a program calls
    #[arg(long, value_enum, default_value_t = MpirunMode::On)]
    pub(super) mode: MpirunMode,
    /// Take all calls that can be taken, and not only those that are faster than MPI's
    #[arg(long)]
    pub(super) all: bool,
    /// Algorithms for collectives, by sizes if you like: `AllReduce: my.coll; Bcast 64K..: NhrBroadcast`
    #[arg(long, value_name = "TEXT")]
    pub(super) algorithm: Option<String>,
    /// Have rank 0 say at the end which calls were taken and which passed on, and why
    #[arg(long)]
    pub(super) report: bool,
    /// The launcher of the MPI library; `mpirun` of the search path if none is given
    #[arg(long, value_name = "PATH", default_value = "mpirun")]
    pub(super) launcher: PathBuf,
    /// The library that ranks preload; `libroundelay_mpi.so` beside this command if none is given
    #[arg(long, value_name = "FILE")]
    pub(super) library: Option<PathBuf>,
    /// The arguments of the launcher, as they would be without this command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "ARGS")]
    pub(super) command: Vec<OsString>,
}

/// The treatment of the collectives that a program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MpirunMode {
    /// They are taken
    On,
    /// All are left to MPI
    Off,
    /// They are made twice and the results compared; a difference is an error
    Verify,
}

impl MpirunMode {
    /// Returns the word that the library reads.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Verify => "verify",
        }
    }
}
