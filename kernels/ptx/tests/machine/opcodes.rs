//! Operations of modules of others: atomic ones, exchanges of warps, calls of the driver's functions, clusters, and
//! multicast addresses.

use roundelay_ptx::machine::{Alias, FaultKind, Launch, RankLaunch, Window};
use roundelay_ptx::{Assumption, Assumptions};

use super::{MEMORY, fault, launch, module, parse, words};

/// Atomic operations: the instruction, the word before, the result, and the word behind.
const ATOMIC: &[(&str, u32, u32)] = &[
    ("add.u32 %r1, [%m], 7", 5, 12),
    ("relaxed.sys.add.s32 %r1, [%m], -7", 5, 0xffff_fffe),
    ("exch.b32 %r1, [%m], 7", 5, 7),
    ("acquire.gpu.cas.b32 %r1, [%m], 5, 9", 5, 9),
    ("cas.b32 %r1, [%m], 6, 9", 5, 5),
    ("min.s32 %r1, [%m], -1", 5, 0xffff_ffff),
    ("min.u32 %r1, [%m], -1", 5, 5),
    ("max.u32 %r1, [%m], 4", 5, 5),
    ("max.s32 %r1, [%m], 6", 5, 6),
    ("and.b32 %r1, [%m], 4", 5, 4),
    ("or.b32 %r1, [%m], 2", 5, 7),
    ("xor.b32 %r1, [%m], 1", 5, 4),
    ("inc.u32 %r1, [%m], 5", 5, 0),
    ("inc.u32 %r1, [%m], 6", 5, 6),
    ("dec.u32 %r1, [%m], 9", 5, 4),
    ("dec.u32 %r1, [%m], 4", 5, 4),
    ("dec.u32 %r1, [%m], 4", 0, 4),
    ("add.f32 %r1, [%m], 0f3F800000", 0x3f80_0000, 0x4000_0000),
    // A sum in global memory has no subnormal values.
    ("add.f32 %r1, [%m], 0f00000001", 1, 0),
    ("add.noftz.f16x2 %r1, [%m], 1006648320", 0x3c00_3c00, 0x4000_4000),
    ("add.noftz.bf16x2 %r1, [%m], 1065353216", 0x3f80_3f80, 0x4000_3f80),
    ("max.noftz.f16x2 %r1, [%m], 1073758208", 0x3c00_4200, 0x4000_4200),
];

#[test]
fn atomic_operations_give_the_results_of_the_table() {
    for space in [".global", ""] {
        for (operation, before, after) in ATOMIC {
            let (words_of_op, operands) = operation.split_once(' ').unwrap();
            let (rest, op) = match words_of_op.rsplit_once("sys.") {
                Some((order, op)) => (format!(".{order}sys"), op),
                None if words_of_op.starts_with("acquire.gpu.") => {
                    (".acquire.gpu".to_owned(), &words_of_op["acquire.gpu.".len()..])
                }
                None => (String::new(), words_of_op),
            };
            // The words of order and space are in any order.
            let text = format!("atom{space}{rest}.{op} {operands};\nst.global.u32 [%m+4], %r1;");
            let module = module(&text);
            let mut launch = launch(&module, 1, 1, 1);
            launch.windows[0].bytes[..4].copy_from_slice(&before.to_le_bytes());
            assert_eq!(words(&launch, 2), [*after, *before], "{text} of {before:#x}");
        }
    }
}

/// Atomic operations of 64 bits, in shared memory, and without a wanted result.
#[test]
fn atomic_operations_are_of_words_and_spaces() {
    let text = "\
mov.u64 %d1, 5;
st.shared.u64 [shared], %d1;
atom.shared.add.u64 %d2, [shared], 7;
atom.shared::cta.relaxed.cta.cas.b64 %d3, [shared], 12, 3;
atom.shared.exch.b64 _, [shared], 4;
ld.shared.u64 %d4, [shared];
mov.f32 %r2, 0f00000001;
st.shared.u32 [shared+8], %r2;
atom.shared.add.f32 %r3, [shared+8], %r2;
ld.shared.u32 %r4, [shared+8];
st.global.v2.u64 [%m], {%d2, %d3};
st.global.u64 [%m+16], %d4;
st.global.u32 [%m+24], %r4;";
    assert_eq!(words(&launch(&module(text), 1, 1, 1), 7), [5, 0, 12, 0, 4, 0, 2]);
}

