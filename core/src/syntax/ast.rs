//! The tree that the grammar builds: the author's text as parsed, with no name resolved.

pub use super::operators::{BinOp, UnOp};
use crate::source::Span;
use crate::syntax::token::Quantity;

/// One source: the algorithms of a macro block or of a `.coll` file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct File {
    /// Other sources whose algorithms may be called.
    pub uses: Vec<Use>,
    /// The algorithms, in the order of the source.
    pub algorithms: Vec<Algorithm>,
    /// The executors, in the order of the source.
    pub executors: Vec<Executor>,
    /// Where the text has errors: the names that its unreadable parts may have declared.
    pub unread: Vec<String>,
}

/// An item of a source after its `use`s.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Algorithm(Algorithm),
    Executor(Executor),
}

impl File {
    pub(super) fn new(uses: Vec<Use>, items: Vec<Item>) -> Self {
        let mut file = Self { uses, ..Self::default() };
        for item in items {
            match item {
                Item::Algorithm(algorithm) => file.algorithms.push(algorithm),
                Item::Executor(executor) => file.executors.push(executor),
            }
        }
        file
    }
}

impl Item {
    /// Returns the item with its doc comment and attributes, from token `lo` on.
    pub(super) fn with(mut self, lines: Vec<String>, marks: Vec<Attr>, lo: usize) -> Self {
        let (docs, attrs, span) = match &mut self {
            Self::Algorithm(Algorithm { docs, attrs, span, .. })
            | Self::Executor(Executor { docs, attrs, span, .. }) => (docs, attrs, span),
        };
        (*docs, *attrs, span.lo) = (lines, marks, lo as u32);
        self
    }
}

/// A use of another source: `use "PATH";`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Use {
    /// The path of the file, relative to the folder of this source.
    pub path: String,
    /// All its tokens.
    pub span: Span,
}

/// An identifier and its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The identifier.
    pub text: String,
    /// Its one token.
    pub span: Span,
}

/// An algorithm: `pub algorithm NAME(PARAMS) -> COLLECTIVE { BODY }`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Algorithm {
    /// Lines of the doc comment, without the slashes.
    pub docs: Vec<String>,
    /// The attributes before it, such as `#[out_of_place]`.
    pub attrs: Vec<Attr>,
    /// Whether `pub` stands before it.
    pub public: bool,
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub params: Vec<Param>,
    /// The collective it implements.
    pub collective: Name,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// From the first token of the docs to the closing brace.
    pub span: Span,
}

/// An executor: `pub executor NAME for COLLECTIVE { SETTINGS CLASSES }`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Executor {
    /// Lines of the doc comment, without the slashes.
    pub docs: Vec<String>,
    /// The attributes before it, of which none is known yet.
    pub attrs: Vec<Attr>,
    /// Whether `pub` stands before it.
    pub public: bool,
    /// Its name.
    pub name: Name,
    /// The collective it implements.
    pub collective: Name,
    /// The settings: its topology, its buffers, its limits of resources.
    pub settings: Vec<Setting>,
    /// The size classes, each with the algorithm that runs there.
    pub classes: Vec<Class>,
    /// From the first token of the docs to the closing brace.
    pub span: Span,
}

/// A setting of an executor: `NAME: VALUE;`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// The name of the setting.
    pub name: Name,
    /// The value that it has.
    pub value: SettingValue,
    /// All its tokens.
    pub span: Span,
}

/// The value of a setting, or the limit of a size class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SettingValue {
    /// A topology, or a number.
    Expr(Expr),
    /// A size with a blank before its unit: `200 MiB`.
    Size(Size),
    /// A size without a blank before its unit: `200MB`.
    Amount(Quantity, Span),
}

/// A number and its unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// The number.
    pub amount: i64,
    /// The unit, such as `KiB`.
    pub unit: Name,
    /// Both tokens.
    pub span: Span,
}

/// A size class of an executor: `when bytes < LIMIT => CALL;` or `otherwise => CALL;`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// The name, the comparison and the limit; `None` for `otherwise`.
    pub when: Option<(Name, BinOp, SettingValue)>,
    /// The algorithm and its arguments.
    pub call: Expr,
    /// All its tokens.
    pub span: Span,
}

/// An attribute: `#[NAME]` or `#[NAME(ARGS)]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attr {
    /// The word in the brackets.
    pub name: Name,
    /// The arguments in parentheses after it.
    pub args: Vec<AttrArg>,
    /// All its tokens.
    pub span: Span,
}

/// An argument of an attribute: `off`, `nranks = 2..=8`, `reason = "…"`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttrArg {
    /// The word before `=`.
    pub name: Option<Name>,
    /// The value of the argument.
    pub value: AttrValue,
    /// All its tokens.
    pub span: Span,
}

/// The value of an argument of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttrValue {
    /// An expression: a word, a number, a list, a topology.
    Expr(Expr),
    /// A range of numbers: `2..9` or `2..=8`.
    Range {
        /// The first number.
        lo: Expr,
        /// The last number, or the one after it.
        hi: Expr,
        /// Whether `hi` is in the range.
        inclusive: bool,
    },
    /// A string.
    Text(String),
}

