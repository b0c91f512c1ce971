//! The functions that exchange messages in C: one for the ranks that have the same statements with different numbers.

use std::fmt::Write as _;

use super::print::{Mpi, PEERS, WIDTH};
use crate::loops::Loops;
use crate::loops::cpp::array;
use crate::loops::cpp_names::mentions;
use crate::loops::ir::{LoopNode, MessageStep, Number, Op};
use crate::loops::machine::Machine;
use crate::loops::printer::Printer;
use roundelay_core::messages::FormPart;
use roundelay_core::units::wrap;

impl<'a> Printer<'a, Mpi<'_>> {
    /// Returns the tables and functions; the last function is `exchange`.
    pub(super) fn functions(mut self, form: &FormPart<'_>) -> String {
        let (mut functions, mut cases) = (String::new(), String::new());
        let mut shapes: Vec<(&[LoopNode], Vec<String>)> = Vec::new();
        for (rank, _) in &form.of {
            let nodes = self.nodes_of(rank.0);
            match shapes.iter_mut().find(|(known, _)| std::ptr::eq(*known, nodes)) {
                Some((_, own)) => own.push(rank.to_string()),
                None => shapes.push((nodes, vec![rank.to_string()])),
            }
        }
        if let [(nodes, _)] = shapes[..] {
            let all = || "What every rank does.".to_owned();
            let comment = form.only().map_or_else(all, |rank| format!("What rank {rank} does."));
            self.exchange(&comment, "exchange", nodes, &mut functions);
        } else {
            // The other ranks have no statements.
            shapes.retain(|(nodes, _)| !nodes.is_empty());
            for (nth, (nodes, own)) in shapes.into_iter().enumerate() {
                let plural = if own.len() == 1 { "Rank" } else { "Ranks" };
                let (comment, name) = (own.join(", "), format!("exchange_{nth}"));
                self.exchange(&format!("{plural} {comment}."), &name, nodes, &mut functions);
                let own = own.join(":\n    case ");
                let _ = writeln!(cases, "    case {own}:\n        return {name}(r);");
            }
            let _ = writeln!(
                functions,
                "static int exchange(run *r) {{\n    switch (r->rank) {{\n{cases}    default:\n        return MPI_SUCCESS;\n    }}\n}}\n"
            );
        }
        self.definitions() + &functions
    }

    /// Returns the statements of a rank.
    fn nodes_of(&self, rank: u32) -> &'a [LoopNode] {
        let Loops { tables, nranks, functions, body, .. } = self.loops;
        let mut machine = Machine::new(&tables.all, *nranks, rank, 0);
        let own = match &body[..] {
            [LoopNode::If(arms, otherwise)] => {
                let arm = arms.iter().find(|(condition, _)| machine.number(condition) == Ok(1));
                arm.map_or(otherwise, |(_, body)| body)
            }
            _ => body,
        };
        match &own[..] {
            [LoopNode::Do { function, .. }] => &functions[*function].body,
            own => own,
        }
    }

    fn exchange(&mut self, comment: &str, name: &str, nodes: &[LoopNode], functions: &mut String) {
        let mut body = String::new();
        self.dialect.peers = [false, true].map(|send| self.peer(nodes, send));
        for (peer, name) in self.dialect.peers.iter().zip(PEERS).rev() {
            if let Some(peer) = peer {
                let _ = writeln!(body, "    const int {name} = {peer};");
            }
        }
        body += &Printer::function(self, &[], nodes).1;
        if mentions(&body, "rank") {
            body.insert_str(0, "    const int rank = r->rank;\n");
        }
        if body.is_empty() {
            body += "    (void)r;\n";
        }
        let comment = broken(&format!("/* {comment} */"), " * ");
        let _ = writeln!(
            functions,
            "{comment}static int {name}(run *r) {{\n{body}    return MPI_SUCCESS;\n}}\n"
        );
    }

    /// Returns the peer of all sends, or of all receives, if it has a name: it is one for all of several messages, and
    /// neither a plain number nor one that changes with the iteration.
    fn peer(&self, nodes: &[LoopNode], send: bool) -> Option<String> {
        let mut peers = Vec::new();
        let mut open: Vec<_> = nodes.iter().collect();
        while let Some(node) = open.pop() {
            match node {
                LoopNode::Loop { body, .. } => open.extend(body),
                LoopNode::Message { send: of, step: MessageStep::Begin { peer, .. }, .. } => {
                    peers.extend((*of == send).then_some(peer));
                }
                _ => {}
            }
        }
        let code = |peer: &&Number| (!varies(peer)).then(|| self.number(peer).code);
        let codes = peers.iter().map(code).collect::<Option<Vec<_>>>()?;
        let first = codes.first().filter(|first| first.contains(' '))?;
        (codes.len() > 1 && codes.iter().all(|code| code == first)).then(|| first.clone())
    }

    /// Returns the definitions of all tables that are read.
    fn definitions(&self) -> String {
        let Loops { tables, nranks, .. } = self.loops;
        let mut text = String::new();
        for (number, role) in &self.dialect.roles {
            let (name, entry) = (format!("{role}_{number}"), |entry: &[i64]| entry[0].to_string());
            let array = array(&name, &tables.all[*number], (*nranks, "RANKS"), entry);
            let array = format!("static const int {array};");
            text.extend(array.lines().map(|line| broken(line, "    ")));
        }
        if text.is_empty() {
            return text;
        }
        format!("/* Numbers by iteration, where there are loops, and by rank. */\n{text}\n")
    }
}

/// Whether a number changes with the iteration of a loop, or is in a table.
fn varies(number: &Number) -> bool {
    matches!(number.op, Op::Var(_) | Op::Entry(_)) || number.args.iter().any(varies)
}

/// Returns a line as several of at most [`WIDTH`] characters; further lines begin with `more`.
fn broken(line: &str, more: &str) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    let words = wrap(line, WIDTH - indent.len() - more.len());
    format!("{indent}{}\n", words.join(&format!("\n{indent}{more}")))
}
