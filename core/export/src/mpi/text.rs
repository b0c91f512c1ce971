//! Writes the statements of a rank, or of ranks with the same statements and different numbers, as C.

use std::fmt::Write as _;

use super::statements::{MessageWay, MpiAction, MpiKey, MpiShape, numbers};
use crate::loops::columns::ColumnPlace;
use crate::loops::cpp::{NumberText, nested};
use crate::loops::ir::Number;
use crate::loops::machine::LeastSides;
use crate::loops::repeats::{Column, RepeatNode, variable};
use crate::loops::tables::Tables;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Buffer;
use roundelay_core::syntax::Source;

/// The width of a line, in characters.
pub(super) const WIDTH: usize = 100;

/// Writes the functions that exchange messages, and the tables that they read.
pub(super) struct MpiWriter<'a> {
    /// The only rank that is written, where it is one.
    only: Option<RankId>,
    /// Names of the scratch buffers.
    pub(super) scratch: &'a [String],
    pub(super) source: Option<&'a Source>,
    tables: Tables,
    /// The meaning of each table's numbers.
    roles: Vec<Role>,
    /// Names of peers in the current function, by expression.
    peers: Vec<(String, &'static str)>,
}

/// The meaning of a number, which names its table.
#[derive(Clone, Copy)]
enum Role {
    Request,
    Peer,
    Tag,
    Slot,
    Piece,
    Pieces,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Peer => "peer",
            Self::Tag => "tag",
            Self::Slot => "slot",
            Self::Piece => "piece",
            Self::Pieces => "pieces",
        }
    }
}

impl<'a> MpiWriter<'a> {
    pub(super) fn new(
        nranks: u32,
        only: Option<RankId>,
        scratch: &'a [String],
        source: Option<&'a Source>,
    ) -> Self {
        Self {
            only,
            scratch,
            source,
            tables: Tables { all: Vec::new(), nranks },
            roles: Vec::new(),
            peers: Vec::new(),
        }
    }

    /// Returns the tables and functions; the last function is `exchange`.
    pub(super) fn functions(mut self, shapes: &[MpiShape]) -> String {
        let mut functions = String::new();
        let mut cases = String::new();
        for (nth, shape) in shapes.iter().enumerate() {
            let mut place = ColumnPlace::new(&shape.ranks, self.tables.nranks);
            let mut body = String::new();
            self.peers = self.peers(&shape.nodes, &place);
            let mut peers = String::new();
            for (expression, name) in &self.peers {
                let _ = writeln!(peers, "    const int {name} = {expression};");
            }
            self.nodes(&shape.nodes, &mut place, &mut body);
            let alone = shapes.len() == 1;
            if body.is_empty() && !alone {
                // These ranks have no statements.
                continue;
            }
            let ranks: Vec<_> = shape.ranks.iter().map(ToString::to_string).collect();
            let (comment, name) = if alone {
                let all = || "What every rank does.".to_owned();
                let comment = self.only.map_or_else(all, |rank| format!("What rank {rank} does."));
                (comment, "exchange".to_owned())
            } else {
                let plural = if ranks.len() == 1 { "Rank" } else { "Ranks" };
                (format!("{plural} {}.", ranks.join(", ")), format!("part_{nth}"))
            };
            let name = if alone { name } else { format!("exchange_{nth}") };
            let rank = if mentions(&body, "rank") || mentions(&peers, "rank") {
                "    const int rank = r->rank;\n"
            } else {
                ""
            };
            let unused = if body.is_empty() { "    (void)r;\n" } else { "" };
            for line in wrapped(&format!("/* {comment} */"), WIDTH - 3) {
                let _ = writeln!(functions, "{line}");
            }
            let _ = writeln!(
                functions,
                "static int {name}(run *r) {{\n{rank}{peers}{unused}{body}    return MPI_SUCCESS;\n}}\n"
            );
            for rank in ranks {
                let _ = writeln!(cases, "    case {rank}:");
            }
            let _ = writeln!(cases, "        return {name}(r);");
        }
        if shapes.len() > 1 {
            let _ = writeln!(
                functions,
                "static int exchange(run *r) {{\n    switch (r->rank) {{\n{cases}    default:\n        return MPI_SUCCESS;\n    }}\n}}\n"
            );
        }
        let mut tables = self.definitions();
        if !tables.is_empty() {
            tables
                .insert_str(0, "/* Numbers by iteration, where there are loops, and by rank. */\n");
            tables.push('\n');
        }
        tables + &functions
    }

