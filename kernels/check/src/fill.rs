//! The bytes with which a buffer begins.

use roundelay_core::dtype::DType;

use crate::elements::{Number, POISON, bytes_of};
use crate::expression::{Expression, Numbers};
use crate::harness::Fill;

impl Fill {
    /// The bytes of a buffer with elements of a type; random ones are not known here, and are poison.
    pub(crate) fn bytes(
        &self,
        (dtype, bytes): (DType, usize),
        numbers: Numbers,
    ) -> Result<Vec<u8>, String> {
        let len = bytes / dtype.size();
        Ok(match self {
            Self::Zero => vec![0; bytes],
            Self::Poison | Self::Random => vec![POISON; bytes],
            Self::Word(word) => (0..bytes).map(|at| word.to_le_bytes()[at % 4]).collect(),
            Self::Each(value) => each(value, dtype, len, numbers)?,
            Self::Values(values) if values.len() > len => {
                return Err(format!("{} values for {len} elements", values.len()));
            }
            Self::Values(values) => {
                let value = |value: &i64| bytes_of(dtype, Number::Whole((*value).into()));
                let mut first: Vec<u8> = values.iter().flat_map(value).collect();
                first.resize(bytes, 0);
                first
            }
        })
    }
}

/// The elements whose numbers an expression gives.
pub(crate) fn each(
    value: &Expression,
    dtype: DType,
    len: usize,
    mut numbers: Numbers,
) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(len * dtype.size());
    for element in 0..len {
        numbers[5] = element as i64;
        bytes.extend(bytes_of(dtype, Number::Whole(value.value(&numbers)?.into())));
    }
    Ok(bytes)
}
