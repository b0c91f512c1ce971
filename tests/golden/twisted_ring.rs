/// AllReduce on a ring in both directions at once: half of the data travels each way, on a stream of
/// its own, so a full-duplex link is busy both ways.
///
/// The ring algorithm of NCCL, pulled, twice: T = 2 * (n - 1) * L + (n - 1) / n * S / B from 3 ranks on, where
/// B is what a link carries one way. For large buffers where ranks have a link to each side only; where
/// cables leave more rings, `MultiRingAllReduce` uses them.
///
/// `Ring::twisted()` is the order of the 8-card mesh whose 0-1 link is cut.
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
        "stdlib/twisted_ring.coll"
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
                at(9, 15, 9, 35),
                at(10, 5, 10, 33),
                at(11, 5, 35, 6),
                at(12, 9, 12, 64),
                at(13, 9, 13, 66),
                at(14, 9, 14, 50),
                at(15, 9, 15, 46),
                at(17, 9, 17, 58),
                at(19, 9, 26, 10),
                at(20, 13, 20, 67),
                at(21, 13, 21, 24),
                at(22, 13, 22, 26),
                at(23, 13, 23, 51),
                at(24, 13, 24, 33),
                at(25, 13, 25, 31),
                at(27, 9, 34, 10),
                at(28, 13, 28, 61),
                at(29, 13, 29, 24),
                at(30, 13, 30, 26),
                at(31, 13, 31, 49),
                at(32, 13, 32, 33),
                at(33, 13, 33, 31),
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
        let half = s.output().split(2);
        s.parallel(
            2,
            0,
            2,
            |s, way| {
                let to = if s.test(3, way.equals(0))? {
                    ring.right()
                } else {
                    ring.left()
                };
                let from = if s.test(4, way.equals(0))? {
                    ring.left()
                } else {
                    ring.right()
                };
                let sign = if s.test(5, way.equals(0))? { int(1) } else { int(-1) };
                let block = half.at(way).split(nranks);
                s.copy(
                    7,
                    local.on(s.input().split(2).at(way)),
                    &[local.on(half.at(way))],
                )?;
                for round in s.range(8, 0, nranks - 1)? {
                    let b = (ring.position() - sign * (round + 1)) % nranks;
                    s.tx_ack(10, to)?;
                    s.rx_ack(11, from)?;
                    s.reduce(12, &[from.on(block.at(b))], local.on(block.at(b)))?;
                    s.tx_data_signal(13, from)?;
                    s.rx_data_signal(14, to)?;
                }
                for round in s.range(15, 0, nranks - 1)? {
                    let b = (ring.position() - sign * round) % nranks;
                    s.tx_ack(17, to)?;
                    s.rx_ack(18, from)?;
                    s.copy(19, from.on(block.at(b)), &[local.on(block.at(b))])?;
                    s.tx_data_signal(20, from)?;
                    s.rx_data_signal(21, to)?;
                }
                Ok(())
            },
        )?;
        Ok(())
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
        "stdlib/twisted_ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// ReduceScatter on a ring in both directions at once: half of each block travels each way, on a stream of
