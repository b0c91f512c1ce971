//! Messages on their way. The moves that a stream begins from one rank to another at one time, between two successive
//! signals of the stream, form one message: its pieces share one latency, and flow together. Messages of a stream
//! from one rank to another flow one after another, while their latencies pass at once.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::moves::MoveId;
use super::{Engine, Event, NONE};
use crate::paths::{Ends, rank, transfers};
use crate::timeline::Message;
use roundelay_base::ids::StreamId;

/// A message.
#[derive(Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) path: u32,
    pub(super) bytes: f64,
    stream: StreamId,
    /// The earliest queued time of its end event.
    pub(super) queued: f64,
    /// The number of uses of this place before.
    pub(super) generation: u32,
    /// Its number in the timeline.
    message: u32,
    /// Its first piece in [`Packets::pieces`], and the number of its pieces.
    first: u32,
    count: u32,
}

/// A piece of a message.
#[derive(Clone, Copy)]
struct Piece {
    of: MoveId,
    next: u32,
}

/// A message that more pieces may join, as they begin at one time.
#[derive(Clone, Copy)]
struct Open {
    sent: u32,
    stream: StreamId,
    epoch: u32,
    ends: Ends,
    next: u32,
}

/// All messages.
pub(super) struct Packets {
    pub(super) sent: Vec<Sent>,
    free: Vec<u32>,
    pieces: Vec<Piece>,
    free_pieces: u32,
    /// Reused: the moves whose pieces arrive.
    arriving: Vec<MoveId>,
    open: Vec<Open>,
    /// The latest open message of each stream.
    open_of: Vec<u32>,
    /// By stream and path, while a message flows: the messages that flow after it.
    behind: FxHashMap<(StreamId, u32), VecDeque<u32>>,
    /// The number of messages so far.
    pub(super) count: u64,
}

impl Packets {
    pub(super) fn new(streams: usize) -> Self {
        Self {
            sent: Vec::new(),
            free: Vec::new(),
            pieces: Vec::new(),
            free_pieces: NONE,
            arriving: Vec::new(),
            open: Vec::new(),
            open_of: vec![NONE; streams],
            behind: FxHashMap::default(),
            count: 0,
        }
    }

    /// Returns the open message with these ends, if there is one.
    fn find(&self, stream: StreamId, epoch: u32, ends: Ends) -> Option<u32> {
        let mut at = self.open_of[stream.index()];
        while at != NONE {
            let open = &self.open[at as usize];
            if (open.epoch, open.ends) == (epoch, ends) {
                return Some(open.sent);
            }
            at = open.next;
        }
        None
    }

    /// Adds a message, which is open.
    fn open(&mut self, stream: StreamId, epoch: u32, ends: Ends, new: Sent) -> u32 {
        let sent = self.free.pop().unwrap_or_else(|| {
            self.sent.push(Sent::default());
            self.sent.len() as u32 - 1
        });
        let generation = self.sent[sent as usize].generation;
        self.sent[sent as usize] = Sent { generation, ..new };
        let at = self.open.len() as u32;
        let next = std::mem::replace(&mut self.open_of[stream.index()], at);
        self.open.push(Open { sent, stream, epoch, ends, next });
        self.count += 1;
        sent
    }

    /// Adds a piece to a message.
    fn add(&mut self, sent: u32, of: MoveId, bytes: f64) {
        let sent = &mut self.sent[sent as usize];
        let piece = Piece { of, next: sent.first };
        sent.first = if self.free_pieces == NONE {
            self.pieces.push(piece);
            self.pieces.len() as u32 - 1
        } else {
            let at = self.free_pieces;
            self.free_pieces = std::mem::replace(&mut self.pieces[at as usize], piece).next;
            at
        };
        sent.count += 1;
        sent.bytes += bytes;
    }
}

