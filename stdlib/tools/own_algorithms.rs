//! The algorithms that a user names for the calls of an unchanged program: the text of `ROUNDELAY_ALGORITHM`.

use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use roundelay_core::layout::Configured;

use super::{algorithms, byte_range, words_of};
use crate::{Algorithm as _, Collective};

/// The environment variable with the algorithms.
pub const ALGORITHM: &str = "ROUNDELAY_ALGORITHM";

/// An algorithm of the user's, and the calls that it is for.
#[derive(Clone, Debug)]
pub struct OwnAlgorithm {
    /// The sizes of the calls in bytes.
    pub bytes: RangeInclusive<u64>,
    /// The algorithm that runs.
    pub algorithm: Configured,
}

impl OwnAlgorithm {
    /// Reads a text such as `AllReduce: my.coll; Broadcast 64K..=1M: MyTree arity=2`.
    ///
    /// # Errors
    /// The entry that makes no sense, and why.
    pub fn all(text: &str) -> Result<Vec<Self>, String> {
        let entries = text.split(';').map(str::trim).filter(|entry| !entry.is_empty());
        entries
            .map(|entry| Self::read(entry).map_err(|why| format!("{ALGORITHM}, `{entry}`: {why}")))
            .collect()
    }

    /// Returns the last algorithm that is for calls of this collective and size.
    pub fn find(all: &[Self], collective: Collective, bytes: u64) -> Option<&Self> {
        let is_for =
            |own: &&Self| own.algorithm.collective() == collective && own.bytes.contains(&bytes);
        all.iter().rev().find(is_for)
    }

    fn read(entry: &str) -> Result<Self, String> {
        let (calls, source) = entry.split_once(':').ok_or(
            "it has no colon; write a collective, a colon and a source, as in `AllReduce: my.coll`",
        )?;
        let mut calls = calls.split_whitespace();
        let name = calls.next().unwrap_or_default();
        let collective = collective(name).ok_or_else(|| {
            let names: Vec<_> = Collective::ALL.iter().map(|known| known.name()).collect();
            format!("`{name}` is no collective; there are {}", names.join(", "))
        })?;
        let bytes = match calls.next() {
            None => 0..=u64::MAX,
            Some(range) => byte_range(range).ok_or_else(|| {
                format!("`{range}` is no range of sizes; write `64K..1M`, `..=4096` or `1M..`, in bytes, K, M or G")
            })?,
        };
        if let Some(more) = calls.next() {
            return Err(format!(
                "`{more}` before the colon; a range of sizes is one word, as `64K..1M`"
            ));
        }
        let source = source.trim();
        let (file, words) = source.split_once(char::is_whitespace).unwrap_or((source, ""));
        if file.is_empty() {
            return Err("it names no source behind the colon".to_owned());
        }
        let (algorithm, settings) = words_of(words)?;
        let found = algorithms(file, algorithm.as_deref(), &settings);
        let mut found = found.map_err(|(_, message)| message)?;
        found.retain(|algorithm| algorithm.collective() == collective);
        let names: Vec<_> = found.iter().map(|algorithm| algorithm.name().to_owned()).collect();
        match (found.pop(), found.is_empty()) {
            (Some(algorithm), true) => Ok(Self { bytes, algorithm }),
            (Some(_), false) => Err(format!(
                "{file} has several algorithms for {collective}: {}; name one behind the file",
                names.join(", ")
            )),
            (None, _) => Err(format!("{file} has no algorithm for {collective}")),
        }
    }
}

/// Equal algorithms of all ranks have equal digests.
impl Hash for OwnAlgorithm {
    fn hash<H: Hasher>(&self, to: &mut H) {
        let Self { bytes, algorithm } = self;
        bytes.hash(to);
        algorithm.source().hash(to);
        algorithm.name().hash(to);
        format!("{:?}", algorithm.given()).hash(to);
    }
}

/// Returns a collective by its name here, in MPI or in NCCL.
fn collective(name: &str) -> Option<Collective> {
    let bare = ["MPI_", "nccl"].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    Some(match bare.unwrap_or(name).to_ascii_lowercase().as_str() {
        "bcast" => Collective::Broadcast,
        "reduce_scatter_block" => Collective::ReduceScatter,
        lower => {
            Collective::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(lower))?
        }
    })
}
