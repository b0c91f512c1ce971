//! The small programs of the memory model on a machine: many instances of a program at once, each in memory of its own.
//!
//! Each lane of a warp is a thread of another instance. Threads of the file's ranks and blocks are blocks of one launch;
//! they meet before each round, and go on after random delays. A round has locations that no other round uses. In a warm
//! kernel each thread has loaded all locations before the round, so that old values are in the caches of its
//! multiprocessor; a thread that stores acquires these loads first, and they do not race with its stores.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::machines::{Job, Machine};
use super::programs::{LOCATIONS, Litmus, NOT_SHOWN, REGISTERS};

/// The lanes of a warp.
const LANES: u32 = 32;
/// Bytes of a counter at which the threads of a group meet.
const COUNTER: u32 = 32;
/// Polls of a thread that waits for the others, before it takes them for lost.
const POLLS: u32 = 1 << 24;

/// The size of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// Blocks at most.
    pub(crate) blocks: u32,
    /// Bytes of memory at most, for the locations.
    pub(crate) bytes: u32,
}

/// A GPU's: all blocks are on it at once.
pub(crate) const WHOLE: Extent = Extent { blocks: 1024, bytes: 16 << 20 };

/// A variant of a launch.
#[derive(Clone, Copy)]
struct Variant {
    warm: bool,
    /// Bytes between the locations of two instances.
    stride: u32,
    /// Whether the blocks of an instance are neighbours.
    near: bool,
    /// Turns of the loop that delays a thread, less than this power of 2.
    delay: u32,
}

const VARIANTS: [Variant; 8] = [
    Variant { warm: false, stride: 16, near: true, delay: 0 },
    Variant { warm: true, stride: 16, near: false, delay: 5 },
    Variant { warm: false, stride: 128, near: false, delay: 3 },
    Variant { warm: true, stride: 128, near: true, delay: 0 },
    Variant { warm: false, stride: 16, near: false, delay: 7 },
    Variant { warm: true, stride: 16, near: true, delay: 3 },
    Variant { warm: false, stride: 128, near: true, delay: 5 },
    Variant { warm: true, stride: 128, near: false, delay: 9 },
];

/// A program that a machine without a verdict on races runs.
struct Placed<'l> {
    litmus: &'l Litmus,
    names: Vec<String>,
    /// The ranks with their blocks, each a block of an instance.
    blocks: Vec<(usize, u32)>,
    warps: u32,
}

impl<'l> Placed<'l> {
    /// Places a program; the reason where one of its outcomes is an error.
    fn new(litmus: &'l Litmus) -> Result<Self, String> {
        if let Some(error) = litmus.outcomes.iter().find(|outcome| !outcome.contains('=')) {
            return Err(format!("it may end with `{error}`, of which a device tells nothing"));
        }
        let blocks: BTreeSet<_> = litmus.threads.iter().map(|t| (t.rank, t.block)).collect();
        let warps = 1 + litmus.threads.iter().map(|thread| thread.warp).max().unwrap_or(0);
        let names = litmus.names();
        Ok(Self { litmus, names, blocks: blocks.into_iter().collect(), warps })
    }

    /// Returns a module with the kernels `cold` and `warm`.
    fn module(&self) -> String {
        let mut text = String::from(".version 8.8\n.target sm_90\n.address_size 64\n");
        for (name, warm) in [("cold", false), ("warm", true)] {
            self.kernel(&mut text, name, warm);
        }
        text
    }

