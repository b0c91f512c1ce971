//! The names of a form's variables in a text of C or C++: the author's names, each new in its scope.

use std::collections::HashMap;

use crate::loops::cpp_names::identifier;

/// The scopes of a text that is being printed, and the names in them.
#[derive(Default)]
pub(crate) struct NameScopes {
    /// Names that the text uses itself.
    taken: Vec<String>,
    /// The names in use, by scope.
    scopes: Vec<Vec<String>>,
    /// The current name of each variable.
    names: HashMap<usize, String>,
}

impl NameScopes {
    /// Returns scopes in which these names are taken.
    pub(crate) fn new(taken: &[&str]) -> Self {
        let taken = taken.iter().map(|name| (*name).to_owned()).collect();
        Self { taken, ..Self::default() }
    }

    /// Begins a function: all scopes end.
    pub(crate) fn begin(&mut self) {
        self.scopes = vec![Vec::new()];
    }

    /// Opens a scope.
    pub(crate) fn open(&mut self) {
        self.scopes.push(Vec::new());
    }

    /// Ends the innermost scope.
    pub(crate) fn close(&mut self) {
        self.scopes.pop();
    }

    /// The number of open scopes.
    pub(crate) fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Returns a name for a whole text, like `wanted`, which no variable has from now on.
    pub(crate) fn global(&mut self, wanted: &str) -> String {
        let name = self.free(&identifier(wanted));
        self.taken.push(name.clone());
        name
    }

    /// Returns a new name for a variable that is called `wanted` in the source: this name, if it is free.
    pub(crate) fn declare(&mut self, var: usize, wanted: &str) -> String {
        let name = self.free(&identifier(wanted));
        self.scopes.last_mut().expect("a scope is open").push(name.clone());
        self.names.insert(var, name.clone());
        name
    }

    fn free(&self, wanted: &str) -> String {
        let used = |name: &String| {
            self.taken.iter().chain(self.scopes.iter().flatten()).any(|known| known == name)
        };
        let names =
            std::iter::once(wanted.to_owned()).chain((2..).map(|k| format!("{wanted}_{k}")));
        let mut free = names.filter(|name| !used(name));
        free.next().expect("there are enough numbers")
    }

    /// The name of a variable.
    pub(crate) fn of(&self, var: usize) -> &str {
        &self.names[&var]
    }
}
