//! Real files with bytes changed: what is taken is written, and read again.

use roundelay_machines::nccl::{self, Assumption};
use roundelay_topology::{NodeId, paths};

use crate::fuzz::{XML, fuzz};
use crate::nccl::{FULL, PARTIAL, bytes};

#[test]
fn changed_files() {
    let assume = Assumption::parse("sm=90,nvlinks=18").unwrap();
    let own = ["<pci busid=\"x\">", "</cpu>", "<gpu rank=\"0\">"];
    let files = FULL.into_iter().chain(PARTIAL).map(bytes);
    fuzz(files, 1500, &[&XML[..], &own].concat(), [1000, 1000], |changed| {
        match nccl::read("changed", changed, Some(assume.clone())) {
            Ok(system) => {
                let paths = paths::paths_from(&system.topology, NodeId(0));
                assert_eq!(paths.len(), system.topology.nodes().len());
                if let Ok(written) = nccl::write_system(&system) {
                    let again = nccl::read("changed", written.as_bytes(), None);
                    assert_eq!(again.map(|again| again.topology), Ok(system.topology));
                }
                true
            }
            Err(problem) => {
                assert!(!problem.title.is_empty());
                false
            }
        }
    });
}
