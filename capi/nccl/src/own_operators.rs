//! Operators of a program, by `ncclRedOpCreatePreMulSum`: each rank multiplies its contribution by a number before the sum.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roundelay::{DType, float8, half};
use roundelay_kernels::cuda::{DeviceRank, Products, Scalar, nccl_dtype};

use crate::call_errors::{Refusal, wrong};
use crate::stream_order::in_own_context;

/// NCCL's own operators have smaller numbers.
pub(crate) const FIRST: c_int = 5;

/// `ncclScalarDevice`: the number is read when the operation runs.
const ON_DEVICE: c_int = 0;
/// `ncclScalarHostImmediate`: the number is read when the operator is made.
const ON_HOST: c_int = 1;

/// Operators of all communicators have different numbers, so that one of another communicator is found out.
static NEXT: AtomicI32 = AtomicI32::new(FIRST);

/// A sum of multiples.
#[derive(Clone)]
pub(crate) struct Operator {
    pub(crate) dtype: DType,
    pub(crate) number: Scalar,
    pub(crate) products: Arc<Products>,
}

/// The operators of a communicator, and what multiplies elements of each type.
#[derive(Default)]
pub(crate) struct Operators {
    all: Mutex<HashMap<c_int, Operator>>,
    products: Mutex<HashMap<DType, Arc<Products>>>,
}

impl Operators {
    fn all(&self) -> MutexGuard<'_, HashMap<c_int, Operator>> {
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
        let products = self.products(rank, dtype)?;
        let op = NEXT.fetch_add(1, Ordering::Relaxed);
        self.all().insert(op, Operator { dtype, number, products });
        Ok(op)
    }

    /// Returns the average as NCCL computes it: each rank multiplies its contribution by one over the number of ranks, rounded
    /// to the type. `None` for integers, whose sums are divided.
    ///
    /// # Errors
    /// The driver or NVRTC refuses.
    pub(crate) fn average(
        &self,
        rank: &DeviceRank,
        dtype: DType,
    ) -> Result<Option<Operator>, Refusal> {
        let part = 1.0 / f64::from(rank.nranks());
        let bits = match dtype {
            DType::F16 => half::f16::from_f32(part as f32).to_bits().into(),
            DType::Bf16 => half::bf16::from_f32(part as f32).to_bits().into(),
            DType::F8E4M3 => float8::F8E4M3::from_f32(part as f32).to_bits().into(),
            DType::F8E5M2 => float8::F8E5M2::from_f32(part as f32).to_bits().into(),
            DType::F32 => (part as f32).to_bits().into(),
            DType::F64 => part.to_bits(),
            _ => return Ok(None),
        };
        let products = self.products(rank, dtype)?;
        Ok(Some(Operator { dtype, number: Scalar::Bits(bits), products }))
    }

    fn products(&self, rank: &DeviceRank, dtype: DType) -> Result<Arc<Products>, Refusal> {
        let mut known = self.products.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(products) = known.get(&dtype) {
            return Ok(products.clone());
        }
        let made = Arc::new(in_own_context(|| Products::new(rank, dtype))?);
        known.insert(dtype, made.clone());
        Ok(made)
    }

    /// Returns an operator. Operations keep it when the program destroys it before they start.
    pub(crate) fn find(&self, op: c_int) -> Option<Operator> {
        self.all().get(&op).cloned()
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
