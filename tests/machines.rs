//! Machines that have a name: the tables of the book, and the choice of an algorithm for each.

use std::fmt::Write as _;

use expect_test::expect_file;
use roundelay::select::select;
use roundelay::{Collective, Topology};
use roundelay_core::ids::RankId;
use roundelay_tests::root;
use roundelay_topology::bounds::Usable;
use roundelay_topology::nccl::NamedMachine;
use roundelay_topology::{LinkKind, NodeId};

fn topology(machine: &NamedMachine, count: u32) -> Topology {
    format!("machine(\"{}\", {count})", machine.name).parse().expect("a machine that has a name")
}

fn table(stem: &str, text: &str) {
    let path = root().join(format!("book/src/listings/topology/{stem}.table"));
    expect_file![path].assert_eq(text);
}

/// `UPDATE_EXPECT=1 cargo test -p roundelay-tests machines::` writes them, and then `book::` puts them into the page.
#[test]
fn the_book_has_all_machines() {
    let heads = ["name", "machine", "GPUs", "links of a GPU", "published", "counted", "network"];
    let mut figures = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    let mut sources = String::from("| machine | document: facts |\n|---|---|\n");
    for machine in NamedMachine::ALL {
        let one = topology(machine, 1);
        let links = one.out(NodeId(0)).iter().filter(|link| link.kind == LinkKind::NvLink);
        let counted: u64 = links.map(|link| link.capacity.floor()).sum();
        let gigabytes = |bytes: u64| format!("{} GB/s", bytes as f64 / 1e9);
        let cells = [
            &format!("`{}`", machine.name),
            machine.product,
            &format!("{} {}", machine.ranks(), machine.gpu),
            machine.fabric,
            &gigabytes(machine.published),
            &gigabytes(counted),
            machine.network,
        ];
        writeln!(figures, "| {} |", cells.join(" | ")).expect("a string grows");
        for source in machine.sources {
            writeln!(sources, "| `{}` | {source} |", machine.name).expect("a string grows");
        }
    }
    table("machines", &figures);
    table("machine_sources", &sources);
}

/// A machine has an algorithm near the bound of its `NVLinks` for large sizes.
#[test]
fn choices_are_near_the_bound() {
    for machine in NamedMachine::ALL.iter().filter(|machine| machine.ranks() == 8) {
        let one = topology(machine, 1);
        let choice = select(Collective::AllReduce, 8, 1 << 30, Some(&one));
        let best = choice.best().expect("an algorithm takes 8 ranks");
        let bound = Usable::new(&one, 8, Collective::AllReduce, RankId(0));
        let share = bound.expect("a bound").bound.seconds(1 << 30) / best.time.seconds();
        let least = if machine.name == "dgx-1" { 0.6 } else { 0.97 };
        assert!((least..=1.0).contains(&share), "{}: {} {share}", machine.name, best.algorithm);
    }
}
