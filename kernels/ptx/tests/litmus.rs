//! The memory model: small programs, each with all its outcomes.
//!
//! A file has threads, each at a rank, a block and a warp, with instructions on the locations `%x`, `%y`, `%z` and `%w`,
//! and below `outcomes` all that may come out, no more and no less: registers of threads, locations at the end, or an
//! error.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use roundelay_ptx::machine::{
    Conflict, Failure, FaultKind, FinalState, Launch, Limits, RankLaunch, Window,
};
use roundelay_ptx::program::Module;

const LOCATIONS: [&str; 4] = ["x", "y", "z", "w"];
const MEMORY: u64 = 0x10_0000;
const RESULTS: u64 = 0x20_0000;
/// Bytes of the results of a thread.
const EACH: u64 = 256;

/// A thread: its rank, its block, its warp, and its instructions.
pub(super) struct Thread {
    pub(super) rank: usize,
    pub(super) block: u32,
    warp: u32,
    pub(super) text: String,
}

/// A small program, and its outcomes.
pub(super) struct Litmus {
    pub(super) name: String,
    pub(super) threads: Vec<Thread>,
    pub(super) outcomes: BTreeSet<String>,
}

fn read(path: &Path) -> Litmus {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let mut threads: Vec<Thread> = Vec::new();
    let mut outcomes = None;
    for line in text.lines().filter(|line| !line.starts_with("//")) {
        if let Some(place) = line.strip_prefix("thread ") {
            let numbers: Vec<u32> =
                place.split('.').map(|number| number.parse().unwrap()).collect();
            let warp = numbers.get(2).copied().unwrap_or(0);
            let (rank, block) = (numbers[0] as usize, numbers[1]);
            threads.push(Thread { rank, block, warp, text: String::new() });
        } else if line == "outcomes" {
            outcomes = Some(BTreeSet::new());
        } else if let Some(outcomes) = &mut outcomes {
            assert!(outcomes.insert(line.trim().to_owned()), "{name}: {line} twice");
        } else {
            let text = &mut threads.last_mut().unwrap().text;
            writeln!(text, "{line}").unwrap();
        }
    }
    Litmus { name, threads, outcomes: outcomes.unwrap() }
}

impl Litmus {
    /// The names of what the outcomes tell.
    pub(super) fn names(&self) -> Vec<String> {
        let terms = self.outcomes.iter().flat_map(|outcome| outcome.split(' '));
        let names: BTreeSet<String> =
            terms.filter_map(|term| Some(term.split_once('=')?.0.to_owned())).collect();
        names.into_iter().collect()
    }

    /// The offset of a register of a thread among the results.
    fn offset(thread: usize, register: &str) -> u64 {
        let number: u64 = register[1..].parse().unwrap();
        thread as u64 * EACH + 8 * number + if register.starts_with('d') { 128 } else { 0 }
    }

    fn module(&self, rank: usize) -> Module {
        let mut text = String::from(".version 8.8\n.target sm_90\n.address_size 64\n");
        text += ".visible .entry litmus(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 w, .param .u64 out)\n{\n";
        text += ".reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n.reg .b32 %block;\n.reg .b32 %thread;\n";
        for name in LOCATIONS.iter().chain(&["out"]) {
            writeln!(text, ".reg .b64 %{name};\nld.param.u64 %{name}, [{name}];").unwrap();
        }
        text += "mov.u32 %block, %ctaid.x;\nmov.u32 %thread, %tid.x;\n";
        let own = self.threads.iter().enumerate().filter(|(_, thread)| thread.rank == rank);
        for (number, thread) in own {
            let first = 32 * thread.warp;
            writeln!(text, "setp.ne.u32 %p0, %block, {};\n@%p0 bra $L{number};", thread.block)
                .unwrap();
            writeln!(text, "setp.ne.u32 %p0, %thread, {first};\n@%p0 bra $L{number};").unwrap();
            text += &thread.text;
            for name in self.names() {
                let Some((of, register)) = name.split_once(':') else { continue };
                if of != number.to_string() {
                    continue;
                }
                let offset = Self::offset(number, register);
                let ty = if register.starts_with('d') { "u64" } else { "u32" };
                writeln!(text, "st.global.{ty} [%out+{offset}], %{register};").unwrap();
            }
            writeln!(text, "ret;\n$L{number}:").unwrap();
        }
        text += "ret;\n}\n";
        Module::parse(&text).unwrap_or_else(|error| panic!("{}: {error:?}\n{text}", self.name))
    }

