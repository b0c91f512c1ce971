//! The findings of unmet demands: the needed and the allowed amount, and the ops that take it.

use super::{Reporter, table};
use crate::diagnostics::{Code, Finding};
use crate::ids::{OpId, RankId, SpanId};
use crate::rational::Rat;
use crate::schedule::demands::Budget;
use crate::units::count;
use crate::values::order_class::OrderClass;
use crate::verify::{Busiest, Ports, Witness};

impl Reporter<'_> {
    pub(in crate::verify) fn order_differs(
        &self,
        class: OrderClass,
        at: SpanId,
        witness: &Witness,
    ) -> Finding {
        let Witness { ranks: [a, b], pieces: [one, other], orders, at: op, in_place } = witness;
        let mode = if *in_place { "in place, " } else { "" };
        let open = self.schedule.op(*op).switch;
        let (title, help) = match class {
            OrderClass::AllRanks => (
                format!("{mode}ranks {a} and {b} reduce {one} in different orders"),
                "let one rank reduce each piece and the others copy its result",
            ),
            OrderClass::AllElements => (
                format!(
                    "{mode}rank {a} {one} and rank {b} {other} are reduced in different orders"
                ),
                "reduce every piece in the order of the ranks, not in an order that begins at its owner",
            ),
            OrderClass::AllCounts => (
                format!("{mode}rank {a} reduces {one} and {other} in different orders"),
                "reduce every piece in the order of the ranks, as `OrderedAllReduce` of the library does",
            ),
            OrderClass::RankOrder => (
                format!("{mode}rank {a} reduces {one} in another order than that of the ranks"),
                "begin with the contribution of the last rank, and reduce each rank before it into that: `reduce(from, into)` is into = from op into",
            ),
            OrderClass::EveryRun => (
                format!("{mode}rank {a} reduces {one} in an order that may differ from run to run"),
                "let ranks `reduce`: they do so in the same order in every run",
            ),
        };
        let of_one = matches!(class, OrderClass::RankOrder | OrderClass::EveryRun);
        let lines: Vec<_> = if of_one {
            vec![format!("rank {a}: {}", orders[0])]
        } else {
            let line = |nth: usize| {
                format!("rank {} {}: {}", witness.ranks[nth], witness.pieces[nth], orders[nth])
            };
            vec![line(0), line(1)]
        };
        let why = match class {
            OrderClass::AllRanks => {
                "floating point sums round on the way, so these ranks end with different bits"
            }
            OrderClass::RankOrder => {
                "an op that does not commute has another result in another order"
            }
            _ => {
                "floating point sums round on the way, so equal contributions have different bits at these places"
            }
        };
        let (why, help) = match class {
            _ if !open => (why, help),
            OrderClass::AllRanks => (
                "a switch folds in an order that is open, so ranks that have it fold for themselves end with different bits",
                "let one rank have each piece folded, and stored at all ranks: `fold(all.x, all.x)`",
            ),
            OrderClass::EveryRun => ("a switch folds in an order that is open", help),
            _ => (
                "a switch folds in an order that is open, and that may differ from element to element and from run to run",
                "let ranks `reduce` in the order of the ranks, as `OrderedAllReduce` of the library does",
            ),
        };
        let (place, label) = self.demanded(at, *op);
        let mut finding = Finding::new(Code::OrderDiffers, place, title)
            .note(table("the orders, innermost first", &lines))
            .note(why)
            .help(help);
        finding = finding.label(match (label, open) {
            (false, _) => "demanded here",
            (_, true) => "the switch orders this sum",
            (_, false) => "this reduce has the other order",
        });
        if label && at.0 > 0 {
            finding.others.push((at, format!("demands `{class}`")));
        }
        finding
    }

    /// Returns the place of a finding of a demand: the op that breaks it, if the place of the op is known.
    fn demanded(&self, at: SpanId, op: OpId) -> (SpanId, bool) {
        let place = self.at(op);
        if place.0 > 0 { (place, true) } else { (at, false) }
    }

    /// Reports the ops that round, and whether the division of an average rounds after them.
    pub(in crate::verify) fn too_many_roundings(
        &self,
        most: u32,
        at: SpanId,
        (rounding, divided_at_end): (&[OpId], bool),
    ) -> Finding {
        let n = rounding.len() + usize::from(divided_at_end);
        let times = |n: usize| if n == 1 { "once".to_owned() } else { format!("{n} times") };
        let title = format!(
            "a result is rounded {} to f16, bf16 or fp8, and {} is allowed",
            times(n),
            if most == 0 { "no rounding".to_owned() } else { times(most as usize) }
        );
        let op = rounding[(most as usize).min(rounding.len() - 1)];
        let lines: Vec<_> = rounding.iter().map(|op| self.place(*op)).collect();
        let (place, label) = self.demanded(at, op);
        let mut finding = Finding::new(Code::TooManyRoundings, place, title)
            .label(if label { "one rounding too many" } else { "demanded here" })
            .note(table("each of these rounds", &lines));
        if divided_at_end {
            finding = finding.note(
                "an average is divided at the end, which rounds it again: a `reduce` completes a part of what it writes, \
                 or another part in place",
            );
        }
        finding = finding
            .help("let one `reduce` take all sources, `reduce([a, b, c], dst)`, or keep partial sums in `scratch sums: like output as f32;`");
        if label && at.0 > 0 {
            finding.others.push((at, "demands it".to_owned()));
        }
        self.naming(finding, rounding.iter().copied())
    }

    pub(in crate::verify) fn scratch_over(&self, budget: Budget, needs: Option<Rat>) -> Finding {
        let needs = needs.map_or("more than 2^64".to_owned(), |needs| needs.to_string());
        let buffers = self.schedule.scratch.iter().map(|s| {
            let slots = if s.slots == 1 { String::new() } else { format!("{} slots of ", s.slots) };
            format!("{}: {slots}{} units", s.name, s.width)
        });
        self.over(budget, &format!("{needs} units of scratch a rank"))
            .note("a unit is `count` elements")
            .note(table("its scratch", &buffers.collect::<Vec<_>>()))
            .help("reuse slots, or cut the data into pieces that are sent one after the other")
    }

    pub(in crate::verify) fn streams_over(
        &self,
        budget: Budget,
        needs: u32,
        last: Option<OpId>,
    ) -> Finding {
        let finding = self
            .over(budget, &format!("{needs} streams a rank"))
            .note("the main stream counts, and each iteration of a `parallel` but the first")
            .help("let some of the iterations run one after the other, in a `for`");
        self.taken_at(finding, last, "its last stream starts here")
    }

    pub(in crate::verify) fn notifies_over(
        &self,
        budget: Budget,
        needs: u32,
        last: Option<(OpId, RankId, RankId)>,
    ) -> Finding {
        let ends = last.map_or(String::new(), |(_, a, b)| format!(" from rank {a} to rank {b}"));
        let finding = self
            .over(budget, &format!("{needs} notifies{ends}"))
            .note("each lane has an ack and a data notify of its own")
            .help("signal by fewer kinds, or by fewer streams, between two ranks");
        self.taken_at(finding, last.map(|(op, ..)| op), "the last of them is first posted here")
    }

    pub(in crate::verify) fn fifo_over(&self, budget: Budget, needed: u32) -> Finding {
        self.over(budget, &format!("{} a link", count(needed, "credit")))
            .note("with fewer, ranks wait for each other's slots in a cycle")
            .help("send fewer slices before you receive, so that fewer slots hold data at once")
    }

    pub(in crate::verify) fn ports_over(&self, budget: Budget, ports: &Ports) -> Finding {
        let sends = ports.send.peers.len() >= ports.receive.peers.len();
        let Busiest { rank, peers, .. } = if sends { &ports.send } else { &ports.receive };
        let (does, to) = if sends { ("sends to", "to") } else { ("receives from", "from") };
        let n = peers.len();
        let most = count(budget.most, "port");
        let place = if ports.in_place { "in place, " } else { "" };
        let title =
            format!("{place}rank {rank} {does} {n} peers at once, and the budget is {most}");
        let lines: Vec<_> = peers
            .iter()
            .map(|(peer, op)| format!("{to} rank {peer}: {}", self.place(*op)))
            .collect();
        let finding = Finding::new(Code::PortConflict, budget.at, title)
            .label("more peers at once than ports")
            .note("moves that do not depend on each other may run at once")
            .note(table("at once", &lines))
            .help("shift the peers by the rank, so that each step pairs every rank with one other");
        let finding = self.naming(finding, peers.iter().map(|(_, op)| *op));
        self.taken_at(finding, peers.last().map(|(_, op)| *op), "one of the moves")
    }

    fn over(&self, budget: Budget, needs: &str) -> Finding {
        let most = budget.most;
        let name = &self.schedule.algorithm;
        Finding::new(
            Code::OverBudget,
            budget.at,
            format!("{name} needs {needs}, and the budget is {most}"),
        )
        .label("more than this")
    }

    fn taken_at(&self, mut finding: Finding, op: Option<OpId>, label: &str) -> Finding {
        if let Some(op) = op {
            finding.others.push((self.at(op), label.to_owned()));
        }
        finding
    }
}
