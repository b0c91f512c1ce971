//! The algorithms that may become a class: those of the library for meshes with dead links, and those that are found.

use std::rc::Rc;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code;
use roundelay_core::executor::Executor;
use roundelay_core::ids::RankId;
use roundelay_core::units::count;

use super::ExecutorSearch;
use super::shortest::{self, Roots};
use super::waves::{Waves, Weighted};
use crate::packing::{Packing, pack};
use crate::search::{SearchError, while_faster};
use crate::steps::greedy;

/// The ring of the published entry.
pub(super) const RING: &str = "TwistedRingAllReduce(ring = around(topology))";
/// The algorithms of the library.
const LIBRARY: [&str; 6] = [
    "PushedOneShotAllReduce",
    "OneShotAround",
    "TwoShotAround",
    "MeshAround(slices = 1)",
    "MeshAround(slices = 6)",
    RING,
];
/// The numbers of slices, less one where waves are odd: beats are even, and none is idle.
const SLICES: [usize; 11] = [1, 3, 5, 7, 9, 11, 13, 17, 21, 29, 37];
/// The most moves and signals of an algorithm, roughly.
const MOVES: usize = 1 << 15;

/// An algorithm on the machine.
pub(super) struct Candidate {
    /// The name of the algorithm.
    pub(super) name: String,
    /// The algorithm with its arguments.
    pub(super) call: String,
    /// The source of the algorithm, if it is found.
    pub(super) page: Option<Rc<str>>,
    /// An executor that runs it for all sizes.
    pub(super) executor: Executor,
}

impl ExecutorSearch<'_> {
    /// Returns all candidates: those of the library that run on the machine first, then those that are found.
    pub(super) fn candidates(&self) -> Result<Vec<Candidate>, SearchError> {
        let mut all = Vec::new();
        for call in LIBRARY {
            (self.context.about)(call.to_owned());
            let name = call.split('(').next().unwrap_or(call).to_owned();
            let known = self.compiled(&self.alone(call), None);
            // The contest's form has flags that are lost if they are posted twice.
            let known = known.ok().filter(|executor| (self.exports)(executor).is_ok());
            all.extend(known.map(|executor| Candidate {
                name,
                call: call.to_owned(),
                page: None,
                executor,
            }));
        }
        for (name, docs, waves) in self.found_waves()? {
            self.slices(&name, &docs, &waves, &mut all)?;
        }
        Ok(all)
    }

    /// Returns the text of an executor that runs one algorithm for all sizes.
    fn alone(&self, call: &str) -> String {
        self.executor("", &format!("    otherwise => {call};"))
    }

    /// Returns the waves that are found for the machine, each with its name and the first line of its comment.
    ///
    /// # Errors
    /// E0603 where data does not get from each rank to all others, and the other errors of the searches.
    fn found_waves(&self) -> Result<Vec<(String, String, Waves)>, SearchError> {
        let (topology, nranks) = (&*self.topology, self.topology.nranks());
        let of = |collective| pack(topology, nranks, collective, RankId(0), None);
        (self.context.about)("trees".to_owned());
        let (up, down) = (of(Collective::ReduceScatter)?, of(Collective::AllGather)?);
        let weighted = |packing: &Packing| -> Vec<Weighted> {
            packing.trees.iter().map(|of| (of.tree.clone(), of.weight)).collect()
        };
        let ranks = count(nranks as usize, "rank");
        let mut found = Vec::new();
        let mut take = |name: &str, how: String, waves: Option<Waves>| {
            let docs = format!("AllReduce of {ranks} {how}.");
            found.extend(waves.map(|waves| (name.to_owned(), docs, waves)));
        };
        for (name, whose, roots) in [
            ("CentralAllReduce", "the ranks in the middle", Roots::Central),
            ("ShortestAllReduce", "all ranks", Roots::All),
        ] {
            let trees = shortest::trees(topology, roots);
            let waves = Waves::of_trees(nranks, &trees, &trees);
            let how = format!("along {}, the shortest of {whose}", count(trees.len(), "tree"));
            take(name, how, waves);
        }
        // Trees that are used in both directions need links in both.
        if let Ok(packing) = of(Collective::AllReduce) {
            let trees = weighted(&packing);
            let waves = Waves::of_trees(nranks, &trees, &trees);
            take("PackedAllReduce", format!("along {}", count(trees.len(), "tree")), waves);
        }
        let how = format!("up {} and down {}", count(up.trees.len(), "tree"), down.trees.len());
        let waves = Waves::of_trees(nranks, &weighted(&up), &weighted(&down));
        take("TwoPhaseAllReduce", how, waves);
        let sends = greedy(topology, nranks, Collective::AllReduce, RankId(0), 1, 1 << 10, 0)?;
        let how = "in pieces that are matched with free links".to_owned();
        take("MatchedAllReduce", how, Waves::of_sends(&sends));
        Ok(found)
    }

    /// Adds the waves in several numbers of slices, until more do not help the largest size.
    fn slices(
        &self,
        name: &str,
        docs: &str,
        waves: &Waves,
        all: &mut Vec<Candidate>,
    ) -> Result<(), SearchError> {
        let page: Rc<str> = waves.page(name, docs, &self.text).into();
        let largest = self.sizes.iter().max().copied().unwrap_or(0);
        let odd = waves.number() % 2;
        let numbers = SLICES.map(|slices| if slices > 1 { slices - odd } else { 1 });
        while_faster(numbers.into_iter(), 1.02, |&slices| {
            let nranks = waves.nranks as usize;
            if slices > 1 && slices * (waves.moves() + nranks * nranks) > MOVES {
                return Ok(None);
            }
            (self.context.about)(format!("{name}, {}", count(slices, "slice")));
            let call = format!("{name}(slices = {slices})");
            let text = format!("{page}{}", self.alone(&call));
            let executor = match self.compiled(&text, None) {
                Ok(executor) => executor,
                // Signals go in both directions of a link.
                Err(errors) if errors.iter().all(|e| e.code == Code::MissingLink) => {
                    return Ok(None);
                }
                Err(errors) => return Err(SearchError::page(errors, text)),
            };
            let lost = executor.prove_with(self.signals);
            lost.map_err(|errors| SearchError::page(errors, text))?;
            let seconds = self.seconds(&executor, largest)?;
            let page = Some(page.clone());
            all.push(Candidate { name: name.to_owned(), call, page, executor });
            Ok(Some(seconds))
        })
        .map(drop)
    }
}
