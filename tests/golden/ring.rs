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
///
/// `order` lists the ranks around the ring, () is 0, 1, 2, …: blocks belong to ranks, and a `Ring` names
/// no ranks but the neighbours.
#[derive(Clone, Debug, Default)]
pub struct RingReduceScatter {
    order: ::core::option::Option<::std::vec::Vec<i64>>,
}
#[allow(dead_code)]
impl RingReduceScatter {
    /// `RingReduceScatter`, with every parameter that has a default at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the parameter `order: [Rank]`.
    #[must_use]
    pub fn order(
        mut self,
        order: impl ::core::convert::Into<::std::vec::Vec<i64>>,
    ) -> Self {
        self.order = ::core::option::Option::Some(order.into());
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
///
/// `order` lists the ranks around the ring, () is 0, 1, 2, …: blocks belong to ranks, and a `Ring` names
/// no ranks but the neighbours.
pub algorithm RingReduceScatter(order: [Rank] = ()) -> ReduceScatter {
    let ring = if len(order) == 0 { Ring::natural(nranks) } else { Ring::order(order) };
    let left = ring.left;
    let right = ring.right;
    view block = input.split(nranks);
    scratch sum: 2 like block[0];
    for round in 0..nranks {
        let place = (ring.position - round - 1) % nranks;
        let b = if len(order) == 0 { place } else { order[place] };
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
                at(38, 15, 38, 32),
                at(39, 5, 39, 89),
                at(40, 5, 40, 26),
                at(41, 5, 41, 28),
                at(42, 5, 42, 38),
                at(43, 5, 43, 34),
                at(45, 5, 64, 6),
                at(46, 9, 46, 58),
                at(47, 9, 47, 68),
                at(48, 9, 52, 10),
                at(49, 13, 49, 56),
                at(51, 13, 51, 48),
                at(53, 9, 63, 10),
                at(54, 13, 54, 27),
                at(55, 13, 55, 26),
                at(56, 13, 60, 14),
                at(57, 17, 57, 73),
                at(59, 17, 59, 65),
                at(61, 13, 61, 33),
                at(62, 13, 62, 34),
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
        let order = self.order.clone().map_or_else(|| List::of([]), List::from);
        let ring = if s.test(1, order.len().equals(0))? {
            s.ring(1, &Ring::natural())?
        } else {
            s.ring_order(1, &order)?
        };
        let left = ring.left();
        let right = ring.right();
        let block = s.input().split(nranks);
        let sum = s.scratch_slots(5, "sum", 2, block.at(0))?;
        for round in s.range(6, 0, nranks)? {
            let place = (ring.position() - round - 1) % nranks;
            let b = if s.test(8, order.len().equals(0))? {
                place
            } else {
                order.at(place)
            };
            if s.test(9, round.less(nranks - 1))? {
                s.copy(10, local.on(block.at(b)), &[local.on(sum.at(round % 2))])?;
            } else {
                s.copy(11, local.on(block.at(b)), &[local.on(s.output())])?;
            }
            if s.test(12, round.more(0))? {
                s.tx_ack(13, right)?;
                s.rx_ack(14, left)?;
                if s.test(15, round.less(nranks - 1))? {
                    s.reduce(
                        16,
                        &[left.on(sum.at((round - 1) % 2))],
                        local.on(sum.at(round % 2)),
                    )?;
                } else {
                    s.reduce(
                        17,
                        &[left.on(sum.at((round - 1) % 2))],
                        local.on(s.output()),
                    )?;
                }
                s.tx_data_signal(18, left)?;
                s.rx_data_signal(19, right)?;
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
///
/// `order` is that of `RingReduceScatter`.
#[derive(Clone, Debug, Default)]
pub struct RingAllGather {
    order: ::core::option::Option<::std::vec::Vec<i64>>,
}
#[allow(dead_code)]
impl RingAllGather {
    /// `RingAllGather`, with every parameter that has a default at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the parameter `order: [Rank]`.
    #[must_use]
    pub fn order(
        mut self,
        order: impl ::core::convert::Into<::std::vec::Vec<i64>>,
    ) -> Self {
        self.order = ::core::option::Option::Some(order.into());
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
///
/// `order` is that of `RingReduceScatter`.
pub algorithm RingAllGather(order: [Rank] = ()) -> AllGather {
    let ring = if len(order) == 0 { Ring::natural(nranks) } else { Ring::order(order) };
    let left = ring.left;
    let right = ring.right;
    view block = output.split(nranks);
    copy(local.input, local.block[rank]);
    for round in 0..nranks - 1 {
        let place = (ring.position - round - 1) % nranks;
        let b = if len(order) == 0 { place } else { order[place] };
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
                at(73, 15, 73, 28),
                at(74, 5, 74, 89),
                at(75, 5, 75, 26),
                at(76, 5, 76, 28),
                at(77, 5, 77, 39),
                at(79, 5, 79, 42),
                at(81, 5, 89, 6),
                at(82, 9, 82, 58),
                at(83, 9, 83, 68),
                at(84, 9, 84, 23),
                at(85, 9, 85, 22),
                at(86, 9, 86, 45),
                at(87, 9, 87, 29),
                at(88, 9, 88, 30),
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
        let order = self.order.clone().map_or_else(|| List::of([]), List::from);
        let ring = if s.test(1, order.len().equals(0))? {
            s.ring(1, &Ring::natural())?
        } else {
            s.ring_order(1, &order)?
        };
        let left = ring.left();
        let right = ring.right();
        let block = s.output().split(nranks);
        s.copy(5, local.on(s.input()), &[local.on(block.at(rank))])?;
        for round in s.range(6, 0, nranks - 1)? {
            let place = (ring.position() - round - 1) % nranks;
            let b = if s.test(8, order.len().equals(0))? {
                place
            } else {
                order.at(place)
            };
            s.tx_ack(9, right)?;
            s.rx_ack(10, left)?;
            s.copy(11, left.on(block.at(b)), &[local.on(block.at(b))])?;
            s.tx_data_signal(12, left)?;
            s.rx_data_signal(13, right)?;
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
                at(97, 15, 97, 28),
                at(98, 5, 98, 85),
                at(99, 5, 99, 26),
                at(100, 5, 100, 28),
                at(101, 5, 101, 39),
                at(103, 5, 105, 6),
                at(104, 9, 104, 41),
                at(106, 5, 118, 6),
                at(107, 9, 111, 10),
                at(108, 13, 108, 26),
                at(109, 13, 109, 49),
                at(110, 13, 110, 33),
                at(112, 9, 117, 10),
                at(113, 13, 115, 14),
                at(114, 17, 114, 38),
                at(116, 13, 116, 27),
                at(119, 5, 121, 6),
                at(120, 9, 120, 30),
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
                at(129, 15, 129, 25),
                at(130, 5, 130, 85),
                at(131, 5, 131, 26),
                at(132, 5, 132, 28),
                at(133, 5, 133, 36),
                at(134, 5, 134, 38),
                at(135, 5, 135, 40),
                at(136, 5, 136, 30),
                at(137, 5, 137, 35),
                at(139, 5, 159, 6),
                at(140, 9, 158, 10),
                at(141, 13, 141, 51),
                at(142, 13, 146, 14),
                at(143, 17, 143, 30),
                at(144, 17, 144, 54),
                at(145, 17, 145, 37),
                at(148, 13, 148, 48),
                at(149, 13, 153, 14),
                at(150, 17, 150, 30),
                at(151, 17, 151, 51),
                at(152, 17, 152, 37),
                at(154, 13, 156, 14),
                at(155, 17, 155, 38),
                at(157, 13, 157, 27),
                at(160, 5, 162, 6),
                at(161, 9, 161, 30),
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
