//! The variables of a program by their names, and places of expressions in the text form.

use std::collections::HashMap;

use crate::line::number;
use crate::program::ir::{Kind, Var, VarId};
use crate::source::Span;

/// The variables of a program, by their names.
#[derive(Default)]
pub(super) struct Names {
    vars: Vec<Var>,
    by_name: HashMap<String, Vec<VarId>>,
}

impl Names {
    pub(super) fn declare(&mut self, var: Var) {
        let id = VarId(self.vars.len() as u32);
        self.by_name.entry(var.name.clone()).or_default().push(id);
        self.vars.push(var);
    }

    pub(super) fn into_vars(self) -> Vec<Var> {
        self.vars
    }

    /// The kind of a variable's values.
    pub(super) fn kind(&self, var: VarId) -> Kind {
        self.vars[var.index()].kind
    }

    /// Returns the variable that `text` names, and the kind of its values.
    pub(super) fn var(&self, text: &str) -> Result<(VarId, Kind), String> {
        let unknown = || format!("no variable is called `{text}`");
        let name = text.strip_prefix('%').ok_or_else(unknown)?;
        let (name, id) = match name.split_once('#') {
            Some((name, id)) => (name, Some(VarId(number(id)?))),
            None => (name, None),
        };
        let found = match (self.by_name.get(name).map(Vec::as_slice), id) {
            (Some([one]), None) => *one,
            (Some(all), Some(id)) if all.contains(&id) => id,
            _ => return Err(unknown()),
        };
        Ok((found, self.vars[found.index()].kind))
    }
}

/// `12..15`
pub(super) fn span(text: &str) -> Result<Span, String> {
    let (lo, hi) = text.split_once("..").ok_or("expected a place such as `3..5`")?;
    Ok(Span { lo: number(lo)?, hi: number(hi)? })
}
