//! Selection files: which algorithm of the library runs for which collective, rank count and sizes. `roundelay select`
//! writes and checks them, and every communicator reads the file that `ROUNDELAY_SELECTION` names:
//! [`Comm`](crate::Comm), [`World`](crate::World), torch, programs of MPI and of C.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use roundelay_core::diagnostics::near::nearest;
use roundelay_core::foreign;
use roundelay_core::layout::Configured;
use roundelay_core::syntax::read_limit;

use crate::select::library;
use crate::{Algorithm as _, Collective, Error};

/// The environment variable with the path of the file.
pub const VARIABLE: &str = "ROUNDELAY_SELECTION";

/// The form of a line.
const FORM: &str = "a line is such as `AllReduce nranks 8 bytes 0..=65536: MeshAllReduce`";

/// The choices of a selection file, in its order.
///
/// ```
/// use roundelay::selection::Selection;
///
/// let file = "# small ones\nAllReduce nranks 8 bytes 0..=65536: OneShotMeshAllReduce\n";
/// let selection = Selection::parse(file).expect("a selection");
/// assert_eq!(selection.entries[0].bytes, 0..=65536);
/// let wrong = Selection::parse("AllReduce nranks 8 bytes 0..: RingAllReduc").unwrap_err();
/// assert_eq!((wrong[0].line, wrong.len()), (1, 1));
/// ```
#[derive(Clone, Debug)]
pub struct Selection {
    /// The choices; where two are for one call, the first is taken.
    pub entries: Vec<Entry>,
}

/// One line of a selection file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The number of the line, from 1.
    pub line: usize,
    /// The collective of the calls.
    pub collective: Collective,
    /// The number of ranks of the calls.
    pub nranks: u32,
    /// The sizes of the calls in bytes, as nccl-tests counts them.
    pub bytes: RangeInclusive<u64>,
    /// The algorithm of the library that runs, its parameters at their defaults.
    pub algorithm: Configured,
}

/// A line of a selection file that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The number of the line, from 1.
    pub line: usize,
    /// The error of the line, in one sentence.
    pub what: String,
}

impl Selection {
    /// Reads the text of a selection file: a choice on each line, such as `AllReduce nranks 8 bytes 0..=65536:
    /// MeshAllReduce`, and comments from `#` to the end of a line. Ranges are `0..=65536`, `0..65537` or `65537..`.
    ///
    /// # Errors
    /// Every line that makes no sense.
    pub fn parse(text: &str) -> Result<Self, Vec<Wrong>> {
        if let Some(found) = foreign::recognize(text) {
            let line = text.lines().position(|line| !line.trim_start().starts_with('#'));
            let what = format!("the file is {}, and no selection; {FORM}", found.what);
            return Err(vec![Wrong { line: line.unwrap_or(0) + 1, what }]);
        }
        let (mut entries, mut wrong) = (Vec::new(), Vec::new());
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.split_once('#').map_or(content, |(content, _)| content).trim();
            if content.is_empty() {
                continue;
            }
            match entry(line, content) {
                Ok(entry) => entries.push(entry),
                Err(what) => wrong.push(Wrong { line, what }),
            }
        }
        if wrong.is_empty() { Ok(Self { entries }) } else { Err(wrong) }
    }

    /// Returns the selection that [`VARIABLE`] names, read once by a process; `None` where the variable is not set, or
    /// empty.
    ///
    /// # Errors
    /// E0406 for a file that cannot be read or that makes no sense.
    pub fn of_process() -> Result<Option<&'static Self>, Error> {
        static READ: OnceLock<Result<Option<Selection>, String>> = OnceLock::new();
        let read = READ.get_or_init(|| {
            let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else {
                return Ok(None);
            };
            let name = path.to_string_lossy().into_owned();
            let bytes = read_limit::source(|| std::fs::File::open(&path));
            let bytes = bytes.map_err(|why| format!("`{name}` cannot be read: {why}"))?;
            let text = String::from_utf8(bytes).map_err(|why| format!("`{name}`: {why}"))?;
            let selection = Self::parse(&text);
            let first = |wrong: Vec<Wrong>| format!("{name}:{}: {}", wrong[0].line, wrong[0].what);
            selection.map(Some).map_err(first)
        });
        let of = |why: &String| Error::Environment(format!("the selection of {VARIABLE}: {why}"));
        read.as_ref().map(Option::as_ref).map_err(of)
    }

    /// Returns the first choice for a call of that collective by `nranks` ranks with `bytes` bytes.
    pub fn find(&self, collective: Collective, nranks: u32, bytes: u64) -> Option<&Entry> {
        self.entries.iter().find(|entry| {
            (entry.collective, entry.nranks) == (collective, nranks) && entry.bytes.contains(&bytes)
        })
    }
}

/// Reads the choice of a line, or says why the line holds none.
fn entry(line: usize, content: &str) -> Result<Entry, String> {
    let (calls, name) = content.split_once(':').ok_or(FORM)?;
    let words: Vec<&str> = calls.split_whitespace().collect();
    let [collective, "nranks", nranks, "bytes", bytes] = words[..] else {
        return Err(FORM.to_owned());
    };
    let all = || Collective::ALL.into_iter();
    let collective = all().find(|known| known.name() == collective).ok_or_else(|| {
        let names: Vec<_> = all().map(Collective::name).collect();
        format!("`{collective}` is no collective; there are {}", names.join(", "))
    })?;
    let nranks = nranks.parse().ok().filter(|n| *n > 0);
    let nranks = nranks.ok_or_else(|| format!("`{}` is no rank count", words[2]))?;
    let bytes =
        range(bytes).ok_or_else(|| format!("`{bytes}` is no range of sizes such as 0..=65536"))?;
    let name = name.trim();
    let Some(algorithm) = library().iter().find(|known| known.name() == name) else {
        let meant = nearest(name, library().iter().map(crate::Algorithm::name));
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        return Err(format!("the library has no algorithm `{name}`{meant}"));
    };
    if algorithm.collective() != collective {
        return Err(format!("{name} is for {}, not {collective}", algorithm.collective()));
    }
    Ok(Entry { line, collective, nranks, bytes, algorithm: algorithm.clone() })
}

/// Reads a range: `0..=65536`, `0..65537` or `65537..`, and not empty.
fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let (from, to) = text.split_once("..")?;
    let from = from.parse().ok()?;
    let to = match to.strip_prefix('=') {
        Some(to) => to.parse().ok()?,
        None if to.is_empty() => u64::MAX,
        None => to.parse::<u64>().ok()?.checked_sub(1)?,
    };
    (from <= to).then_some(from..=to)
}
