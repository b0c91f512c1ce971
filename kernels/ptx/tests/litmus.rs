//! The memory model: all runs of the small programs give their outcomes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use roundelay_ptx::machine::{
    Conflict, Failure, FaultKind, FinalState, Launch, RankLaunch, Window,
};
use roundelay_ptx::program::Module;
use roundelay_ptx::{Assumption, Assumptions};

use super::programs::{LOCATIONS, Litmus, REGISTERS, all};

const MEMORY: u64 = 0x10_0000;
const RESULTS: u64 = 0x20_0000;
/// Bytes of the results of a thread.
const EACH: u64 = 256;

/// The offset of a register of a thread among the results.
fn offset(thread: usize, register: &str) -> u64 {
    let number: u64 = register[1..].parse().unwrap();
    thread as u64 * EACH + 8 * number + if register.starts_with('d') { 128 } else { 0 }
}

impl Litmus {
    fn module(&self, rank: usize) -> Module {
        let mut text = String::from(".version 8.8\n.target sm_90\n.address_size 64\n");
        text += ".visible .entry litmus(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 w, .param .u64 out)\n{\n";
        text += REGISTERS;
        text += ".reg .b32 %block;\n.reg .b32 %thread;\n";
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
                let offset = offset(number, register);
                let ty = if register.starts_with('d') { "u64" } else { "u32" };
                writeln!(text, "st.global.{ty} [%out+{offset}], %{register};").unwrap();
            }
            writeln!(text, "ret;\n$L{number}:").unwrap();
        }
        text += "ret;\n}\n";
        Module::parse_whole(&text)
            .unwrap_or_else(|error| panic!("{}: {error:?}\n{text}", self.name))
    }

    fn shown(&self, result: &Result<FinalState, Failure>) -> String {
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
                    FaultKind::Unordered { conflict: Conflict::Alias, .. } => {
                        "race of aliases".to_owned()
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
        self.outcome(|name| match name.split_once(':') {
            Some((thread, register)) => number(1, offset(thread.parse().unwrap(), register)),
            None => number(
                0,
                16 * LOCATIONS.iter().position(|location| *location == name).unwrap() as u64,
            ),
        })
    }

    fn with_launch(&self, run: impl FnOnce(Launch)) {
        let ranks = 1 + self.threads.iter().map(|thread| thread.rank).max().unwrap();
        let modules: Vec<Module> = (0..ranks).map(|rank| self.module(rank)).collect();
        let blocks = 1 + self.threads.iter().map(|thread| thread.block).max().unwrap();
        let warps = 1 + self.threads.iter().map(|thread| thread.warp).max().unwrap();
        let locations = (0..4).map(|number| MEMORY + 16 * number).chain([RESULTS]);
        let parameters: Vec<u8> = locations.flat_map(u64::to_le_bytes).collect();
        let rank = |(device, module)| RankLaunch {
            grid: [blocks, 1, 1],
            block: [32 * (warps - 1) + 1, 1, 1],
            parameters: parameters.clone(),
            device,
            ..RankLaunch::new(module, "litmus")
        };
        let window = |name: &str, address, bytes| Window {
            name: name.to_owned(),
            address,
            bytes: vec![0; bytes],
        };
        let results = EACH as usize * self.threads.len();
        let windows = vec![window("memory", MEMORY, 64), window("results", RESULTS, results)];
        run(Launch::new((0..).zip(&modules).map(rank).collect(), windows));
    }
}

/// Every file of the folder is among the programs.
#[test]
fn no_file_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    let files: BTreeSet<String> = files.map(|path| name(&path)).collect();
    assert_eq!(files, all().into_iter().map(|litmus| litmus.name).collect());
}

/// All runs of each program give its outcomes and no others.
#[test]
fn all_runs_give_the_outcomes() {
    let mut wrong = String::new();
    for litmus in all() {
        let found = outcomes(&litmus, &Assumptions::default());
        for missing in litmus.outcomes.difference(&found) {
            writeln!(wrong, "{}: not shown: {missing}", litmus.name).unwrap();
        }
        for more in found.difference(&litmus.outcomes) {
            writeln!(wrong, "{}: shown against the model: {more}", litmus.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// All outcomes of a program under assumptions.
fn outcomes(litmus: &Litmus, assumptions: &Assumptions) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    litmus.with_launch(|launch| {
        let launch = Launch { assumptions: assumptions.clone(), ..launch };
        let whole = launch.explore(100_000, |result| {
            found.insert(litmus.shown(result));
        });
        assert!(whole, "{} has too many runs", litmus.name);
    });
    found
}

/// All runs under assumptions give the outcomes that are left.
#[test]
fn assumptions_leave_their_outcomes() {
    let mut wrong = String::new();
    for litmus in all() {
        for (names, expected) in &litmus.assumed {
            let with = names.iter().map(|name| name.parse().unwrap());
            let found =
                outcomes(&litmus, &Assumptions::default().iter().cloned().chain(with).collect());
            for outcome in found.symmetric_difference(expected) {
                let shown = if found.contains(outcome) { "shown" } else { "not shown" };
                writeln!(wrong, "{} assuming {names:?}: {shown}: {outcome}", litmus.name).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// An assumption takes outcomes away and adds none, but for those of programs that race without it.
#[test]
fn assumptions_add_no_outcomes() {
    let weak = Assumption::WeakAsRelaxed("memory".to_owned());
    for litmus in all().iter().filter(|litmus| !litmus.outcomes.iter().any(|o| o.contains("race")))
    {
        for assumption in Assumption::ALL.iter().chain([&weak]) {
            let assumptions = Assumptions::default().include(assumption.clone());
            litmus.with_launch(|launch| {
                let launch = Launch { assumptions: assumptions.clone(), ..launch };
                for seed in 0..60 {
                    let outcome = litmus.shown(&Launch { seed, ..launch.clone() }.run());
                    let known = litmus.outcomes.contains(&outcome);
                    assert!(known, "{} assuming {assumption}: {outcome}", litmus.name);
                }
            });
        }
    }
}

/// Runs by seeds give outcomes of the program alone, and find each of them.
#[test]
fn seeds_give_the_outcomes() {
    for litmus in all() {
        let mut found = BTreeSet::new();
        litmus.with_launch(|launch| {
            for seed in 0..4000 {
                let outcome = litmus.shown(&Launch { seed, ..launch.clone() }.run());
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
