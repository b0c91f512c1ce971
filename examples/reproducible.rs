//! ReduceScatter whose result has equal bits on every machine and for every size: summed in the order of the ranks, on
//! two servers of 8 cards, four of 1, and one of 8 beside one of 4. With the size in bytes as an argument, `cargo run
//! --release --example reproducible -- 400000004` runs the contest's 400 MB + 4 B.

use roundelay::ReduceOp;
use roundelay::executor::{Executor, Framework};

roundelay::executor! {
    /// Two servers of 8 cards; a cable of the first is cut.
    executor TwoByEight for ReduceScatter {
        topology: groups([8, 8]) without (0, 1);
        ccl_buffer: 64 MiB;
        otherwise => MeshAroundReduceScatter;
    }

    /// Four servers of one card.
    executor FourByOne for ReduceScatter {
        topology: groups([1, 1, 1, 1]);
        ccl_buffer: 64 MiB;
        otherwise => MeshAroundReduceScatter;
    }

    /// A server of 8 cards and one of 4.
    executor EightAndFour for ReduceScatter {
        topology: groups([8, 4]);
        ccl_buffer: 64 MiB;
        otherwise => MeshAroundReduceScatter;
    }
}

fn main() -> Result<(), roundelay::Error> {
    let size = std::env::args().nth(1).map_or(400_004, |text| text.parse().expect("bytes"));
    for executor in [&TwoByEight as &dyn Executor, &FourByOne, &EightAndFour] {
        // A CCL buffer that is smaller than the data, so that it takes several loops; and one that is not.
        let staged = run(executor, size, Framework::new().ccl_buffer(size as u64 / 3))?;
        let whole = run(executor, size, Framework::new().ccl_buffer(2 * size as u64))?;
        assert_eq!(staged, whole, "the loops do not change the result");
        println!("{}: {size} bytes, the same bits as a sum in the order of ranks", executor.name());
    }
    Ok(())
}

/// Runs on values of very different sizes, whose sum depends on the order, and compares bits.
fn run(
    executor: &dyn Executor,
    size: usize,
    framework: Framework,
) -> Result<Vec<Vec<u32>>, roundelay::Error> {
    let nranks = executor.nranks() as usize;
    let count = (size / size_of::<f32>()).div_ceil(nranks);
    let value = |rank: usize, i: usize| {
        let mantissa = 1.0 + ((i * 37 + rank * 11) % 997) as f32 / 997.0;
        mantissa * 2.0_f32.powi(((i + 5 * rank) % 40) as i32 - 20)
    };
    let inputs: Vec<Vec<f32>> =
        (0..nranks).map(|rank| (0..nranks * count).map(|i| value(rank, i)).collect()).collect();
    let mut outputs = vec![vec![0.0_f32; count]; nranks];
    let reads: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    let mut writes: Vec<&mut [f32]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    framework.run(executor, count as u64, ReduceOp::Sum, &reads, &mut writes)?;

    // 0 + (1 + (2 + …)), as the algorithm says.
    for (rank, output) in outputs.iter().enumerate() {
        for (i, element) in output.iter().enumerate() {
            let each = (0..nranks).rev().map(|from| inputs[from][rank * count + i]);
            let sum = each.reduce(|sum, next| next + sum).expect("there are ranks");
            assert_eq!(element.to_bits(), sum.to_bits(), "rank {rank}, element {i}");
        }
    }
    Ok(outputs.iter().map(|output| output.iter().map(|e| e.to_bits()).collect()).collect())
}
