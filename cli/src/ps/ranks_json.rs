//! Worlds as one JSON document. Times are seconds.

use roundelay_kernels::shared_memory::observe::{
    Observed, ObservedCall, ObservedProcess, ObservedRank, ObservedWorld, circles,
};
use roundelay_runner::hangs::{self, is_gone};
use serde_json::{Value, json};

use super::job;

pub(super) fn document(seen: &Observed) -> Value {
    let circles = circles(&seen.worlds);
    json!({
        "ok": true,
        "worlds": seen.worlds.iter().map(world).collect::<Vec<_>>(),
        "circles": circles
            .iter()
            .map(|circle| json!({ "certain": circle.is_certain(), "text": circle.text() }))
            .collect::<Vec<_>>(),
        "refused": seen.refused,
    })
}

fn world(world: &ObservedWorld) -> Value {
    let job = job(world);
    json!({
        "id": world.id,
        "job": job.map(|process| process.parent),
        "job_command": job.and_then(ObservedProcess::parent_command),
        "nranks": world.ranks.len(),
        "told": hangs::lines(world),
        "failure": world.failure,
        "unnamed": world.unnamed,
        "ranks": world.ranks.iter().map(|rank| of_rank(world, rank)).collect::<Vec<_>>(),
    })
}

fn of_rank(world: &ObservedWorld, rank: &ObservedRank) -> Value {
    let process = rank.process.as_ref();
    let state = match rank.left {
        Some(_) => "left",
        None if is_gone(rank) => "gone",
        None if process.is_some_and(|process| process.stopped) => "stopped",
        None => "there",
    };
    let wait = rank.wait.as_ref().map(|wait| {
        json!({
            "for": wait.on.map(|on| world.ranks[on].name),
            "call": wait.number,
            "missing": (wait.missing > 0).then_some(wait.missing),
            "seconds": wait.since.as_secs_f64(),
        })
    });
    json!({
        "rank": rank.name,
        "pid": process.map_or(rank.pid, |process| process.pid),
        "command": process.map(|process| &process.command),
        "threads": process.map(|process| process.threads),
        "processors": process.map(|process| &process.processors),
        "state": state,
        "on_gpu": rank.on_gpu,
        "calls": rank.number,
        "in_call": rank.in_call,
        "step": rank.step.filter(|_| rank.in_call),
        "place": rank.place,
        "wait": wait,
        "last_calls": rank.calls.iter().map(call).collect::<Vec<_>>(),
    })
}

fn call(call: &ObservedCall) -> Value {
    let shape = call.shape.as_ref();
    json!({
        "number": call.number,
        "name": call.name,
        "site": call.site,
        "collective": shape.map(|((collective, _), _)| collective.name()),
        "root": shape.filter(|((collective, _), _)| collective.is_rooted()).map(|((_, root), _)| root.0),
        "count": shape.and_then(|(_, (count, ..))| *count),
        "dtype": shape.map(|(_, (_, dtype, _))| dtype.to_string()),
        "op": shape
            .filter(|((collective, _), _)| collective.reduces())
            .map(|(_, (.., op))| op.to_string()),
        "algorithm": call.algorithm,
        "seconds_ago": call.since.as_secs_f64(),
        "took_seconds": call.ended.map(|ended| call.since.saturating_sub(ended).as_secs_f64()),
        "failed": call.failed,
    })
}
