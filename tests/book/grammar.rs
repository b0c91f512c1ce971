//! The grammar of the reference is the grammar of the parser: the test reads it from the page, and both must accept
//! equal sources. The lexer distinguishes words of the language that are names elsewhere (`on`, `view`), for both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use fastrand::Rng;
use roundelay_core::diagnostics::Code;
use roundelay_core::source::Span;
use roundelay_core::syntax::token::{CONTEXTUAL, KEYWORDS, PUNCTUATION, Quantity, Tok};
use roundelay_core::syntax::{Source, parse};
use roundelay_tests::{files, root};

const PAGE: &str = "book/src/reference/grammar.md";

/// The right side of a production. Choices are numbered, so that the tests know which were made.
enum Rule {
    /// A token by its spelling, or a class of tokens by its name.
    Token(String),
    Production(usize),
    Sequence(Vec<Rule>),
    Choice(usize, Vec<Rule>),
    /// `*`: any number.
    Many(usize, Box<Rule>),
    /// `?`
    Optional(usize, Box<Rule>),
    /// `,*`: a list with commas between and perhaps one at the end.
    List(usize, Box<Rule>),
}

struct Grammar {
    names: Vec<String>,
    rules: Vec<Rule>,
    /// How many ways each choice has.
    ways: Vec<usize>,
}

/// The signs of the notation: names, `"tokens"` and marks.
fn signs(text: &str) -> Vec<String> {
    let mut signs = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => rest[1..].find('"').expect("a quote is closed") + 2,
            ',' => 2,
            c if c.is_ascii_alphabetic() => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            _ => 1,
        };
        signs.push(rest[..len].to_owned());
        rest = rest[len..].trim_start();
    }
    signs
}

impl Grammar {
    fn read(text: &str) -> Self {
        let signs = signs(text);
        let begins: Vec<usize> =
            (1..signs.len()).filter(|&i| signs[i] == "=").map(|i| i - 1).collect();
        let names: Vec<String> = begins.iter().map(|&i| signs[i].clone()).collect();
        let mut grammar = Self { names, rules: Vec::new(), ways: Vec::new() };
        for (k, &begin) in begins.iter().enumerate() {
            let end = begins.get(k + 1).copied().unwrap_or(signs.len());
            let mut body = &signs[begin + 2..end];
            let rule = grammar.choice(&mut body);
            assert!(body.is_empty(), "{}: {body:?} follows nothing", grammar.names[k]);
            grammar.rules.push(rule);
        }
        grammar
    }

    fn of_the_page() -> Self {
        let page = std::fs::read_to_string(root().join(PAGE)).expect("the page is text");
        let (_, block) = page.split_once("```ebnf\n").expect("the page shows the grammar");
        let (block, _) = block.split_once("```").expect("the block is closed");
        Self::read(block)
    }

    fn decision(&mut self, ways: usize) -> usize {
        self.ways.push(ways);
        self.ways.len() - 1
    }

    fn choice(&mut self, signs: &mut &[String]) -> Rule {
        let mut branches = vec![self.sequence(signs)];
        while signs.first().is_some_and(|s| s == "|") {
            *signs = &signs[1..];
            branches.push(self.sequence(signs));
        }
        if branches.len() == 1 {
            return branches.remove(0);
        }
        Rule::Choice(self.decision(branches.len()), branches)
    }

    fn sequence(&mut self, signs: &mut &[String]) -> Rule {
        let mut parts = Vec::new();
        while let Some(sign) = signs.first() {
            if ["|", ")"].contains(&&sign[..]) {
                break;
            }
            *signs = &signs[1..];
            let mut part = match &sign[..] {
                "(" => {
                    let inner = self.choice(signs);
                    assert_eq!(signs.first().map(String::as_str), Some(")"));
                    *signs = &signs[1..];
                    inner
                }
                quoted if quoted.starts_with('"') => Rule::Token(quoted.trim_matches('"').into()),
                class if class.starts_with(|c: char| c.is_ascii_uppercase()) => {
                    Rule::Token(class.into())
                }
                name => {
                    let known = self.names.iter().position(|n| n == name);
                    Rule::Production(known.unwrap_or_else(|| panic!("nothing produces {name}")))
                }
            };
            while let Some(mark) = signs.first() {
                part = match &mark[..] {
                    "*" => Rule::Many(self.decision(2), Box::new(part)),
                    "?" => Rule::Optional(self.decision(2), Box::new(part)),
                    ",*" => Rule::List(self.decision(3), Box::new(part)),
                    _ => break,
                };
                *signs = &signs[1..];
            }
            parts.push(part);
        }
        Rule::Sequence(parts)
    }

