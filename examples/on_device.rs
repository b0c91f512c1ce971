//! One source, two engines: an algorithm of one's own on threads of this machine and, with `--features cuda`, on a
//! GPU, whose results are compared with the host's bit by bit.
//!
//! Without a GPU the second half says what is missing, and looks at the kernel's text, which needs none.

use roundelay::{DType, ReduceOp, Run as _, collective};

collective! {
    /// AllReduce in two shots: everybody sums up one block of all ranks, and then fetches the others' blocks.
    algorithm TwoShot() -> AllReduce {
        view mine = input.split(nranks);
        view block = output.split(nranks);

        copy(local.mine[rank], local.block[rank]);

        for d in 1..nranks {
            peer((rank - d) % nranks).TxAck(); // my input may be read
        }
        for d in 1..nranks {
            let from = peer((rank + d) % nranks);
            from.RxAck();
            reduce(from.mine[rank], local.block[rank]);
        }
        for d in 1..nranks {
            peer((rank - d) % nranks).TxDataSignal(); // my block is summed up
        }
        for d in 1..nranks {
            let from = peer((rank + d) % nranks);
            from.RxDataSignal();
            copy(from.block[from.rank], local.block[from.rank]);
            from.TxAck(); // I need nothing more of yours
        }
        for d in 1..nranks {
            peer((rank - d) % nranks).RxAck();
        }
    }
}

const RANKS: usize = 4;
/// A count that nothing divides.
const COUNT: usize = 100_003;

type Buffers = Vec<Vec<f32>>;

fn on_the_host(inputs: &Buffers) -> Result<Buffers, roundelay::Error> {
    let plan = TwoShot::new().plan(RANKS as u32, COUNT as u64, DType::F32, ReduceOp::Sum)?;
    let mut outputs = vec![vec![0.0; COUNT]; RANKS];
    let reads: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    let mut writes: Vec<&mut [f32]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run(&reads, &mut writes)?;
    Ok(outputs)
}

#[cfg(feature = "cuda")]
mod device {
    use std::error::Error;

    use roundelay::cuda::{CudaWorld, OnDevice as _, RankId};
    use roundelay::{DType, ReduceOp};

    use super::{Buffers, COUNT, RANKS, TwoShot};

    /// The text is one for all rank counts, and each statement names its line in this file.
    pub(super) fn check_text() -> Result<(), roundelay::Error> {
        let [few, many] = [RANKS as u32, 64].map(|nranks| {
            let kernel = TwoShot::new().kernel(nranks, DType::F32, ReduceOp::Sum)?;
            Ok::<_, roundelay::Error>(kernel.text)
        });
        let (few, many) = (few?, many?);
        // What was proved of that many ranks stands above the code.
        let code = |text: &str| text[text.find("#define").expect("a kernel")..].to_owned();
        assert_eq!(code(&few), code(&many));
        let line =
            include_str!("on_device.rs").lines().position(|l| l.contains("reduce(from.mine"));
        let statement = format!(
            "#line {} \"{}\"\n        reduce(from[mine[rank]], local[block[rank]]);",
            line.expect("the statement above") + 1,
            file!(),
        );
        assert!(few.contains(&statement), "no\n{statement}\nin\n{few}");
        println!("the kernel has {} lines, for 4 ranks as for 64", code(&few).lines().count());
        Ok(())
    }

    pub(super) fn run(world: &CudaWorld, inputs: &Buffers) -> Result<Buffers, Box<dyn Error>> {
        let plan = TwoShot::new().plan_on_device(world, COUNT as u64, DType::F32, ReduceOp::Sum)?;
        let stream = world.stream();
        let here = |rank| world.context(RankId(rank as u32)).default_stream();
        let mut reads = Vec::new();
        let mut writes = Vec::new();
        for (rank, input) in inputs.iter().enumerate() {
            reads.push(here(rank).clone_htod(input)?);
            writes.push(here(rank).alloc_zeros::<f32>(COUNT)?);
        }
        plan.launch(&stream, &reads, &mut writes)?;
        plan.wait()?;
        let outputs = writes.iter().map(|output| stream.clone_dtoh(output));
        Ok(outputs.collect::<Result<_, _>>()?)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Eighths, so that every sum is exact.
    let value = |rank: usize, i: usize| ((31 * i + 7 * rank) % 101) as f32 / 8.0;
    let inputs: Buffers =
        (0..RANKS).map(|rank| (0..COUNT).map(|i| value(rank, i)).collect()).collect();
    let sums: Vec<f32> = (0..COUNT).map(|i| (0..RANKS).map(|rank| value(rank, i)).sum()).collect();

    let host = on_the_host(&inputs)?;
    assert!(host.iter().all(|output| *output == sums));
    println!("host: {COUNT} elements right on {RANKS} ranks");

    #[cfg(feature = "cuda")]
    {
        device::check_text()?;
        match roundelay::cuda::CudaWorld::on(&[0], RANKS as u32) {
            Ok(world) => {
                let found = device::run(&world, &inputs)?;
                let bits = |outputs: &Buffers| -> Vec<Vec<u32>> {
                    outputs.iter().map(|o| o.iter().map(|x| x.to_bits()).collect()).collect()
                };
                assert!(bits(&found) == bits(&host), "the device has other bits than the host");
                println!(
                    "device: the host's bits, on {}",
                    world.names().collect::<Vec<_>>().join(", ")
                );
            }
            Err(why @ roundelay::cuda::Error::NoCuda(_)) => {
                println!("device: not run, error[{}]: {why}", why.code());
            }
            Err(other) => return Err(other.into()),
        }
    }
    #[cfg(not(feature = "cuda"))]
    println!("device: not run, this was built without `--features cuda`");
    Ok(())
}
