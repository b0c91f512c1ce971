//! `roundelay synthesize`: an algorithm for a topology, found as the best trees that its links can carry, and printed as a
//! page.

mod draw;
mod rounds;
mod search_flags;

use std::iter;
use std::sync::Arc;

use roundelay::select;
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_synthesis::algorithm::{AlgorithmSearch, FoundTrees, SimulatedTrees};
use roundelay_synthesis::search::{SearchContext, SearchError, found_source};
use roundelay_synthesis::steps::Size;
use roundelay_topology::Problem;
use serde::Serialize;

use crate::constants::Constants;
use crate::program::compile;
use crate::progress;
use crate::report::{Failure, Format, print_all, quoted, within_a_page};
use crate::streams::{print, print_json};
use crate::topo::{count, short};
use crate::values::count_of_size;
use search_flags::Wanted;
pub(crate) use search_flags::{MachineFlags, SynthesizeFlags};

/// The part of a time up to which two times are as good as equal.
const EQUAL: f64 = 1e-3;

/// The command's part in a search: pages may use the library, and the subject of the work is shown.
pub(crate) const CONTEXT: SearchContext<'static> =
    SearchContext { compile: &compile, about: &progress::about };

/// The figures of one number of trees.
#[derive(Serialize)]
struct FoundJson {
    /// The weights of the trees of a root together; for AllReduce, of all roots.
    trees_of_a_root: u64,
    /// Of an AllReduce: whether data goes up and down at once.
    at_once: bool,
    /// Different trees of all roots.
    trees: usize,
    /// The steps from a root to its farthest rank.
    depth: u32,
    /// The time of the bound, as a share of the time by the fullest link.
    share_of_the_bound: f64,
    /// The size by the time of the fullest link, in bytes a second; of a topology without bandwidths in multiples of B.
    algbw: f64,
    /// The seconds in which it was found.
    seconds: f64,
}

/// A simulated run.
#[derive(Serialize)]
struct Timed {
    /// The slices into which the data of a tree is cut.
    slices: u32,
    seconds: f64,
    /// The size by the time, in bytes a second.
    algbw: f64,
    share_of_the_bound: f64,
}

impl Timed {
    fn of(run: &SimulatedTrees) -> Self {
        let SimulatedTrees { slices, seconds, algbw, share_of_the_bound, .. } = *run;
        Self { slices, seconds, algbw, share_of_the_bound }
    }
}

pub(crate) fn main(flags: &SynthesizeFlags) -> Result<bool, Failure> {
    draw::reserve(flags)?;
    let (topology, nranks) = flags.machine.read()?;
    let topology = &topology;
    let constants = flags.costs.of(Some(topology), nranks)?;
    let elements = count_of_size(flags.collective, nranks, flags.bytes.bytes, 4);
    let search = AlgorithmSearch {
        collective: flags.collective,
        root: RankId(flags.root),
        topology,
        text: flags.machine.is_text().then_some(&flags.machine.topology),
        nranks,
        bytes: flags.bytes.bytes,
        elements,
        costs: &constants.costs,
        context: CONTEXT,
    };
    let run = Synthesis { flags, topology, nranks, constants: &constants, search };
    let in_rounds = match (flags.matching, flags.exact) {
        (Some(chunks), _) => Some(run.matched(chunks)?),
        (None, Some(size)) => {
            let [chunks, steps, rounds] = size.0;
            Some(run.exactly(Size { chunks, steps, rounds })?)
        }
        (None, None) => None,
    };
    if let Some(found) = in_rounds {
        return run.print_rounds(&found);
    }
    let wanted = match flags.trees.unwrap_or(Wanted::Optimum) {
        Wanted::Optimum => vec![None],
        Wanted::Number(trees) => vec![Some(trees)],
        Wanted::Range(first, last) => (first..=last).map(Some).chain([None]).collect(),
    };
    let found: Result<Vec<Vec<FoundTrees>>, Problem> =
        wanted.into_iter().map(|trees| search.pack(trees)).collect();
    let found = found?;
    let asked = found.last().map_or(0, Vec::len);
    let found: Vec<FoundTrees> = found.into_iter().flatten().collect();
    let last = found[found.len() - asked..].iter().map(|of| &of.packing);
    let (packing, timed) = search.fastest(last.collect())?;
    let slices = timed.first().map_or(1, |timed| timed.slices);
    let mut head = vec![run.title(), format!("Written by `{}`.", run.command())];
    head.extend(found.iter().map(|found| run.line(found)));
    head.extend(run.simulated(&timed));
    let library = timed.first().and_then(|timed| run.in_library(timed.seconds));
    head.extend(library.clone());
    let text = search.page(packing, slices, &head);
    search.context.prove(&text, nranks)?;
    draw::write(&run, packing)?;
    match flags.format {
        Format::Human => {
            print(text.trim_end());
            constants.tell();
        }
        Format::Json => {
            let all: Vec<FoundJson> = found.iter().map(figures).collect();
            print_json(&serde_json::json!({
                "collective": flags.collective.name(),
                "topology": topology.name(),
                "nranks": nranks,
                "found": all,
                "at_once": packing.at_once,
                "simulated": timed.first().map(Timed::of),
                "library": library,
                "constants": constants.json(Some(topology)),
                "page": text,
            }));
        }
    }
    Ok(true)
}

