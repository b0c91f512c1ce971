//! The check of a parsed source: names, types, and the rules that hold for every rank count.

mod attributes;
mod calls;
mod canonical;
mod constructors;
mod declaration;
pub mod dependencies;
pub(crate) mod executor;
mod executors;
mod exprs;
mod fifo;
pub mod hir;
mod members;
mod runs;
mod scope;
pub(crate) mod sizes;
mod stmts;
pub mod topology;
mod unused_names;

pub use attributes::ATTRIBUTES;
pub(crate) use canonical::canonical;
pub use declaration::{Declaration, Escape, EscapeName, Verify};
pub use executors::{Asset, Class, Declared, Executor};

use std::collections::HashMap;
use std::sync::Arc;

use crate::collective::Collective;
use crate::diagnostics::common_cause::join_causes;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::{Home, Span};
use crate::syntax::Source;
use crate::syntax::{ast, printer};
use dependencies::{Known, OpenSource, Sources};
use hir::{Callee, Demand, ParamTy, Ty, VarId};
use scope::Scope;

/// The frontend that reads a source, the macro or the lexer of files: only a macro's source can hold a `rust { }`
/// escape (E0115).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontend {
    /// The tokens of a macro, as in `collective! { … }`.
    Macro,
    /// The text of a `.coll` file.
    File,
}

/// The declarations of a source, when their names and types are checked. Its algorithms have the form `A`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedSource<A = hir::Algorithm> {
    /// The algorithms, in source order.
    pub algorithms: Vec<A>,
    /// The executors, in source order.
    pub executors: Vec<Executor<A>>,
    /// Warnings for the author, in source order; warnings that an attribute denies are errors.
    pub warnings: Vec<Diagnostic>,
}

/// Checks every algorithm and executor of `file`. `open` are the sources that use each other and led
/// here, `source` last; algorithms of `beside` may be called, too, and are checked already.
///
/// # Errors
/// All errors of the file, each at its place: E01xx, and other errors that show without a number of ranks.
pub(crate) fn check(
    file: &ast::File,
    source: &Source,
    frontend: Frontend,
    sources: &Sources<'_>,
    open: Vec<OpenSource>,
    beside: &[Arc<Callee>],
) -> Result<CheckedSource, Vec<Diagnostic>> {
    let (checked, errors) = checked(file, source, frontend, sources, open, beside);
    if errors.is_empty() { Ok(checked) } else { Err(errors) }
}

/// Returns the declarations of a source, as far as they could be checked, and all its errors: an editor shows names and
/// types of a program that is not right yet.
pub(crate) fn checked(
    file: &ast::File,
    source: &Source,
    frontend: Frontend,
    sources: &Sources<'_>,
    open: Vec<OpenSource>,
    beside: &[Arc<Callee>],
) -> (CheckedSource, Vec<Diagnostic>) {
    let mut errors = Vec::new();
    let mut known = Known::new(file, sources, open, beside, &mut errors);
    let mut checked: Vec<_> = file.algorithms.iter().map(|_| None).collect();
    let mut firsts: HashMap<&str, Span> = HashMap::new();
    for ast::Algorithm { name, .. } in &file.algorithms {
        firsts.entry(&name.text).or_insert(name.span);
    }
    for i in dependencies::in_order(file) {
        let (algorithm, mut found) = (&file.algorithms[i], Vec::new());
        let name = &algorithm.name;
        let first = firsts[&*name.text];
        if first != name.span {
            found.push(already_declared(name, first));
        }
        let algorithm = Checker::new(frontend, &known, &mut found).algorithm(algorithm);
        known.checked(&algorithm, source, found.is_empty());
        checked[i] = Some((algorithm, found));
    }
    let mut checked_source: CheckedSource =
        CheckedSource { algorithms: Vec::new(), executors: Vec::new(), warnings: Vec::new() };
    for (algorithm, found) in checked.into_iter().flatten() {
        checked_source.algorithms.push(algorithm);
        errors.extend(join_causes(found));
    }
    for item in &file.executors {
        let first = *firsts.entry(&item.name.text).or_insert(item.name.span);
        if first != item.name.span {
            errors.push(already_declared(&item.name, first));
        }
        checked_source.executors.extend(executor::executor(item, &known, &mut errors));
    }
    if errors.is_empty() {
        let algorithms = checked_source.algorithms.iter();
        checked_source.warnings = algorithms.flat_map(unused_names::warnings).collect();
    }
    (checked_source, errors)
}

