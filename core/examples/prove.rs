//! Times the proof of a source: `cargo run --release -p roundelay-core --example prove FILE NRANKS`.

use std::time::Instant;

use roundelay_core::check::Door;
use roundelay_core::compile;
use roundelay_core::schedule::Algorithm as _;
use roundelay_core::schedule::interpret::Interpreted;
use roundelay_core::source::Source;
use roundelay_core::verify::verify;

fn main() {
    let mut args = std::env::args().skip(1);
    let usage = "usage: prove FILE NRANKS";
    let file = args.next().expect(usage);
    let nranks: u32 = args.next().and_then(|n| n.parse().ok()).expect(usage);
    let text = std::fs::read_to_string(&file).expect("a readable file");
    let source = Source::from_text(file, &text);
    let program = match compile(&source, Door::File) {
        Ok(program) => program,
        Err(errors) => return errors.iter().for_each(|e| println!("{}", e.report(&source))),
    };
    for algorithm in program.algorithms {
        let algorithm = Interpreted::new(algorithm, &source);
        let start = Instant::now();
        let schedule = algorithm.schedule(nranks);
        let built = start.elapsed();
        let proof = schedule.and_then(|schedule| {
            println!("{}: {} ops built in {built:?}", algorithm.name(), schedule.ops.len());
            verify(&schedule)
        });
        match proof {
            Ok(proof) => println!(
                "proved in {:?}: depth {}, {} rounds, {} finish ops, scale {}",
                start.elapsed() - built,
                proof.reduce_depth,
                proof.rounds,
                proof.finish.len(),
                proof.scale_outputs
            ),
            Err(all) => {
                all.into_iter()
                    .for_each(|f| println!("{}", algorithm.diagnostic(f, nranks).report(&source)));
            }
        }
    }
}