    fn outcome(&self, result: &Result<FinalState, Failure>) -> String {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(Failure::Fault(fault)) => {
                return match &fault.kind {
                    FaultKind::Unordered { conflict: Conflict::Race, .. } => "race".to_owned(),
                    FaultKind::Unordered { conflict: Conflict::Scope, .. } => {
                        "race of scopes".to_owned()
                    }
                    FaultKind::Unordered { conflict: Conflict::Constant, .. } => {
                        "race with a constant".to_owned()
                    }
                    _ => fault.to_string(),
                };
            }
            Err(error) => return error.to_string(),
        };
        let number = |window: usize, offset: u64| {
            let bytes = &outcome.windows[window].bytes[offset as usize..][..8];
            u64::from_le_bytes(bytes.try_into().unwrap())
        };
        let value = |name: &String| match name.split_once(':') {
            Some((thread, register)) => number(1, Self::offset(thread.parse().unwrap(), register)),
            None => number(
                0,
                16 * LOCATIONS.iter().position(|location| location == name).unwrap() as u64,
            ),
        };
        let terms = self.names().into_iter().map(|name| format!("{name}={}", value(&name)));
        terms.collect::<Vec<_>>().join(" ")
    }

    fn with_launch(&self, run: impl FnOnce(Launch)) {
        let ranks = 1 + self.threads.iter().map(|thread| thread.rank).max().unwrap();
        let modules: Vec<Module> = (0..ranks).map(|rank| self.module(rank)).collect();
        let blocks = 1 + self.threads.iter().map(|thread| thread.block).max().unwrap();
        let warps = 1 + self.threads.iter().map(|thread| thread.warp).max().unwrap();
        let locations = (0..4).map(|number| MEMORY + 16 * number).chain([RESULTS]);
        let parameters: Vec<u8> = locations.flat_map(u64::to_le_bytes).collect();
        let rank = |module| RankLaunch {
            module,
            kernel: "litmus",
            grid: [blocks, 1, 1],
            block: [32 * (warps - 1) + 1, 1, 1],
            parameters: parameters.clone(),
            dynamic_shared: 0,
        };
        let window = |name: &str, address, bytes| Window {
            name: name.to_owned(),
            address,
            bytes: vec![0; bytes],
        };
        let results = EACH as usize * self.threads.len();
        run(Launch {
            ranks: modules.iter().map(rank).collect(),
            windows: vec![window("memory", MEMORY, 64), window("results", RESULTS, results)],
            seed: 0,
            limits: Limits::default(),
        });
    }
}

/// The programs of all files.
pub(super) fn all() -> Vec<Litmus> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 30);
    paths.iter().map(|path| read(path)).collect()
}

/// All runs of each program give its outcomes and no others.
#[test]
fn all_runs_give_the_outcomes() {
    let mut wrong = String::new();
    for litmus in all() {
        let mut found = BTreeSet::new();
        litmus.with_launch(|launch| {
            let whole = launch.explore(100_000, |result| {
                found.insert(litmus.outcome(result));
            });
            assert!(whole, "{} has too many runs", litmus.name);
        });
        for missing in litmus.outcomes.difference(&found) {
            writeln!(wrong, "{}: not shown: {missing}", litmus.name).unwrap();
        }
        for more in found.difference(&litmus.outcomes) {
            writeln!(wrong, "{}: shown against the model: {more}", litmus.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Runs by seeds give outcomes of the program alone, and find each of them.
#[test]
fn seeds_give_the_outcomes() {
    for litmus in all() {
        let mut found = BTreeSet::new();
        litmus.with_launch(|launch| {
            for seed in 0..4000 {
                let outcome = litmus.outcome(&Launch { seed, ..launch.clone() }.run());
                assert!(litmus.outcomes.contains(&outcome), "{}: {outcome}", litmus.name);
                found.insert(outcome);
                if found.len() == litmus.outcomes.len() {
                    return;
                }
            }
        });
        let missing: Vec<_> = litmus.outcomes.difference(&found).collect();
        assert!(missing.is_empty(), "{}: no seed gives {missing:?}", litmus.name);
    }
}
