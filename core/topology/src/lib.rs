//! The machine that an algorithm runs on: ranks and switches, joined by directed links with a capacity and a latency.
//!
//! Ranks are the nodes `0..nranks`; every other node forwards. Only switches of [`Fabric::reducing_tree`] also reduce and
//! copies. The graph determines the pairs that may talk, rings and trees, NCCL's paths, and lower bounds of the time of any
//! algorithm.

pub mod bounds;
pub mod draft;
pub mod file;
pub mod flow;
mod gpus;
pub mod host;
mod islands;
pub mod nccl;
pub mod paths;
mod reach;
#[doc(hidden)]
pub mod routes;
pub mod search;
pub mod shape;
mod shares;

pub use gpus::{CAPABILITIES, GpuModel, Gpus, ReducingTree};
use reach::Reach;
use roundelay_base::diagnostics::Code;
pub use roundelay_base::diagnostics::problem::Problem;
use roundelay_base::ids::RankId;
use roundelay_base::rational::Rat;
pub use routes::Routing;

/// A node of a topology: rank r is node r, switches follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The position of the node in [`Fabric::nodes`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<RankId> for NodeId {
    fn from(rank: RankId) -> Self {
        Self(rank.0)
    }
}

/// The kind of a node, in NCCL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A rank: the only nodes that send, receive and reduce.
    Rank,
    /// A switch inside a machine, such as an `NVSwitch`; also the crossbar of a constructed topology.
    NvSwitch,
    /// A PCI switch or bridge.
    Pci,
    /// A CPU, with the PCI root complex that it carries.
    Cpu,
    /// A cache that cores share.
    Cache,
    /// A network card.
    Nic,
    /// A network switch, or the network as a whole.
    Net,
}

/// The maker of a CPU, where NCCL's rules for paths between ranks depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// Intel, x86: its host bridge slows ranks that talk through it.
    Intel,
    /// AMD, x86: two ranks may talk through its host bridge.
    Amd,
}

/// A node of a topology: a rank, a switch, or a part of a machine that forwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The name in tables and pictures.
    pub name: String,
    /// The kind of the node; only ranks send, receive and reduce.
    pub kind: NodeKind,
    /// The number of the island, leaf or machine that it belongs to, where the topology has groups.
    pub group: Option<u32>,
    /// The maker, if the node is a CPU whose maker matters.
    pub vendor: Option<Vendor>,
}

/// The kind of a link; the worst link decides the type of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// `NVLink`, `xGMI`, or any link between cards: the link of constructed meshes, rings and crossbars.
    NvLink,
    /// Chip to chip: between a GPU and its CPU.
    C2c,
    /// PCI Express.
    Pci,
    /// Inside of a CPU: between a core, the caches and the memory of its node.
    Memory,
    /// The link between CPUs of one machine.
    Sys,
    /// A network link.
    Net,
}

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The node at which it begins.
    pub from: NodeId,
    /// The node at which it ends.
    pub to: NodeId,
    /// The kind of the link.
    pub kind: LinkKind,
    /// The bandwidth in bytes a second; in multiples of B, the bandwidth of one link, where
    /// [`Fabric::is_relative`].
    pub capacity: Rat,
    /// The latency in nanoseconds that a message takes beside its bytes.
    pub latency: u64,
}

/// A machine as a graph of ranks, switches and directed links, in which every rank reaches every other.
///
/// A [`Shape`](shape::Shape) has the forms of the language, [`nccl`] the machines that have a name, and [`draft`] builds
/// any graph. Capacities are in bytes a second, latencies in nanoseconds.
///
/// ```
/// use roundelay_base::ids::RankId;
/// use roundelay_topology::shape::Shape;
///
/// let broken = Shape::full_mesh(8).without(0, 1).build()?;
/// assert_eq!(broken.nranks(), 8);
/// assert!(!broken.are_linked(RankId(0), RankId(1)));
/// assert_eq!(broken.neighbors(RankId(0)).len(), 6);
/// # Ok::<(), roundelay_topology::Problem>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fabric {
    name: String,
    nodes: Vec<Node>,
    /// In the order of (from, to, kind), each at most once.
    links: Vec<Link>,
    /// The position in `links` of each node's first link; one more entry than nodes.
    first: Vec<u32>,
    nranks: u32,
    relative: bool,
    /// The GPUs, where the ranks are GPUs of a known model.
    gpus: Option<Gpus>,
    /// The switches that reduce, as the text or the file of the topology says.
    reducing: Vec<NodeId>,
    /// Whether some links are neither `NVLink` nor network.
    kinds: bool,
    /// The ranks that are reached through switches.
    reach: Reach,
}

impl Fabric {
    /// The most ranks that a topology has.
    pub const RANK_LIMIT: u32 = 1 << 16;
    /// The most ranks among which searches and bounds look at all pairs.
    pub const PAIRS_LIMIT: u32 = 1 << 12;
    /// The most links that a topology has, each counted in one direction.
    pub const LINK_LIMIT: usize = 1 << 22;

    /// The text that it was made from, or the name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of ranks.
    pub fn nranks(&self) -> u32 {
        self.nranks
    }

    /// The ranks in ascending order.
    pub fn ranks(&self) -> impl DoubleEndedIterator<Item = RankId> + use<> {
        (0..self.nranks).map(RankId)
    }

