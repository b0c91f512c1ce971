//! Fused schedules are proved like any other, divide where the proof says, and move as few bytes as there can be.

use std::collections::BTreeSet;
use std::path::Path;

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::diagnostics::unless_refused;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::optimize::fuse;
use roundelay_core::schedule::{Buffer, OpKind, Schedule, legality, text};
use roundelay_core::syntax::Source;
use roundelay_core::verify::Callers;
use roundelay_core::verify::{Signals, verify_called};

use roundelay_library::SOURCES as LIBRARY;

fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all: Vec<(String, String)> =
        LIBRARY.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    let pat = std::fs::read_to_string(root.join("examples/pat.coll")).expect("an example");
    all.push(("pat.coll".into(), pat));
    all
}

fn each(counts: std::ops::RangeInclusive<u32>, mut judge: impl FnMut(&Schedule)) {
    let mut seen = 0;
    for (name, text) in sources() {
        let source = Source::from_text(&name, &text);
        let program =
            compile_with(&source, Frontend::File, &Dependencies::library(LIBRARY)).expect("right");
        for algorithm in program.algorithms {
            let algorithm = Configured::new(algorithm, &source);
            for nranks in counts.clone() {
                let admitted = unless_refused(algorithm.schedule(nranks)).expect("it is right");
                if let Some(schedule) = admitted {
                    seen += 1;
                    judge(&schedule);
                }
            }
        }
    }
    assert!(seen > 100, "{seen} schedules are not the library");
}

/// Bytes moved from or to user buffers, in units of the buffers.
fn traffic(schedule: &Schedule) -> f64 {
    let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move);
    let operands = moves.flat_map(|op| schedule.srcs(op).iter().chain(schedule.dsts(op)));
    let width = |operand| {
        let region = schedule.region(operand);
        let wide = region.hi.minus(region.lo).expect("a width");
        let user = !matches!(region.buffer, Buffer::Scratch(_));
        if user { wide.num() as f64 / wide.den() as f64 } else { 0.0 }
    };
    operands.map(|operand| width(*operand)).sum()
}

#[test]
fn the_library_fused_is_proved() {
    each(1..=9, |schedule| {
        let ways = [
            (Callers::Each, false),
            (Callers::Each, true),
            (Callers::One, false),
            (Callers::One, true),
        ];
        for (callers, reassociate) in ways {
            let fused = fuse(schedule, callers, reassociate).expect("it is fit");
            let show = || text::print(&fused);
            assert_eq!(legality::check(&fused), Ok(()), "{}", show());
            let proof = verify_called(&fused, Signals::default(), callers)
                .unwrap_or_else(|f| panic!("{f:#?}\n{}", show()));
            assert!(!proof.scale_outputs, "{}", show());
        }
    });
}

#[test]
fn nothing_is_read_or_written_twice() {
    each(2..=8, |schedule| {
        let n = schedule.nranks;
        let ranks = || (0..n).map(roundelay_core::ids::RankId);
        let units = |buffer| -> f64 {
            ranks().map(|rank| schedule.units(buffer, rank).floor() as f64).sum()
        };
        let least = units(Buffer::Input) + units(Buffer::Output);
        let one = fuse(schedule, Callers::One, true).expect("it is fit");
        let moved = traffic(&one);
        assert!(moved <= least + 1e-6, "{} {n}: {moved} of {least}", schedule.algorithm);
        // The author's nesting costs no more traffic where all ranks have one nesting.
        let one = fuse(schedule, Callers::One, false).expect("it is fit");
        let moved = traffic(&one);
        assert!(moved <= least + 1e-6, "{} {n}: {moved} of {least}", schedule.algorithm);
    });
}

/// Ops name statements that carry or fold data; in the ring, where each statement adds to the result, they name all.
#[test]
fn every_statement_is_named() {
    let lines = |schedule: &Schedule| -> BTreeSet<u32> {
        let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move);
        moves.flat_map(|op| schedule.lines(op.at)).collect()
    };
    let mut several = 0;
    each(2..=8, |schedule| {
        for (callers, reassociate) in
            [(Callers::Each, false), (Callers::Each, true), (Callers::One, false)]
        {
            let fused = fuse(schedule, callers, reassociate).expect("it is fit");
            let of = format!("{} at {}, {reassociate}", schedule.algorithm, schedule.nranks);
            let (all, named) = (lines(schedule), lines(&fused));
            assert!(named.is_subset(&all), "{of}:\n{}", text::print(&fused));
            if schedule.algorithm == "RingAllReduce" {
                assert_eq!(named, all, "{of}:\n{}", text::print(&fused));
            }
            several += usize::from(!fused.origins.is_empty());
            let printed = text::print(&fused);
            let read = text::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert_eq!((text::print(&read), &read.origins), (printed, &fused.origins), "{of}");
        }
    });
    assert!(several > 20, "{several}");
}
