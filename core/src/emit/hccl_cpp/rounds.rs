//! The same statement again and again, with other peers and pieces: a loop.

/// The longest body of a loop that is looked for.
const LONGEST: usize = 256;

/// Values of one place in a statement, by instance and member: the first of all loops runs slowest.
pub(super) type Column = Vec<Vec<Vec<u64>>>;

/// A statement, or a loop of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node<K> {
    Once { key: K, columns: Vec<Column> },
    Loop { times: usize, body: Vec<Node<K>> },
}

impl<K: PartialEq> Node<K> {
    fn alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Once { key: a, .. }, Self::Once { key: b, .. }) => a == b,
            (Self::Loop { times: m, body: a }, Self::Loop { times: n, body: b }) => {
                m == n && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.alike(b))
            }
            _ => false,
        }
    }

    /// Takes the values of a later iteration.
    fn absorb(&mut self, later: Self) {
        match (self, later) {
            (Self::Once { columns, .. }, Self::Once { columns: later, .. }) => {
                for (column, later) in columns.iter_mut().zip(later) {
                    column.extend(later);
                }
            }
            (Self::Loop { body, .. }, Self::Loop { body: later, .. }) => {
                for (node, later) in body.iter_mut().zip(later) {
                    node.absorb(later);
                }
            }
            _ => unreachable!("only what is alike is one statement"),
        }
    }
}

/// The statements with what repeats in loops, the innermost first.
pub(super) fn rounds<K: PartialEq>(mut nodes: Vec<Node<K>>) -> Vec<Node<K>> {
    loop {
        let before = nodes.len();
        nodes = once(nodes);
        if nodes.len() == before {
            return nodes;
        }
    }
}

fn once<K: PartialEq>(nodes: Vec<Node<K>>) -> Vec<Node<K>> {
    let mut result = Vec::new();
    let mut rest = std::collections::VecDeque::from(nodes);
    while !rest.is_empty() {
        let slice = rest.make_contiguous();
        let Some((len, times)) = repeated(slice) else {
            result.extend(rest.pop_front());
            continue;
        };
        let mut body: Vec<_> = rest.drain(..len).collect();
        for _ in 1..times {
            for node in &mut body {
                node.absorb(rest.pop_front().expect("it was counted"));
            }
        }
        result.push(Node::Loop { times, body });
    }
    result
}

/// The shortest body that the nodes begin with at least twice, where a loop is shorter than its iterations.
fn repeated<K: PartialEq>(nodes: &[Node<K>]) -> Option<(usize, usize)> {
    (1..=LONGEST.min(nodes.len() / 2)).find_map(|len| {
        let same = |times: &usize| {
            let (first, later) = (&nodes[..len], &nodes[times * len..(times + 1) * len]);
            first.iter().zip(later).all(|(a, b)| a.alike(b))
        };
        let times = 1 + (1..nodes.len() / len).take_while(same).count();
        (times > 1 && len * (times - 1) > 1).then_some((len, times))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str) -> Vec<Node<char>> {
        let node = |(at, key)| Node::Once { key, columns: vec![vec![vec![vec![at as u64]]]] };
        text.chars().enumerate().map(node).collect()
    }

    fn show(nodes: &[Node<char>]) -> String {
        let one = |node: &Node<char>| match node {
            Node::Once { key, columns } => {
                let values: Vec<_> = columns[0].iter().map(|by| by[0][0].to_string()).collect();
                format!("{key}{}", values.join("."))
            }
            Node::Loop { times, body } => format!("{times}({})", show(body)),
        };
        nodes.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_repeats_is_a_loop_in_its_order() {
        let rounds = |text: &str| show(&rounds(nodes(text)));
        assert_eq!(rounds("xababaxy"), "x0 2(a1.3 b2.4) a5 x6 y7");
        assert_eq!(rounds("aaabaaab"), "2(3(a0.1.2.4.5.6) b3.7)");
        assert_eq!(rounds("aab"), "a0 a1 b2");
        assert_eq!(rounds(""), "");
    }
}
