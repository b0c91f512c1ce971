//! Expressions as text, in every target: a leaf stays as it is written, and an expression with an operator gets the
//! parentheses that its parsing needs, and those that spare a reader the table of precedences.

use super::operators::{BinOp, OperatorForm, UnOp};

/// The precedence of an operator expression, which may stand where a block or `?` follows; a choice may not.
pub const OPERATOR: u8 = 1;
const PREFIX: u8 = 11;
/// The precedence of an expression that `.`, `[` and `(` may follow, and that an expression statement may be.
pub const ATOM: u8 = 12;

/// The language that expressions are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The language itself.
    Language,
    /// C++ and CUDA, where functions compute Euclidean division.
    Cpp,
    /// Rust, where functions compute Euclidean division.
    Rust,
}

/// An expression's code, and its precedence.
#[derive(Clone, Debug)]
pub struct Text {
    /// The code without parentheses around it.
    pub code: String,
    binds: u8,
    /// The operator between its parts, if there is one.
    infix: Option<BinOp>,
}

impl Text {
    const fn new(code: String, binds: u8) -> Self {
        Self { code, binds, infix: None }
    }

    /// Makes the text of a name, a literal or a call, which no operator splits.
    pub const fn atom(code: String) -> Self {
        Self::new(code, ATOM)
    }

    /// Makes the text of a literal with its sign.
    pub const fn number(code: String, value: i64) -> Self {
        Self::new(code, if value < 0 { PREFIX } else { ATOM })
    }

    /// Returns the code, in parentheses if its precedence is lower than `min`.
    pub fn at_least(self, min: u8) -> String {
        if self.binds < min { format!("({})", self.code) } else { self.code }
    }

    /// Makes the call of a function.
    pub fn call(name: &str, args: impl IntoIterator<Item = Self>) -> Self {
        let args: Vec<_> = args.into_iter().map(|arg| arg.code).collect();
        Self::atom(format!("{name}({})", args.join(", ")))
    }
}

impl Target {
    const fn binds(self, op: BinOp) -> u8 {
        match self {
            Self::Language | Self::Rust => op.row().binds,
            Self::Cpp => op.row().binds_cpp,
        }
    }

    const fn form(self, op: BinOp) -> OperatorForm {
        match self {
            Self::Language => OperatorForm::Infix,
            Self::Cpp => op.row().cpp,
            Self::Rust => match op {
                BinOp::Div => OperatorForm::Call("i64::div_euclid"),
                BinOp::Rem => OperatorForm::Call("i64::rem_euclid"),
                _ => OperatorForm::Infix,
            },
        }
    }

    /// Whether `inner` gets parentheses under `outer`, of another precedence, only for the reader. Compilers of C++
    /// warn without them.
    fn spared(self, outer: BinOp, inner: BinOp) -> bool {
        let logic = |op| matches!(op, BinOp::And | BinOp::Or);
        match self {
            Self::Language | Self::Rust => outer.of_bits(),
            Self::Cpp => outer.of_bits() || inner.of_bits() || (logic(outer) && logic(inner)),
        }
    }

    /// Makes `left OP right` with the meaning of the language: in C++ a quotient and a remainder are calls.
    pub fn binary(self, op: BinOp, left: Text, right: Text) -> Text {
        match self.form(op) {
            OperatorForm::Infix => self.infix(op, left, right),
            OperatorForm::Call(name) => Text::call(name, [left, right]),
        }
    }

    /// Makes `left OP right` with the target's own operator. Where C++ divides numbers that are known to be at least 0,
    /// its operator has the meaning of the language too.
    pub fn infix(self, op: BinOp, left: Text, right: Text) -> Text {
        let binds = self.binds(op);
        let operand = |text: Text, min| {
            let mixed = |inner| self.binds(inner) != binds && self.spared(op, inner);
            let min = if text.infix.is_some_and(mixed) { PREFIX } else { min };
            text.at_least(min)
        };
        let left = operand(left, binds + u8::from(op.compares()));
        let right = operand(right, binds + 1);
        Text { infix: Some(op), ..Text::new(format!("{left} {} {right}", op.text()), binds) }
    }

    /// Makes `-operand`, or `!operand` of a flag.
    pub fn unary(self, op: UnOp, operand: Text) -> Text {
        self.prefix(op.text(), operand)
    }

    /// Makes `!operand` of an integer, which flips all its bits.
    pub fn complement(self, operand: Text) -> Text {
        self.prefix(if self == Self::Cpp { "~" } else { UnOp::Not.text() }, operand)
    }

    fn prefix(self, sign: &str, operand: Text) -> Text {
        // Two adjacent signs may be one operator of C++.
        let min = if self == Self::Language { PREFIX } else { ATOM };
        Text::new(format!("{sign}{}", operand.at_least(min)), PREFIX)
    }

    /// Makes `if condition { then } else { otherwise }` as an operator expression, not as a call of a function.
    pub fn choice(self, condition: Text, then: Text, otherwise: Text) -> Text {
        let condition = condition.at_least(OPERATOR);
        let code = if self == Self::Cpp {
            let [then, otherwise] = [then, otherwise].map(|text| text.at_least(OPERATOR));
            format!("{condition} ? {then} : {otherwise}")
        } else {
            let chained = otherwise.binds < OPERATOR;
            let otherwise = otherwise.code;
            let otherwise = if chained { otherwise } else { format!("{{ {otherwise} }}") };
            format!("if {condition} {{ {} }} else {otherwise}", then.code)
        };
        Text::new(code, 0)
    }
}
