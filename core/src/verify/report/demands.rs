//! The findings of unmet demands: the needed and the allowed amount, and the ops that take it.

use super::{Reporter, table};
use crate::diagnostics::{Code, Finding};
use crate::ids::{OpId, RankId, SpanId};
use crate::rational::Rat;
use crate::schedule::demands::Budget;
use crate::verify::{Busiest, Ports, Witness};

impl Reporter<'_> {
    pub(in crate::verify) fn order_differs(at: SpanId, witness: &Witness) -> Finding {
        let Witness { ranks: [a, b], piece, orders, in_place } = witness;
        let mode = if *in_place { "in place, " } else { "" };
        let title = format!("{mode}ranks {a} and {b} reduce {piece} in different orders");
        let lines =
            [(a, &orders[0]), (b, &orders[1])].map(|(r, order)| format!("rank {r}: {order}"));
        Finding::new(Code::OrderDiffers, at, title)
            .label("demands one order on every rank")
            .note(table("the orders, innermost first", &lines))
            .note("floating point sums round on the way, so these ranks end with different bits")
            .help("let one rank reduce each piece and the others copy its result")
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
        let plural = if needed == 1 { "" } else { "s" };
        self.over(budget, &format!("{needed} credit{plural} a link"))
            .note("with fewer, ranks wait for each other's slots in a cycle")
            .help("send fewer slices before you receive, so that fewer slots hold data at once")
    }

    pub(in crate::verify) fn ports_over(&self, budget: Budget, ports: &Ports) -> Finding {
        let sends = ports.send.peers.len() >= ports.receive.peers.len();
        let Busiest { rank, peers, .. } = if sends { &ports.send } else { &ports.receive };
        let (does, to) = if sends { ("sends to", "to") } else { ("receives from", "from") };
        let n = peers.len();
        let plural = if budget.most == 1 { "" } else { "s" };
        let most = budget.most;
        let place = if ports.in_place { "in place, " } else { "" };
        let title = format!(
            "{place}rank {rank} {does} {n} peers at once, and the budget is {most} port{plural}"
        );
        let lines: Vec<_> = peers
            .iter()
            .map(|(peer, op)| format!("{to} rank {peer}: {}", self.place(*op)))
            .collect();
        let finding = Finding::new(Code::PortConflict, budget.at, title)
            .label("more peers at once than ports")
            .note("moves that do not depend on each other may run at once")
            .note(table("at once", &lines))
            .help("shift the peers by the rank, so that each step pairs every rank with one other");
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
