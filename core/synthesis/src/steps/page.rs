//! Schedules as pages of the language: the sends as lists, and one loop through them.

use std::fmt::Write as _;

use super::{Send, SendList};
use crate::page::{fill, lines, starts};
use roundelay_core::collective::Collective;

/// The body of a page; capital words stand for what depends on the schedule.
const BODY: &str = "
    require nranks == RANKS, \"the sends are those of RANKS ranks\";
ROOTED    view part = BUFFER.split(PIECES);

BEGIN
    for round in 0..len(first) - 1 {
        POST
            if rank == from[s] {
                peer(to[s]).TxAck(); // the piece may be read
            }
        }
        for s in first[round]..first[round + 1] {
            if rank == to[s] {
                let sender = peer(from[s]);
                sender.RxAck();
                ACT
                sender.TxDataSignal();
            }
        }
    }
    for s in 0..len(from) {
        if rank == from[s] {
            peer(to[s]).RxDataSignal(); // it was read
        }
    }
END}
";

/// Returns the page of a schedule.
pub(super) fn text(list: &SendList, name: &str) -> String {
    let SendList { collective, up, down } = list;
    let any = up.as_ref().or(down.as_ref());
    let (n, chunks) = any.map_or((1, 1), |spread| (spread.nranks, spread.chunks));
    let root = any.and_then(|spread| spread.root);
    let pieces = if root.is_some() { chunks } else { chunks * n };
    let rounds = list.in_order();
    let posts = posts(&rounds);

    let mut page = format!(
        "/// {collective} of {n} ranks in {} rounds and {} sends, in pieces of 1/{pieces}.\n///\n\
         /// Send s moves `piece[s]` from rank `from[s]` to rank `to[s]`. Round r has the sends from `first[r]` on",
        rounds.len(),
        rounds.iter().map(Vec::len).sum::<usize>(),
    );
    page.push_str(match &posts {
        None => ".\n",
        Some(_) => ", and\n/// senders tell in it that the pieces of `post` from `told[r]` on may be read.\n",
    });
    let _ = writeln!(page, "#[verify(nranks = {n})]\npub algorithm {name}(");
    if let Some(root) = root {
        let _ = writeln!(page, "    root: Rank = {root},");
    }
    let mut column = |name: &str, number: &dyn Fn(&Send) -> u32| {
        let row = |sends: &Vec<Send>| sends.iter().map(|s| number(s) as usize).collect();
        numbers(&mut page, name, &rounds.iter().map(row).collect::<Vec<_>>());
    };
    column("from", &|send| send.from.0);
    column("to", &|send| send.to.0);
    column("piece", &|s| if root.is_some() { s.chunk } else { s.root.0 * chunks + s.chunk });
    numbers(&mut page, "first", &[starts(rounds.iter().map(Vec::len))]);
    if let Some(posts) = &posts {
        numbers(&mut page, "post", posts);
        numbers(&mut page, "told", &[starts(posts.iter().map(Vec::len))]);
    }
    let _ = write!(page, ") -> {collective} {{");

    let (copy, reduce) = (
        "copy(sender.part[piece[s]], local.part[piece[s]]);",
        "reduce(sender.part[piece[s]], local.part[piece[s]]);",
    );
    let act = match (up, down) {
        (Some(up), Some(_)) => {
            let lines = [
                &format!("if round < {} {{", up.rounds.len()),
                &format!("    {reduce}"),
                "} else {",
                &format!("    {copy}"),
                "}",
            ];
            lines.join("\n                ")
        }
        (Some(_), None) => reduce.to_owned(),
        _ => copy.to_owned(),
    };
    let mut rooted = String::new();
    if let Some(root) = root {
        let _ =
            writeln!(rooted, "    require root == {root}, \"the sends are those of root {root}\";");
    }
    let at_root = |act: &str| format!("    if rank == root {{\n        {act}\n    }}\n");
    let (buffer, begin, end) = match collective {
        Collective::Broadcast => {
            ("output", at_root("copy(local.input, local.output);"), String::new())
        }
        Collective::AllReduce => {
            ("output", "    copy(local.input, local.output);\n".into(), String::new())
        }
        Collective::AllGather => {
            ("output", "    copy(local.input, local.output.block(rank));\n".into(), String::new())
        }
        _ => {
            rooted.push_str("    scratch sum: like input;\n");
            let end = match root {
                Some(_) => at_root("copy(local.sum, local.output);"),
                None => "    copy(local.sum.block(rank), local.output);\n".into(),
            };
            ("sum", "    copy(local.input, local.sum);\n".into(), end)
        }
    };
    let post = match &posts {
        None => "for s in first[round]..first[round + 1] {",
        Some(_) => "for i in told[round]..told[round + 1] {\n            let s = post[i];",
    };
    let words = [
        ("RANKS", n.to_string()),
        ("ROOTED", rooted),
        ("BUFFER", buffer.to_owned()),
        ("PIECES", pieces.to_string()),
        ("BEGIN\n", begin),
        ("POST", post.to_owned()),
        ("ACT", act),
        ("END", end),
    ];
    page + &fill(BODY, &words)
}

/// Returns the places of the sends in the order in which their senders tell of them, by rounds; `None` if these are the
/// rounds of the sends.
fn posts(rounds: &[Vec<Send>]) -> Option<Vec<Vec<usize>>> {
    let mut posts = vec![Vec::new(); rounds.len()];
    let mut apart = false;
    let sends = (0..).zip(rounds).flat_map(|(round, sends)| sends.iter().map(move |s| (s, round)));
    for (at, (send, round)) in sends.enumerate() {
        apart |= send.told != round;
        posts[send.told as usize].push(at);
    }
    apart.then_some(posts)
}

/// Writes rows of numbers as the default of a parameter.
fn numbers(page: &mut String, name: &str, rows: &[Vec<usize>]) {
    let _ = write!(page, "    {name}: [int] = ");
    if rows.iter().all(Vec::is_empty) {
        page.push_str("(),\n");
        return;
    }
    page.push_str("[\n");
    page.extend(rows.iter().filter(|row| !row.is_empty()).map(lines));
    page.push_str("    ],\n");
}
