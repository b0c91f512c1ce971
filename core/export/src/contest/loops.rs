//! A class of sizes as C++ with the loops of its program. Before the text is printed, its statements are run at every
//! rank and compared with the proved schedule, stream by stream. If the two differ, or if this form cannot express the
//! program, the text is written from the schedule.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::lift::Lift;
use super::print::{self, Printer};
use super::text::{ContestWriter, MethodCall, Statement};
use super::tree::{LoopNode, Machine, Number};
use roundelay_core::ids::RankId;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::schedule::Schedule;

/// Returns the functions of a class that runs `algorithm`. `schedule` is its schedule, and `closed` the same with the
/// signals that its links need. `None` if the functions must be written from the schedule.
pub(super) fn functions(
    algorithm: &Configured,
    schedule: &Schedule,
    closed: &Schedule,
    writer: &ContestWriter<'_>,
) -> Option<String> {
    let nranks = schedule.nranks;
    let ranks = (0..nranks).map(RankId);
    let wanted: Vec<Vec<Vec<Statement>>> = ranks
        .map(|rank| {
            let own = closed.streams.iter().filter(|stream| stream.rank == rank);
            own.map(|stream| writer.statements(stream).ok()).collect()
        })
        .collect::<Option<_>>()?;
    let traces = algorithm.traces(nranks).ok()?;
    let collective = algorithm.collective();
    let units = [collective.max_input_units(nranks), collective.max_output_units(nranks)];
    let program = algorithm.program();
    let mut lift = Lift::new(program, &traces, nranks, writer.pieces, units);
    let mut nodes = lift.body().ok()?;
    let (begun, ended) = ends(schedule, closed, &wanted);
    let mut all = Vec::new();
    for method in ["TxAck", "RxAck"] {
        all.extend(signals(&mut lift, method, &begun)?);
    }
    all.append(&mut nodes);
    for method in ["TxDataSignal", "RxDataSignal"] {
        all.extend(signals(&mut lift, method, &ended)?);
    }
    print::prune(&mut all);
    let mut least: HashMap<*const Number, i64> = HashMap::new();
    for (me, wanted) in (0..nranks).zip(&wanted) {
        let mut machine = Machine::new(&lift.tables, nranks, me, lift.vars.len());
        machine.run(&all).ok()?;
        let same = |(own, wanted): (&Vec<Statement>, &Vec<Statement>)| {
            let parts = |(key, values): &Statement| (key.what.clone(), values.clone());
            own.iter().map(parts).eq(wanted.iter().map(parts))
        };
        // A stream without statements at this rank may be missing on either side.
        let many = machine.streams.len().max(wanted.len());
        let none = Vec::new();
        let of = |streams: &[Vec<Statement>], at: usize| streams.get(at).unwrap_or(&none).clone();
        if !(0..many).all(|at| same((&of(&machine.streams, at), &of(wanted, at)))) {
            return None;
        }
        for (place, value) in machine.least.into_inner() {
            let known = least.entry(place).or_insert(value);
            *known = value.min(*known);
        }
    }
    let said = |line| writer.said(line);
    let mut printer = Printer {
        vars: &lift.vars,
        least: &least,
        tables: &lift.tables,
        nranks,
        said: &said,
        scopes: vec![Vec::new()],
        names: HashMap::new(),
        line: None,
        text: String::new(),
    };
    printer.nodes(&all);
    let body = printer.text;
    let mut text = String::new();
    let _ = writeln!(text, "constexpr i64 nranks = {nranks};");
    let asks = |name: &str| {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        body.split(|c| !part(c)).any(|word| word == name)
    };
    for (number, table) in lift.tables.iter().enumerate() {
        if asks(&print::name_of(table, number)) {
            let _ = writeln!(text, "{}", print::table(table, number, nranks));
        }
    }
    let me = if asks("me") { "    const i64 me = run.rank;\n" } else { "" };
    let lane = if asks("lane") { "    Lane lane(run, 0);\n" } else { "" };
    let _ = write!(
        text,
        "\nHcclResult Enqueue(Run& run) {{\n{me}{lane}{body}    return HCCL_SUCCESS;\n}}\n"
    );
    Some(text)
}

/// The signals that close a run, for each rank: those before its program, or those after it.
type Signals = Vec<Vec<(&'static str, u32)>>;

fn ends(schedule: &Schedule, closed: &Schedule, all: &[Vec<Vec<Statement>>]) -> (Signals, Signals) {
    let (mut begun, mut ended) = (Signals::new(), Signals::new());
    for (rank, streams) in (0..).map(RankId).zip(all) {
        let main = |schedule: &Schedule| {
            let stream = schedule.streams.iter().find(|stream| stream.rank == rank).copied();
            stream.map_or_else(Vec::new, |stream| {
                schedule.ops[stream.first.index()..][..stream.len as usize].to_vec()
            })
        };
        let (own, more) = (main(schedule), main(closed));
        let before = (0..=more.len() - own.len()).find(|at| more[*at..].starts_with(&own));
        let (before, after) = match before {
            Some(before) => (before, more.len() - own.len() - before),
            None => (0, 0),
        };
        let signals = |statements: &[Statement]| {
            let signal = |(key, values): &Statement| match key.what {
                MethodCall::Signal(method) => Some((method, values[0][0] as u32)),
                _ => None,
            };
            statements.iter().filter_map(signal).collect::<Vec<_>>()
        };
        let main = &streams[0];
        begun.push(signals(&main[..before]));
        ended.push(signals(&main[main.len() - after..]));
    }
    (begun, ended)
}

/// Returns the statements of the signals of `method`: with computed peers if all ranks have equally many signals, or
/// else with lists of peers.
fn signals(lift: &mut Lift<'_>, method: &'static str, all: &Signals) -> Option<Vec<LoopNode>> {
    let peers = |own: &Vec<(&'static str, u32)>| {
        own.iter().filter(|signal| signal.0 == method).map(|signal| signal.1).collect::<Vec<_>>()
    };
    let peers: Vec<Vec<u32>> = all.iter().map(peers).collect();
    let many = peers.iter().map(Vec::len).max().unwrap_or(0);
    if peers.iter().any(|own| own.len() != many) {
        return Some(vec![LoopNode::Peers { method, peers }]);
    }
    let signal = |at: usize| {
        let seen: Vec<_> = peers.iter().map(|own| vec![(Vec::new(), i64::from(own[at]))]).collect();
        Some(LoopNode::Signal { line: 0, method, peer: lift.entry(&seen).ok()? })
    };
    (0..many).map(signal).collect()
}
