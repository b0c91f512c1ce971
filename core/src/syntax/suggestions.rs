//! Words and signs of other languages, and their counterparts in this language, as suggestions for newcomers.

use super::token::Tok;
use crate::diagnostics::Edit;
use crate::source::Span;
use crate::syntax::Source;

/// Returns the counterpart of a word that this language does not know.
pub(crate) fn instead(word: &str) -> Option<&'static str> {
    Some(match word {
        "while" | "loop" | "do" | "until" | "repeat" | "foreach" => {
            "loops run over a range or a list that is known before they begin: `for i in 0..n { … }`"
        }
        "range" | "xrange" => {
            "a range is written with dots, in the head of a loop: `for i in 0..n { … }`"
        }
        "match" | "switch" | "case" => "choose with `if … { … } else if … { … } else { … }`",
        "elif" | "elsif" | "elseif" => "write `else if`",
        "return" | "break" | "continue" => {
            "nothing is left early: put what is to be skipped into an `if`, or shorten the loop's range"
        }
        "fn" | "def" | "function" | "func" | "proc" | "lambda" => {
            "a piece that is used again is a step: `step name(from: peer, b: int) { … }`"
        }
        "const" | "static" | "var" | "val" | "auto" | "int" | "long" | "mut" => {
            "a value is named by `let name = …;`, and never changes"
        }
        "gpus" => {
            "the GPUs that the ranks are stand last in a topology: `full_mesh(8, 25GB/s, gpus(sm=90))`"
        }
        "and" => "both hold: `&&`",
        "or" => "one of them holds: `||`",
        "not" => "the opposite is written `!`",
        "mod" | "modulo" => "the remainder is written `%`",
        "pow" => "powers of two are `pow2(k)`, or `1 << k`",
        "True" | "TRUE" => "write `true`",
        "False" | "FALSE" => "write `false`",
        "self" | "this" => "this rank as a peer is `local`, its number is `rank`",
        "my_rank" | "myrank" | "rank_id" | "me" => "this rank's number is `rank`",
        "size" | "world_size" | "nprocs" | "num_ranks" | "n_ranks" | "comm_size" => {
            "the number of ranks is `nranks`"
        }
        "send" | "isend" | "Isend" | "Send" | "put" | "push" | "write" => {
            "through a fifo (`fifo like output;`) it is `p.send(local.output);`; without one, push with \
             `copy(local.output, p.output);` after the peer's `TxAck` (`p.RxAck();`), then tell it by `p.TxDataSignal();`"
        }
        "recv" | "irecv" | "Irecv" | "Recv" | "receive" | "get" | "pull" | "read" => {
            "through a fifo (`fifo like output;`) it is `p.recv(local.output);`; without one, pull with \
             `copy(p.output, local.output);` after the peer's `TxAck` (`p.RxAck();`), then tell it by `p.TxDataSignal();`"
        }
        "sendrecv" | "exchange" => {
            "each rank pulls for itself: `copy(p.output, local.inbox);` between the signals `p.TxAck(); p.RxAck();` \
             and `p.TxDataSignal(); p.RxDataSignal();`"
        }
        "barrier" | "sync" | "synchronize" | "fence" => {
            "ranks wait for peers, one by one: `p.TxAck();` tells `p`, and `p.RxAck();` waits for it"
        }
        "wait" | "signal" | "post" | "notify" => {
            "signals go to a peer: `p.TxAck();` or `p.TxDataSignal();` posts, `p.RxAck();` or `p.RxDataSignal();` waits"
        }
        "TxAck" | "RxAck" | "TxDataSignal" | "RxDataSignal" => {
            "a signal has its peer before the dot, such as `right.TxAck();`"
        }
        "memcpy" | "move" | "mov" => "data is copied by `copy(from, to);`",
        "add" | "accumulate" | "sum" => {
            "data is added up by `reduce(from, into);`: into = from op into"
        }
        "print" | "println" | "printf" | "dbg" => {
            "nothing is printed while it runs: `roundelay emit steps` shows who sends what to whom"
        }
        "assert" => "write `require condition, \"why\";`",
        _ => return collective(word),
    })
}