/// The state of one algorithm's check.
struct Checker<'e> {
    frontend: Frontend,
    known: &'e Known<'e>,
    errors: &'e mut Vec<Diagnostic>,
    scope: Scope,
    vars: Vec<hir::Var>,
    uses: Vec<(Span, VarId)>,
    spans: Vec<Span>,
    escapes: bool,
    /// The escapes up to now that are not those of a called algorithm.
    own_escapes: Vec<Escape>,
    /// The number of enclosing blocks: scratch is declared at depth 0.
    depth: usize,
    /// The number of enclosing `within` blocks.
    groups: usize,
    /// The value of `groups` at the declaration of each variable.
    seen_from: Vec<usize>,
    /// Whether a parameter's default is checked, which must be equal on every rank.
    in_default: bool,
    /// The steps declared up to now.
    steps: Vec<DeclaredStep>,
    /// The steps whose bodies are being checked: the name of each, and the depth of the calls in it up to now.
    open_steps: Vec<(String, usize)>,
    /// Whether this is a size class of an executor, where rings and the like are made without their type's name.
    in_executor: bool,
}

/// A declared step, which may be called.
struct DeclaredStep {
    name: VarId,
    params: Vec<VarId>,
    /// The number of calls that nest in a call of the step.
    depth: usize,
}

impl<'e> Checker<'e> {
    fn new(frontend: Frontend, known: &'e Known<'e>, errors: &'e mut Vec<Diagnostic>) -> Self {
        Self {
            frontend,
            known,
            errors,
            scope: Scope::default(),
            vars: Vec::new(),
            uses: Vec::new(),
            spans: Vec::new(),
            escapes: false,
            own_escapes: Vec::new(),
            depth: 0,
            groups: 0,
            seen_from: Vec::new(),
            in_default: false,
            steps: Vec::new(),
            open_steps: Vec::new(),
            in_executor: false,
        }
    }

    fn algorithm(mut self, algorithm: &ast::Algorithm) -> hir::Algorithm {
        self.spans.push(algorithm.name.span);
        let collective = self.collective(&algorithm.collective);
        let on = self.on_topology(&algorithm.attrs);
        let mut params: Vec<_> = algorithm.params.iter().map(|p| self.param(p)).collect();
        self.root_rule(algorithm, collective);
        let mut attributes = self.attributes(&algorithm.attrs);
        if let Some((topology, span)) = on {
            for param in params.iter_mut().filter(|p| p.ty == ParamTy::Topology) {
                param.default.get_or_insert_with(|| topology.clone());
            }
            attributes.topology = Some(topology.clone());
            self.demand(&mut attributes, span, Demand::Topology(topology));
        }
        let mut body = std::mem::take(&mut attributes.demands);
        body.extend(self.block(&algorithm.body));
        // A proof gives the root of a rooted collective every value in turn.
        let name = |p: &hir::Param| self.vars[p.var.0 as usize].name.clone();
        let in_turn =
            |p: &hir::Param| collective.is_some_and(Collective::is_rooted) && name(p) == "root";
        let is_open = |p: &&hir::Param| p.default.is_none() && !p.ty.has_natural() && !in_turn(p);
        let open = params.iter().find(is_open).map(name);
        self.can_verify(attributes.verify.as_ref(), open.as_deref());
        let checked = hir::Algorithm {
            name: algorithm.name.text.clone(),
            name_span: algorithm.name.span,
            collective: collective.unwrap_or(Collective::AllReduce),
            out_of_place: attributes.out_of_place,
            levels: attributes.levels,
            params,
            body,
            vars: self.vars,
            uses: self.uses,
            spans: self.spans,
            escapes: self.escapes,
            declaration: Arc::new(Declaration {
                docs: algorithm.docs.clone(),
                public: algorithm.public,
                home: Home::Here,
                verify: attributes.verify,
                machine: attributes.topology.as_ref().and_then(topology::ranks),
                escapes: self.own_escapes,
                source: printer::print_algorithm(algorithm),
            }),
        };
        let (depth, at) = checked.deepest();
        if depth > hir::MOST_DEPTH {
            let title = format!("statements nest at most {} deep", hir::MOST_DEPTH);
            self.errors.push(
                Diagnostic::new(Code::NestedTooDeep, checked.spans[at.index()], title)
                    .note("those of steps and algorithms count where these are called")
                    .help("use a `for` loop"),
            );
        }
        checked
    }

