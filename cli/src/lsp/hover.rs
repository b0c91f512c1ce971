//! The text that an editor shows for the name or the error below the pointer.

use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};
use roundelay::{Algorithm as _, select};

use super::document::Document;
use super::names::{Named, variable};
use super::place::{Lines, word};

/// Words that every program has, or that belong to peers, each with its meaning.
const WORDS: [(&str, &str); 14] = [
    ("rank", "this rank's number, from 0"),
    ("nranks", "the number of ranks"),
    ("local", "this rank as a peer: its buffers are `local.input`, `local.output` and its scratch"),
    ("input", "the caller's data, a buffer of every rank"),
    ("output", "the result, a buffer of every rank"),
    ("copy", "`copy(from, to)` copies a region of a rank to a region of a rank, or to several"),
    (
        "reduce",
        "`reduce(from, into)` adds the first operand into the second, by the reduce op of the call",
    ),
    ("peer", "`peer(n)` is the rank of that number, to communicate with"),
    (
        "TxAck",
        "posts an ack to the peer: what was done before is visible to the peer behind its `RxAck`",
    ),
    ("RxAck", "waits for the peer's next `TxAck`"),
    (
        "TxDataSignal",
        "posts a data signal to the peer: what was done before is visible behind its `RxDataSignal`",
    ),
    ("RxDataSignal", "waits for the peer's next `TxDataSignal`"),
    (
        "split",
        "`region.split(n)` cuts a region in n pieces of equal length; `split([2, 1])` cuts it by weights",
    ),
    ("block", "`region.block(i)` is block i of a region in blocks of `count` elements"),
];

impl Document {
    pub(super) fn hover(&self, at: Position) -> Option<Hover> {
        let lines = Lines::of(&self.source);
        let token = lines.token(&self.source, at)?;
        let text = match self.named(token)? {
            Named::Var(algorithm, var) => {
                let variable = variable(algorithm, var);
                let declared = self.source.location(variable.span).line;
                let line = self.source.line(declared).unwrap_or_default().trim();
                format!("`{}` is {}\n\n```coll\n{line}\n```", variable.name, variable.ty.name())
            }
            Named::Own(algorithm) => {
                let mut text = docs(&algorithm.docs);
                if let Some(certified) = self.certified(&algorithm.name) {
                    text.extend(["\n\n```text\n", &certified.lines.join("\n"), "\n```"]);
                }
                format!("{} of {}{text}", algorithm.name, algorithm.collective.name())
            }
            Named::Word(word) => match WORDS.iter().find(|(known, _)| *known == word) {
                Some((_, meaning)) => {
                    let line = self.source.places()[token].line;
                    let why = self.needed(token).into_iter().flatten();
                    let why = why.filter(|reason| (reason.line, reason.signal) == (line, word));
                    let why = why.map(|reason| format!("\n\nneeded: {}", reason.why));
                    format!("{meaning}{}", why.collect::<String>())
                }
                None => {
                    let known = select::library().iter().find(|known| known.name() == word)?;
                    let collective = known.collective().name();
                    format!("{word} of the library, {collective}{}", docs(known.docs()))
                }
            },
        };
        // A name of several tokens does not exist: the range is that of the word.
        word(&self.source, token)?;
        let range = lines.range(&self.source, roundelay_core::source::Span::new(token, token + 1));
        let contents = MarkupContent { kind: MarkupKind::Markdown, value: text };
        Some(Hover { contents: HoverContents::Markup(contents), range: Some(range) })
    }
}

/// Returns the lines of a doc comment as a paragraph of their own.
fn docs(lines: &[String]) -> String {
    let text: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    if text.is_empty() { String::new() } else { format!("\n\n{}", text.join("\n")) }
}
