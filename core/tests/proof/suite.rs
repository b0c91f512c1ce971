//! The mutation suite: every mutant of every algorithm, judged by the oracles and by the proof.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::diagnostics::{Code, unless_refused};
use roundelay_core::layout::{Algorithm, Configured};
use roundelay_core::schedule::demands::Demands;
use roundelay_core::schedule::{Schedule, legality, text};
use roundelay_core::syntax::Source;
use roundelay_core::verify::verify;
use roundelay_oracles::{Kind, Opinion, judge, unlike};

use crate::proof::mutation::CLASSES;
use crate::proof::programs::RIGHT;

use roundelay_library::SOURCES as LIBRARY;

/// The fate of one mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// Wrong, and refused under this code.
    Killed(Code),
    /// It breaks a rule of structure, so that no oracle can run it, and is refused under this code.
    NoSchedule(Code),
    /// Right in all interleavings, and proved.
    Equivalent,
    /// Cut too finely for an oracle.
    Undecided,
}

/// The fates of many mutants.
#[derive(Default)]
pub(crate) struct Score {
    /// How many of each class met which fate.
    fates: BTreeMap<(&'static str, Fate), usize>,
    /// Right, but refused in mixtures of modes: some that are right there too, and some that are not.
    one_mode: [usize; 2],
    /// How many the search could not decide.
    unsearched: usize,
    /// How many there are, judged or not.
    all: usize,
    /// How many of each algorithm were judged.
    algorithms: BTreeMap<String, usize>,
    /// The equivalent mutants, by their number in their class.
    survivors: Vec<String>,
    /// Where the proof and the oracles disagree, with the mutant.
    wrong: Vec<String>,
}

/// Every algorithm of the library, the examples, and this folder.
pub(crate) fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for folder in ["stdlib/library", "examples"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder of sources");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut paths: Vec<_> =
            paths.filter(|p| p.extension().is_some_and(|e| e == "coll")).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().expect("a name").to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("a source");
            all.push((format!("{folder}/{name}"), text));
        }
    }
    for (text, _) in RIGHT {
        if all.iter().all(|(_, known)| known != text) {
            all.push(("programs.rs".to_owned(), (*text).to_owned()));
        }
    }
    all
}

/// The algorithms of a source that admit `nranks`.
fn schedules(name: &str, text: &str, nranks: u32) -> Vec<Schedule> {
    let source = Source::from_text(name, text);
    let program = compile_with(&source, Frontend::File, &Dependencies::library(LIBRARY))
        .unwrap_or_else(|errors| panic!("{errors:#?}"));
    let laid_out = program.algorithms.into_iter().filter_map(|algorithm| {
        let schedule = Configured::new(algorithm, &source).schedule(nranks);
        let schedule = unless_refused(schedule).expect("what can be laid out")?;
        // The oracles do not check an attribute's demands beyond being right.
        Some(Schedule { demands: Demands::default(), ..schedule })
    });
    laid_out.collect()
}

impl Score {
    /// Judges one mutant.
    pub(crate) fn add(&mut self, class: &'static str, mutant: &Schedule) -> Option<Fate> {
        let proof = verify(mutant).map_err(|found| found[0].code);
        let any_mode = proof.as_ref().is_ok_and(|proof| proof.one_mode.is_none());
        let legal = legality::check(mutant);
        let opinion = if legal.is_ok() { judge(mutant) } else { None };
        let fate = match (&opinion, legal.is_ok(), &proof) {
            (_, false, Err(code)) => Fate::NoSchedule(*code),
            (None, ..) => Fate::Undecided,
            (Some(Opinion { mixed: Some(says), .. }), _, Ok(_)) if any_mode => {
                let mutant = text::print(mutant);
                self.wrong.push(format!("{class}: proved in any mixture, but {says:?}\n{mutant}"));
                return None;
            }
            (Some(opinion), _, Ok(proof)) if opinion.objections.is_empty() => {
                if let Some(what) = unlike(mutant, proof) {
                    self.wrong.push(format!("{class}: {what}\n{}", text::print(mutant)));
                }
                self.one_mode[usize::from(opinion.mixed.is_some())] +=
                    usize::from(proof.one_mode.is_some());
                Fate::Equivalent
            }
            (Some(opinion), _, Err(code)) if !opinion.objections.is_empty() => {
                let kinds: BTreeSet<_> = opinion.objections.iter().map(|o| o.kind).collect();
                if !fits(*code, &kinds, opinion) {
                    self.wrong.push(format!(
                        "{class}: refused under {code}, but what is wrong is {kinds:?}\n{}",
                        text::print(mutant)
                    ));
                }
                Fate::Killed(*code)
            }
            (Some(opinion), ..) => {
                let says = opinion.objections.first();
                let proof = proof.as_ref().map(|_| "proved");
                let mutant = text::print(mutant);
                self.wrong.push(format!("{class}: {proof:?}, but {says:?}\n{mutant}"));
                return None;
            }
        };
        self.unsearched += usize::from(opinion.is_some_and(|o| !o.searched));
        *self.fates.entry((class, fate)).or_insert(0) += 1;
        Some(fate)
    }