    /// Returns names for the peer of all sends and the peer of all receives, if it is one expression and not a plain
    /// number.
    fn peers(
        &self,
        nodes: &[RepeatNode<MpiKey, i64>],
        place: &ColumnPlace<'_>,
    ) -> Vec<(String, &'static str)> {
        let mut found = [Vec::new(), Vec::new()];
        let mut open: Vec<(&RepeatNode<MpiKey, i64>, Vec<usize>)> =
            nodes.iter().map(|node| (node, Vec::new())).collect();
        while let Some((node, loops)) = open.pop() {
            match node {
                RepeatNode::Loop { times, body } => {
                    let loops = [&loops[..], &[*times]].concat();
                    open.extend(body.iter().map(|node| (node, loops.clone())));
                }
                RepeatNode::Once { key, columns } => {
                    let way = match key.what {
                        MpiAction::Send(_) => 0,
                        MpiAction::Receive(_) => 1,
                        _ => continue,
                    };
                    // A peer that changes with the iteration has no name.
                    let mut place = ColumnPlace::new(place.ranks, self.tables.nranks);
                    loops.iter().enumerate().for_each(|(var, times)| place.enter(*times, var));
                    let by_round = columns[1].iter().any(|row| *row != columns[1][0]);
                    let found_there = self.expression(&columns[1], &place);
                    found[way].push(found_there.filter(|_| !by_round));
                }
            }
        }
        let same = |all: &Vec<Option<String>>, name| {
            let first = all.first()?.clone()?;
            let one = all.len() > 1 && all.iter().all(|other| other.as_ref() == Some(&first));
            (one && first.contains(' ')).then_some((first, name))
        };
        [same(&found[0], "to"), same(&found[1], "from")].into_iter().flatten().collect()
    }

    /// Returns the expression of all numbers in a column, if there is a simple one.
    fn expression(&self, column: &Column<i64>, place: &ColumnPlace<'_>) -> Option<String> {
        place.recognised(column, true).map(|number| self.code(&number))
    }

    fn code(&self, number: &Number) -> String {
        let text = NumberText {
            me: "rank",
            ty: None,
            nranks: (self.tables.nranks, "RANKS"),
            var: &variable,
            entry: &|_, _| unreachable!("arithmetic has no tables"),
            least: &LeastSides::new(),
        };
        text.text(number).code
    }

    fn nodes(
        &mut self,
        nodes: &[RepeatNode<MpiKey, i64>],
        place: &mut ColumnPlace<'_>,
        text: &mut String,
    ) {
        let indent = "    ".repeat(place.times.len() + 1);
        let mut line = None;
        for node in nodes {
            match node {
                RepeatNode::Loop { times, body } => {
                    let var = variable(place.times.len());
                    let _ =
                        writeln!(text, "{indent}for (int {var} = 0; {var} < {times}; {var}++) {{");
                    place.enter(*times, place.times.len());
                    self.nodes(body, place, text);
                    place.leave();
                    let _ = writeln!(text, "{indent}}}");
                    line = None;
                }
                RepeatNode::Once { key, columns } => {
                    if key.line > 0 && line != Some(key.line) {
                        line = Some(key.line);
                        if let Some(said) = self.said(key.line) {
                            let _ = writeln!(text, "{indent}// {said}");
                        }
                    }
                    self.statement(key, columns, place, &indent, text);
                }
            }
        }
    }

    /// Returns a line of the source, with its number.
    fn said(&self, line: u32) -> Option<String> {
        let text = self.source.filter(|_| line > 0)?.line(line)?;
        Some(format!("{line}: {}", harmless(text.trim()).trim_end_matches('\\')))
    }

