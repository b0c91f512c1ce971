//! Integer expressions over the numbers of a run, such as `min(36, ceil(elements/4, 512))`.

use std::ops::Range;

/// The names that an expression may have, in the order of [`Numbers`].
pub const NAMES: [&str; 7] = ["rank", "ranks", "call", "calls", "elements", "element", "root"];

/// The values of the names, in their order.
pub type Numbers = [i64; 7];

/// The deepest nesting of an expression.
const DEEPEST: u32 = 64;

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    root: Term,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Number(i64),
    Name(usize),
    Of(Op, Box<[Term; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Min,
    Max,
    Ceil,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// The operators by binding, the loosest first. A longer text stands before its beginning.
const OPERATORS: [&[(&str, Op)]; 3] = [
    &[("==", Op::Eq), ("!=", Op::Ne), ("<=", Op::Le), (">=", Op::Ge), ("<", Op::Lt), (">", Op::Gt)],
    &[("+", Op::Add), ("-", Op::Sub)],
    &[("*", Op::Mul), ("/", Op::Div), ("%", Op::Rem)],
];
const FUNCTIONS: [(&str, Op); 3] = [("min", Op::Min), ("max", Op::Max), ("ceil", Op::Ceil)];

/// A mistake in an expression: the bytes of its text that are to blame, and the reason.
pub(crate) type BadExpression = (Range<usize>, String);

impl From<i64> for Expression {
    fn from(number: i64) -> Self {
        Self { root: Term::Number(number), text: number.to_string() }
    }
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// The bytes of the text that are to blame, and the reason.
    pub fn parse(text: &str) -> Result<Self, (Range<usize>, String)> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let root = reader.binary(0)?;
        match reader.token() {
            "" => Ok(Self { root, text: text.to_owned() }),
            more => Err(reader.refuse(more, &format!("`{more}` is behind the expression's end"))),
        }
    }

    /// The value. Division and remainder round toward zero, `ceil(a, b)` is a / b rounded up, and a comparison is 0 or 1.
    ///
    /// # Errors
    /// The reason: a division by zero, or a number beyond 64 bits.
    pub fn value(&self, numbers: &Numbers) -> Result<i64, String> {
        value(&self.root, numbers).map_err(|why| format!("`{}` {why}", self.text))
    }

    /// Whether the value may depend on this name.
    pub fn names(&self, name: &str) -> bool {
        fn any(term: &Term, name: usize) -> bool {
            match term {
                Term::Number(_) => false,
                Term::Name(at) => *at == name,
                Term::Of(_, terms) => terms.iter().any(|term| any(term, name)),
            }
        }
        NAMES.iter().position(|known| *known == name).is_some_and(|name| any(&self.root, name))
    }
}

fn value(term: &Term, numbers: &Numbers) -> Result<i64, &'static str> {
    let Term::Of(op, terms) = term else {
        return Ok(match term {
            Term::Number(number) => *number,
            Term::Name(name) => numbers[*name],
            Term::Of(..) => 0,
        });
    };
    let (a, b) = (value(&terms[0], numbers)?, value(&terms[1], numbers)?);
    if matches!(op, Op::Div | Op::Rem | Op::Ceil) && b == 0 {
        return Err("divides by zero");
    }
    let found = match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Div => a.checked_div(b),
        Op::Rem => a.checked_rem(b),
        Op::Ceil => a
            .checked_div(b)
            .and_then(|quotient| quotient.checked_add(i64::from(a % b != 0 && (a < 0) == (b < 0)))),
        Op::Min => Some(a.min(b)),
        Op::Max => Some(a.max(b)),
        Op::Eq => Some((a == b).into()),
        Op::Ne => Some((a != b).into()),
        Op::Lt => Some((a < b).into()),
        Op::Le => Some((a <= b).into()),
        Op::Gt => Some((a > b).into()),
        Op::Ge => Some((a >= b).into()),
    };
    found.ok_or("does not fit 64 bits")
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    /// The next token, which is not taken: a word, a number, an operator, or nothing at the end.
    fn token(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        match (word.unwrap_or(rest.len()), rest.chars().next()) {
            (_, None) => "",
            (0, Some(first)) => {
                let long = OPERATORS[0].iter().find(|(text, _)| rest.starts_with(text));
                &rest[..long.map_or(first.len_utf8(), |(text, _)| text.len())]
            }
            (word, _) => &rest[..word],
        }
    }

    fn refuse(&self, token: &str, why: &str) -> BadExpression {
        (self.at..self.at + token.len(), why.to_owned())
    }

    fn take(&mut self, wanted: &str) -> Result<(), BadExpression> {
        let token = self.token();
        if token != wanted {
            return Err(self.refuse(token, &format!("`{wanted}` is missing here")));
        }
        self.at += wanted.len();
        Ok(())
    }

    fn binary(&mut self, level: usize) -> Result<Term, BadExpression> {
        let Some(operators) = OPERATORS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let token = self.token();
            let Some((_, op)) = operators.iter().find(|(text, _)| *text == token) else {
                return Ok(left);
            };
            self.at += token.len();
            self.deepen(token)?;
            left = Term::Of(*op, Box::new([left, self.binary(level + 1)?]));
        }
    }

    /// Counts the operators and brackets, so that neither reading nor evaluating an expression can exhaust the stack.
    fn deepen(&mut self, token: &str) -> Result<(), BadExpression> {
        self.depth += 1;
        let deep = self.depth > DEEPEST;
        if deep { Err(self.refuse(token, "the expression is too long")) } else { Ok(()) }
    }

    fn unary(&mut self) -> Result<Term, BadExpression> {
        let token = self.token();
        let start = self.at;
        self.at += token.len();
        match token {
            "-" => {
                self.deepen(token)?;
                let of = self.unary()?;
                return Ok(Term::Of(Op::Sub, Box::new([Term::Number(0), of])));
            }
            "(" => {
                self.deepen(token)?;
                let inner = self.binary(0)?;
                self.take(")")?;
                return Ok(inner);
            }
            _ => {}
        }
        if let Some(name) = NAMES.iter().position(|name| *name == token) {
            return Ok(Term::Name(name));
        }
        if let Some((_, op)) = FUNCTIONS.iter().find(|(name, _)| *name == token) {
            self.deepen(token)?;
            self.take("(")?;
            let first = self.binary(0)?;
            self.take(",")?;
            let second = self.binary(0)?;
            self.take(")")?;
            return Ok(Term::Of(*op, Box::new([first, second])));
        }
        let number = match token.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => token.parse(),
        };
        number.map(Term::Number).map_err(|_| {
            let why = match token {
                "" => "the expression ends too early".to_owned(),
                _ => format!(
                    "`{token}` is neither a number nor a name: names are {}",
                    NAMES.join(", ")
                ),
            };
            (start..start + token.len(), why)
        })
    }
}
