//! Gradients averaged in place: bf16, op avg, one buffer a rank, and one plan run twice.

use roundelay::half::bf16;
use roundelay::library::RingAllReduce;
use roundelay::{DType, ReduceOp, ToPlan as _};

fn main() -> Result<(), roundelay::Error> {
    let plan = RingAllReduce::new().plan(3, 5, DType::Bf16, ReduceOp::Avg)?;

    let mut gradients = [1.0, 2.0, 6.0].map(|value| [bf16::from_f32(value); 5]);
    plan.run_in_place(&mut gradients.each_mut().map(|g| &mut g[..]))?;
    assert_eq!(gradients, [[bf16::from_f32(3.0); 5]; 3]);

    // No barrier between runs: the proof shows that the caller may access its buffers.
    gradients[0] = [bf16::from_f32(9.0); 5];
    plan.run_in_place(&mut gradients.each_mut().map(|g| &mut g[..]))?;
    assert_eq!(gradients, [[bf16::from_f32(5.0); 5]; 3]);

    println!("every rank has {:?}", gradients[0]);
    Ok(())
}
