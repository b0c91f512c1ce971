//! The build of this command, on which measured times depend.

use std::io::{IsTerminal as _, stderr};
use std::time::{Duration, Instant};

use crate::report::took;
use crate::stats::peak;
use crate::streams::{is_kept, is_quiet, say};

/// A check that takes longer is worth an optimized command.
const SLOW: Duration = Duration::from_secs(5);

/// `release`, or `dev`, which is quick to build: code that moves data is optimized, and the code that calls it is not.
pub(crate) const BUILD: &str = env!("ROUNDELAY_BUILD");

/// Returns a line above measured times.
pub(crate) fn line(subcommand: &str) -> String {
    match BUILD {
        "dev" => format!("build: dev, {}", advice(subcommand)),
        build => format!("build: {build}"),
    }
}

/// Warns that times mean little, if they do.
pub(crate) fn warn(subcommand: &str) {
    if BUILD == "dev" {
        say(format!(
            "\x1b[1;93mwarning\x1b[0m\x1b[1m: this is the dev build, {}\x1b[0m",
            advice(subcommand)
        ));
    }
}

/// Runs `work`, and where that was slow for want of optimization, says at a terminal how to get the optimized command.
pub(crate) fn timed<T>(subcommand: &str, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = work();
    let took = begun.elapsed();
    if BUILD == "dev" && took > SLOW && stderr().is_terminal() && !is_kept() && !is_quiet() {
        say(format!(
            "note: the dev build took {:.0} s; the optimized command is several times as fast: \
             cargo run --release -p roundelay-cli -- {subcommand} ...",
            took.as_secs_f64()
        ));
    }
    done
}

/// Says which command this is, and what its work took.
pub(crate) fn told(time: Duration) {
    let memory = peak().map_or_else(String::new, |bytes| {
        format!(", peak memory {:.1} MiB", bytes as f64 / f64::from(1 << 20))
    });
    say(format!(
        "note: roundelay {}, {BUILD} build, took {}{memory}",
        env!("CARGO_PKG_VERSION"),
        took(time.as_secs_f64())
    ));
}

fn advice(subcommand: &str) -> String {
    format!(
        "quick to build: figures are of an unoptimized command; \
         for figures run cargo run --release -p roundelay-cli -- {subcommand} ..."
    )
}
