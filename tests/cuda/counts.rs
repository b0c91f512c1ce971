//! Golden figures of kernels: the instructions, accesses, waits and barriers of a block, as the interpreter of PTX counts
//! them without polls in vain. Instructions are counted and not timed: they are the same on each machine. The model of
//! the GPU has its walk from them.

use std::fmt::Write as _;
use std::thread;

use expect_test::expect_file;
use roundelay_core::ids::OpId;
use roundelay_core::optimize::{Goal, Level};
use roundelay_core::schedule::{OpKind, SignalKind};
use roundelay_core::verify::Callers;
use roundelay_export::cuda::{Form, Kernel, Protocol, Spec};
use roundelay_kernels::cuda::{Target, ptx};
use roundelay_kernels::grid::WalkCost;
use roundelay_kernels::interpreter::Interpreted;
use roundelay_kernels::shim::ShimJob;
use roundelay_ptx::machine::Counters;
use roundelay_tests::root;

use super::runs::{code, inputs, loops, named, on_the_host, proved, spec};

/// Threads of a block: two warps that move, and the one that walks.
const THREADS: u32 = 96;
/// Elements of a block of data of each rank, and twice as many: whole rounds of the loops that move.
const PIECES: [u64; 2] = [2048, 4096];
/// The numbers of ranks.
const RANKS: [u32; 2] = [4, 8];

/// A class of kernels.
#[derive(Clone, Copy)]
struct Class {
    name: &'static str,
    form: Form,
    protocol: Protocol,
    level: Level,
}

const fn direct(name: &'static str) -> Class {
    let (form, protocol) = (Form::Loops, Protocol::Direct);
    Class { name, form, protocol, level: Level::O2 }
}

const fn slots(name: &'static str, protocol: Protocol) -> Class {
    Class { protocol, ..direct(name) }
}

const fn table(name: &'static str, level: Level) -> Class {
    Class { form: Form::Table, level, ..direct(name) }
}

const CLASSES: [Class; 11] = [
    direct("RingAllReduce"),
    direct("MeshAllReduce"),
    direct("OneShotMeshAllReduce"),
    direct("TreeAllReduce"),
    direct("PairwiseAllToAll"),
    slots("NcclRingAllReduce", Protocol::Simple),
    slots("NcclRingAllReduce", Protocol::Ll),
    slots("NcclRingAllReduce", Protocol::Ll128),
    slots("PushedOneShotAllReduce", Protocol::Ll),
    table("MeshAllReduce", Level::O2),
    table("RingAllReduce", Level::O0),
];

/// The counts of all blocks of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counted {
    walker: Counters,
    movers: Counters,
}

impl Class {
    fn kernel(&self, nranks: u32) -> Kernel {
        let algorithm = named(self.name);
        let proved = proved(algorithm, nranks).expect("it takes the ranks");
        let spec = Spec { protocol: self.protocol, ..spec(algorithm) };
        match self.form {
            Form::Loops => loops(algorithm, &proved, spec),
            Form::Table => {
                let goal = Goal { level: self.level, callers: Callers::One, reassociate: false };
                let made = proved.optimize(goal).expect("it is proved again");
                Kernel::of_table(&made, spec).unwrap_or_else(|refused| panic!("{}", refused.title))
            }
            Form::Switch => {
                let made = Kernel::of_switch(&proved, spec);
                made.unwrap_or_else(|refused| panic!("{}", refused.title))
            }
        }
    }

    fn label(&self) -> String {
        let Self { name, form, protocol, level } = self;
        let how = match form {
            Form::Table => format!("table {level}"),
            Form::Switch => "switch".to_owned(),
            Form::Loops => protocol.name().to_owned(),
        };
        format!("{name} {how}")
    }
}

/// A kernel for the most common GPU.
fn interpreted(kernel: &Kernel) -> Interpreted {
    let target = Target::new("sm_90".parse().expect("an architecture"));
    let target = Target { threads: THREADS, ..target };
    let ptx = ptx(&code(&kernel.text), &kernel.name, &target).expect("it compiles");
    Interpreted::new(&ptx, &kernel.name).unwrap_or_else(|error| panic!("{error}"))
}

