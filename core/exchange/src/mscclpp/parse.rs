//! Reads a plan: its header, and for each rank its chunks, channels, remote buffers, semaphores and blocks.

use super::json::{Data, Value};
use super::program::{MscclppBlock, MscclppFacts, SwitchGroup, Wire};
use super::reader::{Fields, MscclppReader, head};
use super::report::shown;
use super::table::{CHANNELS, COLLECTIVES, OPERATIONS};
use super::{Gpu, Header, Program};
use crate::terms::{Memory, Protocol};
use roundelay_core::collective::Collective;
use roundelay_core::schedule::RANK_LIMIT;

const PLAN: &[&str] = &[
    "name",
    "collective",
    "protocol",
    "inplace",
    "reuse_resources",
    "gpus",
    "num_threads_per_block",
    "use_double_scratch_buffer",
    "buffer_alignment",
    "min_message_size",
    "max_message_size",
];
/// The key of the collective in plans up to MSCCL++ 0.7.
const BEFORE: &str = "colletive";
const GPU: &[&str] = &[
    "id",
    "input_chunks",
    "output_chunks",
    "scratch_chunks",
    "threadblocks",
    "channels",
    "remote_buffers",
    "semaphores",
];
const BLOCK: &[&str] = &["id", "ops", "channels", "remote_buffer_refs"];
/// The words for buffers.
pub(super) const BUFFERS: &[(&str, Memory)] =
    &[("i", Memory::Input), ("o", Memory::Output), ("s", Memory::Scratch)];
/// The words for the carriers of data and signals: memory, and a proxy.
pub(super) const WAYS: &[(&str, bool)] = &[("memory", false), ("port", true)];
const TYPES: &[(&str, Option<bool>)] =
    &[("memory", Some(false)), ("port", Some(true)), ("switch", None)];

/// The resources of a rank that its blocks refer to by number.
pub(super) struct Resources {
    pub(super) rank: u32,
    /// Channels by their type: memory, port.
    wires: [Vec<Wire>; 2],
    switches: Vec<SwitchGroup>,
    remotes: Vec<Remote>,
    pub(super) semaphores: usize,
}

/// A buffer of a peer.
#[derive(Clone, Copy)]
pub(super) struct Remote {
    pub(super) rank: u32,
    pub(super) memory: Memory,
    /// Whether ops reach it by memory, and by port.
    ways: [bool; 2],
}

/// The resources that the ops of a block refer to by number.
#[derive(Default)]
pub(super) struct Refs {
    pub(super) wires: [Vec<Wire>; 2],
    pub(super) switches: Vec<SwitchGroup>,
    pub(super) remotes: [Vec<Remote>; 2],
}

