//! `roundelay emit mpi` and `emit goal`: an algorithm as sends and receives.

use clap::Args;
use roundelay::library::SOURCES;
use roundelay::select::{Costs, host};
use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::ids::SpanId;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::messages::TwoSided;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
use roundelay_export::goal;
use roundelay_export::mpi::{self, Export};

use crate::flags::SourceFlags;
use crate::kernel::ElementFlag;
use crate::values::{bytes, count, count_of_size, rate};
use crate::vector::BlocksFlags;

/// Returns the C file of an algorithm at one number of ranks.
pub(crate) fn mpi(
    algorithm: &Configured,
    source: &Source,
    flags: &SourceFlags,
    nranks: u32,
    blocks: &BlocksFlags,
) -> Result<String, Vec<Diagnostic>> {
    let (proved, mut form) = form(algorithm, nranks)?;
    let uneven = blocks.of(&proved).map_err(|all| place(algorithm, nranks, all))?;
    let counts = uneven.as_ref().and_then(Proved::even).map(|(_, counts)| counts.clone());
    if let Some(counts) = &counts {
        form = form.for_counts(counts).map_err(|all| place(algorithm, nranks, all))?;
    }
    let library = SOURCES.iter().map(|(name, text)| Source::from_text(*name, text));
    let files: Vec<Source> = std::iter::once(source.clone()).chain(library).collect();
    let mut command = command("mpi", flags, nranks);
    if let Some(counts) = counts {
        let all: Vec<String> = counts.all().iter().map(u64::to_string).collect();
        command = format!("{command} --counts {}", all.join(","));
    }
    let export = Export {
        form: &form,
        author: proved.proof(),
        command: &command,
        docs: algorithm.docs(),
        source: files.iter().find(|file| file.name() == algorithm.file()),
    };
    let file = mpi::mpi(&export).map_err(|all| place(algorithm, nranks, all))?;
    Ok(file.text)
}

/// The machine and the call of a simulation.
#[derive(Args)]
pub(crate) struct GoalFlags {
    #[command(flatten)]
    element: ElementFlag,
    /// Size in bytes as nccl-tests counts it, such as 4096, 64K or 1MiB [default: 64M]
    #[arg(long, value_parser = bytes, conflicts_with = "count")]
    bytes: Option<u64>,
    /// Count of elements, as NCCL's calls take it, instead of a size, such as 1000, 64K, 1M or 1e6
    #[arg(long, value_parser = count)]
    count: Option<u64>,
    /// How fast a rank reduces, such as 400GB/s [default: as measured for the library]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    reduce: Option<f64>,
    /// How fast a rank copies within its memory, such as 400GB/s [default: as measured for the library]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    copy: Option<f64>,
}

/// The size where none is given.
const BYTES: u64 = 64 << 20;

impl GoalFlags {
    /// Returns the text for simulators.
    pub(crate) fn goal(
        &self,
        algorithm: &Configured,
        flags: &SourceFlags,
        nranks: u32,
    ) -> Result<String, Vec<Diagnostic>> {
        let (_, form) = form(algorithm, nranks)?;
        let element = self.element.dtype;
        let size = element.size() as u64;
        let bytes = self.bytes.unwrap_or(BYTES);
        let elements = || count_of_size(algorithm.collective(), nranks, bytes, size);
        let known = host();
        let costs = Costs {
            reduce: self.reduce.unwrap_or(known.reduce),
            copy: self.copy.unwrap_or(known.copy),
            ..known.clone()
        };
        let count = self.count.unwrap_or_else(elements);
        if let Some(title) = form.schedule().refuses(count) {
            return Err(place(
                algorithm,
                nranks,
                vec![Finding::new(Code::BadOption, SpanId(0), title)],
            ));
        }
        let command = command("goal", flags, nranks);
        let command = format!("{command} --count {count} --dtype {}", element.name());
        let export =
            goal::Export { form: &form, count, element: size, costs: &costs, command: &command };
        goal::goal(&export).map_err(|all| place(algorithm, nranks, all))
    }
}

/// Returns the findings in a schedule as diagnostics, at their places in the source.
pub(crate) fn place(algorithm: &Configured, nranks: u32, all: Vec<Finding>) -> Vec<Diagnostic> {
    all.into_iter().map(|finding| algorithm.diagnostic(finding, nranks)).collect()
}

/// Returns the proof of an algorithm, and its form with sends and receives; a form that is too large to write is
/// refused before the proof.
pub(crate) fn form(
    algorithm: &Configured,
    nranks: u32,
) -> Result<(Proved, TwoSided), Vec<Diagnostic>> {
    let made = || {
        let proved = Proved::new(TwoSided::author(algorithm, nranks)?)?;
        let form = TwoSided::new(&proved)?;
        Ok((proved, form))
    };
    made().map_err(|all| place(algorithm, nranks, all))
}

/// Returns the command that prints the same form again.
fn command(what: &str, flags: &SourceFlags, nranks: u32) -> String {
    let mut words =
        vec!["roundelay".to_owned(), "emit".to_owned(), what.to_owned(), flags.source.clone()];
    let named = flags.algorithm.iter().map(|name| ["--algorithm".to_owned(), name.clone()]);
    words.extend(named.flatten());
    words.extend(
        flags
            .settings
            .iter()
            .flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")]),
    );
    words.extend(
        flags.topology.topology.iter().flat_map(|text| ["--topology".to_owned(), text.clone()]),
    );
    words.extend(["--nranks".to_owned(), nranks.to_string()]);
    let quoted = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,".contains(c);
        if word.chars().all(plain) { word.clone() } else { format!("\"{word}\"") }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