/// The topology and the collective of a search.
struct Synthesis<'a> {
    flags: &'a SynthesizeFlags,
    topology: &'a Arc<Topology>,
    nranks: u32,
    constants: &'a Constants,
    search: AlgorithmSearch<'a>,
}

impl Synthesis<'_> {
    /// Prints a schedule in rounds, once it is proved.
    fn print_rounds(&self, found: &rounds::Found) -> Result<bool, Failure> {
        let mut head = vec![self.title(), format!("Written by `{}`.", self.command())];
        head.extend_from_slice(&found.lines);
        let head: Vec<String> = head.iter().map(|line| format!("// {line}")).collect();
        let page = found.list.page(&self.search.name());
        let text = format!("{}\n\n{page}", head.join("\n"));
        self.search.context.prove(&text, self.nranks)?;
        match self.flags.format {
            Format::Human => {
                print(text.trim_end());
                self.constants.tell();
            }
            Format::Json => print_json(&serde_json::json!({
                "collective": self.flags.collective.name(),
                "topology": self.topology.name(),
                "nranks": self.nranks,
                "seconds": found.seconds,
                "constants": self.constants.json(Some(self.topology)),
                "page": text,
            })),
        }
        Ok(true)
    }

    fn title(&self) -> String {
        let Self { flags, topology, nranks, .. } = self;
        let root = if flags.collective.is_rooted() {
            format!(" from rank {}", flags.root)
        } else {
            String::new()
        };
        format!(
            "{} of {}{root} on {}.",
            flags.collective,
            count(*nranks as usize, "rank"),
            topology.name()
        )
    }

    /// Returns the command that prints the page again.
    fn command(&self) -> String {
        let Self { flags, nranks, topology, .. } = self;
        let mut words = vec![format!(
            "roundelay synthesize {} --topology {}",
            flags.collective,
            quoted(&flags.machine.topology)
        )];
        words.extend(flags.machine.assume.as_ref().map(|assume| format!("--assume {assume}")));
        if *nranks != topology.nranks() {
            words.push(format!("--nranks {nranks}"));
        }
        if flags.root > 0 {
            words.push(format!("--root {}", flags.root));
        }
        words.extend(match flags.trees {
            Some(Wanted::Number(trees)) => Some(format!("--trees {trees}")),
            Some(Wanted::Range(first, last)) => Some(format!("--trees {first}..={last}")),
            Some(Wanted::Optimum) | None => None,
        });
        let matching = |pieces| format!("--matching {pieces} --seeds {}", flags.seeds);
        words.extend(flags.matching.map(matching));
        words.extend(flags.exact.map(|size| {
            let [pieces, steps, rounds] = size.0;
            format!("--exact {pieces},{steps},{rounds}")
        }));
        words.extend(flags.costs.words());
        words.join(" ")
    }

    /// Returns a line about the library's fastest algorithm, where it takes no longer than the page, which takes
    /// `seconds`. Every parameter but the root has its default.
    fn in_library(&self, seconds: f64) -> Option<String> {
        let (best, name) = self.search.fastest_of(select::library())?;
        let than = match best / seconds {
            less if less < 1.0 - EQUAL => "faster than",
            equal if equal <= 1.0 + EQUAL => "as fast as",
            _ => return None,
        };
        let us = short(best * 1e6);
        Some(format!("{name} of the library is {than} this page: it takes {us} us."))
    }

    /// The order of the two ways of an AllReduce.
    fn ways(&self, at_once: bool) -> &'static str {
        match self.flags.collective {
            Collective::AllReduce if at_once => ", up and down at once",
            Collective::AllReduce => ", up and then down",
            _ => "",
        }
    }

    /// Returns a line about a simulated time, and about those that are longer.
    fn simulated(&self, all: &[SimulatedTrees]) -> Vec<String> {
        let [timed, others @ ..] = all else { return Vec::new() };
        let b = if self.topology.is_relative() {
            format!(", with B = {} GB/s", short(self.search.bandwidth() / 1e9))
        } else {
            String::new()
        };
        let of = |timed: &SimulatedTrees| {
            let us = short(timed.seconds * 1e6);
            let ways = self.ways(timed.at_once);
            let ways = if ways.is_empty() { String::new() } else { format!("{ways},") };
            format!("in {} a tree{ways} takes {us} us", count(timed.slices as usize, "slice"))
        };
        let share = percent(timed.share_of_the_bound);
        let size = &self.flags.bytes.text;
        let first = format!("Simulated, {size} {}{b}: {share} of the bound.", of(timed));
        let longer = others
            .iter()
            .map(|timed| format!("Simulated, {size} {}: the page would be slower.", of(timed)));
        iter::once(first).chain(longer).chain(self.of_constants()).collect()
    }

    /// Returns lines about the constants of simulated times.
    fn of_constants(&self) -> Vec<String> {
        let text = format!("Constants: {}.", self.constants.costs.source());
        within_a_page(&text, 0).lines().map(str::to_owned).collect()
    }

    /// Returns a line about one number of trees.
    fn line(&self, found: &FoundTrees) -> String {
        let FoundJson { trees_of_a_root, trees, depth, share_of_the_bound: share, .. } =
            figures(found);
        let all_reduce = self.flags.collective == Collective::AllReduce;
        let of = count(trees_of_a_root as usize, "tree");
        let whose = if all_reduce { "all roots" } else { "a root" };
        let ways = self.ways(found.packing.at_once);
        // Links of two equal directions leave no choice but the order of the two ways.
        let equal = || self.topology.links() == self.topology.reverse().links();
        let (best, of_which) = match found.asked {
            Some(_) => ("", ""),
            None if share >= 1.0 => (", the optimum", ""),
            None if all_reduce && !found.packing.at_once && equal() => {
                ("", ", the best that goes up trees and then down")
            }
            None => ("", ", the best that was found"),
        };
        format!(
            "{of} of {whose}{ways}{best}: {} of the bound{of_which}; {}, at most {} deep.",
            percent(share),
            count(trees, "different tree"),
            count(depth as usize, "step"),
        )
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Problem(problem) => (*problem).into(),
            // A fault of this command.
            SearchError::Page(errors, text) => {
                print_all(&errors, &found_source(&text));
                Self::usage(Code::Unproved, "the page that was found is wrong")
                    .with_help("this is a fault of the command, not of the topology")
            }
        }
    }
}

/// Returns the figures of one number of trees.
fn figures(found: &FoundTrees) -> FoundJson {
    let FoundTrees { packing, seconds, .. } = found;
    FoundJson {
        trees_of_a_root: packing.per_root,
        at_once: packing.at_once,
        trees: packing.trees.len(),
        depth: packing.depth(),
        share_of_the_bound: packing.share(),
        algbw: 1.0 / packing.per_byte.value(),
        seconds: *seconds,
    }
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1000.0).floor() / 10.0)
}
