//! `roundelay topo`: a topology as tables, as JSON, as a picture, or as a file for NCCL.

mod describe;
mod machines;
mod tables;
mod topo_flags;

use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_machines::nccl;
use roundelay_pictures::topology_svg::{marks, svg};

use crate::constants::CostFlags;
use crate::output;
use crate::report::{Failure, JsonDiagnostic};
use crate::streams::{print, print_json};
use crate::topology::{self, Given};
use describe::Description;
pub(crate) use roundelay_core::units::{count, short};
pub(crate) use tables::aligned;
pub(crate) use topo_flags::TopoFlags;
use topo_flags::TopoFormat;

pub(crate) fn main(flags: &TopoFlags) -> Result<bool, Failure> {
    if flags.topology.is_empty() && !flags.here {
        return machines::main(flags);
    }
    // The picture is a document of its own.
    let document = flags.format != TopoFormat::Human;
    output::reserve(&[("--svg", flags.svg.as_deref())], document)?;
    let read = match &flags.topology[..] {
        files @ [_, _, ..] => topology::fused(files, flags.assume.as_deref()),
        one => {
            let text = one.first().map_or(topology::HERE, String::as_str);
            topology::quietly(text, flags.assume.as_deref()).map(|(given, _)| given)
        }
    };
    let given = match read {
        Ok(given) => given,
        Err(failure) if flags.format == TopoFormat::Json => {
            print_json(&serde_json::json!({ "ok": false, "diagnostics": wrong(&failure) }));
            return Err(Failure::Program);
        }
        Err(failure) => return Err(failure),
    };
    let Given { topology, system, .. } = &given;
    if flags.root >= topology.nranks() {
        let title = format!("--root {}: the topology has {} ranks", flags.root, topology.nranks());
        return Err(Failure::usage(Code::BadFlag, title));
    }
    topology.holds_pairs(topology.nranks())?;
    let root = RankId(flags.root);
    let constants = || CostFlags::default().of(Some(topology), topology.nranks());
    if let Some(path) = &flags.svg {
        output::write(path, &svg(topology, &marks(topology)))?;
    }
    match flags.format {
        TopoFormat::Xml => {
            let text = match system {
                Some(system) => nccl::write_system(system)?,
                None => nccl::write(topology)?,
            };
            print(text.trim_end());
        }
        TopoFormat::Svg => print(svg(topology, &marks(topology)).trim_end()),
        TopoFormat::Json => print_json(&Description::new(&given, &constants()?, root)),
        TopoFormat::Human => {
            let constants = constants()?;
            let described = Description::new(&given, &constants, root);
            print(tables::print(&described, topology, &constants.costs).trim_end());
            constants.tell();
        }
    }
    Ok(true)
}

/// Returns the errors of the topology as JSON has them.
fn wrong(failure: &Failure) -> Vec<JsonDiagnostic> {
    match failure {
        Failure::Value(diagnostics, source) => {
            diagnostics.iter().map(|d| JsonDiagnostic::new(d, source)).collect()
        }
        Failure::Usage(problem) => vec![JsonDiagnostic::placeless(problem)],
        Failure::Program => Vec::new(),
    }
}
