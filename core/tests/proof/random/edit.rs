//! Random changes of a program's tree: mistakes of beginners, and some changes without an effect.

use roundelay_core::source::Span;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::ast::{Algorithm, Attr, BinOp, Expr, ExprKind, Name, Stmt, StmtKind};
use roundelay_core::syntax::parse;

use super::grammar::{self, Dice};
use super::tree;

/// One change; often one that no longer compiles.
pub(super) fn edit(algorithm: &mut Algorithm, dice: &mut Dice) {
    let body = &mut algorithm.body;
    match dice.below(17) {
        // A pair of signals is removed: done or ready.
        16 => {
            let pair = dice.pick(&[["TxDataSignal", "RxDataSignal"], ["TxAck", "RxAck"]]);
            tree::lists(body, &mut |list| list.retain(|stmt| !signals(stmt, pair)));
        }
        // An algorithm begins or ceases to claim that it is right in place.
        14 if algorithm.attrs.is_empty() => {
            let name = Name { text: "out_of_place".to_owned(), span: Span::default() };
            algorithm.attrs.push(Attr { name, args: Vec::new(), span: Span::default() });
        }
        14 => algorithm.attrs.clear(),
        15 => in_some_list(body, dice, |list, at, _| {
            list.drain(at..(at + 2).min(list.len()));
        }),
        0 | 1 => in_some_list(body, dice, |list, at, _| {
            list.remove(at);
        }),
        2 => in_some_list(body, dice, |list, at, _| list.insert(at, list[at].clone())),
        3 | 4 => in_some_list(body, dice, |list, at, dice| {
            let other = dice.below(list.len());
            list.swap(at, other);
        }),
        5 => in_some_list(body, dice, |list, at, dice| {
            let stmt = list.remove(at);
            let to = (at + 1 + dice.below(2)).min(list.len());
            list.insert(to, stmt);
        }),
        6 => in_some_list(body, dice, |list, at, dice| {
            let condition = grammar::condition(dice, 0);
            let end = (at + 1 + dice.below(3)).min(list.len());
            wrap(list, at..end, &format!("if {condition} {{ }}"));
        }),
        7 => in_some_list(body, dice, |list, at, dice| {
            let word = dice.pick(&["for", "parallel"]);
            let end = (at + 1 + dice.below(4)).min(list.len());
            let times = 1 + dice.below(2);
            wrap(list, at..end, &format!("{word} w in 0..{times} {{ }}"));
        }),
        8 => in_some_list(body, dice, |list, at, dice| {
            let text = match dice.below(4) {
                0 => grammar::signal(dice),
                1 => "copy(local.input, local.output);".to_owned(),
                2 => "reduce(local.output, peer((rank + 1) % nranks).output);".to_owned(),
                _ => "peer((rank + 1) % nranks).TxAck(); peer((rank - 1) % nranks).RxAck();"
                    .to_owned(),
            };
            list.splice(at..at, statements(&text));
        }),
        _ => in_some_expr(body, dice),
    }
}

fn signals(stmt: &Stmt, pair: [&str; 2]) -> bool {
    let StmtKind::Expr(expr) = &stmt.kind else { return false };
    matches!(&*expr.kind, ExprKind::Method(_, name, _) if pair.contains(&&*name.text))
}

fn in_some_list(
    body: &mut Vec<Stmt>,
    dice: &mut Dice,
    change: impl Fn(&mut Vec<Stmt>, usize, &mut Dice),
) {
    let mut total = 0;
    tree::lists(body, &mut |list| total += list.len());
    let mut at = dice.below(total);
    let mut done = false;
    tree::lists(body, &mut |list| {
        if !done && at < list.len() {
            change(list, at, dice);
            done = true;
        } else if !done {
            at -= list.len();
        }
    });
}

/// The statements of `text`.
fn statements(text: &str) -> Vec<Stmt> {
    let text = format!("algorithm A() -> AllReduce {{ {text} }}");
    let (mut file, _) = parse(&Source::from_text("part", &text));
    file.algorithms.pop().map(|a| a.body).unwrap_or_default()
}

fn wrap(list: &mut Vec<Stmt>, range: std::ops::Range<usize>, block: &str) {
    let mut block = statements(block).remove(0);
    let inner = list.drain(range.clone()).collect();
    **tree::bodies(&mut block).first_mut().expect("a block") = inner;
    list.insert(range.start, block);
}