impl Engine<'_> {
    /// Puts the data that a move sends into messages, and returns the number of pieces.
    pub(super) fn send(&mut self, id: MoveId) -> u32 {
        let schedule = self.schedule;
        let (op, stream, epoch) = {
            let moving = &self.moves[id as usize];
            (moving.op, moving.stream, moving.epoch)
        };
        let by = schedule.streams[stream.index()].rank;
        let mut pieces = 0;
        let topology = &self.machine.topology;
        for (ends, region) in transfers(schedule, topology, by, schedule.op(op)) {
            let bytes = self.bytes[region.index()];
            let sent = self.packets.find(stream, epoch, ends).unwrap_or_else(|| {
                let path = self.paths.between(ends);
                let (start, flows, end) = (self.now, self.now, self.now);
                let (bytes, pieces) = (0, 0);
                // Between a rank and the switch, the other end is the rank that has the switch move the data.
                let [sends, gets] = [ends.0, ends.1].map(|node| rank(topology, node).unwrap_or(by));
                let message =
                    Message { op, from: sends, to: gets, bytes, pieces, start, flows, end };
                let message = self.message(message);
                let queued = f64::INFINITY;
                let new = Sent { path, stream, queued, message, first: NONE, ..Sent::default() };
                self.packets.open(stream, epoch, ends, new)
            });
            self.packets.add(sent, id, bytes);
            let path = self.packets.sent[sent as usize].path;
            for (link, share) in self.paths.links(path) {
                self.carried[*link as usize] += share * bytes;
            }
            pieces += 1;
        }
        pieces
    }

    /// Sends the open messages.
    pub(super) fn set_out(&mut self) {
        let mut open = std::mem::take(&mut self.packets.open);
        for Open { sent: id, stream, .. } in open.drain(..) {
            self.packets.open_of[stream.index()] = NONE;
            let sent = self.packets.sent[id as usize];
            let Sent { bytes, message, count, .. } = sent;
            let delay = self.latency(&sent) + self.overhead(&sent);
            let flows = self.now + delay;
            if let Some(timeline) = &mut self.timeline {
                let message = &mut timeline.messages[message as usize];
                (message.bytes, message.pieces, message.end) = (bytes as u64, count, flows);
            }
            match (bytes > 0.0, delay > 0.0) {
                (true, true) => self.queue.push(flows, Event::Flows(id)),
                (true, false) => self.flow(id),
                (false, true) => self.queue.push(flows, Event::Arrives(id)),
                (false, false) => self.arrived(id),
            }
        }
        self.packets.open = open;
    }

    /// Starts the flow of a message after its latency, behind earlier messages of its stream.
    pub(super) fn flow(&mut self, id: u32) {
        let Sent { path, stream, .. } = self.packets.sent[id as usize];
        match self.packets.behind.entry((stream, path)) {
            Entry::Occupied(mut behind) => behind.get_mut().push_back(id),
            Entry::Vacant(first) => {
                first.insert(VecDeque::new());
                self.first_byte(id);
            }
        }
    }

    /// Has the first byte of a message flow.
    fn first_byte(&mut self, id: u32) {
        let Sent { path, bytes, message, .. } = self.packets.sent[id as usize];
        if let Some(timeline) = &mut self.timeline {
            timeline.messages[message as usize].flows = self.now;
        }
        self.sharing.start(id, path, bytes);
    }

    /// Ends the flow of a message, as its last byte has flowed.
    pub(super) fn flowed(&mut self, id: u32) {
        self.sharing.end(id);
        let Sent { path, stream, .. } = self.packets.sent[id as usize];
        if let Entry::Occupied(mut behind) = self.packets.behind.entry((stream, path)) {
            match behind.get_mut().pop_front() {
                Some(next) => self.first_byte(next),
                None => _ = behind.remove(),
            }
        }
        self.arrived(id);
    }

    /// Delivers a message that has fully arrived.
    pub(super) fn arrived(&mut self, id: u32) {
        let sent = &mut self.packets.sent[id as usize];
        sent.generation += 1;
        let sent = *sent;
        let Sent { path, bytes, message, first, .. } = sent;
        self.packets.free.push(id);
        if let Some(timeline) = &mut self.timeline {
            timeline.messages[message as usize].end = self.now;
        }
        let flowing = bytes / self.paths.path(path).alone;
        let took = [self.latency(&sent), self.overhead(&sent), flowing];
        let mut pieces = std::mem::take(&mut self.packets.arriving);
        let mut at = first;
        while at != NONE {
            let Piece { of, next } = self.packets.pieces[at as usize];
            self.packets.pieces[at as usize].next =
                std::mem::replace(&mut self.packets.free_pieces, at);
            pieces.push(of);
            at = next;
        }
        // The list has the last piece first: pieces arrive in the order of the program.
        for of in pieces.drain(..).rev() {
            self.arrive(of, took);
        }
        self.packets.arriving = pieces;
    }

    /// Returns the seconds that a message is on its way before its bytes flow.
    fn latency(&self, sent: &Sent) -> f64 {
        self.paths.path(sent.path).latency
    }

    /// Returns the seconds that its pieces cost, except the first.
    fn overhead(&self, sent: &Sent) -> f64 {
        f64::from(sent.count - 1) * self.machine.piece
    }
}
