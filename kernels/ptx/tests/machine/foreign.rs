//! What modules of others need: functions that are refused at their launch, variables that live with a device, races behind
//! which a run goes on, and launches that begin early.

use std::fmt::Write as _;

use roundelay_ptx::machine::{
    Conflict, Failure, FaultKind, InitialVariable, KernelFault, Launch, LaunchError, Limits,
    RankLaunch,
};
use roundelay_ptx::program::Module;
use roundelay_ptx::{Assumption, Assumptions};

use super::{HEAD, MEMORY, fault, launch, module, words};

/// A module of several kernels, each with the name and the body.
fn kernels(declarations: &str, all: &[(&str, &str)]) -> Module {
    let (before, head) = HEAD.split_once(".visible .entry k").unwrap();
    let mut text = format!("{before}{declarations}\n");
    for (name, body) in all {
        writeln!(text, ".visible .entry {name}{head}{body}\nret;\n}}").unwrap();
    }
    Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn one<'a>(module: &'a Module, kernel: &'a str, threads: u32) -> RankLaunch<'a> {
    let parameters = MEMORY.to_le_bytes().to_vec();
    RankLaunch { block: [threads, 1, 1], parameters, ..RankLaunch::new(module, kernel) }
}

fn chain<'a>(first: &Launch<'a>, ranks: Vec<RankLaunch<'a>>) -> Launch<'a> {
    Launch { ranks, ..first.clone() }
}

#[test]
fn a_function_is_refused_at_its_launch() {
    let module = kernels(
        ".global .texref t;",
        &[
            ("good", "st.global.u32 [%d0], 7;"),
            (
                "bad",
                "wgmma.fence.sync;\nwgmma.fence.sync;\n@%p1 tex.1d.v4.s32.s32 {%r1}, [t, {%r2}];",
            ),
        ],
    );
    let found: Vec<_> = module
        .lacks
        .iter()
        .map(|lack| (lack.function.as_str(), lack.spelling.as_str(), lack.count))
        .collect();
    let bad = [("bad", "wgmma.fence.sync", 2), ("bad", "tex.1d.v4.s32.s32", 1)];
    assert_eq!(found, [("", ".texref", 1), bad[0], bad[1]]);
    let base = launch(&module, 0, 1, 1);
    assert_eq!(words(&chain(&base, vec![one(&module, "good", 4)]), 4), [7; 4]);
    let refused = chain(&base, vec![one(&module, "bad", 4)]).run().unwrap_err();
    let Failure::Launch(LaunchError::Lacks(name, lacks)) = &refused else { panic!("{refused}") };
    assert_eq!((name.as_str(), lacks.len(), lacks[0].why.line), ("bad", 2, 29));
    assert!(refused.to_string().contains("`wgmma.fence.sync` of bad (2 x)"), "{refused}");
}

/// A call of a function that is refused is refused, and the whole module where all of it is wanted.
#[test]
fn a_function_is_refused_with_one_that_it_calls() {
    let text = "\
.version 9.0
.target sm_90
.address_size 64
.func inner()
{
wgmma.fence;
ret;
}
.visible .entry k()
{
call inner;
ret;
}
";
    let module = Module::parse(text).unwrap();
    let refused = Launch::new(vec![RankLaunch::new(&module, "k")], Vec::new()).run();
    assert!(matches!(refused, Err(Failure::Launch(LaunchError::Lacks(..)))), "{refused:?}");
    assert_eq!(Module::parse_whole(text).unwrap_err().line, 6);
}

const COUNTS: &str = "\
.reg .u64 %a;
mov.u64 %a, counter;
ld.global.u32 %r1, [%a];
add.u32 %r1, %r1, 1;
st.global.u32 [%a], %r1;";

/// Two launches of a device count in one variable, and a launch of another device in its own.
#[test]
fn variables_live_with_a_device() {
    let module = kernels(".global .align 4 .u32 counter = 5;", &[("k", COUNTS)]);
    let base = launch(&module, 0, 1, 1);
    let on = |device, after: &[usize]| RankLaunch {
        device,
        after: after.to_vec(),
        ..one(&module, "k", 1)
    };
    let mut all = chain(&base, vec![on(0, &[]), on(1, &[]), on(0, &[0])]);
    let values = |all: &Launch| {
        let state = all.run().unwrap_or_else(|failure| panic!("{failure}"));
        let of = |launch: usize| state.variables[state.variables_of[launch]]["counter"].clone();
        [0, 1, 2].map(|launch| u32::from_le_bytes(of(launch).try_into().unwrap()))
    };
    assert_eq!(values(&all), [7, 6, 7]);
    let (name, bytes) = ("counter".to_owned(), vec![90, 0, 0, 0]);
    all.variables = vec![InitialVariable { device: 1, module: &module, name, bytes }];
    assert_eq!(values(&all), [7, 91, 7]);
    all.variables[0].bytes.pop();
    let refused = all.run().unwrap_err();
    assert_eq!(refused, Failure::Launch(LaunchError::Variable("counter".to_owned(), 3)));
}

/// A race on a variable names it.
#[test]
fn a_race_names_the_variable() {
    let module = kernels(".global .u64 first;\n.global .u32 counter;", &[("k", COUNTS)]);
    let both = chain(&launch(&module, 0, 1, 1), vec![one(&module, "k", 1), one(&module, "k", 1)]);
    let fault = fault(&both);
    assert!(
        fault.to_string().contains("counter at byte 0, of the variables of device 0"),
        "{fault}"
    );
}

/// Every thread stores its number where the first one stores, too, and then the sum of the word and 1 elsewhere.
const RACES: &str = "\
st.global.u32 [%m], 5;
ld.global.u32 %r1, [%m+4];
st.global.u32 [%d0+64], 9;
st.global.u32 [%m+4], 3;";

fn of_races(races: usize, launch: &Launch) -> Result<Vec<KernelFault>, Box<KernelFault>> {
    let limits = Limits { races, ..launch.limits };
    match (Launch { limits, ..launch.clone() }).run() {
        Ok(state) => {
            assert_eq!(state.windows[0].bytes[64], 9, "the run goes on");
            Ok(state.races)
        }
        Err(Failure::Fault(fault)) => Err(fault),
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn a_run_goes_on_behind_races() {
    let module = module(RACES);
    let launch = launch(&module, 1, 2, 32);
    // Three stores, and a load and a store.
    let races = of_races(10, &launch).unwrap();
    let lines: Vec<_> = races.iter().map(super::line).collect();
    assert_eq!(lines.len(), 4, "{races:?}");
    assert!(lines.contains(&1) && lines.contains(&4), "{lines:?}");
    // The race that is one too many ends the run, and those before it come with it.
    let last = of_races(2, &launch).unwrap_err();
    assert!(matches!(last.kind, FaultKind::Unordered { .. }) && last.before.len() == 2, "{last}");
    assert!(of_races(0, &launch).unwrap_err().before.is_empty());
}

/// Nothing is told of what accesses of several sizes give that race.
#[test]
fn a_race_of_two_sizes_ends_a_run() {
    let module = module(
        "st.relaxed.gpu.global.u32 [%m], 5;\nld.relaxed.gpu.global.u64 %d1, [%m];\nst.global.u32 [%d0+64], 9;",
    );
    let fault = of_races(10, &launch(&module, 1, 2, 1)).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Unordered { conflict: Conflict::Race, .. }), "{fault}");
}

const TRIGGER_FIRST: (&str, &str) =
    ("first", "griddepcontrol.launch_dependents;\nst.global.u32 [%d0], 7;");
const WAITS: (&str, &str) = (
    "waits",
    "griddepcontrol.wait;\nld.global.u32 %r1, [%d0];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%d0], %r1;",
);
const NO_WAIT: (&str, &str) =
    ("no_wait", "ld.global.u32 %r1, [%d0];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%d0], %r1;");

#[test]
fn a_launch_that_begins_early_waits_for_what_it_reads() {
    let module = kernels("", &[TRIGGER_FIRST, WAITS, NO_WAIT]);
    let base = launch(&module, 0, 1, 1);
    let two = |second, early| {
        let second = RankLaunch { after: vec![0], early, ..one(&module, second, 64) };
        chain(&base, vec![one(&module, "first", 64), second])
    };
    for (second, early) in [("waits", true), ("waits", false), ("no_wait", false)] {
        assert_eq!(words(&two(second, early), 64), [8; 64], "{second}, early: {early}");
    }
    let race = fault(&two("no_wait", true));
    assert!(matches!(race.kind, FaultKind::Unordered { .. }), "{race}");
    let in_order = Assumptions::default().include(Assumption::Pdl);
    let cured = Launch { assumptions: in_order, ..two("no_wait", true) };
    assert_eq!(words(&cured, 64), [8; 64]);
}

/// Without `launch_dependents`, an early launch begins when the blocks have ended, and knows nothing of them.
#[test]
fn an_early_launch_begins_when_each_block_lets_it() {
    let polls =
        "$L1:\nld.relaxed.gpu.global.u32 %r1, [%m];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra $L1;";
    let lets = format!("griddepcontrol.launch_dependents;\n{polls}");
    let sets = ("sets", "st.relaxed.gpu.global.u32 [%m], 1;");
    let module = kernels("", &[("polls", polls), ("lets", &lets), sets]);
    let base = launch(&module, 0, 1, 1);
    let two = |first| {
        let second = RankLaunch { after: vec![0], early: true, ..one(&module, "sets", 1) };
        chain(&base, vec![one(&module, first, 1), second])
    };
    assert_eq!(words(&two("lets"), 1), [1]);
    let stuck = fault(&two("polls"));
    assert!(stuck.to_string().contains("waits for the launches before its own"), "{stuck}");
}

/// A launch behind an early one that does not wait is behind both.
#[test]
fn a_launch_is_behind_all_that_are_before_it() {
    let module = kernels("", &[TRIGGER_FIRST, ("nothing", ""), NO_WAIT]);
    let base = launch(&module, 0, 1, 1);
    let early = RankLaunch { after: vec![0], early: true, ..one(&module, "nothing", 64) };
    let last = RankLaunch { after: vec![1], ..one(&module, "no_wait", 64) };
    let three = chain(&base, vec![one(&module, "first", 64), early, last]);
    assert_eq!(words(&three, 64), [8; 64]);
}

/// Two blocks that wait for each other need to be resident, and launches that are not ordered an order.
#[test]
fn blocks_and_launches_that_wait_for_each_other() {
    let meets = "\
mov.u32 %r1, %ctaid.x;
mul.wide.u32 %d1, %r1, 4;
add.s64 %d1, %m, %d1;
st.relaxed.gpu.global.u32 [%d1], 1;
xor.b32 %r1, %r1, 1;
mul.wide.u32 %d1, %r1, 4;
add.s64 %d1, %m, %d1;
$L1:
ld.relaxed.gpu.global.u32 %r2, [%d1];
setp.eq.u32 %p1, %r2, 0;
@%p1 bra $L1;";
    let module = kernels("", &[("meets", meets)]);
    let blocks = RankLaunch { grid: [2, 1, 1], ..one(&module, "meets", 1) };
    let mut both = chain(&launch(&module, 0, 1, 1), vec![blocks]);
    assert_eq!(words(&both, 2), [1, 1]);
    both.assumptions = Assumptions::none();
    let stuck = fault(&both);
    assert!(stuck.to_string().contains("not all are resident"), "{stuck}");
    both.limits.resident_blocks = 2;
    assert_eq!(words(&both, 2), [1, 1]);
    // The same blocks as launches of one device: in order, the first one waits for ever.
    let clusters = RankLaunch { cluster: [2, 1, 1], grid: [2, 1, 1], ..one(&module, "meets", 1) };
    both.limits.resident_blocks = 1;
    both.ranks = vec![clusters];
    assert_eq!(words(&both, 2), [1, 1], "the blocks of a cluster begin together");
}

#[test]
fn launches_of_a_device_have_one_order_where_it_is_assumed() {
    let module = kernels("", &[NO_WAIT]);
    let two = vec![one(&module, "no_wait", 4), one(&module, "no_wait", 4)];
    let mut both = chain(&launch(&module, 0, 1, 1), two);
    assert!(matches!(fault(&both).kind, FaultKind::Unordered { .. }));
    both.assumptions = Assumptions::default().include(Assumption::OneOrder);
    assert_eq!(words(&both, 4), [2; 4]);
}

/// Constant loads are of data that no launch stores at the same time; one before or behind may.
#[test]
fn data_is_constant_for_a_launch() {
    let reads = ("reads", "ld.global.nc.u32 %r1, [%d0];\nst.global.u32 [%d0+256], %r1;");
    let module = kernels("", &[NO_WAIT, reads]);
    let base = launch(&module, 0, 1, 1);
    let run = |all: [(&'static str, &[usize]); 3]| {
        let rank = |(kernel, after): (&'static str, &[usize])| RankLaunch {
            after: after.to_vec(),
            ..one(&module, kernel, 4)
        };
        let ranks = all.map(rank);
        chain(&base, ranks.to_vec())
    };
    let ordered = run([("no_wait", &[]), ("reads", &[0]), ("no_wait", &[1])]);
    assert_eq!(words(&ordered, 4), [2; 4]);
    let beside = run([("no_wait", &[]), ("reads", &[0]), ("no_wait", &[0])]);
    let fault = fault(&beside);
    assert!(
        matches!(fault.kind, FaultKind::Unordered { conflict: Conflict::Constant, .. }),
        "{fault}"
    );
}

/// Plain accesses of vectors have all their elements where a vector is one object, too.
#[test]
fn vectors_that_are_one_object_are_whole() {
    let copies = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%m];\nst.global.v4.u32 [%m+16], {%r1, %r2, %r3, %r4};";
    let strong = copies.replace("global.v4", "volatile.global.v4");
    for text in [copies, &strong] {
        let module = module(text);
        for assumption in [Assumption::Vec16, Assumption::Vec8] {
            let mut launch = launch(&module, 1, 1, 1);
            for word in 0..4 {
                launch.windows[0].bytes[4 * word] = 5 + word as u8;
            }
            launch.assumptions = Assumptions::default().include(assumption);
            assert_eq!(words(&launch, 8), [5, 6, 7, 8, 5, 6, 7, 8], "{text}");
        }
    }
}

/// A block stores lines, each with a flag in its last word, and another one waits for the flags and keeps the first words.
/// Where lines are performed as one, these are those of the store; but not where a line is not aligned, or where its lanes
/// do not store it together, or where each lane looks for a flag of its own alone.
#[test]
fn lines_that_are_one_object_are_whole() {
    let text = "\
mul.wide.u32 %d1, %r0, 16;
add.s64 %d1, %m, %d1;
and.b32 %r2, %r0, 7;
setp.eq.u32 %p2, %r2, 7;
setp.ne.u32 %p4, %r2, 7;
mov.u64 %d2, 7;
selp.b64 %d3, 1, 7, %p2;
mov.u32 %r1, %ctaid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra $READS;
st.relaxed.gpu.global.v2.u64 [%d1], {%d2, %d3};
ret;
$READS:
ld.relaxed.gpu.global.v2.u64 {%d4, %d5}, [%d1];
setp.eq.u64 %p3, %d5, 1;
or.pred %p3, %p3, %p4;
vote.sync.all.pred %p3, %p3, 0xffffffff;
@!%p3 bra $READS;
shl.b32 %r3, %r0, 3;
cvt.u64.u32 %d6, %r3;
add.s64 %d6, %m, %d6;
st.global.u64 [%d6+4096], %d4;";
    let store = "st.relaxed.gpu.global.v2.u64 [%d1], {%d2, %d3};";
    let apart = format!("@%p2 {store}\n@%p4 {store}");
    let stores = [("aligned", text.to_owned()), ("apart", text.replace(store, &apart))];
    let other = [
        ("between lines", text.replace("[%d1]", "[%d1+64]")),
        ("without a vote", text.replace("vote.sync.all.pred %p3, %p3, 0xffffffff;\n", "")),
    ];
    for (name, text) in stores.into_iter().chain(other) {
        let module = module(&text);
        for line in [false, true] {
            let mut launch = launch(&module, 1, 2, 32);
            if line {
                launch.assumptions = Assumptions::default().include(Assumption::Line128);
            }
            let is_whole = |seed| {
                let state = Launch { seed, ..launch.clone() }.run();
                let state = state.unwrap_or_else(|failure| panic!("{name}: {failure}"));
                let kept = &state.windows[0].bytes[4096..][..256];
                kept.chunks(8).all(|word| word == 7_u64.to_le_bytes())
            };
            let whole = (0..60).all(is_whole);
            assert_eq!(whole, line && name == "aligned", "{name}, {line}");
        }
    }
}

/// A flag at the head of a launch tells a peer what the launches before it did, where that is assumed.
#[test]
fn the_start_of_a_launch_releases_where_it_is_assumed() {
    let flag = ("flag", "st.relaxed.sys.global.u32 [%m], 1;");
    let polls = (
        "polls",
        "\
$L1:
ld.acquire.sys.global.u32 %r1, [%m];
setp.eq.u32 %p1, %r1, 0;
@%p1 bra $L1;
ld.global.u32 %r1, [%m+16];
st.global.u32 [%m+8], %r1;",
    );
    let module = kernels("", &[("fills", "st.global.u32 [%m+16], 7;"), flag, polls]);
    let flag = RankLaunch { after: vec![0], ..one(&module, "flag", 1) };
    let peer = RankLaunch { device: 1, ..one(&module, "polls", 1) };
    let ranks = vec![one(&module, "fills", 1), flag, peer];
    let mut all = chain(&launch(&module, 0, 1, 1), ranks);
    let race = fault(&all);
    assert!(matches!(race.kind, FaultKind::Unordered { .. }), "{race}");
    // It is the stores before the launch that are released, and not those of the launch itself.
    all.assumptions = Assumptions::default().include(Assumption::StartReleases);
    assert_eq!(words(&all, 3), [1, 0, 7]);
    all.ranks[0].device = 1;
    assert_eq!(words(&all, 3), [1, 0, 7]);
    let text = "st.global.u32 [%m+16], 7;\nst.relaxed.sys.global.u32 [%m], 1;";
    let itself = kernels("", &[("fills", text), polls]);
    all.ranks =
        vec![one(&itself, "fills", 1), RankLaunch { device: 1, ..one(&itself, "polls", 1) }];
    assert!(matches!(fault(&all).kind, FaultKind::Unordered { .. }));
}
