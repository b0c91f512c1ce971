//! The small programs of the memory model, each with all its outcomes, as their files have them. The tests of the
//! interpreter and those of a GPU read them here.
//!
//! A file has threads, each at a rank, a block and a warp, with instructions on the locations `%x`, `%y`, `%z` and `%w`,
//! and below `outcomes` all that may come out, no more and no less: registers of threads, locations at the end, or an
//! error. Below `assuming` is what may come out under assumptions.

use std::collections::BTreeSet;
use std::fmt::Write as _;

pub(crate) const LOCATIONS: [&str; 4] = ["x", "y", "z", "w"];
/// The registers of a program beside those of its locations.
pub(crate) const REGISTERS: &str = ".reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n";
/// Outcomes that the axioms allow, and the machine does not show: loads that read later stores, in a circle.
pub(crate) const NOT_SHOWN: [(&str, &str); 1] = [("lb", "0:r0=1 1:r0=1")];

macro_rules! files {
    ($($name:literal)*) => {
        /// The name and the text of each file.
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("litmus/", $name, ".litmus")))),*];
    };
}

files! {
    "2+2w"
    "acquire_barrier"
    "atom_acq_rel"
    "atom_fence"
    "atom_relaxed"
    "barrier"
    "barrier_missing"
    "barrier_red_release"
    "constant"
    "constant_after_store"
    "corr"
    "corr_two_readers"
    "corw"
    "counted_blocks"
    "counted_twice"
    "cowr"
    "coww"
    "exch_chain"
    "fence_halves"
    "fence_wrong_halves"
    "flags_release"
    "iriw"
    "iriw_sequential"
    "isa2"
    "isa2_scopes"
    "lb"
    "lb_fences"
    "ll_halves"
    "ll_line"
    "loads_before_barrier"
    "loads_before_flag"
    "mp_block_scope"
    "mp_device_scope"
    "mp_fences"
    "mp_in_a_block"
    "mp_narrow_acquire"
    "mp_narrow_fence"
    "mp_one_narrow_scope"
    "mp_red_release"
    "mp_release_acquire"
    "mp_release_then_relaxed"
    "mp_second_fence"
    "mp_strong_data"
    "mp_system"
    "mp_without_acquire"
    "mp_without_fences"
    "mp_without_release"
    "narrow_flag"
    "nc_on_peers"
    "observed_store"
    "plain_store_of_read_flag"
    "polls_acquire"
    "red_chain"
    "red_does_not_acquire"
    "sb"
    "sb_fences"
    "sb_membar"
    "sb_sequential"
    "store_chain"
    "stores_before_flag"
    "vectors"
    "vectors_of_two"
    "weak_as_relaxed"
    "wrc"
}

/// A thread: its rank, its block, its warp, and its instructions.
pub(crate) struct Thread {
    pub(crate) rank: usize,
    pub(crate) block: u32,
    pub(crate) warp: u32,
    pub(crate) text: String,
}

/// A small program, and its outcomes.
pub(crate) struct Litmus {
    pub(crate) name: String,
    pub(crate) threads: Vec<Thread>,
    pub(crate) outcomes: BTreeSet<String>,
    /// Sets of assumptions, each with the outcomes that are left.
    pub(crate) assumed: Vec<(Vec<String>, BTreeSet<String>)>,
}

fn read(name: &str, text: &str) -> Litmus {
    let mut threads: Vec<Thread> = Vec::new();
    let mut outcomes = None;
    let mut assumed: Vec<(Vec<String>, BTreeSet<String>)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("//")) {
        if let Some(place) = line.strip_prefix("thread ") {
            let numbers: Vec<u32> =
                place.split('.').map(|number| number.parse().unwrap()).collect();
            let warp = numbers.get(2).copied().unwrap_or(0);
            let (rank, block) = (numbers[0] as usize, numbers[1]);
            threads.push(Thread { rank, block, warp, text: String::new() });
        } else if line == "outcomes" {
            outcomes = Some(BTreeSet::new());
        } else if let Some(names) = line.strip_prefix("assuming ") {
            let names = names.split(' ').map(str::to_owned).collect();
            assumed.push((names, BTreeSet::new()));
        } else if let Some(outcomes) = &mut outcomes {
            let outcomes = assumed.last_mut().map_or(outcomes, |(_, outcomes)| outcomes);
            assert!(outcomes.insert(line.trim().to_owned()), "{name}: {line} twice");
        } else {
            let text = &mut threads.last_mut().unwrap().text;
            writeln!(text, "{line}").unwrap();
        }
    }
    Litmus { name: name.to_owned(), threads, outcomes: outcomes.unwrap(), assumed }
}

impl Litmus {
    /// The names of what the outcomes tell.
    pub(crate) fn names(&self) -> Vec<String> {
        let assumed = self.assumed.iter().flat_map(|(_, outcomes)| outcomes);
        let terms = self.outcomes.iter().chain(assumed).flat_map(|outcome| outcome.split(' '));
        let names: BTreeSet<String> =
            terms.filter_map(|term| Some(term.split_once('=')?.0.to_owned())).collect();
        names.into_iter().collect()
    }

    /// The outcome with the values of these names.
    pub(crate) fn outcome(&self, value: impl Fn(&str) -> u64) -> String {
        let terms = self.names().into_iter().map(|name| format!("{name}={}", value(&name)));
        terms.collect::<Vec<_>>().join(" ")
    }
}

/// The programs of all files.
pub(crate) fn all() -> Vec<Litmus> {
    FILES.iter().map(|(name, text)| read(name, text)).collect()
}
