//! Mistakes in the device headers, each of which must be found by a rule for the PTX of some kernel or by a run of it.

use std::collections::HashSet;
use std::time::Instant;

use roundelay::{DType, ReduceOp, select};
use roundelay_core::prove_source;
use roundelay_export::cuda::{Form, Kernel, Protocol};
use roundelay_kernels::cuda::{Arch, HEADERS};
use roundelay_kernels::interpreter::Interpreted;
use roundelay_kernels::shim::ShimJob;

use super::cases::{Case, Data, Way};
use super::ptx::{compiled, run, target};

/// Runs of each job.
const SEEDS: u64 = 4;

/// A mistake.
struct Mutant {
    name: &'static str,
    header: &'static str,
    text: String,
    replacement: String,
    /// The reason why no run finds it.
    why_not: Option<&'static str>,
}

/// The mistakes of the list.
fn mutants() -> Vec<Mutant> {
    let blocks = include_str!("mutants.txt").split("\n\n");
    let of = |block: &'static str| {
        let mut lines = block.lines().filter(|line| !line.starts_with('#'));
        let name = lines.next()?;
        let header = lines.next().expect("a header");
        let mut cut = |mark: &str| {
            let line = lines.next().unwrap_or_else(|| panic!("{name} has no line `{mark}`"));
            let text = line.strip_prefix(mark).unwrap_or_else(|| panic!("{name}: `{mark}`"));
            text.trim_start().replace("\\n", "\n")
        };
        let (text, replacement) = (cut("-"), cut("+"));
        let why_not = lines.next().and_then(|line| line.strip_prefix("= "));
        Some(Mutant { name, header, text, replacement, why_not })
    };
    blocks.filter_map(of).collect()
}

/// A kernel that shall find mistakes, on data.
struct Witness {
    algorithm: &'static str,
    nranks: u32,
    data: Data,
    form: Form,
    protocol: Protocol,
    parts: u32,
    in_place: bool,
}

/// The kernels by which mistakes are found, those of most of them first.
fn witnesses() -> Vec<Witness> {
    let (sum, f32) = (ReduceOp::Sum, DType::F32);
    let of = |algorithm, nranks, count, parts, protocol| {
        let data = Data { count, dtype: f32, op: sum };
        Witness { algorithm, nranks, data, form: Form::Loops, protocol, parts, in_place: false }
    };
    let narrow = Data { count: 700, dtype: DType::Bf16, op: ReduceOp::Avg };
    vec![
        of("RingAllReduce", 3, 1031, 2, Protocol::Direct),
        of("NcclRingAllReduce", 3, 521, 2, Protocol::Simple),
        of("NcclRingAllReduce", 3, 521, 2, Protocol::Ll),
        Witness {
            data: narrow,
            form: Form::Table,
            ..of("RingAllReduce", 4, 700, 2, Protocol::Direct)
        },
        of("DoubleBinaryTreeAllReduce", 4, 203, 1, Protocol::Direct),
        of("MeshAllReduce", 4, 301, 1, Protocol::Direct),
        // Destinations that lie differently, of which one is a source.
        Witness { in_place: true, ..of("NcclRingAllReduce", 3, 521, 1, Protocol::Simple) },
        // Several links of a rank.
        of("PushedOneShotAllReduce", 3, 37, 1, Protocol::Simple),
        // Slots that take the shape of their data, and moves without a signal between them.
        of("NhrReduceScatter", 4, 37, 1, Protocol::Direct),
    ]
}

/// The way in which a mistake is found.
enum Found {
    /// By a run: a fault, or wrong results.
    Run(String),
    /// By a rule for the PTX, where a run does not show it.
    Rule(String),
}

/// The text of a kernel with all headers in it.
fn whole(text: &str, mutant: Option<&Mutant>, seen: &mut HashSet<String>) -> String {
    let mut all = String::new();
    for line in text.lines() {
        let name = line.strip_prefix("#include \"").and_then(|rest| rest.split('"').next());
        let Some(name) = name else {
            if line != "#pragma once" {
                all += line;
                all.push('\n');
            }
            continue;
        };
        let Some((_, header)) = HEADERS.iter().find(|(header, _)| *header == name) else {
            all += line;
            all.push('\n');
            continue;
        };
        if !seen.insert(name.to_owned()) {
            continue;
        }
        match mutant {
            Some(mutant) if mutant.header == name => {
                assert!(header.contains(&mutant.text), "{}: {name} has no such text", mutant.name);
                let header = header.replace(&mutant.text, &mutant.replacement);
                all += &whole(&header, Some(mutant), seen);
            }
            _ => all += &whole(header, mutant, seen),
        }
    }
    all
}

