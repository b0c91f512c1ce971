//! The parts that the command, the C library and the library for MPI share: from a name to a source, from a source to
//! algorithms with their parameters set, and ranges of sizes.

mod own_algorithms;

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use roundelay_core::check::dependencies::{Dependencies, SourceFiles};
use roundelay_core::check::{CheckedSource, Frontend};
use roundelay_core::compile_with;
use roundelay_core::diagnostics::near::nearest;
use roundelay_core::diagnostics::{Code, Diagnostic, Severity};
use roundelay_core::executor::Executor;
use roundelay_core::layout::Configured;
use roundelay_core::lints::Levels;
use roundelay_core::program::CompiledSource;
use roundelay_core::render::render;
use roundelay_core::syntax::used_files::UsedFiles;
use roundelay_core::syntax::{Source, read_limit};

use crate::{Problem, Topology, library};

pub use own_algorithms::{ALGORITHM, OwnAlgorithm};

/// Values of parameters, by their names.
pub type Settings = Vec<(String, String)>;

/// Why there are no algorithms.
pub enum Refusal {
    /// The name, the algorithm that was asked for or a setting makes no sense.
    Call(Box<Problem>),
    /// The source is wrong.
    Source(Vec<Diagnostic>),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Call(Box::new(problem))
    }
}

impl Refusal {
    /// Returns the code of the first error, and all errors as `roundelay check` prints them where there are no colors,
    /// each at its place in `source`.
    fn told(&self, source: &Source) -> (Code, String) {
        match self {
            Self::Call(problem) => (problem.code, problem_text(problem, false)),
            Self::Source(diagnostics) => {
                let code = diagnostics.first().map_or(Code::BadCall, |first| first.code);
                let all = diagnostics.iter().map(|d| render(d, source, false));
                (code, all.collect::<Vec<_>>().join("\n\n"))
            }
        }
    }
}

/// Formats a problem as an error with its notes and its help, a line each.
pub fn problem_text(problem: &Problem, colors: bool) -> String {
    let Problem { code, title, notes, help } = problem;
    let [error, bold, plain] =
        if colors { ["\x1b[1;91m", "\x1b[0m\x1b[1m", "\x1b[0m"] } else { [""; 3] };
    let notes = notes.iter().map(|note| format!("\n  = note: {note}"));
    let help = help.iter().map(|help| format!("\n  = help: {help}"));
    let more: String = notes.chain(help).collect();
    format!("{error}error[{code}]{bold}: {title}{plain}{more}")
}

/// The algorithms that are wanted of a source.
#[derive(Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The name under which the source was found, which may be the name of one of its algorithms.
    pub found_by: &'a str,
    /// The name of the one algorithm that is wanted, if it is given.
    pub algorithm: Option<&'a str>,
    /// Values of parameters, by their names.
    pub settings: &'a [(String, String)],
    /// The topology that ranks run on, if there is one.
    pub topology: Option<&'a Arc<Topology>>,
}

/// Returns the source of a name: the library's file that holds an algorithm of that name, or the bytes that `read`
/// returns for the path of a file, or the reason why the file cannot be read.
///
/// # Errors
/// E0502 for a name that is no file and no algorithm, E0001 for a file that cannot be read.
pub fn find(
    name: &str,
    read: impl FnOnce(&str) -> Result<Vec<u8>, String>,
) -> Result<Source, Problem> {
    if let Some((file, text)) = in_library(name) {
        return Ok(Source::from_text(file, text));
    }
    if Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("xml")) {
        let title = format!("`{name}` is no source of this language");
        return Err(Problem::new(Code::UnreadableSource, title)
            .help("of a program for MSCCL `check` says whether it is right; `run` and `simulate` take it, too"));
    }
    if !name.contains(['.', '/']) && !Path::new(name).exists() {
        let title = format!("`{name}` is neither a file nor an algorithm of the library");
        let help = "`roundelay list` names the library's algorithms";
        let help = or_nearest(name, library_names(), help);
        return Err(Problem::new(Code::UnknownSource, title).help(help));
    }
    let bytes = read(name).map_err(|why| {
        Problem::new(Code::UnreadableSource, format!("`{name}` cannot be read: {why}"))
    })?;
    Ok(Source::from_bytes(name, &bytes))
}