    fn kernel(&self, text: &mut String, name: &str, warm: bool) {
        let numbers = ["groups", "rounds", "stride", "near", "delay", "seed"];
        let parameters: Vec<String> = ["memory", "results", "counters"]
            .iter()
            .chain(&numbers)
            .map(|name| format!(".param .u64 {name}"))
            .collect();
        let _ = writeln!(text, ".visible .entry {name}({})\n{{", parameters.join(", "));
        *text += REGISTERS;
        *text += REGISTERS_OF_GRID;
        for name in LOCATIONS.iter().chain(&["memory", "results", "counters", "counter"]) {
            let _ = writeln!(text, ".reg .b64 %{name};");
        }
        for name in ["memory", "results", "counters"] {
            let _ = writeln!(text, "ld.param.u64 %{name}, [{name}];");
        }
        for name in numbers {
            let _ = writeln!(text, ".reg .b32 %{name};\nld.param.u32 %{name}, [{name}];");
        }
        let blocks = self.blocks.len();
        *text += PLACE;
        let _ = writeln!(
            text,
            "div.u32 %a0, %block, {blocks};\nrem.u32 %a1, %block, {blocks};\n\
             rem.u32 %a2, %block, %groups;\ndiv.u32 %a3, %block, %groups;\n\
             selp.u32 %group, %a0, %a2, %q0;\nselp.u32 %role, %a1, %a3, %q0;\n\
             mul.lo.u32 %instances, %groups, {LANES};\nmad.lo.s32 %instance, %group, {LANES}, %lane;"
        );
        for number in 0..self.litmus.threads.len() {
            self.thread(text, number, warm);
        }
        *text += "ret;\n}\n";
    }

    /// Writes the rounds of a thread.
    fn thread(&self, text: &mut String, number: usize, warm: bool) {
        let thread = &self.litmus.threads[number];
        let role = self.blocks.iter().position(|block| *block == (thread.rank, thread.block));
        let role = role.expect("the block is one of the program's");
        let next = format!("$L{number}");
        let _ = writeln!(
            text,
            "setp.ne.u32 %q0, %role, {role};\n@%q0 bra {next};\n\
             setp.ne.u32 %q0, %warp, {};\n@%q0 bra {next};\n\
             mov.u32 %round, 0;\n{next}_round:",
            thread.warp
        );
        for (at, name) in LOCATIONS.iter().enumerate() {
            let _ = writeln!(
                text,
                "mad.lo.s32 %a0, %round, 4, {at};\nmad.lo.s32 %a0, %a0, %instances, %instance;\n\
                 mul.wide.u32 %{name}, %a0, %stride;\nadd.s64 %{name}, %memory, %{name};"
            );
        }
        for at in 0..8 {
            let _ = writeln!(text, "mov.u32 %r{at}, 0;\nmov.u64 %d{at}, 0;");
        }
        for at in 0..4 {
            let _ = writeln!(text, "setp.ne.u32 %p{at}, %lane, %lane;");
        }
        let _ = writeln!(
            text,
            "mad.lo.s32 %a0, %round, %groups, %group;\nmul.wide.u32 %counter, %a0, {COUNTER};\n\
             add.s64 %counter, %counters, %counter;\nsetp.eq.u32 %q1, %lane, 0;\nmov.u32 %a1, 1;"
        );
        if warm {
            *text += "mov.u32 %a2, 0;\n";
            for name in LOCATIONS {
                let _ = writeln!(text, "ld.global.u32 %a3, [%{name}];\nor.b32 %a2, %a2, %a3;");
            }
            // The vote of all lanes has the loads of all of them behind it, and gives 1.
            *text += "setp.eq.u32 %q0, %a2, 0;\nvote.sync.ballot.b32 %a1, %q0, -1;\nand.b32 %a1, %a1, 1;\n";
        }
        let order = if warm { "release" } else { "relaxed" };
        let threads = self.litmus.threads.len();
        let _ = writeln!(
            text,
            "bar.warp.sync -1;\n@%q1 red.{order}.gpu.global.add.u32 [%counter], %a1;\n\
             mov.u32 %a2, 0;\n{next}_meet:\nadd.s32 %a2, %a2, 1;\nsetp.gt.u32 %q0, %a2, {POLLS};\n\
             @%q0 trap;\nld.relaxed.gpu.global.u32 %a0, [%counter];\nsetp.lt.u32 %q0, %a0, {threads};\n\
             @%q0 bra {next}_meet;\nbar.warp.sync -1;"
        );
        if warm && ["st.", "red.", "atom."].iter().any(|store| thread.text.contains(store)) {
            *text += "fence.acq_rel.gpu;\n";
        }
        // The delay computes an odd number, of which the assembler does not know that it is not 0.
        let _ = writeln!(
            text,
            "mad.lo.s32 %a0, %round, {threads}, {number};\nmad.lo.s32 %a0, %a0, %groups, %group;\n\
             add.s32 %a0, %a0, %seed;\nmul.lo.u32 %a0, %a0, 0x9e3779b1;\nshr.u32 %a1, %a0, 15;\n\
             xor.b32 %a0, %a0, %a1;\nmul.lo.u32 %a0, %a0, 0x85ebca77;\nshr.u32 %a0, %a0, 16;\n\
             mov.u32 %a1, 1;\nshl.b32 %a1, %a1, %delay;\nrem.u32 %a0, %a0, %a1;\nmov.u32 %a1, 1;\n{next}_delay:\n\
             mad.lo.s32 %a1, %a1, 5, 2;\nsub.s32 %a0, %a0, 1;\nsetp.ge.s32 %q0, %a0, 0;\n\
             @%q0 bra {next}_delay;\n\
             setp.eq.u32 %q0, %a1, 0;\n@%q0 trap;"
        );
        *text += &thread.text;
        for (at, name) in self.names.iter().enumerate() {
            let Some((of, register)) = name.split_once(':') else { continue };
            if of != number.to_string() {
                continue;
            }
            let bits = if register.starts_with('d') { 64 } else { 32 };
            let names = self.names.len();
            let _ = writeln!(
                text,
                "mad.lo.s32 %a0, %round, {names}, {at};\nmad.lo.s32 %a0, %a0, %instances, %instance;\n\
                 mul.wide.u32 %at, %a0, 8;\nadd.s64 %at, %results, %at;\nst.global.u{bits} [%at], %{register};"
            );
        }
        let _ = writeln!(
            text,
            "add.s32 %round, %round, 1;\nsetp.lt.u32 %q0, %round, %rounds;\n\
             @%q0 bra {next}_round;\nret;\n{next}:"
        );
    }

