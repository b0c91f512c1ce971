//! The algorithms that are timed: the named ones, or all of the library that take the rank count.

use roundelay::{Algorithm as _, Collective, select};
use roundelay_core::counts::Counts;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::layout::Configured;
use roundelay_core::prove_source;
use roundelay_core::rational::lcm;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
use roundelay_runner::memory::TooMuch;
use roundelay_runner::{RunError, ranks};
use serde::Serialize;

use super::flags::{BenchFlags, NRANKS};
use crate::device::Device;
use crate::flags::{SourceFlags, TopologyFlags};
use crate::msccl;
use crate::program::{self, AlgorithmOrProgram, Loaded, load_with, read};
use crate::report::{Failure, name_counts, print_all, refuse, wrong};
use crate::streams;
use crate::topology;

/// An algorithm, proved for a rank count and a root.
pub(super) struct Subject {
    pub(super) name: String,
    /// Absent for a program for MSCCL, which is no algorithm of the language.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(dead_code, reason = "only kernels are made of the algorithm")
    )]
    pub(super) algorithm: Option<Configured>,
    pub(super) proved: Proved,
    /// Its index among the algorithms that were asked for.
    pub(super) which: usize,
    /// The root that was asked for.
    pub(super) root: Option<u32>,
    /// The most streams of a rank.
    pub(super) streams: u32,
}

/// An algorithm that does not take a rank count, or a size that there is no memory for.
#[derive(Serialize)]
pub(super) struct RefusedSubject {
    pub(super) algo: String,
    pub(super) nranks: u32,
    pub(super) code: &'static str,
    pub(super) reason: String,
}

/// Subjects of one collective, rank count and root, so with equal buffers.
pub(super) struct Group {
    pub(super) subjects: Vec<Subject>,
}

impl Group {
    /// Returns the number whose multiples are the counts that all subjects take.
    ///
    /// # Errors
    /// E0507 where the number has more than 64 bits.
    pub(super) fn multiple(&self) -> Result<u64, Failure> {
        let mut all = self.subjects.iter().map(|subject| subject.proved.schedule().multiple);
        all.try_fold(1, lcm).ok_or_else(|| {
            let title = "no size fits all of them: they take counts that are multiples of others";
            Failure::usage(Code::BadCall, title).with_help("time them one by one")
        })
    }
}

/// An algorithm as it was read, with its text for errors in it.
struct Named {
    what: AlgorithmOrProgram,
    source: Source,
    /// Whether it was asked for by name: then a refusal is an error.
    wanted: bool,
}

/// Finds the subjects that are timed, and the refused ones.
pub(super) fn find(
    flags: &BenchFlags,
    nranks: &crate::values::RankCounts,
) -> Result<(Vec<Group>, Vec<RefusedSubject>), Failure> {
    let algorithms = asked(flags, true)?;
    let mut groups: Vec<Group> = Vec::new();
    let mut refused = Vec::new();
    for &n in &nranks.counts {
        for (which, named) in algorithms.iter().enumerate() {
            let AlgorithmOrProgram::Algorithm(algorithm) = &named.what else { continue };
            for root in roots(flags, algorithm.collective(), n)? {
                let algorithm = rooted(algorithm, root)?;
                match prove_source(&algorithm, n) {
                    Ok(proved) => {
                        add(&mut groups, Subject::new(Some(algorithm), proved, (which, root)));
                    }
                    Err(mut errors) => {
                        let all_refused = errors.iter().all(|e| e.code == Code::RankCountRefused);
                        if !all_refused || named.wanted && nranks.named {
                            let default = flags.nranks.is_none().then_some(NRANKS);
                            name_counts(&mut errors, &algorithm, default);
                            return Err(refuse(flags.format, &errors, &named.source, wrong));
                        }
                        let reason = errors.into_iter().next().map_or(String::new(), |e| e.title);
                        refused.push(RefusedSubject {
                            algo: algorithm.name().to_owned(),
                            nranks: n,
                            code: Code::RankCountRefused.as_str(),
                            reason,
                        });
                        // Every root is refused alike.
                        break;
                    }
                }
            }
        }
    }
    for (which, named) in algorithms.iter().enumerate() {
        if let AlgorithmOrProgram::Program(proved) = &named.what {
            add(&mut groups, Subject::new(None, proved.clone(), (which, None)));
        }
    }
    Ok((groups, refused))
}

/// Returns the algorithms that were asked for, in their order.
fn asked(flags: &BenchFlags, warn: bool) -> Result<Vec<Named>, Failure> {
    match &flags.collective {
        Some(collective) => of_library(flags, *collective),
        None => named(flags, warn),
    }
}

/// Answers as a rank of a command with these flags.
pub(crate) fn answer(flags: &BenchFlags) -> u8 {
    let mut algorithms = None;
    let mut find = |nranks: u32, shape: &ranks::PlanShape| -> Result<Proved, Failure> {
        let algorithms = match &mut algorithms {
            Some(algorithms) => algorithms,
            none => none.insert(asked(flags, false)?),
        };
        match &algorithms[shape.which].what {
            AlgorithmOrProgram::Algorithm(algorithm) => {
                let algorithm = rooted(algorithm, shape.root)?;
                prove_source(&algorithm, nranks).map_err(|_| Failure::Program)
            }
            AlgorithmOrProgram::Program(proved) => Ok(proved.clone()),
        }
    };
    let (options, alloc) = (flags.engine.options(), flags.callers.alloc);
    ranks::answer(options, alloc, streams::retype, &mut |nranks, shape| {
        find(nranks, shape).map_err(RunError::from)
    })
}

