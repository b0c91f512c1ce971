//! Rules for the PTX of a kernel that need no run.

mod flow;
mod opcodes;
mod origins;
mod rules;

use std::fmt;

pub use opcodes::OPCODES;

use crate::error::BadText;
use crate::program::Module;
use crate::text::{Statement, Text};

/// A rule for the text of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// An opcode with its modifiers is one of the kernels' own.
    Opcode,
    /// A barrier is that of all threads, or that of the threads that move.
    Barrier,
    /// A load of data that no thread writes is one from the table of facts.
    NonCoherent,
    /// A loop that waits for a word of another thread acquires it, in the loop or by a fence behind it.
    Wait,
    /// A post releases the work before it, and a relaxed store only tells the host of a wait.
    Post,
    /// An access of 16 bytes is behind a test of alignment, or to an address that is aligned by its computation.
    Vector,
}

/// A place where a rule does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The name of the kernel or function.
    pub function: String,
    /// The line of the PTX text, from 1.
    pub line: u32,
    /// The file and the line of the source, if the text names them.
    pub source: Option<(String, u32)>,
    /// The reason.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, function, line, source, what } = self;
        write!(f, "line {line} of the PTX, in {function}")?;
        if let Some((file, line)) = source {
            write!(f, " ({file}:{line})")?;
        }
        write!(f, ": {what} [{rule:?}]")
    }
}

/// Returns the places of a kernel's text where a rule does not hold.
///
/// # Errors
/// The line that is not PTX, or not in the subset.
pub fn lint(text: &str) -> Result<Vec<Finding>, BadText> {
    let mut findings = opcodes(&Text::parse(text)?);
    findings.extend(rules::check(&Module::parse_whole(text)?));
    findings.sort_by_key(|finding| (finding.line, finding.rule));
    Ok(findings)
}

fn opcodes(text: &Text) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in &text.functions {
        for statement in function.body.iter().flatten() {
            if let Statement::Instruction(instruction) = statement
                && OPCODES.binary_search(&instruction.opcode.as_str()).is_err()
            {
                findings.push(Finding {
                    rule: Rule::Opcode,
                    function: function.name.clone(),
                    line: instruction.line,
                    source: None,
                    what: format!(
                        "`{}` is not among the opcodes of the kernels",
                        instruction.opcode
                    ),
                });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests;
