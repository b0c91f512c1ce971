//! A plan with options, an algorithm that the model chooses, and an error as a value.

use std::time::Duration;

use roundelay::library::{RecursiveDoublingAllReduce, RingAllReduce};
use roundelay::{
    Collective, DType, Error, Level, Options, ReduceOp, ToPlan as _, Topology, select,
};

fn main() -> Result<(), Error> {
    // ANCHOR: options
    let options = Options::new()
        .workers(2) // the calling thread and one helper
        .deadline(Duration::from_secs(10))
        .level(Level::O1);
    let plan = RingAllReduce::new().plan_with(4, 1000, DType::F32, ReduceOp::Sum, options)?;
    assert_eq!(plan.optimization(), (Level::O1, None));

    let mut buffers = [[1.0_f32; 1000], [2.0; 1000], [3.0; 1000], [4.0; 1000]];
    let stats = plan.run_in_place(&mut buffers.each_mut().map(|b| &mut b[..]))?;
    println!("{} ops, {} bytes written", stats.ops, stats.bytes);
    // ANCHOR_END: options
    assert_eq!(buffers, [[10.0; 1000]; 4]);

    // ANCHOR: certificate
    let certificate = plan.certificate();
    assert!(certificate.proved.contains(&"no deadlock"));
    assert_eq!((certificate.messages, certificate.ideal.steps), (24, 6));
    println!("{certificate}"); // the lines of `roundelay check`
    let facts = certificate.json().to_string(); // and the facts of `--format json`
    assert!(facts.contains("\"messages\": 24"));
    // ANCHOR_END: certificate

    // ANCHOR: select
    let mesh: Topology = "full_mesh(8, 25GB/s, 2us) without (0, 1)".parse()?;
    let choice = select(Collective::AllReduce, 8, 1 << 20, Some(&mesh));
    println!("1 MiB: {}", choice.best().expect("one fits").algorithm);
    let plan = choice.plan(1 << 18, DType::F32, ReduceOp::Sum)?; // 2^18 elements of 4 bytes
    // ANCHOR_END: select
    assert_eq!(plan.input_len(0), 1 << 18);

    // ANCHOR: refused
    // This algorithm is for powers of two.
    let refused = RecursiveDoublingAllReduce::new().plan(6, 1000, DType::F32, ReduceOp::Sum);
    assert_eq!(refused.unwrap_err().code().as_str(), "E0205");
    // ANCHOR_END: refused
    Ok(())
}