fn counted(kernel: &Kernel, interpreted: &Interpreted, count: u64, seed: u64) -> Counted {
    let inputs = inputs(kernel, count);
    let job = ShimJob { repeats: 1, parts: 1, ..ShimJob::new(kernel, count, &inputs) };
    let ran = interpreted.count(&job, seed);
    let (outcome, warps) = ran.unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
    assert!(!outcome.aborted, "{}: a wait gave up", kernel.name);
    let (walker, movers) = warps.split_last().expect("a block has warps");
    let movers = movers.iter().fold(Counters::default(), |sum, warp| sum + *warp);
    Counted { walker: *walker, movers }
}

/// The counts of a class: with few ranks, with few ranks and twice the data, and with many ranks.
struct Figures {
    class: Class,
    kernels: [Kernel; 2],
    few: Counted,
    twice: Counted,
    many: Counted,
}

impl Figures {
    fn of(class: Class) -> Self {
        let kernels = RANKS.map(|nranks| class.kernel(nranks));
        let [few, many] = &kernels;
        let program = interpreted(few);
        // The loops of an author are one text for all rank counts.
        let other = (code(&few.text) != code(&many.text)).then(|| interpreted(many));
        let of = |kernel: &Kernel, program: &Interpreted, elements: u64| {
            let units = kernel.schedule.collective.max_units(kernel.schedule.nranks);
            let count = u64::from(kernel.schedule.nranks) * elements / units;
            counted(kernel, program, count, 0)
        };
        let counts = [of(few, &program, PIECES[0]), of(few, &program, PIECES[1])];
        let many = of(many, other.as_ref().unwrap_or(&program), PIECES[0]);
        let [few, twice] = counts;
        Self { class, kernels, few, twice, many }
    }

    /// Moves of all streams.
    fn moves(&self, kernel: usize) -> u64 {
        let ops = &self.kernels[kernel].schedule.ops;
        ops.iter().filter(|op| op.kind == OpKind::Move).count() as u64
    }

    fn streams(&self, kernel: usize) -> u64 {
        self.kernels[kernel].schedule.streams.len() as u64
    }

    /// A count of the many ranks' block, and of a step more.
    fn of_step(&self, of: impl Fn(&Counted) -> u64) -> String {
        let (few, many) = (of(&self.few), of(&self.many));
        let steps = |kernel| self.moves(kernel) as f64 / self.streams(kernel) as f64;
        let each = |count: u64, kernel| count as f64 / self.streams(kernel) as f64;
        let (blocks, more) = ((each(few, 0), each(many, 1)), steps(1) - steps(0));
        let step = (more > 0.0).then(|| number((blocks.1 - blocks.0) / more));
        let step = step.unwrap_or_else(|| "-".to_owned());
        format!("{} | {} | {step}", number(blocks.0), number(blocks.1))
    }

    fn of_block(&self, count: u64) -> String {
        number(count as f64 / self.streams(1) as f64)
    }

    /// The instructions of a stream's walk by the model's numbers.
    fn modelled(&self, kernel: usize) -> f64 {
        let walk = WalkCost::for_form(self.class.form, self.class.protocol);
        let schedule = &self.kernels[kernel].schedule;
        let of_op = |op: u32| {
            let op = schedule.op(OpId(op));
            let operands = schedule.srcs(op).len() + schedule.dsts(op).len();
            match op.kind {
                OpKind::Move => walk.r#move + walk.operand * operands as f64,
                // Lines say it.
                _ if self.class.protocol.has_lines()
                    && schedule.channel(op).kind == SignalKind::Tail =>
                {
                    0.0
                }
                OpKind::Post | OpKind::Wait => walk.signal,
            }
        };
        let streams = schedule.streams.iter();
        let ops = streams.flat_map(|stream| stream.first.0..stream.first.0 + stream.len);
        walk.start + ops.map(of_op).sum::<f64>() / self.streams(kernel) as f64
    }
}

/// A number with at most one decimal.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn figures() -> Vec<Figures> {
    thread::scope(|scope| {
        let run = |class| scope.spawn(move || Figures::of(class));
        let running: Vec<_> = CLASSES.map(run).into_iter().collect();
        running.into_iter().map(|one| one.join().expect("it counts")).collect()
    })
}

