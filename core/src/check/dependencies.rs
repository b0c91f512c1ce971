//! The algorithms that a source may call: its own, those of sources that it uses, and those of the library.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::hir::{self, Callee};
use super::{Frontend, check};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Home;
use crate::syntax::Source;
use crate::syntax::{self, ast};
use crate::units::count;

/// The most sources that may use one another in a row; the check of each is a call within that of the one before.
const DEEPEST: usize = 64;

/// The files that sources may use.
pub trait SourceFiles {
    /// Returns what tells the file at `path` from all others, whatever path leads to it; `path` begins where the name of
    /// the compiled source does.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    fn identity(&self, path: &str) -> Result<String, String>;

    /// Reads the file at `path` as a source.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    fn read(&self, path: &str) -> Result<Source, String>;
}

/// A function that reads sources by their paths, of which no two lead to one file.
impl<F: Fn(&str) -> Result<Source, String>> SourceFiles for F {
    fn identity(&self, path: &str) -> Result<String, String> {
        Ok(path.to_owned())
    }

    fn read(&self, path: &str) -> Result<Source, String> {
        self(path)
    }
}

/// The sources whose algorithms a source may call, beside its own: those of the library, and those that it names by
/// `use`. The compiler reads no files: its callers do.
#[derive(Clone, Copy)]
pub struct Dependencies<'a> {
    /// The library: names and texts of its sources.
    pub prelude: &'a [(&'a str, &'a str)],
    /// The files that `use` may name.
    pub load: &'a dyn SourceFiles,
}

impl<'a> Dependencies<'a> {
    /// Returns the sources of the library alone, without files that a source could use.
    pub fn library(prelude: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            prelude,
            load: &|path: &str| Err(format!("there is no file beside this source: `{path}`")),
        }
    }

    /// Returns no sources: neither a library nor files.
    pub fn none() -> Self {
        Self::library(&[])
    }
}

/// The result of a look-up of an algorithm by its name in a call.
pub(super) enum DependencyLookup {
    Callee(Arc<Callee>),
    /// The algorithm is being checked, for it calls this one.
    Itself,
    /// The algorithm has errors, which were reported.
    Wrong,
    /// The source of the algorithm does not declare it `pub`.
    Private,
    Nothing,
}

/// The sources of one compilation, in which each used file is compiled once.
pub(crate) struct Sources<'a> {
    dependencies: &'a Dependencies<'a>,
    /// The used files, by their identities.
    used: RefCell<HashMap<String, UsedSource>>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(dependencies: &'a Dependencies<'a>) -> Self {
        Self { dependencies, used: RefCell::default() }
    }

    /// Returns the source from which a compilation starts.
    pub(crate) fn start(&self, source: &Source) -> OpenSource {
        let path = source.name().to_owned();
        let identity = self.dependencies.load.identity(&path).unwrap_or_else(|_| path.clone());
        OpenSource { path, identity }
    }
}

/// The algorithms of a used file, or its number of errors and the first of them.
type UsedSource = Result<Vec<Arc<Callee>>, (usize, Option<String>)>;

/// A source that is being compiled.
#[derive(Clone)]
pub(crate) struct OpenSource {
    path: String,
    identity: String,
}

/// The algorithms that a source can call.
pub(super) struct Known<'a> {
    sources: &'a Sources<'a>,
    /// The sources that are being compiled, this one last.
    open: Vec<OpenSource>,
    /// The algorithms of this source; `None` while one is being checked, or has errors.
    here: HashMap<String, Option<Arc<Callee>>>,
    wrong: Vec<String>,
    used: Vec<Arc<Callee>>,
    /// Whether a used source could not be read: its algorithms are neither known nor missing.
    lost: bool,
    /// Names that may be declared where the text could not be read: they are neither known nor missing.
    unread: &'a [String],
    library: RefCell<HashMap<String, Option<Arc<Callee>>>>,
}

