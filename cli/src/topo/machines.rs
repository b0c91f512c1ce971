//! The list of machines that have a name, and of the other topologies that a text can describe.

use std::fmt::Write as _;

use roundelay_core::diagnostics::Code;
use roundelay_topology::nccl::NamedMachine;
use roundelay_topology::shape::ShapeKind;
use serde::Serialize;

use super::tables::aligned;
use super::topo_flags::{TopoFlags, TopoFormat};
use crate::report::Failure;
use crate::streams::{print, print_json};

#[derive(Serialize)]
struct ListedMachine {
    name: &'static str,
    product: &'static str,
    gpus: u32,
    gpu: &'static str,
    links: &'static str,
    /// Bytes a second of a GPU to all other GPUs, as published.
    published: u64,
    network: &'static str,
    sources: &'static [&'static str],
}

/// Prints the list in place of a topology that was not given.
pub(super) fn main(flags: &TopoFlags) -> Result<bool, Failure> {
    match flags.format {
        TopoFormat::Human if flags.svg.is_none() => print(text().trim_end()),
        TopoFormat::Json if flags.svg.is_none() => {
            let listed = |machine: &NamedMachine| ListedMachine {
                name: machine.name,
                product: machine.product,
                gpus: machine.ranks(),
                gpu: machine.gpu,
                links: machine.fabric,
                published: machine.published,
                network: machine.network,
                sources: machine.sources,
            };
            let all: Vec<_> = NamedMachine::ALL.iter().map(listed).collect();
            print_json(&serde_json::json!({ "ok": true, "machines": all }));
        }
        _ => {
            let title = "there is no topology to draw or to write";
            return Err(Failure::usage(Code::BadFlag, title)
                .with_help("name one, such as `machine(\"dgx-h100\", 2)`"));
        }
    }
    Ok(true)
}

fn text() -> String {
    let mut text = String::from(
        "machines that have a name: machine(\"dgx-h100\"), or machine(\"dgx-h100\", 2) for two of them\n\n",
    );
    let heads = ["name", "machine", "GPUs", "links of a GPU", "network"];
    let row = |machine: &NamedMachine| {
        let gpus = format!("{} {}", machine.ranks(), machine.gpu);
        [machine.name, machine.product, &gpus, machine.fabric, machine.network]
            .map(str::to_owned)
            .to_vec()
    };
    let heads = heads.map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(heads).chain(NamedMachine::ALL.iter().map(row)).collect();
    aligned(&rows, &mut text);
    text.push_str("\nother topologies\n");
    for kind in ShapeKind::ALL.iter().filter(|kind| **kind != ShapeKind::Machine) {
        let _ = writeln!(text, "  {}", kind.form());
    }
    text
}