impl MscclppReader<'_> {
    /// Reads the whole plan, as far as possible.
    pub(super) fn program(&mut self, value: &Value<'_>) -> Option<Program> {
        // The first place, for findings about the whole plan.
        let whole = self.report.place(head(&value.at));
        self.of_today(value)?;
        let fields = self.fields(value, "the plan", PLAN)?;
        let all = self.list_of(fields, "gpus")?;
        if !(1..=RANK_LIMIT as usize).contains(&all.len()) {
            let title = format!("a plan of {} ranks", all.len());
            self.report.refuse(fields.at().start..fields.at().start + 1, title);
            return None;
        }
        let header = self.header(fields, all.len() as u32)?;
        let mut gpus = Vec::new();
        for (rank, raw) in (0..).zip(all) {
            gpus.extend(self.gpu(&header, rank, raw));
        }
        let names = std::mem::take(&mut self.report.names);
        let operations = names.0.len();
        (!self.report.failed()).then_some(Program { header, gpus, operations, whole, names })
    }

    /// Refuses the form of plans before 0.8, with one error for all of its keys.
    fn of_today(&mut self, value: &Value<'_>) -> Option<()> {
        let Data::Map(entries) = &value.data else { return Some(()) };
        let Some((_, at, _)) = entries.iter().find(|(key, ..)| key == BEFORE) else {
            return Some(());
        };
        self.report
            .refuse(at.clone(), "a plan in the form of MSCCL++ up to 0.7")
            .label("the key of that form")
            .note("executors from 0.8 on read none of its keys, such as `colletive`, `inputChunks`, `o_buff` and `ctype`")
            .help("make the plan anew with the DSL of MSCCL++ 0.8");
        None
    }

    fn header(&mut self, fields: Fields<'_, '_>, nranks: u32) -> Option<Header> {
        let name = self.needed(fields, "name")?;
        let name = shown(self.text("name", name)?);
        let coll = self.needed(fields, "collective")?;
        let collective = self.collective(coll);
        let protocol = self.needed(fields, "protocol")?;
        let words = [Protocol::Simple, Protocol::Ll].map(|protocol| (protocol.name(), protocol));
        let protocol = self.word("protocol", protocol, &words);
        let in_place = self.needed(fields, "inplace")?;
        let in_place = self.truth("inplace", in_place);
        let doubled = self.truth_or_not(fields, "use_double_scratch_buffer");
        let shared = self.truth_or_not(fields, "reuse_resources")?;
        self.shared = shared;
        self.number_or(fields, "num_threads_per_block", 1024, 1..=1024);
        let alignment = self.number_or(fields, "buffer_alignment", 16, 1..=1 << 30)?;
        let min_bytes = self.number_or(fields, "min_message_size", 0, 0..=u64::MAX)?;
        let max_bytes = self.number_or(fields, "max_message_size", u64::MAX, 0..=u64::MAX)?;
        if alignment % 16 != 0 {
            let at = fields.get("buffer_alignment").map_or(fields.at(), |value| value.at.clone());
            let title = format!("chunks that are aligned to {alignment} bytes");
            self.report.warn("alignment", at, title).note(
                "the executor reads and adds up 16 bytes at a time, from chunks that begin so",
            );
        }
        if min_bytes > max_bytes {
            let title = format!("calls of {min_bytes} to {max_bytes} bytes: there are none");
            self.report.warn("sizes", head(&fields.at()), title);
        }
        if shared {
            let at = fields.get("reuse_resources").map_or(fields.at(), |value| value.at.clone());
            let title = "scratch that plans share";
            let warning = self.report.warn("reuse", at, title);
            warning.note("that no other plan still uses it is not looked at");
        }
        Some(Header {
            name,
            coll: shown(self.text("collective", coll)?),
            collective,
            protocol: protocol?,
            in_place: in_place?,
            out_of_place: !in_place?,
            nranks,
            min_bytes,
            max_bytes: (max_bytes < u64::MAX).then_some(max_bytes),
            own: MscclppFacts { doubled: doubled?, alignment },
        })
    }

    /// Returns the collective that the plan promises. The executor takes any name.
    fn collective(&mut self, value: &Value<'_>) -> Option<Collective> {
        let text = self.text("collective", value)?;
        let known = COLLECTIVES.into_iter().find(|(_, word)| *word == text);
        if known.is_none() {
            let title = format!("what `{}` must have at its end is not compared", shown(text));
            let warning = self.report.warn("contract", value.at.clone(), title);
            warning.help("known are `allreduce`, `allgather`, `reducescatter` and `alltoall`");
        }
        known.map(|(collective, _)| collective)
    }

    fn gpu(&mut self, header: &Header, rank: u32, value: &Value<'_>) -> Option<Gpu> {
        let at = self.report.place(head(&value.at));
        let fields = self.fields(value, "a gpu", GPU)?;
        let id = self.number(fields, "id", 0..=u64::from(u32::MAX))?;
        if id != u64::from(rank) {
            let at = fields.get("id").map_or(fields.at(), |value| value.at.clone());
            let title = format!("gpu {id} stands where rank {rank} looks for itself");
            self.report.refuse(at, title);
            return None;
        }
        let mut chunks = [0; 3];
        let names = ["input_chunks", "output_chunks", "scratch_chunks"];
        for (buffer, (chunks, name)) in chunks.iter_mut().zip(names).enumerate() {
            *chunks = self.number(fields, name, 0..=1 << 24)? as u32;
            if *chunks == 0 && buffer < 2 {
                self.no_chunks(header, name, fields);
                return None;
            }
        }
        let (wires, switches) = self.wires(header.nranks, rank, fields)?;
        let remotes = self.remotes(header.nranks, rank, fields)?;
        let semaphores = self.semaphores(fields)?;
        let resources = Resources { rank, wires, switches, remotes, semaphores: semaphores.len() };
        let mut blocks = Vec::new();
        for (id, raw) in (0..).zip(self.list_of(fields, "threadblocks")?) {
            blocks.extend(self.block(&resources, id, raw));
        }
        Some(Gpu { chunks, blocks, semaphores, at })
    }

    /// Refuses an input or output of 0 chunks.
    fn no_chunks(&mut self, header: &Header, name: &str, fields: Fields<'_, '_>) {
        let at = fields.get(name).map_or(fields.at(), |value| value.at.clone());
        let title = format!("`{name}` is 0, and the executor divides the size of a call by it");
        let error = self.report.refuse(at, title);
        match name {
            "output_chunks" if header.in_place => error
                .note("executors of 2024 to mid 2026 took it, and plans in place that were made for them have 0 here; later ones crash on it")
                .help("count the chunks of the output in place, too: as many as the input has in an `allreduce`"),
            _ => error.help("a buffer has one chunk or more"),
        }
    }

    /// Returns the channels of a rank by type, in the order in which blocks count them.
    fn wires(
        &mut self,
        nranks: u32,
        rank: u32,
        fields: Fields<'_, '_>,
    ) -> Option<([Vec<Wire>; 2], Vec<SwitchGroup>)> {
        let mut wires: [Vec<Wire>; 2] = Default::default();
        let mut switches = Vec::new();
        for value in self.list_of(fields, "channels")? {
            let fields = self.object(value, "a channel")?;
            let kind = self.needed(fields, "channel_type")?;
            let Some(port) = self.word("channel_type", kind, TYPES)? else {
                switches.append(&mut self.switch((nranks, rank), fields)?);
                continue;
            };
            if !self.only(fields, &["channel_type", "connected_to"]) {
                return None;
            }
            for value in self.list_of(fields, "connected_to")? {
                let peer = self.peer("connected_to", (nranks, rank), value)?;
                let same = &mut wires[usize::from(port)];
                let ordinal = same.iter().filter(|wire| wire.peer == peer).count() as u32;
                same.push(Wire { peer, port, ordinal });
            }
        }
        Some((wires, switches))
    }

    /// Reads a switch, whose groups are channels.
    fn switch(&mut self, ranks: (u32, u32), fields: Fields<'_, '_>) -> Option<Vec<SwitchGroup>> {
        let buffer = self.needed(fields, "buffer_type")?;
        let memory = self.word("buffer_type", buffer, BUFFERS)?;
        let groups = self.groups(ranks, memory, fields)?;
        self.only(fields, &["channel_type", "buffer_type", "rank_groups"]).then_some(groups)
    }

    /// Reads the number of another rank.
    fn peer(&mut self, key: &str, (nranks, rank): (u32, u32), value: &Value<'_>) -> Option<u32> {
        let peer = self.in_range(key, value, 0..=u64::from(nranks) - 1)? as u32;
        if peer == rank {
            self.report.refuse(value.at.clone(), format!("rank {rank} is no peer of itself"));
            return None;
        }
        Some(peer)
    }

    fn remotes(&mut self, nranks: u32, rank: u32, fields: Fields<'_, '_>) -> Option<Vec<Remote>> {
        let mut remotes = Vec::new();
        for value in self.list_of(fields, "remote_buffers")? {
            let keys = ["rank", "type", "access_channel_types"];
            let fields = self.fields(value, "a buffer of a peer", &keys)?;
            let peer = self.needed(fields, "rank")?;
            let rank = self.peer("rank", (nranks, rank), peer)?;
            let kind = self.needed(fields, "type")?;
            let memory = self.word("type", kind, BUFFERS)?;
            let mut ways = [false; 2];
            for way in self.list_of(fields, "access_channel_types")? {
                ways[usize::from(self.word("access_channel_types", way, WAYS)?)] = true;
            }
            remotes.push(Remote { rank, memory, ways });
        }
        Some(remotes)
    }

    fn semaphores(&mut self, fields: Fields<'_, '_>) -> Option<Vec<u32>> {
        let Some(value) = fields.get("semaphores") else { return Some(Vec::new()) };
        let mut semaphores = Vec::new();
        for value in self.list("semaphores", value)? {
            let fields = self.fields(value, "a semaphore", &["init_value"])?;
            semaphores.push(self.number(fields, "init_value", 0..=i32::MAX as u64)? as u32);
        }
        Some(semaphores)
    }

    fn block(&mut self, resources: &Resources, id: u32, value: &Value<'_>) -> Option<MscclppBlock> {
        let at = self.report.place(head(&value.at));
        let fields = self.fields(value, "a threadblock", BLOCK)?;
        let said = self.number(fields, "id", 0..=u64::from(u32::MAX))?;
        if said != u64::from(id) {
            let at = fields.get("id").map_or(fields.at(), |value| value.at.clone());
            let title = format!("threadblock {said} stands where block {id} is looked for");
            self.report.refuse(at, title);
            return None;
        }
        let refs = self.refs(resources, fields)?;
        let ops = self.list_of(fields, "ops")?;
        let before = self.report.failed();
        let (operations, count) = self.operations(resources, &refs, id, ops);
        if count > OPERATIONS && !before {
            let title = format!(
                "block {id} of rank {} has {count} ops, and the executor takes {OPERATIONS}",
                resources.rank
            );
            self.report.refuse(head(&fields.at()), title);
        }
        Some(MscclppBlock { operations, at })
    }

    /// Returns the resources that a block refers to by numbers of its own.
    fn refs(&mut self, resources: &Resources, fields: Fields<'_, '_>) -> Option<Refs> {
        let mut refs = Refs::default();
        for value in self.list_of(fields, "channels")? {
            let fields =
                self.fields(value, "a channel of a block", &["channel_type", "channel_ids"])?;
            let kind = self.needed(fields, "channel_type")?;
            let kind = self.word("channel_type", kind, TYPES)?;
            let Some(port) = kind else {
                let known = &resources.switches;
                let ids = self.ids(fields, "channel_ids", known.len(), "switches of this rank")?;
                refs.switches.extend(ids.iter().map(|id| known[*id as usize].clone()));
                continue;
            };
            let known = &resources.wires[usize::from(port)];
            let ids = self.ids(fields, "channel_ids", known.len(), "channels of this type")?;
            refs.wires[usize::from(port)].extend(ids.iter().map(|id| known[*id as usize]));
        }
        let buffers = fields.get("remote_buffer_refs");
        let buffers =
            buffers.map_or(Some(&[][..]), |value| self.list("remote_buffer_refs", value))?;
        for value in buffers {
            let keys = ["access_channel_type", "remote_buffer_ids"];
            let fields = self.fields(value, "a reference of a block", &keys)?;
            let way = self.needed(fields, "access_channel_type")?;
            let way = usize::from(self.word("access_channel_type", way, WAYS)?);
            let known = &resources.remotes;
            let ids = self.ids(fields, "remote_buffer_ids", known.len(), "buffers of peers")?;
            for id in ids {
                let remote = known[id as usize];
                if !remote.ways[way] {
                    let title = format!("buffer {id} of a peer is not reached by {}", WAYS[way].0);
                    self.report.refuse(head(&fields.at()), title);
                    return None;
                }
                refs.remotes[way].push(remote);
            }
        }
        for (way, (word, _)) in WAYS.iter().enumerate() {
            let wires = (refs.wires[way].len(), CHANNELS);
            let remotes = (refs.remotes[way].len(), CHANNELS);
            let told = self.at_most(wires, &format!("{word} channels of a block"), &fields.at())
                && self.at_most(remotes, &format!("{word} buffers of a block"), &fields.at());
            if !told {
                return None;
            }
        }
        Some(refs)
    }

    /// Reads numbers below `count`.
    fn ids(
        &mut self,
        fields: Fields<'_, '_>,
        key: &str,
        count: usize,
        what: &str,
    ) -> Option<Vec<u32>> {
        let ids = self.list_of(fields, key)?;
        ids.iter().map(|id| self.id(key, id, count, what)).collect()
    }

    /// Reads a number below `count`.
    pub(super) fn id(
        &mut self,
        key: &str,
        value: &Value<'_>,
        count: usize,
        what: &str,
    ) -> Option<u32> {
        let id = self.in_range(key, value, 0..=u64::from(u32::MAX))?;
        if id >= count as u64 {
            let title = format!("`{key}` is {id}, and there are {count} {what}");
            self.report.refuse(value.at.clone(), title);
            return None;
        }
        Some(id as u32)
    }
}
