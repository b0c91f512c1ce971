//! The errors between a proved schedule and a GPU: each has a code and names the remedy.

use std::fmt;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::RankId;

use super::log::{Message, Severity};

/// The reason why a kernel cannot be compiled, launched or completed.
///
/// Each variant names its code, which [`Self::code`] returns and a page of the book explains.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// E0415: a part of CUDA is missing.
    NoCuda(Box<Missing>),
    /// E0416: not an architecture that a kernel can be compiled for.
    BadArchitecture {
        /// The architecture that was given.
        given: String,
        /// The reason why no kernel can be compiled for it, and the architectures that have kernels.
        why: String,
    },
    /// E0417: NVRTC refuses a kernel.
    KernelRefused(Box<Refused>),
    /// E0418: a kernel whose CTAs wait for each other, but do not fit the device at once.
    NotResident {
        /// The name of the kernel.
        kernel: String,
        /// The number of ranks on the device.
        ranks: u32,
        /// The number of streams that these ranks have together.
        streams: u64,
        /// The number of CTAs that share a stream.
        ctas: u64,
        /// The number of CTAs that the device holds at once.
        holds: u64,
    },
    /// E0419: the device has not enough memory.
    DeviceMemory {
        /// The purpose of the memory, such as `scratch of rank 3`.
        what: String,
        /// The number of the device.
        device: usize,
        /// Bytes asked for.
        asked: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// E0420: a slice on another device than its rank.
    WrongDevice {
        /// "input", "output" or "buffer".
        what: &'static str,
        /// The rank that owns the slice.
        rank: RankId,
        /// The number of the slice's device.
        given: usize,
        /// The number of the rank's device.
        expected: usize,
    },
    /// E0421: the device ended a kernel, or the driver a call.
    KernelFailed {
        /// The action that failed, such as `RingAllReduce on device 0`.
        what: String,
        /// The driver's message.
        why: String,
    },
    /// E0421: NCCL reports an error; the communicator is given up.
    NcclFailed {
        /// The action that failed, such as `joining rank 1 of 8`.
        what: String,
        /// NCCL's message.
        why: String,
    },
    /// E0422: two devices of which one cannot reach the other's memory.
    NoPeerAccess {
        /// The number of the device that should read and write the other's memory.
        from: usize,
        /// The number of the device that owns the memory.
        to: usize,
    },
    /// E0423: a number of threads that no CTA can have.
    BadThreads {
        /// The number of threads that was given.
        given: u32,
    },
    /// The algorithm cannot be made into a kernel of that form (E0423) or into sends and receives (E0426), or the
    /// algorithm itself is wrong. The first diagnostic has the code.
    NoKernel(Vec<Diagnostic>),
    /// E0401, E0402, E0405 and others: an error that the host's engine has too.
    Host(crate::Error),
}

/// The details of [`Error::NoCuda`] (E0415): the part of CUDA that is missing, and the places of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The part that is missing.
    pub part: Part,
    /// Each place of the search, and the problem there.
    pub tried: Vec<String>,
}

/// A part of CUDA that may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// NVRTC, the library of the compiler.
    Nvrtc,
    /// A header that kernels include, such as `cuda_fp16.h`.
    Header(String),
    /// The library of the NVIDIA driver.
    Driver,
    /// An NVIDIA GPU.
    Device,
    /// NCCL, the library of sends and receives between GPUs.
    Nccl,
}

/// The details of [`Error::KernelRefused`] (E0417): NVRTC's messages about a kernel that it refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The name of the kernel.
    pub kernel: String,
    /// The architecture of the compilation, such as `sm_90`.
    pub arch: String,
    /// NVRTC's messages, with their places in the algorithm's source.
    pub messages: Vec<Message>,
    /// NVRTC's whole log.
    pub log: String,
}

impl Error {
    /// The stable code, such as E0415.
    pub fn code(&self) -> Code {
        match self {
            Self::NoCuda(_) => Code::NoCuda,
            Self::BadArchitecture { .. } => Code::BadArchitecture,
            Self::KernelRefused(_) => Code::KernelRefused,
            Self::NotResident { .. } => Code::NotResident,
            Self::DeviceMemory { .. } => Code::DeviceMemory,
            Self::WrongDevice { .. } => Code::WrongDevice,
            Self::KernelFailed { .. } | Self::NcclFailed { .. } => Code::KernelFailed,
            Self::NoPeerAccess { .. } => Code::NoPeerAccess,
            Self::BadThreads { .. } => Code::NoSuchKernel,
            Self::NoKernel(why) => why.first().map_or(Code::NoSuchKernel, |first| first.code),
            Self::Host(error) => error.code(),
        }
    }

