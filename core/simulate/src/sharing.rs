//! Flows on links: their rates, which share links max-min fairly.
//!
//! A link *binds* if its flows, each at its rate alone, exceed its capacity. Only binding links couple flows: a
//! change affects the flows that it reaches through binding links, and only their rates are found anew.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::paths::RankPaths;

/// The relative amount by which sums of rates may exceed a link, as they are rounded.
const SLACK: f64 = 1e-9;
/// The relative amount by which a rate must change to count.
const SAME: f64 = 1e-12;

/// A flow of data over links.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// The path of the flow.
    pub(super) path: u32,
    /// The bytes that were left when the rate was set.
    left: f64,
    /// Bytes a second; 0 before the first rate is found.
    pub(super) rate: f64,
    since: f64,
    /// The time at which it ends, if no rate changes.
    pub(super) end: f64,
    /// The last round that reached the flow.
    mark: u32,
}

/// A link and the flows on it.
#[derive(Clone, Debug, Default)]
struct SharedLink {
    capacity: f64,
    /// The rate of its flows if each were alone.
    asked: f64,
    /// The flows, each with the position of this link among its links.
    flows: Vec<(u32, u32)>,
    /// Whether flows came or went that matter to the others.
    changed: bool,
    /// The last round that reached the link.
    mark: u32,
    /// While rates are found: the capacity left, and the summed shares of the open flows.
    room: f64,
    weight: f64,
    /// The number of open flows.
    open: u32,
}

impl SharedLink {
    fn binds(&self) -> bool {
        self.asked > self.capacity * (1.0 + SLACK)
    }
}

/// All flows.
pub(super) struct Sharing<'w> {
    paths: &'w RankPaths<'w>,
    flows: Vec<Flow>,
    /// The position of each flow in the flow lists of its links.
    places: Vec<u32>,
    stride: usize,
    shared: Vec<SharedLink>,
    changed: Vec<u32>,
    fresh: Vec<u32>,
    round: u32,
    /// Reused from round to round: affected flows and links, and levels of links and flows.
    concerned: Vec<u32>,
    joined: Vec<u32>,
    levels: BinaryHeap<Reverse<(u64, u32)>>,
    limits: Vec<(f64, u32)>,
}

impl<'w> Sharing<'w> {
    pub(super) fn new(paths: &'w RankPaths<'w>) -> Self {
        let shared = |capacity: &f64| SharedLink { capacity: *capacity, ..SharedLink::default() };
        Self {
            paths,
            flows: Vec::new(),
            places: Vec::new(),
            stride: paths.longest(),
            shared: paths.capacity.iter().map(shared).collect(),
            changed: Vec::new(),
            fresh: Vec::new(),
            round: 0,
            concerned: Vec::new(),
            joined: Vec::new(),
            levels: BinaryHeap::new(),
            limits: Vec::new(),
        }
    }

    pub(super) fn flow(&self, flow: u32) -> &Flow {
        &self.flows[flow as usize]
    }

    /// Starts flow `flow` of `bytes` bytes on a path. Its rate comes with [`Self::settle`].
    pub(super) fn start(&mut self, flow: u32, path: u32, bytes: f64) {
        let index = flow as usize;
        if self.flows.len() <= index {
            self.flows.resize(index + 1, Flow::default());
            self.places.resize((index + 1) * self.stride, 0);
        }
        self.flows[index] = Flow { path, left: bytes, end: f64::INFINITY, ..Flow::default() };
        self.fresh.push(flow);
        let alone = self.paths.path(path).alone;
        for (nth, (link, share)) in self.paths.links(path).iter().enumerate() {
            let shared = &mut self.shared[*link as usize];
            self.places[index * self.stride + nth] = shared.flows.len() as u32;
            shared.flows.push((flow, nth as u32));
            shared.asked += share * alone;
            if shared.binds() && !shared.changed {
                shared.changed = true;
                self.changed.push(*link);
            }
        }
    }

    /// Ends flow `flow`.
    pub(super) fn end(&mut self, flow: u32) {
        let index = flow as usize;
        let path = self.flows[index].path;
        let alone = self.paths.path(path).alone;
        for (nth, (link, share)) in self.paths.links(path).iter().enumerate() {
            let shared = &mut self.shared[*link as usize];
            if shared.binds() && !shared.changed {
                shared.changed = true;
                self.changed.push(*link);
            }
            let place = self.places[index * self.stride + nth] as usize;
            shared.flows.swap_remove(place);
            if let Some((other, nth)) = shared.flows.get(place) {
                self.places[*other as usize * self.stride + *nth as usize] = place as u32;
            }
            shared.asked = if shared.flows.is_empty() { 0.0 } else { shared.asked - share * alone };
        }
    }

