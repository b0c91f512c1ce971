//! `roundelay synthesize`: an algorithm for a topology, found as the best trees that its links can carry, and printed as a
//! page.

mod draw;
mod flags;
mod library;
mod rounds;

use std::iter;
use std::sync::Arc;
use std::time::Instant;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::optimize::join;
use roundelay_core::prove_source;
use roundelay_core::schedule::Schedule;
use roundelay_core::simulate::{Machine, simulate};
use roundelay_core::syntax::Source;
use roundelay_core::topology::bounds::Fraction;
use roundelay_core::topology::{Problem, Topology};
use roundelay_synthesis::packing::{Packing, pack, pack_at_once};
use roundelay_synthesis::steps::Size;
use roundelay_synthesis::trees::{TreesPage, streams};
use serde::Serialize;

use crate::constants::Constants;
use crate::program::compile;
use crate::progress;
use crate::report::{Failure, Format, print_all, quoted, within_a_page};
use crate::streams::{print, print_json};
use crate::topo::{count, short};
use crate::values::count_of_size;
use flags::Wanted;
pub(crate) use flags::{MachineFlags, SynthesizeFlags};

/// The most slices that are tried; then every half, as long as it is not slower.
const SLICES: u32 = 512;
/// The fewest bytes of a slice, where there are several: the latency of any link is more than their time.
const SLICE_BYTES: u64 = 2048;
/// The most pairs of streams and moves of a simulated run: as many shares of links are computed, in half a minute.
const SHARES: u64 = 1 << 30;

/// A packing, with the number of trees that was asked for.
struct Found {
    asked: Option<u32>,
    packing: Packing,
    seconds: f64,
}

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
    /// The order of the two ways of an AllReduce.
    #[serde(skip)]
    ways: &'static str,
    /// The slices into which the data of a tree is cut.
    slices: u32,
    seconds: f64,
    /// The size by the time, in bytes a second.
    algbw: f64,
    share_of_the_bound: f64,
}

pub(crate) fn main(flags: &SynthesizeFlags) -> Result<bool, Failure> {
    draw::reserve(flags)?;
    let (topology, nranks) = flags.machine.read()?;
    let topology = &topology;
    let constants = flags.costs.of(Some(topology), nranks)?;
    let run = Synthesis { flags, topology, nranks, constants: &constants };
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
    let find = |trees: Option<u32>| -> Result<Vec<Found>, Problem> {
        progress::about(trees.map_or("the optimum".into(), |k| format!("{k} trees of a root")));
        let timed = |pack: &dyn Fn() -> Result<Packing, Problem>| {
            let start = Instant::now();
            let packing = pack()?;
            Ok(Found { asked: trees, packing, seconds: start.elapsed().as_secs_f64() })
        };
        let root = RankId(flags.root);
        let mut found = vec![timed(&|| pack(topology, nranks, flags.collective, root, trees))];
        // Trees that reach the bound one way after the other do so at once, too.
        let reached = found[0].as_ref().is_ok_and(|found| found.packing.share() >= 1.0);
        if flags.collective == Collective::AllReduce && !reached {
            found.push(timed(&|| pack_at_once(topology, nranks, trees)));
        }
        // Links in one direction alone have no trees that go up and then down.
        if found.iter().any(Result::is_ok) {
            found.retain(Result::is_ok);
        }
        found.into_iter().collect()
    };
    let wanted = match flags.trees.unwrap_or(Wanted::Optimum) {
        Wanted::Optimum => vec![None],
        Wanted::Number(trees) => vec![Some(trees)],
        Wanted::Range(first, last) => (first..=last).map(Some).chain([None]).collect(),
    };
    let found: Result<Vec<Vec<Found>>, Problem> = wanted.into_iter().map(find).collect();
    let found = found?;
    let asked = found.last().map_or(0, Vec::len);
    let found: Vec<Found> = found.into_iter().flatten().collect();
    let last = found[found.len() - asked..].iter().map(|of| &of.packing);
    let (packing, timed) = run.fastest(last.collect())?;
    let slices = timed.first().map_or(1, |timed| timed.slices);
    let mut head = vec![run.title(), format!("Written by `{}`.", run.command())];
    head.extend(found.iter().map(|found| run.line(found)));
    head.extend(run.simulated(&timed));
    let library = timed.first().and_then(|timed| run.in_library(timed.seconds));
    head.extend(library.clone());
    let (text, algorithm) = run.page(packing, slices, &head)?;
    progress::about(format!("the proof of {}", algorithm.name()));
    if let Err(errors) = prove_source(&algorithm, nranks) {
        return Err(fault(&errors, &text));
    }
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
                "simulated": timed.first(),
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
}

