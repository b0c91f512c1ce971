//! An algorithm of the library with a parameter: both directions of a ring that avoids the cut 0-1 link of an 8-card
//! mesh, on a count without small factors. In the natural order it is refused.

use std::sync::Arc;

use roundelay::library::TwistedRingAllReduce;
use roundelay::{DType, ReduceOp, Ring, ToPlan as _, Topology};

const RANKS: usize = 8;
const COUNT: usize = 1_000_003;

fn main() -> Result<(), roundelay::Error> {
    // ANCHOR: plan_on
    let mesh: Arc<Topology> = Arc::new("full_mesh(8) without (0, 1)".parse()?);
    let natural = TwistedRingAllReduce::new();
    let refused = natural.plan_on(&mesh, COUNT as u64, DType::I64, ReduceOp::Max);
    assert!(refused.is_err_and(|error| error.to_string().contains("there is no link 0 -> 1")));

    let around = natural.ring(Ring::around(mesh.clone()));
    let plan = around.plan_on(&mesh, COUNT as u64, DType::I64, ReduceOp::Max)?;
    // ANCHOR_END: plan_on

    // Element i of rank r is (31 * i + r) % 101, so the largest differs from element to element.
    let value = |rank: usize, i: usize| ((31 * i + rank) % 101) as i64;
    let inputs: Vec<Vec<i64>> =
        (0..RANKS).map(|rank| (0..COUNT).map(|i| value(rank, i)).collect()).collect();
    let mut outputs = vec![vec![0; COUNT]; RANKS];

    let reads: Vec<&[i64]> = inputs.iter().map(Vec::as_slice).collect();
    let mut writes: Vec<&mut [i64]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    let stats = plan.run(&reads, &mut writes)?;

    for output in &outputs {
        for (i, element) in output.iter().enumerate() {
            let largest = (0..RANKS).map(|rank| value(rank, i)).max();
            assert_eq!(Some(*element), largest, "element {i}");
        }
    }
    println!("{} ops, {} bytes moved, all elements right", stats.ops, stats.bytes);
    Ok(())
}