    fn count(&self, which: impl Fn(&str, Fate) -> bool) -> usize {
        self.fates.iter().filter(|((class, fate), _)| which(class, *fate)).map(|(_, n)| n).sum()
    }

    fn join(&mut self, other: Self) {
        for (key, n) in other.fates {
            *self.fates.entry(key).or_insert(0) += n;
        }
        self.unsearched += other.unsearched;
        for (ours, theirs) in self.one_mode.iter_mut().zip(other.one_mode) {
            *ours += theirs;
        }
        self.all += other.all;
        for (name, n) in other.algorithms {
            *self.algorithms.entry(name).or_insert(0) += n;
        }
        self.survivors.extend(other.survivors);
        self.wrong.extend(other.wrong);
    }

    pub(crate) fn disagreements(&self) -> &[String] {
        &self.wrong
    }

    /// Mutants that a check refused.
    pub(crate) fn kills(&self, code: Code) -> usize {
        self.count(|_, f| f == Fate::Killed(code))
    }

    /// Fails where the proof and the oracles disagree.
    pub(crate) fn agree(&self) {
        let some: Vec<_> = self.wrong.iter().take(3).map(String::as_str).collect();
        assert!(some.is_empty(), "{} disagreements\n{}", self.wrong.len(), some.join("\n"));
    }

    /// Returns the numbers of harmful mutants, and of harmless ones.
    pub(crate) fn parts(&self) -> (usize, usize) {
        let harmful = self.count(|_, f| matches!(f, Fate::Killed(_)));
        (harmful, self.count(|_, f| f == Fate::Equivalent))
    }

    /// Class by class, then check by check.
    pub(crate) fn table(&self) -> String {
        let mut table = format!(
            "{:<28}{:>8}{:>9}{:>9}{:>12}{:>11}{:>12}\n",
            "class", "mutants", "harmful", "killed", "equivalent", "undecided", "no schedule"
        );
        let killed = |fate| matches!(fate, Fate::Killed(_));
        let broken = |fate| matches!(fate, Fate::NoSchedule(_));
        let mut row = |name: &str, of: &dyn Fn(&str) -> bool, survived: usize| {
            let count = |which: &dyn Fn(Fate) -> bool| self.count(|c, f| of(c) && which(f));
            let dead = count(&killed);
            let _ = writeln!(
                table,
                "{name:<28}{:>8}{:>9}{dead:>9}{:>12}{:>11}{:>12}",
                count(&|_| true) + survived,
                dead + survived,
                count(&|f| f == Fate::Equivalent),
                count(&|f| f == Fate::Undecided),
                count(&broken),
            );
        };
        let order = |class: &str| CLASSES.iter().position(|(name, _)| *name == class);
        let mut classes: Vec<_> = self.fates.keys().map(|(class, _)| *class).collect();
        classes.sort_by_key(|class| order(class));
        classes.dedup();
        for name in classes {
            let survived = self.wrong.iter().filter(|w| w.starts_with(&format!("{name}:")));
            row(name, &|class| class == name, survived.count());
        }
        row("all", &|_| true, self.wrong.len());
        let _ = writeln!(table, "\n{:<60}{:>9}{:>12}", "check", "kills", "no schedule");
        for code in Code::ALL {
            let dead = self.kills(*code);
            let broken = self.count(|_, f| f == Fate::NoSchedule(*code));
            if dead + broken > 0 {
                let check = format!("{code} {}", code.summary());
                let _ = writeln!(table, "{check:<60}{dead:>9}{broken:>12}");
            }
        }
        let _ = writeln!(table, "\n{} mutants not decided by search", self.unsearched);
        let [right, wrong] = self.one_mode;
        let _ = writeln!(
            table,
            "{} right ones run in one mode only: mixtures of {wrong} are wrong, of {right} are not",
            right + wrong
        );
        table
    }
}

/// Whether a code names something that is wrong.
fn fits(code: Code, kinds: &BTreeSet<Kind>, opinion: &Opinion) -> bool {
    let any = |all: &[Kind]| kinds.iter().any(|kind| all.contains(kind));
    opinion.in_place_only == (code == Code::InPlaceOnly)
        && match code {
            Code::Deadlock | Code::FifoTooShallow | Code::UnmatchedWait => any(&[Kind::Deadlock]),
            Code::LeftOverSignal => any(&[Kind::LeftOver, Kind::Deadlock]),
            Code::WrongResult => any(&[Kind::Result]),
            Code::Race => any(&[Kind::Race]),
            Code::RaceWithCaller => any(&[Kind::RaceWithCaller]),
            // A read that races with the first write may come before it.
            Code::UninitializedRead => any(&[Kind::Garbage, Kind::Race]) || opinion.reshaped,
            Code::SharedSignal => any(&[Kind::SharedSignal]),
            Code::ScratchRace => any(&[Kind::RaceAcrossRuns]),
            // A slot that is read in another shape holds garbage, or data of another place.
            Code::InPlaceOnly | Code::SlotLength => true,
            _ => false,
        }
}