/// Returns the algorithm with this root, or with its own.
fn rooted(algorithm: &Configured, root: Option<u32>) -> Result<Configured, Failure> {
    let mut algorithm = algorithm.clone();
    if let Some(root) = root {
        program::set(&mut algorithm, "root", &root.to_string())?;
    }
    Ok(algorithm)
}

fn of_library(flags: &BenchFlags, collective: Collective) -> Result<Vec<Named>, Failure> {
    let given = topology::given(&flags.topology)?;
    let mut wanted: Vec<Named> = Vec::new();
    for algorithm in select::library().iter().filter(|a| a.collective() == collective) {
        let mut algorithm = algorithm.clone();
        if let Some(given) = &given {
            algorithm.place_on(given.topology.clone());
        }
        for (name, value) in &flags.settings {
            program::set(&mut algorithm, name, value)?;
        }
        let source = read(algorithm.name())?;
        let what = AlgorithmOrProgram::Algorithm(Box::new(algorithm));
        wanted.push(Named { what, source, wanted: false });
    }
    Ok(wanted)
}

fn named(flags: &BenchFlags, warn: bool) -> Result<Vec<Named>, Failure> {
    let given = topology::given(&flags.topology)?;
    let mut wanted = Vec::new();
    for name in &flags.sources {
        if msccl::is_program(name) {
            wanted.push(of_msccl(flags, name)?);
            continue;
        }
        let source = read(name)?;
        let one = SourceFlags {
            source: name.clone(),
            algorithm: flags.algorithm.clone(),
            settings: flags.settings.clone(),
            topology: TopologyFlags { topology: None, assume: None },
            lints: flags.lints.clone(),
        };
        let warn = |warnings: Vec<Diagnostic>| {
            if warn {
                print_all(&warnings, &source);
            }
        };
        match load_with(&source, &one, given.as_ref(), warn)? {
            Loaded::Ready(algorithms) => {
                wanted.extend(algorithms.into_iter().map(|algorithm| Named {
                    what: AlgorithmOrProgram::Algorithm(Box::new(algorithm)),
                    source: source.clone(),
                    wanted: true,
                }));
            }
            Loaded::Wrong(errors) => return Err(refuse(flags.format, &errors, &source, wrong)),
        }
    }
    Ok(wanted)
}

/// Reads a program for MSCCL, whose file gives the number of ranks.
fn of_msccl(flags: &BenchFlags, path: &str) -> Result<Named, Failure> {
    msccl::counts_ranks(flags.nranks.is_some())?;
    if flags.device.device != Device::Host {
        return Err(msccl::on_host());
    }
    let (source, proved) = msccl::proved(path, &flags.lints, false, flags.format)?;
    let source = Source::clone(&source);
    Ok(Named { what: AlgorithmOrProgram::Program(proved), source, wanted: true })
}

/// Returns the roots to set; none where there is no root, or the algorithm's own root is kept.
fn roots(
    flags: &BenchFlags,
    collective: Collective,
    nranks: u32,
) -> Result<Vec<Option<u32>>, Failure> {
    match flags.root.filter(|_| collective.is_rooted()) {
        None => Ok(vec![None]),
        Some(-1) => Ok((0..nranks).map(Some).collect()),
        Some(root) => match u32::try_from(root).ok().filter(|root| *root < nranks) {
            Some(root) => Ok(vec![Some(root)]),
            None => {
                let title = format!("-r {root} is not one of the {nranks} ranks");
                Err(Failure::usage(Code::BadFlag, title)
                    .with_help(format!("a root is in 0..={}, or -1 for each in turn", nranks - 1)))
            }
        },
    }
}

fn add(groups: &mut Vec<Group>, subject: Subject) {
    match groups.iter_mut().find(|group| group.subjects[0].buffers() == subject.buffers()) {
        Some(group) => group.subjects.push(subject),
        None => groups.push(Group { subjects: vec![subject] }),
    }
}

impl Subject {
    fn new(
        algorithm: Option<Configured>,
        proved: Proved,
        (which, root): (usize, Option<u32>),
    ) -> Self {
        let schedule = proved.schedule();
        let mut streams = vec![0; schedule.nranks as usize];
        for stream in &schedule.streams {
            streams[stream.rank.index()] += 1;
        }
        let streams = streams.into_iter().max().unwrap_or(0);
        let name = schedule.algorithm.clone();
        Self { name, algorithm, proved, which, root, streams }
    }

    /// Returns the proof for a vector of counts, or the reason why it serves equal counts alone.
    pub(super) fn of_blocks(&self, counts: &Counts) -> Result<Proved, RefusedSubject> {
        self.proved.for_counts(counts).map_err(|found| {
            let first = found.first();
            RefusedSubject {
                algo: self.name.clone(),
                nranks: self.proved.schedule().nranks,
                code: first.map_or(Code::EqualCounts, |found| found.code).as_str(),
                reason: first.map_or_else(String::new, |found| found.title.clone()),
            }
        })
    }

    /// Whether it can be run in place.
    pub(super) fn has_in_place(&self) -> bool {
        let schedule = self.proved.schedule();
        schedule.collective.has_in_place() && !schedule.out_of_place && self.proved.proof().in_place
    }

    /// Says that there is no memory for a size.
    pub(super) fn left_out(&self, bytes: u64, much: &TooMuch) -> RefusedSubject {
        RefusedSubject {
            algo: self.name.clone(),
            nranks: self.proved.schedule().nranks,
            code: Code::TooLarge.as_str(),
            reason: format!("{bytes} B: the run {much}"),
        }
    }

    /// Returns the properties that determine the buffers.
    fn buffers(&self) -> (Collective, u32, roundelay_core::ids::RankId) {
        let schedule = self.proved.schedule();
        (schedule.collective, schedule.nranks, schedule.root)
    }
}
