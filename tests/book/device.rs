//! Errors of the CUDA engine, for the pages. Made by hand where it takes a GPU to get one; the tests of the
//! kernels crate and of the command provoke the others.

use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_kernels::cuda::{Error, Message, Missing, Part, Refused, Severity};

pub(crate) fn example(code: Code) -> Error {
    match code {
        Code::NoCuda => Error::NoCuda(Box::new(Missing {
            part: Part::Nvrtc,
            tried: vec![
                "ROUNDELAY_NVRTC is not set".to_owned(),
                "the loader knows none of libnvrtc.so.13, libnvrtc.so.12, libnvrtc.so".to_owned(),
                "/home/me/.cargo/bin/nvrtc does not exist".to_owned(),
            ],
        })),
        Code::KernelRefused => Error::KernelRefused(Box::new(Refused {
            kernel: "RingAllReduce".to_owned(),
            arch: "sm_90".to_owned(),
            messages: vec![Message {
                file: "ring.coll".to_owned(),
                line: 14,
                severity: Severity::Error,
                text: "identifier \"blok\" is undefined".to_owned(),
            }],
            log: String::new(),
        })),
        Code::NotResident => Error::NotResident {
            kernel: "MeshAllReduce".to_owned(),
            ranks: 16,
            streams: 240,
            ctas: 4,
            holds: 264,
        },
        Code::DeviceMemory => Error::DeviceMemory {
            what: "scratch of rank 3".to_owned(),
            device: 0,
            asked: 17_179_869_184,
            free: 8_423_211_008,
        },
        Code::WrongDevice => {
            Error::WrongDevice { what: "input", rank: RankId(2), given: 1, expected: 0 }
        }
        Code::KernelFailed => Error::KernelFailed {
            what: "RingAllReduce on device 0".to_owned(),
            why: "CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was encountered".to_owned(),
        },
        Code::NoPeerAccess => Error::NoPeerAccess { from: 0, to: 3 },
        other => panic!("no call here fails with {other}"),
    }
}
