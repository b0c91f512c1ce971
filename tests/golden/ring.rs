/// AllReduce on a ring: nranks-1 reduce-scatter rounds, then nranks-1 all-gather rounds.
///
/// Every rank pulls one block a round from its left neighbour. Bandwidth optimal: each rank moves
/// 2 * (nranks - 1) / nranks of the buffer; 2 * (nranks - 1) rounds.
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
/// Every rank pulls one block a round from its left neighbour. Bandwidth optimal: each rank moves
/// 2 * (nranks - 1) / nranks of the buffer; 2 * (nranks - 1) rounds.
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
