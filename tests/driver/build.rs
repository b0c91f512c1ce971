//! The driver, and how a program runs below it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use roundelay_tests::root;

use super::variables::{folder, variables};

/// A program that is made with the driver.
pub(super) fn made(name: &str) -> PathBuf {
    below(&mut Command::new("true"));
    folder(&root()).join(name)
}

/// Has a program run below the driver. A process makes the driver once.
pub(crate) fn below(command: &mut Command) -> &mut Command {
    static VARIABLES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| variables(&root()));
    command.envs(VARIABLES.iter().map(|(name, value)| (name, value)))
}