/// All threads of two blocks count, and each gets another number.
#[test]
fn each_thread_counts_once() {
    let text = "\
atom.global.gpu.relaxed.add.u32 %r1, [%m], 1;
mul.wide.u32 %d1, %r1, 4;
add.s64 %d1, %m, %d1;
st.global.u32 [%d1+4], 9;";
    assert_eq!(words(&launch(&module(text), 1, 2, 40), 81)[..], [&[80][..], &[9; 80]].concat());
}

#[test]
fn lanes_have_values_in_common() {
    let all = "\
and.b32 %r1, %r0, 1;
match.any.sync.b32 %r2, %r1, -1;
match.all.sync.b32 %r3|%p1, %r1, -1;
selp.u32 %r4, 1, 0, %p1;
redux.sync.add.u32 %r5, %r0, -1;
sub.s32 %r6, %r0, 5;
redux.sync.min.s32 %r7, %r6, -1;
redux.sync.or.b32 %r8, %r0, -1;
elect.sync %r9|%p2, -1;
selp.u32 %r10, 1, 0, %p2;
setp.gt.u32 %p3, %r0, 0;
@%p3 ret;
st.global.v4.u32 [%m], {%r2, %r3, %r4, %r5};
st.global.v4.u32 [%m+16], {%r7, %r8, %r9, %r10};
mov.u32 %r11, %lanemask_le;
mov.u32 %r12, %nwarpid;
st.global.v2.u32 [%m+32], {%r11, %r12};";
    let expected = [0x5555_5555, 0, 0, 496, (-5i32) as u32, 31, 0, 1, 1, 1];
    assert_eq!(words(&launch(&module(all), 1, 1, 32), 10), expected);
}

/// A mask of active lanes has the lane itself, and not always all others.
#[test]
fn active_lanes_are_some_of_the_warp() {
    let module = module("activemask.b32 %r1;\nst.global.u32 [%d0], %r1;");
    let launch = launch(&module, 1, 1, 32);
    let mut masks = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let state = Launch { seed, ..launch.clone() }.run().unwrap();
        for (lane, bytes) in state.windows[0].bytes[..128].chunks(4).enumerate() {
            let mask = u32::from_le_bytes(bytes.try_into().unwrap());
            assert_eq!(mask >> lane & 1, 1);
            masks.insert(mask);
        }
    }
    assert!(masks.contains(&u32::MAX) && masks.len() > 1);
}

/// Barriers by their new names, hints in any order, pauses, clocks, and what has no effect.
#[test]
fn spellings_without_an_effect_of_their_own() {
    let text = "\
barrier.cta.sync.aligned 0;
barrier.sync 1, 64;
prefetch.global.L2::evict_last [%d0];
createpolicy.fractional.L2::evict_first.b64 %d2, 0f3F800000;
ld.global.L1::no_allocate.L2::cache_hint.L2::128B.u32 %r1, [%d0], %d2;
ld.volatile.global.cv.u32 %r1, [%d0];
st.global.wt.u32 [%d0], 3;
fence.proxy.alias;
nanosleep.u32 100;
mov.u64 %d3, %clock64;
isspacep.shared %p1, %m;
isspacep.global %p2, %m;
selp.u32 %r2, 1, 0, %p1;
selp.u32 %r3, 2, 0, %p2;
add.u32 %r2, %r2, %r3;
ld.mmio.relaxed.sys.global.u32 %r4, [%d0];
add.u32 %r2, %r2, %r4;
st.cg.global.u32 [%d0], %r2;";
    let text = text.replace(".global.cv", ".global");
    assert_eq!(words(&launch(&module(&text), 1, 1, 64), 64), [5; 64]);
}