/// Judges the mutants of all sources at 2, 3 and 4 ranks, on all cores: of each schedule and class as many, evenly
/// spaced, as have `ops` ops together; where an algorithm has the fewest ranks, at least one.
fn judge_all(ops: usize) -> Score {
    let (mut jobs, mut known) = (Vec::new(), BTreeSet::new());
    for (name, text) in sources() {
        for schedule in (2..=4).flat_map(|nranks| schedules(&name, &text, nranks)) {
            let least = usize::from(known.insert((name.clone(), schedule.algorithm.clone())));
            jobs.push((schedule, least));
        }
    }
    // The largest first, so that no core is left with one at the end.
    jobs.sort_by_key(|(schedule, _)| std::cmp::Reverse(schedule.ops.len()));
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Score::default()));
    let work = || {
        while let Some((schedule, least)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let score = judge_schedule(schedule, ops, *least);
            total.lock().expect("no panic").join(score);
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut total = total.into_inner().expect("no panic");
    total.survivors.sort();
    total.wrong.sort();
    let judged: usize = total.algorithms.values().sum();
    println!(
        "\n{judged} of {} mutants, of {} algorithms at 2 to 4 ranks, in {:.1} s\n\n{}",
        total.all,
        total.algorithms.len(),
        begun.elapsed().as_secs_f64(),
        total.table(),
    );
    total
}

fn judge_schedule(schedule: &Schedule, ops: usize, least: usize) -> Score {
    let mut score = Score::default();
    let (name, nranks) = (&schedule.algorithm, schedule.nranks);
    for (class, mutate) in CLASSES {
        let mutants = mutate(schedule);
        let all = mutants.len();
        let some = (ops / schedule.ops.len().max(1)).max(least).min(all);
        let mut survivors = String::new();
        for at in (0..some).map(|k| (2 * k + 1) * all / (2 * some)) {
            if score.add(class, &mutants[at]) == Some(Fate::Equivalent) {
                let _ = write!(survivors, " {at}");
            }
        }
        if !survivors.is_empty() {
            score.survivors.push(format!("{class} {name} {nranks} ranks:{survivors}"));
        }
        score.all += all;
        *score.algorithms.entry(name.clone()).or_insert(0) += some;
    }
    score
}

#[test]
fn the_oracles_agree_with_what_is_right() {
    for (name, text) in sources() {
        for nranks in 1..=4 {
            for schedule in schedules(&name, &text, nranks) {
                let opinion = judge(&schedule).expect("cuts that are not too fine");
                assert_eq!(opinion.objections, [], "{name} at {nranks} ranks");
                assert!(opinion.searched, "{name} at {nranks} ranks");
            }
        }
    }
}

/// The suite by sample: every class of every algorithm, and more mutants of a schedule, the smaller it is.
/// `ROUNDELAY_MUTANTS` asks for mutants with more ops together than 64, of each schedule and class.
#[test]
fn mutants() {
    let asked = std::env::var("ROUNDELAY_MUTANTS").ok().and_then(|n| n.parse().ok());
    let score = judge_all(asked.unwrap_or(64));
    assert_eq!(score.count(|_, f| f == Fate::Undecided), 0);
    score.agree();
    // A fold's order and its roundings are no part of being right, and one stream does the work of two, only later.
    let harmless = ["swap sources", "round otherwise", "merge two streams"];
    for (name, _) in CLASSES {
        let killed = score.count(|class, f| class == *name && matches!(f, Fate::Killed(_)));
        assert_eq!(killed == 0, harmless.contains(name), "{name}");
    }
    for (name, judged) in &score.algorithms {
        assert!(*judged > 0, "no mutant of {name}");
    }
}

/// The whole suite: `cargo xtask mutants`.
#[test]
#[ignore = "every mutant: `cargo xtask mutants` runs it in release"]
fn full_suite() {
    let score = judge_all(usize::MAX);
    let list = Path::new(env!("CARGO_TARGET_TMPDIR")).join("survivors.txt");
    std::fs::write(&list, score.survivors.join("\n") + "\n").expect("a place for the list");
    println!(
        "survivors, right in every interleaving and by the closure, are listed in {}",
        list.display()
    );
    assert_eq!(score.count(|_, f| f == Fate::Undecided), 0);
    score.agree();
}
