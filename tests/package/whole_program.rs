//! Recursive doubling as a user writes it, run on four ranks.

use roundelay::{DType, ReduceOp, ToPlan, collective};

collective! {
    /// Whole vectors swapped with partners at doubling distance.
    pub algorithm RecursiveDoubling() -> AllReduce {
        require is_power_of_two(nranks), "recursive doubling pairs ranks by xor";
        scratch inbox: like output;
        copy(local.input, local.output);
        for round in 0..log2(nranks) {
            let partner = peer(rank ^ (1 << round));
            partner.TxAck();
            partner.RxAck();
            copy(partner.output, local.inbox);
            partner.TxDataSignal();
            partner.RxDataSignal();
            reduce(local.inbox, local.output);
        }
    }
}

fn main() -> Result<(), roundelay::Error> {
    let plan = RecursiveDoubling::new().plan(4, 3, DType::I32, ReduceOp::Sum)?;
    let inputs = [[1, 2, 3], [10, 20, 30], [100, 200, 300], [1000, 2000, 3000]];
    let mut outputs = [[0; 3]; 4];
    plan.run(&inputs.each_ref().map(|i| &i[..]), &mut outputs.each_mut().map(|o| &mut o[..]))?;
    assert_eq!(outputs, [[1111, 2222, 3333]; 4]);

    let refused = RecursiveDoubling::new().plan(6, 3, DType::I32, ReduceOp::Sum).unwrap_err();
    assert_eq!(refused.code().as_str(), "E0205");
    Ok(())
}
