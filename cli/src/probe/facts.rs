//! The facts of a host that need no traffic: its network cards, the interface of its connections, and the counters of that.

use roundelay::World;
use roundelay_machines::here;
use roundelay_topology::host::Root;
use serde::{Deserialize, Serialize};

/// The folder of the interfaces.
const INTERFACES: &str = "sys/class/net";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct HostFacts {
    pub(super) name: String,
    /// The interface by which the host reaches another, where the transport tells it.
    pub(super) interface: Option<String>,
    /// Bytes of its packets, and of those of the path to another host.
    pub(super) mtu: Option<u64>,
    pub(super) path_mtu: Option<u32>,
    /// Megabits a second, as the card was negotiated.
    pub(super) speed: Option<u64>,
    /// Packets so far, and those with errors, or dropped.
    pub(super) packets: u64,
    pub(super) faults: u64,
    /// Sentences about the PCI links of the network cards.
    pub(super) trained_down: Vec<String>,
}

impl HostFacts {
    /// Reads the facts of this host, which has connections to some of these ranks.
    pub(super) fn read(world: &World, others: &[u32]) -> Self {
        let Ok(root) = Root::new("/") else { return Self::default() };
        let connection = others.iter().find_map(|rank| world.connection(*rank));
        let (path_mtu, interface) = connection
            .map_or((None, None), |connection| (Some(connection.path_mtu), connection.interface));
        let read = |file: &str| -> Option<u64> {
            let folder = format!("{INTERFACES}/{}", interface.as_deref()?);
            root.text(&format!("{folder}/{file}"))?.parse().ok()
        };
        let sum = |what: &str| {
            let of = |way: &str| read(&format!("statistics/{way}_{what}")).unwrap_or(0);
            of("rx") + of("tx")
        };
        Self {
            name: root.text("proc/sys/kernel/hostname").unwrap_or_default(),
            mtu: read("mtu"),
            path_mtu,
            speed: read("speed"),
            packets: sum("packets"),
            faults: sum("errors") + sum("dropped"),
            trained_down: here::trained_down(&root),
            interface,
        }
    }
}
