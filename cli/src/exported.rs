//! `roundelay emit msccl`: an algorithm as a program for MSCCL's runtime.

use clap::Args;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::layout::Configured;
use roundelay_export::cuda;
use roundelay_export::exchange::msccl::{self, Exported, Options};

use crate::kernel::Protocol;
use crate::messages;
use crate::msccl::Runtime;
use crate::report::Failure;
use crate::values::whole;

/// What a program is written for.
#[derive(Args)]
#[command(next_help_heading = "Options of msccl, which has --protocol simple, ll and ll128")]
pub(crate) struct ExportFlags {
    /// Copies of the algorithm, each on a part of the data and in channels of its own [default: 1]
    #[arg(long, value_name = "N", value_parser = whole(1..=32_u32))]
    instances: Option<u32>,
    /// The runtime whose limits the program keeps, and whose buffers its sizes are for [default: rccl]
    #[arg(long, value_enum)]
    runtime: Option<Runtime>,
}

impl ExportFlags {
    /// The flag that is given although nothing but `emit msccl` takes it.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let all =
            [(self.instances.is_some(), "--instances"), (self.runtime.is_some(), "--runtime")];
        all.into_iter().find(|(given, _)| *given).map(|(_, flag)| flag)
    }

    /// What is asked for, with a protocol.
    pub(crate) fn options(&self, protocol: Option<Protocol>) -> Result<Options, Failure> {
        let protocol = match protocol {
            None | Some(Protocol::Kernel(cuda::Protocol::Simple)) => msccl::Protocol::Simple,
            Some(Protocol::Kernel(cuda::Protocol::Ll)) => msccl::Protocol::Ll,
            Some(Protocol::Ll128) => msccl::Protocol::Ll128,
            Some(Protocol::Kernel(cuda::Protocol::Direct)) => {
                let title = "`emit msccl` has no protocol direct";
                return Err(Failure::usage(Code::BadFlag, title)
                    .with_help("its protocols are simple, ll and ll128"));
            }
        };
        let runtime = self.runtime.map_or_else(msccl::Runtime::default, Into::into);
        Ok(Options { protocol, instances: self.instances.unwrap_or(1), runtime })
    }
}

/// The program of an algorithm at one number of ranks.
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