    /// Runs a launch, and counts the outcomes of all its instances.
    fn launch(
        &self,
        machine: &dyn Machine,
        text: &str,
        (extent, variant): (Extent, Variant),
        seed: u32,
        found: &mut BTreeMap<String, u64>,
    ) -> Result<(), String> {
        let Variant { warm, stride, near, delay } = variant;
        let groups = (extent.blocks / self.blocks.len() as u32).max(1);
        let instances = groups * LANES;
        let rounds = (extent.bytes / (4 * stride * instances)).max(1);
        let sizes = [
            (4 * stride * instances * rounds) as usize,
            self.names.len() * 8 * (instances * rounds) as usize,
            (COUNTER * groups * rounds) as usize,
        ];
        let job = Job {
            kernel: if warm { "warm" } else { "cold" }.to_owned(),
            blocks: groups * self.blocks.len() as u32,
            threads: LANES * self.warps,
            buffers: sizes.map(|bytes| vec![0; bytes]).into(),
            numbers: [groups, rounds, stride, near.into(), delay, seed].map(u64::from).into(),
        };
        let ran = machine.run(text, &[job])?;
        let [memory, results, _] = &ran[0][..] else { return Err("buffers are missing".into()) };
        let word = |bytes: &[u8], at: usize| {
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
        };
        // Where the value of each name is: in which buffer, at which number among as many, and at which stride.
        let places = self.names.iter().enumerate().map(|(at, name)| {
            let location = LOCATIONS.iter().position(|location| location == name);
            match location {
                Some(at) => (memory, at, LOCATIONS.len(), stride as usize),
                None => (results, at, self.names.len(), 8),
            }
        });
        let places: Vec<_> = places.collect();
        let (instances, mut counts) = (instances as usize, BTreeMap::new());
        // Outcomes repeat: the count of the last one is at hand.
        let (mut last, mut repeated) = ([u64::MAX; 8], 0);
        for round in 0..rounds as usize {
            for instance in 0..instances {
                let mut values = [0; 8];
                for (value, (bytes, at, many, stride)) in values.iter_mut().zip(&places) {
                    *value = word(bytes, ((round * many + at) * instances + instance) * stride);
                }
                if values != last {
                    *counts.entry(last).or_insert(0) += repeated;
                    (last, repeated) = (values, 0);
                }
                repeated += 1;
            }
        }
        *counts.entry(last).or_insert(0) += repeated;
        counts.retain(|_, count| *count > 0);
        for (values, count) in counts {
            let value = |name: &str| values[self.names.iter().position(|n| n == name).unwrap_or(0)];
            *found.entry(self.litmus.outcome(value)).or_insert(0) += count;
        }
        Ok(())
    }
}

