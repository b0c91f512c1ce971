//! The comparison of our results with MPI's, for `ROUNDELAY_MPI=verify`.
//!
//! Data that is moved, integers and extrema are compared bit by bit. Sums and products of floats depend on the order of
//! the operations: two orders of n values differ by at most 2 (n - 1) u times the sum of the magnitudes, where u is the
//! unit roundoff (N. Higham, *Accuracy and Stability of Numerical Algorithms*, section 4.2); two orders of a product
//! differ by at most 2 (n - 1) u times the magnitude of the result.

use roundelay::{Call, DType, ReduceOp};
use roundelay_kernels::mpi::Mpi;

use crate::call::{MpiCall, MpiCollective};
use crate::call_buffers::{Copied, Side};
use crate::decide::Ours;
use crate::pass::pass;
use crate::why::Wrong;

/// Returns the sums of the magnitudes that each element of this rank's output is the sum of, where that is needed.
///
/// # Errors
/// MPI's code.
pub(crate) fn bound(mpi: &Mpi, asked: &MpiCall, ours: &Ours) -> Result<Option<Copied>, Wrong> {
    let Call { dtype, op, .. } = ours.call;
    let reduces = ours.call.collective.reduces() && asked.what != MpiCollective::Barrier;
    if !(reduces && dtype.is_float() && op == ReduceOp::Sum) {
        return Ok(None);
    }
    if let Some(blocks) = &ours.blocks {
        let Some(output) = &blocks.output else { return Ok(None) };
        // SAFETY: as below; a packed copy has as many bytes as the output.
        let both = unsafe { (blocks.input.packed(mpi), output.packed(mpi)) };
        let (input, sums) = (both.0.map_err(Wrong::Packing)?, both.1.map_err(Wrong::Packing)?);
        return summed(mpi, asked, dtype, input, sums).map(Some);
    }
    let input = if ours.in_place { ours.output } else { ours.input };
    let Some((values, kind)) = input else { return Ok(None) };
    let side = Side { mpi, values, kind };
    // SAFETY: the program's values, which our call has left as they were: its output was a copy.
    let magnitudes = unsafe { side.packed() }.map_err(Wrong::Packing)?;
    let bytes = ours.output.map_or(0, |(values, kind)| values.count as usize * kind.size as usize);
    summed(mpi, asked, dtype, magnitudes, Copied::new(bytes)).map(Some)
}

/// Has MPI sum up the magnitudes of an input into `sums`.
fn summed(
    mpi: &Mpi,
    asked: &MpiCall,
    dtype: DType,
    mut magnitudes: Copied,
    mut sums: Copied,
) -> Result<Copied, Wrong> {
    for element in magnitudes.chunks_exact_mut(dtype.size()) {
        // The sign is the highest bit of the last byte.
        if let Some(last) = element.last_mut() {
            *last &= 0x7f;
        }
    }
    let mut again = *asked;
    again.send.at = magnitudes.as_mut_ptr().cast();
    again.recv.at = sums.as_mut_ptr().cast();
    let wide = asked.arrays.iter().any(|arrays| arrays.counts.wide);
    match pass(mpi.functions(), &again, wide) {
        0 => Ok(sums),
        code => Err(Wrong::Code(code)),
    }
}

/// Returns the first element in which ours and theirs differ by more than the order of summation allows, in words.
pub(crate) fn differs(
    call: &Call,
    nranks: u32,
    ours: &[u8],
    theirs: &[u8],
    bound: Option<&[u8]>,
) -> Option<String> {
    let size = call.dtype.size();
    let sums = bound.map_or(&[][..], |bound| bound);
    for (at, (our, their)) in ours.chunks_exact(size).zip(theirs.chunks_exact(size)).enumerate() {
        if our == their {
            continue;
        }
        let float = call.collective.reduces() && call.dtype.is_float();
        let values = [our, their, sums.get(at * size..(at + 1) * size).unwrap_or(&[])];
        if float && close(call, nranks, values.map(|bytes| float_of(call.dtype, bytes))) {
            continue;
        }
        let text = |bytes: &[u8]| {
            if float {
                return float_of(call.dtype, bytes).to_string();
            }
            let mut number = [0; 8];
            number[..size].copy_from_slice(bytes);
            format!("{:01$x}", u64::from_le_bytes(number), 2 * size)
        };
        return Some(format!(
            "element {at} of {} is {} here and {} by MPI",
            theirs.len() / size,
            text(our),
            text(their)
        ));
    }
    None
}

