//! Every algorithm of the library as a kernel, on a GPU or on CPU threads, bit for bit against the host's engine:
//! `gpu-check cuda|shim|nccl [--quick] [--only NAME,…] [--device N] [--patience SECONDS]`.
//! `cargo xtask gpu-test` calls it, also below
//! compute-sanitizer. Where there is no NCCL for it, `gpu-check nccl` says so and ends with 3.

mod cases;
mod cuda;
mod engine;
mod nccl;
mod shim;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use cases::{Case, Data};
use engine::Engine;
use roundelay::{Algorithm as _, DType, ReduceOp, select};
use roundelay_core::diagnostics::Code;
use roundelay_core::emit::cuda::{Form, Protocol};
use roundelay_core::program::Configured;
use roundelay_core::prove_source;

const USAGE: &str =
    "usage: gpu-check cuda|shim|nccl [--quick] [--only NAME,...] [--device N] [--patience SECONDS]";

struct Args {
    engine: Box<dyn Engine>,
    quick: bool,
    only: Vec<String>,
}

/// Why nothing is checked.
enum Refused {
    Usage(String),
    /// Something that this machine does not have.
    NotThere(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Usage(why)
    }
}

fn number(flag: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{flag} takes a number, not `{value}`; {USAGE}"))
}

fn args() -> Result<Args, Refused> {
    let mut given = std::env::args().skip(1);
    let kind = given.next().ok_or(USAGE.to_owned())?;
    let (mut quick, mut only, mut device, mut patience) = (false, Vec::new(), 0, 10);
    while let Some(flag) = given.next() {
        let mut value = || given.next().ok_or(format!("{flag} takes a value; {USAGE}"));
        match flag.as_str() {
            "--quick" => quick = true,
            "--only" => only.extend(value()?.split(',').map(str::to_owned)),
            "--device" => device = number(&flag, &value()?)?,
            "--patience" => patience = number(&flag, &value()?)?,
            other => return Err(format!("no flag {other}; {USAGE}").into()),
        }
    }
    let engine: Box<dyn Engine> = match kind.as_str() {
        "cuda" => Box::new(cuda::Cuda::new(device as usize, Duration::from_secs(patience))?),
        "shim" => Box::new(shim::Threads),
        "nccl" => match nccl::Nccl::new(device as usize, Duration::from_secs(patience)) {
            Ok(nccl) => Box::new(nccl),
            Err(why) => return Err(Refused::NotThere(why)),
        },
        other => return Err(format!("no engine {other}; {USAGE}").into()),
    };
    if let Some(name) =
        only.iter().find(|name| select::library().iter().all(|a| a.name() != **name))
    {
        let why = format!("the library has no algorithm {name}; `roundelay list` shows all");
        return Err(why.into());
    }
    Ok(Args { engine, quick, only })
}

fn main() -> ExitCode {
    match args().map(|args| check(&args)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(Refused::Usage(why)) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
        Err(Refused::NotThere(why)) => {
            println!("# not checked: {why}");
            ExitCode::from(3)
        }
    }
}

/// How many checks failed.
fn check(args: &Args) -> usize {
    let engine = args.engine.as_ref();
    println!("# {}", engine.about());
    let begun = Instant::now();
    let mut failed = 0;
    let mut ran = 0;
    for algorithm in select::library() {
        if !args.only.is_empty() && args.only.iter().all(|name| name != algorithm.name()) {
            continue;
        }
        let (runs, wrong) = one(engine, algorithm, args.quick);
        ran += runs;
        failed += wrong.len();
        let verdict = if wrong.is_empty() { "ok" } else { "WRONG" };
        println!("{:<44} {runs:>4} runs  {verdict}", algorithm.name());
        for why in wrong {
            println!("  {why}");
        }
    }
    match without_last(engine) {
        Ok(report) => println!("a rank that never runs is reported: {report}"),
        Err(why) => {
            failed += 1;
            println!("a rank that never runs: WRONG\n  {why}");
        }
    }
    println!("# {ran} runs, {failed} wrong, {:.0} s", begun.elapsed().as_secs_f64());
    failed
}

/// The runs of one algorithm, and what was wrong with them.
fn one(engine: &dyn Engine, algorithm: &Configured, quick: bool) -> (usize, Vec<String>) {
    let (mut runs, mut wrong) = (0, Vec::new());
    for nranks in cases::rank_counts(engine, quick) {
        let proved = match prove_source(algorithm, nranks) {
            Ok(proved) => proved,
            // Such as a power of two that is none.
            Err(why) if why.iter().all(|why| why.code == Code::RankCountRefused) => continue,
            Err(why) => {
                wrong.push(format!("{nranks} ranks: {}", why[0].title));
                continue;
            }
        };
        let asked = Protocol::of(algorithm.checked());
        // Slots may carry flags with the data, too.
        let protocols: &[Protocol] = match asked {
            _ if !engine.has_kernels() => &[Protocol::Direct],
            Protocol::Direct => &[Protocol::Direct],
            _ => &[Protocol::Simple, Protocol::Ll],
        };
        for data in Data::all(engine, nranks, quick) {
            let kinds = protocols.iter().map(|protocol| (Form::Loops, *protocol));
            // A table is another text, so one set of data will do.
            let table = (data.is_first() && engine.has_kernels())
                .then_some((Form::Table, Protocol::Direct));
            for (form, protocol) in kinds.chain(table) {
                let case = Case { algorithm, proved: &proved, nranks, data, form, protocol };
                for in_place in [false, true] {
                    let Some(expected) = case.expected(in_place) else { continue };
                    runs += 1;
                    match engine.run(&case, in_place, case.repeats(quick)) {
                        Ok(outputs) if outputs == expected => {}
                        Ok(outputs) => wrong.push(case.difference(in_place, &expected, &outputs)),
                        Err(why) => wrong.push(format!("{}: {why}", case.name(in_place))),
                    }
                }
            }
        }
    }
    (runs, wrong)
}

/// The report of a ring whose last rank never runs.
fn without_last(engine: &dyn Engine) -> Result<String, String> {
    const NRANKS: u32 = 4;
    let ring = select::library().iter().find(|algorithm| algorithm.name() == "RingAllReduce");
    let algorithm = ring.ok_or("the library has no RingAllReduce")?;
    let proved = prove_source(algorithm, NRANKS).map_err(|all| all[0].title.clone())?;
    let data = Data { count: 100, dtype: DType::F32, op: ReduceOp::Sum };
    let (form, protocol) = (Form::Loops, Protocol::Direct);
    engine.without_last(&Case { algorithm, proved: &proved, nranks: NRANKS, data, form, protocol })
}
