//! Flows on links: how fast each is where they share, max-min fairly.
//!
//! A link *binds* if its flows, each as fast as it could be alone, ask for more than there is. Only binding links join
//! flows: what one does concerns those that it reaches through them, and rates are found anew for those alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::wires::Wires;

/// By how much, relatively, sums of rates may exceed a link: they are rounded.
const SLACK: f64 = 1e-9;
/// By how much, relatively, a rate must change to count.
const SAME: f64 = 1e-12;

/// Data on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// Its way.
    pub(super) wire: u32,
    /// Bytes that were left when the rate was set.
    left: f64,
    /// Bytes a second; 0 before the first is found.
    pub(super) rate: f64,
    since: f64,
    /// When it ends, if no rate changes.
    pub(super) end: f64,
    /// Seen in this round.
    mark: u32,
}

/// A link and what flows on it.
#[derive(Clone, Debug, Default)]
struct SharedLink {
    capacity: f64,
    /// What its flows would take if each were alone.
    asked: f64,
    /// Which flows, and which of each one's links this is.
    flows: Vec<(u32, u32)>,
    /// Flows came or went that matter to the others.
    changed: bool,
    /// Seen in this round.
    mark: u32,
    /// While rates are found: what is left of it, for flows that carry so much here for each byte.
    room: f64,
    weight: f64,
    /// How many these are.
    open: u32,
}

impl SharedLink {
    fn binds(&self) -> bool {
        self.asked > self.capacity * (1.0 + SLACK)
    }
}

/// All flows.
pub(super) struct Sharing<'w> {
    wires: &'w Wires,
    flows: Vec<Flow>,
    /// Where each flow stands in the lists of its links.
    places: Vec<u32>,
    stride: usize,
    lines: Vec<SharedLink>,
    changed: Vec<u32>,
    fresh: Vec<u32>,
    round: u32,
    /// Reused from round to round: flows and links that are concerned, and levels of links and flows.
    concerned: Vec<u32>,
    joined: Vec<u32>,
    levels: BinaryHeap<Reverse<(u64, u32)>>,
    limits: Vec<(f64, u32)>,
}

impl<'w> Sharing<'w> {
    pub(super) fn new(wires: &'w Wires) -> Self {
        let line = |capacity: &f64| SharedLink { capacity: *capacity, ..SharedLink::default() };
        Self {
            wires,
            flows: Vec::new(),
            places: Vec::new(),
            stride: wires.longest(),
            lines: wires.capacity.iter().map(line).collect(),
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

    /// Flow `flow` begins: so many bytes on a wire. Its rate comes with [`Self::settle`].
    pub(super) fn start(&mut self, flow: u32, wire: u32, bytes: f64) {
        let index = flow as usize;
        if self.flows.len() <= index {
            self.flows.resize(index + 1, Flow::default());
            self.places.resize((index + 1) * self.stride, 0);
        }
        self.flows[index] = Flow { wire, left: bytes, end: f64::INFINITY, ..Flow::default() };
        self.fresh.push(flow);
        let alone = self.wires.wire(wire).alone;
        for (nth, (link, share)) in self.wires.links(wire).iter().enumerate() {
            let line = &mut self.lines[*link as usize];
            self.places[index * self.stride + nth] = line.flows.len() as u32;
            line.flows.push((flow, nth as u32));
            line.asked += share * alone;
            if line.binds() && !line.changed {
                line.changed = true;
                self.changed.push(*link);
            }
        }
    }

    /// Flow `flow` has ended.
    pub(super) fn end(&mut self, flow: u32) {
        let index = flow as usize;
        let wire = self.flows[index].wire;
        let alone = self.wires.wire(wire).alone;
        for (nth, (link, share)) in self.wires.links(wire).iter().enumerate() {
            let line = &mut self.lines[*link as usize];
            if line.binds() && !line.changed {
                line.changed = true;
                self.changed.push(*link);
            }
            let place = self.places[index * self.stride + nth] as usize;
            line.flows.swap_remove(place);
            if let Some((other, nth)) = line.flows.get(place) {
                self.places[*other as usize * self.stride + *nth as usize] = place as u32;
            }
            line.asked = if line.flows.is_empty() { 0.0 } else { line.asked - share * alone };
        }
    }

    /// Finds the rates from `now` on, and tells of each flow that ends at another time than before.
    pub(super) fn settle(&mut self, now: f64, mut moved: impl FnMut(u32, f64)) {
        if !self.changed.is_empty() {
            self.reach();
            self.fill(now, &mut moved);
        }
        while let Some(flow) = self.fresh.pop() {
            // Those that share nothing.
            if self.flows[flow as usize].rate == 0.0 {
                let alone = self.wires.wire(self.flows[flow as usize].wire).alone;
                self.set(flow, alone, now, &mut moved);
            }
        }
    }

    /// The flows that are concerned by what changed, and the binding links that join them.
    fn reach(&mut self) {
        self.round += 1;
        self.concerned.clear();
        self.joined.clear();
        for link in self.changed.drain(..) {
            let line = &mut self.lines[link as usize];
            line.changed = false;
            line.mark = self.round;
            self.joined.push(link);
        }
        let mut next = 0;
        while let Some(&link) = self.joined.get(next) {
            next += 1;
            for at in 0..self.lines[link as usize].flows.len() {
                let (flow, _) = self.lines[link as usize].flows[at];
                let known = &mut self.flows[flow as usize];
                if known.mark == self.round {
                    continue;
                }
                known.mark = self.round;
                self.concerned.push(flow);
                for (link, _) in self.wires.links(known.wire) {
                    let line = &mut self.lines[*link as usize];
                    if line.mark != self.round && line.binds() {
                        line.mark = self.round;
                        self.joined.push(*link);
                    }
                }
            }
        }
    }

    /// Progressive filling: all concerned rates rise alike until a link is full or a flow as fast as it can be,
    /// which fixes those flows; the others rise on.
    fn fill(&mut self, now: f64, moved: &mut impl FnMut(u32, f64)) {
        for link in &self.joined {
            let line = &mut self.lines[*link as usize];
            (line.room, line.weight, line.open) = (line.capacity, 0.0, 0);
        }
        self.limits.clear();
        for flow in &self.concerned {
            let wire = self.flows[*flow as usize].wire;
            self.limits.push((self.wires.wire(wire).alone, *flow));
            for (link, share) in self.wires.links(wire) {
                let line = &mut self.lines[*link as usize];
                if line.mark == self.round {
                    line.weight += share;
                    line.open += 1;
                }
            }
        }
        self.limits.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.levels.clear();
        for link in &self.joined {
            let line = &self.lines[*link as usize];
            if line.open > 0 {
                self.levels.push(Reverse(((line.room / line.weight).to_bits(), *link)));
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
                    for at in 0..self.lines[link as usize].flows.len() {
                        let (flow, _) = self.lines[link as usize].flows[at];
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

    /// The link with open flows that is full first, and at which rate. Levels rise while flows are fixed below them.
    fn fullest(&mut self) -> Option<(f64, u32)> {
        while let Some(Reverse((bits, link))) = self.levels.pop() {
            let line = &self.lines[link as usize];
            let before = f64::from_bits(bits);
            let level = (line.room / line.weight).max(before);
            if line.open == 0 {
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
        for (link, share) in self.wires.links(flow.wire) {
            let line = &mut self.lines[*link as usize];
            if line.mark == self.round {
                line.room -= share * rate;
                line.weight -= share;
                line.open -= 1;
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
