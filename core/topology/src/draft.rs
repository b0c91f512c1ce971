//! A topology that is being built: nodes and links as they are found, checked once when all are there.

use super::reach::groups;
use super::{Fabric, Link, LinkKind, Node, NodeId, NodeKind, Problem, Vendor};
use roundelay_base::diagnostics::Code;
use roundelay_base::ids::RankId;
use roundelay_base::rational::Rat;
use roundelay_base::units::plural;

/// A bandwidth that no link exceeds: 10^15 bytes a second.
pub const FASTEST: u64 = 1_000_000_000_000_000;
/// The longest latency: an hour, in nanoseconds.
pub const SLOWEST: u64 = 3_600_000_000_000;
/// The most switches of a topology that a file describes.
pub const SWITCHES: u64 = 1 << 16;
/// The largest common denominator of capacities.
const FINEST: u64 = 1 << 32;
/// The number of names listed before the rest is only counted.
const LISTED: usize = 8;

/// A topology that is being built, for graphs that no constructor of the language has: ranks first, then switches,
/// then links. Capacities are in bytes a second, or in multiples of B where the topology is relative, and latencies
/// in nanoseconds.
#[derive(Clone, Debug)]
pub struct Draft {
    name: String,
    nodes: Vec<Node>,
    links: Vec<Link>,
    nranks: u32,
    relative: bool,
    reducing: Vec<NodeId>,
}

impl Draft {
    /// A draft of `nranks` ranks without links. `relative` tells that capacities are multiples of one link's
    /// bandwidth b.
    ///
    /// # Errors
    /// E0601 for no ranks, or more than a topology can have.
    pub fn new(name: impl Into<String>, nranks: u64, relative: bool) -> Result<Self, Problem> {
        let limit = Fabric::RANK_LIMIT;
        if nranks == 0 || nranks > u64::from(limit) {
            let title = format!("a topology of {nranks} ranks; it takes 1..={limit}");
            return Err(Problem::new(Code::BadTopology, title));
        }
        let nranks = nranks as u32;
        let rank = |rank: u32| Node {
            name: rank.to_string(),
            kind: NodeKind::Rank,
            group: None,
            vendor: None,
        };
        let nodes = (0..nranks).map(rank).collect();
        let (links, reducing) = (Vec::new(), Vec::new());
        Ok(Self { name: name.into(), nodes, links, nranks, relative, reducing })
    }

    /// Puts `node` in a group.
    pub fn group(&mut self, node: NodeId, group: u32) {
        self.nodes[node.index()].group = Some(group);
    }

