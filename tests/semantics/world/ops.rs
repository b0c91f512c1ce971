//! The ops of integers among ranks as processes.

use roundelay::ReduceOp;

use super::super::ops::{assert_right, refused};
use super::{each, patient};

#[test]
fn processes_have_them() {
    for n in 1..=3 {
        each(n, patient(), |world| {
            assert_right(&mut world.rank());
            let pending = world.nonblocking().all_reduce(vec![1.0_f64; 3], ReduceOp::Bor);
            refused(ReduceOp::Bor, "f64", pending.wait());
        });
    }
}
