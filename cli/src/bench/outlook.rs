//! `roundelay bench --device cuda --dry-run`: the predicted times of launches on an absent GPU, by the model, with the
//! model's assumptions. A first measured run is compared with it.

use roundelay_core::layout::Configured;
use roundelay_core::verify::Callers;
use roundelay_export::cuda::{Form, Protocol};
use roundelay_kernels::cuda::{Error, Outlook};
use roundelay_kernels::grid::Gpu;
use roundelay_kernels::reference::Reference;
use serde::Serialize;

use super::Case;
use super::columns::{InTable, Table, TableColumn, comment, common};
use super::cuda::{WHAT, floor, no_kernel, print_lines};
use super::flags::BenchFlags;
use super::subject::{RefusedSubject, Subject};
use super::table::{longest, number, refusal};
use crate::build_facts;
use crate::report::{Failure, Format};
use crate::streams::{print, print_json, remark};

/// A launch with its predicted time in microseconds, and its kernel.
#[derive(Serialize)]
struct OutlookRow {
    algo: String,
    form: String,
    protocol: &'static str,
    nranks: u32,
    size: u64,
    count: u64,
    #[serde(rename = "type")]
    dtype: &'static str,
    redop: &'static str,
    predicted: f64,
    /// The parts of `predicted` along the slowest stream's path: launch, moves, latency and signals.
    launch: f64,
    moving: f64,
    latency: f64,
    signals: f64,
    /// Signals on that path.
    waits: u32,
    /// Bytes that are loaded and stored.
    traffic: u64,
    percent_of_floor: Option<f64>,
    /// CTAs of each stream.
    ctas: u32,
    /// CTAs that a multiprocessor is to hold.
    ctas_a_multiprocessor: u32,
    registers: u32,
    /// Bytes of loads under way at once, of all CTAs.
    bytes_in_flight: u64,
    /// Whether no launch of this size is faster.
    fastest: bool,
}

#[derive(Serialize)]
struct OutlookReport<'a> {
    gpu: &'a str,
    floor: &'static str,
    model: &'a [String],
    graph: bool,
    predicted: &'a [OutlookRow],
    refused: &'a [RefusedSubject],
}

