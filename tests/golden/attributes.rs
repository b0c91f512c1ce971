/// Every attribute, with values that rank counts and parameters decide.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    topology: ::core::option::Option<::std::sync::Arc<::roundelay::Topology>>,
    ring: ::core::option::Option<::roundelay::Ring>,
    k: ::core::option::Option<i64>,
}
#[allow(dead_code)]
impl Attributes {
    /// `Attributes`, with every parameter that has a default at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the parameter `topology: Topology`.
    #[must_use]
    pub fn topology(
        mut self,
        topology: impl ::core::convert::Into<::std::sync::Arc<::roundelay::Topology>>,
    ) -> Self {
        self.topology = ::core::option::Option::Some(topology.into());
        self
    }
    /// Sets the parameter `ring: Ring`.
    #[must_use]
    pub fn ring(mut self, ring: impl ::core::convert::Into<::roundelay::Ring>) -> Self {
        self.ring = ::core::option::Option::Some(ring.into());
        self
    }
    /// Sets the parameter `k: int`.
    #[must_use]
    pub fn k(mut self, k: impl ::core::convert::Into<i64>) -> Self {
        self.k = ::core::option::Option::Some(k.into());
        self
    }
}
impl ::roundelay::Algorithm for Attributes {
    fn name(&self) -> &str {
        "Attributes"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::AllReduce
    }
    fn out_of_place(&self) -> bool {
        true
    }
    fn file(&self) -> &str {
        "data/attributes.coll"
    }
    fn source(&self) -> &str {
        r#"/// Every attribute, with values that rank counts and parameters decide.
#[out_of_place]
#[deterministic]
#[topology(full_mesh(9, 25GB/s, 2us) without (0, 8))]
#[budget(streams = 1, notifies = k, scratch = nranks - k, ports = 1)]
#[verify(nranks = [3, 5, 8])]
pub algorithm Attributes(
    topology: Topology,
    ring: Ring = Ring::around(topology),
    k: int = 2,
) -> AllReduce {
    require nranks > 2, "the budget is one of the ranks beyond two";
    view block = output.split(nranks);
    copy(local.input, local.output);
    for round in 0..2 * (nranks - 1) {
        let b = (ring.position - round - 1) % nranks;
        ring.right.TxAck();
        ring.left.RxAck();
        if round < nranks - 1 {
            reduce(ring.left.block[b], local.block[b]);
        } else {
            copy(ring.left.block[b], local.block[b]);
        }
        ring.left.TxDataSignal();
        ring.right.RxDataSignal();
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(7, 15, 7, 25),
                at(3, 1, 3, 17),
                at(5, 10, 5, 21),
                at(5, 23, 5, 35),
                at(5, 37, 5, 57),
                at(5, 59, 5, 68),
                at(4, 1, 4, 54),
                at(12, 5, 12, 69),
                at(13, 5, 13, 39),
                at(14, 5, 14, 37),
                at(15, 5, 26, 6),
                at(16, 9, 16, 54),
                at(17, 9, 17, 28),
                at(18, 9, 18, 27),
                at(19, 9, 23, 10),
                at(20, 13, 20, 56),
                at(22, 13, 22, 54),
                at(24, 9, 24, 34),
                at(25, 9, 25, 35),
            ]
        }
    }
    fn given(&self) -> ::std::vec::Vec<(&'static str, ::roundelay::expand::ParamValue)> {
        [
            self.topology.clone().map(|value| ("topology", value.into())),
            self.ring.clone().map(|value| ("ring", value.into())),
            self.k.clone().map(|value| ("k", value.into())),
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
fn attributes_is_proved() {
    ::roundelay::expand::is_proved(&Attributes::new(), [3, 5, 8], true);
}
