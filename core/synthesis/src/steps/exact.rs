//! Schedules of the fewest steps and rounds, by a search that is exact: SCCL's k-synchronous model, as clauses for a
//! SAT solver.
//!
//! A schedule has steps, and each step has rounds; in a round a link carries as many chunks as its capacity is times
//! that of the slowest link. A chunk that a rank receives in a step leaves it in a later step. So the time is a
//! latency for each step, and a chunk's time on the slowest link for each round.
//!
//! The time at which a rank has a chunk is encoded by order: a variable for each step tells whether the chunk is
//! there by its end. Counters tell how many chunks a link carries in a step.

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface as _, SolverOpts, lbool};

use super::{Send, Spread};
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_topology::routes::Routes;
use roundelay_topology::{Fabric, NodeId, Problem, Routing, bounds};

/// The most ranks that are searched.
const RANKS: u32 = 8;
/// The most clauses of counters.
const CLAUSES: usize = 1 << 22;
/// The most chunks a round of a link.
const FASTEST: f64 = 64.0;

/// The reason why a search gives no rounds.
pub(super) enum Miss {
    /// There are none.
    None,
    /// The search was given up.
    Unknown,
    /// The question makes no sense.
    Wrong(Problem),
}

impl From<Problem> for Miss {
    fn from(problem: Problem) -> Self {
        Self::Wrong(problem)
    }
}

/// The size of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The chunks of each root's block.
    pub chunks: u32,
    /// The steps, each of which takes a latency.
    pub steps: u32,
    /// The rounds of all steps together.
    pub rounds: u32,
}

/// Counts conflicts, and stops at the last one that is paid for.
struct Budget(u64);

impl Callbacks for Budget {
    fn on_new_clause(&mut self, _: &[Lit], kind: ClauseKind) {
        if matches!(kind, ClauseKind::Learnt) {
            self.0 = self.0.saturating_sub(1);
        }
    }

    fn stop(&self) -> bool {
        self.0 == 0
    }
}

/// Returns rounds of that size, a list for each step, after at most `conflicts` conflicts of the solver.
pub(super) fn rounds(
    topology: &Fabric,
    nranks: u32,
    root: Option<RankId>,
    size: Size,
    conflicts: u64,
) -> Result<Spread, Miss> {
    if nranks > RANKS {
        let title =
            format!("{nranks} ranks are too many for an exact search; the most are {RANKS}");
        return Err(Problem::new(Code::BadTopology, title).into());
    }
    if size.chunks == 0 || size.steps == 0 || size.rounds < size.steps {
        let title = "a schedule has a chunk and a step, and each step has a round";
        return Err(Problem::new(Code::BadParameter, title).into());
    }
    let network = Network::new(topology, nranks);
    let wide = |link: &(u32, Vec<usize>)| link.0 as usize * (size.rounds - size.steps + 1) as usize;
    let chunks = size.chunks as usize * nranks as usize;
    let counters = network.links.iter().map(|link| {
        let inputs = chunks.saturating_mul(link.1.len());
        inputs.saturating_mul(size.steps as usize).saturating_mul(inputs.min(wide(link)))
    });
    if counters.fold(0, usize::saturating_add) > CLAUSES {
        let title = format!(
            "{} chunks in {} rounds are too many for an exact search",
            size.chunks, size.rounds
        );
        return Err(Problem::new(Code::BadTopology, title).into());
    }
    // A size that a cut forbids is a pigeonhole, and hard for clauses.
    let (collective, blocks) = match root {
        None => (Collective::AllGather, nranks),
        Some(_) => (Collective::Broadcast, 1),
    };
    let bound = bounds::bound(topology, nranks, collective, root.unwrap_or(RankId(0)))?.per_byte;
    let least = bound.value() * f64::from(blocks) * f64::from(size.chunks) * network.slowest;
    if f64::from(size.rounds) + 1e-6 < least {
        return Err(Miss::None);
    }
    Formula::new(&network, nranks, root, size, conflicts).found()
}

/// The linked pairs of ranks, and the links between them.
struct Network {
    pairs: Vec<(u32, u32)>,
    /// For each link in use, its chunks a round and its pairs.
    links: Vec<(u32, Vec<usize>)>,
    /// The capacity of the slowest link, in those of the topology.
    slowest: f64,
}

