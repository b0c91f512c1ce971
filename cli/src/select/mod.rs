//! `roundelay select`: which algorithm of the library to use for which sizes on a machine, and why.

mod file;
mod ranges;
mod why;

use clap::Args;
use roundelay::Promises;
use roundelay::select::{size, time};
use roundelay_core::diagnostics::Code;
use roundelay_core::units::decimals;
use serde::Serialize;

use crate::constants::{ConstantsJson, CostFlags};
use crate::flags::{assume_help, topology_help};
use crate::output;
use crate::report::{Failure, Format, within_a_page};
use crate::streams::{print, print_json};
use crate::topo::aligned;
use crate::topology;
use crate::values::{bytes, collective_named, promises, rank_count};
use ranges::{Question, Range};

/// The rank count where neither flag nor topology names one.
const RANKS: u32 = 8;

#[derive(Args)]
pub(crate) struct SelectFlags {
    /// A collective, such as AllReduce; or a selection file, - for standard input, which is checked
    #[arg(value_name = "COLLECTIVE|FILE")]
    what: String,
    #[arg(long, value_name = "FILE|TEXT", help = topology_help!("What the ranks run on"))]
    topology: Option<String>,
    #[arg(long, requires = "topology", value_name = "ASSUMPTION", help = assume_help!())]
    assume: Option<String>,
    /// The rank count [default: all ranks of the topology, or 8]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_count)]
    nranks: Option<u32>,
    /// Sizes in bytes as nccl-tests counts them, such as 64K,256M [default: ranges from 1 KiB to 1 GiB]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = bytes)]
    bytes: Vec<u64>,
    #[command(flatten)]
    costs: CostFlags,
    /// Only algorithms that keep these promises about the order of reduction, such as
    /// `all_counts,roundings=1`
    #[arg(long, value_name = "PROMISES", value_parser = promises)]
    order: Option<Promises>,
    /// Write the choices to a selection file, - for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "bytes")]
    write: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Serialize)]
struct SelectJson<'a> {
    ok: bool,
    collective: &'static str,
    nranks: u32,
    topology: Option<&'a str>,
    constants: ConstantsJson<'a>,
    ranges: &'a [Range],
}

pub(crate) fn main(flags: &SelectFlags) -> Result<bool, Failure> {
    let Some(collective) = collective_named(&flags.what) else {
        return file::check(&flags.what, flags.format);
    };
    output::reserve(&[("--write", flags.write.as_deref())], flags.format == Format::Json)?;
    let given = topology::optional(flags.topology.as_deref(), flags.assume.as_deref())?;
    let topology = given.as_ref().map(|given| &*given.topology);
    let nranks = flags.nranks.or(topology.map(|topology| topology.nranks())).unwrap_or(RANKS);
    if let Some(topology) = topology {
        topology.holds_pairs(nranks)?;
    }
    let constants = flags.costs.of(topology, nranks)?;
    let promises = flags.order.unwrap_or_default();
    let question = Question { collective, nranks, topology, costs: &constants.costs, promises };
    let ranges = match &flags.bytes[..] {
        [] => question.ranges(),
        sizes => question.at(sizes),
    };
    if ranges.is_empty() {
        let title = format!("no algorithm of the library takes {nranks} ranks there");
        return Err(Failure::usage(Code::NothingAdmitted, title)
            .with_help("`roundelay list --why` says for each of them what is in the way"));
    }
    if let Some(path) = &flags.write {
        output::write(path, &file::written(collective, nranks, &ranges))?;
    }
    match flags.format {
        Format::Json => print_json(&SelectJson {
            ok: true,
            collective: collective.name(),
            nranks,
            topology: topology.map(|topology| topology.name()),
            constants: constants.json(topology),
            ranges: &ranges,
        }),
        Format::Human if flags.write.as_deref() == Some("-") => {}
        Format::Human => {
            print(&human(&question, &ranges));
            constants.tell();
        }
    }
    Ok(true)
}

fn human(question: &Question<'_>, ranges: &[Range]) -> String {
    let Question { collective, nranks, topology, costs, .. } = question;
    let on = topology.map_or_else(String::new, |t| format!(" of {}", t.name()));
    let mut text = format!("{collective} on {nranks} ranks{on}\n\n");
    let mut rows = vec![["sizes", "algorithm", "time", "of the bound"].map(str::to_owned).to_vec()];
    for range in ranges {
        let (sizes, times) = if range.from == range.to {
            (size(range.from), time(range.seconds[0]))
        } else {
            let until =
                if range.open { "and more".to_owned() } else { format!("to {}", about(range.to)) };
            let times = range.seconds.map(time).join(" .. ");
            (format!("{} {until}", about(range.from)), times)
        };
        let share = range.share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        rows.push(vec![sizes, range.algorithm.clone(), times, share]);
    }
    aligned(&rows, &mut text);
    text.push_str("\nwhy\n");
    for range in ranges {
        let order = range.order.as_ref().map(|order| format!("; keeps {order}"));
        let line = format!("  {}: {}{}", range.algorithm, range.why, order.unwrap_or_default());
        text.push_str(&within_a_page(&line, 4));
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&within_a_page(&format!("constants: {}", costs.source()), 4));
    text
}

/// Formats a size to three digits.
fn about(bytes: u64) -> String {
    let unit = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = unit.into_iter().find(|(unit, _)| bytes >= *unit);
    let Some((unit, name)) = unit else { return size(bytes) };
    let value = bytes as f64 / unit as f64;
    let digits = usize::from(value < 100.0) + usize::from(value < 10.0);
    format!("{} {name}", decimals(value, digits))
}