    fn collective(&mut self, name: &ast::Name) -> Option<Collective> {
        let known = Collective::from_name(&name.text);
        if known.is_none() {
            let names: Vec<_> = Collective::ALL.iter().map(|c| c.name()).collect();
            let mut error = Diagnostic::new(
                Code::UnknownCollective,
                name.span,
                format!("`{}` is not a collective", name.text),
            )
            .label("not a collective")
            .note(format!("the collectives are {}", names.join(", ")));
            if let Some(near) = scope::nearest(&name.text, names.iter().copied()) {
                error = error.suggest(near);
            }
            self.errors.push(error);
        }
        known
    }

    fn param(&mut self, param: &ast::Param) -> hir::Param {
        let ty = match (param.ty.text.as_str(), param.ty.list) {
            ("int", false) => Some((ParamTy::Int, Ty::Int)),
            ("bool", false) => Some((ParamTy::Bool, Ty::Bool)),
            ("Rank", false) => Some((ParamTy::Rank, Ty::Int)),
            ("Ring", false) => Some((ParamTy::Ring, Ty::Ring)),
            ("Rings", false) => Some((ParamTy::Rings, Ty::Rings)),
            ("Tree", false) => Some((ParamTy::Tree, Ty::Tree)),
            ("Trees", false) => Some((ParamTy::Trees, Ty::Trees)),
            ("Groups", false) => Some((ParamTy::Groups, Ty::Groups)),
            ("Topology", false) => Some((ParamTy::Topology, Ty::Topology)),
            ("Rank" | "int", true) => Some((ParamTy::Ranks, Ty::List)),
            _ => None,
        };
        if ty.is_none() {
            let written = ast_type(&param.ty);
            self.errors.push(
                Diagnostic::new(
                    Code::WrongType,
                    param.ty.span,
                    format!("an algorithm cannot take a parameter of type `{written}`"),
                )
                .help(
                    "parameters are `int`, `bool`, `Rank`, `Ring`, `Rings`, `Tree`, `Trees`, `Groups`, `Topology` or `[Rank]`",
                ),
            );
        }
        let (takes, ty) = ty.unwrap_or((ParamTy::Int, Ty::Error));
        self.in_default = true;
        let default = param.default.as_ref().map(|e| self.expect(e, ty));
        self.in_default = false;
        if param.name.text == "new" {
            self.error(
                Diagnostic::new(
                    Code::AlreadyDeclared,
                    param.name.span,
                    "`new` is the constructor of the struct that the macro makes",
                )
                .label("choose another name"),
            );
        }
        let var = self.declare(&param.name, ty);
        hir::Param { var, ty: takes, default }
    }

