/// AllReduce on a ring: nranks-1 reduce-scatter rounds, then nranks-1 all-gather rounds.
///
/// Patarasuk and Yuan's (2009), and NCCL's, pulled: T = 2 * (n - 1) * L + 2 * (n - 1) / n * S / B. The least
/// volume that there is, for large buffers; halving-doubling and NHR take fewer rounds.
///
/// ```text
/// 4 ranks:
/// step 0  0->1+[0] 1->2+[1] 2->3+[2] 3->0+[3]
/// step 1  0->1+[3] 1->2+[0] 2->3+[1] 3->0+[2]
/// step 2  0->1+[2] 1->2+[3] 2->3+[0] 3->0+[1]
/// step 3  0->1[1] 1->2[2] 2->3[3] 3->0[0]
/// step 4  0->1[0] 1->2[1] 2->3[2] 3->0[3]
/// step 5  0->1[3] 1->2[0] 2->3[1] 3->0[2]
/// ```
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
        "stdlib/library/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// AllReduce on a ring: nranks-1 reduce-scatter rounds, then nranks-1 all-gather rounds.
///
/// Patarasuk and Yuan's (2009), and NCCL's, pulled: T = 2 * (n - 1) * L + 2 * (n - 1) / n * S / B. The least
/// volume that there is, for large buffers; halving-doubling and NHR take fewer rounds.
///
/// ```text
/// 4 ranks:
/// step 0  0->1+[0] 1->2+[1] 2->3+[2] 3->0+[3]
/// step 1  0->1+[3] 1->2+[0] 2->3+[1] 3->0+[2]
/// step 2  0->1+[2] 1->2+[3] 2->3+[0] 3->0+[1]
/// step 3  0->1[1] 1->2[2] 2->3[3] 3->0[0]
/// step 4  0->1[0] 1->2[1] 2->3[2] 3->0[3]
/// step 5  0->1[3] 1->2[0] 2->3[1] 3->0[2]
/// ```
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
                at(15, 15, 15, 28),
                at(16, 5, 16, 26),
                at(17, 5, 17, 28),
                at(18, 5, 18, 28),
                at(19, 5, 19, 39),
                at(21, 5, 21, 37),
                at(23, 5, 30, 6),
                at(24, 9, 24, 43),
                at(25, 9, 25, 23),
                at(26, 9, 26, 22),
                at(27, 9, 27, 47),
                at(28, 9, 28, 29),
                at(29, 9, 29, 30),
                at(31, 5, 38, 6),
                at(32, 9, 32, 39),
                at(33, 9, 33, 23),
                at(34, 9, 34, 22),
                at(35, 9, 35, 45),
                at(36, 9, 36, 29),
                at(37, 9, 37, 30),
            ]
        }
    }
    fn given(&self) -> ::std::vec::Vec<(&'static str, ::roundelay::expand::ParamValue)> {
        [self.ring.clone().map(|value| ("ring", value.into()))]
            .into_iter()
            .flatten()
            .collect()
    }
    fn configured(&self) -> ::roundelay::expand::Configured {
        use ::roundelay::{expand::Read, library::SOURCES};
        static READ: Read = Read::new(SOURCES);
        READ.configured(self)
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
/// ```text
/// 4 ranks:
/// step 0  0->1+[3] 1->2+[0] 2->3+[1] 3->0+[2]
/// step 1  0->1+[2] 1->2+[3] 2->3+[0] 3->0+[1]
/// step 2  0->1+[1] 1->2+[2] 2->3+[3] 3->0+[0]
/// ```
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
        "stdlib/library/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// ReduceScatter on a ring: block b starts right of rank b, goes around, and is complete when it reaches b.
///
/// NCCL's ring, pulled: nranks - 1 rounds of one block, T = (n - 1) * L + (n - 1) / n * S / B for n * c = S
/// of input. The least volume that there is, for large buffers; halving-doubling and NHR take fewer rounds.
///
/// ```text
/// 4 ranks:
/// step 0  0->1+[3] 1->2+[0] 2->3+[1] 3->0+[2]
/// step 1  0->1+[2] 1->2+[3] 2->3+[0] 3->0+[1]
/// step 2  0->1+[1] 1->2+[2] 2->3+[3] 3->0+[0]
/// ```
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
                at(52, 15, 52, 32),
                at(53, 5, 53, 26),
                at(54, 5, 54, 28),
                at(55, 5, 55, 38),
                at(56, 5, 56, 31),
                at(58, 5, 76, 6),
                at(59, 9, 59, 65),
                at(60, 9, 64, 10),
                at(61, 13, 61, 56),
                at(63, 13, 63, 48),
                at(65, 9, 75, 10),
                at(66, 13, 66, 27),
                at(67, 13, 67, 26),
                at(68, 13, 72, 14),
                at(69, 17, 69, 73),
                at(71, 17, 71, 65),
                at(73, 13, 73, 33),
                at(74, 13, 74, 34),
            ]
        }
    }
    fn given(&self) -> ::std::vec::Vec<(&'static str, ::roundelay::expand::ParamValue)> {
        [self.ring.clone().map(|value| ("ring", value.into()))]
            .into_iter()
            .flatten()
            .collect()
    }
    fn configured(&self) -> ::roundelay::expand::Configured {
        use ::roundelay::{expand::Read, library::SOURCES};
        static READ: Read = Read::new(SOURCES);
        READ.configured(self)
    }
}
#[cfg(test)]
#[test]
fn ring_reduce_scatter_is_proved() {
    ::roundelay::expand::is_proved(&RingReduceScatter::new(), 2..=33, false);
}
/// AllGather on a ring: every rank pulls the block that its left neighbor got last.
///
/// NCCL's ring, pulled: nranks - 1 rounds of one block, T = (n - 1) * L + (n - 1) / n * S / B for n * c = S
/// of output. For large buffers; Bruck, NHR and halving-doubling take fewer rounds.
///
/// ```text
/// 4 ranks:
/// step 0  0->1[0] 1->2[1] 2->3[2] 3->0[3]
/// step 1  0->1[3] 1->2[0] 2->3[1] 3->0[2]
/// step 2  0->1[2] 1->2[3] 2->3[0] 3->0[1]
/// ```
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
        "stdlib/library/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// AllGather on a ring: every rank pulls the block that its left neighbor got last.