/// Returns an algorithm of the library for a word that stands for a whole collective in other libraries, such as
/// `reduce_scatter` or `MPI_Allgather`.
fn collective(word: &str) -> Option<&'static str> {
    let word = word.trim_start_matches("MPI_").trim_start_matches("nccl").to_lowercase();
    Some(match &*word.replace('_', "") {
        "allreduce" => {
            "a whole collective is an algorithm, and runs on regions: `RingAllReduce() on (input, output);`"
        }
        "reducescatter" => {
            "a whole collective is an algorithm, and runs on regions: `RingReduceScatter() on (input, output);`"
        }
        "allgather" => {
            "a whole collective is an algorithm, and runs on regions: `RingAllGather() on (input, output);`"
        }
        "alltoall" => {
            "a whole collective is an algorithm, and runs on regions: `PairwiseAllToAll() on (input, output);`"
        }
        "broadcast" | "bcast" => {
            "a whole collective is an algorithm, and runs on regions: `TreeBroadcast(root: 0) on (input, output);`"
        }
        "scatter" => {
            "a whole collective is an algorithm, and runs on regions: `MeshScatter(root: 0) on (input, output);`"
        }
        "gather" => {
            "a whole collective is an algorithm, and runs on regions: `MeshGather(root: 0) on (input, output);`"
        }
        _ => return None,
    })
}

/// Returns the counterpart of a word where it can be written in place of the word.
pub(crate) fn counterpart(word: &str) -> Option<&'static str> {
    Some(match word {
        "and" => "&&",
        "or" => "||",
        "not" => "!",
        "mod" | "modulo" => "%",
        "elif" | "elsif" | "elseif" => "else if",
        "True" | "TRUE" => "true",
        "False" | "FALSE" => "false",
        "my_rank" | "myrank" | "rank_id" | "me" => "rank",
        "size" | "world_size" | "nprocs" | "num_ranks" | "n_ranks" | "comm_size" => "nranks",
        _ => return None,
    })
}

/// Returns the counterpart of a sign that begins no token.
pub(crate) fn sign(sign: &str) -> Option<&'static str> {
    match sign {
        "?" => Some("choose a value with `if condition { a } else { b }`"),
        "~" => Some("the opposite is written `!`"),
        _ => None,
    }
}

/// Whether a word stands for an integer type in other languages.
pub(crate) fn integer(word: &str) -> bool {
    matches!(
        word,
        "i8" | "i16"
            | "i32"
            | "i64"
            | "i128"
            | "isize"
            | "u8"
            | "u16"
            | "u32"
            | "u64"
            | "u128"
            | "usize"
            | "long"
            | "integer"
            | "Int"
            | "int64"
            | "uint64"
            | "int32"
            | "uint32"
            | "size_t"
    )
}

/// A suggestion at an unexpected token: the mistake, and a correction.
pub(super) struct Suggestion {
    /// The place of the mistake.
    pub(super) at: Span,
    /// One line for the error, where the parser's own line says less.
    pub(super) title: Option<String>,
    /// The text at the place.
    pub(super) label: &'static str,
    /// The correction.
    pub(super) help: String,
    /// The correction as an edit, where it is one.
    pub(super) edit: Option<Edit>,
}

/// The label of a word or sign that this language does not have.
const FOREIGN: &str = "not in this language";