fn in_some_expr(body: &mut [Stmt], dice: &mut Dice) {
    let mut total = 0;
    tree::exprs(body, &mut |at| total += usize::from(changed(at, &mut Dice::new(1)).is_some()));
    let mut left = dice.below(total);
    let mut done = false;
    tree::exprs(body, &mut |at| {
        if !done && let Some(new) = changed(at, dice) {
            done = left == 0;
            if done {
                *at.kind = new;
            }
            left = left.saturating_sub(1);
        }
    });
}

/// Another expression in the place of this one.
fn changed(at: &Expr, dice: &mut Dice) -> Option<ExprKind> {
    let name = |text: &str| Name { text: text.to_owned(), span: Span::default() };
    let other = |text: &str| {
        let pairs = [
            ("TxAck", "TxDataSignal"),
            ("RxAck", "RxDataSignal"),
            ("left", "right"),
            ("to", "from"),
            ("input", "output"),
            ("copy", "reduce"),
            ("rank", "nranks"),
        ];
        pairs
            .into_iter()
            .find_map(|(a, b)| (text == a).then_some(b).or_else(|| (text == b).then_some(a)))
    };
    Some(match &*at.kind {
        ExprKind::Int(value) => ExprKind::Int((value + dice.pick(&[1, -1])).max(0)),
        ExprKind::Name(text) => ExprKind::Name(other(text)?.to_owned()),
        ExprKind::Field(of, field) => ExprKind::Field(of.clone(), name(other(&field.text)?)),
        ExprKind::Method(of, method, args) => {
            ExprKind::Method(of.clone(), name(other(&method.text)?), args.clone())
        }
        // The two ends of a move, or another move.
        ExprKind::Call(path, args) if args.len() == 2 && dice.once_in(2) => {
            ExprKind::Call(path.clone(), args.iter().rev().cloned().collect())
        }
        ExprKind::Call(path, args) if path.len() == 1 => {
            ExprKind::Call(vec![name(other(&path[0].text)?)], args.clone())
        }
        ExprKind::Binary(op, a, b) => {
            let new = match op {
                BinOp::Add => BinOp::Sub,
                BinOp::Sub | BinOp::BitXor => BinOp::Add,
                BinOp::Lt => BinOp::Le,
                BinOp::Eq => BinOp::Ne,
                _ => return None,
            };
            if dice.once_in(3) {
                return Some(ExprKind::Binary(*op, b.clone(), a.clone()));
            }
            ExprKind::Binary(new, a.clone(), b.clone())
        }
        _ => return None,
    })
}

/// Returns smaller programs that may show the disagreement: a statement less, a block opened, an operand for the whole.
pub(super) fn smaller(algorithm: &Algorithm) -> Vec<Algorithm> {
    let mut all = Vec::new();
    let mut copy = algorithm.clone();
    let mut places = Vec::new();
    let mut lists = 0;
    tree::lists(&mut copy.body, &mut |list| {
        places.extend((0..list.len()).map(|at| (lists, at)));
        lists += 1;
    });
    for (place, at) in places {
        let variant = |change: &dyn Fn(&mut Vec<Stmt>)| {
            let mut variant = algorithm.clone();
            let mut lists = 0;
            tree::lists(&mut variant.body, &mut |list| {
                if lists == place {
                    change(list);
                }
                lists += 1;
            });
            variant
        };
        all.push(variant(&|list| {
            list.remove(at);
        }));
        for inner in 0..4 {
            all.push(variant(&|list| {
                if let Some(body) = tree::bodies(&mut list[at]).get_mut(inner) {
                    let body = std::mem::take(*body);
                    list.splice(at..=at, body);
                }
            }));
        }
        all.push(variant(&|list| {
            if let StmtKind::If { otherwise, .. } = &mut list[at].kind {
                *otherwise = None;
            }
        }));
    }
    let mut total = 0;
    tree::exprs(&mut copy.body, &mut |_| total += 1);
    for place in 0..total {
        for with in 0..4 {
            let mut variant = algorithm.clone();
            let mut at = 0;
            tree::exprs(&mut variant.body, &mut |expr| {
                if at == place {
                    let value = matches!(&*expr.kind, ExprKind::Int(v) if *v <= with);
                    let simpler = match with {
                        0 | 1 if !value => Some(ExprKind::Int(with)),
                        2 | 3 => {
                            tree::operands(expr).get((with - 2) as usize).map(|e| (*e.kind).clone())
                        }
                        _ => None,
                    };
                    if let Some(simpler) = simpler {
                        *expr.kind = simpler;
                    }
                }
                at += 1;
            });
            all.push(variant);
        }
    }
    all.retain(|variant| variant != algorithm);
    all
}
