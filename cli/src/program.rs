//! From a SOURCE on the command line to checked algorithms with their parameters set.

use std::path::Path;

use roundelay::library;
use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::check::hir::CheckedSource;
use roundelay_core::compile_with;
use roundelay_core::diagnostics::near::nearest;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::executor::Executor;
use roundelay_core::layout::Configured;
use roundelay_core::syntax::{Source, bounded};

use crate::flags::SourceFlags;
use crate::report::{Failure, print_all};
use crate::streams;
use crate::topology::{self, Given};

/// Reads a file, standard input, or the library's file that holds the algorithm of that name.
pub(crate) fn read(source: &str) -> Result<Source, Failure> {
    let unreadable = |title| Err(Failure::usage(Code::UnreadableSource, title));
    if source == "-" {
        return match streams::input() {
            Ok(bytes) => Ok(Source::from_bytes("<stdin>", &bytes)),
            Err(why) => unreadable(format!("standard input cannot be read: {why}")),
        };
    }
    if let Some((file, text)) = in_library(source) {
        return Ok(Source::from_text(file, text));
    }
    if Path::new(source).extension().is_some_and(|e| e.eq_ignore_ascii_case("xml")) {
        let title = format!("`{source}` is no source of this language");
        return Err(Failure::usage(Code::UnreadableSource, title)
            .with_help("of a program for MSCCL `check` says whether it is right; `run` and `simulate` take it, too"));
    }
    if !source.contains(['.', '/']) && !Path::new(source).exists() {
        let title = format!("`{source}` is neither a file nor an algorithm of the library");
        let help = "`roundelay list` names the library's algorithms";
        return Err(Failure::usage(Code::UnknownSource, title).with_help(or_nearest(
            source,
            library_names(),
            help,
        )));
    }
    match streams::source(source) {
        Ok(bytes) => Ok(Source::from_bytes(source, &bytes)),
        Err(why) => unreadable(format!("`{source}` cannot be read: {why}")),
    }
}

/// The algorithms of the library.
fn library_names() -> impl Iterator<Item = &'static str> {
    let heads = library::SOURCES.iter().flat_map(|(_, text)| text.split("algorithm ").skip(1));
    heads.filter_map(|head| head.split_once('(').map(|(name, _)| name))
}

/// Which of `known` was probably meant by `name`; `otherwise` where none is near.
pub(crate) fn or_nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.into(),
    }
}

/// The library's file that holds `name`.
pub(crate) fn in_library(name: &str) -> Option<(&'static str, &'static str)> {
    let head = format!("algorithm {name}(");
    library::SOURCES.iter().copied().find(|(_, text)| text.contains(&head))
}

/// A source, with the library's algorithms and those of the files that it uses.
pub(crate) fn compile(source: &Source) -> Result<CheckedSource, Vec<Diagnostic>> {
    let load = |path: &str| Ok(Source::from_bytes(path, &bounded::file(Path::new(path))?));
    compile_with(source, Frontend::File, &Dependencies { prelude: library::SOURCES, load: &load })
}

/// The algorithms that the flags ask for.
pub(crate) enum Loaded {
    /// Ready to be laid out.
    Ready(Vec<Configured>),
    /// The source has errors.
    Wrong(Vec<Diagnostic>),
}

/// Checks `source` and sets the parameters.
pub(crate) fn load(source: &Source, flags: &SourceFlags) -> Result<Loaded, Failure> {
    load_on(source, flags, topology::given(&flags.topology)?.as_ref())
}

/// Checks `source` and sets the parameters, on a topology that was read already.
pub(crate) fn load_on(
    source: &Source,
    flags: &SourceFlags,
    given: Option<&Given>,
) -> Result<Loaded, Failure> {
    load_with(source, flags, given, |warnings| print_all(&warnings, source))
}

