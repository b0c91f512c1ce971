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
///
/// `order` lists the ranks around the ring, () is 0, 1, 2, …; that of the twisted ring is 1,2,3,4,5,6,0,7.
#[derive(Clone, Debug, Default)]
pub struct TwistedRingReduceScatter {
    order: ::core::option::Option<::std::vec::Vec<i64>>,
}
#[allow(dead_code)]
impl TwistedRingReduceScatter {
    /// `TwistedRingReduceScatter`, with every parameter that has a default at its default.
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
///
/// `order` lists the ranks around the ring, () is 0, 1, 2, …; that of the twisted ring is 1,2,3,4,5,6,0,7.
pub algorithm TwistedRingReduceScatter(order: [Rank] = ()) -> ReduceScatter {
    let ring = if len(order) == 0 { Ring::natural(nranks) } else { Ring::order(order) };
    view block = input.split(nranks);
    view result = output.split(2);
    scratch sum: 2 like block[0];
    parallel way in 0..2 {
        let to = if way == 0 { ring.right } else { ring.left };
        let from = if way == 0 { ring.left } else { ring.right };
        let sign = if way == 0 { 1 } else { -1 };
        for round in 0..nranks {
            let place = (ring.position - sign * (round + 1)) % nranks;
            let b = if len(order) == 0 { place } else { order[place] };
            view now = sum[round % 2].split(2);
            view before = sum[(round + 1) % 2].split(2);
            if round < nranks - 1 {
                copy(local.block[b].split(2)[way], local.now[way]);
            } else {
                copy(local.block[b].split(2)[way], local.result[way]);
            }
            if round > 0 {
                to.TxAck();
                from.RxAck();
                if round < nranks - 1 {
                    reduce(from.before[way], local.now[way]);
                } else {
                    reduce(from.before[way], local.result[way]);
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
                at(45, 15, 45, 39),
                at(46, 5, 46, 89),
                at(47, 5, 47, 38),
                at(48, 5, 48, 35),
                at(49, 5, 49, 34),
                at(51, 5, 78, 6),
                at(52, 9, 52, 64),
                at(53, 9, 53, 66),
                at(54, 9, 54, 50),
                at(56, 9, 77, 10),
                at(57, 13, 57, 71),
                at(58, 13, 58, 72),
                at(59, 13, 59, 48),
                at(60, 13, 60, 57),
                at(61, 13, 65, 14),
                at(62, 17, 62, 68),
                at(64, 17, 64, 71),
                at(66, 13, 76, 14),
                at(67, 17, 67, 28),
                at(68, 17, 68, 30),
                at(69, 17, 73, 18),
                at(70, 21, 70, 62),
                at(72, 21, 72, 65),
                at(74, 17, 74, 37),
                at(75, 17, 75, 35),
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
        let block = s.input().split(nranks);
        let result = s.output().split(2);
        let sum = s.scratch_slots(4, "sum", 2, block.at(0))?;
        s.parallel(
            5,
            0,
            2,
            |s, way| {
                let to = if s.test(6, way.equals(0))? {
                    ring.right()
                } else {
                    ring.left()
                };
                let from = if s.test(7, way.equals(0))? {
                    ring.left()
                } else {
                    ring.right()
                };
                let sign = if s.test(8, way.equals(0))? { int(1) } else { int(-1) };
                for round in s.range(9, 0, nranks)? {
                    let place = (ring.position() - sign * (round + 1)) % nranks;
                    let b = if s.test(11, order.len().equals(0))? {
                        place
                    } else {
                        order.at(place)
                    };
                    let now = sum.at(round % 2).split(2);
                    let before = sum.at((round + 1) % 2).split(2);
                    if s.test(14, round.less(nranks - 1))? {
                        s.copy(
                            15,
                            local.on(block.at(b).split(2).at(way)),
                            &[local.on(now.at(way))],
                        )?;
                    } else {
                        s.copy(
                            16,
                            local.on(block.at(b).split(2).at(way)),
                            &[local.on(result.at(way))],
                        )?;
                    }
                    if s.test(17, round.more(0))? {
                        s.tx_ack(18, to)?;
                        s.rx_ack(19, from)?;
                        if s.test(20, round.less(nranks - 1))? {
                            s.reduce(
                                21,
                                &[from.on(before.at(way))],
                                local.on(now.at(way)),
                            )?;
                        } else {
                            s.reduce(
                                22,
                                &[from.on(before.at(way))],
                                local.on(result.at(way)),
                            )?;
                        }
                        s.tx_data_signal(23, from)?;
                        s.rx_data_signal(24, to)?;
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
///
/// `order` is that of `TwistedRingReduceScatter`.
#[derive(Clone, Debug, Default)]
pub struct TwistedRingAllGather {
    order: ::core::option::Option<::std::vec::Vec<i64>>,
}
#[allow(dead_code)]
impl TwistedRingAllGather {
    /// `TwistedRingAllGather`, with every parameter that has a default at its default.
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
///
/// `order` is that of `TwistedRingReduceScatter`.
pub algorithm TwistedRingAllGather(order: [Rank] = ()) -> AllGather {
    let ring = if len(order) == 0 { Ring::natural(nranks) } else { Ring::order(order) };
    view block = output.split(nranks);
    parallel way in 0..2 {
        let to = if way == 0 { ring.right } else { ring.left };
        let from = if way == 0 { ring.left } else { ring.right };
        let sign = if way == 0 { 1 } else { -1 };
        copy(local.input.split(2)[way], local.block[rank].split(2)[way]);
        for round in 0..nranks - 1 {
            let place = (ring.position - sign * (round + 1)) % nranks;
            let b = if len(order) == 0 { place } else { order[place] };
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
                at(88, 15, 88, 35),
                at(89, 5, 89, 89),
                at(90, 5, 90, 39),
                at(92, 5, 108, 6),
                at(93, 9, 93, 64),
                at(94, 9, 94, 66),
                at(95, 9, 95, 50),
                at(97, 9, 97, 74),
                at(99, 9, 107, 10),
                at(100, 13, 100, 71),
                at(101, 13, 101, 72),
                at(102, 13, 102, 24),
                at(103, 13, 103, 26),
                at(104, 13, 104, 77),
                at(105, 13, 105, 33),
                at(106, 13, 106, 31),
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
        let block = s.output().split(nranks);
        s.parallel(
            3,
            0,
            2,
            |s, way| {
                let to = if s.test(4, way.equals(0))? {
                    ring.right()
                } else {
                    ring.left()
                };
                let from = if s.test(5, way.equals(0))? {
                    ring.left()
                } else {
                    ring.right()
                };
                let sign = if s.test(6, way.equals(0))? { int(1) } else { int(-1) };
                s.copy(
                    7,
                    local.on(s.input().split(2).at(way)),
                    &[local.on(block.at(rank).split(2).at(way))],
                )?;
                for round in s.range(8, 0, nranks - 1)? {
                    let place = (ring.position() - sign * (round + 1)) % nranks;
                    let b = if s.test(10, order.len().equals(0))? {
                        place
                    } else {
                        order.at(place)
                    };
                    s.tx_ack(11, to)?;
                    s.rx_ack(12, from)?;
                    s.copy(
                        13,
                        from.on(block.at(b).split(2).at(way)),
                        &[local.on(block.at(b).split(2).at(way))],
                    )?;
                    s.tx_data_signal(14, from)?;
                    s.rx_data_signal(15, to)?;
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