impl Network {
    fn new(topology: &Fabric, nranks: u32) -> Self {
        let mut routes = Routes::new(topology, Routing::DModK);
        let mut pairs = Vec::new();
        // For each link, the greatest share that a pair has on it, and its pairs.
        let mut over = vec![(0.0_f64, Vec::new()); topology.links().len()];
        for (from, to) in (0..nranks).flat_map(|from| (0..nranks).map(move |to| (from, to))) {
            if topology.are_linked(RankId(from), RankId(to)) {
                routes.way(NodeId(from), NodeId(to), |link, share| {
                    over[link].0 = over[link].0.max(share);
                    over[link].1.push(pairs.len());
                });
                pairs.push((from, to));
            }
        }
        let links = over.into_iter().zip(topology.links()).filter(|(over, _)| !over.1.is_empty());
        let links: Vec<_> = links
            .map(|((share, pairs), link)| {
                (link.capacity.num() as f64 / link.capacity.den() as f64 / share, pairs)
            })
            .collect();
        let slowest = links.iter().map(|(speed, _)| *speed).fold(f64::INFINITY, f64::min);
        let chunks = |speed: f64| (speed / slowest + 1e-9).floor().min(FASTEST) as u32;
        let links = links.into_iter().map(|(speed, pairs)| (chunks(speed), pairs)).collect();
        Self { pairs, links, slowest }
    }
}

/// The clauses of a question.
struct Formula<'n> {
    network: &'n Network,
    nranks: u32,
    root: Option<RankId>,
    size: Size,
    solver: Solver<Budget>,
    /// A literal that is true.
    yes: Lit,
    /// For each chunk and pair, whether the second rank has the chunk from the first.
    sends: Vec<Vec<Option<Lit>>>,
    /// For each chunk, rank and step, whether the rank has the chunk after this step; before the first step at 0.
    there: Vec<Vec<Vec<Lit>>>,
}

impl<'n> Formula<'n> {
    fn new(
        network: &'n Network,
        nranks: u32,
        root: Option<RankId>,
        size: Size,
        conflicts: u64,
    ) -> Self {
        let mut solver = Solver::new(SolverOpts::default(), Budget(conflicts));
        let yes = Lit::new(solver.new_var_default(), true);
        solver.add_clause_reuse(&mut vec![yes]);
        let mut search =
            Self { network, nranks, root, size, solver, yes, sends: Vec::new(), there: Vec::new() };
        for chunk in 0..size.chunks * if root.is_some() { 1 } else { nranks } {
            search.spread(chunk);
        }
        search.order();
        search.load();
        search
    }

    /// The root of a chunk.
    fn owner(&self, chunk: u32) -> u32 {
        self.root.map_or(chunk / self.size.chunks, |root| root.0)
    }

    fn fresh(&mut self) -> Lit {
        Lit::new(self.solver.new_var_default(), true)
    }

    fn clause(&mut self, literals: impl IntoIterator<Item = Lit>) {
        self.solver.add_clause_reuse(&mut literals.into_iter().collect());
    }

    /// The way of one chunk: each rank but its root has it from one rank, which had it a step before.
    fn spread(&mut self, chunk: u32) {
        let (network, owner) = (self.network, self.owner(chunk));
        let steps = self.size.steps as usize;
        let mut there = Vec::new();
        for rank in 0..self.nranks {
            let mut row = vec![if rank == owner { self.yes } else { !self.yes }];
            for step in 1..=steps {
                let known = rank == owner || step == steps;
                let now = if known { self.yes } else { self.fresh() };
                self.clause([!row[step - 1], now]);
                row.push(now);
            }
            there.push(row);
        }
        let mut sends = Vec::new();
        for &(from, to) in &network.pairs {
            if to == owner {
                sends.push(None);
                continue;
            }
            let send = self.fresh();
            sends.push(Some(send));
            for step in 1..=steps {
                let (before, after) = (there[from as usize][step - 1], there[to as usize][step]);
                self.clause([!send, !after, before]);
            }
        }
        for rank in (0..self.nranks).filter(|rank| *rank != owner) {
            let into = network.pairs.iter().zip(&sends).filter(|((_, to), _)| *to == rank);
            let into: Vec<Lit> = into.filter_map(|(_, send)| *send).collect();
            for (at, one) in into.iter().enumerate() {
                for other in &into[at + 1..] {
                    self.clause([!*one, !*other]);
                }
            }
            self.clause(into);
        }
        self.sends.push(sends);
        self.there.push(there);
    }