    pub(crate) fn missing(part: Part, tried: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::NoCuda(Box::new(Missing { part, tried: tried.into_iter().map(Into::into).collect() }))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nvrtc => f.write_str("NVRTC (CUDA's compiler)"),
            Self::Header(name) => write!(f, "CUDA's header {name}"),
            Self::Driver => f.write_str("the NVIDIA driver's library"),
            Self::Device => f.write_str("an NVIDIA GPU"),
            Self::Nccl => f.write_str("NCCL"),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not there", self.part)?;
        for tried in &self.tried {
            write!(f, "\n  = note: {tried}")?;
        }
        let help = match self.part {
            Part::Nvrtc => {
                "`cargo xtask nvrtc` installs it, or set ROUNDELAY_NVRTC to the library or its folder"
            }
            Part::Header(_) => {
                "`cargo xtask nvrtc` installs the headers beside NVRTC, as do the packages of the CUDA toolkit"
            }
            Part::Driver => "install the NVIDIA driver, or run with the host's engine",
            Part::Nccl => {
                "install NCCL 2.14 or newer, or set ROUNDELAY_NCCL to the library or its folder"
            }
            Part::Device => "run with the host's engine, or on a machine that has one",
        };
        write!(f, "\n  = help: {help}")
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, arch, messages, log } = self;
        write!(f, "NVRTC refuses {kernel} for {arch}")?;
        let mut errors = messages.iter().filter(|m| m.severity == Severity::Error).peekable();
        // NVRTC gave no place, such as for an unknown option.
        if errors.peek().is_none() {
            write!(f, "\n  {}", log.trim_end().replace('\n', "\n  "))?;
        }
        for error in errors {
            write!(f, "\n  {}", error.to_string().replace('\n', "\n  "))?;
        }
        f.write_str(
            "\n  = help: text that Roundelay wrote compiles, so this is a defect of it: report it with what `roundelay emit cuda` prints",
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCuda(missing) => missing.fmt(f),
            Self::BadArchitecture { given, why } => {
                write!(f, "`{given}` is no architecture to compile for: {why}")
            }
            Self::KernelRefused(refused) => refused.fmt(f),
            Self::NotResident { kernel, ranks, streams, ctas, holds } => write!(
                f,
                "{kernel} needs {} CTAs at once ({ranks} ranks with {streams} streams in all, {ctas} CTAs each), and the device holds {holds}; all wait for each other, so use fewer ranks on the device, fewer streams, or fewer CTAs a stream",
                streams.saturating_mul(*ctas)
            ),
            Self::DeviceMemory { what, device, asked, free } => write!(
                f,
                "{what} takes {asked} bytes, and device {device} has {free} free; use a smaller count, or free buffers"
            ),
            Self::WrongDevice { what, rank, given, expected } => write!(
                f,
                "the {what} of rank {rank} is on device {given}, and the rank is on device {expected}; take one of device {expected}"
            ),
            Self::KernelFailed { what, why } => write!(
                f,
                "{what} failed: {why}; the context and all buffers in it are lost, so begin with a new one"
            ),
            Self::NcclFailed { what, why } => write!(
                f,
                "{what} failed: {why}; the communicator is given up, so all its ranks make a new one"
            ),
            Self::NoPeerAccess { from, to } => write!(
                f,
                "device {from} cannot reach the memory of device {to}; use devices that `nvidia-smi topo -p2p r` shows as OK to each other, or keep all ranks on one"
            ),
            Self::BadThreads { given } => {
                write!(f, "a CTA of {given} threads; it has a multiple of 32, from 64 to 1024")
            }
            Self::NoKernel(why) => {
                for (i, why) in why.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { "\n" }, why.title)?;
                    if let Some(help) = &why.help {
                        write!(f, "; {help}")?;
                    }
                }
                Ok(())
            }
            Self::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        Self::Host(error)
    }
}
