//! The runs of a harness, over its cases and seeds, and the sets of assumptions that its kernels need.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use roundelay_ptx::machine::{Counters, Failure, Launch, LaunchError, Limits};
use roundelay_ptx::program::Module;

use crate::assumption::{Assumption, Assumptions, MachineAssumption, of_machine};
use crate::case::Case;
use crate::coverage::Coverage;
use crate::finding::{Finding, Kind};
use crate::harness::{Harness, RunLimits};
use crate::own;
use crate::sequence::{Sequence, Variation};
use crate::verdict::{CaseRuns, State, Verdict};

/// Nanoseconds of a turn where a rank is absent, so that waits with a deadline end.
const TURN_NS: u64 = 1_000_000;
/// Races of a run behind which it goes on.
const RACES: usize = 8;
/// Runs that make the story of a finding shorter, at most, and about the time for it.
const SHORTER: usize = 60;
const REPEATED: Duration = Duration::from_secs(3);
/// The part of the budget in which a cure that was not declared is looked for.
const CURE: u32 = 6;
/// Turns of each warp that may pass without a store; where a rank is absent, waits with a deadline end before.
const IDLE: u64 = 300;
const IDLE_FOR_DEADLINES: u64 = 3000;
/// Seeds with which a cure that was not declared is tried.
const TRIED: u64 = 12;
/// Seeds of a case that are run between two looks at the others.
const AT_ONCE: u64 = 4;

/// How a check is run.
pub struct CheckOptions<'a> {
    /// The seeds of each case; the harness's own number where there is none.
    pub seeds: Option<u64>,
    /// The first seed.
    pub first: u64,
    /// The time that the check of one harness may take.
    pub budget: Duration,
    /// The threads that run seeds.
    pub threads: usize,
    /// Whether a finding is made shorter, and a cure that was not declared is looked for.
    pub explain: bool,
    /// Whether the work is to end at once.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Told of the progress.
    pub progress: &'a (dyn Fn(&str) + Sync),
}

/// A run to make: the number of the case, and the seed.
type Job = (usize, u64);

/// The runs of one set of assumptions.
struct Pass {
    found: Option<(Job, Box<Finding>)>,
    runs: Vec<CaseRuns>,
    whole: bool,
}

/// All that the runs of a harness have in common.
struct Checker<'a> {
    harness: &'a Harness,
    cases: &'a [Case],
    own: Module,
    options: &'a CheckOptions<'a>,
    seeds: u64,
    end: Instant,
    coverage: Mutex<Coverage>,
}

impl Harness {
    /// Checks the harness in its cases.
    ///
    /// # Errors
    /// A part of the harness that makes no sense for one of its cases.
    pub fn check(&self, cases: &[Case], options: &CheckOptions) -> Result<Verdict, String> {
        let begun = Instant::now();
        let checker = Checker {
            harness: self,
            cases,
            own: own::module(),
            options,
            seeds: options.seeds.unwrap_or(self.run.seeds),
            end: begun + options.budget,
            coverage: Mutex::default(),
        };
        let mut verdict = checker.verdict()?;
        verdict.seconds = begun.elapsed().as_secs_f64();
        verdict.stopped = (options.stop)();
        verdict.coverage = checker.coverage.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(verdict)
    }
}

