//! The turns of ranks that a machine does not notice: ranks that such a turn takes to each other have equal links,
//! paths and speeds, so that one of them stands for the others.

use super::machine::Machine;
use super::node_images::Images;
use roundelay_base::ids::RankId;
use roundelay_base::turns::Turns;
use roundelay_topology::routes::Routes;
use roundelay_topology::{NodeId, Routing};

/// The most ranks from which choices of paths are followed.
const SOURCES: usize = 1 << 8;

/// Turns that take a machine to itself: in each digit all multiples of a step.
pub(super) struct MachineTurns {
    turns: Turns,
    /// The step of each digit; the radix where no turn of the digit takes the machine to itself.
    steps: Vec<u32>,
    /// The number of these turns.
    each: u32,
    /// The link that stands for each link, and the number of links that it stands for.
    stands: Vec<u32>,
    sizes: Vec<u32>,
}

impl MachineTurns {
    /// Returns the turns among `turns`, of the first ranks of the machine's topology, that take `machine` to itself.
    pub(super) fn new(machine: &Machine, turns: &Turns) -> Self {
        let images = Images::new(machine, turns);
        // Machines with links of several kinds have paths by other rules than their lengths.
        if machine.topology.has_kinds() {
            return Self::of_steps(turns, &images, turns.radices().to_vec());
        }
        let found = Self::of_steps(turns, &images, steps(turns, |by| images.links(by).is_some()));
        match machine.routing {
            Routing::Ecmp => found,
            Routing::DModK => found.that_choose_alike(machine, &images),
        }
    }

    fn of_steps(turns: &Turns, images: &Images<'_>, steps: Vec<u32>) -> Self {
        let generators = generators(turns, &steps);
        let links: Vec<_> = generators.iter().filter_map(|by| images.links(*by)).collect();
        let count = images.machine.topology.links().len();
        let stands = orbits(count, &links);
        let mut sizes = vec![0; count];
        for stand in &stands {
            sizes[*stand as usize] += 1;
        }
        let each = turns.radices().iter().zip(&steps).map(|(radix, step)| radix / step).product();
        Self { turns: turns.clone(), steps, each, stands, sizes }
    }

    /// Returns those of the turns that take chosen paths to chosen paths, where a choice goes by the number of the
    /// destination: they keep its remainder, and leave the nodes in place among which there is a choice.
    fn that_choose_alike(self, machine: &Machine, images: &Images<'_>) -> Self {
        let turns = &self.turns;
        let none = || Self::of_steps(turns, images, turns.radices().to_vec());
        let mut routes = Routes::new(&machine.topology, machine.routing);
        let (mut numbers, mut chosen) = (Vec::new(), Vec::new());
        for rank in self.standing().take(SOURCES + 1) {
            let Some((more, nodes)) = routes.choices(NodeId(rank)) else { return none() };
            numbers.extend(more);
            chosen.extend(nodes);
        }
        if self.standing().nth(SOURCES).is_some() {
            return none();
        }
        numbers.sort_unstable();
        numbers.dedup();
        chosen.sort_unstable();
        chosen.dedup();
        let stays = |by: u32| {
            images
                .nodes(by)
                .is_some_and(|image| chosen.iter().all(|node| image[node.index()] == *node))
        };
        // Then the other ranks choose among the same nodes.
        if !generators(turns, &self.steps).into_iter().all(stays) {
            return none();
        }
        let keeps = |by: u32| {
            let alike = |rank: RankId| {
                let turned = turns.turn(rank.0, by);
                numbers.iter().all(|number| turned % number == rank.0 % number)
            };
            images.links(by).is_some() && stays(by) && turns.ranks().all(alike)
        };
        Self::of_steps(turns, images, steps(turns, keeps))
    }

    /// The number of ranks that each rank stands for, itself among them.
    pub(super) fn each(&self) -> u32 {
        self.each
    }

    /// Returns the ranks that stand for all ranks.
    pub(super) fn standing(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.turns.nranks()).filter(|rank| self.stands_for(*rank) == *rank)
    }

    /// Returns the rank that stands for `rank`.
    fn stands_for(&self, rank: u32) -> u32 {
        let digit =
            |(at, step): (usize, &u32)| self.turns.digit(rank, at) % step * self.turns.weight(at);
        self.steps.iter().enumerate().map(digit).sum()
    }

    /// Returns a pair of ranks turned so that the second is a rank that stands for others.
    pub(super) fn to_standing(&self, from: u32, to: u32) -> (u32, u32) {
        let stand = self.stands_for(to);
        (self.turns.turn(from, self.turns.turn_between(to, stand)), stand)
    }

    /// Returns the pair of ranks whose path stands for that of `from` and `to`: data goes from a rank that stands for
    /// others.
    pub(super) fn pair(&self, from: RankId, to: RankId) -> (RankId, RankId) {
        let (to, from) = self.to_standing(to.0, from.0);
        (RankId(from), RankId(to))
    }

    /// Returns the link that stands for a link.
    pub(super) fn link(&self, link: usize) -> u32 {
        self.stands[link]
    }

    /// Replaces the links of a path, and the shares of its data on them, by links that stand for others, and the load
    /// that each has of all paths that the path stands for.
    pub(super) fn load(&self, way: &mut Vec<(u32, f64)>) {
        for (link, share) in way.iter_mut() {
            *link = self.stands[*link as usize];
            *share *= f64::from(self.each) / f64::from(self.sizes[*link as usize]);
        }
        way.sort_unstable_by_key(|(link, _)| *link);
        way.dedup_by(|after, before| {
            let same = before.0 == after.0;
            if same {
                before.1 += after.1;
            }
            same
        });
    }
}

/// Returns for each digit the least step of which all multiples are good turns; the radix where there is none.
fn steps(turns: &Turns, good: impl Fn(u32) -> bool) -> Vec<u32> {
    let step = |(digit, radix): (usize, &u32)| {
        let mut divisors = (1..*radix).filter(|step| radix.is_multiple_of(*step));
        divisors.find(|step| good(step * turns.weight(digit))).unwrap_or(*radix)
    };
    turns.radices().iter().enumerate().map(step).collect()
}

/// Returns the turns by one step of each digit.
fn generators(turns: &Turns, steps: &[u32]) -> Vec<u32> {
    let digits = steps.iter().enumerate().filter(|(digit, step)| **step < turns.radices()[*digit]);
    digits.map(|(digit, step)| step * turns.weight(digit)).collect()
}

/// Returns for each of `count` links the first of the links to which the images take it.
fn orbits(count: usize, images: &[Vec<u32>]) -> Vec<u32> {
    let mut stands = vec![u32::MAX; count];
    let mut open = Vec::new();
    for link in 0..count as u32 {
        if stands[link as usize] != u32::MAX {
            continue;
        }
        stands[link as usize] = link;
        open.push(link);
        while let Some(next) = open.pop() {
            // The images of a permutation again and again lead back, so no inverse is needed.
            for to in images.iter().map(|image| image[next as usize]) {
                if stands[to as usize] == u32::MAX {
                    stands[to as usize] = link;
                    open.push(to);
                }
            }
        }
    }
    stands
}
