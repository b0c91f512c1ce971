//! A size class as parts of a text: its functions, and the resources that they use.

use std::collections::BTreeSet;

use super::flags::LinkFlags;
use super::interface::Interface;
use super::{SizeClass, class, handshakes, moves};
use crate::loops;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::schedule::{Buffer, Op, OpKind, Schedule};
use roundelay_core::verify::verify_with;

/// The parts of a size class's text.
pub(super) struct SizeClassPart {
    pub(super) algorithm: String,
    pub(super) pieces: u64,
    pub(super) functions: String,
    /// Slots and width of each scratch buffer.
    pub(super) scratch: Vec<(u32, (u64, u64))>,
    pub(super) slaves: u32,
    /// The most streams that the main stream of a rank forks, and that another stream forks.
    pub(super) children: [u32; 2],
    /// The peers to which each rank has a link.
    pub(super) peers: Vec<BTreeSet<RankId>>,
    /// Whether peers read the input, the output, and scratch.
    pub(super) shows: [bool; 3],
    /// Whether some move needs room for intermediate data, since the copy engine cannot do it at once, and whether one has
    /// both ends at other ranks.
    pub(super) tiles: bool,
    pub(super) between_peers: bool,
    /// The flags of channels, for an operator.
    pub(super) flags: LinkFlags,
    /// The moves into the memory of a peer, and those of them whose next op is no signal to that peer.
    pub(super) pushes: [usize; 2],
}

impl SizeClassPart {
    pub(super) fn new(class: &SizeClass<'_>, interface: Interface) -> Result<Self, Vec<Finding>> {
        let signals = interface.signals();
        let noted = |findings: Vec<Finding>| -> Vec<Finding> {
            let note = format!("with {signals} signals, {}", interface.owners());
            let noted = |finding: Finding| match interface {
                Interface::Class => finding.note(note.clone()),
                Interface::Operator => finding
                    .note(note.clone())
                    .note("right if notifies counted, of which the documentation says nothing"),
            };
            findings.into_iter().map(noted).collect()
        };
        if class.schedule.multiple > 1 {
            let title = format!("counts are multiples of {} here", class.schedule.multiple);
            let help = "cut regions by `split`, whose pieces differ by an element at most, and leave the `require` out";
            return Err(vec![
                Finding::new(Code::NotExportable, SpanId(0), title)
                    .note("a contest's executor takes calls of any count")
                    .help(help),
            ]);
        }
        if let Some(late) = class.schedule.rounds_late() {
            return Err(vec![*late]);
        }
        let closed = handshakes::closed(class.schedule, signals).map_err(noted)?;
        let flags = match interface {
            Interface::Class => {
                verify_with(&closed.schedule, signals).map_err(noted)?;
                LinkFlags::default()
            }
            Interface::Operator => LinkFlags::new(&closed.schedule, signals).map_err(noted)?,
        };
        let pieces = loops::pieces(&closed.schedule)?;
        let schedule = moves::split(&closed.schedule)?;
        let (algorithm, source) = (class.algorithm, class.source);
        let single = (&schedule, pieces);
        let of = (class.schedule, &closed);
        let functions = class::functions(algorithm, of, single, source, (interface, &flags))?;
        let mut part = Self {
            algorithm: schedule.algorithm.clone(),
            pieces,
            functions,
            scratch: schedule
                .scratch
                .iter()
                .map(|s| (s.slots, (s.width.num(), s.width.den())))
                .collect(),
            slaves: schedule.needs().streams - 1,
            children: [0; 2],
            peers: vec![BTreeSet::new(); schedule.nranks as usize],
            shows: [false; 3],
            tiles: false,
            between_peers: false,
            flags,
            pushes: [0; 2],
        };
        part.touch(&schedule);
        Ok(part)
    }

    /// Records the links, the streams and the memory that the ops use.
    fn touch(&mut self, schedule: &Schedule) {
        for stream in &schedule.streams {
            let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
            let mut children = BTreeSet::new();
            for (nth, op) in ops.iter().enumerate() {
                if op.kind != OpKind::Move {
                    let channel = schedule.channel(op);
                    if channel.from != channel.to {
                        self.peers[channel.from.index()].insert(channel.to);
                        self.peers[channel.to.index()].insert(channel.from);
                    } else if op.kind == OpKind::Post && channel.lane.0 != stream.index {
                        children.insert(channel.lane);
                    }
                    continue;
                }
                // A reduction has its destination as a source, too.
                let operands = &schedule.operands_of(op)[usize::from(op.srcs) - 1..];
                let far = operands.iter().filter(|operand| operand.rank != stream.rank);
                let mut peers = 0;
                for operand in far {
                    peers += 1;
                    self.peers[stream.rank.index()].insert(operand.rank);
                    self.peers[operand.rank.index()].insert(stream.rank);
                    let kind = match schedule.region(*operand).buffer {
                        Buffer::Input => 0,
                        Buffer::Output => 1,
                        Buffer::Scratch(_) => 2,
                    };
                    self.shows[kind] = true;
                }
                self.tiles |= peers > 1 || (peers == 1 && op.srcs > 1);
                self.between_peers |= peers > 1;
                let into = schedule.dsts(op)[0].rank;
                if into != stream.rank {
                    let tells =
                        |op: &Op| op.kind == OpKind::Post && schedule.channel(op).to == into;
                    self.pushes[0] += 1;
                    self.pushes[1] += usize::from(!ops.get(nth + 1).is_some_and(tells));
                }
            }
            let most = &mut self.children[usize::from(stream.index > 0)];
            *most = (*most).max(children.len() as u32);
        }
    }
}
