//! The algorithms that are compared: the ones that the call names, with their parameters set.

use std::path::Path;

use roundelay::Algorithm as _;
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;
use roundelay_core::syntax::Source;

use crate::flags::{SourceFlags, TopologyFlags};
use crate::program::{self, Loaded, in_library, load_on, read};
use crate::report::{Failure, refuse, wrong};
use crate::simulate::flags::SimulateFlags;
use crate::topology::Given;

/// An algorithm, and the text that its errors are shown in.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) algorithm: Configured,
    pub(super) source: Source,
}

/// Returns the sources of a call, and the parts of each: one if there is no comma in it, or if a file has that name.
pub(super) fn names(flags: &SimulateFlags) -> Vec<&str> {
    fn parts(source: &String) -> Vec<&str> {
        if Path::new(source).exists() {
            vec![source]
        } else {
            source.split(',').map(str::trim).collect()
        }
    }
    std::iter::once(&flags.source.source).chain(&flags.more).flat_map(parts).collect()
}

/// Finds all algorithms, in the order of the call.
pub(super) fn find(flags: &SimulateFlags, given: &Given) -> Result<Vec<Subject>, Failure> {
    let mut subjects: Vec<Subject> = Vec::new();
    for name in names(flags) {
        if name.is_empty() {
            let title = "a list of algorithms names nothing between two commas";
            return Err(Failure::usage(Code::BadFlag, title)
                .with_help("a list of algorithms is such as RingAllReduce,NhrAllReduce"));
        }
        let source = read(name)?;
        // An algorithm of the library is chosen by its name.
        let algorithm = flags.source.algorithm.clone().filter(|_| in_library(name).is_none());
        let one = SourceFlags {
            source: name.to_owned(),
            algorithm,
            settings: Vec::new(),
            topology: TopologyFlags { topology: None, assume: None },
            lints: flags.source.lints.clone(),
        };
        match load_on(&source, &one, Some(given))? {
            Loaded::Ready(algorithms) => {
                subjects.extend(algorithms.into_iter().map(|algorithm| Subject {
                    name: algorithm.name().to_owned(),
                    algorithm,
                    source: source.clone(),
                }));
            }
            Loaded::Wrong(errors) => return Err(refuse(flags.format, &errors, &source, wrong)),
        }
    }
    distinct(&mut subjects)?;
    one_collective(&subjects)?;
    set(&mut subjects, &flags.source.settings)?;
    Ok(subjects)
}

/// Refuses an algorithm that is named twice, and adds the file to equal names of different algorithms.
fn distinct(subjects: &mut [Subject]) -> Result<(), Failure> {
    let known: Vec<_> =
        subjects.iter().map(|s| (s.name.clone(), s.source.name().to_owned())).collect();
    for (at, subject) in subjects.iter_mut().enumerate() {
        let (name, file) = &known[at];
        if known[..at].contains(&known[at]) {
            let title = format!("`{name}` of {file} is named twice");
            return Err(Failure::usage(Code::BadFlag, title).with_help("name it once"));
        }
        if known.iter().filter(|(other, _)| other == name).count() > 1 {
            subject.name = format!("{name} ({file})");
        }
    }
    Ok(())
}

/// Refuses different collectives: their times cannot be compared.
fn one_collective(subjects: &[Subject]) -> Result<(), Failure> {
    let first = &subjects[0];
    let collective = first.algorithm.collective();
    let Some(other) = subjects.iter().find(|s| s.algorithm.collective() != collective) else {
        return Ok(());
    };
    let title = format!(
        "{} is for {collective}, and {} for {}",
        first.name,
        other.name,
        other.algorithm.collective()
    );
    Err(Failure::usage(Code::BadFlag, title)
        .with_help("name algorithms for one collective; `roundelay list` says which those are"))
}

/// Gives each parameter to every algorithm that has it, and adds the parameter to its name. A parameter that no
/// algorithm has is refused.
fn set(subjects: &mut [Subject], settings: &[(String, String)]) -> Result<(), Failure> {
    for (name, text) in settings {
        let has = |subject: &&mut Subject| {
            let program = subject.algorithm.program();
            program.params.iter().any(|p| program.var(p.var).name == *name)
        };
        let mut given = false;
        for subject in subjects.iter_mut().filter(has) {
            given = true;
            program::set(&mut subject.algorithm, name, text)?;
            subject.name = format!("{} {name}={text}", subject.name);
        }
        if !given {
            program::set(&mut subjects[0].algorithm, name, text)?;
        }
    }
    Ok(())
}
