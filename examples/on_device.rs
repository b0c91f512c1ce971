//! One source, two engines: an algorithm of one's own on threads of this machine and, with `--features cuda`, on a GPU,
//! whose results are compared with the host's bit by bit.
//!
//! Without a GPU the second half says which part is missing, and looks at the kernel's text, which needs no GPU.

#[cfg(feature = "cuda")]
use roundelay::cuda::{CudaWorld, OnDevice as _};
use roundelay::{DType, ReduceOp, ToPlan as _, collective};

collective! {
    /// AllReduce in two shots: every rank sums up one block of all ranks, and then fetches the other blocks.
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
/// A count without small factors.
const COUNT: usize = 100_003;

type Buffers = Vec<Vec<f32>>;
type Anything = Box<dyn std::error::Error>;

fn on_the_host(inputs: &Buffers) -> Result<Buffers, roundelay::Error> {
    let plan = TwoShot::new().plan(RANKS as u32, COUNT as u64, DType::F32, ReduceOp::Sum)?;
    let mut outputs = vec![vec![0.0; COUNT]; RANKS];
    let reads: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    let mut writes: Vec<&mut [f32]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run(&reads, &mut writes)?;
    Ok(outputs)
}

// ANCHOR: device
#[cfg(feature = "cuda")]
fn on_the_device(world: &CudaWorld, inputs: &Buffers) -> Result<Buffers, Anything> {
    let plan = TwoShot::new().plan_on_device(world, COUNT as u64, DType::F32, ReduceOp::Sum)?;
    let stream = world.stream();
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    for (rank, input) in inputs.iter().enumerate() {
        let here = world.context(rank as u32).default_stream();
        reads.push(here.clone_htod(input)?);
        writes.push(here.alloc_zeros::<f32>(COUNT)?);
    }
    plan.launch(&stream, &reads, &mut writes)?;
    plan.wait()?;
    let outputs = writes.iter().map(|output| stream.clone_dtoh(output));
    Ok(outputs.collect::<Result<_, _>>()?)
}
// ANCHOR_END: device

/// The code has the same lines for all rank counts, and each op names its line in this file.
#[cfg(feature = "cuda")]
fn check_text() -> Result<(), roundelay::Error> {
    // The certificate for these ranks stands above it.
    let code = |nranks| {
        let kernel = TwoShot::new().kernel(nranks, DType::F32, ReduceOp::Sum)?;
        let first = kernel.text.find("#define").expect("a kernel");
        Ok::<_, roundelay::Error>(kernel.text[first..].to_owned())
    };
    let code = [code(RANKS as u32)?, code(64)?];
    let few = code[0].replace(&format!("PIECES {RANKS}\n"), "PIECES 64\n");
    assert_eq!(few.replace(&format!("nranks = {RANKS};"), "nranks = 64;"), code[1]);
    let mut lines = include_str!("on_device.rs").lines();
    let line = 1 + lines.position(|line| line.contains("reduce(from.mine")).expect("see above");
    let statement = format!(
        "#line {line} \"{}\"\n        lane.reduce(lane.of(from, INPUT, {{me, 1}}), lane.mine(OUTPUT, {{me, 1}}));",
        file!()
    );
    assert!(code[0].contains(&statement), "no\n{statement}\nin\n{}", code[0]);
    println!("the kernel has {} lines, for {RANKS} ranks as for 64", code[0].lines().count());
    Ok(())
}

#[cfg(feature = "cuda")]
fn compare(host: &Buffers, inputs: &Buffers) -> Result<(), Anything> {
    let world = match CudaWorld::on_devices(&[0], RANKS as u32) {
        Ok(world) => world,
        Err(why @ roundelay::cuda::Error::NoCuda(_)) => {
            println!("device: not run, error[{}]: {why}", why.code());
            return Ok(());
        }
        Err(other) => return Err(other.into()),
    };
    let device = on_the_device(&world, inputs)?;
    let bits = |outputs: &Buffers| -> Vec<u32> {
        outputs.iter().flatten().map(|element| element.to_bits()).collect()
    };
    assert!(bits(&device) == bits(host), "the device has other bits than the host");
    println!("device: the host's bits, on {}", world.names().collect::<Vec<_>>().join(", "));
    Ok(())
}

fn main() -> Result<(), Anything> {
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
        check_text()?;
        compare(&host, &inputs)?;
    }
    #[cfg(not(feature = "cuda"))]
    println!("device: not run, this was built without `--features cuda`");
    Ok(())
}