/// Whether two results are as near as two orders of making them bring them.
fn close(call: &Call, nranks: u32, [ours, theirs, sum]: [f64; 3]) -> bool {
    let roundoff = match call.dtype {
        DType::F64 => f64::EPSILON / 2.0,
        _ => f64::from(f32::EPSILON) / 2.0,
    };
    let steps = 2.0 * f64::from(nranks - 1) * roundoff;
    match call.op {
        // Zeros of either sign are equal, and the result of a NaN is not defined.
        ReduceOp::Min | ReduceOp::Max => ours.is_nan() || theirs.is_nan() || (ours - theirs) == 0.0,
        ReduceOp::Sum if sum.is_finite() => (ours - theirs).abs() <= steps * sum * (1.0 + steps),
        ReduceOp::Prod if ours.is_finite() && theirs.is_finite() => {
            // Below the smallest normal number the roundoff is a fixed one.
            let least = if call.dtype == DType::F64 {
                f64::MIN_POSITIVE
            } else {
                f64::from(f32::MIN_POSITIVE)
            };
            (ours - theirs).abs() <= steps * (1.0 + steps) * ours.abs().max(theirs.abs()).max(least)
        }
        // A result that overflows in one order need not overflow in another.
        _ => true,
    }
}

fn float_of(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::F64 => bytes.first_chunk().map_or(f64::NAN, |bytes| f64::from_le_bytes(*bytes)),
        _ => bytes.first_chunk().map_or(f64::NAN, |bytes| f64::from(f32::from_le_bytes(*bytes))),
    }
}

#[cfg(test)]
mod tests {
    use roundelay::{Call, Collective, DType, ReduceOp};

    use super::differs;

    fn call(dtype: DType, op: ReduceOp) -> Call {
        Call { collective: Collective::AllReduce, root: 0, count: 2, dtype, op }
    }

    fn bytes(values: [f32; 2]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn the_order_of_a_sum_is_allowed_for_and_no_more() {
        let sum = call(DType::F32, ReduceOp::Sum);
        let (theirs, sums) = (bytes([1.0, 5.0]), bytes([1e6, 5.0]));
        let told = |ours: [f32; 2]| differs(&sum, 4, &bytes(ours), &theirs, Some(&sums));
        assert_eq!(told([1.0, 5.0]), None);
        // Six roundoffs of a million are a third.
        assert_eq!(told([1.3, 5.0]), None);
        let text = told([1.5, 5.0]).expect("too far");
        assert_eq!(text, "element 0 of 2 is 1.5 here and 1 by MPI");
        assert!(told([1.0, 5.00001]).is_some_and(|text| text.starts_with("element 1")));
    }

    #[test]
    fn all_else_is_equal_to_the_bit() {
        let int = call(DType::I32, ReduceOp::Sum);
        let text = differs(&int, 2, &[1, 0, 0, 0], &[0, 1, 0, 0], None).expect("they differ");
        assert_eq!(text, "element 0 of 1 is 00000001 here and 00000100 by MPI");
        let max = call(DType::F32, ReduceOp::Max);
        assert_eq!(differs(&max, 2, &bytes([0.0, 1.0]), &bytes([-0.0, 1.0]), None), None);
        assert!(differs(&max, 2, &bytes([1.0, 1.0]), &bytes([1.0, 1.000_001]), None).is_some());
        let prod = call(DType::F32, ReduceOp::Prod);
        assert_eq!(
            differs(&prod, 8, &bytes([1e30, 1.0]), &bytes([1.000_000_5e30, 1.0]), None),
            None
        );
        assert!(differs(&prod, 8, &bytes([1e30, 1.0]), &bytes([1.01e30, 1.0]), None).is_some());
    }
}
