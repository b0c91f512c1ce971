//! The finder of loops in a flat list of statements, such as a stream of a schedule.
//!
//! Its input is the statements in their order. A statement has a key, which is equal in all its iterations, and values,
//! such as peers and pieces, which may differ. Several members, such as ranks whose streams have the same keys, may
//! share a list: then a statement has the values of each member.
//!
//! Its output is a list of statements and loops that runs the same keys with the same values in the same order. A loop
//! has a constant number of iterations; a statement in loops has one key, and the values of all its iterations in the
//! order in which they run. The innermost loops are found first, and outer loops in later passes, until a pass finds no
//! loop. A pass goes from the front to the back: at each statement it takes the shortest body that follows at least
//! twice, with the largest number of iterations, if the loop has fewer nodes than its iterations. This is greedy, and
//! the output is not always the shortest form: the finder misses a repetition that only another choice earlier in the
//! list would expose.
//!
//! A pass over n nodes compares each body length with the following nodes up to the first difference: at most n *
//! LONGEST comparisons if bodies differ at once, as they mostly do, and n * LONGEST² / 2 in the worst case. To compare
//! or join two loops takes time proportional to their statements. A pass that finds a loop leaves fewer nodes, so there
//! are fewer than n passes; schedules of algorithms take one more pass than their loops are nested deep.
//!
//! Its limit is [`LONGEST`]: a body of more nodes, an inner loop counted as one, is not found, and its statements stay
//! written out.

/// The most nodes of a loop's body that the finder tries.
const LONGEST: usize = 256;

/// The values at one place of a statement, by iteration and member; of nested loops the outermost runs slowest.
pub(crate) type Column<V> = Vec<Vec<V>>;

/// A statement, or a loop of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RepeatNode<K, V> {
    Once { key: K, columns: Vec<Column<V>> },
    Loop { times: usize, body: Vec<RepeatNode<K, V>> },
}

impl<K: PartialEq, V> RepeatNode<K, V> {
    /// Whether two nodes can be iterations of one node: keys and numbers of iterations are equal, and values may
    /// differ.
    fn alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Once { key: a, .. }, Self::Once { key: b, .. }) => a == b,
            (Self::Loop { times: m, body: a }, Self::Loop { times: n, body: b }) => {
                m == n && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.alike(b))
            }
            _ => false,
        }
    }

    /// Appends the values of a later iteration.
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
            _ => unreachable!("only alike nodes are joined"),
        }
    }
}

/// Returns the name of a loop's variable, by the number of loops around it.
pub(crate) fn variable(depth: usize) -> String {
    ["i", "j", "k"].get(depth).map_or_else(|| format!("i{depth}"), |name| (*name).to_owned())
}

/// Puts repeated nodes into loops, the innermost first.
pub(crate) fn found<K: PartialEq, V>(mut nodes: Vec<RepeatNode<K, V>>) -> Vec<RepeatNode<K, V>> {
    loop {
        let before = nodes.len();
        nodes = once(nodes);
        if nodes.len() == before {
            return nodes;
        }
    }
}

/// Makes one pass from the front to the back.
fn once<K: PartialEq, V>(nodes: Vec<RepeatNode<K, V>>) -> Vec<RepeatNode<K, V>> {
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
                node.absorb(rest.pop_front().expect("the iterations were counted"));
            }
        }
        result.push(RepeatNode::Loop { times, body });
    }
    result
}

/// Returns the length and the number of iterations of the shortest body that the nodes repeat from their begin, if the
/// loop has fewer nodes than its iterations.
fn repeated<K: PartialEq, V>(nodes: &[RepeatNode<K, V>]) -> Option<(usize, usize)> {
    (1..=LONGEST.min(nodes.len() / 2)).find_map(|len| {
        let same = |times: &usize| {
            let (first, later) = (&nodes[..len], &nodes[times * len..(times + 1) * len]);
            first.iter().zip(later).all(|(a, b)| a.alike(b))
        };
        let times = 1 + (1..nodes.len() / len).take_while(same).count();
        (times > 1 && len * (times - 1) > 1).then_some((len, times))
    })
}
