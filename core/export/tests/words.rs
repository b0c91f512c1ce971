//! The header of these words for the device.

use std::fmt::Write as _;

use expect_test::expect_file;

use part::{Header, Kind, NUMBERS};
use roundelay_core::schedule::SignalKind;

#[allow(dead_code, unreachable_pub)]
#[path = "../src/cuda/words.rs"]
mod part;

/// Returns the kinds of signals of programs; kernels have no others.
fn on_devices() -> impl Iterator<Item = SignalKind> {
    SignalKind::ALL.into_iter().take(SignalKind::OF_PAIRS + SignalKind::OF_CHILDREN)
}

fn header() -> String {
    let mut text = "// Written by a test from core/export/src/cuda/words.rs, which is the place to change it: what host and device agree on by\n\
         // number. `UPDATE_EXPECT=1 cargo test -p roundelay-export-tests words::` writes it anew.\n\
         #pragma once\n#include \"base.cuh\"\n\nnamespace roundelay {\n"
        .to_owned();
    for (name, about, words) in [Header::SHARED, Kind::SHARED] {
        let _ = writeln!(text, "\n//{about}\nenum class {name} : i64 {{");
        for (word, about) in words {
            let _ = writeln!(text, "    {word}, //{about}");
        }
        text.push_str("};\n");
    }
    let kinds: Vec<_> = on_devices().map(|kind| format!("{kind:?}")).collect();
    let _ = writeln!(
        text,
        "\n// The kinds of signal: those of pairs of ranks, then those of child streams.\nenum class Signal : i32 {{ {} }};",
        kinds.join(", ")
    );
    let _ = writeln!(
        text,
        "#ifdef ROUNDELAY_SHIM\nconstexpr const char* SIGNAL_NAMES[] = {{\"{}\"}};\n#endif\n",
        kinds.join("\", \"")
    );
    for (name, about, wide, value) in NUMBERS {
        let _ = match wide {
            true => writeln!(text, "constexpr u64 {name} = {value:#x}; //{about}"),
            false => writeln!(text, "constexpr i32 {name} = {value}; //{about}"),
        };
    }
    text.push_str("\n} // namespace roundelay\n");
    text
}

#[test]
fn the_devices_words_are_fresh() {
    expect_file!["../../../kernels/device/words.cuh"].assert_eq(&header());
}

/// The place of a counter is the number of its kind.
#[test]
fn signals_of_pairs_come_first() {
    for (number, kind) in on_devices().enumerate() {
        assert_eq!(kind as usize, number);
        assert_eq!(kind.of_pairs(), number < SignalKind::OF_PAIRS, "{kind:?}");
    }
}
