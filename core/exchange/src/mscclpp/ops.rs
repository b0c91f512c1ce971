//! Reads the ops of a block, as the acts that the executor performs for each.

use super::json::Value;
use super::parse::{BUFFERS, Refs, Resources, WAYS};
use super::program::{Act, Chunk, Operation, Wire};
use super::reader::{Fields, MscclppReader, head};
use super::report::{did_you_mean, shown};
use super::table::{
    self, BARRIERS, BUFFERS_OF_OP, CHANNELS_OF_OP, Name, SEMAPHORES_OF_OP, meant, needs_switch,
};
use crate::program::StepName;
use crate::terms::Memory;
use roundelay_core::diagnostics::Code;

/// The range of numbers of chunks.
const CHUNK: std::ops::RangeInclusive<u64> = 0..=u32::MAX as u64 >> 1;

/// An op under reading, and the resources that it refers to.
pub(super) struct RawOp<'a, 'v, 't> {
    pub(super) name: Name,
    pub(super) fields: Fields<'v, 't>,
    resources: &'a Resources,
    pub(super) refs: &'a Refs,
    /// The block's part of each chunk.
    pub(super) part: (u32, u32),
}

impl MscclppReader<'_> {
    /// Returns the ops of a block, and their number with the ops within pipelines.
    pub(super) fn operations(
        &mut self,
        resources: &Resources,
        refs: &Refs,
        block: u32,
        ops: &[Value<'_>],
    ) -> (Vec<Operation>, usize) {
        let (mut operations, mut count) = (Vec::new(), 0);
        for (op, value) in (0..).zip(ops) {
            let (gpu, words) = (resources.rank, ["block", "op"]);
            let name = StepName { gpu, block, step: op, inner: None, words };
            let operation = self.operation((resources, refs), name, value);
            count += 1;
            let Some(operation) = operation else { continue };
            if let Some(Act::Pipeline { inner, .. }) = operation.acts.first() {
                count += inner.len();
            }
            operations.push(operation);
        }
        (operations, count)
    }

    fn operation(
        &mut self,
        around: (&Resources, &Refs),
        place: StepName,
        value: &Value<'_>,
    ) -> Option<Operation> {
        let at = self.report.step(head(&value.at), place);
        let fields = self.object(value, "an op")?;
        let word = self.needed(fields, "name")?;
        let text = self.text("name", word)?;
        let Some((name, keys)) = table::op(text) else {
            self.unknown(text, word);
            return None;
        };
        if !self.only(fields, keys) {
            return None;
        }
        let part = self.part(fields)?;
        let (resources, refs) = around;
        let op = RawOp { name, fields, resources, refs, part };
        let acts = match name {
            Name::Pipeline => self.pipeline(around, place, fields)?,
            _ => self.acts(&op)?,
        };
        Some(Operation { name, acts, at })
    }

    fn unknown(&mut self, text: &str, word: &Value<'_>) {
        let title = if needs_switch(text) {
            format!("`{text}` works on a switch, and the executor does not carry it out")
        } else {
            format!("no op is called `{}`", shown(text))
        };
        let meant = meant(text).filter(|_| !needs_switch(text));
        self.report.refuse(word.at.clone(), title).help_if(did_you_mean(meant));
    }

    fn acts(&mut self, op: &RawOp<'_, '_, '_>) -> Option<Vec<Act>> {
        let fields = op.fields;
        Some(match op.name {
            Name::Nop => vec![Act::Sync],
            Name::Barrier => {
                let id = self.number(fields, "barrier_id", 0..=u64::from(BARRIERS) - 1)? as u32;
                let blocks = self.number(fields, "num_threadblocks", 1..=u32::MAX.into())? as u32;
                vec![Act::Barrier { id, blocks }]
            }
            Name::Signal | Name::RelaxedSignal => {
                self.different_channels(op)?.into_iter().map(Act::Signal).collect()
            }
            Name::Wait | Name::RelaxedWait => {
                self.different_channels(op)?.into_iter().map(Act::Wait).collect()
            }
            Name::Flush => {
                self.different_channels(op)?;
                let title = "a `flush`, which does nothing";
                self.report
                    .warn("flush", head(&fields.at()), title)
                    .note("the executor flushes as many channels as the op has destinations: none");
                Vec::new()
            }
            Name::Acquire => self.semaphores_of(op)?.into_iter().map(Act::Acquire).collect(),
            Name::Release => self.semaphores_of(op)?.into_iter().map(Act::Release).collect(),
            Name::Pipeline => Vec::new(),
            Name::GroupReduceStore | Name::GroupStore | Name::GroupStorePackets => {
                self.on_switch(op)?
            }
            _ => self.moved(op)?,
        })
    }

    /// Returns the acts of an op with buffers.
    fn moved(&mut self, op: &RawOp<'_, '_, '_>) -> Option<Vec<Act>> {
        let fields = op.fields;
        let reads_peer = matches!(op.name, Name::Get | Name::ReadReduce | Name::ReadReduceSend);
        let way = self.way(op)?;
        let srcs = self.chunks(op, "src_buff", way, |at| match op.name {
            Name::Get => true,
            _ => reads_peer && at > 0,
        })?;
        let dsts = self.chunks(op, "dst_buff", way, |at| match op.name {
            Name::ReduceCopyPackets | Name::ReduceCopySendPackets => at > 1,
            Name::Get => false,
            name => name.puts() || !name.is_local() && at > 0,
        })?;
        let sizes = srcs.iter().chain(&dsts).map(|chunk| chunk.size);
        let (least, most) = (sizes.clone().min()?, sizes.max()?);
        if least != most {
            let title = format!("an op on {least} and on {most} chunks");
            self.report.error(Code::LengthMismatch, head(&fields.at()), title);
            return None;
        }
        match op.name {
            Name::Get => self.get(op, &srcs, &dsts),
            name if name.is_local() => self.local(op, &srcs, &dsts),
            name if name.puts() && way => self.queue(op, srcs, dsts),
            Name::ReadPutPackets => self.forward(op, &srcs, &dsts),
            name if name.puts() => self.put(op, &srcs, &dsts),
            _ => self.reduce(op, srcs, dsts),
        }
    }

    /// Returns the act of one copy within a rank.
    fn local(
        &mut self,
        op: &RawOp<'_, '_, '_>,
        srcs: &[Chunk],
        dsts: &[Chunk],
    ) -> Option<Vec<Act>> {
        let ([src], [dst]) = (srcs, dsts) else {
            return self.count(op, "one source and one destination");
        };
        let src = Chunk { packets: op.name == Name::Unpack, ..*src };
        let dst = Chunk { packets: op.name == Name::CopyPackets, ..*dst };
        self.packets(op, &[src, dst])?;
        Some(vec![Act::Data { srcs: vec![src], dsts: vec![dst], switch: false }])
    }

    fn get(&mut self, op: &RawOp<'_, '_, '_>, srcs: &[Chunk], dsts: &[Chunk]) -> Option<Vec<Act>> {
        if srcs.len() != dsts.len() {
            return self.count(op, "as many sources as destinations");
        }
        if srcs.iter().zip(dsts).any(|(src, dst)| src.index != dst.index) {
            let title = "a `get` between chunks of different numbers";
            self.report.warn("get", head(&op.fields.at()), title).note(
                "the executor takes the number of each for the other, and so does this proof",
            );
        }
        let swapped = |(src, dst): (&Chunk, &Chunk)| Act::Data {
            srcs: vec![Chunk { index: dst.index, ..*src }],
            dsts: vec![Chunk { index: src.index, ..*dst }],
            switch: false,
        };
        Some(srcs.iter().zip(dsts).map(swapped).collect())
    }

    /// Returns the act of a reduction: the first source and destination are the rank's own.
    fn reduce(
        &mut self,
        op: &RawOp<'_, '_, '_>,
        mut srcs: Vec<Chunk>,
        mut dsts: Vec<Chunk>,
    ) -> Option<Vec<Act>> {
        let fields = op.fields;
        self.adds_up(fields)?;
        let packets = matches!(
            op.name,
            Name::ReducePackets
                | Name::ReduceSendPackets
                | Name::ReduceCopyPackets
                | Name::ReduceCopySendPackets
        );
        let kept = match op.name {
            Name::Reduce | Name::ReadReduce | Name::ReducePackets => 1,
            Name::ReduceCopyPackets => 2,
            _ => usize::MAX,
        };
        let copies = matches!(op.name, Name::ReduceCopyPackets | Name::ReduceCopySendPackets);
        if dsts.len() < 1 + usize::from(copies) {
            return self.count(op, "a packet copy");
        }
        if dsts.len() > kept {
            let title = format!("a `{}` with {} destinations", op.name.word(), dsts.len());
            self.report.refuse(head(&fields.at()), title);
            return None;
        }
        if packets {
            for chunk in srcs.iter_mut().chain(&mut dsts) {
                chunk.packets = true;
            }
            (srcs[0].packets, dsts[0].packets) = (false, false);
            self.packets(op, &[&srcs[..], &dsts].concat())?;
        }
        Some(vec![Act::Data { srcs, dsts, switch: false }])
    }

    /// Warns of another op than a sum.
    pub(super) fn adds_up(&mut self, fields: Fields<'_, '_>) -> Option<()> {
        if let Some(value) = fields.get("reduce_op")
            && self.text("reduce_op", value)? != "sum"
        {
            let title = format!("`reduce_op` is `{}`", shown(self.text("reduce_op", value)?));
            let warning = self.report.warn("reduce_op", value.at.clone(), title);
            warning.note("the executor does not read it: it adds up");
        }
        Some(())
    }

    /// Refuses an op with a wrong number of buffers.
    pub(super) fn count(&mut self, op: &RawOp<'_, '_, '_>, wants: &str) -> Option<Vec<Act>> {
        let title = format!("a `{}` has {wants}", op.name.word());
        self.report.refuse(head(&op.fields.at()), title);
        None
    }

    /// Refuses packets outside of scratch.
    pub(super) fn packets(&mut self, op: &RawOp<'_, '_, '_>, chunks: &[Chunk]) -> Option<()> {
        if chunks.iter().any(|chunk| chunk.packets && chunk.memory != Memory::Scratch) {
            let title = "packets outside of scratch";
            self.report.refuse(head(&op.fields.at()), title);
            return None;
        }
        Some(())
    }

    /// Whether a proxy carries the data of an op.
    fn way(&mut self, op: &RawOp<'_, '_, '_>) -> Option<bool> {
        let value = op.fields.get("channel_type");
        let none = match op.name {
            name if name.is_local() => return Some(false),
            Name::Reduce | Name::ReducePackets | Name::ReduceCopyPackets => value.is_none(),
            _ => false,
        };
        if none {
            return Some(false);
        }
        let value = self.needed(op.fields, "channel_type")?;
        let port = self.word("channel_type", value, WAYS)?;
        if port && !op.name.puts() {
            let title =
                format!("a `{}` over a port, where the executor takes memory", op.name.word());
            self.report.refuse(value.at.clone(), title);
            return None;
        }
        Some(port)
    }

    fn chunks(
        &mut self,
        op: &RawOp<'_, '_, '_>,
        key: &str,
        port: bool,
        of_peer: impl Fn(usize) -> bool,
    ) -> Option<Vec<Chunk>> {
        let items = self.list_of(op.fields, key)?;
        let what = format!("`{key}` of an op");
        if items.is_empty() {
            return self.count(op, &format!("something in `{key}`")).map(|_| Vec::new());
        }
        if !self.at_most((items.len(), BUFFERS_OF_OP), &what, &op.fields.at()) {
            return None;
        }
        let read = |(at, item)| self.chunk(op, item, port, of_peer(at));
        items.iter().enumerate().map(read).collect()
    }

    pub(super) fn chunk(
        &mut self,
        op: &RawOp<'_, '_, '_>,
        value: &Value<'_>,
        port: bool,
        of_peer: bool,
    ) -> Option<Chunk> {
        let whose = if of_peer { "a chunk of a peer" } else { "a chunk of the rank" };
        let own = if of_peer { "buffer_id" } else { "type" };
        let fields = self.fields(value, whose, &[own, "index", "size"])?;
        let key = self.needed(fields, own)?;
        let (rank, memory) = if of_peer {
            let known = &op.refs.remotes[usize::from(port)];
            let id = self.id(own, key, known.len(), "buffers that this block refers to")?;
            let remote = known[id as usize];
            (remote.rank, remote.memory)
        } else {
            (op.resources.rank, self.word(own, key, BUFFERS)?)
        };
        let (index, size) = self.index_and_size(fields)?;
        Some(Chunk { rank, memory, packets: false, index, size, part: op.part })
    }

    /// Reads the first of some chunks, and their number.
    pub(super) fn index_and_size(&mut self, fields: Fields<'_, '_>) -> Option<(u32, u32)> {
        let index = self.number(fields, "index", CHUNK)? as u32;
        Some((index, self.number(fields, "size", CHUNK)? as u32))
    }

    /// Returns the block's part of each chunk, if several blocks share the op.
    fn part(&mut self, fields: Fields<'_, '_>) -> Option<(u32, u32)> {
        let Some(value) = fields.get("tbg_info") else { return Some((0, 1)) };
        let fields = self.fields(value, "a group of blocks", &["tb_id", "tbg_size"])?;
        let size = self.number(fields, "tbg_size", 1..=1024)?;
        let id = self.number(fields, "tb_id", 0..=size - 1)?;
        Some((id as u32, size as u32))
    }

    /// Returns the channels of an op. The k-th of them is the k-th thread's.
    pub(super) fn channels(&mut self, op: &RawOp<'_, '_, '_>) -> Option<Vec<Wire>> {
        let value = self.needed(op.fields, "channel_type")?;
        let port = usize::from(self.word("channel_type", value, WAYS)?);
        let items = self.list_of(op.fields, "channel_ids")?;
        if !self.at_most((items.len(), CHANNELS_OF_OP), "channels of an op", &op.fields.at()) {
            return None;
        }
        let known = &op.refs.wires[port];
        let ids = items.iter().map(|id| {
            let id = self.id("channel_ids", id, known.len(), "such channels of this block")?;
            Some(known[id as usize])
        });
        ids.collect()
    }

    /// Returns the channels of an op that has no channel twice.
    fn different_channels(&mut self, op: &RawOp<'_, '_, '_>) -> Option<Vec<Wire>> {
        let wires = self.channels(op)?;
        if (1..wires.len()).any(|at| wires[..at].contains(&wires[at])) {
            let title = format!("a `{}` with one channel twice", op.name.word());
            self.report.refuse(head(&op.fields.at()), title);
            return None;
        }
        Some(wires)
    }

    fn semaphores_of(&mut self, op: &RawOp<'_, '_, '_>) -> Option<Vec<u32>> {
        let items = self.list_of(op.fields, "semaphore_ids")?;
        let of = (items.len(), SEMAPHORES_OF_OP);
        if !self.at_most(of, "semaphores of an op", &op.fields.at()) {
            return None;
        }
        let known = op.resources.semaphores;
        items.iter().map(|id| self.id("semaphore_ids", id, known, "semaphores")).collect()
    }

    fn pipeline(
        &mut self,
        around: (&Resources, &Refs),
        place: StepName,
        fields: Fields<'_, '_>,
    ) -> Option<Vec<Act>> {
        let context = self.needed(fields, "iter_context")?;
        let context = self.fields(context, "a loop", &["unit_size", "num_chunks"])?;
        self.number(context, "unit_size", 1..=u32::MAX.into())?;
        let chunks = self.number(context, "num_chunks", 1..=1 << 24)? as u32;
        let mut inner = Vec::new();
        for (at, value) in (0..).zip(self.list_of(fields, "ops")?) {
            let name = StepName { inner: Some(at), ..place };
            let Some(operation) = self.operation(around, name, value) else { continue };
            self.in_pipeline(&operation, chunks, value)?;
            inner.push(operation);
        }
        Some(vec![Act::Pipeline { chunks, inner }])
    }

    /// Refuses ops that a loop cannot repeat for each stretch.
    fn in_pipeline(&mut self, operation: &Operation, chunks: u32, value: &Value<'_>) -> Option<()> {
        let title = operation.acts.iter().find_map(|act| {
            if matches!(act, Act::Pipeline { .. }) {
                return Some("a loop within a loop".to_owned());
            }
            let [srcs, dsts] = act.parts();
            let packets = srcs.iter().chain(dsts).any(|chunk| chunk.packets);
            let size = srcs.first()?.size;
            if packets {
                return Some("packets within a loop, which moves all of them each time".into());
            }
            (size != chunks).then(|| format!("an op on {size} chunks in a loop over {chunks}"))
        });
        if let Some(title) = title {
            self.report.refuse(head(&value.at), title);
            return None;
        }
        Some(())
    }
}
