//! A plan as the executor in small sees it: its ops one after another, and the places of chunks and channels.

use serde_json::{Value as Json, json};

use crate::models::Sum;

/// Elements of a chunk, threads of a block, and consecutive calls.
pub(super) const ELEMENTS: usize = 6;
pub(super) const THREADS: usize = 3;
pub(super) const CALLS: usize = 3;

/// An op, and which of how many stretches of a loop.
pub(super) type Flat = (Json, (usize, usize));

/// Elements of a buffer: its rank, its letter, the first element and the one after the last.
pub(super) type Place = (usize, char, usize, usize);

/// A plan, and the ops of each block of each rank.
pub(super) struct Model<'p> {
    pub(super) plan: &'p Json,
    pub(super) ranks: usize,
    pub(super) programs: Vec<Vec<Vec<Flat>>>,
}

pub(super) fn number(value: &Json) -> usize {
    value.as_u64().expect("a number") as usize
}

pub(super) fn items(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn word(value: &Json) -> &str {
    value.as_str().unwrap_or("")
}

/// Over a port, packets are put as they lie: `rppkt` waits for them first, and `ppkt` does not.
fn ported((op, stretch): Flat) -> Vec<Flat> {
    let name = word(&op["name"]);
    if word(&op["channel_type"]) != "port" || !matches!(name, "ppkt" | "rppkt") {
        return vec![(op, stretch)];
    }
    let mut put = op.clone();
    put["name"] = json!("portpkt");
    let srcs = items(&op["src_buff"]);
    put["src_buff"] = if name == "rppkt" {
        json!(vec![&srcs[0]; items(&op["dst_buff"]).len()])
    } else {
        json!(srcs)
    };
    let arrive = json!({"name": "arrive", "src_buff": srcs, "dst_buff": []});
    let nop = json!({"name": "nop"});
    let all = if name == "rppkt" { vec![arrive, nop, put] } else { vec![put] };
    all.into_iter().map(|op| (op, stretch)).collect()
}

impl<'p> Model<'p> {
    pub(super) fn new(plan: &'p Json, stretches: usize) -> Self {
        let gpus = items(&plan["gpus"]);
        let flat = |ops: &Json| -> Vec<Flat> {
            let mut all = Vec::new();
            for op in items(ops) {
                if word(&op["name"]) == "pipeline" {
                    for stretch in 0..stretches {
                        let inner = items(&op["ops"]).iter();
                        all.extend(inner.map(|op| (op.clone(), (stretch, stretches))));
                    }
                } else {
                    all.push((op.clone(), (0, 1)));
                }
            }
            all.into_iter().flat_map(ported).collect()
        };
        let programs: Vec<Vec<Vec<Flat>>> = gpus
            .iter()
            .map(|gpu| items(&gpu["threadblocks"]).iter().map(|tb| flat(&tb["ops"])).collect())
            .collect();
        Self { plan, ranks: gpus.len(), programs }
    }

    pub(super) fn gpu(&self, rank: usize) -> &'p Json {
        &self.plan["gpus"][rank]
    }

    pub(super) fn chunks(&self, rank: usize, letter: char) -> usize {
        let key = match letter {
            'i' => "input_chunks",
            'o' => "output_chunks",
            _ => "scratch_chunks",
        };
        number(&self.gpu(rank)[key])
    }

    /// Returns the cell of an element, in place in the one buffer that is the longer.
    pub(super) fn cell(
        &self,
        call: usize,
        rank: usize,
        letter: char,
        element: usize,
    ) -> (usize, char, usize) {
        let inputs = self.chunks(rank, 'i') * ELEMENTS;
        let outputs = self.chunks(rank, 'o') * ELEMENTS;
        if self.plan["inplace"] == true {
            match (word(&self.plan["collective"]), letter) {
                ("allgather", 'i') => return (rank, 'o', rank * inputs + element),
                ("reducescatter", 'o') => return (rank, 'i', rank * outputs + element),
                ("allreduce" | "alltoall", 'i') => return (rank, 'o', element),
                _ => {}
            }
        }
        let half = match letter {
            's' | 'p' if self.plan["use_double_scratch_buffer"] == true => call % 2,
            _ => 0,
        };
        (rank, letter, element + half * 1_000_000)
    }

    pub(super) fn expected(&self, rank: usize, element: usize) -> Sum {
        let n = self.ranks;
        let part = self.chunks(rank, 'i') * ELEMENTS;
        match word(&self.plan["collective"]) {
            "allreduce" => (0..n).map(|from| ((from, element), 1)).collect(),
            "allgather" => Sum::from([((element / part, element % part), 1)]),
            "reducescatter" => (0..n).map(|from| ((from, rank * part / n + element), 1)).collect(),
            _ => {
                let block = part / n;
                Sum::from([((element / block, rank * block + element % block), 1)])
            }
        }
    }

    /// The direction of a channel that an op of a block uses.
    pub(super) fn wire(
        &self,
        rank: usize,
        block: usize,
        op: &Json,
        id: &Json,
        out: bool,
    ) -> (usize, usize, String, usize) {
        let kind = word(&op["channel_type"]);
        let own: Vec<usize> = items(&self.gpu(rank)["threadblocks"][block]["channels"])
            .iter()
            .filter(|channel| word(&channel["channel_type"]) == kind)
            .flat_map(|channel| items(&channel["channel_ids"]).iter().map(number))
            .collect();
        let peers: Vec<usize> = items(&self.gpu(rank)["channels"])
            .iter()
            .filter(|channel| word(&channel["channel_type"]) == kind)
            .flat_map(|channel| items(&channel["connected_to"]).iter().map(number))
            .collect();
        let id = own[number(id)];
        let peer = peers[id];
        let turn = peers[..id].iter().filter(|other| **other == peer).count();
        let (from, to) = if out { (rank, peer) } else { (peer, rank) };
        (from, to, kind.to_owned(), turn)
    }

    /// A chunk of an op: its rank, buffer and first and last element.
    pub(super) fn place(&self, rank: usize, block: usize, op: &Json, chunk: &Json) -> Place {
        let (owner, letter) = match chunk.get("buffer_id") {
            None => (rank, word(&chunk["type"])),
            Some(id) => {
                let kind = word(&op["channel_type"]);
                let ids: Vec<usize> =
                    items(&self.gpu(rank)["threadblocks"][block]["remote_buffer_refs"])
                        .iter()
                        .filter(|refs| word(&refs["access_channel_type"]) == kind)
                        .flat_map(|refs| items(&refs["remote_buffer_ids"]).iter().map(number))
                        .collect();
                let remote = &self.gpu(rank)["remote_buffers"][ids[number(id)]];
                (number(&remote["rank"]), word(&remote["type"]))
            }
        };
        let first = number(&chunk["index"]) * ELEMENTS;
        let letter = letter.chars().next().expect("a letter");
        (owner, letter, first, first + number(&chunk["size"]) * ELEMENTS)
    }
}
