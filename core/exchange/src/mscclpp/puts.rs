//! Reads puts: over memory all threads of the block move the data, and over a port one thread enters it into the queue
//! of the rank's proxy.

use super::ops::RawOp;
use super::program::{Act, Chunk, PortPut};
use super::reader::{MscclppReader, head};
use super::table::Name;

impl MscclppReader<'_> {
    /// Returns the act of forwarding received packets to several peers.
    pub(super) fn forward(
        &mut self,
        op: &RawOp<'_, '_, '_>,
        srcs: &[Chunk],
        dsts: &[Chunk],
    ) -> Option<Vec<Act>> {
        let [src] = srcs else { return self.count(op, "one source") };
        let src = Chunk { packets: true, ..*src };
        let dsts: Vec<_> = dsts.iter().map(|dst| Chunk { packets: true, ..*dst }).collect();
        self.packets(op, &[&[src][..], &dsts].concat())?;
        Some(vec![Act::Data { srcs: vec![src], dsts, switch: false }])
    }

    /// Returns the acts of a put over memory.
    pub(super) fn put(
        &mut self,
        op: &RawOp<'_, '_, '_>,
        srcs: &[Chunk],
        dsts: &[Chunk],
    ) -> Option<Vec<Act>> {
        let fields = op.fields;
        if srcs.len() != dsts.len() {
            return self.count(op, "as many sources as destinations");
        }
        if srcs.iter().any(|src| src.memory != srcs[0].memory) {
            let title =
                "a put from several buffers, which the executor takes for the first of them";
            self.report.refuse(head(&fields.at()), title);
            return None;
        }
        if matches!(op.name, Name::PutSignal | Name::PutSignalFlush) {
            let word = op.name.word();
            let title = format!("a `{word}` over memory, which sends no signal");
            let warning = self.report.warn("silent", head(&fields.at()), title);
            warning.help("write `put`, `nop` and `signal`");
        }
        let packets = op.name == Name::PutPackets;
        let dsts: Vec<_> = dsts.iter().map(|dst| Chunk { packets, ..*dst }).collect();
        self.packets(op, &dsts)?;
        let data = |(src, dst): (&Chunk, &Chunk)| Act::Data {
            srcs: vec![*src],
            dsts: vec![*dst],
            switch: false,
        };
        Some(srcs.iter().zip(&dsts).map(data).collect())
    }

    /// Returns the acts of a put over ports. Packets are sent as they lie in scratch, with their flags: `rppkt` waits
    /// for them first, and `ppkt` does not.
    pub(super) fn queue(
        &mut self,
        op: &RawOp<'_, '_, '_>,
        mut srcs: Vec<Chunk>,
        mut dsts: Vec<Chunk>,
    ) -> Option<Vec<Act>> {
        let at = head(&op.fields.at());
        let mut acts = Vec::new();
        if matches!(op.name, Name::PutPackets | Name::ReadPutPackets) {
            srcs.iter_mut().chain(&mut dsts).for_each(|chunk| chunk.packets = true);
            self.packets(op, &[&srcs[..], &dsts].concat())?;
        }
        if op.name == Name::ReadPutPackets {
            let [src] = srcs[..] else { return self.count(op, "one source") };
            acts = vec![Act::Arrive(src), Act::Sync];
            srcs = vec![src; dsts.len()];
        }
        if op.name == Name::PutPackets && !self.shared {
            let title =
                "a `ppkt` over a port, which takes its source from the executor's first plan";
            self.report.warn("first plan", at.clone(), title)
                .note("executors from 0.9 on do not count the memory of plans that ran before this one; it is taken as the first")
                .help("set `reuse_resources` in all plans, write `rppkt`, or run no other plan before");
        }
        if srcs.len() != dsts.len() {
            return self.count(op, "as many sources as destinations");
        }
        let wires = self.channels(op)?;
        if wires.len() != dsts.len() {
            return self.count(op, "a channel for each destination");
        }
        let mut ends = wires.iter().zip(&dsts);
        if let Some((wire, dst)) = ends.find(|(wire, dst)| wire.peer != dst.rank) {
            let title = format!("a put to rank {} over a channel to rank {}", dst.rank, wire.peer);
            self.report.refuse(at, title);
            return None;
        }
        let flushes = op.name == Name::PutSignalFlush;
        let signals = flushes || op.name == Name::PutSignal;
        let all = srcs.into_iter().zip(dsts).zip(wires);
        acts.extend(
            all.map(|((src, dst), wire)| Act::Put(PortPut { src, dst, wire, signals, flushes })),
        );
        Some(acts)
    }
}
