//! What a schedule must keep to beyond being right: links that exist, resources that there are, one order of
//! reduction. Its author says so by attributes, a caller by flags; like the places of statements it is not
//! part of what runs, nor of the text form.

use std::sync::Arc;

use crate::ids::SpanId;
use crate::topology::Topology;
use crate::values::resource::Resource;

/// What an author or a caller demands of a schedule beyond being right, each with the place in the source that says
/// so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// The topology over whose links alone data and signals must go (E0313).
    pub topology: Option<(Arc<Topology>, SpanId)>,
    /// Whether the algorithm asks for rings on that topology, so that others may help where a link is missing.
    pub rings: bool,
    /// Set where every rank must reduce in the same order, but for the order of two operands (E0317).
    pub deterministic: Option<SpanId>,
    /// The resources of which there is only so much (E0315).
    pub budgets: Vec<Budget>,
    /// Why counts must be multiples of [`Schedule::multiple`](super::Schedule::multiple), in the words of who said so
    /// first.
    pub multiple: Option<Arc<str>>,
}

impl Demands {
    /// Those that are about calls, and so hold of whatever the schedule is turned into.
    pub(crate) fn of_calls(&self) -> Self {
        Self { multiple: self.multiple.clone(), ..Self::default() }
    }
}

/// How much a schedule may take of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The resource.
    pub resource: Resource,
    /// The most that the schedule may take, in the unit that [`Resource`] says.
    pub most: u64,
    /// The place in the source that says so.
    pub at: SpanId,
}
