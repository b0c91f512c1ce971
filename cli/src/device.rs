//! The place where ranks run: the host's engine, kernels on GPUs, or compiled kernels that a CPU interprets.

use clap::Args;
use roundelay_core::diagnostics::Code;
#[cfg(feature = "cuda")]
use roundelay_core::layout::Configured;
#[cfg(feature = "cuda")]
use roundelay_export::cuda::Form;
use roundelay_export::cuda::Protocol;

use crate::flags::EngineFlags;
use crate::kernel::{FormFlag, protocol, threads};
use crate::report::Failure;
use crate::values::{RefusedValue, at_least};

/// Where ranks run, and how, where that is GPUs.
#[derive(Args)]
pub(crate) struct DeviceFlags {
    /// Where the ranks run: host; GPUs by number: cuda (the first one), cuda:1, or cuda:0,1 for several; or ptx, the
    /// kernel as NVRTC compiles it (`ptx:sm_80` for another GPU than `sm_90`), interpreted on the CPU to check it
    #[arg(long, default_value = "host", value_parser = device)]
    pub(crate) device: Device,
    /// On GPUs: how data travels: direct, simple, ll or ll128 [default: simple for a program that sends and
    /// receives, else direct]
    #[arg(long, value_parser = protocol)]
    pub(crate) protocol: Option<Protocol>,
    /// On GPUs: how the kernel holds the algorithm [default: loops]
    #[arg(long, value_enum)]
    pub(crate) form: Option<FormFlag>,
    /// On GPUs: threads of a thread block (CTA), in whole warps of 32, up to 1024 [default: 256]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<u32>,
    /// On GPUs: thread blocks (CTAs) that share a stream [default: as many as the GPU holds and the data is worth, and
    /// 1 on ptx]
    #[arg(long, value_name = "N", value_parser = at_least(1_u32))]
    pub(crate) ctas: Option<u32>,
}

/// The device that `--device` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// Threads of this process.
    Host,
    /// GPUs, by the driver's numbers.
    Cuda(Vec<usize>),
    /// An interpreter of the compiled kernel for an architecture.
    Ptx(String),
}

fn device(text: &str) -> Result<Device, RefusedValue> {
    let bad = || {
        RefusedValue::new("is not a device")
            .help("a device is host, cuda, cuda:1, several as cuda:0,1, ptx or ptx:sm_80")
    };
    match text.split_once(':') {
        None if text == "host" => Ok(Device::Host),
        None if text == "cuda" => Ok(Device::Cuda(vec![0])),
        None if text == "ptx" => Ok(Device::Ptx("sm_90".to_owned())),
        Some(("ptx", arch)) => Ok(Device::Ptx(arch.to_owned())),
        Some(("cuda", numbers)) => {
            let numbers = numbers.split(',').map(|number| number.trim().parse().map_err(|_| bad()));
            numbers.collect::<Result<_, _>>().map(Device::Cuda)
        }
        _ => Err(bad()),
    }
}

impl DeviceFlags {
    /// Refuses flags that the device does not use: they would be ignored silently.
    pub(crate) fn check(&self, engine: &EngineFlags) -> Result<(), Failure> {
        let given = [
            ("--protocol", self.protocol.is_some()),
            ("--form", self.form.is_some()),
            ("--threads", self.threads.is_some()),
            ("--ctas", self.ctas.is_some()),
        ];
        let useless = match self.device {
            Device::Host => {
                let flag = given.iter().find(|(_, given)| *given);
                flag.map(|(flag, _)| (*flag, "is for kernels on GPUs", "add --device cuda"))
            }
            Device::Cuda(_) | Device::Ptx(_) => engine.workers.map(|_| {
                ("--workers", "is for the host's engine", "give --ctas for the blocks of a GPU")
            }),
        };
        match useless {
            Some((flag, what, help)) => {
                Err(Failure::usage(Code::BadFlag, format!("{flag} {what}")).with_help(help))
            }
            None => Ok(()),
        }
    }
}

/// Returns the error of a build without CUDA.
#[cfg(not(feature = "cuda"))]
pub(crate) fn absent() -> Failure {
    let title =
        "this `roundelay` was built without CUDA, so it has no --device cuda and no --device ptx";
    Failure::usage(Code::NoCuda, title)
        .with_help("build it with the feature `cuda`, which is on by default")
}

#[cfg(feature = "cuda")]
impl DeviceFlags {
    /// Returns the forms and protocols to look at: the ones that were asked for, or all that an algorithm has.
    pub(crate) fn forms(&self, algorithm: &Configured) -> Vec<(Form, Protocol)> {
        let all = Protocol::of_loops(algorithm);
        let loops = self.protocol.as_ref().map_or(all, std::slice::from_ref);
        let loops = loops.iter().map(|protocol| (Form::Loops, *protocol));
        // A table has no slots of its own, and so no protocol.
        let table = [(Form::Table, Protocol::Direct)];
        match self.form {
            Some(FormFlag::Loops) => loops.collect(),
            Some(FormFlag::Table) => table.to_vec(),
            Some(FormFlag::Switch) => vec![(Form::Switch, Protocol::Direct)],
            None if self.protocol.is_some() => loops.collect(),
            None => loops.chain(table).collect(),
        }
    }

    /// Returns the options of plans.
    pub(crate) fn options(&self, engine: &EngineFlags) -> roundelay_kernels::cuda::CudaOptions {
        let options = roundelay_kernels::cuda::CudaOptions::new()
            .form(self.form.map_or(Form::Loops, Into::into))
            .level(engine.level)
            .reassociate(engine.reassociate)
            .parts(self.ctas.unwrap_or(0));
        let options = self.protocol.map_or(options, |protocol| options.protocol(protocol));
        self.threads.map_or(options, |threads| options.threads(threads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_by_number() {
        assert_eq!(device("host"), Ok(Device::Host));
        assert_eq!(device("cuda"), Ok(Device::Cuda(vec![0])));
        assert_eq!(device("cuda:0, 2"), Ok(Device::Cuda(vec![0, 2])));
        assert_eq!(device("ptx"), Ok(Device::Ptx("sm_90".to_owned())));
        assert_eq!(device("ptx:sm_80"), Ok(Device::Ptx("sm_80".to_owned())));
        for wrong in ["gpu", "cuda:", "cuda:-1", "host:0", "cuda:0,,1", ""] {
            assert_eq!(device(wrong).unwrap_err().code, Code::BadFlag, "{wrong}");
        }
    }
}