const DRIVER: &str = "\
.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) .noreturn;
.global .align 1 .b8 text[4] = {120, 62, 48, 0};
.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};
.const .align 1 .b8 name[2] = {107, 0};
.visible .entry k(.param .u64 memory)
{
.reg .b32 %r<4>;
.reg .b64 %d<4>;
ld.param.u64 %d0, [memory];
{
.param .b64 p0; .param .b64 p1; .param .b32 back;
st.param.b64 [p0], %d0;
st.param.b64 [p1], 0;
call.uni (back), vprintf, (p0, p1);
ld.param.b32 %r1, [back];
}
st.global.u32 [%d0], %r1;
FAIL
ret;
}
";
const FAIL: &str = "\
mov.u64 %d1, text;
cvta.global.u64 %d1, %d1;
mov.u64 %d2, file;
mov.u64 %d3, name;
cvta.const.u64 %d3, %d3;
{
.param .b64 q0; .param .b64 q1; .param .b32 q2; .param .b64 q3; .param .b64 q4;
st.param.b64 [q0], %d1;
st.param.b64 [q1], %d2;
st.param.b32 [q2], 42;
st.param.b64 [q3], %d3;
st.param.b64 [q4], 1;
call.uni __assertfail, (q0, q1, q2, q3, q4);
}";

#[test]
fn functions_of_the_driver() {
    let prints = parse(&DRIVER.replace("FAIL", ""));
    assert_eq!(words(&launch(&prints, 1, 1, 1), 1), [0]);
    let fails = parse(&DRIVER.replace("FAIL", FAIL));
    let fault = fault(&launch(&fails, 1, 1, 1));
    assert!(fault.to_string().contains("the assertion `x>0` of k fails (a.cu:42)"), "{fault}");
}

/// Each block of a cluster writes to the shared memory of the next one.
const CLUSTER: &str = "\
mov.u32 %r1, %cluster_ctarank;
mov.u32 %r2, %cluster_nctarank;
add.u32 %r3, %r1, 1;
rem.u32 %r3, %r3, %r2;
mov.u32 %r4, shared;
mapa.shared::cluster.u32 %r5, %r4, %r3;
cvta.shared.u64 %d1, %d1;
add.u32 %r6, %r1, 10;
st.shared::cluster.u32 [%r5], %r6;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
ld.shared.u32 %r7, [shared];
mov.u32 %r8, %ctaid.x;
mul.wide.u32 %d2, %r8, 4;
add.s64 %d2, %m, %d2;
getctarank.shared::cluster.u32 %r9, %r5;
mad.lo.s32 %r7, %r9, 100, %r7;
mov.u32 %r10, %clusterid.x;
mad.lo.s32 %r7, %r10, 1000, %r7;
st.global.u32 [%d2], %r7;
barrier.cluster.arrive;
barrier.cluster.wait;";

fn clusters(text: &str, blocks: u32, in_cluster: u32) -> Vec<u32> {
    let module = module(text);
    let mut launch = launch(&module, 1, blocks, 1);
    launch.ranks[0].cluster = [in_cluster, 1, 1];
    words(&launch, blocks as usize)
}

#[test]
fn blocks_of_a_cluster_share_memory() {
    assert_eq!(clusters(CLUSTER, 2, 1), [10, 1010]);
    assert_eq!(clusters(CLUSTER, 4, 2), [111, 10, 1111, 1010]);
    assert_eq!(clusters(CLUSTER, 3, 3), [112, 210, 11]);
    let module = module(&CLUSTER.replace("arrive.release", "arrive.relaxed"));
    let mut unordered = launch(&module, 1, 2, 1);
    unordered.ranks[0].cluster = [2, 1, 1];
    assert!(matches!(fault(&unordered).kind, FaultKind::Unordered { .. }));
}

