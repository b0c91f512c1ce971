//! `roundelay emit mpi` and `emit goal`: an algorithm as sends and receives.

use clap::Args;
use roundelay::library::SOURCES;
use roundelay::select::Costs;
use roundelay_core::MANY;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::messages::{FormPart, RankForm, TwoSided, Unformed};
use roundelay_core::symmetry::{self, NoProof, SymmetricProof};
use roundelay_core::syntax::Source;
use roundelay_core::verify::{Proof, Proved};
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
    (nranks, rank): (u32, Option<RankId>),
    blocks: &BlocksFlags,
) -> Result<String, Vec<Diagnostic>> {
    let mut made = match rank.filter(|_| !blocks.any()) {
        Some(rank) => of_rank(algorithm, nranks, rank)?,
        None => Made::of_all(form(algorithm, nranks)?),
    };
    let mut counts = None;
    if let Made::All(proved, form) = &mut made {
        let uneven = blocks.of(proved).map_err(|all| place(algorithm, nranks, all))?;
        counts = uneven.as_ref().and_then(Proved::even).map(|(_, counts)| counts.clone());
        if let Some(counts) = &counts {
            **form = form.for_counts(counts).map_err(|all| place(algorithm, nranks, all))?;
        }
    }
    let library = SOURCES.iter().map(|(name, text)| Source::from_text(*name, text));
    let files: Vec<Source> = std::iter::once(source.clone()).chain(library).collect();
    let mut command = command("mpi", flags, nranks, rank);
    if let Some(counts) = counts {
        let all: Vec<String> = counts.all().iter().map(u64::to_string).collect();
        command = format!("{command} --counts {}", all.join(","));
    }
    let export = Export {
        form: &made.part(rank),
        author: made.author(),
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
        (nranks, rank): (u32, Option<RankId>),
    ) -> Result<String, Vec<Diagnostic>> {
        let made = match rank {
            Some(rank) => of_rank(algorithm, nranks, rank)?,
            None => Made::of_all(form(algorithm, nranks)?),
        };
        let form = made.part(rank);
        let element = self.element.dtype;
        let size = element.size() as u64;
        let bytes = self.bytes.unwrap_or(BYTES);
        let elements = || count_of_size(algorithm.collective(), nranks, bytes, size);
        let known = Costs::host();
        let costs = Costs {
            reduce: self.reduce.unwrap_or(known.reduce),
            copy: self.copy.unwrap_or(known.copy),
            ..known.clone()
        };
        let count = self.count.unwrap_or_else(elements);
        if let Some(title) = form.schedule.refuses(count) {
            return Err(place(
                algorithm,
                nranks,
                vec![Finding::new(Code::BadOption, SpanId(0), title)],
            ));
        }
        let command = command("goal", flags, nranks, rank);
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

/// A form, with the proof of the author's schedule.
enum Made {
    /// Of all ranks.
    All(Proved, Box<TwoSided>),
    /// Of one rank, where one rank stands for all.
    One(Box<SymmetricProof>, Box<RankForm>),
}

impl Made {
    fn of_all((proved, form): (Proved, TwoSided)) -> Self {
        Self::All(proved, Box::new(form))
    }

    fn author(&self) -> &Proof {
        match self {
            Self::All(proved, _) => proved.proof(),
            Self::One(proved, _) => &proved.proof,
        }
    }

    fn part(&self, rank: Option<RankId>) -> FormPart<'_> {
        match self {
            Self::All(_, form) => form.part(rank),
            Self::One(_, form) => form.part(),
        }
    }
}

/// Returns the form of one rank: where there are many ranks and one stands for all, without those of the others.
fn of_rank(algorithm: &Configured, nranks: u32, rank: RankId) -> Result<Made, Vec<Diagnostic>> {
    let direct = || form(algorithm, nranks).map(Made::of_all);
    if nranks < MANY || algorithm.topology().is_some() {
        return direct();
    }
    let wrong = |found| Err(place(algorithm, nranks, found));
    let why = match symmetry::prove(algorithm, nranks) {
        Ok(proved) => match RankForm::new(&proved, rank) {
            Ok(form) => return Ok(Made::One(Box::new(proved), Box::new(form))),
            Err(Unformed::Unlike(why)) => why,
            Err(Unformed::Wrong(found)) => return wrong(found),
        },
        Err(NoProof::Asymmetric(left)) => left.why(),
        Err(NoProof::Wrong(found)) => return wrong(found),
    };
    direct().map_err(|errors| {
        let note = format!("no rank stands for all: {why}");
        errors.into_iter().map(|error| error.note(note.clone())).collect()
    })
}

/// Returns the command that prints the same form again.
fn command(what: &str, flags: &SourceFlags, nranks: u32, rank: Option<RankId>) -> String {
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
    words.extend(rank.iter().flat_map(|rank| ["--rank".to_owned(), rank.to_string()]));
    let quoted = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,".contains(c);
        if word.chars().all(plain) { word.clone() } else { format!("\"{word}\"") }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