    /// Whether `tokens` are a source.
    fn takes(&self, tokens: &[Tok]) -> bool {
        let width = tokens.len() + 1;
        let mut reader =
            Reader { grammar: self, tokens, known: vec![None; self.rules.len() * width] };
        reader.production(0, 0).contains(&tokens.len())
    }
}

/// Whether the grammar calls a token `name`.
fn is(tok: &Tok, name: &str) -> bool {
    match tok {
        Tok::Ident(_) => name == "NAME",
        Tok::Int(_) => name == "INTEGER",
        Tok::Quantity(_) => name == "QUANTITY",
        Tok::Str(_) => name == "STRING",
        Tok::Doc(_) => name == "DOC",
        Tok::Rust(_) => name == "RUST",
        other => other.text() == Some(name),
    }
}

/// Finds where a rule can end that begins at a token, all of the places at once, and each only once.
struct Reader<'g> {
    grammar: &'g Grammar,
    tokens: &'g [Tok],
    known: Vec<Option<Rc<[usize]>>>,
}

impl Reader<'_> {
    fn production(&mut self, which: usize, at: usize) -> Rc<[usize]> {
        let place = which * (self.tokens.len() + 1) + at;
        if let Some(known) = &self.known[place] {
            return known.clone();
        }
        // No production begins with itself, so this is never met half done.
        let found = self.ends(&self.grammar.rules[which], vec![at]).into();
        self.known[place].insert(found).clone()
    }

    /// Where `rule` can end that begins at one of `starts`.
    fn ends(&mut self, rule: &Rule, starts: Vec<usize>) -> Vec<usize> {
        let mut ends = match rule {
            Rule::Token(name) => {
                let fits = |at: &usize| self.tokens.get(*at).is_some_and(|tok| is(tok, name));
                starts.into_iter().filter(fits).map(|at| at + 1).collect()
            }
            Rule::Production(which) => {
                starts.into_iter().flat_map(|at| self.production(*which, at).to_vec()).collect()
            }
            Rule::Sequence(parts) => parts
                .iter()
                .fold(starts, |at, part| if at.is_empty() { at } else { self.ends(part, at) }),
            Rule::Choice(_, branches) => {
                branches.iter().flat_map(|branch| self.ends(branch, starts.clone())).collect()
            }
            Rule::Optional(_, inner) => [starts.clone(), self.ends(inner, starts)].concat(),
            Rule::Many(_, inner) => self.closure(starts, |reader, at| reader.ends(inner, at)),
            Rule::List(_, inner) => {
                let comma = Rule::Token(",".to_owned());
                let first = self.ends(inner, starts.clone());
                let items = self.closure(first, |reader, at| {
                    let behind = reader.ends(&comma, at);
                    reader.ends(inner, behind)
                });
                [starts, self.ends(&comma, items.clone()), items].concat()
            }
        };
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// `starts`, and all that `next` reaches from there in any number of steps.
    fn closure(
        &mut self,
        starts: Vec<usize>,
        mut next: impl FnMut(&mut Self, Vec<usize>) -> Vec<usize>,
    ) -> Vec<usize> {
        let mut all: BTreeSet<usize> = starts.iter().copied().collect();
        let mut fresh = starts;
        while !fresh.is_empty() {
            fresh = next(self, fresh);
            fresh.retain(|at| all.insert(*at));
        }
        all.into_iter().collect()
    }
}

