//! The sizes at which `executor run` tests each class unless it is told: the smallest, an inner one, and the largest
//! that is testable.

use roundelay::DType;
use roundelay_core::executor::Executor;
use roundelay_core::layout::Algorithm as _;
use serde::Serialize;

use roundelay_core::units::size;

/// Bytes of a call, at most; or twice the smallest of a class that begins beyond.
const LARGEST: u64 = 16 << 20;
/// Loops of a call through its CCL buffers, at most.
const LOOPS: u64 = 1024;

/// The sizes that are tested.
#[derive(Serialize)]
pub struct Tested {
    /// The sizes in bytes, in ascending order.
    #[serde(skip)]
    pub sizes: Vec<u64>,
    /// The bounds of the largest size of each class.
    pub testable: String,
    /// Classes without a size for elements of this type.
    pub untested: Vec<String>,
}

/// Returns the sizes of `executor`'s classes for elements of `dtype`. `admits` says whether there is memory for a size.
pub(super) fn tested(
    executor: &Executor,
    ccl_buffer: u64,
    dtype: DType,
    admits: impl Fn(u64) -> bool,
) -> Tested {
    let element = dtype.size() as u64;
    // Bytes of a call for an element of each unit: all sizes are multiples of that.
    let one = executor.units() * element;
    let loops = LOOPS.saturating_mul(executor.loop_max_count(ccl_buffer, element)).max(1);
    let (mut sizes, mut untested) = (Vec::new(), Vec::new());
    let mut from = 0_u64;
    for class in &executor.classes {
        let end = class.below.map_or(u64::MAX, |below| below - 1);
        // In elements of each unit.
        let least = from.div_ceil(one).max(1);
        from = class.below.unwrap_or(u64::MAX);
        if end / one < least {
            untested.push(format!(
                "{}, up to {}: no such size is a whole number of {dtype}",
                class.algorithm.name(),
                size(end)
            ));
            continue;
        }
        let largest = (LARGEST / one).max(least.saturating_mul(2)).min(loops).min(end / one);
        let mut largest = largest.max(least);
        while largest > least && !admits(largest * one) {
            largest = least + (largest - least) / 2;
        }
        // An odd number of elements is cut unevenly.
        let inner = (least + (largest - least) / 2) | 1;
        sizes.extend([least, inner.min(largest), largest].map(|count| count * one));
    }
    sizes.dedup();
    let testable = format!(
        "each class at its smallest, an inner and its largest size up to {} or twice the smallest, {LOOPS} loops, \
         and the memory there is; --sizes tests others",
        size(LARGEST)
    );
    Tested { sizes, testable, untested }
}
