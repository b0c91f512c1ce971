//! The plane of a topology's drawing: points and areas in pixels, and the sizes of nodes.

use roundelay_topology::{Fabric, NodeId};

/// The radius of a rank.
pub(super) const RADIUS: f64 = 15.0;
/// The distance from a rank to the next.
pub(super) const PITCH: f64 = 40.0;
/// The distance from a row to the next.
pub(super) const ROW: f64 = 68.0;
/// The most characters of a name that are shown.
pub(super) const NAME: usize = 24;

/// A point, or the difference of two points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PlanePoint {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl PlanePoint {
    pub(super) fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y)
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) low: PlanePoint,
    pub(super) high: PlanePoint,
}

impl Area {
    pub(super) const NONE: Self = Self {
        low: PlanePoint { x: f64::INFINITY, y: f64::INFINITY },
        high: PlanePoint { x: f64::NEG_INFINITY, y: f64::NEG_INFINITY },
    };

    pub(super) fn around(at: PlanePoint, size: PlanePoint) -> Self {
        Self {
            low: PlanePoint::new(at.x - size.x, at.y - size.y),
            high: PlanePoint::new(at.x + size.x, at.y + size.y),
        }
    }

    pub(super) fn include(&mut self, other: Self) {
        self.low = PlanePoint::new(self.low.x.min(other.low.x), self.low.y.min(other.low.y));
        self.high = PlanePoint::new(self.high.x.max(other.high.x), self.high.y.max(other.high.y));
    }

    pub(super) fn meets(&self, other: Self) -> bool {
        let (a, b) = (self, other);
        a.low.x <= b.high.x && b.low.x <= a.high.x && a.low.y <= b.high.y && b.low.y <= a.high.y
    }

    pub(super) fn size(&self) -> PlanePoint {
        PlanePoint::new(self.high.x - self.low.x, self.high.y - self.low.y)
    }

    pub(super) fn middle(&self) -> PlanePoint {
        PlanePoint::new(
            f64::midpoint(self.low.x, self.high.x),
            f64::midpoint(self.low.y, self.high.y),
        )
    }
}

/// Returns half the width and half the height of a node.
pub(super) fn half(topology: &Fabric, node: NodeId) -> PlanePoint {
    if topology.is_rank(node) {
        return PlanePoint::new(RADIUS, RADIUS);
    }
    let letters = topology.nodes()[node.index()].name.chars().count().min(NAME + 1);
    PlanePoint::new((letters as f64 * 3.7 + 9.0).max(RADIUS), 12.0)
}