    fn statement(
        &mut self,
        key: &MpiKey,
        columns: &[Column<i64>],
        place: &ColumnPlace<'_>,
        indent: &str,
        text: &mut String,
    ) {
        let mut rest = columns;
        let mut take = |n: usize| {
            let (these, others) = rest.split_at(n);
            rest = others;
            these
        };
        let requests = |way: &MessageWay| match way {
            MessageWay::Out => "r->sends",
            MessageWay::In => "r->receives",
        };
        let (function, mut args) = match &key.what {
            MpiAction::Send(_) => ("start_send", vec!["r".to_owned()]),
            MpiAction::Receive(_) => ("start_receive", vec!["r".to_owned()]),
            MpiAction::Finish(way) => {
                let request = self.value(Role::Request, &take(1)[0], place);
                ("finish", vec![format!("&{}[{request}]", requests(way))])
            }
            MpiAction::FinishAll(way) => {
                let numbers = take(2);
                let many = self.value(Role::Request, &numbers[0], place);
                let first = self.value(Role::Request, &numbers[1], place);
                ("finish_all", vec![many, format!("&{}[{first}]", requests(way))])
            }
            MpiAction::Copy(_) => ("copy", vec!["r".to_owned()]),
            MpiAction::Reduce(_) => ("reduce", vec!["r".to_owned()]),
            MpiAction::Fold(..) => ("fold", vec!["r".to_owned()]),
        };
        match &key.what {
            MpiAction::Send(buffer) | MpiAction::Receive(buffer) => {
                for (role, column) in
                    [Role::Request, Role::Peer, Role::Tag].into_iter().zip(take(3))
                {
                    let value = self.value(role, column, place);
                    let way = if matches!(key.what, MpiAction::Send(_)) { "to" } else { "from" };
                    let named =
                        self.peers.iter().any(|(peer, name)| *peer == value && *name == way);
                    let named = named && matches!(role, Role::Peer);
                    args.push(if named { way.to_owned() } else { value });
                }
                args.push(self.region(*buffer, take(numbers(*buffer)), place));
            }
            MpiAction::Finish(_) | MpiAction::FinishAll(_) => {}
            MpiAction::Copy(buffers) | MpiAction::Reduce(buffers) => {
                for buffer in buffers {
                    args.push(self.region(*buffer, take(numbers(*buffer)), place));
                }
            }
            MpiAction::Fold(to, from) => {
                args.push(self.region(*to, take(numbers(*to)), place));
                args.push(from.len().to_string());
                let from: Vec<_> = from
                    .iter()
                    .map(|buffer| self.region(*buffer, take(numbers(*buffer)), place))
                    .collect();
                args.push(format!("(const span[]){{{}}}", from.join(", ")));
            }
        }
        let head = format!("{indent}TRY({function}(");
        let whole = format!("{head}{}));", args.join(", "));
        if whole.len() <= WIDTH {
            let _ = writeln!(text, "{whole}");
            return;
        }
        // Arguments that do not fit the line go on lines of their own.
        let aligned = " ".repeat(head.len());
        let mut line = head;
        for (at, arg) in args.iter().enumerate() {
            let last = at + 1 == args.len();
            let arg = format!("{arg}{}", if last { "));" } else { "," });
            if at == 0 {
                line.push_str(&arg);
            } else if line.len() + 1 + arg.len() <= WIDTH {
                line.push(' ');
                line.push_str(&arg);
            } else {
                let _ = writeln!(text, "{line}");
                line = format!("{aligned}{arg}");
            }
        }
        let _ = writeln!(text, "{line}");
    }

    fn region(
        &mut self,
        buffer: Buffer,
        columns: &[Column<i64>],
        place: &ColumnPlace<'_>,
    ) -> String {
        match (buffer, columns) {
            (Buffer::Scratch(id), [slot, base, lo, len]) => {
                let name = format!("r->{}", self.scratch[id.index()]);
                let slot = self.value(Role::Slot, slot, place);
                let [first, at] = [base, lo].map(|piece| self.value(Role::Piece, piece, place));
                let len = self.value(Role::Pieces, len, place);
                if base == lo {
                    format!("slot(r, {name}, {slot}, {at}, {len})")
                } else {
                    format!("within(r, {name}, {slot}, {first}, {at}, {len})")
                }
            }
            (_, [lo, len]) => {
                let name = if buffer == Buffer::Input { "r->in" } else { "r->out" };
                let at = self.value(Role::Piece, lo, place);
                format!("part(r, {name}, {at}, {})", self.value(Role::Pieces, len, place))
            }
            _ => unreachable!("a region has as many numbers as its buffer says"),
        }
    }

