//! The formulas of the book's chapter on costs: each equals the simulator's time of the algorithm's schedule, and each
//! size from which one algorithm is faster than another is the simulator's. The chapter's two tables are written here:
//! `UPDATE_EXPECT=1 cargo test -p roundelay-tests formulas::`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use roundelay::select::{library, size, time};
use roundelay::{Algorithm as _, DType, Topology};
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_simulate::{Machine, simulate};
use roundelay_tests::{compile, root};

/// The latency of a step in seconds, and the bandwidth of a link in bytes a second.
const L: f64 = 2e-6;
const B: f64 = 25e9;

/// The links between the ranks, with equal latency between every two.
#[derive(Clone, Copy, PartialEq)]
enum Links {
    /// A link each way for every two.
    Mesh,
    /// A port for each, at one switch: two hops.
    Port,
}

use Links::{Mesh, Port};

impl Links {
    fn topology(self, nranks: u32) -> String {
        match self {
            Mesh => format!("full_mesh({nranks}, 25GB/s, 2us)"),
            Port => format!("crossbar({nranks}, 25GB/s, 1us)"),
        }
    }
}

/// Values of parameters.
type Set = &'static [(&'static str, &'static str)];

/// An algorithm of the library, or the program of the chapter in a file, and the time that it takes:
/// `steps(n)` L + `volume(n)` S/B.
struct Formula {
    algorithm: &'static str,
    set: Set,
    on: &'static [Links],
    powers_of_two: bool,
    text: &'static str,
    steps: fn(f64) -> f64,
    volume: fn(f64) -> f64,
}

const BOTH: &[Links] = &[Mesh, Port];
/// MPI's tree: whole buffers along it.
const WHOLE: Set = &[("tree", "binomial(0)"), ("slices", "1")];

fn up(n: f64) -> f64 {
    n.log2().ceil()
}

fn down(n: f64) -> f64 {
    n.log2().floor()
}

const fn formula(
    algorithm: &'static str,
    on: &'static [Links],
    text: &'static str,
    steps: fn(f64) -> f64,
    volume: fn(f64) -> f64,
) -> Formula {
    Formula { algorithm, set: &[], on, powers_of_two: false, text, steps, volume }
}

impl Formula {
    const fn powers_of_two(mut self) -> Self {
        self.powers_of_two = true;
        self
    }

    const fn set(mut self, set: Set) -> Self {
        self.set = set;
        self
    }
}

const RING_TEXT: &str = "2(n-1) L + 2(n-1)/n S/B";
const HALVING_TEXT: &str = "2 log2(n) L + 2(n-1)/n S/B";

#[rustfmt::skip] // a line a formula
const FORMULAS: [Formula; 18] = [
    formula("ring.coll", BOTH, RING_TEXT, |n| 2.0 * (n - 1.0), |n| 2.0 * (n - 1.0) / n),
    formula("RingAllReduce", BOTH, RING_TEXT, |n| 2.0 * (n - 1.0), |n| 2.0 * (n - 1.0) / n),
    formula("RingReduceScatter", BOTH, "(n-1) L + (n-1)/n S/B", |n| n - 1.0, |n| (n - 1.0) / n),
    formula("RingAllGather", BOTH, "(n-1) L + (n-1)/n S/B", |n| n - 1.0, |n| (n - 1.0) / n),
    formula("halving.coll", BOTH, HALVING_TEXT, |n| 2.0 * n.log2(), |n| 2.0 * (n - 1.0) / n).powers_of_two(),
    formula("HalvingDoublingAllReduce", BOTH, HALVING_TEXT, |n| 2.0 * n.log2(), |n| 2.0 * (n - 1.0) / n).powers_of_two(),
    formula("HalvingDoublingReduceScatter", BOTH, "log2(n) L + (n-1)/n S/B", f64::log2, |n| (n - 1.0) / n).powers_of_two(),
    formula("HalvingDoublingAllGather", BOTH, "log2(n) L + (n-1)/n S/B", f64::log2, |n| (n - 1.0) / n).powers_of_two(),
    formula("tree.coll", &[Mesh], "(ceil(log2 n) + floor(log2 n)) (L + S/B)", |n| up(n) + down(n), |n| up(n) + down(n)),
    formula("tree.coll", &[Port], "(ceil(log2 n) + floor(log2 n)) L + 2 ceil(log2 n) S/B", |n| up(n) + down(n), |n| 2.0 * up(n)),
    formula("TreeReduce", &[Mesh], "floor(log2 n) (L + S/B)", down, down),
    formula("TreeReduce", &[Port], "floor(log2 n) L + ceil(log2 n) S/B", down, up),
    formula("TreeBroadcast", &[Mesh], "floor(log2 n) (L + S/B)", down, down),
    formula("TreeBroadcast", &[Port], "log2(n) L + log2(n) (log2(n)+1)/2 S/B", f64::log2, |n| n.log2() * (n.log2() + 1.0) / 2.0).powers_of_two(),
    formula("TreeAllReduce", &[Mesh], "2 floor(log2 n) (L + S/B)", |n| 2.0 * down(n), |n| 2.0 * down(n)).set(WHOLE),
    formula("NhrAllReduce", BOTH, "2 ceil(log2 n) L + 2(n-1)/n S/B", |n| 2.0 * up(n), |n| 2.0 * (n - 1.0) / n),
    formula("MeshAllReduce", &[Mesh], "2 L + 2/n S/B", |_| 2.0, |n| 2.0 / n),
    formula("MeshAllReduce", &[Port], "2 L + 2(n-1)/n S/B", |_| 2.0, |n| 2.0 * (n - 1.0) / n),
];