impl Checker<'_> {
    fn verdict(&self) -> Result<Verdict, String> {
        let declared: Assumptions =
            self.harness.assume.keys().filter(|one| one.is_optional()).cloned().collect();
        let bare = self.pass(
            &Assumptions::new(),
            if declared.is_empty() { 1 } else { 2 },
            "by PTX alone",
        )?;
        let mut verdict = Verdict::new(self.harness, self.cases, &bare.runs, bare.whole);
        let Some((job, found)) = bare.found else { return Ok(verdict) };
        let mut failing = vec![job];
        let mut cause = (job, found);
        if !declared.is_empty() && !matches!(cause.1.kind, Kind::Limit | Kind::Unsupported) {
            let all = self.pass(&declared, 2, "with all assumptions")?;
            verdict.take_runs(&all.runs, all.whole);
            match all.found {
                None => {
                    let (set, pass) = self.smallest(&declared, &mut failing, all)?;
                    verdict.take_runs(&pass.runs, pass.whole);
                    verdict.assumptions = set;
                    verdict.state = State::Relies;
                }
                Some(found) => cause = found,
            }
        }
        let (job, mut found) = cause;
        let set =
            if verdict.state == State::Relies { Assumptions::new() } else { declared.clone() };
        let explain =
            self.options.explain && !matches!(found.kind, Kind::Limit | Kind::Unsupported);
        let story = if explain { self.shorter(job, &set, &found)? } else { None };
        if let Some(shorter) = story {
            found = shorter;
        }
        if verdict.state == State::Relies {
            found.cured_by = Some(verdict.assumptions.clone());
        } else {
            verdict.state = match found.kind {
                Kind::Limit => State::Limit,
                Kind::Unsupported => State::Unsupported,
                _ => State::Error,
            };
            let may_cure = [Kind::Race, Kind::Scope, Kind::Constant, Kind::Hang, Kind::Wrong];
            if explain && verdict.state == State::Error && may_cure.contains(&found.kind) {
                let buffer = found.memory.as_ref().map(|memory| memory.name.clone());
                found.cured_by = self.cure(job, &declared, buffer)?;
            }
        }
        verdict.finding = Some(found);
        Ok(verdict)
    }

    /// The smallest of the declared assumptions that cure all, and the runs with it: singles and pairs are tried, and then
    /// one after another is left out. `failing` has runs that fail without; a set is tried on these first.
    fn smallest(
        &self,
        declared: &Assumptions,
        failing: &mut Vec<Job>,
        all: Pass,
    ) -> Result<(Assumptions, Pass), String> {
        for size in 1..=2.min(declared.len().saturating_sub(1)) {
            for set in sets(declared, size) {
                if let Some(pass) = self.cures(&set, failing)? {
                    return Ok((set, pass));
                }
            }
        }
        let mut smallest = (declared.clone(), all);
        for one in declared.iter().filter(|_| declared.len() > 3) {
            let mut set = smallest.0.clone();
            set.remove(one);
            if let Some(pass) = self.cures(&set, failing)? {
                smallest = (set, pass);
            }
        }
        Ok(smallest)
    }

    /// The runs with a set of assumptions, if it cures all; a run that it does not cure is kept.
    fn cures(&self, set: &Assumptions, failing: &mut Vec<Job>) -> Result<Option<Pass>, String> {
        for &job in failing.iter() {
            if self.run(job, set)?.1.is_some() {
                return Ok(None);
            }
        }
        let pass = self.pass(set, 3, &crate::assumption::names(set))?;
        failing.extend(pass.found.as_ref().map(|(job, _)| *job));
        Ok(pass.found.is_none().then_some(pass))
    }

    /// The smallest set of assumptions, beside the declared ones, that cures a run and those of all cases; singles and
    /// pairs are tried.
    fn cure(
        &self,
        job: Job,
        declared: &Assumptions,
        buffer: Option<String>,
    ) -> Result<Option<Assumptions>, String> {
        let others = Assumption::all().filter(Assumption::is_optional);
        // Of the buffers, the one that the finding names may be to blame.
        let weak = buffer.map(MachineAssumption::WeakAsRelaxed).map(Assumption::Machine);
        let others = others.chain(weak).filter(|one| !declared.contains(one));
        let others: Assumptions = others.collect();
        let begun = Instant::now();
        let end = begun + self.end.saturating_duration_since(begun) / CURE;
        for size in 1..=2 {
            for more in sets(&others, size) {
                let set: Assumptions = declared.union(&more).cloned().collect();
                let mut cures = true;
                for seed in 0..TRIED {
                    if (self.options.stop)() || Instant::now() > end {
                        return Ok(None);
                    }
                    cures = cures && self.run((job.0, job.1.wrapping_add(seed)), &set)?.1.is_none();
                    if !cures {
                        break;
                    }
                }
                // Few seeds of one case do not show a wrong result that is rare.
                if cures && self.pass(&set, CURE, "with a cure")?.found.is_none() {
                    return Ok(Some(more));
                }
            }
        }
        Ok(None)
    }

    /// Runs all seeds of all cases with a set of assumptions, until one fails; in a part of the time that is left.
    fn pass(&self, set: &Assumptions, part: u32, what: &str) -> Result<Pass, String> {
        let begun = Instant::now();
        let end = begun + self.end.saturating_duration_since(begun) / part;
        // The cases take turns, so that a budget that is too small leaves none of them out.
        let rounds = self.seeds.div_ceil(AT_ONCE);
        let total = usize::try_from(rounds).unwrap_or(usize::MAX).saturating_mul(self.cases.len());
        let batch = |number: usize| {
            let (round, case) = (number / self.cases.len(), number % self.cases.len());
            let first = round as u64 * AT_ONCE;
            (case, first..(first + AT_ONCE).min(self.seeds))
        };
        let (next, least) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        // The first run that failed, by the number of its part.
        let failed = Mutex::new(None::<(usize, Job, Result<Box<Finding>, String>)>);
        let whole = AtomicBool::new(true);
        let runs = |case: &Case| CaseRuns {
            ranks: case.ranks,
            elements: case.elements.clone(),
            seeds: 0,
            counters: Counters::default(),
        };
        let counts = Mutex::new(self.cases.iter().map(runs).collect::<Vec<_>>());
        let fail = |number: usize, job: Job, found: Result<Box<Finding>, String>| {
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.as_ref().is_none_or(|(before, ..)| number < *before) {
                *failed = Some((number, job, found));
            }
        };
        let worker = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total || number > least.load(Ordering::Relaxed) {
                    return;
                }
                let (case, seeds) = batch(number);
                for seed in seeds {
                    // Every case has at least one run, unless the caller ends all.
                    if (self.options.stop)() || number >= self.cases.len() && Instant::now() > end {
                        whole.store(false, Ordering::Relaxed);
                        return;
                    }
                    let job = (case, self.options.first.wrapping_add(seed));
                    let found = match self.run(job, set) {
                        Ok((counters, found)) => {
                            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                            counts[case].seeds += 1;
                            counts[case].counters += counters;
                            found.map(Ok)
                        }
                        Err(why) => Some(Err(why)),
                    };
                    if let Some(found) = found {
                        least.fetch_min(number, Ordering::Relaxed);
                        fail(number, job, found);
                        return;
                    }
                }
                (self.options.progress)(&format!("{what}: {} of {total} parts", number + 1));
            }
        };
        std::thread::scope(|threads| {
            for _ in 1..self.options.threads.min(total) {
                // A thread that does not start leaves its work to the others.
                _ = std::thread::Builder::new().spawn_scoped(threads, worker);
            }
            worker();
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Pass {
            found: failed.map(|(_, job, found)| found.map(|found| (job, found))).transpose()?,
            runs: counts.into_inner().unwrap_or_else(PoisonError::into_inner),
            whole: whole.into_inner(),
        })
    }

    fn sequence(&self, (case, seed): Job, set: &Assumptions) -> Result<Sequence<'_>, String> {
        let one_order = Assumption::Machine(MachineAssumption::OneOrder);
        let orders = (set.contains(&one_order), !set.contains(&Assumption::PayloadDiffers));
        let mut run = Sequence::new(self.harness, &self.cases[case], seed, orders)?;
        let own = self.own.functions.iter();
        run.own_instructions = own.map(|function| function.instructions.len()).sum();
        Ok(run)
    }

    fn launch<'b>(
        &'b self,
        run: &'b Sequence,
        seed: u64,
        set: &Assumptions,
        races: usize,
    ) -> Launch<'b> {
        let RunLimits { instructions, end, .. } = self.harness.run.limits;
        let mut limits = Limits { instructions, end, races, idle_turns: IDLE, ..Limits::default() };
        if matches!(run.variation, Variation::Absent(_)) {
            limits = Limits { turn_ns: TURN_NS, idle_turns: IDLE_FOR_DEADLINES, ..limits };
        }
        let resident = self.harness.run.resident_blocks;
        limits.resident_blocks = resident.unwrap_or(limits.resident_blocks);
        let assumptions = of_machine(set, resident.is_none());
        let windows = run.layout.windows.clone();
        let aliases = run.layout.aliases.clone();
        Launch {
            seed,
            limits,
            assumptions,
            aliases,
            ..Launch::new(run.rank_launches(&self.own), windows)
        }
    }

    /// Runs one seed: the counts, and the finding if there is one.
    fn run(&self, job: Job, set: &Assumptions) -> Result<(Counters, Option<Box<Finding>>), String> {
        let run = self.sequence(job, set)?;
        let mut counters = Counters::default();
        let (races, end) = match self.launch(&run, job.1, set, RACES).run() {
            Ok(state) => {
                let of_modules = run.launches.iter().zip(&state.counters);
                let of_modules = of_modules.filter(|(launched, _)| launched.module.is_some());
                of_modules.flat_map(|(_, warps)| warps).for_each(|of_warp| counters += *of_warp);
                let mut coverage = self.coverage.lock().unwrap_or_else(PoisonError::into_inner);
                coverage.add(&run, &state.covered);
                drop(coverage);
                (state.races, run.compare(&state.windows)?)
            }
            Err(Failure::Fault(mut fault)) => {
                let races = std::mem::take(&mut fault.before);
                (races, of_failure(&Failure::Fault(fault), &run)?)
            }
            Err(failure) => (Vec::new(), of_failure(&failure, &run)?),
        };
        let mut all = races.iter().map(|race| Finding::of_fault(race, &run)).chain(end);
        let found = all.next().map(|first| {
            let behind = all.map(|found| found.title).collect();
            Box::new(Finding { behind, ..first.of_run(&run, job.1) })
        });
        Ok((counters, found))
    }

    /// The same finding by a run with fewer choices that are not plain; none where it takes too long, or is no fault of the
    /// machine.
    fn shorter(
        &self,
        job: Job,
        set: &Assumptions,
        found: &Finding,
    ) -> Result<Option<Box<Finding>>, String> {
        let begun = Instant::now();
        let run = self.sequence(job, set)?;
        let launch = self.launch(&run, job.1, set, 0);
        if launch.run().is_ok() {
            return Ok(None);
        }
        let runs = REPEATED.as_micros() / begun.elapsed().as_micros().max(1);
        let Some(shrunk) = launch.shrink(SHORTER.min(runs as usize)) else { return Ok(None) };
        let shorter =
            of_failure(&shrunk.failure, &run)?.filter(|shorter| shorter.kind == found.kind);
        Ok(shorter.map(|shorter| {
            let story = Some((shrunk.choices_before, shrunk.choices));
            let behind = found.behind.clone();
            Box::new(Finding { story, behind, ..shorter.of_run(&run, job.1) })
        }))
    }
}

