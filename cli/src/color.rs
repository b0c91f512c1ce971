//! When the command colors what it prints: by `--color`, or else by the habits of the terminal and of cargo.

use std::env;
use std::ffi::OsString;

use anstream::ColorChoice as Choice;
use clap::{ColorChoice, ValueEnum as _};

use crate::streams;

/// Colors the streams of this process as `asked`. Without that, `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` are kept, and
/// then `CARGO_TERM_COLOR`, because `cargo roundelay` stands beside cargo's own lines.
pub(crate) fn choose(asked: Option<ColorChoice>) {
    // A caller that keeps the output gets it without colors, and the streams are the caller's own.
    if streams::is_kept() {
        return;
    }
    let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let asked = asked.or_else(|| {
        let told = ["NO_COLOR", "CLICOLOR_FORCE"].into_iter().any(set);
        let cargo = env::var("CARGO_TERM_COLOR").ok().filter(|_| !told)?;
        ColorChoice::from_str(&cargo, true).ok()
    });
    let choice = match asked {
        Some(ColorChoice::Always) => Choice::Always,
        Some(ColorChoice::Never) => Choice::Never,
        Some(ColorChoice::Auto) | None => Choice::Auto,
    };
    choice.write_global();
}

/// Returns the value of `--color` in a call that cannot be read as a whole.
pub(crate) fn asked(args: &[OsString]) -> Option<ColorChoice> {
    let words: Vec<_> = args.iter().filter_map(|word| word.to_str()).collect();
    let own = words.split(|word| *word == "--").next()?;
    let value =
        own.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--color")? {
            "" => own.get(at + 1).copied(),
            rest => rest.strip_prefix('='),
        })?;
    ColorChoice::from_str(value, false).ok()
}
