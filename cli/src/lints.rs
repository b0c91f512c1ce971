//! Warnings on the command line: which are errors, which are not given, and how they are shown.

use clap::Args;
use roundelay::tools;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::lints::{Level, Levels, Lint, Unknown};
use roundelay_core::program::CompiledSource;

use crate::report::Failure;
use crate::values::RefusedValue;

#[derive(Args, Clone, Default)]
pub(crate) struct LintFlags {
    /// Report a warning as an error: a code such as W0002, or warnings for all of them; may be given several times
    #[arg(long, value_name = "WARNING", value_delimiter = ',', value_parser = lint)]
    deny: Vec<Lint>,
    /// Do not give a warning: a code such as W0002, or warnings for all of them; `#[allow]` and `#[deny]` in the source
    /// are stronger
    #[arg(long, value_name = "WARNING", value_delimiter = ',', value_parser = lint)]
    allow: Vec<Lint>,
}

fn lint(text: &str) -> Result<Lint, RefusedValue> {
    Lint::parse(text)
        .map_err(|Unknown { help, .. }| RefusedValue::new("names no warning").help(help))
}

/// A program and the remaining warnings; or the errors, denied warnings included.
pub(crate) type Checked = Result<(CompiledSource, Vec<Diagnostic>), Vec<Diagnostic>>;

impl LintFlags {
    fn levels(&self) -> Result<Levels, Failure> {
        let mut levels = Levels::default();
        let denied = self.deny.iter().map(|lint| (*lint, Level::Deny));
        for (lint, level) in denied.chain(self.allow.iter().map(|lint| (*lint, Level::Allow))) {
            levels.set(lint, level, None).map_err(|_| {
                let name = lint.name();
                Failure::usage(Code::BadFlag, format!("`{name}` is both allowed and denied"))
                    .with_help(format!("keep one of `--deny {name}` and `--allow {name}`"))
            })?;
        }
        Ok(levels)
    }

    /// Returns the warnings that remain by these flags.
    pub(crate) fn warnings(&self, warnings: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, Failure> {
        Ok(self.levels()?.apply(warnings))
    }

    /// Returns the result of a source by these flags.
    pub(crate) fn apply(
        &self,
        compiled: Result<CompiledSource, Vec<Diagnostic>>,
    ) -> Result<Checked, Failure> {
        let levels = self.levels()?;
        Ok(compiled.and_then(|program| tools::judge(program, &levels)))
    }
}
