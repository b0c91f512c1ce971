//! Operators of a program, by `ncclRedOpCreatePreMulSum`: each rank multiplies its contribution by a number before the sum.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roundelay::{DType, ReduceOp, float8, half};
use roundelay_kernels::cuda::{DeviceRank, Products, Scalar, nccl_dtype};

use crate::call_errors::{Refusal, wrong};
use crate::settings::{Average, settings};
use crate::stream_order::in_own_context;

/// NCCL's own operators, in the order of their numbers.
const OPS: [ReduceOp; 5] =
    [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::Avg];

/// `ncclScalarDevice`: the number is read when the operation runs.
const ON_DEVICE: c_int = 0;
/// `ncclScalarHostImmediate`: the number is read when the operator is made.
const ON_HOST: c_int = 1;

/// Operators of all communicators have different numbers, so that one of another communicator is found out.
static NEXT: AtomicI32 = AtomicI32::new(OPS.len() as c_int);

/// A sum of multiples.
#[derive(Clone, Copy)]
pub(crate) struct Multiples {
    dtype: DType,
    pub(crate) number: Scalar,
}

/// The operators of a communicator, and what multiplies elements of each type.
#[derive(Default)]
pub(crate) struct Operators {
    all: Mutex<HashMap<c_int, Multiples>>,
    products: Mutex<HashMap<DType, Arc<Products>>>,
}

impl Operators {
    fn all(&self) -> MutexGuard<'_, HashMap<c_int, Multiples>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an operator, and returns its number.
    ///
    /// # Errors
    /// The data type or the place of the number is not known; the driver or NVRTC refuses.
    ///
    /// # Safety
    /// `scalar` has an element of the type, on the host or on the device as `place` says.
    pub(crate) unsafe fn make(
        &self,
        rank: &DeviceRank,
        scalar: *const c_void,
        dtype: c_int,
        place: c_int,
    ) -> Result<c_int, Refusal> {
        let dtype =
            nccl_dtype(dtype).ok_or_else(|| wrong(format!("there is no data type {dtype}")))?;
        if scalar.is_null() {
            return Err(wrong("scalar is null"));
        }
        let number = match place {
            ON_DEVICE if !scalar.addr().is_multiple_of(dtype.size()) => {
                return Err(wrong(format!("scalar is not aligned for {dtype}")));
            }
            ON_DEVICE => Scalar::At(scalar.addr() as u64),
            ON_HOST => {
                let mut bits = [0; 8];
                // SAFETY: the caller's promise, and no type has more than 8 bytes.
                unsafe {
                    scalar.cast::<u8>().copy_to_nonoverlapping(bits.as_mut_ptr(), dtype.size());
                }
                Scalar::Bits(u64::from_le_bytes(bits))
            }
            other => return Err(wrong(format!("residence is {other}"))),
        };
        // A graph may capture the first operation.
        self.products(rank, dtype)?;
        let op = NEXT.fetch_add(1, Ordering::Relaxed);
        self.all().insert(op, Multiples { dtype, number });
        Ok(op)
    }

    /// Returns the op of an operator's number for elements of a type on `nranks` ranks, and the multiples whose sum it is, if it
    /// is one. Operations keep these when the program destroys the operator before they start.
    ///
    /// # Errors
    /// There is no such operator, or it is for another type.
    pub(crate) fn find(
        &self,
        op: c_int,
        dtype: DType,
        nranks: u32,
    ) -> Result<(ReduceOp, Option<Multiples>), Refusal> {
        let known = usize::try_from(op).ok().and_then(|at| OPS.get(at));
        if let Some(op) = known {
            let is_of_parts = *op == ReduceOp::Avg && settings().average == Average::Each;
            let parts = is_of_parts.then(|| average(dtype, nranks)).flatten();
            return Ok((parts.map_or(*op, |_| ReduceOp::Sum), parts));
        }
        let made = self.all().get(&op).copied();
        let made = made.ok_or_else(|| wrong(format!("there is no operator {op}")))?;
        if made.dtype != dtype {
            let of = made.dtype;
            return Err(wrong(format!("operator {op} is for {of}, and the elements are {dtype}")));
        }
        Ok((ReduceOp::Sum, Some(made)))
    }

    /// Returns what multiplies elements of a type.
    ///
    /// # Errors
    /// The driver or NVRTC refuses.
    pub(crate) fn products(
        &self,
        rank: &DeviceRank,
        dtype: DType,
    ) -> Result<Arc<Products>, Refusal> {
        let mut known = self.products.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(products) = known.get(&dtype) {
            return Ok(products.clone());
        }
        let made = Arc::new(in_own_context(|| Products::new(rank, dtype))?);
        known.insert(dtype, made.clone());
        Ok(made)
    }

    /// Destroys an operator.
    ///
    /// # Errors
    /// It is none of this communicator.
    pub(crate) fn destroy(&self, op: c_int) -> Result<(), Refusal> {
        let gone = self.all().remove(&op).map(drop);
        gone.ok_or_else(|| wrong(format!("operator {op} is none that the communicator has made")))
    }
}

/// Returns the average as NCCL computes it: each rank multiplies its contribution by one over the number of ranks, rounded to
/// the type. `None` for integers, whose sums are divided.
fn average(dtype: DType, nranks: u32) -> Option<Multiples> {
    let part = 1.0 / f64::from(nranks);
    let bits = match dtype {
        DType::F16 => half::f16::from_f32(part as f32).to_bits().into(),
        DType::Bf16 => half::bf16::from_f32(part as f32).to_bits().into(),
        DType::F8E4M3 => float8::F8E4M3::from_f32(part as f32).to_bits().into(),
        DType::F8E5M2 => float8::F8E5M2::from_f32(part as f32).to_bits().into(),
        DType::F32 => (part as f32).to_bits().into(),
        DType::F64 => part.to_bits(),
        _ => return None,
    };
    Some(Multiples { dtype, number: Scalar::Bits(bits) })
}