    /// All nodes: rank r at position r, and switches and other parts after the ranks.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All links, each in one direction, in the order of their begins and ends.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The links that begin at `node`.
    pub fn out(&self, node: NodeId) -> &[Link] {
        &self.links[self.first[node.index()] as usize..self.first[node.index() + 1] as usize]
    }

    /// Whether capacities are multiples of one link's bandwidth B, because none was given.
    pub fn is_relative(&self) -> bool {
        self.relative
    }

    /// The bandwidth of the fastest link in bytes a second; `None` where no bandwidth was given.
    pub fn fastest_link(&self) -> Option<f64> {
        let given = self.links.iter().filter(|_| !self.relative).map(|link| link.capacity);
        given.max().map(|fastest| fastest.num() as f64 / fastest.den() as f64)
    }

    /// Whether `node` is a rank, and not a switch or another part.
    pub fn is_rank(&self, node: NodeId) -> bool {
        node.0 < self.nranks
    }

    /// Whether data goes from `a` to `b` without passing through another rank: over a link, or through switches
    /// alone. No rank is linked to itself.
    pub fn are_linked(&self, a: RankId, b: RankId) -> bool {
        let (out, b) = (self.out(a.into()), NodeId::from(b));
        // Links to ranks are before links to switches.
        let (ranks, switches) = out.split_at(out.partition_point(|link| self.is_rank(link.to)));
        NodeId::from(a) != b
            && (ranks.binary_search_by_key(&b, |link| link.to).is_ok()
                || switches.iter().any(|link| self.reach.behind(link.to, b)))
    }

    /// The ranks to which `rank` is linked, in ascending order.
    pub fn neighbors(&self, rank: RankId) -> Vec<RankId> {
        let mut found = Vec::new();
        for link in self.out(rank.into()) {
            if self.is_rank(link.to) {
                found.push(RankId(link.to.0));
            } else {
                found.extend(self.reach.ranks(link.to).iter().map(|to| RankId(to.0)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found.retain(|other| *other != rank);
        found
    }

    /// The ranks that could carry data from `a` to `b`: `a` is linked to each, and each to `b`.
    pub fn relays(&self, a: RankId, b: RankId) -> Vec<RankId> {
        self.ranks().filter(|via| self.are_linked(a, *via) && self.are_linked(*via, b)).collect()
    }

    /// Checks that the topology has at least `nranks` ranks.
    ///
    /// # Errors
    /// E0604 where it has fewer.
    pub fn holds(&self, nranks: u32) -> Result<(), Problem> {
        if nranks <= self.nranks {
            return Ok(());
        }
        let (n, name) = (self.nranks, &self.name);
        let title = format!("`{name}` has {n} ranks, and the run has {nranks}");
        Err(Problem::new(Code::TopologyTooSmall, title)
            .help(format!("run it on at most {n} ranks, or give a topology of {nranks}")))
    }

    /// Checks that the topology has at least `nranks` ranks, and that these are few enough to look at all pairs.
    ///
    /// # Errors
    /// E0604 where the topology has fewer ranks, E0601 where they are too many.
    pub fn holds_pairs(&self, nranks: u32) -> Result<(), Problem> {
        self.holds(nranks)?;
        let most = Self::PAIRS_LIMIT;
        if nranks <= most {
            return Ok(());
        }
        let title = format!("{nranks} ranks are too many to search; the most are {most}");
        Err(Problem::new(Code::BadTopology, title))
    }

    /// Whether there are links of several kinds, as in a file about a real machine, so that the kind of a path
    /// matters more than its length.
    pub fn has_kinds(&self) -> bool {
        self.kinds
    }

    /// A copy with some of the links alone, which `keep` chooses.
    fn keeping(&self, keep: impl Fn(&Link) -> bool) -> Self {
        let links = self.links.iter().copied().filter(keep).collect();
        let (name, nodes) = (self.name.clone(), self.nodes.clone());
        let kept = Self::assemble(name, nodes, links, self.nranks, self.relative);
        Self { gpus: self.gpus, reducing: self.reducing.clone(), ..kept }
    }

    /// A copy with the direction of every link reversed.
    #[must_use]
    pub fn reverse(&self) -> Self {
        let turn = |l: &Link| Link { from: l.to, to: l.from, ..*l };
        let mut links: Vec<_> = self.links.iter().map(turn).collect();
        links.sort_by_key(|l| (l.from, l.to, l.kind));
        Self::assemble(self.name.clone(), self.nodes.clone(), links, self.nranks, self.relative)
    }

    /// Makes the topology of links that are sorted and checked.
    fn assemble(
        name: String,
        nodes: Vec<Node>,
        links: Vec<Link>,
        nranks: u32,
        relative: bool,
    ) -> Self {
        let mut first = vec![0; nodes.len() + 1];
        for link in &links {
            first[link.from.index() + 1] += 1;
        }
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        // The kinds are tested for each pair of ranks that talk, so the result is kept.
        let kinds = links.iter().any(|l| !matches!(l.kind, LinkKind::NvLink | LinkKind::Net));
        let (gpus, reach) = (None, Reach::default());
        let reducing = Vec::new();
        let mut topology =
            Self { name, nodes, links, first, nranks, relative, gpus, reducing, kinds, reach };
        topology.reach = Reach::new(&topology);
        topology
    }
}