/// Splits a setting such as `ring=1,2,3,0` into its name and its value; returns `None` for another text.
pub fn setting(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim();
    (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// Splits words such as `MyTree arity=2` into the name of an algorithm and settings; the first word is a name if it has
/// no `=`.
///
/// # Errors
/// The word that is no `NAME=VALUE`.
pub fn words_of(text: &str) -> Result<(Option<String>, Settings), String> {
    let mut words = text.split_whitespace().peekable();
    let name = words.next_if(|word| !word.contains('=')).map(str::to_owned);
    let wrong = |word| format!("`{word}` is no NAME=VALUE, which sets a parameter");
    let settings = words.map(|word| setting(word).ok_or_else(|| wrong(word)));
    Ok((name, settings.collect::<Result<_, _>>()?))
}

/// Returns the algorithms of the text `source`, or of the source of that name where the text is no page of the
/// language.
///
/// # Errors
/// The first code, and all errors in words.
pub fn algorithms(
    source: &str,
    algorithm: Option<&str>,
    settings: &[(String, String)],
) -> Result<Vec<Configured>, (Code, String)> {
    // A text in the language has a body; no sensible path, and no name, has a brace.
    let found = if source.contains('{') {
        Ok(Source::from_text("<stdin>", source))
    } else {
        find(source, |path| read_limit::file(Path::new(path)))
    };
    let page = found.map_err(|problem| (problem.code, problem_text(&problem, false)))?;
    let wanted = Wanted { found_by: source, algorithm, settings, topology: None };
    let program = compile(&page).and_then(|program| judge(program, &Levels::default()));
    let program = program.map_err(Refusal::Source);
    let algorithms = program.and_then(|(program, _)| configure(program, &page, &wanted));
    algorithms.map_err(|refusal| refusal.told(&page))
}

/// Returns the algorithms of the library.
fn library_names() -> impl Iterator<Item = &'static str> {
    let heads = library::SOURCES.iter().flat_map(|(_, text)| text.split("algorithm ").skip(1));
    heads.filter_map(|head| head.split_once('(').map(|(name, _)| name))
}

/// Returns the name in `known` that was probably meant by `name`; `otherwise` where no name is near.
pub fn or_nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.into(),
    }
}

/// Returns the library's file that holds `name`.
pub fn in_library(name: &str) -> Option<(&'static str, &'static str)> {
    let head = format!("algorithm {name}(");
    library::SOURCES.iter().copied().find(|(_, text)| text.contains(&head))
}

/// Checks a source, with the library's algorithms and the algorithms of the files that it uses.
///
/// # Errors
/// All errors in the source.
pub fn compile(source: &Source) -> Result<CompiledSource, Vec<Diagnostic>> {
    let files = FilesOnDisk::for_source(source.name());
    compile_with(source, Frontend::File, &Dependencies { prelude: library::SOURCES, load: &files })
}

/// The files on the disk that a source may use.
#[derive(Debug)]
pub struct FilesOnDisk(UsedFiles);

impl FilesOnDisk {
    /// Returns the files that the source at a path may use.
    pub fn for_source(path: &str) -> Self {
        Self(UsedFiles::for_source(Path::new(path)))
    }

    /// Tests a path by its text alone.
    ///
    /// # Errors
    /// The reason why the file may not be read.
    pub fn permits(&self, path: &str) -> Result<(), String> {
        self.0.permits(Path::new(path))
    }
}

impl SourceFiles for FilesOnDisk {
    fn identity(&self, path: &str) -> Result<String, String> {
        self.0.identity(Path::new(path))
    }

    fn read(&self, path: &str) -> Result<Source, String> {
        Ok(Source::from_bytes(path, &self.0.read(Path::new(path))?))
    }
}

/// Reads a file as a source.
///
/// # Errors
/// The reason why it cannot be read.
pub fn file(path: &str) -> Result<Source, String> {
    Ok(Source::from_bytes(path, &read_limit::file(Path::new(path))?))
}

/// Returns the declarations of a source, as far as they could be checked, with all its errors, for an editor.
/// `files` are those that the source may use.
pub fn examine(source: &Source, files: &dyn SourceFiles) -> (CheckedSource, Vec<Diagnostic>) {
    let dependencies = Dependencies { prelude: library::SOURCES, load: files };
    roundelay_core::examine(source, Frontend::File, &dependencies)
}

/// Returns a checked source and its warnings at these levels.
///
/// # Errors
/// All warnings, where one is denied.
pub fn judge(
    mut program: CompiledSource,
    levels: &Levels,
) -> Result<(CompiledSource, Vec<Diagnostic>), Vec<Diagnostic>> {
    let warnings = levels.apply(std::mem::take(&mut program.warnings));
    let denied = warnings.iter().any(|warning| warning.severity == Severity::Error);
    if denied { Err(warnings) } else { Ok((program, warnings)) }
}