    fn root_rule(&mut self, algorithm: &ast::Algorithm, collective: Option<Collective>) {
        let root = algorithm.params.iter().find(|p| p.name.text == "root");
        let is_rank = root.is_some_and(|p| p.ty.text == "Rank" && !p.ty.list);
        let Some(collective) = collective else { return };
        let unreadable = root.is_none() && self.known.unread("root");
        if collective.is_rooted() && !is_rank && !unreadable {
            let span = root.map_or(algorithm.collective.span, |p| p.ty.span);
            let (at, text) = match root {
                Some(root) => (root.ty.span, "Rank"),
                None if algorithm.params.is_empty() => {
                    // Behind the opening bracket.
                    let at = algorithm.name.span.hi + 1;
                    (Span { lo: at, hi: at }, "root: Rank = 0")
                }
                None => {
                    let first = algorithm.params[0].name.span.lo;
                    (Span { lo: first, hi: first }, "root: Rank = 0, ")
                }
            };
            self.errors.push(
                Diagnostic::new(
                    Code::RootMissing,
                    span,
                    format!("a {collective} needs a parameter `root: Rank`"),
                )
                .label("rooted collective")
                .help(format!("write `{}(root: Rank = 0)`", algorithm.name.text))
                .edit(at, text),
            );
        }
    }

    fn error(&mut self, error: Diagnostic) {
        self.errors.push(error);
    }

    /// Declares a variable in the innermost scope.
    fn declare(&mut self, name: &ast::Name, ty: Ty) -> VarId {
        if let Some(what) = scope::reserved(&name.text) {
            self.error(
                Diagnostic::new(
                    Code::AlreadyDeclared,
                    name.span,
                    format!("`{}` cannot be declared: it is {what}", name.text),
                )
                .label("choose another name"),
            );
        } else if let Some(first) = self.scope.find(&name.text) {
            let first = self.vars[first.0 as usize].span;
            self.error(already_declared(name, first));
        }
        let id = VarId(self.vars.len() as u32);
        self.vars.push(hir::Var { name: name.text.clone(), span: name.span, ty });
        self.seen_from.push(self.groups);
        self.scope.declare(&name.text, id);
        id
    }

    /// Returns the type to declare a name with: if its value has errors since `before`, the type of errors, so that no
    /// use of the name reports them again.
    fn sound(&self, before: usize, ty: Ty) -> Ty {
        if self.errors.len() > before { Ty::Error } else { ty }
    }

    fn ty(&self, var: VarId) -> Ty {
        self.vars[var.0 as usize].ty
    }
}

fn already_declared(name: &ast::Name, first: Span) -> Diagnostic {
    Diagnostic::new(Code::AlreadyDeclared, name.span, format!("`{}` is declared twice", name.text))
        .label("declared again")
        .other(first, "first declared here")
        .help("nothing is shadowed in this language: choose another name")
}

fn ast_type(ty: &ast::TypeName) -> String {
    if ty.list { format!("[{}]", ty.text) } else { ty.text.clone() }
}

impl Ty {
    /// Returns the name of the type in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "an int",
            Self::Bool => "a bool",
            Self::Peer => "a peer",
            Self::Ring => "a Ring",
            Self::Rings => "Rings",
            Self::Tree => "a Tree",
            Self::Trees => "Trees",
            Self::Groups => "Groups",
            Self::Topology => "a Topology",
            Self::List => "a list",
            Self::Region => "a region",
            Self::Pieces => "pieces of a region",
            Self::Place => "a region of a rank",
            Self::Places => "pieces of a region of a rank",
            Self::All => "all ranks",
            Self::OfAll => "a region of all ranks",
            Self::PiecesOfAll => "pieces of a region of all ranks",
            Self::Step => "a step",
            Self::Fifo => "the fifo",
            Self::Error => "an error",
        }
    }

    /// Whether an expression of this type says whose region it is.
    pub(crate) const fn has_rank(self) -> bool {
        matches!(self, Self::Place | Self::Places | Self::OfAll | Self::PiecesOfAll)
    }

    /// Returns the type of a region or of pieces that a peer or all ranks have.
    const fn place_of(self, owner: Self) -> Self {
        match (self, owner) {
            (Self::Pieces, Self::All) => Self::PiecesOfAll,
            (_, Self::All) => Self::OfAll,
            (Self::Pieces, _) => Self::Places,
            _ => Self::Place,
        }
    }

    /// Returns the names of the fields and methods of a value of this type.
    pub fn members(self) -> Vec<&'static str> {
        members::of_type(self)
    }
}