///
/// NCCL's ring, pulled: nranks - 1 rounds of one block, T = (n - 1) * L + (n - 1) / n * S / B for n * c = S
/// of output. For large buffers; Bruck, NHR and halving-doubling take fewer rounds.
///
/// ```text
/// 4 ranks:
/// step 0  0->1[0] 1->2[1] 2->3[2] 3->0[3]
/// step 1  0->1[3] 1->2[0] 2->3[1] 3->0[2]
/// step 2  0->1[2] 1->2[3] 2->3[0] 3->0[1]
/// ```
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
                at(90, 15, 90, 28),
                at(91, 5, 91, 26),
                at(92, 5, 92, 28),
                at(93, 5, 93, 39),
                at(95, 5, 95, 42),
                at(97, 5, 104, 6),
                at(98, 9, 98, 65),
                at(99, 9, 99, 23),
                at(100, 9, 100, 22),
                at(101, 9, 101, 45),
                at(102, 9, 102, 29),
                at(103, 9, 103, 30),
            ]
        }
    }
    fn given(&self) -> ::std::vec::Vec<(&'static str, ::roundelay::expand::ParamValue)> {
        [self.ring.clone().map(|value| ("ring", value.into()))]
            .into_iter()
            .flatten()
            .collect()
    }
    fn configured(&self) -> ::roundelay::expand::Configured {
        use ::roundelay::{expand::Read, library::SOURCES};
        static READ: Read = Read::new(SOURCES);
        READ.configured(self)
    }
}
#[cfg(test)]
#[test]
fn ring_all_gather_is_proved() {
    ::roundelay::expand::is_proved(&RingAllGather::new(), 2..=33, false);
}
/// Broadcast around a ring, a slice behind the other: who has a slice hands it on while the next one comes.
///
/// NCCL's ring, pulled, a chain from `root` to its left neighbor: n - 2 + slices rounds of 1 / slices of
/// the buffer, T = (n - 2 + s) * (L + S / (s * B)). Close to S / B where slices are many, so for large
/// buffers; a tree takes fewer rounds.
///
/// ```text
/// 4 ranks, slices = 2, pieces of 1/2:
/// step 0  0->1[0]
/// step 1  0->1[1] 1->2[0]
/// step 2  1->2[1] 2->3[0]
/// step 3  2->3[1]
/// ```
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
        "stdlib/library/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// Broadcast around a ring, a slice behind the other: who has a slice hands it on while the next one comes.
