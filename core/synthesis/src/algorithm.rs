//! The search for one algorithm: the best trees that the links of a topology carry, or a list of sends in few rounds,
//! whichever is asked for; each is timed in simulated runs, and what is returned is a page.
//!
//! Of an algorithm along trees, the packing with the least simulated time is taken, in as many slices as make it the
//! fastest. A packing that cannot be faster by the load of its links alone is not simulated.

use std::iter;
use std::sync::Arc;
use std::time::Instant;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Finding;
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::layout::{Algorithm as _, Configured, Limits};
use roundelay_core::optimize::join;
use roundelay_core::schedule::Schedule;
use roundelay_core::topology::Topology;
use roundelay_core::units::count;
use roundelay_simulate::cost::Costs;
use roundelay_simulate::{Machine, simulate};
use roundelay_topology::Problem;
use roundelay_topology::bounds::Fraction;

use crate::packing::{Packing, pack, pack_at_once};
use crate::search::{SearchContext, SearchError, while_faster};
use crate::steps::{Answer, SendList, Size, exact, greedy};
use crate::tree_page::{TreesPage, streams};

/// The most slices that are tried; then every half, as long as it is not slower.
const SLICES: u32 = 512;
/// The fewest bytes of a slice, where there are several: the latency of any link is more than their time.
const SLICE_BYTES: u64 = 2048;
/// The most pairs of streams and moves of a simulated run: as many shares of links are computed, in half a minute.
const SHARES: u64 = 1 << 30;
/// The most conflicts of an exact search: some minutes.
const CONFLICTS: u64 = 1 << 22;
/// Work beyond which an algorithm of a library is not laid out to be compared.
const LIMITS: Limits = Limits { steps: 1 << 18, ops: 1 << 20 };

/// The subject of a search: a collective, of a size, on the first ranks of a topology.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmSearch<'a> {
    /// The collective.
    pub collective: Collective,
    /// The root of Broadcast and Reduce.
    pub root: RankId,
    /// The topology.
    pub topology: &'a Arc<Topology>,
    /// The topology in the language, where it has a text.
    pub text: Option<&'a str>,
    /// The number of ranks.
    pub nranks: u32,
    /// The size in bytes, as nccl-tests counts it.
    pub bytes: u64,
    /// The elements of four bytes of a unit in a call of that size.
    pub elements: u64,
    /// The constants of a simulated run.
    pub costs: &'a Costs,
    /// The caller's part.
    pub context: SearchContext<'a>,
}

/// A packing, with the number of trees that was asked for.
#[derive(Clone, Debug)]
pub struct FoundTrees {
    /// The number of trees of a root; `None` for as many as the optimum needs.
    pub asked: Option<u32>,
    /// The trees.
    pub packing: Packing,
    /// The seconds in which they were found.
    pub seconds: f64,
}

/// A simulated run along the trees of a packing.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedTrees {
    /// Of an AllReduce: whether data goes up and down at once.
    pub at_once: bool,
    /// The slices into which the data of a tree is cut.
    pub slices: u32,
    /// The seconds of the run.
    pub seconds: f64,
    /// The size by the time, in bytes a second.
    pub algbw: f64,
    /// The time of the bound, as a share of the time of the run.
    pub share_of_the_bound: f64,
}

