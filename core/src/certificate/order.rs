//! The order of a reduction as a certificate has it.

use crate::dtype::DType;
use crate::json::Json;
use crate::verify::{Proof, ReductionOrder, Sameness};

/// The agreement of reduction orders.
#[derive(Clone, Debug)]
pub struct SameOrder {
    /// The weakest of all modes.
    pub weakest: OrderFacts,
    /// The order of a run in place, where it may differ.
    pub in_place: Option<OrderFacts>,
    /// Between a run in place and one out of place, where these may differ.
    pub in_both_modes: Option<Sameness>,
    /// For each promise that does not hold, two results that show it.
    pub witnesses: Vec<OrderWitness>,
}

/// The facts of an order, in one mode or the weakest of all.
#[derive(Clone, Debug)]
pub struct OrderFacts {
    /// The order: what agrees, and the roundings of a contribution.
    pub order: ReductionOrder,
    /// Whether the last rounding is the division of an average, which comes after its sum is rounded.
    pub average_rounds_again: bool,
}

/// Two results that show that a promise does not hold.
#[derive(Clone, Debug)]
pub struct OrderWitness {
    /// The promise, as `#[order(…)]` names it.
    pub promise: &'static str,
    /// The ranks that hold the results.
    pub ranks: [u32; 2],
    /// The pieces of the results.
    pub pieces: [String; 2],
    /// The orders in which the pieces are reduced.
    pub orders: [String; 2],
    /// Whether the two differ in place only.
    pub in_place: bool,
}

impl SameOrder {
    pub(super) fn of(proof: &Proof) -> Option<Self> {
        let reduction = proof.reduction.as_ref()?;
        let facts = |order: &ReductionOrder| OrderFacts {
            order: *order,
            average_rounds_again: proof.scale_outputs,
        };
        let witnesses = reduction.witnesses.iter().map(|(class, witness)| OrderWitness {
            promise: class.name(),
            ranks: witness.ranks.map(|rank| rank.0),
            pieces: witness.pieces.clone(),
            orders: witness.orders.clone(),
            in_place: witness.in_place,
        });
        Some(Self {
            weakest: facts(&reduction.in_every_mode()),
            in_place: reduction.in_place.as_ref().map(facts),
            in_both_modes: proof.one_mode.is_some().then_some(reduction.modes),
            witnesses: witnesses.collect(),
        })
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = self.weakest.lines().to_vec();
        lines.extend(self.in_both_modes.map(|modes| {
            let modes = match modes {
                Sameness::Exact => "the same",
                Sameness::Commuted => "the same up to swapped operands",
                Sameness::Differs => "not the same",
            };
            format!("in place and out of place, the order is {modes}")
        }));
        lines
    }

    pub(super) fn json(&self) -> Json {
        let mut fields = self.weakest.fields();
        fields.extend(self.in_place.as_ref().map(|o| ("in_place", Json::Object(o.fields()))));
        fields.extend(self.in_both_modes.map(|modes| ("in_both_modes", word(modes))));
        let witnesses = self.witnesses.iter().map(OrderWitness::json).collect();
        fields.push(("witnesses", Json::List(witnesses)));
        Json::Object(fields)
    }
}

impl OrderFacts {
    /// Returns the largest error of a sum in an element type, as a share of the sum of the absolute values.
    pub fn error_bound(&self, dtype: DType) -> f64 {
        self.order.error_bound(dtype)
    }

    /// Returns two lines for a terminal.
    fn lines(&self) -> [String; 2] {
        let bound = |dtype: DType| format!("{:.1e} ({dtype})", self.error_bound(dtype));
        let ReductionOrder { roundings, depth, .. } = self.order;
        [
            self.order.to_string(),
            format!(
                "roundings: {roundings} in narrow floats{}, {depth} in f32; error <= {}, {} of sum |x|",
                if self.average_rounds_again { " (the last divides an average)" } else { "" },
                bound(DType::Bf16),
                bound(DType::F32),
            ),
        ]
    }

    fn fields(&self) -> Vec<(&'static str, Json)> {
        let order = &self.order;
        let mut fields = vec![
            ("on_all_ranks", word(order.ranks)),
            ("for_all_elements", word(order.elements)),
            ("for_all_counts", word(order.counts)),
            ("in_rank_order", order.in_rank_order.into()),
            ("roundings", order.roundings.into()),
        ];
        if !order.every_run {
            fields.push(("in_every_run", false.into()));
        }
        if self.average_rounds_again {
            fields.push(("average_rounds_again", true.into()));
        }
        fields.push(("roundings_of_f32", order.depth.into()));
        let floats = DType::ALL.iter().filter(|dtype| dtype.is_float());
        let mut bounds: Vec<(&'static str, Json)> =
            floats.map(|d| (d.name(), self.error_bound(*d).into())).collect();
        bounds.sort_unstable_by_key(|(name, _)| *name);
        fields.push(("error_bounds", Json::Object(bounds)));
        fields
    }
}

impl OrderWitness {
    fn json(&self) -> Json {
        Json::Object(vec![
            ("promise", self.promise.into()),
            ("ranks", Json::list(self.ranks)),
            ("pieces", Json::list(&self.pieces)),
            ("orders", Json::list(&self.orders)),
            ("in_place", self.in_place.into()),
        ])
    }
}

/// Returns the word for an agreement.
fn word(same: Sameness) -> Json {
    Json::from(match same {
        Sameness::Exact => "exact",
        Sameness::Commuted => "commuted",
        Sameness::Differs => "differs",
    })
}