///
/// NCCL's ring, pulled, a chain from `root` to its left neighbor: n - 2 + slices rounds of 1 / slices of
/// the buffer, T = (n - 2 + s) * (L + S / (s * B)). Close to S / B where slices are many, so for large
/// buffers; a tree takes fewer rounds.
///
/// ```text
/// 4 ranks, slices = 2, pieces of 1/2:
/// step 0  0->1[0]
/// step 1  0->1[1] 1->2[0]
/// step 2  1->2[1] 2->3[0]
/// step 3  2->3[1]
/// ```
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
                at(120, 15, 120, 28),
                at(121, 5, 121, 85),
                at(122, 5, 122, 26),
                at(123, 5, 123, 28),
                at(124, 5, 124, 39),
                at(126, 5, 128, 6),
                at(127, 9, 127, 41),
                at(129, 5, 141, 6),
                at(130, 9, 134, 10),
                at(131, 13, 131, 26),
                at(132, 13, 132, 49),
                at(133, 13, 133, 33),
                at(135, 9, 140, 10),
                at(136, 13, 138, 14),
                at(137, 17, 137, 38),
                at(139, 13, 139, 27),
                at(142, 5, 144, 6),
                at(143, 9, 143, 30),
            ]
        }
    }
    fn given(&self) -> ::std::vec::Vec<(&'static str, ::roundelay::expand::ParamValue)> {
        [
            self.root.clone().map(|value| ("root", value.into())),
            self.slices.clone().map(|value| ("slices", value.into())),
            self.ring.clone().map(|value| ("ring", value.into())),
        ]
            .into_iter()
            .flatten()
            .collect()
    }
    fn configured(&self) -> ::roundelay::expand::Configured {
        use ::roundelay::{expand::Read, library::SOURCES};
        static READ: Read = Read::new(SOURCES);
        READ.configured(self)
    }
}
#[cfg(test)]
#[test]
fn ring_broadcast_is_proved() {
    ::roundelay::expand::is_proved(&RingBroadcast::new(), 2..=33, false);
}
/// Reduce around a ring, a slice behind the other: every rank adds its own to what comes from the left.
///
/// NCCL's ring, pulled, a chain from root's right neighbor to `root`: n - 2 + slices rounds of 1 / slices
/// of the buffer, T = (n - 2 + s) * (L + S / (s * B)). Close to S / B where slices are many, so for large
/// buffers; a tree takes fewer rounds. Ranks between sum in scratch, as large as the buffer.
///
/// ```text
/// 4 ranks, slices = 2, pieces of 1/2:
/// step 0  1->2+[0]
/// step 1  1->2+[1] 2->3+[0]
/// step 2  2->3+[1] 3->0+[0]
/// step 3  3->0+[1]
/// ```
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
        "stdlib/library/ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// Reduce around a ring, a slice behind the other: every rank adds its own to what comes from the left.
///
/// NCCL's ring, pulled, a chain from root's right neighbor to `root`: n - 2 + slices rounds of 1 / slices
/// of the buffer, T = (n - 2 + s) * (L + S / (s * B)). Close to S / B where slices are many, so for large
/// buffers; a tree takes fewer rounds. Ranks between sum in scratch, as large as the buffer.
///
/// ```text
/// 4 ranks, slices = 2, pieces of 1/2:
/// step 0  1->2+[0]
/// step 1  1->2+[1] 2->3+[0]
/// step 2  2->3+[1] 3->0+[0]
/// step 3  3->0+[1]
/// ```
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
                at(160, 15, 160, 25),
                at(161, 5, 161, 85),
                at(162, 5, 162, 26),
                at(163, 5, 163, 28),
                at(164, 5, 164, 36),
                at(165, 5, 165, 38),
                at(166, 5, 166, 40),
                at(167, 5, 167, 30),
                at(168, 5, 168, 35),
                at(170, 5, 190, 6),
                at(171, 9, 189, 10),
                at(172, 13, 172, 51),
                at(173, 13, 177, 14),
                at(174, 17, 174, 30),
                at(175, 17, 175, 54),
                at(176, 17, 176, 37),
                at(179, 13, 179, 48),
                at(180, 13, 184, 14),
                at(181, 17, 181, 30),
                at(182, 17, 182, 51),
                at(183, 17, 183, 37),
                at(185, 13, 187, 14),
                at(186, 17, 186, 38),
                at(188, 13, 188, 27),
                at(191, 5, 193, 6),
                at(192, 9, 192, 30),
            ]
        }
    }
    fn given(&self) -> ::std::vec::Vec<(&'static str, ::roundelay::expand::ParamValue)> {
        [
            self.root.clone().map(|value| ("root", value.into())),
            self.slices.clone().map(|value| ("slices", value.into())),
            self.ring.clone().map(|value| ("ring", value.into())),
        ]
            .into_iter()
            .flatten()
            .collect()
    }
    fn configured(&self) -> ::roundelay::expand::Configured {
        use ::roundelay::{expand::Read, library::SOURCES};
        static READ: Read = Read::new(SOURCES);
        READ.configured(self)
    }
}
#[cfg(test)]
#[test]
fn ring_reduce_is_proved() {
    ::roundelay::expand::is_proved(&RingReduce::new(), 2..=33, false);
}