/// The registers of a thread in the grid.
const REGISTERS_OF_GRID: &str = "\
.reg .pred %q<2>;
.reg .b32 %a<4>;
.reg .b32 %block, %thread, %lane, %warp, %group, %role, %instance, %instances, %round;
.reg .b64 %at;
";
/// The place of a thread in the grid.
const PLACE: &str = "\
mov.u32 %block, %ctaid.x;
mov.u32 %thread, %tid.x;
and.b32 %lane, %thread, 31;
shr.u32 %warp, %thread, 5;
setp.ne.u32 %q0, %near, 0;
";

/// Returns the name and the text of a program, unless it is one that a device does not run.
pub(crate) fn text(litmus: &Litmus) -> Option<(String, String)> {
    Some((litmus.name.clone(), Placed::new(litmus).ok()?.module()))
}

/// Runs a program in launches of all variants in turn until the time is over; a cold one and a warm one at least. Returns
/// the line about it, and whether an outcome is wrong.
pub(crate) fn check(
    machine: &dyn Machine,
    litmus: &Litmus,
    extent: Extent,
    time: Duration,
) -> (String, bool) {
    let name = &litmus.name;
    let placed = match Placed::new(litmus) {
        Ok(placed) => placed,
        Err(why) => return (format!("{name}: skipped: {why}"), false),
    };
    let (text, begun) = (placed.module(), Instant::now());
    let mut found = BTreeMap::new();
    for seed in 0.. {
        if seed >= 2 && begun.elapsed() >= time {
            break;
        }
        let variant = VARIANTS[seed as usize % VARIANTS.len()];
        let ran = placed.launch(machine, &text, (extent, variant), seed, &mut found);
        if let Err(why) = ran {
            return (format!("{name}: FAILED: {why}"), true);
        }
    }
    told(litmus, &found)
}

/// Tells the outcomes and their numbers, and whether one is against the model.
fn told(litmus: &Litmus, found: &BTreeMap<String, u64>) -> (String, bool) {
    let runs: u64 = found.values().sum();
    let (shown, all) = (&litmus.outcomes, litmus.outcomes.len());
    let seen = shown.iter().filter(|outcome| found.contains_key(*outcome)).count();
    let mut line = format!("{}: {runs} runs, {seen} of {all} outcomes", litmus.name);
    let mut wrong = false;
    for (outcome, count) in found {
        let by_axioms = NOT_SHOWN.contains(&(&litmus.name, outcome));
        let note = match (shown.contains(outcome), by_axioms) {
            (true, _) => "",
            (_, true) => ", which the axioms allow",
            _ => ", AGAINST THE MODEL",
        };
        wrong |= note.starts_with(", AGAINST");
        let _ = write!(line, "\n  {outcome}: {count}{note}");
    }
    (line, wrong)
}
