//! Every dtype with every op, the table form, several CTAs a stream, and LL, against the host engine's bits.

use std::fmt::Write as _;

use roundelay::{Algorithm as _, DType, Level, ReduceOp, select};
use roundelay_core::check::Frontend;
use roundelay_core::layout::Configured;
use roundelay_core::optimize::Goal;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Callers;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Kernel, Protocol, Spec};
use roundelay_kernels::shim::{Shim, ShimJob};
use roundelay_tests::{compile, kinds, taken, takes_all};

use super::runs::{
    algorithm, code, inputs, loops, named, on_the_host, program, proved, spec, try_run,
};
use super::sweep::Sweep;

/// Checks that a kernel leaves the host's bits in such a run; the error says what differs.
fn like_the_host(
    shim: &Shim,
    (proved, kernel): (&Proved, &Kernel),
    count: u64,
    how: impl FnOnce(&mut ShimJob<'_>),
) -> Result<(), String> {
    let data = inputs(kernel, count);
    let mut job = ShimJob::new(kernel, count, &data);
    how(&mut job);
    let outcome = try_run(shim, &job)?;
    let host = on_the_host(proved, kernel, count, &data);
    if outcome.outputs == host { Ok(()) } else { Err("other bits than the host's".into()) }
}

/// Dtypes with ops, which take turns: sums around a ring, and averages where they are complete. All pairs are those of
/// the kernels' own tests.
#[test]
fn every_dtype_and_op_has_the_hosts_bits() {
    let algorithm = named("RingAllReduce");
    let proved = |nranks| proved(algorithm, nranks).expect("any rank count will do");
    let (one, five) = (proved(1), proved(5));
    let (mut sweep, mut wrong) = (Sweep::default(), String::new());
    let all = kinds();
    // A step without a common divisor: another dtype and another op each time.
    let turns = (0..all.len()).map(|turn| turn * 19 % all.len());
    for (dtype, op) in turns.filter(|at| taken(*at, 2)).map(|at| all[at]) {
        let spec = Spec { element: dtype, op, ..spec(algorithm) };
        for (proved, counts) in [(&five, &[3, 257][..]), (&one, &[31])] {
            let kernel = loops(algorithm, proved, spec);
            if !sweep.tries(&kernel) {
                continue;
            }
            for count in counts {
                let done = like_the_host(&program(&kernel), (proved, &kernel), *count, |_| ());
                if let Err(why) = done {
                    let _ = writeln!(wrong, "{dtype} {op}, count {count}: {why}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The halves of a rank's sums are complete after different ops. In place the others would read sums.
const APART: &str = "
#[out_of_place]
algorithm Apart() -> AllReduce {
    require nranks == 3, \"three ranks make one case\";
    let a = peer((rank + 1) % nranks);
    let b = peer((rank + 2) % nranks);
    a.TxAck(); b.TxAck(); a.RxAck(); b.RxAck();
    copy(local.input, local.output);
    reduce(a.input.split(2)[0], local.output.split(2)[0]);
    reduce(b.input, local.output);
    reduce(a.input.split(2)[1], local.output.split(2)[1]);
    a.TxDataSignal(); b.TxDataSignal(); a.RxDataSignal(); b.RxDataSignal();
}
";

/// Completion that differs between ranks or places: whole outputs are divided after the kernel. No algorithm of the
/// library does so.
#[test]
fn averages_that_end_apart_are_divided_at_the_end() {
    let algorithm = &algorithm(APART);
    let proved = proved(algorithm, 3).expect("three ranks");
    for element in [DType::F32, DType::I32, DType::Bf16] {
        let spec = Spec { element, op: ReduceOp::Avg, ..spec(algorithm) };
        let kernel = loops(algorithm, &proved, spec);
        assert!(kernel.facts(1).scale_outputs && kernel.text.contains("SCALE_KERNEL"));
        for parts in [1, 2] {
            let run = |job: &mut ShimJob<'_>| job.parts = parts;
            let done = like_the_host(&program(&kernel), (&proved, &kernel), 61, run);
            assert_eq!(done, Ok(()), "{element} in {parts} parts");
        }
    }
}

/// Tables of every schedule as it was written and as it was fused, with streams of several parts where there are few. One
/// text for all: tables differ in their facts and in their op mix. A usual run has one level of each schedule, and
/// `cargo xtask test --all` both.
#[test]
fn tables_have_the_hosts_bits() {
    let (mut streams, mut wrong) = (0, String::new());
    for (turn, algorithm) in select::library().iter().enumerate() {
        // A power of two, which all take, or 3.
        for (at, nranks) in [4, 3].into_iter().enumerate() {
            let Some(proved) = proved(algorithm, nranks) else { continue };
            for (nth, (level, count)) in
                [(Level::O0, 61), (Level::O2, 1000)].into_iter().enumerate()
            {
                if !takes_all() && (turn + at + nth) % 2 > 0 {
                    continue;
                }
                let goal = Goal { level, callers: Callers::One, reassociate: false };
                let spec = Spec { protocol: Protocol::Direct, ..spec(algorithm) };
                let mut kernel =
                    Kernel::of_table(&proved.optimize(goal).expect("what is made is proved"), spec)
                        .expect("floats have sums");
                walker(&mut kernel);
                let shim = program(&kernel);
                // Every CTA is a thread that polls.
                let many = kernel.schedule.streams.len() as u32;
                streams = streams.max(many / nranks);
                let parts = if many > nranks || level == Level::O0 { 1 } else { 3 };
                let run = |job: &mut ShimJob<'_>| (job.parts, job.threads) = (parts, 1);
                if let Err(why) = like_the_host(&shim, (&proved, &kernel), count, run) {
                    let name = algorithm.name();
                    let _ = writeln!(wrong, "{name} for {nranks} ranks, {level}: {why}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(streams > 1, "some of them fork");
}

/// A sum of three peers and the own block.
const AT_ONCE: &str = "
algorithm AtOnce() -> ReduceScatter {
    require nranks == 4, \"a sum of four\";
    view block = input.split(nranks);
    for d in 1..nranks { peer((rank - d) % nranks).TxAck(); }
    copy(local.block[rank], local.output);
    let a = peer((rank + 1) % nranks);
    let b = peer((rank + 2) % nranks);
    let c = peer((rank + 3) % nranks);
    a.RxAck();
    b.RxAck();
    c.RxAck();
    reduce([a.block[rank], b.block[rank], c.block[rank]], local.output);
    for d in 1..nranks { peer((rank + d) % nranks).TxDataSignal(); }
    for d in 1..nranks { peer((rank - d) % nranks).RxDataSignal(); }
}
";

/// Narrow floats: a move of several sources rounds once, and a fused chain of moves after each source; and a kernel whose
/// schedule has sums of f32 is refused.
#[test]
fn narrow_sums_round_as_the_host_rounds_them() {
    let source = Source::from_text("at_once.coll", AT_ONCE);
    let compiled = compile(&source, Frontend::File).unwrap_or_else(|all| panic!("{all:?}"));
    let at_once = Configured::new(compiled.algorithms[0].clone(), &source);
    let mut different = 0;
    for (algorithm, level) in
        [(&at_once, Level::O0), (&at_once, Level::O2), (named("MeshReduceScatter"), Level::O2)]
    {
        let proved = proved(algorithm, 4).expect("right");
        for element in [DType::Bf16, DType::F8E4M3] {
            let spec = Spec { element, ..spec(algorithm) };
            let goal = Goal { level, callers: Callers::One, reassociate: false };
            let made = proved.optimize(goal).expect("what is made is proved");
            let mut kernels = vec![Kernel::of_table(&made, spec).expect("floats have sums")];
            if level == Level::O0 {
                kernels.push(loops(algorithm, &proved, spec));
            }
            for kernel in kernels {
                let name = format!("{} {element} {level}", kernel.name);
                let done = like_the_host(&program(&kernel), (&proved, &kernel), 331, |_| ());
                assert_eq!(done, Ok(()), "{name}");
                if element != DType::Bf16 {
                    continue;
                }
                // With the other way of rounding, some bits are others.
                let define = "#define ROUNDELAY_CHAIN 1\n";
                let mut other = kernel.clone();
                other.text = if kernel.text.contains(define) {
                    kernel.text.replace(define, "")
                } else {
                    kernel.text.replacen("#define", &format!("{define}#define"), 1)
                };
                let done = like_the_host(&program(&other), (&proved, &kernel), 331, |_| ());
                different += usize::from(done.is_err());
            }
        }
    }
    assert_eq!(different, 4, "all these show the way of rounding");
    let wide = named("OrderedReduceScatter");
    let proved = proved(wide, 4).expect("right");
    for (element, fits) in [(DType::Bf16, false), (DType::F32, true), (DType::I32, true)] {
        let made = Kernel::of_loops(wide, &proved, Spec { element, ..spec(wide) });
        assert_eq!(made.is_ok(), fits, "{element}");
        assert!(made.err().is_none_or(|all| all[0].code.as_str() == "E0423"));
    }
}

/// Gives all tables one name and every op, so that they are one program.
fn walker(kernel: &mut Kernel) {
    let name = std::mem::replace(&mut kernel.name, "Walker".into());
    let code = code(&kernel.text).replace(&format!("({name})"), "(Walker)");
    let shapes = (1..=8).flat_map(|srcs| (1..=8).map(move |dsts| (srcs, dsts)));
    let mut all = String::new();
    for (srcs, dsts) in shapes {
        let _ = write!(all, " MOVE({srcs}, {dsts})");
    }
    // No line of the text names its algorithm.
    let lines = code.lines().filter(|line| !line.starts_with("#line"));
    let lines = lines.map(|line| match line.strip_prefix("#define ROUNDELAY_MOVES(MOVE)") {
        Some(mix) => {
            assert!(mix.split(" MOVE").all(|one| all.contains(one)), "{mix} is among all");
            format!("#define ROUNDELAY_MOVES(MOVE){all}\n")
        }
        None => format!("{line}\n"),
    });
    kernel.text = lines.collect();
}

/// A stream of several CTAs, each with its portion of every move.
#[test]
fn streams_of_several_parts_have_the_hosts_bits() {
    let (mut sweep, mut wrong) = (Sweep::default(), String::new());
    for (turn, algorithm) in select::library().iter().enumerate() {
        for nranks in [4, 3] {
            // A power of two, which all take, or 3.
            if !taken(turn + nranks as usize, 2) {
                continue;
            }
            let Some(proved) = proved(algorithm, nranks) else { continue };
            let kernel = loops(algorithm, &proved, spec(algorithm));
            if !sweep.tries(&kernel) {
                continue;
            }
            let shim = program(&kernel);
            for (parts, count, seed) in [(2, 1000, 0), (3, 1500, 11)] {
                let run = |job: &mut ShimJob<'_>| {
                    (job.parts, job.threads, job.repeats, job.delay_seed) = (parts, 1, 2, seed);
                };
                let done = like_the_host(&shim, (&proved, &kernel), count, run);
                if let Err(why) = done {
                    let name = &kernel.name;
                    let _ = writeln!(wrong, "{name} for {nranks} ranks in {parts} parts: {why}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Lines of data and flag, for every size of element, and where there are fewer elements than lines.
#[test]
fn lines_have_the_hosts_bits() {
    let (mut sweep, mut wrong) = (Sweep::default(), String::new());
    for algorithm in select::library() {
        if !Protocol::of_loops(algorithm).contains(&Protocol::Ll) {
            continue;
        }
        let (ll, ll128) = (Protocol::Ll, Protocol::Ll128);
        let narrow = [(DType::U8, ll), (DType::U8, ll128), (DType::F16, ll)];
        let wide = [(DType::F32, ll), (DType::F32, ll128), (DType::F64, ll)];
        for (dtype, protocol) in narrow.into_iter().chain(wide) {
            for nranks in [2, 5] {
                let Some(proved) = proved(algorithm, nranks) else { continue };
                let spec = Spec { element: dtype, protocol, ..spec(algorithm) };
                let kernel = loops(algorithm, &proved, spec);
                if !sweep.tries(&kernel) {
                    continue;
                }
                let shim = program(&kernel);
                for (count, parts) in [(1, 1), (61, 1), (1001, 2)] {
                    let run = |job: &mut ShimJob<'_>| (job.parts, job.repeats) = (parts, 3);
                    let done = like_the_host(&shim, (&proved, &kernel), count, run);
                    if let Err(why) = done {
                        let name = &kernel.name;
                        let _ = writeln!(wrong, "{name}, {nranks} ranks, {dtype}, {count}: {why}");
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