/// An algorithm on a topology: seconds that no byte shortens, and shares of S one after another.
#[derive(Clone, Copy)]
struct Line {
    algorithm: &'static str,
    set: Set,
    latency: f64,
    volume: f64,
}

/// Which of two algorithms is the slower, and from which size.
struct Beaten {
    topology: &'static str,
    /// The topology in words.
    place: &'static str,
    slower: Line,
    faster: Line,
    why: &'static str,
}

const NEAR: Set = &[("near_first", "true")];
/// Leaves of four hosts, whose uplinks carry a quarter of the hosts' bandwidth.
const LEAVES: &str = "spine_leaf(2, 4, 2, 4, 25GB/s, 1us)";

const RING: Line = Line { algorithm: "RingAllReduce", set: &[], latency: 14.0 * L, volume: 1.75 };
const HALVING: Line =
    Line { algorithm: "HalvingDoublingAllReduce", set: &[], latency: 6.0 * L, volume: 1.75 };
const TREE: Line = Line { algorithm: "tree.coll", set: &[], latency: 6.0 * L, volume: 6.0 };
/// In each of the 14 rounds two ranks send to the other leaf, over four links of 1 us.
const RING_ON_LEAVES: Line = Line { latency: 14.0 * 4e-6, ..RING };

const BEATEN: [Beaten; 6] = [
    Beaten {
        topology: "full_mesh(8, 25GB/s, 2us)",
        place: "full mesh, 8 ranks",
        slower: RING,
        faster: HALVING,
        why: "1.75 S both, 14 steps against 6",
    },
    Beaten {
        topology: "full_mesh(8, 25GB/s, 2us)",
        place: "full mesh, 8 ranks",
        slower: TREE,
        faster: HALVING,
        why: "6 steps both, 6 S against 1.75 S",
    },
    Beaten {
        topology: "full_mesh(8, 25GB/s, 2us)",
        place: "full mesh, 8 ranks",
        slower: TREE,
        faster: RING,
        why: "8 steps less, 4.25 S more",
    },
    Beaten {
        topology: "full_mesh(6, 25GB/s, 2us)",
        place: "full mesh, 6 ranks",
        slower: Line { latency: 5.0 * L, volume: 5.0, ..TREE },
        faster: Line { latency: 10.0 * L, volume: 10.0 / 6.0, ..RING },
        why: "5 steps less, 3.33 S more",
    },
    Beaten {
        topology: LEAVES,
        place: "two leaves of 4 ranks",
        // Two steps across, of S/2 for each of the four hosts that share one B; then S/4 and S/8, twice.
        slower: Line {
            latency: 16e-6,
            volume: 2.0 * (4.0 / 2.0 + 1.0 / 4.0 + 1.0 / 8.0),
            ..HALVING
        },
        faster: RING_ON_LEAVES,
        why: "4 messages of S/2 share a link",
    },
    Beaten {
        topology: LEAVES,
        place: "two leaves of 4 ranks",
        slower: Line {
            set: NEAR,
            latency: 16e-6,
            volume: 2.0 * (1.0 / 2.0 + 1.0 / 4.0 + 4.0 / 8.0),
            ..HALVING
        },
        faster: RING_ON_LEAVES,
        why: "4 messages of S/8 share a link",
    },
];

