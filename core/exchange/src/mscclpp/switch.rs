//! The ops of a plan that a switch carries out: it adds up one chunk of all ranks of a group and stores the sum at all of
//! them (`glres`), or stores the rank's chunk at all of them (`gstore`), with a flag in each packet (`gstorepkt`).

use super::json::Value;
use super::ops::RawOp;
use super::program::{Act, Chunk, SwitchGroup};
use super::reader::{Fields, MscclppReader, head};
use super::table::Name;
use crate::terms::Memory;
use roundelay_core::schedule::SWITCH_LIMIT;

impl MscclppReader<'_> {
    /// Reads the groups of a switch: each is a channel of its own.
    pub(super) fn groups(
        &mut self,
        (nranks, rank): (u32, u32),
        memory: Memory,
        fields: Fields<'_, '_>,
    ) -> Option<Vec<SwitchGroup>> {
        let mut groups = Vec::new();
        for group in self.list_of(fields, "rank_groups")? {
            let fields = self.fields(group, "a group of ranks", &["size", "ranks"])?;
            self.number(fields, "size", 0..=1 << 24)?;
            let mut ranks = self.numbers(fields, "ranks", 0..=u64::from(nranks) - 1)?;
            ranks.sort_unstable();
            let wrong = if !ranks.contains(&rank) {
                Some(format!("the group of a switch lacks rank {rank}, which has the channel"))
            } else if ranks.windows(2).any(|pair| pair[0] == pair[1]) {
                Some("the group of a switch has a rank twice".to_owned())
            } else {
                let most = usize::from(SWITCH_LIMIT);
                (ranks.len() > most).then(|| format!("a switch of more than {most} ranks"))
            };
            if let Some(title) = wrong {
                self.report.refuse(head(&group.at), title);
                return None;
            }
            groups.push(SwitchGroup { memory, ranks });
        }
        Some(groups)
    }

    /// Returns the act of an op of a switch.
    pub(super) fn on_switch(&mut self, op: &RawOp<'_, '_, '_>) -> Option<Vec<Act>> {
        let value = self.needed(op.fields, "channel_type")?;
        self.word("channel_type", value, &[("switch", ())])?;
        self.adds_up(op.fields)?;
        let mut dsts = self.of_group(op, "dst_buff")?;
        let srcs = if op.name == Name::GroupReduceStore {
            self.of_group(op, "src_buff")?
        } else {
            let item = self.one(op, "src_buff")?;
            vec![self.chunk(op, item, false, false)?]
        };
        if op.name == Name::GroupStorePackets {
            for dst in &mut dsts {
                dst.packets = true;
            }
            self.packets(op, &dsts)?;
        }
        let [src, dst] = [srcs[0], dsts[0]];
        if op.name == Name::GroupReduceStore && (src.index, src.memory) != (dst.index, dst.memory) {
            let title = "a `glres` between chunks of different numbers";
            let error = self.report.refuse(head(&op.fields.at()), title);
            error.note("MSCCL++'s own plans have the number of the source at both ends");
            return None;
        }
        if src.size != dst.size {
            return self.count(op, "as many chunks at its source as at its destination");
        }
        Some(vec![Act::Data { srcs, dsts, switch: true }])
    }

    /// Reads the one chunk of a group that a key names: a chunk of each rank.
    fn of_group(&mut self, op: &RawOp<'_, '_, '_>, key: &str) -> Option<Vec<Chunk>> {
        let item = self.one(op, key)?;
        let fields =
            self.fields(item, "a chunk of a switch", &["switch_channel_id", "index", "size"])?;
        let id = self.needed(fields, "switch_channel_id")?;
        let known = &op.refs.switches;
        let id = self.id("switch_channel_id", id, known.len(), "switches of this block")?;
        let SwitchGroup { memory, ref ranks } = known[id as usize];
        let (index, size) = self.index_and_size(fields)?;
        let chunk =
            |rank: &u32| Chunk { rank: *rank, memory, packets: false, index, size, part: op.part };
        Some(ranks.iter().map(chunk).collect())
    }

    /// Returns the only item of a list.
    fn one<'v, 't>(&mut self, op: &RawOp<'_, 'v, 't>, key: &str) -> Option<&'v Value<'t>> {
        match self.list_of(op.fields, key)? {
            [one] => Some(one),
            _ => {
                self.count(op, "one source and one destination");
                None
            }
        }
    }
}