#[test]
fn what_a_block_does_is_known() {
    let all = figures();
    let mut rows = format!(
        "Counts of a block of a stream, the mean of all streams, for sm_90, f32: {THREADS} threads, of which a \
         warp walks and two move.\nEach rank has a piece of {} elements for each rank. No poll is in vain.\n\n",
        PIECES[0]
    );
    let _ = writeln!(
        rows,
        "the warp that walks | instructions, {} ranks | {} ranks | a move more | by the model, {} ranks | {} ranks | \
         loads of tables, {} ranks",
        RANKS[0], RANKS[1], RANKS[0], RANKS[1], RANKS[1]
    );
    for one in &all {
        let (walk, loads) =
            (one.of_step(|c| c.walker.instructions), one.of_block(one.many.walker.global_loads));
        let (few, many) = (number(one.modelled(0)), number(one.modelled(1)));
        let _ = writeln!(rows, "{} | {walk} | {few} | {many} | {loads}", one.class.label());
    }
    let _ = writeln!(
        rows,
        "\nthe warps that move | instructions, {} ranks | {} ranks | a move more | a load of 16 bytes more | sectors \
         loaded, {} ranks | stored | of a load of 16 bytes | of a store | strong loads | strong stores | hand-overs | \
         reductions | fences | barriers",
        RANKS[0], RANKS[1], RANKS[1]
    );
    for one in &all {
        let Counted { movers: m, .. } = one.many;
        let loads = one.twice.movers.wide_loads - one.few.movers.wide_loads;
        let more = one.twice.movers.instructions - one.few.movers.instructions;
        let each = |sectors: u64, accesses: u64| number(sectors as f64 / accesses as f64);
        let counts = [m.load_sectors, m.store_sectors];
        let others =
            [m.strong_loads, m.strong_stores, m.handovers, m.reductions, m.fences, m.barriers];
        let join = |counts: &[u64]| {
            counts.iter().map(|count| one.of_block(*count)).collect::<Vec<_>>().join(" | ")
        };
        let _ = writeln!(
            rows,
            "{} | {} | {} | {} | {} | {} | {}",
            one.class.label(),
            one.of_step(|c| c.movers.instructions),
            each(more, loads),
            join(&counts),
            each(m.wide_load_sectors, m.wide_loads),
            each(m.wide_store_sectors, m.wide_stores),
            join(&others)
        );
    }
    expect_file![root().join("tests/golden/counts.txt")].assert_eq(&rows);
    walks_are_those_of_the_model(&all);
}

/// Holds the model's instructions of a walk against those that were counted: each class, and the mean of each kind.
fn walks_are_those_of_the_model(all: &[Figures]) {
    let walks = [
        (Form::Table, Protocol::Direct),
        (Form::Loops, Protocol::Direct),
        (Form::Loops, Protocol::Simple),
    ];
    for (form, protocol) in walks {
        let walk = WalkCost::for_form(form, protocol);
        let same = |one: &&Figures| WalkCost::for_form(one.class.form, one.class.protocol) == walk;
        let mut ratios = Vec::new();
        for one in all.iter().filter(same) {
            for (kernel, counted) in [one.few, one.many].iter().enumerate() {
                let counted = counted.walker.instructions as f64 / one.streams(kernel) as f64;
                let ratio = one.modelled(kernel) / counted;
                assert!((ratio - 1.0).abs() < 0.2, "{}: {ratio:.3} of the walk", one.class.label());
                ratios.push(ratio);
            }
        }
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        assert!((mean - 1.0).abs() < 0.03, "{form}, {}: {mean:.3} of the walks", protocol.name());
    }
}

#[test]
fn counts_are_those_of_every_order() {
    let lined = [Protocol::Ll, Protocol::Ll128].map(|p| slots("PushedMeshAllReduce", p));
    for class in [direct("RingAllReduce")].into_iter().chain(lined) {
        let kernel = class.kernel(3);
        let program = interpreted(&kernel);
        let first = counted(&kernel, &program, 1000, 0);
        for seed in 1..6 {
            assert_eq!(counted(&kernel, &program, 1000, seed), first, "{}, {seed}", class.label());
        }
        // A run without polls in vain has the right result, too.
        let inputs = inputs(&kernel, 1000);
        let job = ShimJob { repeats: 1, parts: 1, ..ShimJob::new(&kernel, 1000, &inputs) };
        let (outcome, _) = program.count(&job, 0).unwrap_or_else(|error| panic!("{error}"));
        let proved = proved(named(class.name), 3).expect("it takes three ranks");
        assert_eq!(outcome.outputs, on_the_host(&proved, &kernel, 1000, &inputs));
    }
}