/// The algorithm as `simulate --set` would have it.
fn schedule(name: &str, set: Set, nranks: u32) -> Schedule {
    let mut algorithm: Configured = if Path::new(name).extension().is_some() {
        let path = root().join("book/src/listings/costs").join(name);
        let text = std::fs::read_to_string(path).expect("the chapter has it");
        let source = Source::from_text(name, &text);
        let program = compile(&source, Frontend::File).expect("it is right");
        Configured::new(program.algorithms.into_iter().next().expect("one algorithm"), &source)
    } else {
        library().iter().find(|a| a.name() == name).expect("it is in the library").clone()
    };
    for (parameter, value) in set {
        algorithm.set_text(parameter, value).expect("its parameter");
    }
    algorithm.schedule(nranks).expect("it can be laid out")
}

/// Seconds by the simulator for `bytes` bytes, signals and reductions free.
fn simulated(schedule: &Schedule, topology: &str, bytes: u64) -> f64 {
    let topology: Topology = topology.parse().expect("a topology");
    let count = bytes / 4 / schedule.collective.max_units(schedule.nranks);
    let run = simulate(schedule, &Machine::new(Arc::new(topology)), count, DType::F32, false)
        .expect("it ends");
    assert_eq!(run.bytes, bytes, "pieces are whole elements, so nothing is rounded");
    run.seconds
}

/// Compares up to the error of floats in sums of some dozen terms: pieces are whole elements.
fn same(simulated: f64, formula: f64) -> bool {
    (simulated / formula - 1.0).abs() < 1e-9
}

/// Sizes of which every piece of the algorithms here is whole, from a few bytes to a gigabyte.
fn sizes(nranks: u32) -> impl Iterator<Item = u64> {
    [1, 3, 64, 1000, 1 << 14, 1 << 20, 25_000_000]
        .into_iter()
        .map(move |k| 4 * k * u64::from(nranks))
}

impl Formula {
    fn seconds(&self, nranks: u32, bytes: u64) -> f64 {
        let n = f64::from(nranks);
        (self.steps)(n) * L + (self.volume)(n) * bytes as f64 / B
    }
}

