//! The ring of the tutorial, written in Rust: proved when it is compiled, and run on four ranks.

use roundelay::{DType, ReduceOp, ToPlan as _, collective};

collective! {
    /// AllReduce on a ring: every rank pulls one block a round from its left neighbor.
    algorithm FirstRing(ring: Ring) -> AllReduce {
        let left = ring.left;
        let right = ring.right;
        let me = ring.position;
        view block = output.split(nranks);

        copy(local.input, local.output);

        for round in 0..nranks - 1 {
            let b = (me - round - 1) % nranks;
            right.TxAck();
            left.RxAck();
            reduce(left.block[b], local.block[b]);
            left.TxDataSignal();
            right.RxDataSignal();
        }
        for round in 0..nranks - 1 {
            let b = (me - round) % nranks;
            right.TxAck();
            left.RxAck();
            copy(left.block[b], local.block[b]);
            left.TxDataSignal();
            right.RxDataSignal();
        }
    }
}

fn main() -> Result<(), roundelay::Error> {
    // Four ranks, ten elements each. The plan is proved before it exists.
    let plan = FirstRing::new().plan(4, 10, DType::F32, ReduceOp::Sum)?;

    let inputs = [[1.0_f32; 10], [2.0; 10], [3.0; 10], [4.0; 10]];
    let mut outputs = [[0.0_f32; 10]; 4];
    plan.run(&inputs.each_ref().map(|i| &i[..]), &mut outputs.each_mut().map(|o| &mut o[..]))?;

    assert_eq!(outputs, [[10.0; 10]; 4]);
    println!("every rank has {:?}", outputs[0]);
    Ok(())
}