/// Returns the suggestion for the unexpected token `at`, if it is a habit from another language.
pub(super) fn suggestion(source: &Source, at: usize) -> Option<Suggestion> {
    let tokens = source.tokens();
    let start = statement(tokens, at);
    let first = tokens.get(start)?;
    let found = tokens.get(at);
    let next = tokens.get(at + 1);
    let one = Span::new(at, at + 1);
    let edited = |suggestion: Suggestion, text: &str| {
        let edit = Some(Edit { at: suggestion.at, text: text.to_owned() });
        Some(Suggestion { edit, ..suggestion })
    };
    let suggestion = |at, title: &str, help: String| {
        let label = if title.is_empty() { "unexpected" } else { FOREIGN };
        let title = (!title.is_empty()).then(|| title.to_owned());
        Some(Suggestion { at, title, label, help, edit: None })
    };
    if let Some(suggestion) = parallel_for(source, at) {
        return Some(suggestion);
    }
    let compares = matches!(first, Tok::If | Tok::Require | Tok::Within | Tok::Else);
    match (found?, next) {
        (Tok::Assign, _) if compares => {
            let rest = tokens.iter().skip(at + 1).position(ends);
            let head = rest.map(|rest| {
                let left = source.text_at(Span::new(start, at));
                format!("{left} == {}", source.text_at(Span::new(at + 1, at + 1 + rest)))
            });
            let help = match head.filter(|head| head.chars().count() <= SHORT) {
                Some(head) => format!("write `{}`", head.trim_start_matches("else ")),
                None => "write `==`".to_owned(),
            };
            let title = "expected `==`, found `=`: `=` names a value, and `==` compares".to_owned();
            return Some(Suggestion {
                at: one,
                title: Some(title),
                label: "does not compare",
                help,
                edit: Some(Edit { at: one, text: "==".to_owned() }),
            });
        }
        (Tok::Assign, _) if matches!(first, Tok::Ident(_)) && at > start => {
            return Some(assignment(source, (start, at, at + 1), ""));
        }
        (operator, Some(Tok::Assign))
            if changes(operator)
                && adjacent(source, at)
                && matches!(first, Tok::Ident(_))
                && at > start =>
        {
            let sign = operator.to_string();
            return Some(assignment(source, (start, at, at + 2), &sign));
        }
        (Tok::Plus, Some(Tok::Plus)) | (Tok::Minus, Some(Tok::Minus)) if at > start => {
            return Some(assignment(source, (start, at, at + 2), "++"));
        }
        (Tok::Star, _) if at > start && tokens[at - 1] == Tok::Star => {
            let title = "`**` is no operator";
            return suggestion(
                Span::new(at - 1, at + 1),
                title,
                "powers of two are `pow2(k)`, or `1 << k`".into(),
            );
        }
        (Tok::Arrow, _) => {
            return suggestion(
                one,
                "",
                "a peer's regions and signals come after a dot: `p.TxAck();`".into(),
            );
        }
        (Tok::LParen, _) if at > 0 && tokens[at - 1] == Tok::For => {
            let title = "a loop runs over a range or a list";
            return suggestion(one, title, "write `for i in 0..n { … }`".into());
        }
        (Tok::As, _) => {
            let to = matches!(next, Some(Tok::Ident(_)));
            let written = Span::new(at, at + 1 + usize::from(to));
            let help = format!(
                "leave out `{}`: integers are of 64 bits everywhere",
                source.text_at(written)
            );
            return edited(suggestion(written, "there are no casts", help)?, "");
        }
        (Tok::Ident(word), _) if matches!(&**word, "and" | "or") => {
            return edited(suggestion(one, "", instead(word)?.to_owned())?, counterpart(word)?);
        }
        _ => {}
    }
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    if let Some(Tok::Ident(word)) = before
        && word == "not"
    {
        return edited(
            suggestion(Span::new(at - 1, at), "", instead(word)?.to_owned())?,
            counterpart(word)?,
        );
    }
    if let Tok::Ident(word) = first
        && at > start
        && !declared(tokens, start, word)
        && let Some(help) = instead(word)
    {
        let title = format!("there is no `{word}`");
        let suggestion = suggestion(Span::new(start, start + 1), &title, help.to_owned());
        return match counterpart(word) {
            Some(text) => edited(suggestion?, text),
            None => suggestion,
        };
    }
    None
}

/// Suggests a correction of a loop with both words in its head: `parallel for i in …`, `for parallel i in …`, `for i in
/// parallel …`.
fn parallel_for(source: &Source, at: usize) -> Option<Suggestion> {
    let tokens = source.tokens();
    let text = |i: usize| match tokens.get(i) {
        Some(Tok::Ident(text)) => text.as_str(),
        tok => tok.and_then(Tok::text).unwrap_or_default(),
    };
    let before: Vec<_> = (at.saturating_sub(4)..at).map(text).collect();
    // The surplus word, and the name before the range.
    let (extra, name) = match (&before[..], text(at)) {
        ([.., "parallel"], "for") => (at, None),
        ([.., "for", "parallel"], _) if matches!(tokens.get(at), Some(Tok::Ident(_))) => {
            (at - 1, None)
        }
        ([.., "for", name, "in", "parallel"], _) => (at - 1, Some(*name)),
        _ => return None,
    };
    let end = tokens.iter().skip(extra).position(ends).map_or(tokens.len(), |len| extra + len);
    let rest = source.text_at(Span::new(extra + 1, end));
    let head = name.map_or_else(|| rest.clone(), |name| format!("{name} in {rest}"));
    let head = if head.chars().count() <= SHORT { &head } else { "i in 0..2" };
    Some(Suggestion {
        at: Span::new(extra, extra + 1),
        title: Some("a loop begins with `for` or with `parallel`, not with both".to_owned()),
        label: "unexpected",
        help: format!("write `parallel {head}`, without `for`"),
        edit: None,
    })
}

/// The most characters of a head that is shown in its corrected form.
const SHORT: usize = 60;

/// Returns the first token of the statement of token `at`.
fn statement(tokens: &[Tok], at: usize) -> usize {
    let edge = |tok: &Tok| matches!(tok, Tok::LBrace | Tok::RBrace | Tok::Semi);
    tokens[..at.min(tokens.len())].iter().rposition(edge).map_or(0, |edge| edge + 1)
}