    /// Chunks of one root can change places: they reach the rank after the root in their order.
    fn order(&mut self) {
        for chunk in 1..self.there.len() {
            let owner = self.owner(chunk as u32);
            if owner != self.owner(chunk as u32 - 1) {
                continue;
            }
            let rank = ((owner + 1) % self.nranks) as usize;
            for step in 1..self.size.steps as usize {
                let (earlier, later) =
                    (self.there[chunk - 1][rank][step], self.there[chunk][rank][step]);
                self.clause([!later, earlier]);
            }
        }
    }

    /// The rounds of the steps, and what links carry in these.
    fn load(&mut self) {
        let network = self.network;
        let spare = (self.size.rounds - self.size.steps) as usize;
        // Whether the steps so far have at least as many rounds more than one each.
        let mut sum = vec![!self.yes; spare];
        for step in 1..=self.size.steps as usize {
            let more: Vec<Lit> = (0..spare).map(|_| self.fresh()).collect();
            for pair in more.windows(2) {
                self.clause([!pair[1], pair[0]]);
            }
            let next: Vec<Lit> = (0..spare).map(|_| self.fresh()).collect();
            for before in 0..=spare {
                for own in 0..=spare {
                    let both = (before > 0).then(|| !sum[before - 1]).into_iter();
                    let both = both.chain((own > 0).then(|| !more[own - 1]));
                    match before + own {
                        0 => {}
                        all if all > spare => self.clause(both),
                        all => self.clause(both.chain([next[all - 1]])),
                    }
                }
            }
            sum = next;
            for (chunks, pairs) in &network.links {
                self.carry(step, *chunks as usize, pairs, &more);
            }
        }
    }

    /// A link that carries `chunks` chunks a round, in a step whose rounds beyond one are `more`.
    fn carry(&mut self, step: usize, chunks: usize, pairs: &[usize], more: &[Lit]) {
        let mut carried = Vec::new();
        for chunk in 0..self.there.len() {
            for pair in pairs {
                let Some(send) = self.sends[chunk][*pair] else { continue };
                let there = &self.there[chunk][self.network.pairs[*pair].1 as usize];
                let (before, after) = (there[step - 1], there[step]);
                let now = self.fresh();
                self.clause([!send, !after, before, now]);
                carried.push(now);
            }
        }
        let most = chunks * (more.len() + 1);
        // Whether at least as many of the chunks up to here are carried.
        let mut count: Vec<Lit> = Vec::new();
        for now in carried {
            let mut next: Vec<Lit> = Vec::new();
            for at in 0..=count.len().min(most) {
                let enough = at.checked_sub(1).map(|below| !count[below]);
                if at == most {
                    self.clause([!now].into_iter().chain(enough));
                    continue;
                }
                let sum = self.fresh();
                self.clause([!now, sum].into_iter().chain(enough));
                if let Some(known) = count.get(at) {
                    self.clause([!*known, sum]);
                }
                if at >= chunks {
                    self.clause([!sum, more[at / chunks - 1]]);
                }
                next.push(sum);
            }
            count = next;
        }
    }

    /// Solves the clauses, and reads the sends off the solution.
    fn found(mut self) -> Result<Spread, Miss> {
        let answer = self.solver.solve_limited(&[]);
        if answer == lbool::FALSE {
            return Err(Miss::None);
        } else if answer != lbool::TRUE {
            return Err(Miss::Unknown);
        }
        let holds = |literal: Lit| self.solver.value_lit(literal) == lbool::TRUE;
        let mut rounds = vec![Vec::new(); self.size.steps as usize];
        for (chunk, (sends, there)) in (0..).zip(self.sends.iter().zip(&self.there)) {
            for (&(from, to), send) in self.network.pairs.iter().zip(sends) {
                let step = there[to as usize].iter().position(|there| holds(*there));
                if let (true, Some(step)) = (send.is_some_and(holds), step) {
                    rounds[step - 1].push(Send {
                        from: RankId(from),
                        to: RankId(to),
                        root: RankId(self.owner(chunk)),
                        chunk: chunk % self.size.chunks,
                        told: 0,
                    });
                }
            }
        }
        rounds.retain(|sends| !sends.is_empty());
        for (sends, round) in rounds.iter_mut().zip(0..) {
            for send in sends {
                send.told = round;
            }
        }
        let (nranks, root, chunks) = (self.nranks, self.root, self.size.chunks);
        let found = Spread { nranks, root, chunks, rounds };
        found.check()?;
        Ok(found)
    }
}
