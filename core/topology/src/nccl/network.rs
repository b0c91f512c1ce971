//! Several hosts that no link inside of a machine joins: their network cards do.

use std::collections::BTreeSet;

use super::element::Element;
use super::graph::{GraphReader, NetworkPort};
use crate::{LinkKind, NodeId, NodeKind, Problem};

impl GraphReader<'_> {
    /// Joins the ports of all hosts by one switch, where nothing else joins the hosts and each has a port, and returns a
    /// sentence that says so.
    pub(super) fn join_hosts(&mut self, root: &Element) -> Result<Option<String>, Problem> {
        let has_port = |host| self.ports.iter().any(|port| port.host == host);
        let all = (0..self.hosts.len()).all(has_port);
        if self.hosts.len() < 2 || !all || self.are_joined() {
            return Ok(None);
        }
        let network = self.node(root, "network".to_owned(), NodeKind::Net, None)?;
        let ports = std::mem::take(&mut self.ports);
        let reduces = ports.iter().all(|port| port.collective);
        for NetworkPort { node, speed, .. } in ports {
            self.cable(node, network, LinkKind::Net, speed);
        }
        if reduces {
            self.draft.reduce_at(network);
        }
        let hosts = self.hosts.len();
        let reduces = if reduces { " It reduces, as each card says (`coll`)." } else { "" };
        Ok(Some(format!(
            "One switch that never blocks joins the network cards of the {hosts} hosts.{reduces}"
        )))
    }

    /// Whether the hosts reach each other.
    fn are_joined(&self) -> bool {
        let Some(first) = self.first_cpus.first() else { return true };
        let mut seen = BTreeSet::from([*first]);
        let mut open = vec![*first];
        while let Some(node) = open.pop() {
            let from = (node, NodeId(0), LinkKind::NvLink)
                ..(NodeId(node.0 + 1), NodeId(0), LinkKind::NvLink);
            for (_, to, _) in self.links.range(from).map(|(link, _)| *link) {
                if seen.insert(to) {
                    open.push(to);
                }
            }
        }
        self.first_cpus.iter().all(|cpu| seen.contains(cpu))
    }
}