impl Synthesis<'_> {
    /// Prints a schedule in rounds, once it is proved.
    fn print_rounds(&self, found: &rounds::Found) -> Result<bool, Failure> {
        let mut head = vec![self.title(), format!("Written by `{}`.", self.command())];
        head.extend_from_slice(&found.lines);
        let head: Vec<String> = head.iter().map(|line| format!("// {line}")).collect();
        let page = found.list.page(&self.name());
        let text = format!("{}\n\n{page}", head.join("\n"));
        let algorithm = read(&text)?;
        if let Err(errors) = prove_source(&algorithm, self.nranks) {
            return Err(fault(&errors, &text));
        }
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

    /// Returns the seconds of a simulated run of a page.
    fn seconds_of(&self, text: &str) -> Result<f64, Failure> {
        self.timed(&read(text)?, text)
    }

    /// Returns the seconds of a simulated run of an algorithm.
    fn timed(&self, algorithm: &Configured, text: &str) -> Result<f64, Failure> {
        let wrong = |found: Vec<Finding>| {
            let told = found.into_iter().map(|of| algorithm.diagnostic(of, self.nranks));
            fault(&told.collect::<Vec<_>>(), text)
        };
        let schedule = algorithm.schedule(self.nranks).map_err(wrong)?;
        self.run(&schedule).map_err(wrong)
    }

    /// Returns the seconds of a simulated run of a schedule.
    fn run(&self, schedule: &Schedule) -> Result<f64, Vec<Finding>> {
        let machine = Machine::of_costs(&self.constants.costs, self.topology.clone());
        let bytes = self.flags.bytes.bytes;
        let elements = count_of_size(self.flags.collective, self.nranks, bytes, 4);
        let run = simulate(&join(schedule), &machine, elements, DType::F32, false)?;
        Ok(run.seconds)
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

    /// Returns the page and its algorithm.
    fn page(
        &self,
        packing: &Packing,
        slices: u32,
        head: &[String],
    ) -> Result<(String, Configured), Failure> {
        let machine = &self.flags.machine;
        let page = TreesPage {
            collective: self.flags.collective,
            root: RankId(self.flags.root),
            packing,
            topology: machine.is_text().then_some(&machine.topology),
            slices,
            head,
        };
        let text = page.text();
        let algorithm = read(&text)?;
        Ok((text, algorithm))
    }

    /// The bandwidth of one link, where the topology has none.
    fn bandwidth(&self) -> f64 {
        if self.topology.is_relative() { self.constants.costs.bandwidth } else { 1.0 }
    }

    /// Returns the packing of the least simulated time, and the simulated runs of all that may be faster than others, the
    /// fastest first; none where no run is small enough to be simulated.
    fn fastest<'t>(&self, mut all: Vec<&'t Packing>) -> Result<(&'t Packing, Vec<Timed>), Failure> {
        all.sort_by_key(|packing| packing.per_byte);
        let (mut best, mut runs) = (all[0], Vec::<Timed>::new());
        for packing in all {
            let least = self.least(packing.per_byte);
            if runs.first().is_some_and(|known| known.seconds <= least) {
                break;
            }
            let Some(timed) = self.slices(packing)? else { continue };
            if runs.first().is_none_or(|known| timed.seconds < known.seconds) {
                best = packing;
                runs.insert(0, timed);
            } else {
                runs.push(timed);
            }
        }
        Ok((best, runs))
    }

    /// The seconds of this time for each byte.
    fn least(&self, per_byte: Fraction) -> f64 {
        per_byte.value() * self.bytes() as f64 / self.bandwidth()
    }

    /// The bytes that a simulated run moves: those of the whole elements of the size.
    fn bytes(&self) -> u64 {
        let Self { flags, nranks, .. } = self;
        let elements = count_of_size(flags.collective, *nranks, flags.bytes.bytes, 4);
        flags.collective.bytes(elements, *nranks, 4)
    }

    /// Returns the run of the least simulated time; `None` where no run is small enough to be simulated.
    fn slices(&self, packing: &Packing) -> Result<Option<Timed>, Failure> {
        let bytes = self.bytes();
        let streams = streams(&packing.trees);
        let moves = streams * u64::from(self.nranks);
        let most = if packing.depth() > 1 || packing.at_once { SLICES } else { 1 };
        let halves = iter::successors(Some(most), |slices| Some(slices / 2).filter(|s| *s > 0));
        let fits = |slices: &u32| {
            let slices = u64::from(*slices);
            moves * moves * slices <= SHARES
                && (slices == 1 || streams * slices * SLICE_BYTES <= bytes)
        };
        let mut best: Option<(f64, u32)> = None;
        for slices in halves.filter(fits) {
            progress::about(count(slices as usize, "slice"));
            let (text, algorithm) = self.page(packing, slices, &[])?;
            let seconds = self.timed(&algorithm, &text)?;
            if best.is_some_and(|(known, _)| seconds > known) {
                break;
            }
            best = Some((seconds, slices));
        }
        let timed = best.map(|(seconds, slices)| {
            let bound = self.least(packing.bound);
            let share_of_the_bound = if seconds > 0.0 { bound / seconds } else { 1.0 };
            let ways = self.ways(packing);
            Timed { ways, slices, seconds, algbw: bytes as f64 / seconds, share_of_the_bound }
        });
        Ok(timed)
    }

    /// The order of the two ways of an AllReduce.
    fn ways(&self, packing: &Packing) -> &'static str {
        match self.flags.collective {
            Collective::AllReduce if packing.at_once => ", up and down at once",
            Collective::AllReduce => ", up and then down",
            _ => "",
        }
    }

    /// Returns a line about a simulated time, and about those that are longer.
    fn simulated(&self, all: &[Timed]) -> Vec<String> {
        let [timed, others @ ..] = all else { return Vec::new() };
        let b = if self.topology.is_relative() {
            format!(", with B = {} GB/s", short(self.bandwidth() / 1e9))
        } else {
            String::new()
        };
        let of = |timed: &Timed| {
            let us = short(timed.seconds * 1e6);
            let ways =
                if timed.ways.is_empty() { String::new() } else { format!("{},", timed.ways) };
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
    fn line(&self, found: &Found) -> String {
        let FoundJson { trees_of_a_root, trees, depth, share_of_the_bound: share, .. } =
            figures(found);
        let all_reduce = self.flags.collective == Collective::AllReduce;
        let of = count(trees_of_a_root as usize, "tree");
        let whose = if all_reduce { "all roots" } else { "a root" };
        let ways = self.ways(&found.packing);
        // Links of two equal directions leave no choice but the order of the two ways.
        let equal = || self.topology.links() == self.topology.reversed().links();
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

/// Returns the failure of a page that is wrong: a fault of this command.
pub(crate) fn fault(errors: &[Diagnostic], text: &str) -> Failure {
    print_all(errors, &Source::from_text("synthesized.coll", text));
    Failure::usage(Code::Unproved, "the page that was found is wrong")
        .with_help("this is a fault of the command, not of the topology")
}

/// Returns the algorithm of a page.
fn read(text: &str) -> Result<Configured, Failure> {
    let source = Source::from_text("synthesized.coll", text);
    let program = compile(&source).map_err(|errors| fault(&errors, text))?;
    let algorithm = program.algorithms.into_iter().next().expect("the page has an algorithm");
    Ok(Configured::new(algorithm, &source))
}

/// Returns the figures of one number of trees.
fn figures(found: &Found) -> FoundJson {
    let Found { packing, seconds, .. } = found;
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
