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
            Self::Language => op.row().binds,
            Self::Cpp => op.row().binds_cpp,
        }
    }

    const fn form(self, op: BinOp) -> OperatorForm {
        match self {
            Self::Language => OperatorForm::Infix,
            Self::Cpp => op.row().cpp,
        }
    }

    /// Whether `inner` gets parentheses under `outer`, of another precedence, only for the reader. Compilers of C++
    /// warn without them.
    fn spared(self, outer: BinOp, inner: BinOp) -> bool {
        let logic = |op| matches!(op, BinOp::And | BinOp::Or);
        match self {
            Self::Language => outer.of_bits(),
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

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: [Target; 2] = [Target::Language, Target::Cpp];

    #[derive(Clone, Debug, PartialEq)]
    enum ExprTree {
        Leaf(String),
        Prefix(String, Box<Self>),
        Infix(BinOp, Box<[Self; 2]>),
        Choice(Box<[Self; 3]>),
    }

    fn infix(op: BinOp, left: ExprTree, right: ExprTree) -> ExprTree {
        ExprTree::Infix(op, Box::new([left, right]))
    }

    /// Returns one expression of each kind, with its own leaves.
    fn kinds(target: Target, leaf: &str) -> Vec<ExprTree> {
        let named = |end: &str| ExprTree::Leaf(format!("{leaf}{end}"));
        let mut trees = vec![named("")];
        let complement = if target == Target::Cpp { "~" } else { "!" };
        trees.extend(
            ["-", "!", complement].map(|sign| ExprTree::Prefix(sign.into(), Box::new(named("")))),
        );
        trees.extend(BinOp::ALL.map(|op| infix(op, named("0"), named("1"))));
        // The grammar of the language has tests of its own.
        if target == Target::Cpp {
            trees.push(ExprTree::Choice(Box::new([named("0"), named("1"), named("2")])));
        }
        trees
    }

    /// Writes a tree. `own`: with the target's operators only, without functions.
    fn written(target: Target, own: bool, tree: &ExprTree) -> Text {
        let text = |tree| written(target, own, tree);
        match tree {
            ExprTree::Leaf(name) => Text::atom(name.clone()),
            ExprTree::Prefix(sign, of) => match &**sign {
                "-" => target.unary(UnOp::Neg, text(of)),
                "!" => target.unary(UnOp::Not, text(of)),
                _ => target.complement(text(of)),
            },
            ExprTree::Infix(op, sides) => {
                let [left, right] = sides.each_ref().map(text);
                if own { target.infix(*op, left, right) } else { target.binary(*op, left, right) }
            }
            ExprTree::Choice(parts) => {
                let [condition, then, otherwise] = parts.each_ref().map(text);
                target.choice(condition, then, otherwise)
            }
        }
    }

    /// A reader of expressions in the target's own grammar.
    struct ExprReader {
        target: Target,
        /// The remaining tokens, the last one first.
        rest: Vec<String>,
    }

    /// The infix operators of the standards, the lowest precedence first.
    const LANGUAGE: [&str; 9] =
        ["||", "&&", "== != < <= > >=", "|", "^", "&", "<< >>", "+ -", "* / %"];
    const CPP: [&str; 10] =
        ["||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %"];

    impl ExprReader {
        fn read(target: Target, text: &str) -> ExprTree {
            let mut rest: Vec<String> = Vec::new();
            for sign in text.chars() {
                let joined = rest.last().map(|last| format!("{last}{sign}")).unwrap_or_default();
                let word = joined.chars().all(|c| c.is_alphanumeric() || c == '_');
                let two = ["<<", ">>", "==", "!=", "<=", ">=", "&&", "||"].contains(&&*joined);
                let decrement = target == Target::Cpp && joined == "--";
                match rest.last_mut() {
                    Some(last) if word || two || decrement => *last = joined,
                    _ => rest.push(sign.into()),
                }
            }
            rest.retain(|token| token != " ");
            rest.reverse();
            let mut reader = Self { target, rest };
            let tree = reader.whole();
            assert!(reader.rest.is_empty(), "{text}: {:?} is left", reader.rest);
            tree
        }

        fn takes(&mut self, token: &str) -> bool {
            let takes = self.rest.last().is_some_and(|next| next == token);
            if takes {
                self.rest.pop();
            }
            takes
        }

        fn whole(&mut self) -> ExprTree {
            let condition = self.infix(0);
            if self.target != Target::Cpp || !self.takes("?") {
                return condition;
            }
            let then = self.whole();
            assert!(self.takes(":"));
            ExprTree::Choice(Box::new([condition, then, self.whole()]))
        }

        fn infix(&mut self, level: usize) -> ExprTree {
            let levels: &[&str] = if self.target == Target::Cpp { &CPP } else { &LANGUAGE };
            let Some(signs) = levels.get(level) else { return self.prefix() };
            let mut tree = self.infix(level + 1);
            let mut chained = false;
            while let Some(sign) = signs.split(' ').find(|sign| self.takes(sign)) {
                assert!(!(chained && signs.contains("==")), "comparisons do not chain");
                chained = true;
                let op = BinOp::ALL.into_iter().find(|op| op.text() == sign).unwrap();
                tree = infix(op, tree, self.infix(level + 1));
            }
            tree
        }

        fn prefix(&mut self) -> ExprTree {
            match ["-", "!", "~"].into_iter().find(|sign| self.takes(sign)) {
                Some(sign) => ExprTree::Prefix(sign.into(), Box::new(self.prefix())),
                None => self.postfix(),
            }
        }

        fn postfix(&mut self) -> ExprTree {
            let mut tree = if self.takes("(") {
                self.closed()
            } else {
                ExprTree::Leaf(self.rest.pop().expect("an operand"))
            };
            loop {
                if self.takes("(") {
                    let ExprTree::Leaf(name) = tree else { panic!("{tree:?} is called") };
                    let op = self
                        .called(|form| matches!(form, OperatorForm::Call(call) if call == name));
                    let left = self.whole();
                    assert!(self.takes(","));
                    tree = infix(op, left, self.closed());
                } else {
                    return tree;
                }
            }
        }

        /// Returns the only operator with this form.
        fn called(&self, is: impl Fn(OperatorForm) -> bool) -> BinOp {
            let ops: Vec<_> =
                BinOp::ALL.into_iter().filter(|op| is(self.target.form(*op))).collect();
            assert_eq!(ops.len(), 1, "{ops:?}");
            ops[0]
        }

        fn closed(&mut self) -> ExprTree {
            let tree = self.whole();
            assert!(self.takes(")"));
            tree
        }
    }

    fn is_read_back(target: Target, tree: &ExprTree) {
        for own in [false, true] {
            let text = written(target, own, tree).code;
            assert_eq!(ExprReader::read(target, &text), *tree, "{target:?}: {text}");
        }
    }

    #[test]
    fn nested_operators_are_read_back_as_the_same_tree() {
        for target in TARGETS {
            let [a, b, c] = ["a", "b", "c"].map(|leaf| kinds(target, leaf));
            for left in &a {
                for sign in ["-", "!"] {
                    is_read_back(target, &ExprTree::Prefix(sign.into(), Box::new(left.clone())));
                }
                for right in &b {
                    for op in BinOp::ALL {
                        is_read_back(target, &infix(op, left.clone(), right.clone()));
                    }
                    for third in c.iter().filter(|_| target == Target::Cpp) {
                        let parts = [left, right, third].map(Clone::clone);
                        is_read_back(target, &ExprTree::Choice(Box::new(parts)));
                    }
                }
            }
        }
    }

    /// Returns `(a INNER b) OUTER (c INNER d)`.
    fn told(target: Target, outer: BinOp, inner: BinOp) -> String {
        let leaf = |name: &str| ExprTree::Leaf(name.into());
        let [left, right] = [["a", "b"], ["c", "d"]].map(|[l, r]| infix(inner, leaf(l), leaf(r)));
        written(target, false, &infix(outer, left, right)).code
    }

    #[test]
    fn parentheses_stand_where_they_are_needed_or_spare_a_look() {
        use BinOp::{Add, And, BitAnd, Eq, Lt, Mul, Or, Rem, Shl, Sub};
        let told = |outer, inner| TARGETS.map(|target| told(target, outer, inner));
        assert_eq!(told(Mul, Sub), ["(a - b) * (c - d)"; 2]);
        assert_eq!(told(Sub, Mul), ["a * b - c * d"; 2]);
        assert_eq!(told(Sub, Sub), ["a - b - (c - d)"; 2]);
        let [language, cpp] = told(Rem, Add);
        assert_eq!(language, "(a + b) % (c + d)");
        assert_eq!(cpp, "mod(a + b, c + d)");
        let [language, cpp] = told(BitAnd, Shl);
        assert_eq!([&*language, &*cpp], ["(a << b) & (c << d)"; 2]);
        let [language, cpp] = told(Lt, BitAnd);
        assert_eq!(language, "a & b < c & d");
        assert_eq!(cpp, "(a & b) < (c & d)");
        assert_eq!(told(Eq, Lt)[1], "(a < b) == (c < d)");
        assert_eq!(told(Or, Eq)[1], "a == b || c == d");
        let [language, cpp] = told(Or, And);
        assert_eq!(language, "a && b || c && d");
        assert_eq!(cpp, "(a && b) || (c && d)");
    }

    #[test]
    fn a_number_that_is_not_below_zero_is_divided_by_the_operator_of_cpp() {
        let [me, round, nranks] = ["me", "round", "nranks"].map(|name| Text::atom(name.to_owned()));
        let one = Text::number("1".into(), 1);
        let before = Target::Cpp.binary(BinOp::Sub, me, round);
        let before = Target::Cpp.binary(BinOp::Sub, before, one);
        let rest = Target::Cpp.binary(BinOp::Rem, before.clone(), nranks.clone());
        assert_eq!(rest.code, "mod(me - round - 1, nranks)");
        let rest = Target::Cpp.infix(BinOp::Rem, before, nranks);
        assert_eq!(rest.code, "(me - round - 1) % nranks");
    }

    #[test]
    fn signs_do_not_run_together() {
        let minus = Text::number("-1".to_owned(), -1);
        let twice = |target: Target| target.unary(UnOp::Neg, minus.clone()).code;
        assert_eq!(TARGETS.map(twice), ["--1", "-(-1)"]);
        assert_eq!(Target::Cpp.binary(BinOp::Sub, minus.clone(), minus).code, "-1 - -1");
    }
}
