//! The runs themselves, as many at once as there are cores.

use std::collections::BTreeMap;

use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::explanation::explain;
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::layout::{Configured, one_rank};
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_simulate::{Machine, Simulated};

use roundelay_pictures::curves::{AlgorithmCurve, Levels, Missing, RunPoint};

use super::subjects::Subject;
use crate::constants::Constants;
use crate::parallel::side_by_side;
use crate::report::{self, Failure, name_counts, refuse};
use crate::simulate::flags::SimulateFlags;
use crate::simulate::{bound, by_one_rank, simulated};

/// The rank counts beyond which one rank is simulated in place of all, where it stands for them.
const MANY: u32 = 512;
/// The most ranks that are simulated each by itself.
const MOST: u32 = 2048;

/// The result of a run.
type Outcome = Result<RunPoint, Vec<Diagnostic>>;

/// Simulates every algorithm with every rank count.
pub(super) fn simulate(
    subjects: &[Subject],
    flags: &SimulateFlags,
    machines: &BTreeMap<u32, (Machine, Constants)>,
    levels: &Levels,
    nranks: &[u32],
) -> Result<Vec<AlgorithmCurve>, Failure> {
    // The long runs first, so that the cores end together.
    let runs: Vec<(usize, u32)> =
        nranks.iter().rev().flat_map(|n| (0..subjects.len()).map(|at| (at, *n))).collect();
    let outcomes = side_by_side("runs", &runs, |(at, n)| {
        run(&subjects[*at], flags, &machines[n].0, levels, *n)
    });
    let mut done: Vec<_> =
        runs.into_iter().zip(outcomes).map(|((at, n), outcome)| (at, n, outcome)).collect();
    done.sort_by_key(|(at, n, _)| (*at, *n));
    let named = flags.nranks.as_ref().is_none_or(|nranks| nranks.named);
    // Where algorithms are compared, an algorithm that is wrong does not stop the others.
    let compared = subjects.len() > 1;
    let mut wrong: Option<(Vec<Diagnostic>, &Source)> = None;
    let mut curves: Vec<AlgorithmCurve> = subjects
        .iter()
        .map(|s| AlgorithmCurve { name: s.name.clone(), points: Vec::new(), missing: Vec::new() })
        .collect();
    for (at, nranks, outcome) in done {
        let (curve, subject) = (&mut curves[at], &subjects[at]);
        match outcome {
            Ok(point) => curve.points.push(point),
            Err(mut errors) => {
                let refuses = errors.iter().all(|error| error.code.refuses());
                if !refuses || named && !compared {
                    name_counts(&mut errors, &subject.algorithm, None);
                    if !compared {
                        return Err(refuse(flags.format, &errors, &subject.source, report::wrong));
                    }
                    wrong.get_or_insert((errors.clone(), &subject.source));
                }
                let error = errors.into_iter().next();
                curve.missing.extend(error.map(|error| missing(nranks, error)));
            }
        }
    }
    if curves.iter().all(|curve| curve.points.is_empty()) {
        if let Some((errors, source)) = wrong {
            return Err(refuse(flags.format, &errors, source, report::wrong));
        }
        let (curve, subject) = (&curves[0], &subjects[0]);
        let reason = curve.missing.first().map_or(String::new(), |m| m.reason.clone());
        let title = format!("{} admits none of the rank counts asked for", curve.name);
        let place = subject.algorithm.program().header();
        let error = Diagnostic::new(Code::NothingAdmitted, place, title).note(reason);
        return Err(refuse(flags.format, &[error], &subject.source, report::wrong));
    }
    Ok(curves)
}

fn run(
    subject: &Subject,
    flags: &SimulateFlags,
    machine: &Machine,
    levels: &Levels,
    nranks: u32,
) -> Outcome {
    let algorithm = &subject.algorithm;
    let wrong = |findings: Vec<Finding>| explain(algorithm, findings, nranks);
    let (schedule, done) =
        simulated_by_one_or_all(algorithm, flags, machine, nranks).map_err(wrong)?;
    Ok(RunPoint {
        nranks,
        bytes: done.bytes,
        seconds: done.seconds,
        algbw: done.algbw,
        busbw: done.algbw * schedule.collective.bus_factor(nranks),
        bound: bound(&schedule, machine, done.bytes).map(|(seconds, _)| seconds),
        loads: levels.loads(&done.links),
    })
}

/// Simulates a run of many ranks by the ops of one rank where all do the same, turned, and other runs by those of all.
/// The time is the same, so that curves go on beyond the counts at which all ranks can be simulated.
fn simulated_by_one_or_all(
    algorithm: &Configured,
    flags: &SimulateFlags,
    machine: &Machine,
    nranks: u32,
) -> Result<(Schedule, Simulated), Vec<Finding>> {
    if nranks > MANY {
        match by_one_rank(algorithm, flags, machine, nranks) {
            Ok(found) => return Ok(found),
            Err(why) if nranks > MOST => {
                // The reason why the algorithm refuses the count is better.
                one_rank(algorithm, nranks, RankId(0))?;
                let title = format!(
                    "more than {MOST} ranks are simulated by the ops of one rank alone: {why}"
                );
                return Err(vec![Finding::new(Code::StepLimit, SpanId(0), title)]);
            }
            Err(_) => {}
        }
    }
    let (schedule, _, done) = simulated(algorithm, flags, machine, nranks, false)?;
    Ok((schedule, done))
}

/// Returns the reason of a count. The title of a `require` names the algorithm and the count, which stand beside it
/// already.
fn missing(nranks: u32, error: Diagnostic) -> Missing {
    let Diagnostic { code, title, .. } = error;
    let reason = match title.split_once(": ") {
        Some((_, why)) if code == Code::RankCountRefused => why.to_owned(),
        _ => title,
    };
    Missing { nranks, code, reason }
}
