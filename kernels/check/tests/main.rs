//! Tests of the check: harnesses of small kernels in PTX, mistakes at their places, and mutants of harness files.

mod candidates;
mod reading;
mod verdicts;

use std::time::Duration;

use roundelay_kernel_check::harness::ModuleText;
use roundelay_kernel_check::{Case, CheckOptions, Compiled, Harness, Verdict};

/// Kernels that tests launch.
const PTX: &str = include_str!("kernels.ptx");

/// A harness of these kernels with more tables.
fn harness(tables: &str) -> Harness {
    let text = format!("[module.m]\nptx = \"kernels.ptx\"\n{tables}");
    let mut all = Harness::from_toml(&text).unwrap_or_else(|wrong| panic!("{wrong:?} in\n{text}"));
    all.remove(0)
}

fn cases(harness: &Harness) -> Vec<Case> {
    let compile = |module: &roundelay_kernel_check::harness::KernelModule, _| match module.origin {
        ModuleText::Ptx(_) => Ok(Compiled { ptx: PTX.to_owned(), ..Compiled::default() }),
        _ => Err("no such text".to_owned()),
    };
    harness.cases(compile, |_, bad| bad.to_string()).expect("the kernels are PTX")
}

fn options() -> CheckOptions<'static> {
    CheckOptions {
        seeds: None,
        first: 0,
        budget: Duration::from_secs(60),
        threads: 2,
        explain: true,
        stop: &|| false,
        progress: &|_| {},
    }
}

fn checked(tables: &str) -> Verdict {
    let harness = harness(tables);
    harness.check(&cases(&harness), &options()).unwrap_or_else(|why| panic!("{why} in {tables}"))
}