    /// Returns an expression for a number, or an entry of a table.
    fn value(&mut self, role: Role, column: &Column<i64>, place: &ColumnPlace<'_>) -> String {
        if let Some(text) = self.expression(column, place) {
            return text;
        }
        let (table, indices) = place.table(&mut self.tables, std::slice::from_ref(column));
        if table == self.roles.len() {
            self.roles.push(role);
        }
        let indices: Vec<_> =
            indices.iter().map(|index| format!("[{}]", self.code(index))).collect();
        let indices = indices.concat();
        let rank = if self.tables.all[table].by_rank { "[rank]" } else { "" };
        format!("{}_{table}{indices}{rank}", self.roles[table].name())
    }

    /// Returns the definitions of all tables.
    fn definitions(&self) -> String {
        let mut text = String::new();
        for (number, (table, role)) in self.tables.all.iter().zip(&self.roles).enumerate() {
            let dims = table.sizes.iter().map(|size| format!("[{size}]"));
            let dims: Vec<_> = dims.chain(table.by_rank.then(|| "[RANKS]".to_owned())).collect();
            let dims = dims.concat();
            let entries: Vec<_> = table.entries.iter().map(|entry| entry[0].to_string()).collect();
            let content = nested(&entries, &table.dims(self.tables.nranks));
            let table = format!("static const int {}_{number}{dims} = {content};", role.name());
            for line in table.lines().flat_map(|line| wrapped(line, WIDTH)) {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }
}

/// Whether a text contains a word.
pub(super) fn mentions(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '>';
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .any(|line| line.split(|c| !part(c)).any(|found| found == word))
}

/// Whether a text calls a function.
pub(super) fn calls(text: &str, function: &str) -> bool {
    let call = format!("{function}(");
    text.match_indices(&call)
        .any(|(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

/// Returns a text that neither ends nor begins a comment.
pub(super) fn harmless(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
}

/// Splits a text into lines of at most `width` characters, if its words are not longer; further lines are indented by
/// four more characters.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let indent = text.len() - text.trim_start().len();
    let more = if text.trim_start().starts_with("/*") { " * " } else { "    " };
    let mut lines = Vec::new();
    let mut line = " ".repeat(indent);
    for word in text.split_whitespace() {
        if line.trim().is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() > width {
            lines.push(line);
            line = format!("{}{more}{word}", " ".repeat(indent));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_no_part_of_another() {
        assert!(mentions("a = rank + 1;", "rank") && !mentions("a = r->rank;", "rank"));
        assert!(!mentions("// rank", "rank"));
        assert!(calls("x = slot(r)", "slot") && !calls("in_slot(r)", "slot"));
    }

    #[test]
    fn comments_do_not_end_in_their_text() {
        assert_eq!(harmless("a */ b /* c ??/"), "a * / b / * c ? ?/");
    }

    /// A peer that changes with the iteration has no name outside its loop.
    #[test]
    fn only_what_is_one_peer_throughout_has_a_name() {
        let send = |peer: i64| RepeatNode::Once {
            key: MpiKey { line: 0, what: MpiAction::Send(Buffer::Input) },
            columns: [0, peer, 0, 0, 1].map(|v| vec![vec![v; 4]; 1]).to_vec(),
        };
        let peers = |values: [i64; 4], rounds: [i64; 2]| {
            let mut node = send(0);
            if let RepeatNode::Once { columns, .. } = &mut node {
                let row = |round: i64| values.map(|value| (value + round) % 4).to_vec();
                columns[1] = rounds.map(row).to_vec();
            }
            let body = vec![node.clone()];
            let nodes = vec![
                RepeatNode::Loop { times: 2, body: body.clone() },
                RepeatNode::Loop { times: 2, body },
            ];
            let writer = MpiWriter::new(4, None, &[], None);
            writer.peers(&nodes, &ColumnPlace::new(&[0, 1, 2, 3], 4))
        };
        assert_eq!(peers([1, 2, 3, 0], [0, 0]), [("(rank + 1) % RANKS".to_owned(), "to")]);
        assert_eq!(peers([1, 2, 3, 0], [0, 1]), []);
        assert_eq!(peers([1, 1, 1, 1], [0, 0]), []);
    }
}
