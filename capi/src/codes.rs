//! The codes of the header and their meanings.

use std::ffi::c_int;

use roundelay::{Call, Collective, DType, ReduceOp};

use crate::status::{Outcome, bad};

/// A call, by the header's codes.
#[derive(Clone, Copy)]
pub(crate) struct Called {
    pub(crate) collective: c_int,
    pub(crate) count: u64,
    pub(crate) dtype: c_int,
    pub(crate) op: c_int,
    pub(crate) root: u32,
}

/// The element types by their codes, which are NCCL's.
const DTYPES: [DType; 12] = [
    DType::I8,
    DType::U8,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::Bf16,
    DType::F8E4M3,
    DType::F8E5M2,
];

/// The reduce ops by their codes: the ops of NCCL have NCCL's codes.
const OPS: [ReduceOp; 11] = [
    ReduceOp::Sum,
    ReduceOp::Prod,
    ReduceOp::Max,
    ReduceOp::Min,
    ReduceOp::Avg,
    ReduceOp::Band,
    ReduceOp::Bor,
    ReduceOp::Bxor,
    ReduceOp::Land,
    ReduceOp::Lor,
    ReduceOp::Lxor,
];

fn of<T: Copy>(all: &[T], code: c_int, what: &str) -> Outcome<T> {
    let found = usize::try_from(code).ok().and_then(|code| all.get(code)).copied();
    found.ok_or_else(|| {
        let last = all.len() - 1;
        let fix = "roundelay.h lists the codes";
        bad(format!("{what} {code} is none of 0 to {last}"), fix)
    })
}

pub(crate) fn dtype(code: c_int) -> Outcome<DType> {
    of(&DTYPES, code, "dtype")
}

pub(crate) fn op(code: c_int) -> Outcome<ReduceOp> {
    of(&OPS, code, "op")
}

pub(crate) fn collective(code: c_int) -> Outcome<Collective> {
    of(&Collective::ALL, code, "collective")
}

impl Called {
    pub(crate) fn call(self) -> Outcome<Call> {
        let Self { count, root, .. } = self;
        let collective = collective(self.collective)?;
        Ok(Call { collective, root, count, dtype: dtype(self.dtype)?, op: op(self.op)? })
    }
}
