//! Plans for MSCCL++'s executor: the report on a checked plan, and the plan of an algorithm.

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::layout::Configured;
use roundelay_core::prove_source;
pub(crate) use roundelay_export::exchange::mscclpp::read;
use roundelay_export::exchange::mscclpp::{MscclppVerdict, Program};
use roundelay_export::exchange::mscclpp::{export, fits};
use roundelay_export::exchange::{Checked, Mode};
use serde::Serialize;

use crate::messages;
use crate::topo::count;

/// A plan, for other programs.
#[derive(Serialize)]
pub(crate) struct Described {
    name: String,
    /// The name in the plan.
    coll: String,
    /// The collective that the plan promises; absent where that cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    collective: Option<&'static str>,
    nranks: u32,
    protocol: &'static str,
    operations: usize,
    /// The most blocks of a rank.
    blocks: usize,
    pub(crate) seconds: f64,
    modes: Vec<Proved>,
    /// The most orders in which ranks reduce one piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    orders: Option<usize>,
    /// Stretches of each loop that were looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stretches: Vec<u32>,
    min_bytes: u64,
    /// Absent for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
}

/// Whether a program is right in a mode.
#[derive(Serialize)]
pub(crate) struct Proved {
    mode: &'static str,
    right: bool,
}

impl Proved {
    pub(crate) fn new(checked: &Checked) -> Self {
        let mode = match checked.mode {
            Mode::OutOfPlace => "out_of_place",
            Mode::InPlace => "in_place",
            Mode::Both => "both",
        };
        Self { mode, right: checked.errors.is_empty() }
    }
}

/// Returns the claims about every right program.
pub(crate) fn claims(
    collective: Option<Collective>,
    modes: &[Mode],
    orders: Option<usize>,
) -> Vec<String> {
    let contribution = match collective {
        Some(_) => "every contribution exactly once",
        None => "what it must have at its end is not known",
    };
    let modes: Vec<_> = modes.iter().map(|mode| mode.name()).collect();
    let mut lines =
        vec![format!("no deadlock, no data race, {contribution}; {}", modes.join(", and "))];
    lines.extend(orders.map(|orders| match orders {
        1 => "all ranks reduce in one order".to_owned(),
        _ => format!("ranks reduce in {orders} orders: floats may differ from rank to rank"),
    }));
    lines
}

fn protocol(program: &Program) -> &'static str {
    if program.header.packets { "LL" } else { "Simple" }
}

/// Returns a plan in a few words.
pub(crate) fn title(program: &Program) -> String {
    let header = &program.header;
    let what = header.collective.map_or(&*header.coll, |collective| collective.name());
    let ranks = count(header.nranks as usize, "rank");
    format!("{} ({what}, {ranks}, {})", header.name, protocol(program))
}

/// Returns the claims about a right plan.
pub(crate) fn lines(program: &Program, verdict: &MscclppVerdict) -> Vec<String> {
    let header = &program.header;
    let mut lines = claims(header.collective, &[header.mode()], verdict.orders);
    let [input, output, _] = program.gpus.first().map_or([0; 3], |gpu| gpu.chunks);
    let declared = match (header.min_bytes, header.max_bytes) {
        (0, None) => "calls of any size are declared".to_owned(),
        (least, None) => format!("calls of {least} bytes and more are declared"),
        (least, Some(most)) => format!("calls of {least} to {most} bytes are declared"),
    };
    lines.push(format!(
        "{declared}; the executor takes multiples of {} bytes for each of {input} chunks of input and {output} of \
         output",
        header.alignment
    ));
    if let [one, several] = verdict.stretches[..] {
        lines.push(format!("loops were laid out with {one} and with {several} stretches"));
    }
    if header.doubled {
        lines.push("two calls were laid out, one for each half of the scratch".to_owned());
    }
    lines
}

pub(crate) fn describe(program: &Program, verdict: &MscclppVerdict) -> Described {
    let header = &program.header;
    let (operations, blocks) = program.size();
    Described {
        name: header.name.clone(),
        coll: header.coll.clone(),
        collective: header.collective.map(Collective::name),
        nranks: header.nranks,
        protocol: protocol(program),
        operations,
        blocks,
        seconds: 0.0,
        modes: vec![Proved::new(&verdict.checked)],
        orders: verdict.orders,
        stretches: verdict.stretches.clone(),
        min_bytes: header.min_bytes,
        max_bytes: header.max_bytes,
    }
}

/// Makes, for `roundelay emit mscclpp`, the plan of an algorithm at one number of ranks.
pub(crate) fn plan(
    algorithm: &Configured,
    nranks: u32,
    in_place: bool,
) -> Result<String, Vec<Diagnostic>> {
    let place = |all| messages::place(algorithm, nranks, all);
    fits(algorithm, nranks).map_err(place)?;
    export(&prove_source(algorithm, nranks)?, in_place).map_err(place)
}
