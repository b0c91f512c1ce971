//! The demands on a schedule beyond being right: links that exist, resources that are available, one order of
//! reduction. Its author states them by attributes, a caller by flags; like the places of statements they are no part
//! of the ops, nor of the text form.

use std::sync::Arc;

use crate::ids::SpanId;
use crate::topology::Topology;
use crate::values::order_class::OrderClass;
use crate::values::resource::Resource;

/// The demands of an author or a caller on a schedule beyond being right, each with its place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// The topology whose links alone may carry data and signals (E0313).
    pub topology: Option<(Arc<Topology>, SpanId)>,
    /// Whether the algorithm asks for rings on that topology, so that other rings may help where a link is missing.
    pub rings: bool,
    /// The promises that the order of reduction must keep (E0317).
    pub order: Vec<(OrderClass, SpanId)>,
    /// The most roundings of a result in a type narrower than f32 (E0320).
    pub roundings: Option<(u32, SpanId)>,
    /// Set where the schedule must serve a count for each block (E0319).
    pub uneven: Option<SpanId>,
    /// The limits of resources (E0315).
    pub budgets: Vec<Budget>,
    /// The reason why counts must be multiples of [`Schedule::multiple`](super::Schedule::multiple), in the words of
    /// the first demand.
    pub multiple: Option<Arc<str>>,
}

impl Demands {
    /// Whether a promise about the order or the rounding of reductions is demanded: reductions then never nest otherwise
    /// than the author wrote them.
    pub fn of_reductions(&self) -> bool {
        !self.order.is_empty() || self.roundings.is_some()
    }

    /// Returns the demands on calls, which hold for every form that the schedule is turned into.
    pub(crate) fn of_calls(&self) -> Self {
        Self { multiple: self.multiple.clone(), ..Self::default() }
    }
}

/// The most that a schedule may take of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The resource.
    pub resource: Resource,
    /// The most that the schedule may take, in the unit of [`Resource`].
    pub most: u64,
    /// The place of the limit in the source.
    pub at: SpanId,
}