/// The finding of a run that failed; none where the failure is right, since a rank is absent.
fn of_failure(failure: &Failure, run: &Sequence) -> Result<Option<Finding>, String> {
    match failure {
        Failure::Launch(LaunchError::Lacks(kernel, lacks)) => {
            let spelt = lacks.iter().map(|lack| format!("`{}` ({} x)", lack.spelling, lack.count));
            let spelt = spelt.collect::<Vec<_>>().join(", ");
            let title = format!("the machine does not have all of {kernel}: {spelt}");
            Ok(Some(Finding::new(Kind::Unsupported, title)))
        }
        Failure::Launch(error) => Err(error.to_string()),
        Failure::Fault(fault) => {
            let found = Finding::of_fault(fault, run);
            let is_right =
                matches!(run.variation, Variation::Absent(_)) && found.kind == Kind::Trap;
            Ok((!is_right).then_some(found))
        }
    }
}

/// The subsets of a size, which is 1 or 2.
fn sets(of: &Assumptions, size: usize) -> Vec<Assumptions> {
    let all: Vec<&Assumption> = of.iter().collect();
    match size {
        1 => all.iter().map(|&one| Assumptions::from([one.clone()])).collect(),
        _ => {
            let pairs = (0..all.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
            pairs.map(|(a, b)| Assumptions::from([all[a].clone(), all[b].clone()])).collect()
        }
    }
}
