/// AllReduce on a ring in both directions at once: half of the data travels each way, on a stream of
/// its own, so a full-duplex link is busy both ways.
///
/// The ring algorithm of NCCL, pulled, twice: T = 2 * (n - 1) * L + (n - 1) / n * S / B from 3 ranks on, where
/// B is what a link carries one way. For large buffers where ranks have a link to each side only; where
/// cables leave more rings, `MultiRingAllReduce` uses them.
///
/// `Ring::twisted()` is the order of the 8-card mesh whose 0-1 link is cut.
///
/// ```text
/// 4 ranks, pieces of 1/8:
/// step 0  0->1+[0] 0->3+[4] 1->0+[5] 1->2+[1] 2->1+[6] 2->3+[2] 3->0+[3] 3->2+[7]
/// step 1  0->1+[3] 0->3+[5] 1->0+[6] 1->2+[0] 2->1+[7] 2->3+[1] 3->0+[2] 3->2+[4]
/// step 2  0->1+[2] 0->3+[6] 1->0+[7] 1->2+[3] 2->1+[4] 2->3+[0] 3->0+[1] 3->2+[5]
/// step 3  0->1[1] 0->3[7] 1->0[4] 1->2[2] 2->1[5] 2->3[3] 3->0[0] 3->2[6]
/// step 4  0->1[0] 0->3[4] 1->0[5] 1->2[1] 2->1[6] 2->3[2] 3->0[3] 3->2[7]
/// step 5  0->1[3] 0->3[5] 1->0[6] 1->2[0] 2->1[7] 2->3[1] 3->0[2] 3->2[4]
/// ```
#[derive(Clone, Debug, Default)]
pub struct TwistedRingAllReduce {
    ring: ::core::option::Option<::roundelay::Ring>,
}
#[allow(dead_code)]
impl TwistedRingAllReduce {
    /// `TwistedRingAllReduce`, with every parameter that has a default at its default.
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
impl ::roundelay::Algorithm for TwistedRingAllReduce {
    fn name(&self) -> &str {
        "TwistedRingAllReduce"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::AllReduce
    }
    fn file(&self) -> &str {
        "stdlib/library/twisted_ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// AllReduce on a ring in both directions at once: half of the data travels each way, on a stream of
/// its own, so a full-duplex link is busy both ways.
///
/// The ring algorithm of NCCL, pulled, twice: T = 2 * (n - 1) * L + (n - 1) / n * S / B from 3 ranks on, where
/// B is what a link carries one way. For large buffers where ranks have a link to each side only; where
/// cables leave more rings, `MultiRingAllReduce` uses them.
///
/// `Ring::twisted()` is the order of the 8-card mesh whose 0-1 link is cut.
///
/// ```text
/// 4 ranks, pieces of 1/8:
/// step 0  0->1+[0] 0->3+[4] 1->0+[5] 1->2+[1] 2->1+[6] 2->3+[2] 3->0+[3] 3->2+[7]
/// step 1  0->1+[3] 0->3+[5] 1->0+[6] 1->2+[0] 2->1+[7] 2->3+[1] 3->0+[2] 3->2+[4]
/// step 2  0->1+[2] 0->3+[6] 1->0+[7] 1->2+[3] 2->1+[4] 2->3+[0] 3->0+[1] 3->2+[5]
/// step 3  0->1[1] 0->3[7] 1->0[4] 1->2[2] 2->1[5] 2->3[3] 3->0[0] 3->2[6]
/// step 4  0->1[0] 0->3[4] 1->0[5] 1->2[1] 2->1[6] 2->3[2] 3->0[3] 3->2[7]
/// step 5  0->1[3] 0->3[5] 1->0[6] 1->2[0] 2->1[7] 2->3[1] 3->0[2] 3->2[4]
/// ```
pub algorithm TwistedRingAllReduce(ring: Ring) -> AllReduce {
    view half = output.split(2);
    parallel way in 0..2 {
        let to = if way == 0 { ring.right } else { ring.left };
        let from = if way == 0 { ring.left } else { ring.right };
        let sign = if way == 0 { 1 } else { -1 };
        view block = half[way].split(nranks);
        copy(local.input.split(2)[way], local.half[way]);
        for round in 0..nranks - 1 {
            let b = (ring.position - sign * (round + 1)) % nranks;
            to.TxAck();
            from.RxAck();
            reduce(from.block[b], local.block[b]);
            from.TxDataSignal();
            to.RxDataSignal();
        }
        for round in 0..nranks - 1 {
            let b = (ring.position - sign * round) % nranks;
            to.TxAck();
            from.RxAck();
            copy(from.block[b], local.block[b]);
            from.TxDataSignal();
            to.RxDataSignal();
        }
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(19, 15, 19, 35),
                at(20, 5, 20, 33),
                at(21, 5, 45, 6),
                at(22, 9, 22, 64),
                at(23, 9, 23, 66),
                at(24, 9, 24, 50),
                at(25, 9, 25, 46),
                at(27, 9, 27, 58),
                at(29, 9, 36, 10),
                at(30, 13, 30, 67),
                at(31, 13, 31, 24),
                at(32, 13, 32, 26),
                at(33, 13, 33, 51),
                at(34, 13, 34, 33),
                at(35, 13, 35, 31),
                at(37, 9, 44, 10),
                at(38, 13, 38, 61),
                at(39, 13, 39, 24),
                at(40, 13, 40, 26),
                at(41, 13, 41, 49),
                at(42, 13, 42, 33),
                at(43, 13, 43, 31),
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
fn twisted_ring_all_reduce_is_proved() {
    ::roundelay::expand::is_proved(&TwistedRingAllReduce::new(), 2..=33, false);
}
/// ReduceScatter on a ring in both directions at once: half of each block travels each way, on a stream of
/// its own.
///
/// `RingReduceScatter` twice: n - 1 rounds, T = (n - 1) * L + (n - 1) / (2 * n) * S / B from 3 ranks on, for
/// n * c = S of input, where B is what a link carries one way. For large buffers, as the AllReduce.
///
/// ```text
/// 4 ranks, pieces of 1/8:
/// step 0  0->1+[6] 0->3+[3] 1->0+[5] 1->2+[0] 2->1+[7] 2->3+[2] 3->0+[4] 3->2+[1]
/// step 1  0->1+[4] 0->3+[5] 1->0+[7] 1->2+[6] 2->1+[1] 2->3+[0] 3->0+[2] 3->2+[3]
/// step 2  0->1+[2] 0->3+[7] 1->0+[1] 1->2+[4] 2->1+[3] 2->3+[6] 3->0+[0] 3->2+[5]
/// ```
#[derive(Clone, Debug, Default)]
pub struct TwistedRingReduceScatter {
    ring: ::core::option::Option<::roundelay::Ring>,
}
#[allow(dead_code)]
impl TwistedRingReduceScatter {
    /// `TwistedRingReduceScatter`, with every parameter that has a default at its default.
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
impl ::roundelay::Algorithm for TwistedRingReduceScatter {
    fn name(&self) -> &str {
        "TwistedRingReduceScatter"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::ReduceScatter
    }
    fn file(&self) -> &str {
        "stdlib/library/twisted_ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// ReduceScatter on a ring in both directions at once: half of each block travels each way, on a stream of
/// its own.
///
/// `RingReduceScatter` twice: n - 1 rounds, T = (n - 1) * L + (n - 1) / (2 * n) * S / B from 3 ranks on, for
/// n * c = S of input, where B is what a link carries one way. For large buffers, as the AllReduce.
///
/// ```text
/// 4 ranks, pieces of 1/8:
/// step 0  0->1+[6] 0->3+[3] 1->0+[5] 1->2+[0] 2->1+[7] 2->3+[2] 3->0+[4] 3->2+[1]
/// step 1  0->1+[4] 0->3+[5] 1->0+[7] 1->2+[6] 2->1+[1] 2->3+[0] 3->0+[2] 3->2+[3]
/// step 2  0->1+[2] 0->3+[7] 1->0+[1] 1->2+[4] 2->1+[3] 2->3+[6] 3->0+[0] 3->2+[5]
/// ```
pub algorithm TwistedRingReduceScatter(ring: Ring) -> ReduceScatter {
    view block = input.split(nranks);
    view result = output.split(2);
    scratch sum: 4 like block[0].split(2);
    parallel way in 0..2 {
        let to = if way == 0 { ring.right } else { ring.left };
        let from = if way == 0 { ring.left } else { ring.right };
        let sign = if way == 0 { 1 } else { -1 };
        for round in 0..nranks {
            let b = ring[(ring.position - sign * (round + 1)) % nranks].rank;
            view now = sum[2 * way + round % 2];
            view before = sum[2 * way + (round + 1) % 2];
            if round < nranks - 1 {
                copy(local.block[b].split(2)[way], local.now);
            } else {
                copy(local.block[b].split(2)[way], local.result[way]);
            }
            if round > 0 {
                to.TxAck();
                from.RxAck();
                if round < nranks - 1 {
                    reduce(from.before, local.now);
                } else {
                    reduce(from.before, local.result[way]);
                }
                from.TxDataSignal();
                to.RxDataSignal();
            }
        }
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(60, 15, 60, 39),
                at(61, 5, 61, 38),
                at(62, 5, 62, 35),
                at(63, 5, 63, 43),
                at(65, 5, 91, 6),
                at(66, 9, 66, 64),
                at(67, 9, 67, 66),
                at(68, 9, 68, 50),
                at(70, 9, 90, 10),
                at(71, 13, 71, 78),
                at(72, 13, 72, 49),
                at(73, 13, 73, 58),
                at(74, 13, 78, 14),
                at(75, 17, 75, 63),
                at(77, 17, 77, 71),
                at(79, 13, 89, 14),
                at(80, 17, 80, 28),
                at(81, 17, 81, 30),
                at(82, 17, 86, 18),
                at(83, 21, 83, 52),
                at(85, 21, 85, 60),
                at(87, 17, 87, 37),
                at(88, 17, 88, 35),
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
fn twisted_ring_reduce_scatter_is_proved() {
    ::roundelay::expand::is_proved(&TwistedRingReduceScatter::new(), 2..=33, false);
}
/// AllGather on a ring in both directions at once: half of each block travels each way, on a stream of
/// its own.
///
/// `RingAllGather` twice: n - 1 rounds, T = (n - 1) * L + (n - 1) / (2 * n) * S / B from 3 ranks on, for
/// n * c = S of output, where B is what a link carries one way. For large buffers, as the AllReduce.
///
/// ```text
/// 4 ranks, pieces of 1/8:
/// step 0  0->1[0] 0->3[1] 1->0[3] 1->2[2] 2->1[5] 2->3[4] 3->0[6] 3->2[7]
/// step 1  0->1[6] 0->3[3] 1->0[5] 1->2[0] 2->1[7] 2->3[2] 3->0[4] 3->2[1]
/// step 2  0->1[4] 0->3[5] 1->0[7] 1->2[6] 2->1[1] 2->3[0] 3->0[2] 3->2[3]
/// ```
#[derive(Clone, Debug, Default)]
pub struct TwistedRingAllGather {
    ring: ::core::option::Option<::roundelay::Ring>,
}
#[allow(dead_code)]
impl TwistedRingAllGather {
    /// `TwistedRingAllGather`, with every parameter that has a default at its default.
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
impl ::roundelay::Algorithm for TwistedRingAllGather {
    fn name(&self) -> &str {
        "TwistedRingAllGather"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::AllGather
    }
    fn file(&self) -> &str {
        "stdlib/library/twisted_ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// AllGather on a ring in both directions at once: half of each block travels each way, on a stream of
/// its own.
///
/// `RingAllGather` twice: n - 1 rounds, T = (n - 1) * L + (n - 1) / (2 * n) * S / B from 3 ranks on, for
/// n * c = S of output, where B is what a link carries one way. For large buffers, as the AllReduce.
///
/// ```text
/// 4 ranks, pieces of 1/8:
/// step 0  0->1[0] 0->3[1] 1->0[3] 1->2[2] 2->1[5] 2->3[4] 3->0[6] 3->2[7]
/// step 1  0->1[6] 0->3[3] 1->0[5] 1->2[0] 2->1[7] 2->3[2] 3->0[4] 3->2[1]
/// step 2  0->1[4] 0->3[5] 1->0[7] 1->2[6] 2->1[1] 2->3[0] 3->0[2] 3->2[3]
/// ```
pub algorithm TwistedRingAllGather(ring: Ring) -> AllGather {
    view block = output.split(nranks);
    parallel way in 0..2 {
        let to = if way == 0 { ring.right } else { ring.left };
        let from = if way == 0 { ring.left } else { ring.right };
        let sign = if way == 0 { 1 } else { -1 };
        copy(local.input.split(2)[way], local.block[rank].split(2)[way]);
        for round in 0..nranks - 1 {
            let b = ring[(ring.position - sign * (round + 1)) % nranks].rank;
            to.TxAck();
            from.RxAck();
            copy(from.block[b].split(2)[way], local.block[b].split(2)[way]);
            from.TxDataSignal();
            to.RxDataSignal();
        }
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(106, 15, 106, 35),
                at(107, 5, 107, 39),
                at(109, 5, 124, 6),
                at(110, 9, 110, 64),
                at(111, 9, 111, 66),
                at(112, 9, 112, 50),
                at(114, 9, 114, 74),
                at(116, 9, 123, 10),
                at(117, 13, 117, 78),
                at(118, 13, 118, 24),
                at(119, 13, 119, 26),
                at(120, 13, 120, 77),
                at(121, 13, 121, 33),
                at(122, 13, 122, 31),
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
fn twisted_ring_all_gather_is_proved() {
    ::roundelay::expand::is_proved(&TwistedRingAllGather::new(), 2..=33, false);
}
