//! `roundelay emit msccl` and `emit mscclpp`: an algorithm as a program for MSCCL's runtime, or for MSCCL++'s executor.

use clap::{Args, ValueEnum};
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::layout::Configured;
use roundelay_core::prove_source;
use roundelay_exchange::msccl::{self, Exported, Options};
use roundelay_exchange::mscclpp;

use crate::messages;
use crate::msccl::Runtime;
use crate::values::whole;

/// The target that a program is written for.
#[derive(Args)]
pub(crate) struct MscclFlags {
    /// How data travels
    #[arg(long, value_enum, default_value_t = Protocol::Simple)]
    protocol: Protocol,
    /// Copies of the algorithm, each on a part of the data and in channels of its own [default: 1]
    #[arg(long, value_name = "N", value_parser = whole(1..=32_u32))]
    instances: Option<u32>,
    /// The runtime whose limits the program keeps, and whose buffers its sizes are for [default: rccl]
    #[arg(long, value_enum)]
    runtime: Option<Runtime>,
}

/// A protocol of MSCCL's runtimes.
#[derive(Clone, Copy, ValueEnum)]
enum Protocol {
    /// Data in slots of a buffer, with a counter for each connection
    Simple,
    /// Words of 8 bytes, of which 4 are a flag
    Ll,
    /// Lines of 128 bytes, of which 8 are a flag
    Ll128,
}

impl MscclFlags {
    /// Returns the options of the program.
    pub(crate) fn options(&self) -> Options {
        Options {
            protocol: match self.protocol {
                Protocol::Simple => roundelay_exchange::Protocol::Simple,
                Protocol::Ll => roundelay_exchange::Protocol::Ll,
                Protocol::Ll128 => roundelay_exchange::Protocol::Ll128,
            },
            instances: self.instances.unwrap_or(1),
            runtime: self.runtime.map_or_else(msccl::Runtime::default, Into::into),
        }
    }
}

/// Returns the program of an algorithm at one number of ranks.
pub(crate) fn program(
    algorithm: &Configured,
    nranks: u32,
    options: Options,
) -> Result<Exported, Vec<Diagnostic>> {
    let place = |all| messages::place(algorithm, nranks, all);
    msccl::fits(algorithm, nranks, options).map_err(place)?;
    let (_, form) = messages::form(algorithm, nranks)?;
    msccl::export(&form, options).map_err(place)
}

/// Makes, for `roundelay emit mscclpp`, the plan of an algorithm at one number of ranks.
pub(crate) fn plan(
    algorithm: &Configured,
    nranks: u32,
    in_place: bool,
) -> Result<String, Vec<Diagnostic>> {
    let place = |all| messages::place(algorithm, nranks, all);
    mscclpp::fits(algorithm, nranks).map_err(place)?;
    mscclpp::export(&prove_source(algorithm, nranks)?, in_place).map_err(place)
}