/// The shared memory of a block that has ended is gone.
#[test]
fn a_block_that_ends_takes_its_memory_along() {
    let text =
        CLUSTER.replace("ld.shared.u32 %r7, [shared];", "ld.shared::cluster.u32 %r7, [%r5];");
    let text = text.replace("barrier.cluster.arrive;\nbarrier.cluster.wait;", "");
    let module = module(&text);
    let mut launch = launch(&module, 1, 2, 1);
    launch.ranks[0].cluster = [2, 1, 1];
    let fault = fault(&launch);
    assert!(matches!(fault.kind, FaultKind::Bounds { .. }), "{fault}");
}

/// A thread that does not come to the barrier of its cluster.
#[test]
fn a_cluster_waits_for_all() {
    let text = "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 barrier.cluster.arrive;\nbarrier.cluster.wait;";
    let module = module(text);
    let mut launch = launch(&module, 1, 2, 1);
    launch.ranks[0].cluster = [2, 1, 1];
    let stuck = fault(&launch);
    assert!(stuck.to_string().contains("waits at the barrier of its cluster"), "{stuck}");
}

const UNICAST: u64 = 0x20_0000;
const MULTICAST: u64 = 0x40_0000;

/// Two windows with words, at one multicast address, and a kernel of one thread that has this address in `%d1`, and that of
/// the first window in `%d2`.
fn multicast(
    text: &str,
    all: &[[u32; 4]],
    assumptions: &Assumptions,
) -> Result<Vec<Vec<u32>>, String> {
    multicast_by(1, text, all, assumptions)
}

/// The same by that number of threads.
fn multicast_by(
    threads: u32,
    text: &str,
    all: &[[u32; 4]],
    assumptions: &Assumptions,
) -> Result<Vec<Vec<u32>>, String> {
    let text = format!("mov.u64 %d1, {MULTICAST};\nmov.u64 %d2, {UNICAST};\n{text}");
    let module = module(&text);
    let mut found = std::collections::BTreeSet::new();
    let one = launch(&module, 1, 1, threads);
    for seed in 0..40 {
        let window = |(rank, words): (usize, &[u32; 4])| Window {
            name: format!("window {rank}"),
            address: UNICAST + rank as u64 * 0x1000,
            bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        };
        let alias = Alias {
            name: "all".to_owned(),
            address: MULTICAST,
            bytes: 16,
            of: (0..all.len() as u64).map(|rank| UNICAST + rank * 0x1000).collect(),
            multicast: true,
        };
        let windows = all.iter().enumerate().map(window);
        let windows = windows.chain(one.windows.iter().cloned()).collect();
        let ranks: Vec<RankLaunch> = one.ranks.clone();
        let assumptions = assumptions.clone();
        let launch =
            Launch { seed, aliases: vec![alias], assumptions, ..Launch::new(ranks, windows) };
        let state = launch.run().map_err(|failure| failure.to_string())?;
        let words = |window: &Window| -> Vec<u32> {
            let words = window.bytes.chunks(4).take(4);
            words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
        };
        found.insert(state.windows.iter().map(words).collect::<Vec<_>>().concat());
    }
    Ok(found.into_iter().collect())
}

#[test]
fn a_multicast_address_is_of_all_windows() {
    let text = "\
multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%d1];
multimem.ld_reduce.weak.global.max.s32 %r2, [%d1+4];
st.global.v2.u32 [%m], {%r1, %r2};
multimem.red.release.sys.global.add.u32 [%d1], 5;
multimem.st.relaxed.sys.global.u32 [%d1+8], 3;";
    let found = multicast(text, &[[1, 2, 0, 7], [10, 1, 0, 8]], &Assumptions::default()).unwrap();
    assert_eq!(found, [[11, 2, 0, 0, 6, 2, 3, 7, 15, 1, 3, 8]]);
    let plain = "st.global.u32 [%d1], 1;";
    let refused = multicast(plain, &[[0; 4]; 2], &Assumptions::default()).unwrap_err();
    assert!(refused.contains("multicast addresses are for `multimem`"), "{refused}");
    let all = Assumptions::default().include(Assumption::MulticastStore);
    let found = multicast(plain, &[[0; 4]; 2], &all).unwrap();
    assert_eq!(found, [[0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]]);
    let other = "multimem.st.global.u32 [%m], 1;";
    let refused = multicast(other, &[[0; 4]; 2], &Assumptions::default()).unwrap_err();
    assert!(refused.contains("multicast addresses are for `multimem`"), "{refused}");
}

