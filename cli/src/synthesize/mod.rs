//! `roundelay synthesize`: an algorithm for a topology, found as the best trees that its links can carry, and printed as a
//! page.

mod draw;
mod flags;
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
use roundelay_core::simulate::{Machine, simulate};
use roundelay_core::syntax::Source;
use roundelay_core::topology::packing::{Packing, pack};
use roundelay_core::topology::steps::Size;
use roundelay_core::topology::{Topology, bounds};
use roundelay_export::trees::{TreesPage, streams};
use serde::Serialize;

use crate::program::compile;
use crate::progress;
use crate::report::{Failure, Format, print_all};
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

pub(crate) fn main(flags: &SynthesizeFlags) -> Result<bool, Failure> {
    draw::reserve(flags)?;
    let (topology, nranks) = flags.machine.read()?;
    let topology = &topology;
    let run = Synthesis { flags, topology, nranks };
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
    let find = |trees: Option<u32>| {
        progress::about(trees.map_or("the optimum".into(), |k| format!("{k} trees of a root")));
        let start = Instant::now();
        let found = pack(topology, nranks, flags.collective, RankId(flags.root), trees);
        let seconds = start.elapsed().as_secs_f64();
        found.map(|packing| Found { asked: trees, packing, seconds })
    };
    let found = match flags.trees.unwrap_or(Wanted::Optimum) {
        Wanted::Optimum => find(None).map(|found| vec![found]),
        Wanted::Number(trees) => find(Some(trees)).map(|found| vec![found]),
        Wanted::Range(first, last) => {
            (first..=last).map(Some).chain([None]).map(find).collect::<Result<Vec<_>, _>>()
        }
    };
    // Trees of an AllReduce use both directions of a cable alike. Where these differ, it goes up other trees than down.
    let optimal = |found: &Vec<Found>| found.last().is_some_and(|best| best.packing.share() >= 1.0);
    let phases = if found.as_ref().is_ok_and(optimal) { None } else { run.phases()? };
    let faster = |[up, down]: &[Packing; 2]| {
        let time = up.per_byte.plus(down.per_byte);
        let one = found.as_ref().ok().and_then(|found| found.last());
        one.is_none_or(|best| time < best.packing.per_byte)
    };
    let phases = phases.filter(faster);
    let found = if phases.is_some() { Vec::new() } else { found? };
    let trees = match (&phases, found.last()) {
        (Some([up, down]), _) => Trees { packing: up, back: Some(down) },
        (None, Some(best)) => Trees { packing: &best.packing, back: None },
        (None, None) => unreachable!("a range of trees ends with the optimum"),
    };
    let timed = run.slices(&trees)?;
    let slices = timed.as_ref().map_or(1, |timed| timed.slices);
    let mut head = vec![run.title(), format!("Written by `{}`.", run.command())];
    match trees.back {
        None => head.extend(found.iter().map(|found| line(found, flags.collective))),
        Some(down) => head.push(run.two_phases(trees.packing, down)),
    }
    head.extend(timed.as_ref().map(|timed| run.simulated(timed)));
    let (text, algorithm) = run.page(&trees, slices, &head)?;
    progress::about(format!("the proof of {}", algorithm.name()));
    if let Err(errors) = prove_source(&algorithm, nranks) {
        return Err(fault(&errors, &text));
    }
    draw::write(&run, trees.back.unwrap_or(trees.packing), trees.back.is_some())?;
    match flags.format {
        Format::Human => print(text.trim_end()),
        Format::Json => {
            let all: Vec<FoundJson> = found.iter().map(figures).collect();
            print_json(&serde_json::json!({
                "collective": flags.collective.name(),
                "topology": topology.name(),
                "nranks": nranks,
                "found": all,
                "phases": if trees.back.is_some() { 2 } else { 1 },
                "simulated": timed,
                "page": text,
            }));
        }
    }
    Ok(true)
}

/// The trees of a page: of one phase, or those up and those down.
#[derive(Clone, Copy)]
struct Trees<'a> {
    packing: &'a Packing,
    back: Option<&'a Packing>,
}

impl Trees<'_> {
    fn streams(&self) -> u64 {
        streams(self.packing) + self.back.map_or(0, streams)
    }

    /// The steps of the deepest tree.
    fn depth(&self) -> u32 {
        let all = [Some(self.packing), self.back].into_iter().flatten();
        all.map(Packing::depth).max().unwrap_or(0)
    }
}

/// The topology and the collective of a search.
struct Synthesis<'a> {
    flags: &'a SynthesizeFlags,
    topology: &'a Arc<Topology>,
    nranks: u32,
}