impl<'a> Known<'a> {
    /// Returns the algorithms that `file` can call beside its own; `open` are the sources that led to it.
    ///
    /// The algorithms of `beside` count as its own: they stood in its source before.
    pub(super) fn new(
        file: &'a ast::File,
        sources: &'a Sources<'a>,
        open: Vec<OpenSource>,
        beside: &[Arc<Callee>],
        errors: &mut Vec<Diagnostic>,
    ) -> Self {
        let beside = beside.iter().map(|a| (a.algorithm.name.clone(), Some(a.clone())));
        let own = file.algorithms.iter().map(|a| (a.name.text.clone(), None));
        let here = beside.chain(own).collect();
        let library = RefCell::default();
        let mut known = Self {
            sources,
            open,
            here,
            wrong: Vec::new(),
            used: Vec::new(),
            lost: false,
            unread: &file.unread,
            library,
        };
        let mut named = Vec::new();
        for used in &file.uses {
            match known.read(&used.path, &mut named) {
                Ok(callees) => known.used.extend(callees),
                Err((title, note)) => {
                    known.lost = true;
                    let mut error = Diagnostic::new(Code::BadUse, used.span, title);
                    error.notes.extend(note);
                    errors.push(error.label("used here"));
                }
            }
        }
        known
    }

    /// Reads the algorithms of a source that this source uses, unless it is `named` already.
    fn read(
        &self,
        path: &str,
        named: &mut Vec<String>,
    ) -> Result<Vec<Arc<Callee>>, (String, Option<String>)> {
        let path = beside(self.open.last().map_or("", |open| &open.path), path);
        let load = self.sources.dependencies.load;
        let unreadable = |why| (format!("cannot read `{path}`"), Some(why));
        let identity = load.identity(&path).map_err(unreadable)?;
        if named.contains(&identity) {
            return Ok(Vec::new());
        }
        named.push(identity.clone());
        let row = || self.open.iter().map(|open| &*open.path).collect::<Vec<_>>().join(" uses ");
        if self.open.iter().any(|open| open.identity == identity) {
            return Err((format!("`{path}` uses itself"), Some(row())));
        }
        if self.open.len() >= DEEPEST {
            let title =
                format!("`{path}` is behind more than {DEEPEST} sources that use each other");
            return Err((title, None));
        }
        let known = self.sources.used.borrow().get(&identity).cloned();
        let used = match known {
            Some(used) => used,
            None => {
                let source = load.read(&path).map_err(unreadable)?;
                let open = OpenSource { path: path.clone(), identity: identity.clone() };
                let used = self.compile(&source, open, Home::Used).map_err(|errors| {
                    (errors.len(), errors.first().map(|error| error.report(&source)))
                });
                self.sources.used.borrow_mut().insert(identity, used.clone());
                used
            }
        };
        used.map_err(|(errors, first)| {
            (format!("`{path}` is wrong itself: {}", count(errors, "error")), first)
        })
    }

    fn compile(
        &self,
        source: &Source,
        own: OpenSource,
        home: Home,
    ) -> Result<Vec<Arc<Callee>>, Vec<Diagnostic>> {
        let (file, errors) = syntax::parse(source);
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut open = self.open.clone();
        open.push(own);
        let program = check(&file, source, Frontend::File, self.sources, open, &[])?;
        let callee = |algorithm| Arc::new(Callee::new(algorithm, source, home));
        Ok(program.algorithms.into_iter().map(callee).collect())
    }

    /// Records that an algorithm of this source has been checked.
    pub(super) fn checked(&mut self, algorithm: &hir::Algorithm, source: &Source, right: bool) {
        let name = algorithm.name.clone();
        if right {
            let callee = Callee::new(algorithm.clone(), source, Home::Here);
            self.here.insert(name, Some(Arc::new(callee)));
        } else {
            self.wrong.push(name);
        }
    }

    /// Whether `name` may be declared where the text could not be read.
    pub(super) fn unread(&self, name: &str) -> bool {
        self.unread.iter().any(|unread| unread == name)
    }