/// The order of a sum is open, but where it is assumed; sums of halves are rounded once where they are in f32.
#[test]
fn sums_of_a_multicast_address() {
    let text = "\
multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%r1, %r2, %r3, %r4}, [%d1];
st.global.v4.u32 [%m], {%r1, %r2, %r3, %r4};";
    // 2^24, 1 and 1.
    let words = [0x4b80_0000, 0x3f80_0000, 0x3f80_0000].map(|word| [word, 0, 0, word]);
    let first =
        |found: Vec<Vec<u32>>| -> Vec<u32> { found.into_iter().map(|all| all[0]).collect() };
    let found = first(multicast(text, &words, &Assumptions::default()).unwrap());
    assert_eq!(found, [0x4b80_0000, 0x4b80_0001]);
    let fixed = Assumptions::default().include(Assumption::MulticastSum);
    assert_eq!(first(multicast(text, &words, &fixed).unwrap()), [0x4b80_0000]);
    for (acc, expected) in [("", 0x4380), (".acc::f32", 0x4381)] {
        let text = format!(
            "multimem.ld_reduce.global.add{acc}.v2.bf16x2 {{%r1, %r2}}, [%d1];\nst.global.u32 [%m], %r1;"
        );
        // 256, 1 and 1, of which the sums have 8 bits.
        let words = [0x4380, 0x3f80, 0x3f80].map(|half| [half << 16 | half, 0, 0, 0]);
        let found = first(multicast(&text, &words, &fixed).unwrap());
        assert_eq!(found, [expected << 16 | expected], "{acc}");
    }
}

/// An access by a multicast address and one by the window's own are in order by a path with `fence.proxy.alias` alone.
#[test]
fn accesses_by_two_addresses_have_a_fence_between_them() {
    let fence = "fence.proxy.alias;";
    let pairs = [
        ("st.global.u32 [%d2], 1;", "multimem.ld_reduce.weak.global.add.u32 %r1, [%d1];"),
        ("multimem.st.weak.global.u32 [%d1], 1;", "ld.global.u32 %r1, [%d2];"),
        ("ld.global.u32 %r1, [%d2];", "multimem.st.weak.global.u32 [%d1], 1;"),
        ("multimem.ld_reduce.weak.global.add.u32 %r1, [%d1];", "st.global.u32 [%d2], 1;"),
        (
            "st.global.u8 [%d2+3], 1;",
            "multimem.ld_reduce.weak.global.add.v4.f32 {%r1, %r2, %r3, %r4}, [%d1];",
        ),
        (
            "multimem.red.release.sys.global.add.u32 [%d1], 1;",
            "ld.acquire.sys.global.u32 %r1, [%d2];",
        ),
    ];
    let usual = Assumptions::default();
    let run = |threads: u32, text: &str, assumptions: &Assumptions| {
        multicast_by(threads, text, &[[0; 4]; 2], assumptions)
    };
    for (one, other) in pairs {
        // A thread's store in place of what it has loaded needs none.
        let found = run(1, &format!("{one}\n{other}"), &usual);
        assert_eq!(found.is_ok(), one.contains("ld"), "{one} {other}");
        let refused = found.err().unwrap_or_default();
        let why = "without `fence.proxy.alias` between them";
        assert!(refused.is_empty() || refused.contains(why), "{refused}");
        run(1, &format!("{one}\n{fence}\n{other}"), &usual).unwrap();
        let coherent = usual.clone().include(Assumption::MulticastAlias);
        run(1, &format!("{one}\n{other}"), &coherent).unwrap();
        // By two threads the fence of either one will do, on the path that orders them, and no other.
        let one = format!("@%p1 {one}");
        let other = format!("@%p2 {other}");
        let begin = "setp.eq.u32 %p1, %r0, 0;\nsetp.eq.u32 %p2, %r0, 1;\nsetp.eq.u32 %p3, %r0, 2;";
        let text = |before: &str, after: &str| {
            format!("{begin}\n{before}\n{one}\n{after}\nbar.sync 0;\n{other}")
        };
        for (text, right) in [
            (text("", &format!("@%p1 {fence}")), true),
            (format!("{begin}\n{one}\nbar.sync 0;\n@%p2 {fence}\n{other}"), true),
            (text(&format!("@%p1 {fence}"), ""), false),
            (text("", &format!("@%p2 {fence}")), false),
            (format!("{begin}\n{one}\nbar.sync 0;\n@%p3 {fence}\n{other}"), false),
            (format!("{begin}\n{one}\nbar.sync 0;\n@%p3 {fence}\nbar.sync 0;\n{other}"), true),
        ] {
            let found = run(3, &text, &usual);
            assert_eq!(found.is_ok(), right, "{text}\n{found:?}");
        }
    }
    // Apart, the bytes have nothing to do with each other.
    let apart = "st.global.u32 [%d2+4], 1;\nmultimem.ld_reduce.weak.global.add.u32 %r1, [%d1];";
    run(1, apart, &usual).unwrap();
}