#[test]
fn formulas_are_what_the_simulator_says() {
    let mut compared = 0;
    for formula in &FORMULAS {
        let Formula { algorithm, set, on, powers_of_two, text, .. } = formula;
        for nranks in [2_u32, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32] {
            if *powers_of_two && !nranks.is_power_of_two() {
                continue;
            }
            let schedule = schedule(algorithm, set, nranks);
            for links in *on {
                let topology = links.topology(nranks);
                for bytes in sizes(nranks) {
                    let got = simulated(&schedule, &topology, bytes);
                    let wanted = formula.seconds(nranks, bytes);
                    assert!(
                        same(got, wanted),
                        "{algorithm} of {bytes} B on {topology}: {got} s, and {text} is {wanted} s"
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1000, "{compared} runs");
}

impl Line {
    fn seconds(&self, bytes: f64) -> f64 {
        self.latency + self.volume * bytes / B
    }

    fn name(&self) -> String {
        let set: Vec<_> = self.set.iter().map(|(name, value)| format!("{name}={value}")).collect();
        match &set[..] {
            // The programs of the chapter are known by their names.
            [] if self.algorithm == "ring.coll" => "`FirstRing`".to_owned(),
            [] if self.algorithm == "halving.coll" => "`MyHalvingDoubling`".to_owned(),
            [] if self.algorithm == "tree.coll" => "`MyTree`".to_owned(),
            [] => format!("`{}`", self.algorithm),
            _ => format!("`{}` with `{}`", self.algorithm, set.join("`, `")),
        }
    }
}

impl Beaten {
    fn nranks(&self) -> u32 {
        let topology: Topology = self.topology.parse().expect("a topology");
        topology.nranks()
    }

    /// Returns the least number of bytes; `None` for all sizes.
    fn from(&self) -> Option<f64> {
        let ahead = self.faster.latency - self.slower.latency;
        (ahead > 0.0).then(|| ahead * B / (self.slower.volume - self.faster.volume))
    }
}

#[test]
fn each_is_beaten_where_the_simulator_has_it() {
    for beaten in &BEATEN {
        let Beaten { topology, slower, faster, .. } = beaten;
        let nranks = beaten.nranks();
        let [a, b] = [slower, faster].map(|line| {
            let schedule = schedule(line.algorithm, line.set, nranks);
            for bytes in sizes(nranks) {
                let (got, wanted) =
                    (simulated(&schedule, topology, bytes), line.seconds(bytes as f64));
                let name = line.name();
                assert!(
                    same(got, wanted),
                    "{name} of {bytes} B on {topology}: {got} s, not {wanted}"
                );
            }
            schedule
        });
        let loses = |bytes: u64| simulated(&a, topology, bytes) > simulated(&b, topology, bytes);
        let whole = |bytes: f64| bytes as u64 / 4 / u64::from(nranks) * 4 * u64::from(nranks);
        match beaten.from() {
            Some(from) => {
                assert!(
                    !loses(whole(0.99 * from)) && loses(whole(1.01 * from)),
                    "{topology}: {from}"
                );
            }
            None => assert!(sizes(nranks).all(loses), "{topology}"),
        }
    }
}

/// On every full mesh that halving and doubling admits, and for all sizes: both lines have one slope.
#[test]
fn halving_and_doubling_beats_the_ring_on_every_full_mesh() {
    for nranks in [4, 8, 16, 32] {
        let topology = Mesh.topology(nranks);
        let [ring, halving] =
            ["RingAllReduce", "HalvingDoublingAllReduce"].map(|name| schedule(name, &[], nranks));
        for bytes in sizes(nranks) {
            let ahead = simulated(&ring, &topology, bytes) - simulated(&halving, &topology, bytes);
            let wanted = 2.0 * f64::from(nranks - 1 - nranks.ilog2()) * L;
            assert!((ahead - wanted).abs() < 1e-9, "{nranks} ranks, {bytes} B: {ahead} s");
        }
    }
    // With two ranks there is one partner, which is the neighbor.
    let [ring, halving] = ["RingAllReduce", "HalvingDoublingAllReduce"]
        .map(|name| simulated(&schedule(name, &[], 2), &Mesh.topology(2), 1 << 20));
    assert!(same(ring, halving), "{ring} s, {halving} s");
    // And other counts it refuses.
    let halving = library().iter().find(|a| a.name() == "HalvingDoublingAllReduce").unwrap();
    let refused = halving.schedule(6).expect_err("6 is no power of two");
    assert_eq!(refused[0].code, Code::RankCountRefused);
}

/// Algorithms of one formula are one line.
fn formulas() -> String {
    let nranks = 8;
    let sizes = [64 << 10, 64 << 20];
    let mut text = String::from("| algorithm | links | T |");
    for bytes in sizes {
        let _ = write!(text, " {} |", size(bytes));
    }
    text.push_str("\n|---|---|---|---|---|\n");
    for alike in FORMULAS.chunk_by(|a, b| (a.text, a.on) == (b.text, b.on)) {
        let [Formula { algorithm, set, on, text: written, .. }, ..] = alike else { continue };
        let name = |f: &Formula| {
            Line { algorithm: f.algorithm, set: f.set, latency: 0.0, volume: 0.0 }.name()
        };
        let names: Vec<_> = alike.iter().map(name).collect();
        let links = match on {
            [Mesh] => "full mesh",
            [Port] => "one port",
            _ => "both",
        };
        let _ = write!(text, "| {} | {links} | {written} |", names.join(", "));
        let schedule = schedule(algorithm, set, nranks);
        for bytes in sizes {
            let _ =
                write!(text, " {} |", time(simulated(&schedule, &on[0].topology(nranks), bytes)));
        }
        text.push('\n');
    }
    text
}

fn beaten() -> String {
    let mut text =
        String::from("| links | slower | faster | for S | because |\n|---|---|---|---|---|\n");
    for beaten in &BEATEN {
        let Beaten { place, slower, faster, why, .. } = beaten;
        let from = match beaten.from() {
            None => "every S".to_owned(),
            Some(from) => format!("above {:.0} KiB", from / 1024.0),
        };
        let (slower, faster) = (slower.name(), faster.name());
        let _ = writeln!(text, "| {place} | {slower} | {faster} | {from} | {why} |");
    }
    text
}

/// `UPDATE_EXPECT=1` writes the tables anew.
#[test]
fn the_tables_of_the_chapter_are_fresh() {
    let path = root().join("book/src/tutorial/costs.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let mut fresh = page.clone();
    for (name, table) in [("formulas", formulas()), ("beaten", beaten())] {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
        let (head, rest) = fresh.split_once(&begin).expect("where the table begins");
        let (_, tail) = rest.split_once(&end).expect("where it ends");
        fresh = [head, &begin, &table, &end, tail].concat();
    }
    if page != fresh {
        let update = std::env::var_os("UPDATE_EXPECT").is_some();
        assert!(
            update,
            "a table of costs.md is stale: UPDATE_EXPECT=1 cargo test -p roundelay-tests formulas::"
        );
        std::fs::write(path, fresh).expect("the page can be written");
    }
}