/// Whether the parser accepts a source; `None` where it checks more than its grammar: the depth of nested brackets, and
/// that there is a token at all.
fn parses(source: &Source) -> Option<bool> {
    let (_, diagnostics) = parse(source);
    let codes: Vec<Code> = diagnostics.iter().map(|d| d.code).collect();
    let outside = [Code::UnreadableSource, Code::NestedTooDeep, Code::NoAlgorithm];
    if codes.iter().any(|code| outside.contains(code)) {
        return None;
    }
    // The value of a literal is not the grammar's either, but its token is there.
    Some(codes.iter().all(|code| *code == Code::LiteralTooLarge))
}

/// Compares the page and the parser on `text`; whether they took it.
fn agree(grammar: &Grammar, what: &str, text: &str) -> Option<bool> {
    let source = Source::from_text(what, text);
    let parsed = parses(&source)?;
    let taken = grammar.takes(source.tokens());
    let told: Vec<_> = parse(&source).1.iter().map(|d| d.report(&source)).collect();
    assert_eq!(
        taken,
        parsed,
        "{what}: the grammar of {PAGE} {} what the parser {}:\n{text}\n{}",
        if taken { "takes" } else { "refuses" },
        if parsed { "takes" } else { "refuses" },
        told.join("\n"),
    );
    Some(parsed)
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let folders = ["stdlib", "examples", "core/tests", "tests", "book/src/listings"];
    let paths = folders.into_iter().flat_map(|folder| files(&root().join(folder), "coll"));
    paths.filter_map(|path| Some((path.clone(), std::fs::read_to_string(&path).ok()?))).collect()
}

/// All tokens of a rule.
fn tokens(rule: &Rule, found: &mut BTreeSet<String>) {
    match rule {
        Rule::Token(name) => {
            found.insert(name.clone());
        }
        Rule::Production(_) => {}
        Rule::Sequence(all) | Rule::Choice(_, all) => {
            for rule in all {
                tokens(rule, found);
            }
        }
        Rule::Many(_, inner) | Rule::Optional(_, inner) => tokens(inner, found),
        Rule::List(_, inner) => {
            found.insert(",".to_owned());
            tokens(inner, found);
        }
    }
}

#[test]
fn the_grammar_has_every_token() {
    let grammar = Grammar::of_the_page();
    let mut found = BTreeSet::new();
    for rule in &grammar.rules {
        tokens(rule, &mut found);
    }
    let classes = ["NAME", "INTEGER", "QUANTITY", "STRING", "DOC", "RUST"];
    let known = [KEYWORDS, CONTEXTUAL, PUNCTUATION, &classes].concat();
    let known: BTreeSet<String> = known.into_iter().map(str::to_owned).collect();
    assert_eq!(found, known);
}

#[test]
fn the_grammar_takes_the_sources_that_the_parser_takes() {
    let grammar = Grammar::of_the_page();
    let mut counts: BTreeMap<Option<bool>, usize> = BTreeMap::new();
    for (path, text) in all_sources() {
        *counts.entry(agree(&grammar, &path.display().to_string(), &text)).or_default() += 1;
    }
    assert!(counts[&Some(true)] > 150 && counts[&Some(false)] > 5, "{counts:?}");
}