/// The fence travels with the release that it is before, and not with one before it.
#[test]
fn a_fence_between_aliases_travels_with_later_releases() {
    let text = |before: &str, after: &str| {
        format!(
            "setp.eq.u32 %p1, %r0, 0;
@!%p1 bra other;
st.global.u32 [%d2], 1;
{before}
st.release.gpu.global.u32 [%m+128], 1;
{after}
bra end;
other:
ld.acquire.gpu.global.u32 %r1, [%m+128];
setp.eq.u32 %p2, %r1, 0;
@%p2 bra other;
multimem.ld_reduce.weak.global.add.u32 %r2, [%d1];
end:"
        )
    };
    let run = |text: String| multicast_by(33, &text, &[[0; 4]; 2], &Assumptions::default());
    let fence = "fence.proxy.alias;";
    let refused = run(text("", fence)).unwrap_err();
    assert!(refused.contains("without `fence.proxy.alias` between them"), "{refused}");
    run(text(fence, "")).unwrap();
}

/// A peer's memory has another address, too.
#[test]
fn an_alias_is_the_same_memory() {
    let module =
        module("mov.u64 %d1, 4194304;\nld.global.u32 %r1, [%d1+4];\nst.global.u32 [%m], %r1;");
    let mut launch = launch(&module, 1, 1, 1);
    launch.windows[0].bytes[4] = 9;
    launch.aliases = vec![Alias {
        name: "peer".into(),
        address: MULTICAST,
        bytes: 64,
        of: vec![MEMORY],
        multicast: false,
    }];
    assert_eq!(words(&launch, 1), [9]);
    launch.aliases[0].of[0] += 1 << 16;
    assert!(launch.run().unwrap_err().to_string().contains("peer stands for addresses"));
}

/// A race at another address of a window names that address.
#[test]
fn a_race_at_an_alias_names_it() {
    let module = module("mov.u64 %d1, 4194304;\nst.global.u32 [%d1+4], %r0;");
    let mut launch = launch(&module, 1, 1, 2);
    let (name, of) = ("the peer".to_owned(), vec![MEMORY]);
    launch.aliases = vec![Alias { name, address: MULTICAST, bytes: 64, of, multicast: false }];
    let race = fault(&launch);
    assert!(race.to_string().contains("a store and a store of the peer at byte 4"), "{race}");
}
