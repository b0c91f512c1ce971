//! The operators, as written in the language and in C++.

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    /// `-`
    Neg,
    /// `!` on bool (not) and int (bitwise complement).
    Not,
}

/// Infix operators, with Rust's precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// `*`
    Mul,
    /// `/`, Euclidean
    Div,
    /// `%`, Euclidean: never negative
    Rem,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&&`, short circuit
    And,
    /// `||`, short circuit
    Or,
}

impl UnOp {
    /// Returns the operator as written.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Neg => "-",
            Self::Not => "!",
        }
    }
}

/// The form of an infix operator of the language in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperatorForm {
    /// The sign of the operator, between its operands.
    Infix,
    /// A function of both operands.
    Call(&'static str),
}

/// A row of the table of infix operators. A higher number binds tighter; comparisons do not chain.
pub(super) struct OperatorRow {
    text: &'static str,
    /// The precedence in the language, as in Rust.
    pub(super) binds: u8,
    /// The precedence in C++, where comparisons bind tighter than bits. It distinguishes equality from order too, which
    /// readers do not know.
    pub(super) binds_cpp: u8,
    pub(super) cpp: OperatorForm,
}

const fn row(text: &'static str, binds: u8, binds_cpp: u8, cpp: OperatorForm) -> OperatorRow {
    OperatorRow { text, binds, binds_cpp, cpp }
}

impl BinOp {
    /// All infix operators, from those that bind tightest.
    pub const ALL: [Self; 18] = [
        Self::Mul,
        Self::Div,
        Self::Rem,
        Self::Add,
        Self::Sub,
        Self::Shl,
        Self::Shr,
        Self::BitAnd,
        Self::BitXor,
        Self::BitOr,
        Self::Eq,
        Self::Ne,
        Self::Lt,
        Self::Le,
        Self::Gt,
        Self::Ge,
        Self::And,
        Self::Or,
    ];

    pub(super) const fn row(self) -> OperatorRow {
        use OperatorForm::{Call, Infix};
        match self {
            Self::Mul => row("*", 10, 10, Infix),
            Self::Div => row("/", 10, 10, Call("quo")),
            Self::Rem => row("%", 10, 10, Call("mod")),
            Self::Add => row("+", 9, 9, Infix),
            Self::Sub => row("-", 9, 9, Infix),
            Self::Shl => row("<<", 8, 8, Infix),
            Self::Shr => row(">>", 8, 8, Infix),
            Self::BitAnd => row("&", 7, 6, Infix),
            Self::BitXor => row("^", 6, 5, Infix),
            Self::BitOr => row("|", 5, 4, Infix),
            Self::Eq => row("==", 4, 7, Infix),
            Self::Ne => row("!=", 4, 7, Infix),
            Self::Lt => row("<", 4, 7, Infix),
            Self::Le => row("<=", 4, 7, Infix),
            Self::Gt => row(">", 4, 7, Infix),
            Self::Ge => row(">=", 4, 7, Infix),
            Self::And => row("&&", 3, 3, Infix),
            Self::Or => row("||", 2, 2, Infix),
        }
    }

    /// Returns the operator as written in the language.
    pub const fn text(self) -> &'static str {
        self.row().text
    }

    /// Returns the precedence in the language: a higher number binds tighter; comparisons do not chain.
    pub const fn precedence(self) -> u8 {
        self.row().binds
    }

    /// Whether the operator works on bits: few readers know the precedence of bit operators.
    pub(super) const fn of_bits(self) -> bool {
        matches!(self, Self::Shl | Self::Shr | Self::BitAnd | Self::BitXor | Self::BitOr)
    }

    /// Whether the operator is a comparison.
    pub const fn compares(self) -> bool {
        self.precedence() == Self::Eq.precedence()
    }
}
