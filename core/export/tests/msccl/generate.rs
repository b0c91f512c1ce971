//! Right programs of several shapes and sizes, as text: a step a line.

use std::fmt::Write as _;

/// The head of a program, which is for calls in place, or for those out of place.
pub(super) struct Head {
    coll: &'static str,
    proto: &'static str,
    ranks: usize,
    chunks: usize,
    in_place: bool,
}

impl Head {
    pub(super) fn new(
        coll: &'static str,
        proto: &'static str,
        ranks: usize,
        chunks: usize,
        in_place: bool,
    ) -> Self {
        Self { coll, proto, ranks, chunks, in_place }
    }
}

/// A step: type, source, destination, chunks, the step that it waits for, and whether another step waits for it.
pub(super) type Step =
    (&'static str, (char, usize), (char, usize), usize, Option<(usize, usize)>, bool);

/// A block: where it sends to and receives from, its channel and its steps.
pub(super) struct Block {
    pub(super) send: Option<usize>,
    pub(super) receive: Option<usize>,
    pub(super) channel: usize,
    pub(super) steps: Vec<Step>,
}

/// A program of ranks with chunks of input, output and scratch, and blocks.
pub(super) fn text(head: &Head, gpus: &[([usize; 3], Vec<Block>)]) -> String {
    let Head { coll, proto, ranks, chunks, .. } = head;
    let (inplace, outofplace) = (u8::from(head.in_place), u8::from(!head.in_place));
    let channels = gpus.iter().flat_map(|gpu| &gpu.1).map(|block| block.channel + 1).max();
    let mut text = format!(
        "<algo name=\"made\" proto=\"{proto}\" nchannels=\"{}\" nchunksperloop=\"{chunks}\" \
         ngpus=\"{ranks}\" coll=\"{coll}\" inplace=\"{inplace}\" outofplace=\"{outofplace}\" \
         minBytes=\"0\" maxBytes=\"0\">\n",
        channels.unwrap_or(1)
    );
    for (id, ([i, o, s], blocks)) in gpus.iter().enumerate() {
        let _ = writeln!(
            text,
            "  <gpu id=\"{id}\" i_chunks=\"{i}\" o_chunks=\"{o}\" s_chunks=\"{s}\">"
        );
        for (id, block) in blocks.iter().enumerate() {
            let peer = |peer: Option<usize>| peer.map_or("-1".to_owned(), |peer| peer.to_string());
            let (send, receive) = (peer(block.send), peer(block.receive));
            let _ = writeln!(
                text,
                "    <tb id=\"{id}\" send=\"{send}\" recv=\"{receive}\" chan=\"{}\">",
                block.channel
            );
            for (s, step) in block.steps.iter().enumerate() {
                text.push_str(&line(s, step));
            }
            text.push_str("    </tb>\n");
        }
        text.push_str("  </gpu>\n");
    }
    text + "</algo>\n"
}

fn line(s: usize, (kind, src, dst, count, wait, posts): &Step) -> String {
    let number = |wait: Option<usize>| wait.map_or("-1".to_owned(), |n| n.to_string());
    format!(
        "      <step s=\"{s}\" type=\"{kind}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" \
         cnt=\"{count}\" depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
        src.0,
        src.1,
        dst.0,
        dst.1,
        number(wait.map(|wait| wait.0)),
        number(wait.map(|wait| wait.1)),
        u8::from(*posts)
    )
}

/// A ring that reduces and then gathers, in one block a channel; `count` chunks a step.
pub(super) fn ring(ranks: usize, channels: usize, count: usize, proto: &'static str) -> String {
    let head = Head::new("allreduce", proto, ranks, ranks * channels * count, true);
    let gpu = |rank: usize| {
        let block = |channel: usize| {
            let piece = |k: usize| {
                let at = ('i', (channel * ranks + (rank + 2 * ranks - k) % ranks) * count);
                (at, at)
            };
            let mut steps = Vec::new();
            let mut push = |kind, k| {
                let (src, dst) = piece(k);
                steps.push((kind, src, dst, count, None, false));
            };
            push("s", 0);
            (1..ranks - 1).for_each(|k| push("rrs", k));
            push("rrcs", ranks - 1);
            (0..ranks - 2).for_each(|k| push("rcs", k));
            push("r", ranks - 2);
            let (send, receive) = (Some((rank + 1) % ranks), Some((rank + ranks - 1) % ranks));
            Block { send, receive, channel, steps }
        };
        ([head.chunks, 0, 0], (0..channels).map(block).collect())
    };
    text(&head, &(0..ranks).map(gpu).collect::<Vec<_>>())
}

/// Every rank reduces a part of its own: arriving data goes to scratch, then one block adds it up, with a chain of
/// `nop`s before it; then every pair exchanges the complete data.
pub(super) fn pairs(ranks: usize, count: usize, proto: &'static str) -> String {
    let head = Head::new("allreduce", proto, ranks, ranks * count, true);
    let gpu = |rank: usize| {
        let peers: Vec<usize> = (0..ranks).filter(|peer| *peer != rank).collect();
        let mut blocks: Vec<Block> = peers
            .iter()
            .enumerate()
            .map(|(slot, &peer)| {
                let (mine, theirs) = (('i', rank * count), ('i', peer * count));
                let added = Some((peers.len(), sum_done(ranks)));
                let steps = vec![
                    ("s", theirs, theirs, count, None, false),
                    ("r", mine, ('s', slot * count), count, None, true),
                    ("s", mine, mine, count, added, false),
                    ("r", theirs, theirs, count, None, false),
                ];
                Block { send: Some(peer), receive: Some(peer), channel: 0, steps }
            })
            .collect();
        blocks.push(Block {
            send: None,
            receive: None,
            channel: 0,
            steps: sum(rank, ranks, count),
        });
        ([head.chunks, 0, (ranks - 1) * count], blocks)
    };
    text(&head, &(0..ranks).map(gpu).collect::<Vec<_>>())
}

/// The step of the block that adds up after which all is added.
fn sum_done(ranks: usize) -> usize {
    2 * (ranks - 1) - 2
}

fn sum(rank: usize, ranks: usize, count: usize) -> Vec<Step> {
    let mine = ('i', rank * count);
    let mut steps: Vec<Step> =
        (0..ranks - 2).map(|block| ("nop", mine, mine, count, Some((block, 1)), false)).collect();
    for slot in 0..ranks - 1 {
        let wait = (slot == 0).then_some((ranks - 2, 1));
        steps.push(("re", ('s', slot * count), mine, count, wait, slot == ranks - 2));
    }
    steps
}

/// Every pair exchanges its blocks, and each rank copies its own; `whole` says that each block is a step.
pub(super) fn exchange(coll: &'static str, ranks: usize, count: usize, whole: bool) -> String {
    let gather = coll == "allgather";
    let head = Head::new(coll, "LL", ranks, ranks * count, false);
    let (steps, each) = if whole { (1, count) } else { (count, 1) };
    let gpu = |rank: usize| {
        let own = |peer: usize, k: usize| {
            let from = if gather { k * each } else { peer * count + k * each };
            ('i', from)
        };
        let mut blocks: Vec<Block> = (0..ranks)
            .filter(|peer| *peer != rank)
            .map(|peer| {
                let target = |k: usize| ('o', peer * count + k * each);
                let mut all = Vec::new();
                for k in 0..steps {
                    all.push(("s", own(peer, k), target(k), each, None, false));
                    all.push(("r", own(peer, k), target(k), each, None, false));
                }
                Block { send: Some(peer), receive: Some(peer), channel: 0, steps: all }
            })
            .collect();
        let copy =
            |k: usize| ("cpy", own(rank, k), ('o', rank * count + k * each), each, None, false);
        let steps = (0..steps).map(copy).collect();
        blocks.push(Block { send: None, receive: None, channel: 0, steps });
        let input = if gather { count } else { ranks * count };
        ([input, ranks * count, 0], blocks)
    };
    text(&head, &(0..ranks).map(gpu).collect::<Vec<_>>())
}

/// Small right programs of every shape, with their names.
pub(super) fn all() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for proto in ["Simple", "LL"] {
        for (ranks, channels, count) in [(3, 1, 1), (4, 2, 1), (3, 1, 2)] {
            let name = format!("ring {ranks} {channels} {count} {proto}");
            all.push((name, ring(ranks, channels, count, proto)));
        }
        for (ranks, count) in [(3, 1), (4, 2)] {
            all.push((format!("pairs {ranks} {count} {proto}"), pairs(ranks, count, proto)));
        }
    }
    for coll in ["allgather", "alltoall"] {
        for (ranks, count, whole) in [(3, 2, true), (3, 2, false), (4, 1, true)] {
            let name = format!("{coll} {ranks} {count} {whole}");
            all.push((name, exchange(coll, ranks, count, whole)));
        }
    }
    // In place the copy of a rank's own block does nothing.
    for (ranks, count) in [(3, 2), (4, 1)] {
        let text = exchange("allgather", ranks, count, true);
        let both = text.replace("inplace=\"0\" outofplace", "inplace=\"1\" outofplace");
        all.push((format!("allgather {ranks} {count} in both modes"), both));
    }
    all
}
