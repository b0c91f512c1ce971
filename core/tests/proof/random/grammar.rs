//! Random programs: exchanges of data between ranks, most of them with all their signals, in loops, conditions and
//! streams, each with a possible fault.

use std::fmt::Write as _;

use fastrand::Rng;

/// Choices by chance.
pub(super) struct Dice(Rng);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.usize(..n.max(1))
    }

    /// Once in `n` times.
    pub(super) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// An `int`; `vars` loop variables `v0`, `v1`, … are in scope.
pub(super) fn int(dice: &mut Dice, vars: usize) -> String {
    let leaf = |dice: &mut Dice| match dice.below(5 + vars) {
        0 => "0".to_owned(),
        1 => "1".to_owned(),
        2 | 3 => "rank".to_owned(),
        4 => "nranks".to_owned(),
        v => format!("v{}", v - 5),
    };
    if dice.once_in(2) {
        return leaf(dice);
    }
    let op = dice.pick(&["+", "-", "*", "^"]);
    format!("({} {op} {})", leaf(dice), leaf(dice))
}

pub(super) fn condition(dice: &mut Dice, vars: usize) -> String {
    let op = dice.pick(&["==", "<", ">", "!="]);
    match dice.below(3) {
        0 => format!("nranks {op} {}", 2 + dice.below(3)),
        1 if vars > 0 => format!("v{} {op} {}", dice.below(vars), dice.below(3)),
        _ => format!("rank {op} {}", int(dice, vars)),
    }
}

/// Two regions of one length, without their ranks: where data comes from, and where it goes.
fn regions(dice: &mut Dice, vars: usize) -> (String, String) {
    let block = |dice: &mut Dice, of: &str| {
        let at = int(dice, vars);
        format!("{of}.split(nranks)[{at} % nranks]")
    };
    let whole = ["output", "kept[0]", "kept[1]"];
    match dice.below(6) {
        0 => (dice.pick(&["input", "output", "kept[0]"]).into(), dice.pick(&whole).into()),
        1 => {
            let at = dice.below(2);
            let (a, b) = (dice.pick(&whole), dice.pick(&whole));
            (format!("{a}.split(2)[{at}]"), format!("{b}.split(2)[{at}]"))
        }
        2 => {
            let (at, half) = (int(dice, vars), dice.below(2));
            let one = |of| format!("{of}.split(nranks)[{at} % nranks].split(2)[{half}]");
            (one("output"), one(dice.pick(&whole)))
        }
        3 => {
            let slot = int(dice, vars);
            (block(dice, "output"), format!("slot[{slot} % 2]"))
        }
        4 => {
            let slot = int(dice, vars);
            (format!("slot[{slot} % 2]"), block(dice, "output"))
        }
        _ => {
            let at = int(dice, vars);
            let one = |of| format!("{of}.split(nranks)[{at} % nranks]");
            (one(dice.pick(&["output", "input"])), one(dice.pick(&whole)))
        }
    }
}

/// A move within the rank.
pub(super) fn own_move(dice: &mut Dice, vars: usize) -> String {
    let (from, to) = regions(dice, vars);
    if dice.once_in(6) {
        let (other, _) = regions(dice, vars);
        return format!("reduce([local.{from}, local.{other}], local.{to});");
    }
    let verb = dice.pick(&["copy", "reduce", "copy"]);
    format!("{verb}(local.{from}, local.{to});")
}

/// A signal by itself.
pub(super) fn signal(dice: &mut Dice) -> String {
    let (far, way) = (1 + dice.below(2), dice.pick(&["+", "-"]));
    let signal = dice.pick(&["TxAck", "RxAck", "TxDataSignal", "RxDataSignal"]);
    format!("peer((rank {way} {far}) % nranks).{signal}();")
}

/// Every rank moves data from, or to, one at some distance; seldom with a signal too few or out of order.
pub(super) fn exchange(dice: &mut Dice, vars: usize) -> String {
    let far = match dice.below(3 + vars) {
        0 | 1 => "1".to_owned(),
        2 => "(nranks - 1)".to_owned(),
        v => format!("(1 + v{} % (nranks - 1))", v - 3),
    };
    let up = format!("peer((rank + {far}) % nranks)");
    let down = format!("peer((rank - {far}) % nranks)");
    let (from, to) = regions(dice, vars);
    let verb = dice.pick(&["copy", "reduce", "copy"]);
    let (mut lines, signals) = if dice.once_in(2) {
        let lines = [
            format!("{up}.TxAck();"),
            format!("{down}.RxAck();"),
            format!("{verb}({down}.{from}, local.{to});"),
            format!("{down}.TxDataSignal();"),
            format!("{up}.RxDataSignal();"),
        ];
        (lines, [0, 1, 3, 4])
    } else {
        let lines = [
            format!("{down}.TxAck();"),
            format!("{up}.RxAck();"),
            format!("{verb}(local.{from}, {up}.{to});"),
            format!("{up}.TxDataSignal();"),
            format!("{down}.RxDataSignal();"),
        ];
        (lines, [0, 1, 3, 4])
    };
    match dice.below(8) {
        0 => lines[dice.pick(&signals)].clear(),
        1 => {
            let at = dice.below(4);
            lines.swap(at, at + 1);
        }
        // One pair of signals less: the accesses that it ordered may race.
        2 => [0, 1].into_iter().for_each(|at| lines[at].clear()),
        3 => [3, 4].into_iter().for_each(|at| lines[at].clear()),
        _ => {}
    }
    lines.join(" ")
}

/// Some statements.
fn statements(dice: &mut Dice, vars: usize, depth: usize) -> String {
    let mut text = String::new();
    for _ in 0..=dice.below(3) {
        let _ = match dice.below(if depth > 0 { 9 } else { 5 }) {
            0 => writeln!(text, "{}", own_move(dice, vars)),
            1 if dice.once_in(3) => writeln!(text, "{}", signal(dice)),
            1..=4 => writeln!(text, "{}", exchange(dice, vars)),
            5 | 6 => {
                let end = dice.pick(&["2", "nranks - 1", "nranks"]);
                let body = statements(dice, vars + 1, depth - 1);
                writeln!(text, "for v{vars} in 0..{end} {{ {body} }}")
            }
            7 => {
                let body = statements(dice, vars + 1, depth - 1);
                writeln!(text, "parallel v{vars} in 0..2 {{ {body} }}")
            }
            _ => {
                let condition = condition(dice, vars);
                let (body, other) =
                    (statements(dice, vars, depth - 1), statements(dice, vars, depth - 1));
                writeln!(text, "if {condition} {{ {body} }} else {{ {other} }}")
            }
        };
    }
    text
}

/// A program.
pub(super) fn program(dice: &mut Dice) -> String {
    let collective = dice.pick(&["AllReduce", "AllReduce", "AllToAll", "Broadcast"]);
    let params = if collective == "Broadcast" { "root: Rank = 0" } else { "" };
    let start = if collective == "Broadcast" {
        "if rank == root { copy(local.input, local.output); }"
    } else {
        "copy(local.input, local.output);"
    };
    let start = if dice.once_in(8) { "" } else { start };
    let body = statements(dice, 0, 2);
    let [kept, slot] = [0, 1].map(|_| if dice.once_in(3) { " as f32" } else { "" });
    format!(
        "algorithm Random({params}) -> {collective} {{
            scratch kept: 2 like output{kept};
            scratch slot: 2 like output.split(nranks){slot};
            {start}
            {body}
        }}"
    )
}
