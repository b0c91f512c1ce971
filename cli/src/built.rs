//! How this command was built, which measured times depend on.

use crate::streams::say;

/// `release`, or `dev`, which is quick to build: what moves data is optimized, and what calls it is not.
pub(crate) const BUILD: &str = env!("ROUNDELAY_BUILD");

/// A line above measured times.
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

fn advice(subcommand: &str) -> String {
    format!(
        "quick to build: figures are of an unoptimized command; \
         for figures run cargo run --release -p roundelay-cli -- {subcommand} ..."
    )
}
