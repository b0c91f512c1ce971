//! The warnings of unused declarations: the cost of each, and a correction.

use super::super::hir::{self, Expr, Ty, VarId};
use super::{UnusedKind, Usage, units};
use crate::diagnostics::{Code, Diagnostic};

impl Usage<'_> {
    /// Returns the warning about a variable, unless it is used.
    pub(super) fn warning(&self, var: VarId, kind: UnusedKind<'_>) -> Option<Diagnostic> {
        let algorithm = self.algorithm;
        let index = var.0 as usize;
        let written = self.written[index];
        let hir::Var { name, span, .. } = algorithm.var(var);
        if self.used[index] || (written.is_some() && !matches!(kind, UnusedKind::Scratch(..))) {
            return None;
        }
        let warning = |code, title: String| Diagnostic::new(code, *span, title);
        let help = format!("remove it, or call it `_{name}`");
        let found = match kind {
            UnusedKind::Scratch(slots, like) => {
                let memory = memory(algorithm, slots, like);
                match written {
                    None => warning(Code::UnusedScratch, format!("scratch `{name}` is never used"))
                        .label("nobody reads or writes it")
                        .note(memory)
                        .help(help),
                    Some(at) => {
                        let title = format!("scratch `{name}` is written and never read");
                        warning(Code::UnusedScratch, title)
                            .label("nobody reads it")
                            .other(at, "written here")
                            .note(memory)
                            .help(format!("remove it and what writes it, or call it `_{name}`"))
                    }
                }
            }
            // The language fixes the name and the type: the parameter cannot go.
            UnusedKind::Param if name == "root" && algorithm.collective.is_rooted() => {
                warning(Code::UnusedParameter, "parameter `root` is never used".to_owned())
                    .label("nothing depends on it")
                    .note(format!(
                        "a {} that does not ask who the root is serves one root at most",
                        algorithm.collective
                    ))
                    .help("write `root` where the number of that rank stands")
            }
            UnusedKind::Param => {
                let title = format!("parameter `{name}` is never used");
                let mut found = warning(Code::UnusedParameter, title)
                    .label("nothing depends on it")
                    .note("callers may set it, and all its values give the same schedule")
                    .help(help);
                // The proof for every nranks admits rings.
                if algorithm.var(var).ty != Ty::Ring {
                    found = found.note("with it there is no proof for every nranks");
                }
                found
            }
            UnusedKind::StepParam(step) => {
                let step = &algorithm.var(step).name;
                let title = format!("parameter `{name}` of step `{step}` is never used");
                warning(Code::UnusedParameter, title)
                    .label("nothing depends on it")
                    .note("every call has to give it a value")
                    .help(help)
            }
            UnusedKind::Let => {
                warning(Code::UnusedLet, format!("the value of `{name}` is never used"))
                    .label("nothing depends on it")
                    .note("every rank works it out, and the proof for every nranks has to follow")
                    .help(help)
            }
            UnusedKind::View => warning(Code::UnusedView, format!("view `{name}` is never used"))
                .label("nobody reads or writes it by this name")
                .help(help),
            UnusedKind::Step => warning(Code::UnusedStep, format!("step `{name}` is never called"))
                .label("no call of it")
                .note("a step is laid out, and proved, where it is called: this one is not")
                .help(format!("call it, remove it, or name it `_{name}`")),
            UnusedKind::Fifo => {
                warning(Code::UnusedFifo, "nothing passes through the fifo".to_owned())
                    .label("no `send` or `recv` of this algorithm uses it")
                    .help("remove it: a called algorithm has its own")
            }
        };
        // The underscore is an edit where the name stands at its declaration alone.
        let underscored = format!("_{name}");
        let named = found.help.as_ref().is_some_and(|help| help.contains(&underscored));
        Some(if named && written.is_none() { found.edit(*span, underscored) } else { found })
    }
}

/// Returns the memory that a scratch takes.
fn memory(algorithm: &hir::Algorithm, slots: Option<&Expr>, like: &Expr) -> String {
    let much = units::of(algorithm, slots, like);
    let much = much.map(|much| {
        let plural = if much == "1" { "" } else { "s" };
        format!("{much} unit{plural} of memory")
    });
    let much = much.as_deref().unwrap_or("memory");
    format!("it takes {much} on every rank, and a budget of scratch counts it")
}
