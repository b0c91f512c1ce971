//! The comment above the text: the collective, the proof, and the rules of a call.

use std::fmt::Write as _;

use super::Export;
use super::names::harmless;
use roundelay_core::collective::{Alias, Collective};
use roundelay_core::ids::RankId;
use roundelay_core::messages::FormPart;
use roundelay_core::schedule::Schedule;
use roundelay_core::units::count;
use roundelay_core::units::wrap;
use roundelay_core::verify::Proof;

const WIDTH: usize = 97;

/// Returns the comment at the head of the file.
pub(super) fn comment(export: &Export<'_>, name: &str) -> String {
    let schedule = export.form.schedule;
    let proof = export.form.proof;
    let only = export.form.only();
    let of = only.map_or_else(String::new, |rank| format!("rank {rank} of "));
    let mut paragraphs = vec![format!("{name}: {of}{}.", head(schedule))];
    let docs: Vec<_> =
        export.docs.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
    if !docs.is_empty() {
        paragraphs.push(docs.join(" "));
    }
    paragraphs.push(proved(proof));
    paragraphs.extend(costs(export.form, export.author));
    paragraphs.push(call(schedule, proof, name));
    let mut text = String::from("/*");
    for (at, paragraph) in paragraphs.iter().enumerate() {
        for (nth, line) in wrap(&harmless(paragraph), WIDTH).iter().enumerate() {
            text += if at == 0 && nth == 0 { " " } else { " * " };
            text += line;
            text.push('\n');
        }
        if at == 0 {
            // On a line of its own, for copying.
            let _ = writeln!(text, " * Written by `{}`.", harmless(export.command));
        }
        if at + 1 < paragraphs.len() {
            text += " *\n";
        }
    }
    text += " *\n";
    text += &results(schedule, proof, only);
    text + " */\n"
}

fn head(schedule: &Schedule) -> String {
    let Schedule { collective, nranks, root, algorithm, .. } = schedule;
    let blocks = if schedule.elements.is_some() { " with a count for each block" } else { "" };
    let of = count(*nranks, "rank");
    let root = if collective.is_rooted() { format!(" with root {root}") } else { String::new() };
    format!("{algorithm}, {collective} of {of}{root}{blocks}")
}

/// Returns the proved facts, which hold in every order of events.
fn proved(proof: &Proof) -> String {
    let mut text = "Proved for every count, and for every order in which sends and receives may end, even if each send \
                    waits for its receive: no deadlock, no data race, every contribution exactly once and in its place, \
                    nothing left under way."
        .to_owned();
    if let Some(reduction) = &proof.reduction {
        let order = reduction.in_every_mode();
        let commutes = if order.in_rank_order { "need not" } else { "must" };
        let _ = write!(text, " There is {order}, {} deep; the op {commutes} commute.", order.depth);
    }
    text
}

fn costs(form: &FormPart<'_>, proof: &Proof) -> Option<String> {
    if form.schedule.nranks < 2 {
        return None;
    }
    let peers = |peers: usize| count(peers, "peer");
    let units = form.busiest_port;
    Some(format!(
        "The longest chain of messages has {}; in one step a rank sends to at most {} and receives from {}. The busiest \
         rank sends or receives {:.4} times `count` elements.",
        proof.steps,
        peers(proof.ports.send.peers.len()),
        peers(proof.ports.receive.peers.len()),
        units,
    ))
}

