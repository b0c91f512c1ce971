//! `executor list`: names, collectives, topologies, size classes.

use roundelay_core::executor::Executor;
use roundelay_core::layout::Algorithm as _;
use serde::Serialize;

use super::executor_flags::ListFlags;
use super::{compiled, read, size};
use crate::report::{Failure, Format, refuse, wrong};
use crate::streams::{print, print_json};

#[derive(Serialize)]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) collective: &'static str,
    pub(super) topology: String,
    pub(super) nranks: u32,
    pub(super) ccl_buffer: u64,
    pub(super) classes: Vec<ListedClass>,
}

/// A size class.
#[derive(Serialize)]
pub(super) struct ListedClass {
    /// Bytes; `null` for the last class.
    pub(super) below: Option<u64>,
    pub(super) algorithm: String,
}

impl Listed {
    pub(super) fn new(executor: &Executor) -> Self {
        Self {
            name: executor.name.clone(),
            collective: executor.collective.name(),
            topology: executor.topology.name().to_owned(),
            nranks: executor.nranks(),
            ccl_buffer: executor.ccl_buffer,
            classes: executor
                .classes
                .iter()
                .map(|class| ListedClass {
                    below: class.below,
                    algorithm: class.algorithm.name().to_owned(),
                })
                .collect(),
        }
    }
}

impl ListedClass {
    /// Returns the condition of the class: `bytes < 64 KiB`, or `otherwise`.
    pub(super) fn when(&self) -> String {
        self.below.map_or_else(|| "otherwise".to_owned(), |b| format!("bytes < {}", size(b)))
    }
}

pub(super) fn main(flags: &ListFlags) -> Result<bool, Failure> {
    let sources = match &flags.source {
        Some(name) => vec![read(name)?],
        None => roundelay::executor::names()
            .iter()
            .map(|name| read(name))
            .collect::<Result<Vec<_>, _>>()?,
    };
    let mut listed = Vec::new();
    let mut seen = Vec::new();
    for source in &sources {
        if seen.contains(&source.name()) {
            continue;
        }
        seen.push(source.name());
        let executors =
            compiled(source).map_err(|errors| refuse(flags.format, &errors, source, wrong))?;
        listed.extend(executors.iter().map(Listed::new));
    }
    if flags.format == Format::Json {
        print_json(&listed);
        return Ok(true);
    }
    for Listed { name, collective, topology, classes, .. } in &listed {
        print(&format!("\x1b[1m{name}\x1b[0m for {collective}, on {topology}"));
        for class in classes {
            print(&format!("  {:<18} {}", class.when(), class.algorithm));
        }
    }
    if listed.is_empty() {
        print("no executors");
    }
    Ok(true)
}
