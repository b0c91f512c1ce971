/// AllReduce on a ring: nranks-1 reduce-scatter rounds, then nranks-1 all-gather rounds.
///
/// Patarasuk and Yuan's (2009), and NCCL's, pulled: T = 2 * (n - 1) * L + 2 * (n - 1) / n * S / B. The least
/// volume that there is, for large buffers; halving-doubling and NHR take fewer rounds.
#[derive(Clone, Debug, Default)]
pub struct RingAllReduce {
    ring: ::core::option::Option<::roundelay::Ring>,
}
#[allow(dead_code)]
impl RingAllReduce {
    /// `RingAllReduce`, with every parameter that has a default at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the parameter `ring: Ring`.
    #[must_use]
    pub fn ring(mut self, ring: impl ::core::convert::Into<::roundelay::Ring>) -> Self {
        self.ring = ::core::option::Option::Some(ring.into());
        self
    }
}
impl ::roundelay::Algorithm for RingAllReduce {
    fn name(&self) -> &str {
        "RingAllReduce"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::AllReduce
    }
    fn file(&self) -> &str {
        "stdlib/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// AllReduce on a ring: nranks-1 reduce-scatter rounds, then nranks-1 all-gather rounds.
///
/// Patarasuk and Yuan's (2009), and NCCL's, pulled: T = 2 * (n - 1) * L + 2 * (n - 1) / n * S / B. The least
/// volume that there is, for large buffers; halving-doubling and NHR take fewer rounds.
pub algorithm RingAllReduce(ring: Ring) -> AllReduce {
    let left = ring.left;
    let right = ring.right;
    let me = ring.position;
    view block = output.split(nranks);
    copy(local.input, local.output);
    for round in 0..nranks - 1 {
        let b = (me - round - 1) % nranks;
        right.TxAck();
        left.RxAck();
        reduce(left.block[b], local.block[b]);
        left.TxDataSignal();
        right.RxDataSignal();
    }
    for round in 0..nranks - 1 {
        let b = (me - round) % nranks;
        right.TxAck();
        left.RxAck();
        copy(left.block[b], local.block[b]);
        left.TxDataSignal();
        right.RxDataSignal();
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(5, 15, 5, 28),
                at(6, 5, 6, 26),
                at(7, 5, 7, 28),
                at(8, 5, 8, 28),
                at(9, 5, 9, 39),
                at(11, 5, 11, 37),
                at(13, 5, 20, 6),
                at(14, 9, 14, 43),
                at(15, 9, 15, 23),
                at(16, 9, 16, 22),
                at(17, 9, 17, 47),
                at(18, 9, 18, 29),
                at(19, 9, 19, 30),
                at(21, 5, 28, 6),
                at(22, 9, 22, 39),
                at(23, 9, 23, 23),
                at(24, 9, 24, 22),
                at(25, 9, 25, 45),
                at(26, 9, 26, 29),
                at(27, 9, 27, 30),
            ]
        }
    }
    #[allow(
        unused_parens,
        unused_braces,
        unused_variables,
        non_snake_case,
        clippy::all,
        clippy::pedantic
    )]
    fn build(
        &self,
        s: &mut ::roundelay::expand::Builder<'_>,
    ) -> ::core::result::Result<(), ::roundelay::expand::Stop> {
        #[allow(unused_imports)]
        use ::roundelay::expand::*;
        let nranks = s.nranks();
        let local = s.local();
        let ring = match &self.ring {
            Some(given) => s.ring(0, given)?,
            None => s.ring(0, &Ring::natural())?,
        };
        let left = ring.left();
        let right = ring.right();
        let me = ring.position();
        let block = s.output().split(nranks);
        s.copy(5, local.on(s.input()), &[local.on(s.output())])?;
        for round in s.range(6, 0, nranks - 1)? {
            let b = (me - round - 1) % nranks;
            s.tx_ack(8, right)?;
            s.rx_ack(9, left)?;
            s.reduce(10, &[left.on(block.at(b))], local.on(block.at(b)))?;
            s.tx_data_signal(11, left)?;
            s.rx_data_signal(12, right)?;
        }
        for round in s.range(13, 0, nranks - 1)? {
            let b = (me - round) % nranks;
            s.tx_ack(15, right)?;
            s.rx_ack(16, left)?;
            s.copy(17, left.on(block.at(b)), &[local.on(block.at(b))])?;
            s.tx_data_signal(18, left)?;
            s.rx_data_signal(19, right)?;
        }
        Ok(())
    }
}
#[cfg(test)]
#[test]
fn ring_all_reduce_is_proved() {
    ::roundelay::expand::is_proved(&RingAllReduce::new(), 2..=33, false);
}
/// ReduceScatter on a ring: block b starts right of rank b, goes around, and is complete when it reaches b.
///
/// NCCL's ring, pulled: nranks - 1 rounds of one block, T = (n - 1) * L + (n - 1) / n * S / B for n * c = S
/// of input. The least volume that there is, for large buffers; halving-doubling and NHR take fewer rounds.
#[derive(Clone, Debug, Default)]
pub struct RingReduceScatter {
    ring: ::core::option::Option<::roundelay::Ring>,
}
#[allow(dead_code)]
impl RingReduceScatter {
    /// `RingReduceScatter`, with every parameter that has a default at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the parameter `ring: Ring`.
    #[must_use]
    pub fn ring(mut self, ring: impl ::core::convert::Into<::roundelay::Ring>) -> Self {
        self.ring = ::core::option::Option::Some(ring.into());
        self
    }
}
impl ::roundelay::Algorithm for RingReduceScatter {
    fn name(&self) -> &str {
        "RingReduceScatter"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::ReduceScatter
    }
    fn file(&self) -> &str {
        "stdlib/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// ReduceScatter on a ring: block b starts right of rank b, goes around, and is complete when it reaches b.
///
/// NCCL's ring, pulled: nranks - 1 rounds of one block, T = (n - 1) * L + (n - 1) / n * S / B for n * c = S
/// of input. The least volume that there is, for large buffers; halving-doubling and NHR take fewer rounds.
pub algorithm RingReduceScatter(ring: Ring) -> ReduceScatter {
    let left = ring.left;
    let right = ring.right;
    view block = input.split(nranks);
    scratch sum: 2 like block;
    for round in 0..nranks {
        let b = ring[(ring.position - round - 1) % nranks].rank;
        if round < nranks - 1 {
            copy(local.block[b], local.sum[round % 2]);
        } else {
            copy(local.block[b], local.output);
        }
        if round > 0 {
            right.TxAck();
            left.RxAck();
            if round < nranks - 1 {
                reduce(left.sum[(round - 1) % 2], local.sum[round % 2]);
            } else {
                reduce(left.sum[(round - 1) % 2], local.output);
            }
            left.TxDataSignal();
            right.RxDataSignal();
        }
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(35, 15, 35, 32),
                at(36, 5, 36, 26),
                at(37, 5, 37, 28),
                at(38, 5, 38, 38),
                at(39, 5, 39, 31),
                at(41, 5, 59, 6),
                at(42, 9, 42, 65),
                at(43, 9, 47, 10),
                at(44, 13, 44, 56),
                at(46, 13, 46, 48),
                at(48, 9, 58, 10),
                at(49, 13, 49, 27),
                at(50, 13, 50, 26),
                at(51, 13, 55, 14),
                at(52, 17, 52, 73),
                at(54, 17, 54, 65),
                at(56, 13, 56, 33),
                at(57, 13, 57, 34),
            ]
        }
    }
    #[allow(
        unused_parens,
        unused_braces,
        unused_variables,
        non_snake_case,
        clippy::all,
        clippy::pedantic
    )]
    fn build(
        &self,
        s: &mut ::roundelay::expand::Builder<'_>,
    ) -> ::core::result::Result<(), ::roundelay::expand::Stop> {
        #[allow(unused_imports)]
        use ::roundelay::expand::*;
        let nranks = s.nranks();
        let local = s.local();
        let ring = match &self.ring {
            Some(given) => s.ring(0, given)?,
            None => s.ring(0, &Ring::natural())?,
        };
        let left = ring.left();
        let right = ring.right();
        let block = s.input().split(nranks);
        let sum = s.scratch_blocks(4, "sum", 2, &block)?;
        for round in s.range(5, 0, nranks)? {
            let b = s.rank_of(ring.at((ring.position() - round - 1) % nranks));
            if s.test(7, round.less(nranks - 1))? {
                s.copy(8, local.on(block.at(b)), &[local.on(sum.at(round % 2))])?;
            } else {
                s.copy(9, local.on(block.at(b)), &[local.on(s.output())])?;
            }
            if s.test(10, round.more(0))? {
                s.tx_ack(11, right)?;
                s.rx_ack(12, left)?;
                if s.test(13, round.less(nranks - 1))? {
                    s.reduce(
                        14,
                        &[left.on(sum.at((round - 1) % 2))],
                        local.on(sum.at(round % 2)),
                    )?;
                } else {
                    s.reduce(
                        15,
                        &[left.on(sum.at((round - 1) % 2))],
                        local.on(s.output()),
                    )?;
                }
                s.tx_data_signal(16, left)?;
                s.rx_data_signal(17, right)?;
            }
        }
        Ok(())
    }
}
#[cfg(test)]
#[test]
fn ring_reduce_scatter_is_proved() {
    ::roundelay::expand::is_proved(&RingReduceScatter::new(), 2..=33, false);
}
/// AllGather on a ring: every rank pulls the block that its left neighbour got last.
///
/// NCCL's ring, pulled: nranks - 1 rounds of one block, T = (n - 1) * L + (n - 1) / n * S / B for n * c = S
/// of output. For large buffers; Bruck, NHR and halving-doubling take fewer rounds.
#[derive(Clone, Debug, Default)]
pub struct RingAllGather {
    ring: ::core::option::Option<::roundelay::Ring>,
}
#[allow(dead_code)]
impl RingAllGather {
    /// `RingAllGather`, with every parameter that has a default at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the parameter `ring: Ring`.
    #[must_use]
    pub fn ring(mut self, ring: impl ::core::convert::Into<::roundelay::Ring>) -> Self {
        self.ring = ::core::option::Option::Some(ring.into());
        self
    }
}
impl ::roundelay::Algorithm for RingAllGather {
    fn name(&self) -> &str {
        "RingAllGather"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::AllGather
    }
    fn file(&self) -> &str {
        "stdlib/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// AllGather on a ring: every rank pulls the block that its left neighbour got last.
///
/// NCCL's ring, pulled: nranks - 1 rounds of one block, T = (n - 1) * L + (n - 1) / n * S / B for n * c = S
/// of output. For large buffers; Bruck, NHR and halving-doubling take fewer rounds.
pub algorithm RingAllGather(ring: Ring) -> AllGather {
    let left = ring.left;
    let right = ring.right;
    view block = output.split(nranks);
    copy(local.input, local.block[rank]);
    for round in 0..nranks - 1 {
        let b = ring[(ring.position - round - 1) % nranks].rank;
        right.TxAck();
        left.RxAck();
        copy(left.block[b], local.block[b]);
        left.TxDataSignal();
        right.RxDataSignal();
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(66, 15, 66, 28),
                at(67, 5, 67, 26),
                at(68, 5, 68, 28),
                at(69, 5, 69, 39),
                at(71, 5, 71, 42),
                at(73, 5, 80, 6),
                at(74, 9, 74, 65),
                at(75, 9, 75, 23),
                at(76, 9, 76, 22),
                at(77, 9, 77, 45),
                at(78, 9, 78, 29),
                at(79, 9, 79, 30),
            ]
        }
    }
    #[allow(
        unused_parens,
        unused_braces,
        unused_variables,
        non_snake_case,
        clippy::all,
        clippy::pedantic
    )]
    fn build(
        &self,
        s: &mut ::roundelay::expand::Builder<'_>,
    ) -> ::core::result::Result<(), ::roundelay::expand::Stop> {
        #[allow(unused_imports)]
        use ::roundelay::expand::*;
        let rank = s.rank();
        let nranks = s.nranks();
        let local = s.local();
        let ring = match &self.ring {
            Some(given) => s.ring(0, given)?,
            None => s.ring(0, &Ring::natural())?,
        };
        let left = ring.left();
        let right = ring.right();
        let block = s.output().split(nranks);
        s.copy(4, local.on(s.input()), &[local.on(block.at(rank))])?;
        for round in s.range(5, 0, nranks - 1)? {
            let b = s.rank_of(ring.at((ring.position() - round - 1) % nranks));
            s.tx_ack(7, right)?;
            s.rx_ack(8, left)?;
            s.copy(9, left.on(block.at(b)), &[local.on(block.at(b))])?;
            s.tx_data_signal(10, left)?;
            s.rx_data_signal(11, right)?;
        }
        Ok(())
    }
}
#[cfg(test)]
#[test]
fn ring_all_gather_is_proved() {
    ::roundelay::expand::is_proved(&RingAllGather::new(), 2..=33, false);
}
/// Broadcast around a ring, a slice behind the other: who has a slice hands it on while the next one comes.
///
/// NCCL's ring, pulled, a chain from `root` to its left neighbour: n - 2 + slices rounds of 1 / slices of
/// the buffer, T = (n - 2 + s) * (L + S / (s * B)). Close to S / B where slices are many, so for large
/// buffers; a tree takes fewer rounds.
#[derive(Clone, Debug, Default)]
pub struct RingBroadcast {
    root: ::core::option::Option<i64>,
    slices: ::core::option::Option<i64>,
    ring: ::core::option::Option<::roundelay::Ring>,
}
#[allow(dead_code)]
impl RingBroadcast {
    /// `RingBroadcast`, with every parameter that has a default at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the parameter `root: Rank`.
    #[must_use]
    pub fn root(mut self, root: impl ::core::convert::Into<i64>) -> Self {
        self.root = ::core::option::Option::Some(root.into());
        self
    }
    /// Sets the parameter `slices: int`.
    #[must_use]
    pub fn slices(mut self, slices: impl ::core::convert::Into<i64>) -> Self {
        self.slices = ::core::option::Option::Some(slices.into());
        self
    }
    /// Sets the parameter `ring: Ring`.
    #[must_use]
    pub fn ring(mut self, ring: impl ::core::convert::Into<::roundelay::Ring>) -> Self {
        self.ring = ::core::option::Option::Some(ring.into());
        self
    }
}
impl ::roundelay::Algorithm for RingBroadcast {
    fn name(&self) -> &str {
        "RingBroadcast"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::Broadcast
    }
    fn file(&self) -> &str {
        "stdlib/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// Broadcast around a ring, a slice behind the other: who has a slice hands it on while the next one comes.
///
/// NCCL's ring, pulled, a chain from `root` to its left neighbour: n - 2 + slices rounds of 1 / slices of
/// the buffer, T = (n - 2 + s) * (L + S / (s * B)). Close to S / B where slices are many, so for large
/// buffers; a tree takes fewer rounds.
pub algorithm RingBroadcast(root: Rank = 0, slices: int = 8, ring: Ring) -> Broadcast {
    require slices > 0, "the buffer goes around in slices: set slices to 1 or more";
    let left = ring.left;
    let right = ring.right;
    view slice = output.split(slices);
    if rank == root {
        copy(local.input, local.output);
    }
    for s in 0..slices {
        if rank != root {
            left.RxAck();
            copy(left.slice[s], local.slice[s]);
            left.TxDataSignal();
        }
        if right != peer(root) {
            if s > 0 {
                right.RxDataSignal();
            }
            right.TxAck();
        }
    }
    if right != peer(root) {
        right.RxDataSignal();
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(88, 15, 88, 28),
                at(89, 5, 89, 85),
                at(90, 5, 90, 26),
                at(91, 5, 91, 28),
                at(92, 5, 92, 39),
                at(94, 5, 96, 6),
                at(95, 9, 95, 41),
                at(97, 5, 109, 6),
                at(98, 9, 102, 10),
                at(99, 13, 99, 26),
                at(100, 13, 100, 49),
                at(101, 13, 101, 33),
                at(103, 9, 108, 10),
                at(104, 13, 106, 14),
                at(105, 17, 105, 38),
                at(107, 13, 107, 27),
                at(110, 5, 112, 6),
                at(111, 9, 111, 30),
            ]
        }
    }
    #[allow(
        unused_parens,
        unused_braces,
        unused_variables,
        non_snake_case,
        clippy::all,
        clippy::pedantic
    )]
    fn build(
        &self,
        schedule: &mut ::roundelay::expand::Builder<'_>,
    ) -> ::core::result::Result<(), ::roundelay::expand::Stop> {
        #[allow(unused_imports)]
        use ::roundelay::expand::*;
        let rank = schedule.rank();
        let local = schedule.local();
        let root = self.root.clone().map_or_else(|| int(0), Int::from);
        let root = schedule.rank_param(0, root, true)?;
        let slices = self.slices.clone().map_or_else(|| int(8), Int::from);
        let ring = match &self.ring {
            Some(given) => schedule.ring(0, given)?,
            None => schedule.ring(0, &Ring::natural())?,
        };
        schedule
            .require(
                1,
                slices.more(0),
                "the buffer goes around in slices: set slices to 1 or more",
            )?;
        let left = ring.left();
        let right = ring.right();
        let slice = schedule.output().split(slices);
        if schedule.test(5, rank.equals(root))? {
            schedule
                .copy(6, local.on(schedule.input()), &[local.on(schedule.output())])?;
        }
        for s in schedule.range(7, 0, slices)? {
            if schedule.test(8, rank.differs(root))? {
                schedule.rx_ack(9, left)?;
                schedule.copy(10, left.on(slice.at(s)), &[local.on(slice.at(s))])?;
                schedule.tx_data_signal(11, left)?;
            }
            if schedule.test(12, right.differs(schedule.peer(root)))? {
                if schedule.test(13, s.more(0))? {
                    schedule.rx_data_signal(14, right)?;
                }
                schedule.tx_ack(15, right)?;
            }
        }
        if schedule.test(16, right.differs(schedule.peer(root)))? {
            schedule.rx_data_signal(17, right)?;
        }
        Ok(())
    }
}
#[cfg(test)]
#[test]
fn ring_broadcast_is_proved() {
    ::roundelay::expand::is_proved(&RingBroadcast::new(), 2..=33, false);
}
/// Reduce around a ring, a slice behind the other: every rank adds its own to what comes from the left.
///
/// NCCL's ring, pulled, a chain from root's right neighbour to `root`: n - 2 + slices rounds of 1 / slices
/// of the buffer, T = (n - 2 + s) * (L + S / (s * B)). Close to S / B where slices are many, so for large
/// buffers; a tree takes fewer rounds. Ranks between sum in scratch, as large as the buffer.
#[derive(Clone, Debug, Default)]
pub struct RingReduce {
    root: ::core::option::Option<i64>,
    slices: ::core::option::Option<i64>,
    ring: ::core::option::Option<::roundelay::Ring>,
}
#[allow(dead_code)]
impl RingReduce {
    /// `RingReduce`, with every parameter that has a default at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the parameter `root: Rank`.
    #[must_use]
    pub fn root(mut self, root: impl ::core::convert::Into<i64>) -> Self {
        self.root = ::core::option::Option::Some(root.into());
        self
    }
    /// Sets the parameter `slices: int`.
    #[must_use]
    pub fn slices(mut self, slices: impl ::core::convert::Into<i64>) -> Self {
        self.slices = ::core::option::Option::Some(slices.into());
        self
    }
    /// Sets the parameter `ring: Ring`.
    #[must_use]
    pub fn ring(mut self, ring: impl ::core::convert::Into<::roundelay::Ring>) -> Self {
        self.ring = ::core::option::Option::Some(ring.into());
        self
    }
}
impl ::roundelay::Algorithm for RingReduce {
    fn name(&self) -> &str {
        "RingReduce"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::Reduce
    }
    fn file(&self) -> &str {
        "stdlib/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// Reduce around a ring, a slice behind the other: every rank adds its own to what comes from the left.
///
/// NCCL's ring, pulled, a chain from root's right neighbour to `root`: n - 2 + slices rounds of 1 / slices
/// of the buffer, T = (n - 2 + s) * (L + S / (s * B)). Close to S / B where slices are many, so for large
/// buffers; a tree takes fewer rounds. Ranks between sum in scratch, as large as the buffer.
pub algorithm RingReduce(root: Rank = 0, slices: int = 8, ring: Ring) -> Reduce {
    require slices > 0, "the buffer goes around in slices: set slices to 1 or more";
    let left = ring.left;
    let right = ring.right;
    let first = left == peer(root);
    view slice = input.split(slices);
    view result = output.split(slices);
    scratch sums: like input;
    view sum = sums.split(slices);
    for s in 0..slices {
        if rank == root {
            copy(local.slice[s], local.result[s]);
            if nranks > 1 {
                left.RxAck();
                reduce(left.sum[s], local.result[s]);
                left.TxDataSignal();
            }
        } else {
            copy(local.slice[s], local.sum[s]);
            if !first {
                left.RxAck();
                reduce(left.sum[s], local.sum[s]);
                left.TxDataSignal();
            }
            if s > 0 {
                right.RxDataSignal();
            }
            right.TxAck();
        }
    }
    if rank != root {
        right.RxDataSignal();
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(120, 15, 120, 25),
                at(121, 5, 121, 85),
                at(122, 5, 122, 26),
                at(123, 5, 123, 28),
                at(124, 5, 124, 36),
                at(125, 5, 125, 38),
                at(126, 5, 126, 40),
                at(127, 5, 127, 30),
                at(128, 5, 128, 35),
                at(130, 5, 150, 6),
                at(131, 9, 149, 10),
                at(132, 13, 132, 51),
                at(133, 13, 137, 14),
                at(134, 17, 134, 30),
                at(135, 17, 135, 54),
                at(136, 17, 136, 37),
                at(139, 13, 139, 48),
                at(140, 13, 144, 14),
                at(141, 17, 141, 30),
                at(142, 17, 142, 51),
                at(143, 17, 143, 37),
                at(145, 13, 147, 14),
                at(146, 17, 146, 38),
                at(148, 13, 148, 27),
                at(151, 5, 153, 6),
                at(152, 9, 152, 30),
            ]
        }
    }
    #[allow(
        unused_parens,
        unused_braces,
        unused_variables,
        non_snake_case,
        clippy::all,
        clippy::pedantic
    )]
    fn build(
        &self,
        schedule: &mut ::roundelay::expand::Builder<'_>,
    ) -> ::core::result::Result<(), ::roundelay::expand::Stop> {
        #[allow(unused_imports)]
        use ::roundelay::expand::*;
        let rank = schedule.rank();
        let nranks = schedule.nranks();
        let local = schedule.local();
        let root = self.root.clone().map_or_else(|| int(0), Int::from);
        let root = schedule.rank_param(0, root, true)?;
        let slices = self.slices.clone().map_or_else(|| int(8), Int::from);
        let ring = match &self.ring {
            Some(given) => schedule.ring(0, given)?,
            None => schedule.ring(0, &Ring::natural())?,
        };
        schedule
            .require(
                1,
                slices.more(0),
                "the buffer goes around in slices: set slices to 1 or more",
            )?;
        let left = ring.left();
        let right = ring.right();
        let first = left.equals(schedule.peer(root));
        let slice = schedule.input().split(slices);
        let result = schedule.output().split(slices);
        let sums = schedule.scratch(7, "sums", schedule.input())?;
        let sum = sums.split(slices);
        for s in schedule.range(9, 0, slices)? {
            if schedule.test(10, rank.equals(root))? {
                schedule.copy(11, local.on(slice.at(s)), &[local.on(result.at(s))])?;
                if schedule.test(12, nranks.more(1))? {
                    schedule.rx_ack(13, left)?;
                    schedule.reduce(14, &[left.on(sum.at(s))], local.on(result.at(s)))?;
                    schedule.tx_data_signal(15, left)?;
                }
            } else {
                schedule.copy(16, local.on(slice.at(s)), &[local.on(sum.at(s))])?;
                if schedule.test(17, !first)? {
                    schedule.rx_ack(18, left)?;
                    schedule.reduce(19, &[left.on(sum.at(s))], local.on(sum.at(s)))?;
                    schedule.tx_data_signal(20, left)?;
                }
                if schedule.test(21, s.more(0))? {
                    schedule.rx_data_signal(22, right)?;
                }
                schedule.tx_ack(23, right)?;
            }
        }
        if schedule.test(24, rank.differs(root))? {
            schedule.rx_data_signal(25, right)?;
        }
        Ok(())
    }
}
#[cfg(test)]
#[test]
fn ring_reduce_is_proved() {
    ::roundelay::expand::is_proved(&RingReduce::new(), 2..=33, false);
}
