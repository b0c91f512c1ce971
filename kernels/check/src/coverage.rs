//! The instructions and lines of the launched kernels that some run to its end executed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::sequence::Sequence;

/// What was executed of each module's kernels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<String, Covered>);

/// The instructions of a module's launched kernels, each by its function and its line of the PTX.
#[derive(Clone, Debug, Default)]
struct Covered(BTreeMap<(String, u32), Instruction>);

#[derive(Clone, Debug, Default)]
struct Instruction {
    source: Option<(String, u32)>,
    executed: bool,
}

impl Coverage {
    /// Adds the instructions that a run executed, as the machine gives them.
    pub(crate) fn add(&mut self, run: &Sequence, covered: &[bool]) {
        let (mut at, mut seen) = (0, Vec::new());
        for launched in &run.launches {
            if seen.contains(&launched.module) {
                continue;
            }
            seen.push(launched.module);
            let Some(number) = launched.module else {
                at += run.own_instructions;
                continue;
            };
            let loaded = &run.case.loaded[number];
            let all = &mut self.0.entry(loaded.name.clone()).or_default().0;
            for function in &loaded.module.functions {
                let executed = covered.get(at..).unwrap_or_default();
                at += function.instructions.len();
                let is_launched = |other: &crate::sequence::Launched| {
                    other.module == launched.module && other.kernel == function.name
                };
                if function.is_kernel && !run.launches.iter().any(is_launched) {
                    continue;
                }
                for (instruction, executed) in function.instructions.iter().zip(executed) {
                    let key = (function.name.clone(), instruction.line);
                    let known = all.entry(key).or_insert_with(|| {
                        let source = loaded.module.source_line(instruction);
                        let source = source.map(|(file, line)| (file.to_owned(), line));
                        Instruction { source, executed: false }
                    });
                    known.executed |= executed;
                }
            }
        }
    }

    /// For each module the counts, and the lines of which no instruction was executed.
    pub(crate) fn json(&self) -> Value {
        let module = |(name, Covered(all)): (&String, &Covered)| {
            let mut lines: BTreeMap<&(String, u32), bool> = BTreeMap::new();
            for Instruction { source, executed } in all.values() {
                if let Some(source) = source {
                    *lines.entry(source).or_default() |= executed;
                }
            }
            let missed = lines.iter().filter(|(_, executed)| !**executed);
            let missed: Vec<_> = missed.map(|((file, line), _)| format!("{file}:{line}")).collect();
            json!({
                "module": name,
                "instructions": all.len(),
                "executed": all.values().filter(|one| one.executed).count(),
                "lines": lines.len(),
                "lines_not_executed": missed,
            })
        };
        self.0.iter().map(module).collect()
    }
}