/// Sources in which a token is missing, doubled, changed or swapped with the next.
#[test]
fn the_grammar_refuses_the_slips_that_the_parser_refuses() {
    let grammar = Grammar::of_the_page();
    let all = all_sources();
    let short = all.iter().filter(|(path, text)| {
        let folder = path.parent().expect("a source is in a folder");
        text.len() < 6000 && (folder.ends_with("tests/data") || folder.ends_with("examples"))
    });
    let sources: Vec<Vec<String>> = short
        .map(|(path, text)| {
            let source = Source::from_text(path.display().to_string(), text);
            let spans = (0..source.tokens().len()).map(|i| Span::new(i, i + 1));
            spans.map(|span| text[source.range(span)].to_owned()).collect()
        })
        .collect();
    let mut seeded = Rng::with_seed(1);
    let mut counts: BTreeMap<Option<bool>, usize> = BTreeMap::new();
    for case in 0..600 {
        let mut tokens = sources[seeded.usize(..sources.len())].clone();
        let at = seeded.usize(..tokens.len() - 1);
        match seeded.usize(..4) {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[at].clone()),
            2 => tokens.swap(at, at + 1),
            _ => tokens[at] = tokens[seeded.usize(..tokens.len())].clone(),
        }
        // A line each, because a doc comment takes the rest of its line.
        let text = tokens.join("\n");
        *counts.entry(agree(&grammar, &format!("slip {case}"), &text)).or_default() += 1;
    }
    assert!(counts[&Some(true)] > 30 && counts[&Some(false)] > 200, "{counts:?}");
}

/// Makes sentences of the grammar, in which every choice is made once.
struct Author<'g> {
    grammar: &'g Grammar,
    seeded: Rng,
    /// The ways of each choice that were taken in sentences before this one.
    used: BTreeSet<(usize, usize)>,
    /// The choices of this sentence.
    made: BTreeSet<(usize, usize)>,
    /// The depth of the shortest sentence of each production.
    depths: Vec<usize>,
}

impl<'g> Author<'g> {
    fn new(grammar: &'g Grammar) -> Self {
        const ENDLESS: usize = 1 << 20;
        let mut depths = vec![ENDLESS; grammar.rules.len()];
        loop {
            let fresh: Vec<_> =
                grammar.rules.iter().map(|rule| (1 + depth(rule, &depths)).min(ENDLESS)).collect();
            if fresh == depths {
                break;
            }
            depths = fresh;
        }
        let endless: Vec<_> = (0..depths.len())
            .filter(|i| depths[*i] == ENDLESS)
            .map(|i| &grammar.names[i])
            .collect();
        assert!(endless.is_empty(), "{endless:?} never end");
        let (used, made) = Default::default();
        Self { grammar, seeded: Rng::with_seed(2), used, made, depths }
    }

    /// One of `ways` of choice `which`, one that was not taken yet if there is one.
    fn choose(&mut self, which: usize, ways: &[usize]) -> usize {
        let new: Vec<usize> =
            ways.iter().copied().filter(|way| !self.used.contains(&(which, *way))).collect();
        let from = if !new.is_empty() && self.seeded.usize(..2) == 0 { &new[..] } else { ways };
        let way = from[self.seeded.usize(..from.len())];
        self.made.insert((which, way));
        way
    }

    fn write(&mut self, rule: &Rule, budget: usize, out: &mut Vec<Tok>) {
        let fits = |author: &Self, rule: &Rule| depth(rule, &author.depths) <= budget;
        match rule {
            Rule::Token(name) => {
                let tok = self.token(name);
                out.push(tok);
            }
            Rule::Production(which) => {
                self.write(&self.grammar.rules[*which], budget.saturating_sub(1), out);
            }
            Rule::Sequence(parts) => {
                for part in parts {
                    self.write(part, budget, out);
                }
            }
            Rule::Choice(which, branches) => {
                let least = branches.iter().map(|rule| depth(rule, &self.depths)).min();
                let affordable =
                    |rule: &Rule| fits(self, rule) || Some(depth(rule, &self.depths)) == least;
                let ways: Vec<usize> =
                    (0..branches.len()).filter(|way| affordable(&branches[*way])).collect();
                let way = self.choose(*which, &ways);
                self.write(&branches[way], budget, out);
            }
            Rule::Optional(which, inner) | Rule::Many(which, inner) | Rule::List(which, inner) => {
                let most = match rule {
                    _ if !fits(self, inner) => 1,
                    Rule::List(..) => 3,
                    _ => 2,
                };
                let ways: Vec<usize> = (0..most).collect();
                let way = self.choose(*which, &ways);
                if way == 0 {
                    return;
                }
                self.write(inner, budget, out);
                if !matches!(rule, Rule::Optional(..)) && self.seeded.usize(..3) == 0 {
                    if matches!(rule, Rule::List(..)) {
                        out.push(Tok::Comma);
                    }
                    self.write(inner, budget, out);
                }
                if way == 2 {
                    out.push(Tok::Comma);
                }
            }
        }
    }

