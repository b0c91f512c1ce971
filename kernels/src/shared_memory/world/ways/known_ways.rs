//! The knowledge of ways with which a world begins: the file of the host, with the decisions of earlier worlds.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::{env, fs};

use super::choices;
use super::trials::Decided;
use super::{Set, Way, WayId};
use crate::options::Choosing;
use crate::shared_memory::meet::system::host;
use crate::{Error, cache_folder};

/// The variable that says how worlds choose ways.
const VARIABLE: &str = "ROUNDELAY_WAYS";
/// The name of the file in the folder of caches.
const NAME: &str = "ways";
/// The first line of the file; another layout has another first line.
const MAGIC: &str = concat!("roundelay ways 3, version ", env!("CARGO_PKG_VERSION"));

/// The beginning of a world: how it chooses ways, and whether it adds its decisions to the host's file when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Knowledge {
    pub(crate) choosing: Choosing,
    pub(crate) kept: bool,
}

impl Knowledge {
    /// Returns what the options and the variable ask for.
    ///
    /// # Errors
    /// E0406 where the variable has another value.
    pub(crate) fn of_process(choosing: Choosing) -> Result<Self, Error> {
        let value = env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let usual = match value.as_ref().map_or(Some("measured"), |value| value.to_str()) {
            Some("usual") => true,
            Some("measured" | "kept") => false,
            _ => {
                let value = value.unwrap_or_default();
                let what = format!(
                    "{VARIABLE} has the value `{}`",
                    value.to_string_lossy().escape_debug()
                );
                let fix = "the values are usual, measured and kept";
                return Err(Error::BadOption { what, fix });
            }
        };
        let kept = value.is_some_and(|value| value == "kept") && choosing == Choosing::Measured;
        let usual = usual && choosing == Choosing::Measured;
        Ok(Self { choosing: if usual { Choosing::Usual } else { choosing }, kept })
    }

    /// Returns the first words of the table of ways.
    pub(crate) fn image(self) -> Vec<u8> {
        match self.choosing {
            Choosing::Usual => choices::image(&[], Some(Set(0))),
            Choosing::Anew => choices::image(&[], None),
            Choosing::Measured => {
                let known = path().map(|path| read(&path, &machine())).unwrap_or_default();
                choices::image(&known, None)
            }
        }
    }
}

/// Returns the path of the host's file; `None` where nothing is to be kept.
pub(crate) fn path() -> Option<PathBuf> {
    Some(cache_folder::of_process()?.join(NAME))
}

/// Returns a line about the machine: the decisions of another machine are not used.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("", |(_, name)| name);
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    let [node, release] = host();
    format!("{node}, {cores} cores, {model}, Linux {release}")
}

/// Returns the decisions of the file: none where the file is missing, is of another machine or version, or can be
/// written by another user.
fn read(path: &Path, machine: &str) -> Vec<(u64, Set)> {
    let text = text(path);
    lines(&text, machine)
        .filter_map(|line| Some((key(line)?, Set::one(Way::of(way(line)?)))))
        .collect()
}

fn text(path: &Path) -> String {
    let bytes = cache_folder::read(path).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Returns the lines with decisions of a file of this machine.
fn lines<'t>(text: &'t str, machine: &str) -> impl Iterator<Item = &'t str> {
    let mut lines = text.lines();
    let ours = lines.next() == Some(MAGIC) && lines.next() == Some(machine);
    lines.filter(move |_| ours)
}

fn key(line: &str) -> Option<u64> {
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

fn way(line: &str) -> Option<WayId> {
    line.split(' ').nth(1)?.parse().ok().filter(|id| *id < Set::WAYS)
}

/// Adds decisions to the file, in place of its older ones for the same shapes.
///
/// # Errors
/// E0429 where the file cannot be written.
pub(crate) fn keep(path: &Path, decided: &[Decided]) -> Result<(), Error> {
    keep_for(path, &machine(), decided)
}

fn keep_for(path: &Path, machine: &str, decided: &[Decided]) -> Result<(), Error> {
    let before = text(path);
    let is_new =
        |line: &&str| key(line).is_some_and(|key| decided.iter().all(|new| new.key != key));
    let mut text = format!("{MAGIC}\n{machine}\n");
    for line in lines(&before, machine).filter(is_new) {
        _ = writeln!(text, "{line}");
    }
    for Decided { key, name, way, .. } in decided {
        _ = writeln!(text, "{key:016x} {} {name}: {way}", way.id());
    }
    cache_folder::replace(path, text.as_bytes()).map_err(|error| Error::SystemRefused {
        what: format!("the ways of this host cannot be kept in {}: {error}", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(key: u64, id: WayId) -> Decided {
        let name = format!("Ring, AllReduce of {key} f32");
        Decided { key, name, way: Way::of(id), seconds: None }
    }

    #[test]
    fn a_later_decision_replaces_an_earlier_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/ways");
        keep_for(&path, "a machine", &[decided(1, 4), decided(2, 38)]).expect("written");
        keep_for(&path, "a machine", &[decided(1, 12), decided(3, 5)]).expect("written");
        let mut known = read(&path, "a machine");
        known.sort_unstable_by_key(|(key, _)| *key);
        let ids = [12, 38, 5].map(|id| Set::one(Way::of(id)));
        assert_eq!(known, [(1, ids[0]), (2, ids[1]), (3, ids[2])]);
    }

    /// Another machine, another version, lines that are no decisions, and numbers that are no ways.
    #[test]
    fn what_does_not_fit_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ways");
        assert_eq!(read(&path, "a machine"), []);
        keep_for(&path, "a machine", &[decided(1, 4)]).expect("written");
        assert_eq!(read(&path, "another machine"), []);
        let text = fs::read_to_string(&path).expect("text");
        fs::write(&path, text.replace("ways 3", "ways 0")).expect("written");
        assert_eq!(read(&path, "a machine"), []);
        let more = format!("{text}rubbish\n\n12 64 a way beyond the last\nfg 1 no number\n13\n");
        fs::write(&path, more).expect("written");
        assert_eq!(read(&path, "a machine"), [(1, Set::one(Way::of(4)))]);
        // The decisions of another machine make room for those of this one.
        keep_for(&path, "another machine", &[decided(7, 3)]).expect("written");
        assert_eq!(read(&path, "another machine"), [(7, Set::one(Way::of(3)))]);
    }
}
