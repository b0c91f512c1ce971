//! The values of loop variables at a statement, in words.

use super::Walk;
use super::values::Value;
use crate::program::ir::Stmt;

impl Walk<'_> {
    /// Returns the values of the variables of the loops around a statement, and of the numbers that it names, in words:
    /// `round = 1, b = 3`.
    #[cold]
    pub(super) fn loop_values(&self, stmt: &Stmt) -> Option<String> {
        let params = || self.program.params.iter().map(|param| param.var);
        let numbers = stmt.numbers().into_iter().filter(|var| params().all(|param| param != *var));
        let mut values: Vec<(&str, i64)> = Vec::new();
        for var in self.loops.iter().copied().chain(numbers) {
            let (name, Value::Int(value)) = (&*self.program.var(var).name, &self.vars[var.index()])
            else {
                continue;
            };
            // A step may have a name of its caller for another number.
            match values.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = *value,
                None => values.push((name, *value)),
            }
        }
        let values: Vec<_> =
            values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}
