//! Mistakes in the device headers, each of which must be found by a rule for the PTX of some kernel or by a run of it, on
//! one device or several.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::time::Instant;

use roundelay::{DType, ReduceOp, select};
use roundelay_core::prove_source;
use roundelay_export::cuda::{Form, Kernel, Protocol};
use roundelay_kernels::cuda::{Arch, ForeignText, HEADERS, compile_foreign};
use roundelay_kernels::interpreter::{BINDS, DrivenMoves, Interpreted, move_text};
use roundelay_kernels::shim::{Outcome, ShimJob};
use roundelay_ptx::BadText;

use super::cases::{Case, Data, Way};
use super::engine::blames_last;
use super::ptx::{PATIENCE, run, target};

/// Runs of each job.
const SEEDS: u64 = 4;
/// The mistakes: those that a list chooses, and those of one token, which were drawn at random.
const LISTS: [&str; 2] = [include_str!("mutants.txt"), include_str!("drawn_mutants.txt")];

/// A mistake.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    header: &'static str,
    text: String,
    replacement: String,
    /// The reason why no run finds it.
    why_not: Option<&'static str>,
}

/// The mistakes of the lists.
pub(crate) fn mutants() -> Vec<Mutant> {
    let blocks = LISTS.into_iter().flat_map(|list| list.split("\n\n"));
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

impl Mutant {
    /// Whether its text is not in its header, which has changed then.
    pub(crate) fn is_stale(&self) -> bool {
        let header = HEADERS.iter().find(|(name, _)| *name == self.header);
        !header.is_some_and(|(_, text)| text.contains(&self.text))
    }
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
    way: Way,
    /// The devices to which the ranks are dealt.
    devices: usize,
    /// Whether the last rank never runs, so that the others must give up and blame it.
    lacks_last: bool,
}

/// The kernels by which mistakes are found, those of most of them first.
fn witnesses() -> Vec<Witness> {
    let (sum, f32) = (ReduceOp::Sum, DType::F32);
    let of = |algorithm, nranks, count, parts, protocol| {
        let data = Data { count, dtype: f32, op: sum };
        let (form, way) = (Form::Loops, Way::One);
        let (in_place, devices, lacks_last) = (false, 1, false);
        Witness {
            algorithm,
            nranks,
            data,
            form,
            protocol,
            parts,
            in_place,
            way,
            devices,
            lacks_last,
        }
    };
    let on = |devices, witness| Witness { way: Way::Each { apart: true }, devices, ..witness };
    let narrow = Data { count: 700, dtype: DType::Bf16, op: ReduceOp::Avg };
    let in_table = |witness| Witness { data: narrow, form: Form::Table, ..witness };
    vec![
        of("RingAllReduce", 3, 1031, 2, Protocol::Direct),
        on(2, of("RingAllReduce", 3, 261, 2, Protocol::Direct)),
        on(3, of("NcclRingAllReduce", 3, 521, 2, Protocol::Ll)),
        of("NcclRingAllReduce", 3, 521, 2, Protocol::Simple),
        of("NcclRingAllReduce", 3, 521, 2, Protocol::Ll),
        of("NcclRingAllReduce", 3, 1031, 2, Protocol::Ll128),
        in_table(of("RingAllReduce", 4, 700, 2, Protocol::Direct)),
        of("DoubleBinaryTreeAllReduce", 4, 203, 1, Protocol::Direct),
        of("MeshAllReduce", 4, 301, 1, Protocol::Direct),
        // Destinations that lie differently, of which one is a source.
        Witness { in_place: true, ..of("NcclRingAllReduce", 3, 521, 1, Protocol::Simple) },
        // Several links of a rank.
        of("PushedOneShotAllReduce", 3, 37, 1, Protocol::Simple),
        // Slots that take the shape of their data, and moves without a signal between them.
        of("NhrReduceScatter", 4, 37, 1, Protocol::Direct),
        // Launches whose first stream is not that of rank 0.
        on(2, in_table(of("MeshAllReduce", 3, 700, 2, Protocol::Direct))),
        Witness { lacks_last: true, ..on(3, of("RingAllReduce", 3, 37, 2, Protocol::Direct)) },
        Witness { lacks_last: true, ..on(2, of("NcclRingAllReduce", 2, 37, 1, Protocol::Ll)) },
        Witness { way: Way::Traced, ..of("RingAllReduce", 3, 61, 1, Protocol::Direct) },
        Witness { way: Way::Driven, ..of("MeshAllReduce", 3, 301, 2, Protocol::Direct) },
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
    /// The record of ops without a mistake.
    trace: OnceLock<String>,
}

/// The choices of all runs: the architecture, and macros that choose a variant of the headers, such as `TRACED=8`.
pub(crate) struct Choice {
    pub(crate) arch: Arch,
    pub(crate) defines: Vec<String>,
}

impl Ready {
    fn new(witness: Witness) -> Self {
        let Witness { algorithm, nranks, data, form, protocol, in_place, way, .. } = witness;
        let of_library =
            select::library().iter().find(|a| roundelay::Algorithm::name(*a) == algorithm);
        let algorithm = of_library.unwrap_or_else(|| panic!("the library has no {algorithm}"));
        let proved = prove_source(algorithm, nranks).expect("it is proved");
        let case = Case { algorithm, proved: &proved, nranks, data, form, protocol, way };
        let kernel = case.kernel().expect("a kernel");
        let expected = case.expected(in_place).expect("a result of the host");
        Self { inputs: case.inputs(), kernel, expected, witness, trace: OnceLock::new() }
    }

    /// The PTX of a text with a mistake, and the first rule that it breaks.
    fn ptx(
        (text, name): (&str, &str),
        mutant: Option<&Mutant>,
        choice: &Choice,
        more: Option<&str>,
    ) -> Result<(String, Option<String>), Found> {
        let text = whole(text, mutant, &mut HashSet::new());
        let target = target(choice.arch);
        let define = |(name, value): (&str, String)| format!("-DROUNDELAY_{name}={value}");
        let sizes = [("THREADS", target.threads), ("IN_FLIGHT", target.in_flight())];
        let mut options = vec!["--fmad=false".to_owned()];
        options.extend(sizes.map(|(name, value)| define((name, value.to_string()))));
        options.extend(
            choice
                .defines
                .iter()
                .map(String::as_str)
                .chain(more)
                .map(|one| format!("-DROUNDELAY_{one}")),
        );
        // The assembler would take most of the time.
        let (file, names, headers) = (format!("{name}.cu"), &[], &[]);
        let foreign = ForeignText {
            text: &text,
            file: &file,
            arch: target.arch,
            headers,
            options: &options,
            names,
        };
        let ptx = compile_foreign(&foreign).map_err(|why| Found::Run(format!("NVRTC: {why}")))?.ptx;
        let findings =
            roundelay_ptx::lint(&ptx).map_err(|why| Found::Run(format!("lint: {why}")))?;
        Ok((ptx, findings.first().map(|finding| format!("lint: {finding}"))))
    }

    /// Runs the kernel with a mistake; the error is the way in which it is found.
    fn run(&self, mutant: Option<&Mutant>, choice: &Choice) -> Result<(), Found> {
        let Witness { way, devices, lacks_last, parts, in_place, .. } = self.witness;
        let mut job = ShimJob::new(&self.kernel, self.witness.data.count as u64, &self.inputs);
        (job.repeats, job.parts, job.in_place) = (2, parts, in_place);
        job.trace = way == Way::Traced;
        let text = (&*self.kernel.text, &*self.kernel.name);
        let (outcome, finding) = if way == Way::Driven {
            let (text, name) = move_text(&self.kernel);
            let (ptx, finding) = Self::ptx((&text, name), mutant, choice, None)?;
            let moves = DrivenMoves::new(&ptx).map_err(|error| Found::Run(error.to_string()))?;
            (run(&job, SEEDS, |seed| moves.run(&self.kernel, &job, seed)), finding)
        } else {
            let define = match way {
                Way::Traced => Some(format!("TRACED={}", job.facts.groups.len() * parts as usize)),
                _ => (devices > 1).then(|| "SCOPE_SYS".to_owned()),
            };
            let (ptx, finding) = Self::ptx(text, mutant, choice, define.as_deref())?;
            let unread = |error: BadText| Found::Run(error.to_string());
            let program = Interpreted::new(&ptx, text.1).map_err(unread)?;
            let mut program = program.granting(self.witness.protocol).on_devices(devices);
            if mutant.is_none_or(|mutant| mutant.header == "bind.cuh") {
                let (binds, _) = Self::ptx(BINDS, mutant, choice, None)?;
                program = program.bound_by(&binds).map_err(unread)?;
            }
            if lacks_last {
                job.poll_limit = PATIENCE;
                let program = program.without_last();
                let outcome = program.run(&job, 0).map_err(|why| Found::Run(why.to_string()))?;
                let stuck = outcome.stuck(&job).ok_or(Found::Run("no wait gave up".to_owned()))?;
                // A line that does not come is told as a wait within the own stream.
                if self.witness.protocol == Protocol::Direct {
                    blames_last(&stuck, self.witness.nranks).map_err(Found::Run)?;
                }
                return finding.map_or(Ok(()), |finding| Err(Found::Rule(finding)));
            }
            (run(&job, SEEDS, |seed| program.run(&job, seed)), finding)
        };
        let Outcome { outputs, trace, .. } = outcome.map_err(Found::Run)?;
        if outputs != self.expected {
            return Err(Found::Run("wrong bits".to_owned()));
        }
        if *self.trace.get_or_init(|| trace.clone()) != trace {
            return Err(Found::Run("another record of ops".to_owned()));
        }
        finding.map_or(Ok(()), |finding| Err(Found::Rule(finding)))
    }

    fn name(&self) -> String {
        let Witness { algorithm, nranks, form, protocol, devices, lacks_last, .. } = &self.witness;
        let without = if *lacks_last { ", without the last" } else { "" };
        format!("{algorithm}, {nranks} ranks on {devices}{without}, {form}, {}", protocol.name())
    }
}

/// The mistakes of a run, and the kernels that shall find them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All.
    Whole,
    /// Kernels of loops on several devices, and so mistakes that these alone can have.
    SeveralDevices,
}

/// Runs all mistakes of the lists, from one on, or those whose name has one of these words; returns the number of those
/// that are not as the lists say.
pub(crate) fn all(choice: &Choice, extent: Extent, only: &[String], from: usize) -> usize {
    let begun = Instant::now();
    let is_meant = |one: &Witness| {
        extent == Extent::Whole || one.devices > 1 && !one.lacks_last && one.form == Form::Loops
    };
    let witnesses: Vec<Ready> = witnesses().into_iter().filter(is_meant).map(Ready::new).collect();
    let mut wrong = 0;
    // Where a list goes on, the kernels were run without a mistake before, but for the record of ops.
    let is_first = |ready: &&Ready| from == 0 || ready.witness.way == Way::Traced;
    for ready in witnesses.iter().filter(is_first) {
        if let Err(Found::Run(why) | Found::Rule(why)) = ready.run(None, choice) {
            println!("WRONG without a mistake: {}: {why}", ready.name());
            wrong += 1;
        }
    }
    let all = mutants();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|word| name.contains(word));
    let (mut found, mut survived) = (0, 0);
    for mutant in all.iter().skip(from).filter(|mutant| wanted(mutant.name)) {
        if mutant.is_stale() {
            println!("WRONG     {} replaces a text that is not in its header", mutant.name);
            wrong += 1;
            continue;
        }
        let mut by_rule = None;
        let by_run = witnesses.iter().find_map(|ready| match ready.run(Some(mutant), choice) {
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