/// its own.
///
/// `RingReduceScatter` twice: n - 1 rounds, T = (n - 1) * L + (n - 1) / (2 * n) * S / B from 3 ranks on, for
/// n * c = S of input, where B is what a link carries one way. For large buffers, as the AllReduce.
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
                at(43, 15, 43, 39),
                at(44, 5, 44, 38),
                at(45, 5, 45, 35),
                at(46, 5, 46, 43),
                at(48, 5, 74, 6),
                at(49, 9, 49, 64),
                at(50, 9, 50, 66),
                at(51, 9, 51, 50),
                at(53, 9, 73, 10),
                at(54, 13, 54, 78),
                at(55, 13, 55, 49),
                at(56, 13, 56, 58),
                at(57, 13, 61, 14),
                at(58, 17, 58, 63),
                at(60, 17, 60, 71),
                at(62, 13, 72, 14),
                at(63, 17, 63, 28),
                at(64, 17, 64, 30),
                at(65, 17, 69, 18),
                at(66, 21, 66, 52),
                at(68, 21, 68, 60),
                at(70, 17, 70, 37),
                at(71, 17, 71, 35),
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
        let block = s.input().split(nranks);
        let result = s.output().split(2);
        let sum = s.scratch_blocks(3, "sum", 4, &block.at(0).split(2))?;
        s.parallel(
            4,
            0,
            2,
            |s, way| {
                let to = if s.test(5, way.equals(0))? {
                    ring.right()
                } else {
                    ring.left()
                };
                let from = if s.test(6, way.equals(0))? {
                    ring.left()
                } else {
                    ring.right()
                };
                let sign = if s.test(7, way.equals(0))? { int(1) } else { int(-1) };
                for round in s.range(8, 0, nranks)? {
                    let b = s
                        .rank_of(
                            ring.at((ring.position() - sign * (round + 1)) % nranks),
                        );
                    let now = sum.at(2 * way + round % 2);
                    let before = sum.at(2 * way + (round + 1) % 2);
                    if s.test(12, round.less(nranks - 1))? {
                        s.copy(
                            13,
                            local.on(block.at(b).split(2).at(way)),
                            &[local.on(now)],
                        )?;
                    } else {
                        s.copy(
                            14,
                            local.on(block.at(b).split(2).at(way)),
                            &[local.on(result.at(way))],
                        )?;
                    }
                    if s.test(15, round.more(0))? {
                        s.tx_ack(16, to)?;
                        s.rx_ack(17, from)?;
                        if s.test(18, round.less(nranks - 1))? {
                            s.reduce(19, &[from.on(before)], local.on(now))?;
                        } else {
                            s.reduce(20, &[from.on(before)], local.on(result.at(way)))?;
                        }
                        s.tx_data_signal(21, from)?;
                        s.rx_data_signal(22, to)?;
                    }
                }
                Ok(())
            },
        )?;
        Ok(())
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
        "stdlib/twisted_ring.coll"
    }
    fn source(&self) -> &str {
        r#"/// AllGather on a ring in both directions at once: half of each block travels each way, on a stream of
/// its own.
///
/// `RingAllGather` twice: n - 1 rounds, T = (n - 1) * L + (n - 1) / (2 * n) * S / B from 3 ranks on, for
/// n * c = S of output, where B is what a link carries one way. For large buffers, as the AllReduce.
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
                at(82, 15, 82, 35),
                at(83, 5, 83, 39),
                at(85, 5, 100, 6),
                at(86, 9, 86, 64),
                at(87, 9, 87, 66),
                at(88, 9, 88, 50),
                at(90, 9, 90, 74),
                at(92, 9, 99, 10),
                at(93, 13, 93, 78),
                at(94, 13, 94, 24),
                at(95, 13, 95, 26),
                at(96, 13, 96, 77),
                at(97, 13, 97, 33),
                at(98, 13, 98, 31),
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
        let block = s.output().split(nranks);
        s.parallel(
            2,
            0,
            2,
            |s, way| {
                let to = if s.test(3, way.equals(0))? {
                    ring.right()
                } else {
                    ring.left()
                };
                let from = if s.test(4, way.equals(0))? {
                    ring.left()
                } else {
                    ring.right()
                };
                let sign = if s.test(5, way.equals(0))? { int(1) } else { int(-1) };
                s.copy(
                    6,
                    local.on(s.input().split(2).at(way)),
                    &[local.on(block.at(rank).split(2).at(way))],
                )?;
                for round in s.range(7, 0, nranks - 1)? {
                    let b = s
                        .rank_of(
                            ring.at((ring.position() - sign * (round + 1)) % nranks),
                        );
                    s.tx_ack(9, to)?;
                    s.rx_ack(10, from)?;
                    s.copy(
                        11,
                        from.on(block.at(b).split(2).at(way)),
                        &[local.on(block.at(b).split(2).at(way))],
                    )?;
                    s.tx_data_signal(12, from)?;
                    s.rx_data_signal(13, to)?;
                }
                Ok(())
            },
        )?;
        Ok(())
    }
}
#[cfg(test)]
#[test]
fn twisted_ring_all_gather_is_proved() {
    ::roundelay::expand::is_proved(&TwistedRingAllGather::new(), 2..=33, false);
}
