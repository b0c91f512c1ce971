//! `roundelay emit mpi` and `emit goal`: an algorithm as sends and receives.

use roundelay::library::SOURCES;
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::emit::mpi::{self, Export};
use roundelay_core::messages::TwoSided;
use roundelay_core::program::Configured;
use roundelay_core::prove_source;
use roundelay_core::schedule::Algorithm as _;
use roundelay_core::syntax::Source;

use crate::flags::SourceFlags;

/// The C file of an algorithm at one number of ranks.
pub(crate) fn mpi(
    algorithm: &Configured,
    source: &Source,
    flags: &SourceFlags,
    nranks: u32,
) -> Result<String, Vec<Diagnostic>> {
    let form = form(algorithm, nranks)?;
    let library = SOURCES.iter().map(|(name, text)| Source::from_text(*name, text));
    let files: Vec<Source> = std::iter::once(source.clone()).chain(library).collect();
    let command = command("mpi", flags, nranks);
    let export = Export {
        form: &form,
        command: &command,
        docs: &algorithm.checked().docs,
        source: files.iter().find(|file| file.name() == algorithm.file()),
    };
    mpi::mpi(&export)
        .map_err(|all| all.into_iter().map(|f| algorithm.diagnostic(f, nranks)).collect())
}

fn form(algorithm: &Configured, nranks: u32) -> Result<TwoSided, Vec<Diagnostic>> {
    let proved = prove_source(algorithm, nranks)?;
    TwoSided::new(&proved)
        .map_err(|all| all.into_iter().map(|f| algorithm.diagnostic(f, nranks)).collect())
}

/// What a user types to get the same again.
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
