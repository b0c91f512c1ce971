//! Lines from node to node: straight if they pass no other node, else bowed, or as an S-curve between two rows.

/// The distance between the points of a curve that are checked.
const STEP: f64 = 4.0;
/// The least number of points of a curve that are checked.
const LEAST: f64 = 24.0;

use super::plane::{Area, PlanePoint};

/// A line from a place to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct CableWay {
    pub(super) from: PlanePoint,
    pub(super) bend: Bend,
    pub(super) to: PlanePoint,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bend {
    Straight,
    /// The control point of a quadratic curve.
    Over(PlanePoint),
    /// Vertical to the first height, then an S-curve to the second height, then vertical again.
    Rows(f64, f64),
}

impl CableWay {
    /// Returns the point at a share `t` of the line.
    pub(super) fn at(&self, t: f64) -> PlanePoint {
        let (from, to) = (self.from, self.to);
        match self.bend {
            Bend::Straight => mix(from, to, t),
            Bend::Over(over) => mix(mix(from, over, t), mix(over, to, t), t),
            Bend::Rows(first, second) => {
                let (a, d) = (PlanePoint::new(from.x, first), PlanePoint::new(to.x, second));
                match t {
                    t if t < 0.2 => mix(from, a, t / 0.2),
                    t if t > 0.8 => mix(d, to, (t - 0.8) / 0.2),
                    t => {
                        let [b, c] = controls(a, d);
                        let t = (t - 0.2) / 0.6;
                        let middle = mix(b, c, t);
                        let (left, right) =
                            (mix(mix(a, b, t), middle, t), mix(middle, mix(c, d, t), t));
                        mix(left, right, t)
                    }
                }
            }
        }
    }

    /// Returns the middle of the line.
    pub(super) fn middle(&self) -> PlanePoint {
        self.at(0.5)
    }

    /// Returns the line in the other direction.
    pub(super) fn back(self) -> Self {
        let bend = match self.bend {
            Bend::Rows(first, second) => Bend::Rows(second, first),
            bend => bend,
        };
        Self { from: self.to, bend, to: self.from }
    }

    /// Returns a line beside this one: at a distance to the right of its direction, or to the left if it is negative.
    pub(super) fn beside(self, distance: f64) -> Self {
        let (x, y) = (self.to.x - self.from.x, self.to.y - self.from.y);
        let long = x.hypot(y).max(1.0);
        let by = match self.bend {
            // Its ends are vertical, and its middle may be nearly horizontal.
            Bend::Rows(..) => PlanePoint::new(-y.signum() * distance, x.signum() * distance),
            _ => PlanePoint::new(-y / long * distance, x / long * distance),
        };
        let bend = match self.bend {
            Bend::Straight => Bend::Straight,
            Bend::Over(over) => Bend::Over(over.plus(by)),
            Bend::Rows(first, second) => Bend::Rows(first + by.y, second + by.y),
        };
        Self { from: self.from.plus(by), bend, to: self.to.plus(by) }
    }

    /// Returns an area that contains the line.
    pub(super) fn area(&self) -> Area {
        let mut area = Area::NONE;
        let none = PlanePoint::new(0.0, 0.0);
        area.include(Area::around(self.from, none));
        area.include(Area::around(self.to, none));
        match self.bend {
            Bend::Straight => {}
            Bend::Over(over) => area.include(Area::around(over, none)),
            Bend::Rows(first, second) => {
                area.include(Area::around(PlanePoint::new(self.from.x, first), none));
                area.include(Area::around(PlanePoint::new(self.to.x, second), none));
            }
        }
        area
    }

    /// Whether the line touches a node with its middle at `node` and half its width and height in `size`; a node of
    /// equal width and height is round.
    pub(super) fn touches(&self, node: PlanePoint, size: PlanePoint) -> bool {
        let steps = match self.bend {
            // An S-curve has the same share of `t` for each of its pieces, however long they are.
            Bend::Rows(..) => 3.0,
            _ => 1.0,
        } * self.length()
            / STEP;
        let steps = steps.max(LEAST).ceil();
        (0..=steps as u32).any(|step| meets(node, size, self.at(f64::from(step) / steps)))
    }

    /// Returns an upper bound on the length.
    fn length(&self) -> f64 {
        let far = |a: PlanePoint, b: PlanePoint| (b.x - a.x).hypot(b.y - a.y);
        match self.bend {
            Bend::Straight => far(self.from, self.to),
            Bend::Over(over) => far(self.from, over) + far(over, self.to),
            Bend::Rows(first, second) => {
                let (a, d) =
                    (PlanePoint::new(self.from.x, first), PlanePoint::new(self.to.x, second));
                let [b, c] = controls(a, d);
                far(self.from, a) + far(a, b) + far(b, c) + far(c, d) + far(d, self.to)
            }
        }
    }
}

/// Returns the control points of an S-curve with vertical ends.
pub(super) fn controls(from: PlanePoint, to: PlanePoint) -> [PlanePoint; 2] {
    let middle = f64::midpoint(from.y, to.y);
    [PlanePoint::new(from.x, middle), PlanePoint::new(to.x, middle)]
}

fn mix(a: PlanePoint, b: PlanePoint, t: f64) -> PlanePoint {
    PlanePoint::new(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t)
}

fn meets(node: PlanePoint, size: PlanePoint, point: PlanePoint) -> bool {
    let (x, y) = ((point.x - node.x).abs(), (point.y - node.y).abs());
    if size.x > size.y { x < size.x && y < size.y } else { x.hypot(y) < size.x }
}
