//! The proof of a schedule by the replay of one rank.

use std::sync::Arc;

use super::block_owners::blocks;
use super::findings::{of_all_ranks, signals};
use super::one_rank::OneRank;
use super::order::folded;
use super::reduction::{TooMany, reduction};
use super::values::Shapes;
use super::{Asymmetric, Representative, Way, representative};
use crate::diagnostics::Finding;
use crate::ids::RankId;
use crate::layout::{Algorithm, Leaves};
use crate::rational::Rat;
use crate::schedule::{OpKind, Operand};
use crate::stages::stage;
use crate::verify::completions::Completions;
use crate::verify::layout::BufferMode;
use crate::verify::ports::ports_in;
use crate::verify::ranking::fold;
use crate::verify::ranks::FollowedRanks;
use crate::verify::replay::{ModeState, Player, Replayed, Stop};
use crate::verify::report::Reporter;
use crate::verify::{self, Callers, Depth, Proof};

/// The proof of a schedule of which one rank stands for all.
#[derive(Clone, Debug)]
pub struct SymmetricProof {
    /// The rank that stands for all.
    pub of: Representative,
    /// The results of the proof. Ops are those of the representative; there are no orders of single outputs, and no ops
    /// after which averages divide.
    pub proof: Proof,
    /// Whether the proof holds for every vector of counts, one for each block: if not, E0319 at the first move that is
    /// right for equal counts alone. `None` for collectives whose ranks own no blocks, and where the proof does not tell.
    pub counts_by_block: Option<Result<(), Box<Finding>>>,
}

/// The reason why there is no proof by symmetry.
#[derive(Clone, Debug)]
pub enum NoProof {
    /// No rank stands for all: the direct proof decides.
    Asymmetric(Asymmetric),
    /// The schedule is wrong: all findings, the worst first.
    Wrong(Vec<Finding>),
}

impl SymmetricProof {
    /// Returns the line of a certificate that says why one rank stands for all.
    pub fn line(&self) -> String {
        let how = match self.of.way {
            Way::Followed => "followed through the program",
            Way::Compared => "all ranks compared",
        };
        format!("ranks do the same, turned by their number ({}, {how})", self.of.turns)
    }

    /// The ops of all ranks.
    pub fn ops(&self) -> u64 {
        self.of.totals.ops
    }

    /// The messages of all ranks, and the pieces of all messages.
    pub fn messages(&self) -> (u64, u64) {
        (self.of.totals.messages, self.of.totals.pieces)
    }

    /// Returns the depth of fifos, where there are fifos.
    pub fn depth(&self) -> Option<Depth> {
        if verify::has_fifo(&self.of.own) {
            verify::depth(&folded(&self.of.own, &self.of.turns))
        } else {
            None
        }
    }

    /// Returns the data that passes through the port of a rank, in units of the count.
    pub fn busiest_port(&self) -> f64 {
        let own = &self.of.own;
        let mut ports = [0.0_f64; 2];
        for op in own.ops.iter().filter(|op| op.kind == OpKind::Move) {
            for (_, _, region) in own.crossing(RankId(0), op) {
                let region = &own.regions[region.index()];
                let width = region.hi.minus(region.lo).unwrap_or(Rat::ZERO);
                // A turned image of each transfer goes the other way.
                let width = width.num() as f64 / width.den() as f64;
                ports = ports.map(|port| port + width);
            }
        }
        ports[0].max(ports[1])
    }
}

/// Proves an algorithm for `nranks` ranks by the replay of one rank that stands for all.
///
/// # Errors
/// The reason why no rank stands for all, or the findings, the worst first: E02xx where it cannot be laid out, E03xx
/// where it is wrong.
pub fn prove<A: Algorithm + ?Sized>(algorithm: &A, nranks: u32) -> Result<SymmetricProof, NoProof> {
    let of =
        stage("symmetry", || representative(algorithm, nranks)).map_err(|left| match left {
            Asymmetric::Faulty(found) => NoProof::Wrong(found),
            left => NoProof::Asymmetric(left),
        })?;
    proved(of)
}