    /// Adds a node that is no rank, and returns its id.
    pub fn switch(
        &mut self,
        name: impl Into<String>,
        kind: NodeKind,
        group: Option<u32>,
    ) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { name: name.into(), kind, group, vendor: None });
        id
    }

    /// Returns the kind of a node.
    pub fn kind(&self, node: NodeId) -> NodeKind {
        self.nodes[node.index()].kind
    }

    /// Sets the maker of a CPU.
    pub fn vendor(&mut self, node: NodeId, vendor: Vendor) {
        self.nodes[node.index()].vendor = Some(vendor);
    }

    /// Says that a switch folds and copies data on the way.
    pub fn reduce_at(&mut self, switch: NodeId) {
        self.reducing.push(switch);
    }

    /// Adds a link in one direction.
    ///
    /// # Errors
    /// E0602 for a link of a node to itself; E0601 for a capacity or latency that makes no sense, or too many links.
    pub fn link(&mut self, link: Link) -> Result<(), Problem> {
        let ends = || format!("{} -> {}", self.named(link.from), self.named(link.to));
        if link.from == link.to {
            let title = format!("{} is linked to itself", self.named(link.from));
            return Err(Problem::new(Code::BadLink, title));
        }
        let (fast, slow) = (Rat::whole(FASTEST), Rat::whole(SLOWEST));
        if link.capacity == Rat::ZERO || link.capacity > fast {
            let title = format!("link {} carries {} bytes/s", ends(), link.capacity);
            return Err(Problem::new(Code::BadTopology, title)
                .help("bandwidths are more than 0 and at most 1000TB/s"));
        }
        if Rat::whole(link.latency) > slow {
            let title = format!("link {} takes {} ns for a message", ends(), link.latency);
            return Err(
                Problem::new(Code::BadTopology, title).help("latencies are at most an hour")
            );
        }
        if self.links.len() >= Fabric::LINK_LIMIT {
            let title = format!("a topology of more than {} links", Fabric::LINK_LIMIT);
            return Err(Problem::new(Code::BadTopology, title));
        }
        self.links.push(link);
        Ok(())
    }

    /// Adds a link in each direction between `a` and `b`.
    ///
    /// # Errors
    /// Those of [`Self::link`].
    pub fn cable(
        &mut self,
        a: NodeId,
        b: NodeId,
        kind: LinkKind,
        capacity: Rat,
        latency: u64,
    ) -> Result<(), Problem> {
        self.link(Link { from: a, to: b, kind, capacity, latency })?;
        self.link(Link { from: b, to: a, kind, capacity, latency })
    }

    /// Removes the links between ranks `a` and `b`, in both directions.
    ///
    /// # Errors
    /// E0602 where a rank does not exist, or no link joins the two.
    pub fn cut(&mut self, a: i64, b: i64) -> Result<(), Problem> {
        let rank = |rank: i64| {
            u32::try_from(rank).ok().filter(|r| *r < self.nranks).map(NodeId).ok_or_else(|| {
                let title = format!("`without ({a}, {b})`: there is no rank {rank}");
                Problem::new(Code::BadLink, title).note(format!("the ranks are 0..{}", self.nranks))
            })
        };
        let (from, to) = (rank(a)?, rank(b)?);
        if from == to {
            let title = format!("`without ({a}, {b})` names one rank twice");
            return Err(Problem::new(Code::BadLink, title));
        }
        let before = self.links.len();
        self.links.retain(|l| (l.from, l.to) != (from, to) && (l.from, l.to) != (to, from));
        if self.links.len() < before {
            return Ok(());
        }
        let title = format!("`without ({a}, {b})`: no link joins these two ranks");
        Err(Problem::new(Code::BadLink, title)
            .help("only links between two ranks can be cut, and each once"))
    }

    /// Makes the topology.
    ///
    /// # Errors
    /// E0601 for capacities that differ too finely, E0602 for a link that is named twice, E0603 where some ranks do
    /// not reach others.
    pub fn build(mut self) -> Result<Fabric, Problem> {
        self.links.sort_by_key(|l| (l.from, l.to, l.kind));
        let same = |l: &[Link]| (l[0].from, l[0].to, l[0].kind) == (l[1].from, l[1].to, l[1].kind);
        if let Some(twice) = self.links.windows(2).find(|pair| same(pair)) {
            let (from, to) = (self.named(twice[0].from), self.named(twice[0].to));
            let title = format!("the link {from} -> {to} is named twice");
            return Err(Problem::new(Code::BadLink, title)
                .help("name it once, with the bandwidth of all its lanes"));
        }
        self.common_unit()?;
        let Self { name, nodes, links, nranks, relative, reducing } = self;
        let mut topology = Fabric::assemble(name, nodes, links, nranks, relative);
        topology.reducing = reducing;
        topology.connected()?;
        Ok(topology)
    }

    /// Checks that capacities have a common unit that is not too small, in which bounds count them.
    fn common_unit(&self) -> Result<(), Problem> {
        let mut dens: Vec<u64> = self.links.iter().map(|l| l.capacity.den()).collect();
        dens.sort_unstable();
        dens.dedup();
        let unit = dens.into_iter().try_fold(1_u64, |unit, den| {
            // unit / den in lowest terms is (unit / gcd) / (den / gcd).
            Rat::new(unit, den)?.num().checked_mul(den).filter(|unit| *unit <= FINEST)
        });
        if unit.is_some() {
            return Ok(());
        }
        let title = "the bandwidths are fractions without a common denominator of a sensible size";
        Err(Problem::new(Code::BadTopology, title).help("round them to whole bytes a second"))
    }

    fn named(&self, node: NodeId) -> String {
        let name = &self.nodes[node.index()].name;
        if node.0 < self.nranks { format!("rank {name}") } else { name.clone() }
    }
}

impl Fabric {
    fn connected(&self) -> Result<(), Problem> {
        let parts = self.components();
        if let [_] = parts[..] {
            return Ok(());
        }
        let title =
            format!("the topology falls into {} parts that cannot reach each other", parts.len());
        let mut problem = Problem::new(Code::Disconnected, title);
        for part in parts.iter().take(LISTED) {
            problem = problem.note(part_text(part));
        }
        if parts.len() > LISTED {
            problem = problem.note(format!("and {} more parts", parts.len() - LISTED));
        }
        Err(problem.help("every rank must reach every other, through switches and other ranks"))
    }

    /// Returns the sets of ranks that reach each other, in order of their smallest rank.
    pub fn components(&self) -> Vec<Vec<RankId>> {
        let groups = groups(self, |_| true);
        let mut position = vec![None; groups.len()];
        let mut parts: Vec<Vec<RankId>> = Vec::new();
        for rank in self.ranks() {
            let Some(group) = groups[rank.index()] else { continue };
            let at = *position[group as usize].get_or_insert_with(|| {
                parts.push(Vec::new());
                parts.len() - 1
            });
            parts[at].push(rank);
        }
        parts
    }
}

fn part_text(ranks: &[RankId]) -> String {
    let shown: Vec<_> = ranks.iter().take(LISTED).map(ToString::to_string).collect();
    let more = match ranks.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let plural = plural(ranks.len());
    format!("a part: rank{plural} {}{more}", shown.join(", "))
}