/// A parameter of an algorithm or (without default) of a step: `NAME: TYPE = DEFAULT`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeName,
    /// The value that it has unless one is given.
    pub default: Option<Expr>,
}

/// The name of a type: `int`, `bool`, `peer`, `Rank`, `Ring`, or a list such as `[Rank]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeName {
    /// The word for the type.
    pub text: String,
    /// Whether it stands in brackets.
    pub list: bool,
    /// Its tokens.
    pub span: Span,
}

/// A statement and its place (to the semicolon or closing brace).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stmt {
    /// The kind of statement, with its parts.
    pub kind: StmtKind,
    /// All its tokens.
    pub span: Span,
}

/// The statements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StmtKind {
    /// `let NAME: TYPE = VALUE;`
    Let {
        /// The declared name.
        name: Name,
        /// The type, if written.
        ty: Option<TypeName>,
        /// Its value.
        value: Expr,
    },
    /// `view NAME = VALUE;`
    View {
        /// The declared name.
        name: Name,
        /// A region, or pieces of one.
        value: Expr,
    },
    /// `for VAR in ITER { BODY }`
    For {
        /// The loop variable.
        var: Name,
        /// The range or list of the loop.
        iter: Iter,
        /// The statements.
        body: Vec<Stmt>,
    },
    /// `parallel VAR in ITER { BODY }`
    Parallel {
        /// The lane variable.
        var: Name,
        /// The range of the lanes.
        iter: Iter,
        /// The statements.
        body: Vec<Stmt>,
    },
    /// `if C { A } else if D { B } else { E }`
    If {
        /// The conditions and their guarded statements, in order; never empty.
        arms: Vec<(Expr, Vec<Stmt>)>,
        /// The last `else`.
        otherwise: Option<Vec<Stmt>>,
    },
    /// `require CONDITION, "why";`
    Require {
        /// The condition that must hold.
        condition: Expr,
        /// The reason to report where the condition does not hold.
        why: String,
    },
    /// `scratch NAME: COUNT like SHAPE as f32;`
    Scratch {
        /// The author's name for the buffer.
        name: Name,
        /// Number of slots; one if not written.
        count: Option<Expr>,
        /// The region, or pieces, whose shape a slot has.
        like: Expr,
        /// The type behind `as`: the type of elements that are narrower.
        wide: Option<Name>,
    },
    /// `step NAME(PARAMS) { BODY }`
    Step {
        /// Its name.
        name: Name,
        /// Its parameters, without defaults.
        params: Vec<Param>,
        /// Its statements.
        body: Vec<Stmt>,
    },
    /// `fifo like SHAPE, credits = K, slices = S;`
    Fifo {
        /// The region, or pieces, whose shape a slice has at most.
        like: Expr,
        /// The options after the shape: `credits`, `slices`.
        options: Vec<(Name, Expr)>,
    },
    /// `within GROUP { BODY }`
    Within {
        /// The ranks that the body sees.
        group: Expr,
        /// The statements.
        body: Vec<Stmt>,
    },
    /// `NAME(ARGS) on (INPUT, OUTPUT);`
    Run {
        /// The algorithm and its arguments.
        call: Expr,
        /// One region or two.
        on: Vec<Expr>,
    },
    /// `copy(a, b);`, `right.TxAck();`, or the call of a step.
    Expr(Expr),
    /// A statement that could not be read; it has been reported.
    Error,
}

/// The range or list of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Iter {
    /// `LO..HI`, half open.
    Range(Expr, Expr),
    /// The elements of a list.
    List(Expr),
}

/// An expression, its place, and how deep it nests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expr {
    /// The kind of expression, with its parts.
    pub kind: Box<ExprKind>,
    /// All its tokens.
    pub span: Span,
    /// 1 + the greatest depth of its operands; bounded by the parser.
    pub depth: u16,
}

/// The expressions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// `42`, `4KiB`
    Int(i64),
    /// `true`, `false`
    Bool(bool),
    /// A name.
    Name(String),
    /// `[a, b, c]`
    List(Vec<Expr>),
    /// `-a`, `!a`
    Unary(UnOp, Expr),
    /// `a + b`
    Binary(BinOp, Expr, Expr),
    /// `if c { a } else { b }`; `else if` nests.
    If(Expr, Expr, Expr),
    /// `f(a, b)`; the path has one or two names (`Ring::natural`).
    Call(Vec<Name>, Vec<Expr>),
    /// `name: value`, an argument of an algorithm's call.
    Named(Name, Expr),
    /// `a.f(b, c)`
    Method(Expr, Name, Vec<Expr>),
    /// `a.f`
    Field(Expr, Name),
    /// `a[i]`
    Index(Expr, Expr),
    /// `a[i..j]`
    Slice(Expr, Expr, Expr),
    /// `full_mesh(8) without (0, 1)`
    Without(Expr, Expr, Expr),
    /// `25GB/s`, `2us`: an argument of a topology, with the name after the slash.
    Quantity(Quantity, Option<Name>),
    /// `"dgx-h100"`: the name of a machine, an argument of a topology.
    Text(String),
    /// `rust { … }`: the text of the Rust expression, which only the macro can compile.
    Rust(String),
    /// An expression that could not be read; it has been reported.
    Error,
}
