//! The order of the cases: a run that is cut short has seen every algorithm once before it goes into depth, and cases
//! that share a kernel come together.

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundelay::{Algorithm as _, DType, ReduceOp, select};
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;
use roundelay_core::prove_source;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Form, Protocol};

use super::cases::{Case, Data, Way};
use super::engine::Engine;

/// Ranks where the algorithm takes them.
const NRANKS: u32 = 5;
/// The number of other types that a quick run has of each algorithm.
const QUICK_TYPES: usize = 1;
/// The number of other types that each algorithm has with an engine of few types; all algorithms together have all.
const FEW_TYPES: usize = 3;

/// An algorithm with its proofs, by rank count.
pub(crate) struct Subject {
    pub(crate) algorithm: &'static Configured,
    proofs: Vec<(u32, Proved)>,
    /// Algorithms that cannot be proved although they do not refuse the rank count.
    pub(crate) unproved: Vec<String>,
}

/// One case, by numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Planned {
    subject: usize,
    proof: usize,
    data: Data,
    form: Form,
    protocol: Protocol,
    way: Way,
}

/// All cases in their order.
pub(crate) struct Order {
    pub(crate) subjects: Vec<Subject>,
    cases: Vec<Planned>,
    /// The number of cases after which every algorithm was seen.
    pub(crate) first_pass: usize,
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Returns the algorithms of the library, or those of these names, proved for all rank counts.
fn subjects(only: &[String], nranks: &[u32]) -> Vec<Subject> {
    let wanted = |a: &&Configured| only.is_empty() || only.iter().any(|name| name == a.name());
    let algorithms: Vec<&'static Configured> = select::library().iter().filter(wanted).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        while let Some(&algorithm) = algorithms.get(next.fetch_add(1, Ordering::Relaxed)) {
            made.push(subject(algorithm, nranks));
        }
        made
    };
    let mut all: Vec<Subject> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores()).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let place = |subject: &Subject| {
        algorithms.iter().position(|algorithm| std::ptr::eq(*algorithm, subject.algorithm))
    };
    all.sort_by_key(place);
    all
}

fn subject(algorithm: &'static Configured, nranks: &[u32]) -> Subject {
    let (mut proofs, mut unproved) = (Vec::new(), Vec::new());
    for &nranks in nranks {
        match prove_source(algorithm, nranks) {
            Ok(proved) => proofs.push((nranks, proved)),
            // The algorithm refuses the count, such as one that is no power of two.
            Err(why) if why.iter().all(|why| why.code == Code::RankCountRefused) => {}
            Err(why) => unproved.push(format!("{nranks} ranks: {}", why[0].title)),
        }
    }
    // The usual rank count is the first, or the largest below the next power of two.
    proofs.sort_by_key(|(n, _)| (*n != NRANKS, *n > NRANKS.next_power_of_two(), u32::MAX - n));
    Subject { algorithm, proofs, unproved }
}

/// The type and op that the algorithm of that place has in a pass: after a few passes all types were seen of some
/// algorithm, and after all passes all of every one, with every op that there is.
fn kind(subject: usize, pass: usize) -> (DType, ReduceOp) {
    let others: Vec<DType> = DType::ALL.iter().copied().filter(|d| *d != DType::F32).collect();
    let dtype = others[(subject + pass) % others.len()];
    let ops: Vec<ReduceOp> = ReduceOp::ALL.iter().copied().filter(|op| op.takes(dtype)).collect();
    (dtype, ops[(subject + 3 * pass) % ops.len()])
}

/// How data and signals travel: first as the program asks, then as its slots let them, too.
fn protocols(engine: &dyn Engine, algorithm: &Configured) -> Vec<Protocol> {
    if !engine.has_kernels() {
        return vec![Protocol::Direct];
    }
    Protocol::of_loops(algorithm).to_vec()
}

impl Order {
    pub(crate) fn new(engine: &dyn Engine, only: &[String], quick: bool) -> Self {
        let subjects = subjects(only, &super::cases::rank_counts(engine, quick));
        let mut order = Self { subjects, cases: Vec::new(), first_pass: 0 };
        order.cases = order.planned(engine, quick);
        let proved = order.subjects.iter().filter(|subject| !subject.proofs.is_empty());
        order.first_pass = proved.count();
        order
    }

