//! Expressions as text are read back as the same tree.

use roundelay_core::syntax::ast::{BinOp, UnOp};
use roundelay_core::syntax::expr_text::{Target, Text};

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
const LANGUAGE: [&str; 9] = ["||", "&&", "== != < <= > >=", "|", "^", "&", "<< >>", "+ -", "* / %"];
const CPP: [&str; 10] = ["||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %"];

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
                let op = self.called(&name);
                let left = self.whole();
                assert!(self.takes(","));
                tree = infix(op, left, self.closed());
            } else {
                return tree;
            }
        }
    }

    /// Returns the only operator that is a call of this function.
    fn called(&self, name: &str) -> BinOp {
        let text = |op| {
            let [left, right] = ["l", "r"].map(|side| Text::atom(side.to_owned()));
            self.target.binary(op, left, right).code
        };
        let call = format!("{name}(l, r)");
        let ops: Vec<_> = BinOp::ALL.into_iter().filter(|op| text(*op) == call).collect();
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
