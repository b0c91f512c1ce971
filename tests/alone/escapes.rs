//! `rust { }` calls what is in scope and sees the author's names.
#![deny(warnings)]

use roundelay::{DType, ReduceOp, ToPlan, collective};

/// A table that the language has no way to hold.
const ORDER: [i64; 3] = [2, 0, 1];

/// Also the name of a built-in: in an escape it is the crate's own.
fn max(position: usize) -> usize {
    position
}

collective! {
    algorithm FromTable() -> AllGather {
        require nranks == 3, "the table has three entries";
        let to = peer(rust { ORDER[rank.get() as usize] });
        let from = peer(rust {
            let at = ORDER.iter().position(|to| *to == rank.get());
            max(at.expect("a permutation"))
        });
        copy(local.input, local.output.block(rank));
        to.TxDataSignal();
        from.RxDataSignal();
        copy(from.input, local.output.block(from.rank));
        from.TxAck();
        to.RxAck();
        from.TxDataSignal();
        to.RxDataSignal();
        copy(to.input, local.output.block(to.rank));
        to.TxAck();
        from.RxAck();
    }
}

#[test]
fn escapes_see_the_authors_names() -> Result<(), roundelay::Error> {
    let plan = FromTable::new().plan(3, 1, DType::U8, ReduceOp::Sum)?;
    let mut outputs = [[0_u8; 3]; 3];
    plan.run(&[&[1_u8], &[2], &[3]], &mut outputs.each_mut().map(|o| &mut o[..]))?;
    assert_eq!(outputs, [[1, 2, 3]; 3]);
    Ok(())
}
