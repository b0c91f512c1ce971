//! The algorithms that may become a class: those of the library for meshes with dead links, and those that are found.

use std::rc::Rc;
use std::sync::Arc;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::dtype::DType;
use roundelay_core::executor::Executor;
use roundelay_core::ids::RankId;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;
use roundelay_export::contest::{Export, SIGNALS, contest};
use roundelay_synthesis::packing::{Packing, pack};
use roundelay_synthesis::page::filled;
use roundelay_synthesis::steps::greedy;

use super::page::EXECUTOR;
use super::shortest::{self, Roots};
use super::waves::{Waves, Weighted};
use crate::executor::flags::SynthesisFlags;
use crate::executor::{check, compiled, simulated};
use crate::progress;
use crate::report::Failure;
use crate::synthesize::fault;
use crate::topo::count;

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

/// The machine and its links.
pub(super) struct ExecutorSearch<'a> {
    pub(super) flags: &'a SynthesisFlags,
    pub(super) text: String,
    pub(super) topology: Arc<Topology>,
}

impl ExecutorSearch<'_> {
    /// Returns all candidates: those of the library that run on the machine first, then those that are found.
    pub(super) fn candidates(&self) -> Result<Vec<Candidate>, Failure> {
        let mut all = Vec::new();
        for call in LIBRARY {
            progress::about(call.to_owned());
            let name = call.split('(').next().unwrap_or(call).to_owned();
            let known = self.compiled(None, &format!("    otherwise => {call};"));
            // The contest's form has flags that are lost if they are posted twice.
            let runs = |executor: &Executor| contest(&Export::of(executor, |_| None)).is_ok();
            let known = known.ok().filter(runs);
            all.extend(known.map(|executor| Candidate {
                name,
                call: call.to_owned(),
                page: None,
                executor,
            }));
        }
        for (name, docs, waves) in self.found()? {
            self.slices(&name, &docs, &waves, &mut all)?;
        }
        Ok(all)
    }

    /// Returns the executor with these classes, proved, or its errors; `page` has the algorithms that are found.
    pub(super) fn compiled(
        &self,
        page: Option<&str>,
        classes: &str,
    ) -> Result<Executor, (Vec<Diagnostic>, String)> {
        let text = page.unwrap_or_default().to_owned() + &self.executor("", classes);
        let source = Source::from_text("synthesized.coll", &text);
        match compiled(&source, None).map(|mut all| all.pop()) {
            Ok(Some(executor)) => Ok(executor),
            Ok(None) => Err((Vec::new(), text)),
            Err(errors) => Err((errors, text)),
        }
    }

    /// Returns the text of an executor on the machine.
    pub(super) fn executor(&self, docs: &str, classes: &str) -> String {
        let words = [
            ("DOCS", docs.to_owned()),
            ("TOPOLOGY", self.text.clone()),
            ("CLASSES", classes.to_owned()),
        ];
        filled(EXECUTOR, &words)
    }

    /// Returns the simulated seconds of a call of `bytes` bytes.
    pub(super) fn seconds(&self, executor: &Executor, bytes: u64) -> Result<f64, Failure> {
        simulated::seconds(executor, bytes, executor.ccl_buffer, DType::F32, &self.flags.links)
    }

    /// Returns the waves that are found for the machine, each with its name and the first line of its comment.
    ///
    /// # Errors
    /// E0603 where data does not get from each rank to all others, and the other errors of the searches.
    fn found(&self) -> Result<Vec<(String, String, Waves)>, Failure> {
        let (topology, nranks) = (&*self.topology, self.topology.nranks());
        let of = |collective| pack(topology, nranks, collective, RankId(0), None);
        progress::about("trees".to_owned());
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
    ) -> Result<(), Failure> {
        let page: Rc<str> = waves.page(name, docs, &self.text).into();
        let largest = self.flags.sizes.iter().max().copied().unwrap_or(0);
        let mut best = f64::INFINITY;
        let odd = waves.len() % 2;
        for slices in SLICES.map(|slices| if slices > 1 { slices - odd } else { 1 }) {
            let nranks = waves.nranks as usize;
            if slices > 1 && slices * (waves.moves() + nranks * nranks) > MOVES {
                break;
            }
            progress::about(format!("{name}, {}", count(slices, "slice")));
            let call = format!("{name}(slices = {slices})");
            let executor = match self.compiled(Some(&page), &format!("    otherwise => {call};")) {
                Ok(executor) => executor,
                // Signals go in both directions of a link.
                Err((errors, _)) if errors.iter().all(|e| e.code == Code::MissingLink) => break,
                Err((errors, text)) => return Err(fault(&errors, &text)),
            };
            check::with(&executor, SIGNALS).map_err(|errors| fault(&errors, &page))?;
            let seconds = self.seconds(&executor, largest)?;
            let page = Some(page.clone());
            all.push(Candidate { name: name.to_owned(), call, page, executor });
            if seconds > best * 1.02 {
                break;
            }
            best = best.min(seconds);
        }
        Ok(())
    }
}