/// Checks `source` and sets the parameters, on a topology that was read already; `warn` gets the warnings.
pub(crate) fn load_with(
    source: &Source,
    flags: &SourceFlags,
    given: Option<&Given>,
    warn: impl FnOnce(Vec<Diagnostic>),
) -> Result<Loaded, Failure> {
    let program = match flags.lints.apply(compile(source))? {
        Ok((program, warnings)) => {
            warn(warnings);
            program
        }
        Err(errors) => return Ok(Loaded::Wrong(errors)),
    };
    let executors = program.executors.iter().map(|checked| Executor::compile(checked, source));
    let wrong: Vec<_> = executors.filter_map(Result::err).flatten().collect();
    if !wrong.is_empty() {
        return Ok(Loaded::Wrong(wrong));
    }
    if program.algorithms.is_empty() {
        let title =
            format!("{} holds executors alone, and this command takes algorithms", source.name());
        return Err(Failure::usage(Code::UnknownAlgorithm, title)
            .with_help("`roundelay executor` lists, checks, runs and scores them"));
    }
    let names: Vec<_> = program.algorithms.iter().map(|a| a.name.clone()).collect();
    let wanted =
        flags.algorithm.clone().or_else(|| names.iter().find(|n| **n == flags.source).cloned());
    let mut algorithms: Vec<_> = program
        .algorithms
        .into_iter()
        .filter(|a| wanted.as_ref().is_none_or(|name| *name == a.name))
        .map(|a| Configured::new(a, source))
        .collect();
    if algorithms.is_empty() {
        let wanted = wanted.unwrap_or_default();
        return Err(unknown(source, &wanted, &names));
    }
    for algorithm in &mut algorithms {
        if let Some(given) = given {
            algorithm.place_on(given.topology.clone());
        }
        for (name, value) in &flags.settings {
            set(algorithm, name, value)?;
        }
    }
    Ok(Loaded::Ready(algorithms))
}

/// Gives a parameter the value that `text` stands for.
pub(crate) fn set(algorithm: &mut Configured, name: &str, text: &str) -> Result<(), Failure> {
    let why = match algorithm.set_text(name, text) {
        Ok(()) => return Ok(()),
        Err(why) => why,
    };
    let program = algorithm.program();
    let mut known = program.params.iter().map(|p| &*program.var(p.var).name);
    let near =
        if known.clone().any(|known| known == name) { None } else { nearest(name, known.by_ref()) };
    let failure = Failure::usage(Code::BadParameter, why);
    let ty = program.params.iter().find(|p| program.var(p.var).name == name);
    let help = match (near, several(name, text), ty) {
        (Some(near), ..) => Some(format!("did you mean `--set {near}={text}`?")),
        (_, Some(flags), _) => Some(format!("give `--set` once for each parameter: `{flags}`")),
        (.., Some(param)) => whole_form(param.ty.takes(), text.trim()).map(|form| {
            let topology = if form.contains("(topology") {
                ", where `topology` is what --topology gives"
            } else {
                ""
            };
            format!("write `--set \"{name}={form}\"`{topology}")
        }),
        _ => None,
    };
    Err(match help {
        Some(help) => failure.with_help(help),
        None => failure,
    })
}

/// The flags for `3,left=2` in `--set right=3,left=2`, which sets several parameters at once.
fn several(name: &str, text: &str) -> Option<String> {
    let mut settings: Vec<String> = Vec::new();
    for part in text.split(',') {
        let set = part.split_once('=').filter(|(name, _)| {
            let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !name.trim().is_empty() && name.trim().chars().all(letter)
        });
        match (set, settings.last_mut()) {
            (_, None) => settings.push(format!("--set {name}={part}")),
            (Some((name, value)), _) => {
                settings.push(format!("--set {}={}", name.trim(), value.trim()));
            }
            (None, Some(last)) => {
                last.push(',');
                last.push_str(part);
            }
        }
    }
    (settings.len() > 1).then(|| settings.join(" "))
}

/// The form in `takes` that begins with `word` and goes on with what stands in brackets, such as `channels(topology)`.
fn whole_form(takes: &str, word: &str) -> Option<String> {
    let mut forms = takes.split('`').skip(1).step_by(2);
    let form = forms.find(|form| form.strip_prefix(word).is_some_and(|r| r.starts_with('(')))?;
    Some(form.replace("TOPOLOGY", "topology"))
}

/// The source lacks an algorithm that was asked for.
pub(crate) fn unknown(source: &Source, wanted: &str, names: &[impl AsRef<str>]) -> Failure {
    let title = format!("{} holds no algorithm `{wanted}`", source.name());
    let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
    let all = format!("it holds {}", names.join(", "));
    Failure::usage(Code::UnknownAlgorithm, title).with_help(or_nearest(wanted, names, all))
}

/// The one algorithm that a command needs.
pub(crate) fn one(mut algorithms: Vec<Configured>, source: &Source) -> Result<Configured, Failure> {
    use roundelay::Algorithm as _;
    if algorithms.len() > 1 {
        let names: Vec<_> = algorithms.iter().map(|a| a.name().to_owned()).collect();
        return Err(Failure::usage(
            Code::UnknownAlgorithm,
            format!(
                "{} holds {} algorithms, and this command takes one",
                source.name(),
                names.len()
            ),
        )
        .with_help(format!("choose one by --algorithm: {}", names.join(", "))));
    }
    Ok(algorithms.remove(0))
}