pub(super) fn main(
    flags: &BenchFlags,
    gpu: &Gpu,
    cases: &[Case],
    mut refused: Vec<RefusedSubject>,
) -> Result<bool, Failure> {
    let model = gpu.assumptions();
    let text = flags.format == Format::Human;
    let table = Table::new(&COLUMNS, cases, longest(cases) + "< , simple".len());
    if text {
        for line in head(flags, &model, cases) {
            remark(&comment(&line));
        }
        print_lines(refused.iter().map(refusal));
        print_lines(table.head("  algo"));
    }
    let mut all = Vec::new();
    for case in cases {
        let mut rows = Vec::new();
        for subject in &case.subjects {
            // Programs for MSCCL are refused when they are read.
            let Some(algorithm) = &subject.algorithm else { continue };
            for made in flags.device.forms(algorithm) {
                match row(flags, case, (subject, algorithm), made, gpu) {
                    Ok(row) => rows.push(row),
                    Err(Error::NoKernel(why)) => {
                        let one = no_kernel(subject, case, why);
                        if text {
                            print(&refusal(&one));
                        }
                        refused.push(one);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let least = rows.iter().map(|row| row.predicted).fold(f64::INFINITY, f64::min);
        for row in &mut rows {
            row.fastest = row.predicted <= least;
        }
        if text {
            print_lines(rows.iter().map(|row| table.line(row, &kernel(row))));
        }
        all.extend(rows);
    }
    if !text {
        let (gpu, graph) = (gpu.name.as_str(), flags.graph);
        let (model, predicted, refused) = (&model[..], &all[..], &refused[..]);
        print_json(&OutlookReport { gpu, floor: WHAT, model, graph, predicted, refused });
    }
    Ok(!all.is_empty())
}

fn row(
    flags: &BenchFlags,
    case: &Case,
    (subject, algorithm): (&Subject, &Configured),
    (form, protocol): (Form, Protocol),
    gpu: &Gpu,
) -> Result<OutlookRow, Error> {
    let Reference { collective, nranks, count, dtype, op, .. } = case.reference;
    let options = flags.device.options(&flags.engine).form(form).protocol(protocol);
    let kind = (dtype, op);
    let kernel = options.kernel(algorithm, &subject.proved, kind, Callers::One)?;
    let outlook = Outlook::for_kernel(&kernel, count as u64, gpu, options, flags.graph)?;
    let Outlook { shape, ctas, registers, estimate } = outlook;
    let us = |seconds: f64| seconds * 1e6;
    let predicted = us(estimate.time);
    Ok(OutlookRow {
        algo: subject.name.clone(),
        form: form.to_string(),
        protocol: kernel.spec.protocol.name(),
        nranks,
        size: case.size,
        count: count as u64,
        dtype: dtype.name(),
        redop: if collective.reduces() { op.name() } else { "none" },
        predicted,
        launch: us(estimate.launch),
        moving: us(estimate.moving),
        latency: us(estimate.latency),
        signals: us(estimate.signals),
        waits: estimate.waits,
        traffic: estimate.traffic,
        percent_of_floor: (case.size > 0).then(|| 100.0 * floor(case, gpu) / predicted),
        ctas: shape.parts,
        ctas_a_multiprocessor: ctas,
        registers,
        bytes_in_flight: estimate.in_flight,
        fastest: false,
    })
}

fn head(flags: &BenchFlags, model: &[String], cases: &[Case]) -> Vec<String> {
    let mut lines = vec![
        format!("# roundelay {}", env!("CARGO_PKG_VERSION")),
        format!("# {}", build_facts::line("bench")),
        "# dry run: nothing is launched; times are those of a model".to_owned(),
    ];
    lines.extend(model.iter().map(|line| format!("# model: {line}")));
    let by = if flags.graph { "a CUDA graph" } else { "launches of their own" };
    lines.push(format!("# kernels are launched by {by}; all ranks are on one GPU"));
    lines.push(format!("# floor: {WHAT}"));
    lines.push("# <: none of its size is faster".to_owned());
    lines.extend(common(cases));
    lines.push("#".to_owned());
    lines
}

type Column = TableColumn<OutlookRow>;

static COLUMNS: [Column; 15] = {
    const fn of(
        [name, unit]: [&'static str; 2],
        kept: InTable,
        widths: [usize; 2],
        cell: fn(&OutlookRow) -> String,
    ) -> Column {
        Column { over: "", head: [name, unit], kept, widths, cell }
    }
    use InTable::{Always, Differs, Room, Wide};
    [
        of(["size", "(B)"], Always, [12, 11], |row| row.size.to_string()),
        of(["count", "(elements)"], Room(0), [13, 12], |row| row.count.to_string()),
        of(["type", ""], Differs, [8, 7], |row| row.dtype.to_owned()),
        of(["redop", ""], Differs, [8, 6], |row| row.redop.to_owned()),
        of(["nranks", ""], Differs, [8, 7], |row| row.nranks.to_string()),
        of(["predicted", "(us)"], Always, [11, 11], |row| number(row.predicted)),
        of(["launch", "(us)"], Room(6), [9, 8], |row| number(row.launch)),
        of(["moves", "(us)"], Room(7), [9, 8], |row| number(row.moving)),
        of(["latency", "(us)"], Room(5), [9, 8], |row| number(row.latency)),
        of(["signals", "(us)"], Room(4), [9, 8], |row| number(row.signals)),
        of(["waits", ""], Room(3), [7, 7], |row| row.waits.to_string()),
        of(["traffic", "(B)"], Room(1), [13, 12], |row| row.traffic.to_string()),
        of(["% of", "floor"], Always, [12, 7], |row| {
            row.percent_of_floor.map_or_else(|| "N/A".to_owned(), |share| format!("{share:.1}"))
        }),
        of(["CTAs", ""], Room(2), [6, 6], |row| row.ctas.to_string()),
        of(["in flight", "(B)"], Wide, [12, 0], |row| row.bytes_in_flight.to_string()),
    ]
};

/// Returns the name of a row's kernel, with a mark where no launch of its size is faster.
fn kernel(row: &OutlookRow) -> String {
    let mark = if row.fastest { '<' } else { ' ' };
    let made = if row.form == "table" { "table" } else { row.protocol };
    format!("{mark} {}, {made}", row.algo)
}
