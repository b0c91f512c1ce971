/// AllReduce on a ring in both directions at once: half of the data travels each way, on a stream of
/// its own, so a full-duplex link is busy both ways.
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
                at(5, 15, 5, 35),
                at(6, 5, 6, 33),
                at(7, 5, 31, 6),
                at(8, 9, 8, 64),
                at(9, 9, 9, 66),
                at(10, 9, 10, 50),
                at(11, 9, 11, 46),
                at(13, 9, 13, 58),
                at(15, 9, 22, 10),
                at(16, 13, 16, 67),
                at(17, 13, 17, 24),
                at(18, 13, 18, 26),
                at(19, 13, 19, 51),
                at(20, 13, 20, 33),
                at(21, 13, 21, 31),
                at(23, 9, 30, 10),
                at(24, 13, 24, 61),
                at(25, 13, 25, 24),
                at(26, 13, 26, 26),
                at(27, 13, 27, 49),
                at(28, 13, 28, 33),
                at(29, 13, 29, 31),
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