impl Synthesis<'_> {
    /// Returns the trees of a ReduceScatter and of an AllGather, for an AllReduce.
    fn phases(&self) -> Result<Option<[Packing; 2]>, Failure> {
        if self.flags.collective != Collective::AllReduce {
            return Ok(None);
        }
        let trees = match self.flags.trees {
            Some(Wanted::Number(trees)) => Some(trees),
            _ => None,
        };
        let of = |collective| pack(self.topology, self.nranks, collective, RankId(0), trees);
        Ok(Some([of(Collective::ReduceScatter)?, of(Collective::AllGather)?]))
    }

    /// Returns a line about an AllReduce of two phases.
    fn two_phases(&self, up: &Packing, down: &Packing) -> String {
        let time = up.per_byte.plus(down.per_byte);
        format!(
            "ReduceScatter, then AllGather, {} and {} of a root: {} of the bound.",
            count(up.per_root as usize, "tree"),
            down.per_root,
            percent(self.bound(&Trees { packing: up, back: Some(down) }) / time.value()),
        )
    }

    /// The bound of the collective, in seconds a byte.
    fn bound(&self, trees: &Trees<'_>) -> f64 {
        match trees.back {
            None => trees.packing.bound.value(),
            Some(_) => bounds::bound(self.topology, self.nranks, self.flags.collective, RankId(0))
                .map_or(0.0, |bound| bound.per_byte.value()),
        }
    }

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
            Format::Human => print(text.trim_end()),
            Format::Json => print_json(&serde_json::json!({
                "collective": self.flags.collective.name(),
                "topology": self.topology.name(),
                "nranks": self.nranks,
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
        let bandwidth = self.bandwidth();
        let machine = Machine { bandwidth, ..Machine::new(self.topology.clone()) };
        let bytes = self.flags.bytes.bytes;
        let elements = count_of_size(self.flags.collective, self.nranks, bytes, 4);
        let schedule = algorithm.schedule(self.nranks).map_err(wrong)?;
        let run =
            simulate(&join(&schedule), &machine, elements, DType::F32, false).map_err(wrong)?;
        Ok(run.seconds)
    }

    fn title(&self) -> String {
        let Self { flags, topology, nranks } = self;
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
        let Self { flags, nranks, topology } = self;
        let mut words = vec![format!(
            "roundelay synthesize {} --topology \"{}\"",
            flags.collective, flags.machine.topology
        )];
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
        words.join(" ")
    }

    /// Returns the page and its algorithm.
    fn page(
        &self,
        trees: &Trees<'_>,
        slices: u32,
        head: &[String],
    ) -> Result<(String, Configured), Failure> {
        let machine = &self.flags.machine;
        let page = TreesPage {
            collective: self.flags.collective,
            root: RankId(self.flags.root),
            packing: trees.packing,
            back: trees.back,
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
        if self.topology.is_relative() { self.flags.bandwidth.unwrap_or(25e9) } else { 1.0 }
    }

    /// Returns the run of the least simulated time; `None` where no run is small enough to be simulated.
    fn slices(&self, trees: &Trees<'_>) -> Result<Option<Timed>, Failure> {
        let flags = self.flags;
        let bandwidth = self.bandwidth();
        let bytes = flags.bytes.bytes;
        let streams = trees.streams();
        let moves = streams * u64::from(self.nranks);
        let most = if trees.depth() > 1 { SLICES } else { 1 };
        let halves = iter::successors(Some(most), |slices| Some(slices / 2).filter(|s| *s > 0));
        let fits = |slices: &u32| {
            let slices = u64::from(*slices);
            moves * moves * slices <= SHARES
                && (slices == 1 || streams * slices * SLICE_BYTES <= bytes)
        };
        let mut best: Option<(f64, u32)> = None;
        for slices in halves.filter(fits) {
            progress::about(count(slices as usize, "slice"));
            let (text, algorithm) = self.page(trees, slices, &[])?;
            let seconds = self.timed(&algorithm, &text)?;
            if best.is_some_and(|(known, _)| seconds > known) {
                break;
            }
            best = Some((seconds, slices));
        }
        let timed = best.map(|(seconds, slices)| {
            // The time is that of whole elements.
            let elements = count_of_size(flags.collective, self.nranks, bytes, 4);
            let bytes = flags.collective.bytes(elements, self.nranks, 4);
            let bound = self.bound(trees) * bytes as f64 / bandwidth;
            let share_of_the_bound = if seconds > 0.0 { bound / seconds } else { 1.0 };
            Timed { slices, seconds, algbw: bytes as f64 / seconds, share_of_the_bound }
        });
        Ok(timed)
    }

    /// Returns a line about a simulated time.
    fn simulated(&self, timed: &Timed) -> String {
        let b = if self.topology.is_relative() {
            format!(", with B = {} GB/s", short(self.bandwidth() / 1e9))
        } else {
            String::new()
        };
        format!(
            "Simulated, {} in {} a tree takes {} us{b}: {} of the bound.",
            self.flags.bytes.text,
            count(timed.slices as usize, "slice"),
            short(timed.seconds * 1e6),
            percent(timed.share_of_the_bound)
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

/// Returns a line about one number of trees.
fn line(found: &Found, collective: Collective) -> String {
    let FoundJson { trees_of_a_root, trees, depth, share_of_the_bound, .. } = figures(found);
    let of = count(trees_of_a_root as usize, "tree");
    let best = if found.asked.is_none() { ", the optimum" } else { "" };
    let whose = if collective == Collective::AllReduce { "all roots" } else { "a root" };
    format!(
        "{of} of {whose}{best}: {} of the bound; {}, at most {} deep.",
        percent(share_of_the_bound),
        count(trees, "different tree"),
        count(depth as usize, "step"),
    )
}

/// Returns the figures of one number of trees.
fn figures(found: &Found) -> FoundJson {
    let Found { packing, seconds, .. } = found;
    FoundJson {
        trees_of_a_root: packing.per_root,
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
