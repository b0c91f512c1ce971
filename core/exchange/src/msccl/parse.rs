//! Lowers elements as the runtime does: the header, and the blocks of each rank. A text that the runtime refuses is an
//! error; a text that it passes over is a warning.

use super::names::{self, Promise};
use super::program::{Block, MscclFacts};
use super::reader::MscclReader;
use super::report::{did_you_mean, shown};
use super::runtime::{CHANNELS, Runtime};
use super::steps::Steps;
use super::xml::{self, Element};
use super::{Gpu, Header, Program};
use crate::terms::Protocol;
use roundelay_core::collective::Collective;
use roundelay_core::ids::SpanId;
use roundelay_core::schedule::RANK_LIMIT;

/// The number that a program writes for no peer.
const NONE: i64 = -1;

impl<'t> MscclReader<'t, '_> {
    /// Reads the whole program, as far as possible.
    pub(super) fn program(&mut self, algo: &Element<'t>) -> Option<Program> {
        // The first place, for findings about the whole program.
        let whole = self.report.place(algo.at.clone());
        let header = self.header(algo)?;
        let none = Gpu { chunks: [0; 3], blocks: vec![], semaphores: vec![], at: whole };
        let mut gpus = vec![none; header.nranks as usize];
        let mut seen = vec![false; gpus.len()];
        for raw in &algo.inner {
            let Some(id) = self.number(raw, "id", i64::from(i32::MIN)..=i64::from(i32::MAX)) else {
                continue;
            };
            let Some(gpu) = usize::try_from(id).ok().filter(|id| *id < gpus.len()) else {
                let title = format!("gpu {id} is none of the {} ranks", header.nranks);
                self.report.warn("gpu", raw.at.clone(), title);
                continue;
            };
            if std::mem::replace(&mut seen[gpu], true) {
                self.report.refuse(raw.at.clone(), format!("a second <gpu> of rank {id}"));
                continue;
            }
            if let Some(read) = self.gpu(&header, gpu as u32, raw) {
                gpus[gpu] = read;
            }
        }
        for rank in (0..gpus.len()).filter(|rank| !seen[*rank]) {
            let title = format!("rank {rank} has no <gpu>, and does nothing");
            self.report.warn("no gpu", algo.at.clone(), title);
        }
        let names = std::mem::take(&mut self.report.names);
        let blocks = gpus.iter().flat_map(|gpu| &gpu.blocks);
        let operations = blocks.map(|block| block.operations.len()).sum();
        (!self.report.failed()).then_some(Program { header, gpus, operations, whole, names })
    }

    fn header(&mut self, element: &Element<'t>) -> Option<Header> {
        let chunks = self.number(element, "nchunksperloop", 1..=1 << 20);
        let channels = self.number(element, "nchannels", 1..=CHANNELS.into());
        let nranks = self.number(element, "ngpus", 1..=RANK_LIMIT.into());
        let protocol = self.protocol(element);
        let coll = self.value(element, "coll")?;
        let in_place = self.truth(element, "inplace");
        let [out_of_place, min, max] = self.sizes(element)?;
        let collective = self.collective(coll);
        let in_place = in_place?;
        // A program without `outofplace` is for the first runtime, which called every program in place.
        let out_of_place = out_of_place.map_or(!in_place, |apart| apart != 0);
        if !in_place && !out_of_place {
            let title = "neither in place nor out of place: the runtime never calls it";
            self.report.warn("mode", element.at.clone(), title);
        }
        let out_of_place = out_of_place || !in_place;
        let default = self.runtime.and_then(Runtime::default_bytes);
        let max_bytes = match max {
            None => default,
            Some(0) => None,
            Some(max) => Some(max as u64),
        };
        Some(Header {
            name: shown(element.get("name").unwrap_or("?")),
            coll: shown(coll),
            collective,
            protocol: protocol?,
            nranks: nranks? as u32,
            in_place,
            out_of_place,
            min_bytes: min.unwrap_or(0) as u64,
            max_bytes,
            own: MscclFacts {
                channels: channels? as u32,
                chunks: chunks? as u32,
                says_bytes: max.is_some(),
            },
        })
    }

    fn protocol(&mut self, element: &Element<'t>) -> Option<Protocol> {
        let name = self.value(element, "proto")?;
        let protocol = Protocol::from_name(name);
        if protocol.is_none() {
            let title = format!("no protocol is called `{}`", shown(name));
            let meant = did_you_mean(Protocol::meant(name));
            let help = meant.unwrap_or_else(|| "write Simple, LL or LL128".to_owned());
            self.report.refuse(xml::range(self.text, name), title).help(help);
        }
        protocol
    }

    /// Reads `outofplace`, `minBytes` and `maxBytes`, which only later runtimes require.
    fn sizes(&mut self, element: &Element<'t>) -> Option<[Option<i64>; 3]> {
        let mut values = [None; 3];
        for (value, name) in values.iter_mut().zip(["outofplace", "minBytes", "maxBytes"]) {
            match element.get(name) {
                None => {
                    let title = format!("an <algo> without `{name}`");
                    let at = element.at.clone();
                    self.refused_by(Runtime::wants_sizes, "sizes", at, title, None);
                }
                Some(text) => *value = Some(self.in_range(name, text, 0..=i64::MAX)?),
            }
        }
        Some(values)
    }

    /// Returns the collective that a name promises. The runtimes know more names than they compare results of. A name
    /// that the runtime refuses does not prevent reading the blocks.
    fn collective(&mut self, name: &'t str) -> Option<Collective> {
        let (at, row, refusing) =
            (xml::range(self.text, name), names::collective(name), names::refusing(name));
        if let Some((Promise::Open(why), _)) = row {
            let title = format!("what `{name}` must have at its end is not compared");
            self.report.warn("contract", at.clone(), title).note(*why);
        }
        let instead = |runtime| row.and_then(|row| names::read_by(row, runtime));
        match (row, self.runtime) {
            (Some(_), None) => {
                let title = format!("a program for `{name}`");
                let more = refusing.iter().find_map(|runtime| {
                    Some(format!("{} reads `{}` instead", runtime.name(), instead(*runtime)?))
                });
                self.refused_by(
                    |runtime| refusing.contains(&runtime),
                    "collective",
                    at,
                    title,
                    more,
                );
            }
            (Some(_), Some(runtime)) if !refusing.contains(&runtime) => {}
            (_, runtime) => {
                let whose = runtime.map_or("the runtimes", Runtime::name);
                let title = format!("no collective of {whose} is called `{}`", shown(name));
                let meant = runtime.and_then(instead).or_else(|| names::meant(name, runtime));
                self.report
                    .refuse(at, title)
                    .help_if(meant.map(|meant| format!("write `{meant}`")));
                self.report.was_mild();
            }
        }
        match row?.0 {
            Promise::Of(collective) => Some(collective),
            Promise::Open(_) => None,
        }
    }

    fn gpu(&mut self, header: &Header, rank: u32, raw: &Element<'t>) -> Option<Gpu> {
        let at = self.report.place(raw.at.clone());
        let mut chunks = [0; 3];
        let names = ["i_chunks", "o_chunks", "s_chunks"];
        for (chunks, name) in chunks.iter_mut().zip(names) {
            *chunks = self.number(raw, name, 0..=1 << 24)? as u32;
        }
        let mut gpu = Gpu { chunks, blocks: Vec::new(), semaphores: Vec::new(), at };
        let mut blocks: Vec<Option<Block>> = Vec::new();
        blocks.resize_with(raw.inner.len(), || None);
        let many = |runtime: Runtime| raw.inner.len() > runtime.blocks() as usize;
        let title = format!("rank {rank} has {} blocks", raw.inner.len());
        self.refused_by(many, "blocks", raw.at.clone(), title, None);
        // The runtime keeps a limited number of elements for one rank.
        let nodes: usize = raw.inner.iter().map(|tb| 1 + tb.inner.len()).sum();
        let many = |runtime: Runtime| runtime.nodes().is_some_and(|most| nodes > most as usize);
        let title = format!("rank {rank} has {nodes} blocks and steps");
        self.refused_by(many, "nodes", raw.at.clone(), title, None);
        for tb in &raw.inner {
            let Some(id) = self.number(tb, "id", 0..=i64::from(i32::MAX)) else {
                continue;
            };
            let Some(place) = blocks.get_mut(id as usize) else {
                let title =
                    format!("block {id} of rank {rank}, which has {} blocks", raw.inner.len());
                let error = self.report.refuse(tb.at.clone(), title);
                error.note("blocks are numbered from 0, without gaps");
                continue;
            };
            if place.is_some() {
                let title = format!("a second block {id} of rank {rank}");
                self.report.refuse(tb.at.clone(), title);
                continue;
            }
            // The id is taken, also by a block that cannot be read.
            let block = self.block(header, &gpu, (rank, id as u32), tb);
            let at = SpanId(0);
            let none = Block { send: None, receive: None, channel: 0, operations: Vec::new(), at };
            blocks[id as usize] = Some(block.unwrap_or(none));
        }
        gpu.blocks = blocks.into_iter().flatten().collect();
        Some(gpu)
    }

    fn block(
        &mut self,
        header: &Header,
        gpu: &Gpu,
        (rank, id): (u32, u32),
        tb: &Element<'t>,
    ) -> Option<Block> {
        let at = self.report.place(tb.at.clone());
        let mut peers = [None; 2];
        for (peer, name) in peers.iter_mut().zip(["send", "recv"]) {
            let number = self.number(tb, name, NONE..=i64::from(header.nranks) - 1)?;
            *peer = u32::try_from(number).ok();
            if *peer == Some(rank) {
                let value = tb.get(name).unwrap_or_default();
                let at = xml::range(self.text, value);
                self.report.refuse(at, format!("rank {rank} is no peer of itself"));
            }
        }
        let channel = self.number(tb, "chan", 0..=i64::from(CHANNELS))? as u32;
        if channel >= header.own.channels && peers.iter().any(Option::is_some) {
            let value = tb.get("chan").unwrap_or_default();
            let title = format!("channel {channel}, and `nchannels` is {}", header.own.channels);
            let at = xml::range(self.text, value);
            let error = self.report.refuse(at, title);
            error.note("the runtime connects channels below `nchannels` alone");
        }
        let block =
            Block { send: peers[0], receive: peers[1], channel, operations: Vec::new(), at };
        Steps::new(self, gpu, header.protocol, (rank, id), block).read(tb)
    }
}