impl AlgorithmSearch<'_> {
    /// Returns packed trees: of an AllReduce one packing for each order of its two ways, as far as each may be the best.
    ///
    /// # Errors
    /// E0603 and the other reasons why a topology has no such trees.
    pub fn pack(&self, trees: Option<u32>) -> Result<Vec<FoundTrees>, Problem> {
        let Self { topology, nranks, collective, root, .. } = *self;
        let subject = trees.map_or("the optimum".into(), |k| format!("{k} trees of a root"));
        (self.context.about)(subject);
        let timed = |pack: &dyn Fn() -> Result<Packing, Problem>| {
            let start = Instant::now();
            let packing = pack()?;
            Ok(FoundTrees { asked: trees, packing, seconds: start.elapsed().as_secs_f64() })
        };
        let mut found = vec![timed(&|| pack(topology, nranks, collective, root, trees))];
        // Trees that reach the bound one way after the other do so at once, too.
        let reached = found[0].as_ref().is_ok_and(|found| found.packing.share() >= 1.0);
        if collective == Collective::AllReduce && !reached {
            found.push(timed(&|| pack_at_once(topology, nranks, trees)));
        }
        // Links in one direction alone have no trees that go up and then down.
        if found.iter().any(Result::is_ok) {
            found.retain(Result::is_ok);
        }
        found.into_iter().collect()
    }

    /// Returns the packing of the least simulated time, and the simulated runs of all that may be faster than others, the
    /// fastest first; none where no run is small enough to be simulated.
    ///
    /// # Errors
    /// A page that is wrong.
    pub fn fastest<'t>(
        &self,
        mut all: Vec<&'t Packing>,
    ) -> Result<(&'t Packing, Vec<SimulatedTrees>), SearchError> {
        all.sort_by_key(|packing| packing.per_byte);
        let (mut best, mut runs) = (all[0], Vec::<SimulatedTrees>::new());
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

    /// Returns the page of a packing; `head` are the lines of the comment at its head.
    pub fn page(&self, packing: &Packing, slices: u32, head: &[String]) -> String {
        let Self { collective, root, text: topology, .. } = *self;
        TreesPage { collective, root, packing, topology, slices, head }.text()
    }

    /// Returns the fastest list of sends of some seeds, each with as many pieces of a block, with its seed and its
    /// simulated time.
    ///
    /// # Errors
    /// The reasons why a topology has no such list, and a page that is wrong.
    pub fn match_rounds(
        &self,
        chunks: u32,
        seeds: u32,
    ) -> Result<(SendList, u64, f64), SearchError> {
        let Self { topology, nranks, collective, root, .. } = *self;
        let parts = u64::from(chunks) * if collective.is_rooted() { 1 } else { nranks.into() };
        let bytes = (self.bytes / parts).max(1);
        let mut best: Option<(SendList, u64, f64)> = None;
        for seed in 0..u64::from(seeds) {
            (self.context.about)(format!("seed {seed}"));
            let list = greedy(topology, nranks, collective, root, chunks, bytes, seed)?;
            let seconds = self.seconds_of(&list.page(&self.name()))?;
            if best.as_ref().is_none_or(|(.., known)| seconds < *known) {
                best = Some((list, seed, seconds));
            }
        }
        Ok(best.expect("there is a seed"))
    }

    /// Returns the answer of an exact search for a list of sends of this size.
    ///
    /// # Errors
    /// A size or a topology that the search does not take.
    pub fn exactly(&self, size: Size) -> Result<Answer, Problem> {
        exact(self.topology, self.nranks, self.collective, self.root, size, CONFLICTS)
    }

    /// The name of the algorithm on the page of a list of sends.
    pub fn name(&self) -> String {
        format!("Scheduled{}", self.collective)
    }

    /// Returns the seconds of a simulated run of a page.
    ///
    /// # Errors
    /// A page that is wrong.
    pub fn seconds_of(&self, text: &str) -> Result<f64, SearchError> {
        let algorithm = self.context.algorithm(text)?;
        let wrong = |found: Vec<Finding>| {
            let told = found.into_iter().map(|of| algorithm.diagnostic(of, self.nranks));
            SearchError::page(told.collect(), text)
        };
        let schedule = algorithm.schedule(self.nranks).map_err(wrong)?;
        self.run(&schedule).map_err(wrong)
    }

    /// Returns the seconds of a simulated run of a schedule.
    fn run(&self, schedule: &Schedule) -> Result<f64, Vec<Finding>> {
        let machine = Machine::of_costs(self.costs, self.topology.clone());
        let run = simulate(&join(schedule), &machine, self.elements, DType::F32, false)?;
        Ok(run.seconds)
    }

    /// Returns the least simulated time of the algorithms for the same collective, and the name of the algorithm; each
    /// parameter but the root has its default. Those whose moves a switch makes are left out, as no engine has these moves.
    pub fn fastest_of(&self, library: &[Configured]) -> Option<(f64, String)> {
        let all = library.iter().filter(|a| a.collective() == self.collective);
        let timed = all.filter_map(|algorithm| {
            (self.context.about)(algorithm.name().to_owned());
            let mut algorithm = algorithm.clone();
            algorithm.place_on(self.topology.clone());
            if self.root.0 > 0 {
                algorithm.set_text("root", &self.root.to_string()).ok()?;
            }
            let schedule = algorithm.schedule_within(self.nranks, LIMITS).ok()?;
            if schedule.has_switch() {
                return None;
            }
            Some((self.run(&schedule).ok()?, algorithm.name().to_owned()))
        });
        timed.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The bandwidth of one link, where the topology has none.
    pub fn bandwidth(&self) -> f64 {
        if self.topology.is_relative() { self.costs.bandwidth } else { 1.0 }
    }

    /// The seconds of this time for each byte.
    fn least(&self, per_byte: Fraction) -> f64 {
        per_byte.value() * self.moved() as f64 / self.bandwidth()
    }

    /// The bytes that a simulated run moves: those of the whole elements of the size.
    fn moved(&self) -> u64 {
        self.collective.bytes(self.elements, self.nranks, 4)
    }

    /// Returns the run of the least simulated time; `None` where no run is small enough to be simulated.
    fn slices(&self, packing: &Packing) -> Result<Option<SimulatedTrees>, SearchError> {
        let bytes = self.moved();
        let streams = streams(&packing.trees);
        let moves = streams * u64::from(self.nranks);
        let most = if packing.depth() > 1 || packing.at_once { SLICES } else { 1 };
        let halves = iter::successors(Some(most), |slices| Some(slices / 2).filter(|s| *s > 0));
        let fits = |slices: &u32| {
            let slices = u64::from(*slices);
            moves * moves * slices <= SHARES
                && (slices == 1 || streams * slices * SLICE_BYTES <= bytes)
        };
        let tried = while_faster(halves.filter(fits), 1.0, |slices| {
            (self.context.about)(count(*slices as usize, "slice"));
            self.seconds_of(&self.page(packing, *slices, &[])).map(Some)
        })?;
        // Of equal ones, the fewest slices.
        let best = tried.into_iter().rev().min_by(|a, b| a.1.total_cmp(&b.1));
        Ok(best.map(|(slices, seconds)| SimulatedTrees {
            at_once: packing.at_once,
            slices,
            seconds,
            algbw: bytes as f64 / seconds,
            share_of_the_bound: if seconds > 0.0 {
                self.least(packing.bound) / seconds
            } else {
                1.0
            },
        }))
    }
}
