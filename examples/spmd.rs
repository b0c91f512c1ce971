//! Ranks that call by themselves, each on a thread of its own as in MPI: a power iteration. Every rank holds some rows
//! of a matrix, multiplies them with the whole vector, and fetches the other ranks' parts of the result.

use std::thread;

use roundelay::{Comm, Error, ReduceOp};

const RANKS: u32 = 4;
/// Rows of the matrix, and of each rank.
const ROWS: usize = 64;
const MINE: usize = ROWS / RANKS as usize;

/// Returns an element of a symmetric matrix whose largest eigenvalue is 2 * cos(pi / (ROWS + 1)) + 2.
fn element(row: usize, column: usize) -> f64 {
    match row.abs_diff(column) {
        0 => 2.0,
        1 => 1.0,
        _ => 0.0,
    }
}

// ANCHOR: rank
fn eigenvalue(comm: &Comm, rank: u32) -> Result<f64, Error> {
    let mut comm = comm.rank(rank)?;
    let first = rank as usize * MINE;
    let mut vector = vec![1.0; ROWS];
    let mut product = [0.0; MINE];
    let mut length = [0.0];
    for _ in 0..4000 {
        for (row, sum) in (first..).zip(&mut product) {
            *sum = (0..ROWS).map(|column| element(row, column) * vector[column]).sum();
        }
        // The length of the whole product, and then the product itself, on every rank.
        length[0] = product.iter().map(|x| x * x).sum();
        comm.all_reduce(&mut length, ReduceOp::Sum)?;
        for x in &mut product {
            *x /= length[0].sqrt();
        }
        comm.all_gather(&product, &mut vector)?;
    }
    Ok(length[0].sqrt())
}
// ANCHOR_END: rank

fn main() -> Result<(), Error> {
    let comm = Comm::new(RANKS)?;
    let expected = 2.0 * (std::f64::consts::PI / (ROWS + 1) as f64).cos() + 2.0;
    let found: Vec<f64> = thread::scope(|threads| {
        let comm = &comm;
        let ranks: Vec<_> =
            (0..RANKS).map(|rank| threads.spawn(move || eigenvalue(comm, rank))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect::<Result<_, _>>()
    })?;
    // The reduction has one order on all ranks, so all results have equal bits.
    assert!(found.windows(2).all(|pair| pair[0].to_bits() == pair[1].to_bits()));
    assert!((found[0] - expected).abs() < 1e-6, "{} is not {expected}", found[0]);
    println!("largest eigenvalue {:.9} on {RANKS} ranks", found[0]);
    Ok(())
}
