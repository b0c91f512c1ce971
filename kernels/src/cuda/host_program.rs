//! A kernel as files for a program in C++: its text, the device's headers, the host's header, and a program that runs it
//! on known data.

use std::fmt::{Display, Write as _};

use roundelay_core::collective::Expected;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Buffer;
use roundelay_core::verify::Callers;
use roundelay_export::cuda::{Kernel, Protocol};

use super::arch::Arch;
use super::compile::{HEADERS, THREADS, Target, WALKERS};
use super::error::Error;
use super::plan::has_switch;
use crate::grid::{self, GridLayout};
use crate::lowering::plan_call::check_multiple;
use crate::reference::check_data::mantissa_bits;

/// The host's header: devices, plans and launches on the driver.
const HOST_HEADER: (&str, &str) =
    ("roundelay_host.hpp", include_str!("../../device/roundelay_host.hpp"));

/// The files of a program in C++ that runs `kernel` for `count` elements a unit, each with its name and its text: the
/// headers, `NAME.cu` and `NAME_host.cpp`.
///
/// # Errors
/// E0407 for scratch with more bytes than addresses, E0406 for a count for which nothing was proved, E0423 for a kernel
/// whose moves a switch makes.
pub fn host_program(kernel: &Kernel, count: u64) -> Result<Vec<(String, String)>, Error> {
    has_switch(kernel, || Some("the program has one process for all ranks".to_owned()))?;
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    let mut files: Vec<_> = HEADERS.iter().chain([&HOST_HEADER]).map(owned).collect();
    files.push((format!("{}_host.cpp", kernel.name), program(kernel, count)?));
    files.push((format!("{}.cu", kernel.name), kernel.text.clone()));
    Ok(files)
}

fn program(kernel: &Kernel, count: u64) -> Result<String, Error> {
    let schedule = &*kernel.schedule;
    check_multiple(schedule, count)?;
    let (name, facts, element) = (&kernel.name, kernel.facts(count), kernel.spec.element);
    let layout = GridLayout::new(&facts, 1, element.size()).map_err(|_| {
        let what = format!("scratch for {count} elements a unit has more bytes than addresses");
        Error::from(crate::Error::TooLarge { what })
    })?;
    let elements = |buffer| {
        listed((0..schedule.nranks).map(move |rank| schedule.elements(buffer, RankId(rank), count)))
    };
    // The loads under way are the same for every GPU.
    let target = Target::new("sm_90".parse::<Arch>()?);
    let (nranks, collective) = (schedule.nranks, schedule.collective);
    let wanted = (0..nranks).map(RankId).map(|rank| {
        let units = collective.output_units(rank, nranks, schedule.root);
        let sources =
            (0..units).map(|unit| match collective.expected_value(rank, unit, schedule.root) {
                Expected::Reduced { unit } => format!("{{-1, {unit}}}"),
                Expected::Copied { rank, unit } => format!("{{{}, {unit}}}", rank.0),
            });
        format!("{{{}}}", listed(sources))
    });
    let (exponent, fraction) = bits(element);
    let mut text = String::new();
    let _ = write!(
        text,
        "// Written by `roundelay emit cuda`: runs {name} ({collective}) of {nranks} ranks, {element} {op}, {count} elements
// a unit, on known data, and compares every element. In the folder of this file:
//
//   c++ -std=c++17 -I. -I$CUDA_HOME/include {name}_host.cpp -o {name} -L$CUDA_HOME/lib64 -lnvrtc -lcuda
//   ./{name} DEVICES [FOLDER]
//
// The ranks are dealt to that number of devices in rows. FOLDER has the kernel and the headers; it is the current one
// where it is left out. CUDA is looked for in CUDA_HOME, or in /usr/local/cuda.
#include \"roundelay_host.hpp\"

int main(int argc, char** argv) try {{
    const roundelay::KernelFacts kernel = {{
        \"{name}\", {nranks}, {count}, {bytes},
        {{{words}}},
        {{{groups}}},
        {posted}, {counts}, {scratch}, {scale}, {one}, {whole},
        {THREADS}, {WALKERS}, {in_flight}, {worth},
        {{{inputs}}},
        {{{outputs}}},
    }};
    // Of each unit of each rank's output: the rank of its source, or -1 for all ranks, and the unit of the input.
    const std::vector<std::vector<roundelay::Source>> wanted = {{
        {wanted},
    }};
    std::vector<roundelay::Device> devices = roundelay::open_devices(argc > 1 ? std::atoi(argv[1]) : 1);
    roundelay::Plan plan(devices, kernel, argc > 2 ? argv[2] : \".\");
    const auto fold = [](roundelay::u64 a, roundelay::u64 b) -> roundelay::u64 {{ return {fold}; }};
    roundelay::demonstrate(plan, kernel, {{{bytes}, {exponent}, {fraction}}}, wanted, fold, {divide});
    return 0;
}} catch (const std::exception& error) {{
    std::cerr << \"{name}: \" << error.what() << '\\n';
    return 1;
}}
",
        op = kernel.spec.op,
        bytes = element.size(),
        words = listed(&facts.words),
        groups = listed(facts.groups.iter().map(|group| group.rank.0)),
        posted = facts.posted_words,
        counts = facts.counts_launches,
        scratch = layout.scratch_bytes,
        scale = facts.scale_outputs,
        one = kernel.spec.callers == Callers::One,
        whole = kernel.spec.protocol == Protocol::Ll128,
        in_flight = target.in_flight(),
        worth = grid::worth(schedule, count, element.size()),
        inputs = elements(Buffer::Input),
        outputs = elements(Buffer::Output),
        wanted = wanted.collect::<Vec<_>>().join(",\n        "),
        fold = fold(kernel.spec.op),
        divide = kernel.spec.op == ReduceOp::Avg,
    );
    Ok(text)
}

/// Returns values in a row, a new line after every 32.
fn listed(values: impl IntoIterator<Item = impl Display>) -> String {
    let mut text = String::new();
    for (at, value) in values.into_iter().enumerate() {
        let between = match at {
            0 => "",
            _ if at % 32 == 0 => ",\n        ",
            _ => ", ",
        };
        let _ = write!(text, "{between}{value}");
    }
    text
}

/// The op on two small numbers, in C++. An average is a sum, which is divided once.
const fn fold(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Sum | ReduceOp::Avg => "a + b",
        ReduceOp::Prod => "a * b",
        ReduceOp::Min => "std::min(a, b)",
        ReduceOp::Max => "std::max(a, b)",
        ReduceOp::Band => "a & b",
        ReduceOp::Bor => "a | b",
        ReduceOp::Bxor => "a ^ b",
        ReduceOp::Land => "a != 0 && b != 0",
        ReduceOp::Lor => "a != 0 || b != 0",
        ReduceOp::Lxor => "(a != 0) != (b != 0)",
    }
}

/// The bits of exponent and fraction of a type; none for integers.
fn bits(element: DType) -> (u32, u32) {
    if !element.is_float() {
        return (0, 0);
    }
    let fraction = mantissa_bits(element);
    (8 * element.size() as u32 - 1 - fraction, fraction)
}