/// Proves a schedule by the replay of its representative.
pub(crate) fn proved(of: Representative) -> Result<SymmetricProof, NoProof> {
    let (own, turns) = (&of.own, &of.turns);
    let outside = |why: &str| NoProof::Asymmetric(Asymmetric::Other(why.to_owned()));
    let order = stage("order", || verify::in_order(&folded(own, turns)))
        .map_err(|found| NoProof::Wrong(signals(own, found)))?;
    let in_place = own.collective.has_in_place() && !own.out_of_place;
    let modes = &BufferMode::BOTH[..=usize::from(in_place)];
    let reporter = Reporter::new(own);
    let replayed = Replayed {
        schedule: own,
        order: &order,
        reporter: &reporter,
        again: order.shares_scratch(own),
        callers: Callers::Each,
    };
    let layouts = modes.iter().map(|mode| OneRank::layout(&of, *mode));
    let ranks = OneRank::new(&of, &order);
    let mut player = Player::new(&replayed, ranks, Shapes::new(&of.turns), layouts);
    stage("replay", || player.play()).map_err(|Stop { at, why }| {
        let leaves = Leaves { at: own.op(at).at, exact: None, why: why.to_owned() };
        NoProof::Asymmetric(Asymmetric::Leaves(leaves))
    })?;
    let mut states = player.states.iter_mut().map(|state| std::mem::take(&mut state.findings));
    let apart = states.next().unwrap_or_default();
    if !apart.is_empty() {
        return Err(NoProof::Wrong(of_all_ranks(fold(apart))));
    }
    let found = states.next().unwrap_or_default();
    if !found.is_empty() {
        let found = fold(found).into_iter().map(verify::only_in_place).collect();
        return Err(NoProof::Wrong(of_all_ranks(found)));
    }
    let reduces = own.collective.reduces();
    let told = if player.one_mode.is_some() { modes.len() } else { 1 };
    let reduction = reduces
        .then(|| stage("order of reduction", || reduction(&of, &player, told)))
        .transpose()
        .map_err(|TooMany| outside("its results have too many different orders"))?;
    let ranks = &player.ranks;
    let memories = player.states.iter().enumerate().map(|(mode, ModeState { layout, .. })| {
        let place = move |operand: &Operand| {
            let images = ranks.images(ranks.place(layout, mode, *operand));
            images.map(|cells| cells.start as usize..cells.end as usize)
        };
        (layout.size as usize, place)
    });
    let link = |of: RankId, peer: RankId| (RankId(0), RankId(turns.turn_between(of.0, peer.0)));
    let (steps, ports) = ports_in(own, &order, memories, 1, link);
    let completions = player.states.iter_mut().map(|state| std::mem::take(&mut state.completions));
    let at_end = reduces && Completions::uniform(completions).is_none();
    let proof = Proof {
        finish: Vec::new(),
        scale_outputs: false,
        in_place,
        one_mode: player.one_mode.map(|at| Box::new(reporter.one_mode(at))),
        reduce_depth: player.reduce_depth,
        steps,
        ports,
        reduction,
        orders: Arc::default(),
    };
    let proof = if at_end { proof.divided_at_end() } else { proof };
    let by_block = own.collective.blocks(own.nranks).and_then(|_| blocks(&of, &order));
    if let (Some(at), None) = (own.demands.uneven, &by_block) {
        let why = "a count for each block is demanded, and turns cut units of scratch".to_owned();
        return Err(NoProof::Asymmetric(Asymmetric::Leaves(Leaves { at, exact: None, why })));
    }
    let unmet = verify::unmet_by(own, &proof, || by_block.clone().and_then(Result::err));
    if !unmet.is_empty() {
        return Err(NoProof::Wrong(unmet));
    }
    drop(player);
    Ok(SymmetricProof { of, proof, counts_by_block: by_block })
}
