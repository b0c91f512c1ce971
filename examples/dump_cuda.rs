use roundelay::{DType, ReduceOp, select};
use roundelay_core::optimize::Callers;
use roundelay_core as core;
use core::emit::cuda::*;
use core::schedule::Algorithm as _;
fn main() {
    let mut args = std::env::args().skip(1);
    let nranks: u32 = args.next().unwrap().parse().unwrap();
    let dir = args.next().unwrap();
    for algorithm in select::library() {
        let proved = match core::prove(algorithm, nranks) { Ok(p) => p, Err(e) => { println!("{}: {}", algorithm.name(), e[0].title); continue } };
        let spec = Spec { element: Element::Host(DType::F32), op: ReduceOp::Sum, protocol: Protocol::of(algorithm.checked()), vector: 16, callers: Callers::One };
        let t = std::time::Instant::now();
        match Kernel::of_loops(algorithm, &proved, spec) {
            Ok(k) => { let f = k.facts(1000); println!("{} {} bytes, {} words, {:?}", k.name, k.text.len(), f.words.len(), t.elapsed()); std::fs::write(format!("{dir}/{}.cu", k.name), &k.text).unwrap(); }
            Err(e) => println!("{}: {}", algorithm.name(), e[0].title),
        }
    }
}