    pub(super) fn find(&self, name: &str) -> DependencyLookup {
        if let Some(here) = self.here.get(name) {
            return match here {
                Some(callee) => DependencyLookup::Callee(callee.clone()),
                None if self.wrong.iter().any(|wrong| wrong == name) => DependencyLookup::Wrong,
                None => DependencyLookup::Itself,
            };
        }
        if let Some(callee) = self.used.iter().find(|callee| callee.algorithm.name == name) {
            return if callee.algorithm.declaration.public {
                DependencyLookup::Callee(callee.clone())
            } else {
                DependencyLookup::Private
            };
        }
        let mut library = self.library.borrow_mut();
        if !library.contains_key(name) {
            library.insert(name.to_owned(), None);
            for callee in self.in_library(name).unwrap_or_default() {
                library.insert(callee.algorithm.name.clone(), Some(callee));
            }
        }
        let nothing = if self.lost || self.unread(name) {
            DependencyLookup::Wrong
        } else {
            DependencyLookup::Nothing
        };
        library[name].clone().map_or(nothing, DependencyLookup::Callee)
    }

    /// Returns all algorithms of the library's file that has an algorithm of that name: a caller of one algorithm often
    /// calls another of the file.
    fn in_library(&self, name: &str) -> Option<Vec<Arc<Callee>>> {
        let head = format!("algorithm {name}(");
        let holds = |(file, text): &&(&str, &str)| {
            text.contains(&head) && !self.open.iter().any(|open| open.path == *file)
        };
        let (file, text) = self.sources.dependencies.prelude.iter().find(holds)?;
        let source = Source::from_text(*file, text);
        let open = OpenSource { path: (*file).to_owned(), identity: format!("library {file}") };
        self.compile(&source, open, Home::Library).ok()
    }

    /// Returns the names that a call could have meant.
    pub(super) fn names(&self) -> Vec<String> {
        let prelude = self.sources.dependencies.prelude;
        let library = prelude.iter().flat_map(|(_, text)| text.split("algorithm ").skip(1));
        let library =
            library.filter_map(|rest| rest.split_once('(').map(|(name, _)| name.to_owned()));
        let used = self.used.iter().map(|callee| callee.algorithm.name.clone());
        self.here.keys().cloned().chain(used).chain(library).collect()
    }
}

impl Callee {
    pub(crate) fn new(mut algorithm: hir::Algorithm, source: &Source, home: Home) -> Self {
        let locations = algorithm.spans.iter().map(|span| source.location(*span)).collect();
        let depth = 1 + algorithm.callees().iter().map(|callee| callee.depth).max().unwrap_or(0);
        Arc::make_mut(&mut algorithm.declaration).home = home;
        Self {
            file: source.name().to_owned(),
            locations,
            depth,
            statements: algorithm.deepest().0,
            algorithm: Arc::new(algorithm),
        }
    }
}

/// Returns `path` relative to the folder of `file`.
fn beside(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') => {
            format!("{folder}/{}", path.trim_start_matches("./"))
        }
        _ => path.to_owned(),
    }
}

/// Returns the order of the algorithms of a source: callees before their callers, except in cycles.
pub(super) fn in_order(file: &ast::File) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; file.algorithms.len()];
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (i, algorithm) in file.algorithms.iter().enumerate() {
        by_name.entry(&algorithm.name.text).or_insert(i);
    }
    // The walk is not recursive: a chain of calls may be as long as the source.
    for start in 0..file.algorithms.len() {
        let mut walk = vec![(start, false)];
        while let Some((i, leave)) = walk.pop() {
            if leave {
                order.push(i);
            } else if !std::mem::replace(&mut seen[i], true) {
                walk.push((i, true));
                let mut names = Vec::new();
                calls(&file.algorithms[i].body, &mut names);
                let called = names.iter().filter_map(|name| by_name.get(name));
                walk.extend(called.map(|j| (*j, false)));
            }
        }
    }
    order
}

fn calls<'t>(body: &'t [ast::Stmt], names: &mut Vec<&'t str>) {
    for stmt in body {
        match &stmt.kind {
            ast::StmtKind::Run { call, .. } => {
                if let ast::ExprKind::Call(path, _) = &*call.kind {
                    names.extend(path.first().map(|name| name.text.as_str()));
                }
            }
            ast::StmtKind::For { body, .. }
            | ast::StmtKind::Parallel { body, .. }
            | ast::StmtKind::Step { body, .. }
            | ast::StmtKind::Within { body, .. } => calls(body, names),
            ast::StmtKind::If { arms, otherwise } => {
                let guarded = arms.iter().map(|(_, body)| body);
                for body in guarded.chain(otherwise) {
                    calls(body, names);
                }
            }
            _ => {}
        }
    }
}
