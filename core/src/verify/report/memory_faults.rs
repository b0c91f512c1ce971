//! The findings of memory: races, undefined data, and slots with another shape.

use super::{Access, Reporter};
use crate::collective::Collective;
use crate::diagnostics::{Code, Finding};
use crate::ids::{OpId, RankId, SpanId};
use crate::layout::builder::fifo;
use crate::rational::Rat;
use crate::schedule::{Buffer, Operand};
use crate::verify::ranks::RankOp;

impl Reporter<'_> {
    /// Returns the finding of an input that is read, in place, after its rank's output was written over it.
    pub(crate) fn one_mode(&self, at: OpId) -> Finding {
        let name = &self.schedule.algorithm;
        let finding = Finding::new(
            Code::OneMode,
            self.at(at),
            format!("the ranks of {name} cannot choose by themselves whether they run in place"),
        )
        .label("in place, the output has overwritten what is read here")
        .note(self.place(at))
        .help(
            "copy the input before the output is written, or mark the algorithm `#[out_of_place]`",
        );
        self.naming(finding, [at])
    }

    /// Returns the finding of a move that, in place, reads memory that it writes at another offset.
    pub(in crate::verify) fn shifted(&self, at: OpId, src: Operand, dst: Operand) -> Finding {
        let (src, dst) = (self.operand(src), self.operand(dst));
        let title = format!("{src} and {dst} overlap, and are not the same memory");
        let finding = Finding::new(Code::RepeatedDestination, self.at(at), title)
            .label("reads memory that it writes at another offset")
            .note(self.place(at));
        self.naming(finding, [at])
    }

    pub(in crate::verify) fn uninitialized(&self, at: OpId, operand: Operand) -> Finding {
        let finding = Finding::new(
            Code::UninitializedRead,
            self.at(at),
            format!("{} is read, and nothing was written to it", self.operand(operand)),
        )
        .label("reads garbage")
        .note(self.place(at));
        let finding = self.naming(self.as_written(finding, at, operand), [at]);
        if self.schedule.region(operand).buffer != Buffer::Output {
            return finding;
        }
        match self.first_copy(operand) {
            Some(copy) => finding.help(format!("an output begins undefined: `{copy}` first")),
            None => finding.help(format!(
                "an output begins undefined: rank {} must have got this piece before it is read, or another is meant",
                operand.rank
            )),
        }
    }

    /// Returns the copy that an output begins with where the piece is its own rank's, by the sizes of the collective.
    fn first_copy(&self, operand: Operand) -> Option<&'static str> {
        let (region, rank) = (self.schedule.region(operand), u64::from(operand.rank.0));
        match self.schedule.collective {
            Collective::AllReduce | Collective::Reduce => Some("copy(local.input, local.output);"),
            Collective::ReduceScatter => {
                Some("copy(local.input.split(nranks)[rank], local.output);")
            }
            Collective::AllGather
                if region.lo >= Rat::whole(rank) && region.hi <= Rat::whole(rank + 1) =>
            {
                Some("copy(local.input, local.output.split(nranks)[rank]);")
            }
            _ => None,
        }
    }

    pub(in crate::verify) fn slot_length(&self, at: OpId, operand: Operand, held: Rat) -> Finding {
        let finding = Finding::new(
            Code::SlotLength,
            self.at(at),
            format!("{} is not what the slot holds", self.operand(operand)),
        )
        .label("read as another piece than was written")
        .note(format!("the slot holds what begins at {held} of the buffer that it came from"))
        .note(self.place(at));
        self.naming(self.as_written(finding, at, operand), [at]).help(
            match self.schedule.buffer_name(self.schedule.region(operand).buffer) {
                fifo::NAME => "receive pieces in the order in which they are sent",
                _ => "read a slot into the same piece that was written to it",
            },
        )
    }

    pub(in crate::verify) fn race(
        &self,
        first: (RankOp, Access),
        (second, later): (OpId, Access),
        operand: Operand,
        across: bool,
    ) -> Finding {
        // The replay met the accesses in some order; the author expects the order of a rank's program.
        let second = (self.op_of(second), later);
        let swap = !across && self.step_of(first.0).1 > self.step_of(second.0).1;
        let (first, second) = if swap { (second, first) } else { (first, second) };
        let ((first, earlier), (second, later)) = (first, second);
        let (a, b) = (first.rank, second.rank);
        let (does, did) = (later.verb(), earlier.verb());
        let region = self.operand(operand);
        let (code, when) =
            if across { (Code::ScratchRace, " of the run before") } else { (Code::Race, "") };
        let title = match a == b && !across {
            true if later == earlier => {
                format!("race on {region}: two streams of rank {a} write it")
            }
            true => {
                format!("race on {region}: one stream of rank {a} {did} it while another {does} it")
            }
            false => format!("race on {region}: rank {b} {does} it while rank {a}{when} {did} it"),
        };
        let mut finding = Finding::new(code, self.at(second.op), title).note(format!(
            "{} and {} are not ordered",
            self.place_of(first),
            self.place_of(second)
        ));
        finding = self.as_written(finding, second.op, operand);
        finding = self.as_written(finding, first.op, operand);
        finding.ops.extend([first, second].map(|act| self.named_op_of(act)));
        // Both ends refer to the region of the title, even where they touch only a part of it.
        finding.operands.iter_mut().for_each(|told| told.region.clone_from(&region));
        let steps = (self.step_of(first).1, self.step_of(second).1);
        let one_line = self.line(first.op) == self.line(second.op);
        let (from, to) = if one_line {
            (format!("its step {}", steps.0), format!("its step {}", steps.1))
        } else {
            (format!("line {}", self.line(first.op)), format!("line {}", self.line(second.op)))
        };
        if self.at(first.op) == self.at(second.op) {
            finding.label = if a == b {
                "both here".to_owned()
            } else {
                format!("rank {b} {does}, and rank {a}{when} {did}")
            };
        } else {
            finding.label = format!("rank {b} {does} here");
            finding.others.push((self.at(first.op), format!("rank {a}{when} {did} here")));
        }
        if a == b && !across {
            return finding.help("streams of one rank run at once: give them disjoint regions");
        }
        if across {
            return finding
                .note(format!(
                    "the missing edge: a signal from rank {a} after {from} to rank {b} before {to} in the next run"
                ))
                .help(format!(
                    "let rank {a} post to rank {b} after {from}, and rank {b} wait for it before it ends"
                ));
        }
        if self.at(first.op) == self.at(second.op) && steps.0 == steps.1 {
            return finding
                .note("each of them changes what the other is still reading")
                .help("pull into scratch first, signal that it has been read, and only then change what the peer reads");
        }
        finding
            .note(format!(
                "the missing edge: a signal from rank {a} after {from} to rank {b} before {to}"
            ))
            .help(format!(
                "let rank {a} post to rank {b} after {from}, and rank {b} wait for it before {to}"
            ))
    }

    pub(in crate::verify) fn before_enter(
        &self,
        at: OpId,
        operand: Operand,
        access: Access,
    ) -> Finding {
        let (me, owner) = (self.rank(at), operand.rank);
        let finding = Finding::new(
            Code::RaceWithCaller,
            self.at(at),
            format!(
                "rank {me} {} {} before rank {owner} has entered the collective",
                access.verb(),
                self.operand(operand)
            ),
        )
        .label(format!("rank {owner}'s caller may still be writing this buffer"))
        .note(self.place(at))
        .note(format!(
            "until rank {owner} has entered, its caller may still be writing this buffer"
        ))
        .note(format!("the missing edge: a signal from rank {owner} to rank {me} before this op"))
        .help(format!(
            "let rank {owner} post `TxAck` to rank {me}, and rank {me} wait for it (`RxAck`)"
        ));
        self.naming(self.as_written(finding, at, operand), [at])
    }

    pub(in crate::verify) fn after_exit(
        &self,
        op: OpId,
        access: Access,
        owner: RankId,
        buffer: Buffer,
    ) -> Finding {
        let me = self.rank(op);
        let this = self.schedule.op(op);
        let operands = self.schedule.srcs(this).iter().chain(self.schedule.dsts(this));
        let operand = operands
            .filter(|o| o.rank == owner)
            .find(|o| !matches!(self.schedule.region(**o).buffer, Buffer::Scratch(_)));
        let region = operand.map_or_else(
            || format!("rank {owner} {}", self.schedule.buffer_name(buffer)),
            |o| self.operand(*o),
        );
        let finding = Finding::new(
            Code::RaceWithCaller,
            self.at(op),
            format!("rank {owner} may return while rank {me} still {} {region}", access.verb()),
        )
        .label(format!("rank {owner}'s caller may overwrite the block while this runs"))
        .note(self.place(op))
        .note(format!(
            "rank {owner}'s caller may overwrite the block while rank {me} still {} it",
            access.verb()
        ))
        .note("inside one run this is clean; it goes wrong when the caller reuses its buffer at once")
        .note(format!("the missing edge: a signal from rank {me} after this op to rank {owner} before it returns"))
        .help(format!(
            "let rank {me} post `TxDataSignal` to rank {owner}, and rank {owner} wait for it (`RxDataSignal`)"
        ));
        let finding = self.naming(finding, [op]);
        match operand {
            Some(operand) => self.as_written(finding, op, *operand),
            None => finding,
        }
    }

    pub(in crate::verify) fn too_fine(per_unit: u32) -> Finding {
        Finding::new(
            Code::StepLimit,
            SpanId(0),
            format!("a unit is cut at {per_unit} places, more than a proof can hold"),
        )
        .help("use fewer, larger pieces")
    }

    pub(in crate::verify) fn too_many_streams(&self) -> Finding {
        let streams = self.schedule.streams.len();
        Finding::new(
            Code::StepLimit,
            SpanId(0),
            format!("{streams} streams know more of each other than a proof can hold"),
        )
        .note("it keeps for each stream how far it has heard of every other")
        .help("use fewer ranks, or fewer streams a rank")
    }
}