    fn token(&mut self, name: &str) -> Tok {
        match name {
            // Words that have a meaning in other places only are names too.
            "NAME" => {
                let names =
                    ["a", "b", "rank", "peer", "copy", "bytes", "rust", "on", "like", "view"];
                Tok::Ident(names[self.seeded.usize(..names.len())].to_owned())
            }
            "INTEGER" => Tok::Int(self.seeded.usize(..9) as i64),
            "QUANTITY" => match self.seeded.usize(..2) {
                0 => Tok::Quantity(Quantity::Bytes(25_000_000_000)),
                _ => Tok::Quantity(Quantity::Time(2_000)),
            },
            "STRING" => Tok::Str("why \"not\"".to_owned()),
            "DOC" => Tok::Doc(" Text.".to_owned()),
            "RUST" => Tok::Rust("1 + 2".to_owned()),
            text => {
                let contextual = |text: &str| match text {
                    "executor" => Tok::Executor,
                    "fifo" => Tok::Fifo,
                    "like" => Tok::Like,
                    "on" => Tok::On,
                    "otherwise" => Tok::Otherwise,
                    "parallel" => Tok::Parallel,
                    "require" => Tok::Require,
                    "scratch" => Tok::Scratch,
                    "step" => Tok::Step,
                    "use" => Tok::Use,
                    "view" => Tok::View,
                    "when" => Tok::When,
                    "within" => Tok::Within,
                    "without" => Tok::Without,
                    other => panic!("{other} is no token"),
                };
                Tok::keyword(text)
                    .or_else(|| Tok::punctuation(text))
                    .unwrap_or_else(|| contextual(text))
            }
        }
    }
}

/// How many productions deep the shortest sentence of `rule` is.
fn depth(rule: &Rule, depths: &[usize]) -> usize {
    match rule {
        Rule::Production(which) => depths[*which],
        Rule::Sequence(parts) => parts.iter().map(|part| depth(part, depths)).max().unwrap_or(0),
        Rule::Choice(_, all) => all.iter().map(|part| depth(part, depths)).min().unwrap_or(0),
        Rule::Token(_) | Rule::Many(..) | Rule::Optional(..) | Rule::List(..) => 0,
    }
}

/// A sentence in which the lexer takes a name for a word of the language, or vice versa, is another sentence: both must
/// agree on it all the same.
#[test]
fn the_parser_takes_what_the_grammar_makes() {
    let grammar = Grammar::of_the_page();
    let mut author = Author::new(&grammar);
    let ways = grammar.ways.iter().enumerate();
    let ways: BTreeSet<_> = ways.flat_map(|(i, ways)| (0..*ways).map(move |w| (i, w))).collect();
    let mut taken = 0;
    for case in 0..5000 {
        if taken > 300 && author.used == ways {
            return;
        }
        author.made.clear();
        let mut tokens = Vec::new();
        author.write(&Rule::Production(0), 4 + case % 16, &mut tokens);
        if tokens.is_empty() {
            continue;
        }
        let words = tokens.iter().map(|tok| match tok {
            Tok::Rust(text) => format!("rust {{ {text} }}"),
            other => other.to_string(),
        });
        let text = words.collect::<Vec<_>>().join("\n");
        let source = Source::from_text("sentence", &text);
        let as_meant = source.tokens() == tokens;
        if let Some(parsed) = agree(&grammar, &format!("sentence {case}"), &text) {
            assert!(parsed || !as_meant, "sentence {case} is none:\n{text}");
            if as_meant {
                taken += 1;
                author.used.append(&mut author.made);
            }
        }
    }
    let never: Vec<_> = ways.difference(&author.used).collect();
    panic!("{taken} sentences were as meant, and these choices were never made: {never:?}");
}