    fn planned(&self, engine: &dyn Engine, quick: bool) -> Vec<Planned> {
        let (usual, large) = engine.counts();
        let sums = |count| Data { count, dtype: DType::F32, op: ReduceOp::Sum };
        let types = match (quick, engine.is_brief()) {
            (true, _) => QUICK_TYPES,
            (false, true) => FEW_TYPES,
            (false, false) => DType::ALL.len() - 1,
        };
        let typed = |subject, pass| {
            let (dtype, op) = kind(subject, pass);
            Data { count: usual, dtype, op }
        };
        let mut all = Cases::default();
        // The first line alone has no more than one case of an algorithm.
        self.each(engine, |at, _, asked| all.add(at, 0, sums(usual), Form::Loops, asked[0]));
        self.each(engine, |at, nranks, asked| {
            let few = nranks[0] as usize - 1;
            let counts = if quick { vec![large] } else { vec![large, 0, 1, 7, few] };
            for count in counts {
                all.add(at, 0, sums(count), Form::Loops, asked[0]);
            }
        });
        for pass in 0..types {
            self.each(engine, |at, _, asked| {
                all.add(at, 0, typed(at, pass), Form::Loops, asked[0]);
            });
        }
        self.each(engine, |at, _, asked| {
            for protocol in &asked[1..] {
                all.add(at, 0, sums(usual), Form::Loops, *protocol);
                all.add(at, 0, sums(large), Form::Loops, *protocol);
            }
        });
        let tables = if engine.has_kernels() { &[usual, large][..] } else { &[] };
        self.each(engine, |at, _, _| {
            for count in tables {
                all.add(at, 0, sums(*count), Form::Table, Protocol::Direct);
            }
        });
        self.each(engine, |at, nranks, asked| {
            for proof in 1..nranks.len() {
                all.add(at, proof, sums(usual), Form::Loops, asked[0]);
            }
        });
        if !quick && !engine.is_brief() {
            self.each(engine, |at, nranks, asked| {
                for (proof, nranks) in nranks.iter().enumerate() {
                    for count in [large, 0, 1, 7, *nranks as usize - 1] {
                        for protocol in asked {
                            all.add(at, proof, sums(count), Form::Loops, *protocol);
                        }
                        if engine.has_kernels() {
                            all.add(at, proof, sums(count), Form::Table, Protocol::Direct);
                        }
                    }
                    for pass in 0..types {
                        for protocol in asked {
                            all.add(at, proof, typed(at, pass), Form::Loops, *protocol);
                        }
                    }
                }
            });
        }
        for &way in engine.other_ways() {
            self.each(engine, |at, _, asked| {
                let (sums, typed) = (sums(usual), typed(at, 1));
                for protocol in asked.iter().take(if way == Way::Driven { 1 } else { asked.len() })
                {
                    all.add_way(way, at, 0, sums, (Form::Loops, *protocol));
                }
                let other = match way {
                    Way::Each { .. } => (Form::Table, Protocol::Direct),
                    Way::Driven => (Form::Loops, asked[0]),
                    Way::One | Way::Traced => return,
                };
                all.add_way(way, at, 0, typed, other);
            });
        }
        all.cases.retain(|case| engine.lacks(case.data.dtype).is_none());
        all.cases
    }

    /// Every algorithm that was proved, with its rank counts and protocols.
    fn each(&self, engine: &dyn Engine, mut add: impl FnMut(usize, &[u32], &[Protocol])) {
        for (at, subject) in self.subjects.iter().enumerate() {
            let nranks: Vec<u32> = subject.proofs.iter().map(|(nranks, _)| *nranks).collect();
            if !nranks.is_empty() {
                add(at, &nranks, &protocols(engine, subject.algorithm));
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.cases.len()
    }

    /// The case of that number, and the place of its algorithm.
    pub(crate) fn case(&self, at: usize) -> (usize, Case<'_>) {
        let Planned { subject, proof, data, form, protocol, way } = self.cases[at];
        let Subject { algorithm, proofs, .. } = &self.subjects[subject];
        let (nranks, proved) = &proofs[proof];
        (subject, Case { algorithm, proved, nranks: *nranks, data, form, protocol, way })
    }
}

/// Cases in order, each of them once.
#[derive(Default)]
struct Cases {
    cases: Vec<Planned>,
    seen: HashSet<Planned>,
}

impl Cases {
    fn add(&mut self, subject: usize, proof: usize, data: Data, form: Form, protocol: Protocol) {
        self.add_way(Way::One, subject, proof, data, (form, protocol));
    }

    fn add_way(
        &mut self,
        way: Way,
        subject: usize,
        proof: usize,
        data: Data,
        (form, protocol): (Form, Protocol),
    ) {
        let case = Planned { subject, proof, data, form, protocol, way };
        if self.seen.insert(case) {
            self.cases.push(case);
        }
    }
}