/// A kernel with its expected results.
struct Ready {
    witness: Witness,
    kernel: Kernel,
    inputs: Vec<Vec<u8>>,
    expected: Vec<Vec<u8>>,
}

impl Ready {
    fn new(witness: Witness) -> Self {
        let Witness { algorithm, nranks, data, form, protocol, in_place, .. } = witness;
        let of_library =
            select::library().iter().find(|a| roundelay::Algorithm::name(*a) == algorithm);
        let algorithm = of_library.unwrap_or_else(|| panic!("the library has no {algorithm}"));
        let proved = prove_source(algorithm, nranks).expect("it is proved");
        let way = Way::One;
        let case = Case { algorithm, proved: &proved, nranks, data, form, protocol, way };
        let kernel = case.kernel().expect("a kernel");
        let expected = case.expected(in_place).expect("a result of the host");
        Self { inputs: case.inputs(), kernel, expected, witness }
    }

    /// Runs the kernel with a mistake; the error is the way in which it is found.
    fn run(&self, mutant: Option<&Mutant>, arch: Arch) -> Result<(), Found> {
        let text = whole(&self.kernel.text, mutant, &mut HashSet::new());
        let (ptx, finding) =
            compiled(&text, &self.kernel.name, &target(arch)).map_err(Found::Run)?;
        let program = Interpreted::new(&ptx, &self.kernel.name);
        let program = program.map_err(|error| Found::Run(error.to_string()))?;
        let mut job = ShimJob::new(&self.kernel, self.witness.data.count as u64, &self.inputs);
        (job.repeats, job.parts) = (2, self.witness.parts);
        job.in_place = self.witness.in_place;
        match run(&job, SEEDS, |seed| program.run(&job, seed)) {
            Err(why) => Err(Found::Run(why)),
            Ok(outcome) if outcome.outputs != self.expected => {
                Err(Found::Run("wrong bits".to_owned()))
            }
            Ok(_) => finding.map_or(Ok(()), |finding| Err(Found::Rule(finding))),
        }
    }

    fn name(&self) -> String {
        let Witness { algorithm, nranks, form, protocol, .. } = &self.witness;
        format!("{algorithm}, {nranks} ranks, {form}, {}", protocol.name())
    }
}

/// Runs all mistakes of the list, from one on, or those whose name has one of these words; returns the number of those
/// that are not as the list says.
pub(crate) fn all(arch: Arch, only: &[String], from: usize) -> usize {
    let begun = Instant::now();
    let witnesses: Vec<Ready> = witnesses().into_iter().map(Ready::new).collect();
    let mut wrong = 0;
    for ready in &witnesses {
        if let Err(Found::Run(why) | Found::Rule(why)) = ready.run(None, arch) {
            println!("WRONG without a mistake: {}: {why}", ready.name());
            wrong += 1;
        }
    }
    let all = mutants();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|word| name.contains(word));
    let (mut found, mut survived) = (0, 0);
    for mutant in all.iter().skip(from).filter(|mutant| wanted(mutant.name)) {
        let mut by_rule = None;
        let by_run = witnesses.iter().find_map(|ready| match ready.run(Some(mutant), arch) {
            Err(Found::Run(how)) => Some((ready.name(), how)),
            Err(Found::Rule(how)) => {
                by_rule.get_or_insert((ready.name(), how));
                None
            }
            Ok(()) => None,
        });
        match (by_run.or(by_rule), mutant.why_not) {
            (Some((by, how)), None) => {
                found += 1;
                println!("found     {}: {by}: {}", mutant.name, how.lines().next().unwrap_or(""));
            }
            (None, Some(why)) => {
                survived += 1;
                println!("survives  {}: {why}", mutant.name);
            }
            (Some((by, how)), Some(_)) => {
                wrong += 1;
                println!("WRONG     {} is found after all: {by}: {how}", mutant.name);
            }
            (None, None) => {
                wrong += 1;
                println!("WRONG     {} is not found", mutant.name);
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "# {found} mistakes found, {survived} known to survive, {wrong} wrong, {seconds:.0} s"
    );
    wrong
}
