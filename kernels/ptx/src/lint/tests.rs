//! Each rule holds for a compiled kernel, and is broken by a change of its text.

use super::*;

const KERNEL: &str = include_str!("../../tests/kernels/pairwise_all_to_all.ptx");

fn findings(text: &str) -> Vec<Finding> {
    lint(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_compiled_kernel_keeps_all_rules() {
    let found: Vec<_> = findings(KERNEL).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Checks that a text breaks one rule alone, besides opcodes that are new with the change, and returns the findings.
fn breaks(rule: Rule, text: &str) -> Vec<Finding> {
    let all = findings(text);
    let others = all.iter().filter(|finding| ![rule, Rule::Opcode].contains(&finding.rule));
    assert_eq!(others.count(), 0, "{rule:?}: {all:?}");
    let found: Vec<_> = all.into_iter().filter(|finding| finding.rule == rule).collect();
    assert!(!found.is_empty(), "{rule:?} does not notice");
    found
}

/// A kernel with a change of one place of its text.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[test]
fn opcodes_are_in_order() {
    assert!(OPCODES.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_new_opcode_is_found() {
    let found = breaks(Rule::Opcode, &changed(KERNEL, "min.u64", "min.s16"));
    assert!(found[0].what.contains("`min.s16`"), "{}", found[0]);
}

#[test]
fn a_barrier_of_another_number_or_count_is_found() {
    for other in ["bar.sync 1, 192;", "bar.sync 2, 224;", "bar.sync 1;"] {
        let found = breaks(Rule::Barrier, &changed(KERNEL, "bar.sync 1, 224;", other));
        assert_eq!(found.len(), 1, "{other}");
        let (file, _) = found[0].source.as_ref().expect("a place of the source");
        assert!(["base.cuh", "signals.cuh"].contains(&file.as_str()), "{}", found[0]);
    }
    breaks(Rule::Barrier, &changed(KERNEL, "any, 1, 224, mine", "any, 1, 128, mine"));
    breaks(Rule::Barrier, &changed(KERNEL, ".maxntid 256", ".maxntid 320"));
}

#[test]
fn a_load_of_constant_data_from_a_buffer_is_found() {
    let found = breaks(Rule::NonCoherent, &changed(KERNEL, "ld.global.u32 ", "ld.global.nc.u32 "));
    assert_eq!(found.len(), 1);
    breaks(Rule::NonCoherent, &changed(KERNEL, "ld.global.v2.u64 ", "ld.global.nc.v2.u64 "));
    // The fourth word of the parameters is the memory that blocks write.
    breaks(
        Rule::NonCoherent,
        &changed(KERNEL, "ld.param.u64 \t%rd3, [%rd30];", "ld.param.u64 \t%rd3, [%rd30+24];"),
    );
}

#[test]
fn a_wait_without_an_acquire_is_found() {
    breaks(Rule::Wait, &changed(KERNEL, "fence.acq_rel.gpu;", ""));
    breaks(Rule::Wait, &changed(KERNEL, "ld.acquire.cta.u32", "ld.relaxed.cta.u32"));
    breaks(Rule::Wait, &changed(KERNEL, "ld.acquire.cta.u32", "ld.volatile.u32"));
}

#[test]
fn a_post_without_a_release_is_found() {
    let post = "red.release.gpu.global.add.u64";
    breaks(Rule::Post, &changed(KERNEL, post, "red.relaxed.gpu.global.add.u64"));
    breaks(Rule::Post, &changed(KERNEL, post, "red.global.add.u64"));
    breaks(Rule::Post, &changed(KERNEL, post, "st.relaxed.gpu.global.u64"));
}

#[test]
fn a_vector_without_a_test_of_alignment_is_found() {
    let untested = KERNEL.replace(", 15;", ", 7;");
    assert_ne!(untested, KERNEL);
    breaks(Rule::Vector, &untested);
}
