//! A sweep over kernels that a C++ compiler makes programs of. A usual run tries those with a construct of the device
//! headers that no kernel of the sweep before them has: headers are the same for all kernels, so a mistake in one of their
//! functions shows in any kernel that calls it. `cargo xtask test --all` tries all kernels.

use std::collections::BTreeSet;

use roundelay_export::cuda::Kernel;
use roundelay_tests::takes_all;

/// The kernels of a sweep so far.
#[derive(Default)]
pub(super) struct Sweep {
    seen: BTreeSet<String>,
    kernels: usize,
    tried: usize,
}

impl Sweep {
    /// Whether this run tries the next kernel.
    pub(super) fn tries(&mut self, kernel: &Kernel) -> bool {
        let before = self.seen.len();
        self.seen.extend(constructs(&kernel.text));
        let tries = takes_all() || self.seen.len() > before;
        self.kernels += 1;
        self.tried += usize::from(tries);
        tries
    }

    pub(super) fn kernels(&self) -> usize {
        self.kernels
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        let Self { kernels, tried, .. } = self;
        eprintln!("{tried} of {kernels} kernels; `cargo xtask test --all` tries all of them");
    }
}

/// The constructs of the device headers in a kernel's text: settings, shapes of moves, and functions.
fn constructs(text: &str) -> BTreeSet<String> {
    // Numbers of a program, which no header knows.
    let plain = ["ROUNDELAY_PIECES", "ROUNDELAY_LINK_PASSES", "ROUNDELAY_VECTOR"];
    let mut found = BTreeSet::new();
    let mut own: BTreeSet<&str> = ["for", "if", "while", "switch", "return"].into();
    for line in text.lines().filter(|line| !line.starts_with("//") && !line.starts_with("#line")) {
        if let Some(setting) = line.strip_prefix("#define ") {
            let (name, value) = setting.split_once(' ').unwrap_or((setting, ""));
            match value.split_once('(') {
                // A list of shapes: each is a construct.
                Some(_) => found.extend(value.split(") ").map(|shape| format!("{name} {shape}"))),
                None if plain.contains(&name) => {}
                None => _ = found.insert(setting.to_owned()),
            }
            continue;
        }
        let line = line.strip_prefix("ROUNDELAY_DEVICE void ").map_or(line, |head| {
            own.insert(head.split('(').next().unwrap_or_default());
            ""
        });
        let calls = line.match_indices('(').filter_map(|(at, _)| {
            let begin = line[..at].rfind(|c: char| !(c.is_alphanumeric() || "_<>".contains(c)));
            Some(&line[begin.map_or(0, |begin| begin + 1)..at]).filter(|word| !word.is_empty())
        });
        found.extend(calls.filter(|word| !own.contains(word)).map(str::to_owned));
    }
    found
}

#[test]
fn settings_shapes_and_functions_are_constructs() {
    let text = "// A comment (of no kernel)
#define ROUNDELAY_OP Sum
#define ROUNDELAY_MOVES(MOVE) MOVE(1, 1) MOVE(2, 1)
#define ROUNDELAY_PIECES 8

ROUNDELAY_DEVICE void inner(Lane& lane) {
    for (num i = 0; i < quo(me, 2); ++i) {
#line 7 \"a (b).coll\"
        lane.parallel<true>(0, 2, [&](const num way) {
    }
}
ROUNDELAY_WALK(Name) {
    inner(lane);
}
";
    let found: Vec<_> = constructs(text).into_iter().collect();
    let shapes = ["ROUNDELAY_MOVES(MOVE) MOVE(1, 1", "ROUNDELAY_MOVES(MOVE) MOVE(2, 1)"];
    let wanted =
        [shapes[0], shapes[1], "ROUNDELAY_OP Sum", "ROUNDELAY_WALK", "parallel<true>", "quo"];
    assert_eq!(found, wanted);
}
