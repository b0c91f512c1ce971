//! The text that an editor shows for the name or the error below the pointer.

use roundelay::{Algorithm as _, select};
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::source::Span;

use super::names::{Named, variable};
use super::place::{Place, token};
use super::text::EditorText;

/// Words of the language: the form of each, or its meaning in a program, and the word of the glossary that it stands for.
const WORDS: [(&str, &str, &str); 26] = [
    ("rank", "this rank's number, from 0", "rank"),
    ("nranks", "the number of ranks", "rank"),
    (
        "local",
        "this rank as a peer: its buffers are `local.input`, `local.output` and its scratch",
        "peer",
    ),
    ("input", "the caller's data, a buffer of every rank", "buffer"),
    ("output", "the result, a buffer of every rank", "buffer"),
    (
        "copy",
        "`copy(from, to)` copies a region of a rank to a region of a rank, or to several",
        "move",
    ),
    (
        "reduce",
        "`reduce(from, into)` adds the first operand into the second, by the reduce op of the call",
        "move",
    ),
    (
        "fold",
        "`fold(all.from, into)` reduces a region of all ranks into one of a rank or of all, in an order that is open",
        "fold",
    ),
    ("all", "all ranks, this one included: `all.input`, `all.TxDataSignal()`", "rank"),
    ("peer", "`peer(n)` is the rank of that number, to communicate with", "peer"),
    (
        "TxAck",
        "posts an ack to the peer: earlier work is visible to the peer behind its `RxAck`",
        "ack",
    ),
    ("RxAck", "waits for the peer's next `TxAck`", "ack"),
    (
        "TxDataSignal",
        "posts a data signal to the peer: earlier work is visible behind its `RxDataSignal`",
        "data signal",
    ),
    ("RxDataSignal", "waits for the peer's next `TxDataSignal`", "data signal"),
    (
        "split",
        "`region.split(n)` cuts a region in n pieces of equal length; `split([2, 1])` cuts it by weights",
        "piece",
    ),
    ("block", "`region.block(i)` is block i of a region in blocks of `count` elements", "block"),
    ("view", "`view name = region;` names a region or its pieces", "view"),
    (
        "scratch",
        "`scratch name: n like region;` declares n slots, each as long as the region",
        "scratch",
    ),
    (
        "step",
        "`step name(from: peer, b: int) { … }` names statements that are used again",
        "named step",
    ),
    (
        "parallel",
        "`parallel way in 0..n { … }` runs its body n times at once, each on a stream of its own",
        "stream",
    ),
    ("fifo", "`fifo like region, credits = 4;` gives every link slots for data on its way", "fifo"),
    ("root", "the rank that a rooted collective begins or ends at", "root"),
    (
        "algorithm",
        "`algorithm Name() -> AllReduce { … }` is the work of each rank in a collective",
        "algorithm",
    ),
    (
        "executor",
        "`executor Name for AllReduce { … }` chooses an algorithm by size, and its settings",
        "executor",
    ),
    (
        "within",
        "`within ranks { … }` runs its body on the ranks of a list, which are numbered anew in it",
        "group",
    ),
    (
        "require",
        "`require condition, \"why\";` refuses numbers of ranks or values of parameters",
        "parameter",
    ),
];

/// Returns the form of a word of the language, or its meaning in a program.
pub(super) fn word_meaning(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(known, ..)| *known == word).map(|(_, form, _)| *form)
}

impl EditorText {
    /// Returns what is to be told of a place, as Markdown, with the token there.
    pub fn hover(&self, at: Place) -> Option<(Span, String)> {
        let token = token(&self.source, at)?;
        let named = self.named(token).or_else(|| Some(Named::Word(self.keyword(token)?)));
        let found = self.problems().filter(|found| {
            let place = self.source.location(found.primary);
            (place.line, place.column) <= at && at <= (place.end_line, place.end_column)
        });
        let mut told: Vec<String> = found
            .map(|Diagnostic { code, .. }| {
                format!("{code}: {}. `roundelay explain {code}` says more.", code.summary())
            })
            .collect();
        told.extend(named.and_then(|named| self.meaning(token, named)));
        (!told.is_empty()).then(|| (Span::new(token, token + 1), told.join("\n\n")))
    }

    fn meaning(&self, token: usize, named: Named<'_>) -> Option<String> {
        Some(match named {
            Named::Var(algorithm, var) => {
                let variable = variable(algorithm, var);
                let declared = self.source.location(variable.span).line;
                let line = self.source.line(declared).unwrap_or_default().trim();
                format!("`{}` is {}\n\n```coll\n{line}\n```", variable.name, variable.ty.name())
            }
            Named::Own(algorithm) => {
                let mut text = docs(&algorithm.declaration.docs);
                if let Some(certified) = self.certified(&algorithm.name) {
                    text.extend(["\n\n```text\n", &certified.lines.join("\n"), "\n```"]);
                }
                format!("{} of {}{text}", algorithm.name, algorithm.collective.name())
            }
            Named::Word(word) => self.word(token, word)?,
        })
    }

    /// Returns the text of a token that is a word of the language, and no name.
    fn keyword(&self, token: usize) -> Option<&str> {
        let text = self.source.text()?;
        Some(&text[self.source.range(Span::new(token, token + 1))])
    }

    /// Returns the meaning of a word of the language, of a collective, or of an algorithm that this text calls.
    fn word(&self, token: usize, word: &str) -> Option<String> {
        if let Some((_, form, term)) = WORDS.iter().find(|(known, ..)| *known == word) {
            let line = self.source.places()[token].line;
            let why = self.needed(token).into_iter().flatten();
            let why = why.filter(|reason| (reason.line, reason.signal) == (line, word));
            let why = why.map(|reason| format!("\n\nneeded: {}", reason.why));
            let meaning = roundelay_book::word(term).unwrap_or_default();
            return Some(format!("{form}\n\n*{term}*: {meaning}{}", why.collect::<String>()));
        }
        if let Some(called) = self.callee(word) {
            let algorithm = &called.algorithm;
            let (collective, file) = (algorithm.collective.name(), &called.file);
            return Some(format!(
                "{word} of {file}, {collective}{}",
                docs(&algorithm.declaration.docs)
            ));
        }
        let known = select::library().iter().find(|known| known.name() == word)?;
        let collective = known.collective().name();
        Some(format!("{word} of the library, {collective}{}", docs(known.docs())))
    }
}

/// Returns the lines of a doc comment as a paragraph of their own.
pub(super) fn docs(lines: &[String]) -> String {
    let text: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    if text.is_empty() { String::new() } else { format!("\n\n{}", text.join("\n")) }
}