/// Returns the rules for callers.
fn call(schedule: &Schedule, proof: &Proof, name: &str) -> String {
    let Schedule { collective, nranks, root, .. } = *schedule;
    let input = sizes(schedule, true);
    let output = sizes(schedule, false);
    let mut text = format!(
        "All ranks of `comm` call {name} with the same count. `in` is {input}, `out` {output}."
    );
    if !collective.reduces() {
        text += " `op` is not looked at.";
    }
    let aliased = |rank: &RankId| collective.alias(*rank, root) != Alias::Apart;
    let shares = (0..nranks).map(RankId).rfind(aliased);
    text += " ";
    match shares.filter(|_| proof.in_place && collective.has_in_place()) {
        Some(rank) => {
            let at_root = if collective.is_rooted() { "At the root, " } else { "" };
            let (input, output) = ("`in`", "`out`");
            let unit = if collective.is_rooted() { "root" } else { "rank" };
            let place = match collective.alias(rank, root) {
                Alias::InputInOutput(0) => format!("{input} may be {output}"),
                Alias::InputInOutput(_) if schedule.elements.is_some() => {
                    format!("{input} may be the {unit}'s block of {output}")
                }
                Alias::OutputInInput(_) if schedule.elements.is_some() => {
                    format!("{output} may be the {unit}'s block of {input}")
                }
                Alias::InputInOutput(_) => {
                    format!("{input} may be element {unit} * count of {output}")
                }
                Alias::OutputInInput(_) => {
                    format!("{output} may be element {unit} * count of {input}")
                }
                Alias::Apart => unreachable!("it shares memory"),
            };
            let keyword = match (collective, collective.alias(rank, root)) {
                (Collective::ReduceScatter, _) => {
                    " (MPI_IN_PLACE would put it elsewhere, and is refused)"
                }
                _ => ", or MPI_IN_PLACE",
            };
            let place = format!("{at_root}{place}{keyword}");
            text.push_str(&place);
            if proof.one_mode.is_some() {
                text += ", at all ranks or at none";
            }
            text += ".";
        }
        None => text += "`in` and `out` share no memory.",
    }
    text += " Messages go through a duplicate of `comm`, which the first call makes: that call is not for several \
             threads at once, and is collective.";
    text
}

/// Returns the results of the function, one in each line.
fn results(schedule: &Schedule, proof: &Proof, only: Option<RankId>) -> String {
    let in_order = proof.reduction.as_ref().is_none_or(|r| r.in_every_mode().in_rank_order);
    let op = if in_order { "there is none" } else { "there is none, or it does not commute" };
    let ranks = format!("there are not {}", count(schedule.nranks, "rank"));
    let mut all = vec![
        ("MPI_ERR_COMM", &*ranks),
        ("MPI_ERR_COUNT", "it is below zero, or a message would have more than INT_MAX elements"),
        ("MPI_ERR_TYPE", "there is none, or its extent is below zero"),
    ];
    if schedule.collective.reduces() {
        all.push(("MPI_ERR_OP", op));
    }
    let other = only.map(|rank| format!("another rank than rank {rank} calls it"));
    all.extend(other.as_deref().map(|other| ("MPI_ERR_RANK", other)));
    all.push(("MPI_ERR_BUFFER", "`in` and `out` share memory otherwise than said"));
    all.push(("MPI_ERR_NO_MEM", "there is no memory for the scratch"));
    let mut text =
        " * It returns MPI_SUCCESS, the error of an MPI call that fails, or\n".to_owned();
    for (class, when) in all {
        let _ = writeln!(text, " *     {class:15} {when}");
    }
    text
}

fn sizes(schedule: &Schedule, input: bool) -> String {
    let Schedule { collective, nranks, root, .. } = *schedule;
    let of = |rank: u32| {
        let rank = RankId(rank);
        if input {
            collective.input_units(rank, nranks, root)
        } else {
            collective.output_units(rank, nranks, root)
        }
    };
    let elements = |units: u32| match units {
        1 => "`count` elements".to_owned(),
        _ => format!("{units} * `count` elements"),
    };
    let at_root = of(root.0);
    if let Some(lengths) = &schedule.elements {
        let all = if input { &lengths.input } else { &lengths.output };
        if all.iter().all(|len| *len == all[0]) {
            return format!("{} * `count` elements", all[0]);
        }
        let all: Vec<String> = all.iter().map(u64::to_string).collect();
        return format!("{} * `count` elements, by rank", all.join(", "));
    }
    if (0..nranks).all(|rank| of(rank) == at_root) {
        elements(at_root)
    } else {
        format!("{} at the root, elsewhere not looked at", elements(at_root))
    }
}
