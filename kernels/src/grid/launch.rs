//! The argument of a kernel, word by word as the device's prelude has it.

/// The one argument of a generated kernel. Addresses are the device's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The facts.
    pub facts: u64,
    /// A [`RankMemory`] for each rank.
    pub ranks: u64,
    /// The control block, in memory that the host sees.
    pub control: u64,
    /// The number of launches before, of each CTA that counts them.
    pub launches: u64,
    /// Elements a unit.
    pub count: u64,
    /// CTAs a stream.
    pub parts: u64,
    /// The first stream of this device.
    pub first_group: u64,
    /// Nanoseconds for which a wait may last.
    pub poll_limit_ns: u64,
    /// 1 where `avg` divides whole outputs after the kernel.
    pub finish_scale: u64,
    /// The caller's buffers of the only rank of the launch, where its memory has a stage of each in their place.
    pub stage: Stage,
}

impl Launch {
    /// Returns the words, in order.
    pub const fn words(self) -> [u64; 14] {
        let Self { facts, ranks, control, launches, count, parts, first_group, .. } = self;
        let Self { poll_limit_ns, finish_scale, stage, .. } = self;
        let Stage { input, input_length, output, output_length, table } = stage;
        [
            facts,
            ranks,
            control,
            launches,
            count,
            parts,
            first_group,
            poll_limit_ns,
            finish_scale,
            input,
            input_length,
            output,
            output_length,
            table,
        ]
    }
}

/// The buffers that a launch copies into the stage of its rank and out of it; lengths are elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// The address of the caller's input.
    pub input: u64,
    /// The elements of the input; 0 where it is not staged.
    pub input_length: u64,
    /// The address of the caller's output.
    pub output: u64,
    /// The elements of the output; 0 where it is not staged.
    pub output_length: u64,
    /// The table of ranks' memory that has this rank's buffers: 0 where they are the stages.
    pub table: u64,
}

/// The addresses of a rank's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankMemory {
    /// The caller's input.
    pub input: u64,
    /// The caller's output.
    pub output: u64,
    /// Scratch.
    pub scratch: u64,
    /// Counters that other ranks raise.
    pub posted: u64,
    /// Counters of waits done.
    pub waited: u64,
}

impl RankMemory {
    /// Bytes of one `RankMemory`.
    pub const BYTES: usize = size_of::<Self>();

    /// Returns the words, in order.
    pub const fn words(self) -> [u64; 5] {
        let Self { input, output, scratch, posted, waited } = self;
        [input, output, scratch, posted, waited]
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_words_lie_as_the_prelude_has_them() {
        assert_eq!((size_of::<Launch>(), RankMemory::BYTES), (112, 40));
        let offsets = [
            offset_of!(Launch, facts),
            offset_of!(Launch, ranks),
            offset_of!(Launch, control),
            offset_of!(Launch, launches),
            offset_of!(Launch, count),
            offset_of!(Launch, parts),
            offset_of!(Launch, first_group),
            offset_of!(Launch, poll_limit_ns),
            offset_of!(Launch, finish_scale),
            offset_of!(Launch, stage),
        ];
        assert!(offsets.iter().enumerate().all(|(at, offset)| *offset == 8 * at));
        assert_eq!(offset_of!(RankMemory, waited), 32);
    }
}