    /// Finds the rates from `now` on, and calls `moved` for each flow whose end changes.
    pub(super) fn settle(&mut self, now: f64, mut moved: impl FnMut(u32, f64)) {
        if !self.changed.is_empty() {
            self.reach();
            self.fill(now, &mut moved);
        }
        while let Some(flow) = self.fresh.pop() {
            // Flows that share no binding link.
            if self.flows[flow as usize].rate == 0.0 {
                let alone = self.paths.path(self.flows[flow as usize].path).alone;
                self.set(flow, alone, now, &mut moved);
            }
        }
    }

    /// Finds the flows that the changes affect, and the binding links that couple them.
    fn reach(&mut self) {
        self.round += 1;
        self.concerned.clear();
        self.joined.clear();
        for link in self.changed.drain(..) {
            let shared = &mut self.shared[link as usize];
            shared.changed = false;
            shared.mark = self.round;
            self.joined.push(link);
        }
        let mut next = 0;
        while let Some(&link) = self.joined.get(next) {
            next += 1;
            for at in 0..self.shared[link as usize].flows.len() {
                let (flow, _) = self.shared[link as usize].flows[at];
                let known = &mut self.flows[flow as usize];
                if known.mark == self.round {
                    continue;
                }
                known.mark = self.round;
                self.concerned.push(flow);
                for (link, _) in self.paths.links(known.path) {
                    let shared = &mut self.shared[*link as usize];
                    if shared.mark != self.round && shared.binds() {
                        shared.mark = self.round;
                        self.joined.push(*link);
                    }
                }
            }
        }
    }

    /// Progressive filling: all affected rates rise alike until a link is full or a flow has its rate alone, which
    /// fixes those flows; the others rise on.
    fn fill(&mut self, now: f64, moved: &mut impl FnMut(u32, f64)) {
        for link in &self.joined {
            let shared = &mut self.shared[*link as usize];
            (shared.room, shared.weight, shared.open) = (shared.capacity, 0.0, 0);
        }
        self.limits.clear();
        for flow in &self.concerned {
            let path = self.flows[*flow as usize].path;
            self.limits.push((self.paths.path(path).alone, *flow));
            for (link, share) in self.paths.links(path) {
                let shared = &mut self.shared[*link as usize];
                if shared.mark == self.round {
                    shared.weight += share;
                    shared.open += 1;
                }
            }
        }
        self.limits.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.levels.clear();
        for link in &self.joined {
            let shared = &self.shared[*link as usize];
            if shared.open > 0 {
                self.levels.push(Reverse(((shared.room / shared.weight).to_bits(), *link)));
            }
        }
        // A fixed flow is unmarked.
        let fixed = self.round - 1;
        let limits = std::mem::take(&mut self.limits);
        let mut next = 0;
        while let Some(&(limit, flow)) = limits.get(next) {
            if self.flows[flow as usize].mark == fixed {
                next += 1;
                continue;
            }
            match self.fullest() {
                Some((level, link)) if level < limit => {
                    for at in 0..self.shared[link as usize].flows.len() {
                        let (flow, _) = self.shared[link as usize].flows[at];
                        if self.flows[flow as usize].mark == self.round {
                            self.fix(flow, level, fixed);
                            self.set(flow, level, now, moved);
                        }
                    }
                }
                full => {
                    if let Some((level, link)) = full {
                        self.levels.push(Reverse((level.to_bits(), link)));
                    }
                    self.fix(flow, limit, fixed);
                    self.set(flow, limit, now, moved);
                }
            }
        }
        self.limits = limits;
    }

    /// Returns the link with open flows that is full first, and the rate at which it is. Levels rise while flows are
    /// fixed below them.
    fn fullest(&mut self) -> Option<(f64, u32)> {
        while let Some(Reverse((bits, link))) = self.levels.pop() {
            let shared = &self.shared[link as usize];
            let before = f64::from_bits(bits);
            let level = (shared.room / shared.weight).max(before);
            if shared.open == 0 {
                continue;
            }
            if level <= before * (1.0 + SAME) {
                return Some((before, link));
            }
            self.levels.push(Reverse((level.to_bits(), link)));
        }
        None
    }

    fn fix(&mut self, flow: u32, rate: f64, fixed: u32) {
        let flow = &mut self.flows[flow as usize];
        flow.mark = fixed;
        for (link, share) in self.paths.links(flow.path) {
            let shared = &mut self.shared[*link as usize];
            if shared.mark == self.round {
                shared.room -= share * rate;
                shared.weight -= share;
                shared.open -= 1;
            }
        }
    }

    fn set(&mut self, number: u32, rate: f64, now: f64, moved: &mut impl FnMut(u32, f64)) {
        let flow = &mut self.flows[number as usize];
        if (flow.rate - rate).abs() <= rate * SAME {
            return;
        }
        flow.left = (flow.left - flow.rate * (now - flow.since)).max(0.0);
        (flow.rate, flow.since) = (rate, now);
        flow.end = now + flow.left / rate;
        moved(number, flow.end);
    }
}