/// Returns the algorithms of a checked source that are wanted, with their parameters set.
///
/// # Errors
/// The errors of executors in the source; E0505 where an algorithm is not there, E0211 for a setting that makes no
/// sense.
pub fn configure(
    program: CompiledSource,
    source: &Source,
    wanted: &Wanted<'_>,
) -> Result<Vec<Configured>, Refusal> {
    Executor::compile_all(&program.executors, source).map_err(Refusal::Source)?;
    if program.algorithms.is_empty() {
        let title =
            format!("{} holds executors alone, and this command takes algorithms", source.name());
        return Err(Problem::new(Code::UnknownAlgorithm, title)
            .help("`roundelay executor` lists, checks, runs and scores them")
            .into());
    }
    let names: Vec<_> = program.algorithms.iter().map(|a| a.name.clone()).collect();
    let found_by = || names.iter().find(|name| *name == wanted.found_by).map(String::as_str);
    let one = wanted.algorithm.or_else(found_by);
    let mut algorithms: Vec<_> = program
        .algorithms
        .into_iter()
        .filter(|a| one.is_none_or(|name| *name == a.name))
        .map(|a| Configured::new(a, source))
        .collect();
    if algorithms.is_empty() {
        return Err(unknown(source, one.unwrap_or_default(), &names).into());
    }
    for algorithm in &mut algorithms {
        if let Some(topology) = wanted.topology {
            algorithm.place_on(topology.clone());
        }
        for (name, value) in wanted.settings {
            set(algorithm, name, value)?;
        }
    }
    Ok(algorithms)
}

/// Gives a parameter the value that `text` stands for.
pub fn set(algorithm: &mut Configured, name: &str, text: &str) -> Result<(), Problem> {
    let why = match algorithm.set_text(name, text) {
        Ok(()) => return Ok(()),
        Err(why) => why,
    };
    let program = algorithm.program();
    let mut known = program.params.iter().map(|p| &*program.var(p.var).name);
    let near =
        if known.clone().any(|known| known == name) { None } else { nearest(name, known.by_ref()) };
    let failure = Problem::new(Code::BadParameter, why);
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
        Some(help) => failure.help(help),
        None => failure,
    })
}

/// Returns the flags for `3,left=2` in `--set right=3,left=2`, which sets several parameters at once.
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

/// Returns the form in `takes` that begins with `word` and goes on with brackets, such as `channels(topology)`.
fn whole_form(takes: &str, word: &str) -> Option<String> {
    let mut forms = takes.split('`').skip(1).step_by(2);
    let form = forms.find(|form| form.strip_prefix(word).is_some_and(|r| r.starts_with('(')))?;
    Some(form.replace("TOPOLOGY", "topology"))
}

/// Returns the problem of a source that lacks an algorithm that was asked for.
pub fn unknown(source: &Source, wanted: &str, names: &[impl AsRef<str>]) -> Problem {
    let title = format!("{} holds no algorithm `{wanted}`", source.name());
    let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
    let all = format!("it holds {}", names.join(", "));
    Problem::new(Code::UnknownAlgorithm, title).help(or_nearest(wanted, names, all))
}

/// Reads a number that may have decimals, and multiplies it by the value of the unit behind it, which `unit` returns;
/// `None` if the product is not whole.
pub fn amount(text: &str, unit: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, letters) = text.split_at(end);
    let unit = unit(letters.trim())?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let (whole, part): (u64, u64) = (whole.parse().ok()?, decimals.parse().ok()?);
    let scale = 10_u64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let part = part.checked_mul(unit)?;
    let part = part.is_multiple_of(scale).then(|| part / scale)?;
    whole.checked_mul(unit)?.checked_add(part)
}

/// Reads a size in bytes as nccl-tests reads it: K, M and G are powers of 1024.
pub fn bytes(text: &str) -> Option<u64> {
    amount(text, |letters| match letters {
        "" | "B" => Some(1),
        "K" | "k" | "KiB" => Some(1 << 10),
        "M" | "m" | "MiB" => Some(1 << 20),
        "G" | "g" | "GiB" => Some(1 << 30),
        "kB" | "KB" => Some(1_000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        _ => None,
    })
}

/// Returns the sizes in bytes of a range such as `64K..1M`, `..=4096` or `1M..`; as in Rust, `..=` takes in its end.
/// `None` for a text that is no range, or for an empty range.
///
/// ```
/// use roundelay::tools::byte_range;
///
/// assert_eq!(byte_range("64K..1M"), Some(65_536..=1_048_575));
/// assert_eq!(byte_range("1M.."), Some(1_048_576..=u64::MAX));
/// assert_eq!(byte_range("2..2"), None);
/// ```
pub fn byte_range(text: &str) -> Option<RangeInclusive<u64>> {
    let (first, end) = text.split_once("..")?;
    let first = if first.is_empty() { 0 } else { bytes(first)? };
    let last = match end.strip_prefix('=') {
        Some(last) => bytes(last)?,
        None if end.is_empty() => u64::MAX,
        None => bytes(end)?.checked_sub(1)?,
    };
    (first <= last).then_some(first..=last)
}