/// Whether a statement begins at token `at`.
pub(super) fn begins_statement(tokens: &[Tok], at: usize) -> bool {
    statement(tokens, at) == at
}

/// Returns the first token of the statement in whose head token `at` stands, if the statement has a body.
pub(super) fn head(tokens: &[Tok], at: usize) -> Option<&Tok> {
    let first = tokens.get(statement(tokens, at))?;
    let has =
        matches!(first, Tok::If | Tok::Else | Tok::For | Tok::Parallel | Tok::Within | Tok::Step);
    has.then_some(first)
}

/// Whether a token ends a head or a statement.
fn ends(tok: &Tok) -> bool {
    matches!(tok, Tok::LBrace | Tok::RBrace | Tok::Semi | Tok::Comma)
}

/// Whether the sign before a `=` would change a value in other languages.
fn changes(tok: &Tok) -> bool {
    use Tok::{And, Caret, Minus, Or, Percent, Plus, Shl, Shr, Slash, Star};
    matches!(tok, And | Caret | Minus | Or | Percent | Plus | Shl | Shr | Slash | Star)
}

fn adjacent(source: &Source, at: usize) -> bool {
    let (one, next) = (source.places()[at], source.places()[at + 1]);
    (one.end_line, one.end_column) == (next.line, next.column)
}

/// Whether `name` is declared before token `at`.
fn declared(tokens: &[Tok], at: usize, name: &str) -> bool {
    tokens[..at].windows(2).any(|pair| {
        let keyword = matches!(pair[0], Tok::Let | Tok::For | Tok::Parallel | Tok::View);
        let named = |tok: &Tok| matches!(tok, Tok::Ident(text) if text == name);
        keyword && named(&pair[1]) || named(&pair[0]) && pair[1] == Tok::Colon
    })
}

/// Suggests a correction of a value or a region on the left of `=`, `+=` and their kin: the statement begins at
/// `start`, its sign stands at `at`, and its right side begins at `right`.
fn assignment(
    source: &Source,
    (start, at, right): (usize, usize, usize),
    sign: &str,
) -> Suggestion {
    let tokens = source.tokens();
    let left = source.text_at(Span::new(start, at));
    let end = tokens.iter().skip(right).position(ends).map_or(tokens.len(), |len| right + len);
    let value = source.text_at(Span::new(right, end));
    let region = tokens[start..at].contains(&Tok::Dot);
    let name = match &tokens[start] {
        Tok::Ident(name) => name.as_str(),
        _ => left.as_str(),
    };
    let signs = Span::new(at, right);
    let (title, help) = if region && tokens[right..end].contains(&Tok::Dot) {
        let op = if sign.is_empty() { "copy" } else { "reduce" };
        ("data is moved by ops, not by `=`".to_owned(), format!("write `{op}({value}, {left});`"))
    } else if sign.is_empty() && !declared(tokens, start, name) {
        (
            format!("nothing called `{name}` was declared"),
            format!("declare it: `let {left} = {value};`"),
        )
    } else {
        let help = "name a new value (`let next = …;`), or compute it from the loop's variable";
        (format!("`{left}` is a value, and values never change"), help.to_owned())
    };
    let edit = help
        .strip_prefix("write `")
        .and_then(|form| form.strip_suffix(";`"))
        .map(|form| Edit { at: Span::new(start, end), text: form.to_owned() });
    Suggestion { at: signs, title: Some(title), label: FOREIGN, help, edit }
}

/// Returns the names that an unreadable text may have declared: the words after a declaring keyword, or before a `:` or
/// `=`.
pub(super) fn names(tokens: &[Tok]) -> Vec<String> {
    let edge =
        |tok: Option<&Tok>| matches!(tok, None | Some(Tok::LBrace | Tok::RBrace | Tok::Semi));
    let mut names = Vec::new();
    for (at, tok) in tokens.iter().enumerate() {
        let Tok::Ident(name) = tok else { continue };
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let first = at.checked_sub(2).map(|first| &tokens[first]);
        let declares = match before {
            Some(
                Tok::Let
                | Tok::View
                | Tok::Scratch
                | Tok::Step
                | Tok::For
                | Tok::Parallel
                | Tok::Algorithm
                | Tok::Executor,
            ) => true,
            // A misspelt word in place of one of these keywords.
            Some(Tok::Ident(word)) => edge(first) || word == "mut",
            // A parameter without the colon before its type.
            Some(Tok::LParen | Tok::Comma) => matches!(tokens.get(at + 1), Some(Tok::Ident(_))),
            _ => false,
        };
        if declares || matches!(tokens.get(at + 1), Some(Tok::Colon | Tok::Assign)) {
            names.push(name.clone());
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}
