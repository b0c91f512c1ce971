/// Each half of the data on a stream of its own, with one scratch a stream.
#[derive(Clone, Debug, Default)]
pub struct ComposedAllReduce {
    ring: ::core::option::Option<::roundelay::Ring>,
}
#[allow(dead_code)]
impl ComposedAllReduce {
    /// `ComposedAllReduce`, with every parameter that has a default at its default.
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
impl ::roundelay::Algorithm for ComposedAllReduce {
    fn name(&self) -> &str {
        "ComposedAllReduce"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::AllReduce
    }
    fn file(&self) -> &str {
        "data/composed.coll"
    }
    fn source(&self) -> &str {
        r#"/// Each half of the data on a stream of its own, with one scratch a stream.
pub algorithm ComposedAllReduce(ring: Ring) -> AllReduce {
    require nranks == 1 || nranks % 2 == 0 && nranks <= 6, "pairs of pairs";
    view half = output.split([1, 2]);
    copy(local.input, local.output);
    parallel way in 0..2 {
        PairsAllReduce(back: way == 0) on (half[way]);
    }
    for twice in 0..2 {
        within (if nranks == 1 { [0] } else { [rank / 2 * 2, rank / 2 * 2 + 1] }) {
            RingBroadcast(root: 0, slices: 1 + twice, ring: Ring::natural(nranks)) on (half[twice]);
        }
    }
    RingBroadcast(root: 0, slices: 2, ring) on (output);
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(4, 15, 4, 32),
                at(5, 5, 5, 77),
                at(6, 5, 6, 38),
                at(8, 5, 8, 37),
                at(9, 5, 11, 6),
                at(10, 9, 10, 55),
                at(12, 5, 16, 6),
                at(13, 9, 15, 10),
                at(14, 13, 14, 101),
                at(17, 5, 17, 57),
            ]
        }
    }
    fn callees(&self) -> &[::roundelay::expand::CalledSource<'_>] {
        use ::roundelay::expand::{CalledSource, at};
        const {
            &[
                CalledSource {
                    source: r#"/// AllGather, which calls another and has scratch of its own.
algorithm Together(at_once: bool = true) -> AllGather {
    view block = output.split(nranks);
    scratch sum: 1 like block;
    copy(local.input, local.sum[0]);
    copy(local.sum[0], local.block[rank]);
    if at_once {
        MeshAllGather() on (output);
    } else {
        RingAllGather() on (block[rank], output);
    }
}
"#,
                    file: "data/rails.coll",
                    locations: &[
                        at(35, 11, 35, 19),
                        at(36, 5, 36, 39),
                        at(37, 5, 37, 31),
                        at(39, 5, 39, 37),
                        at(40, 5, 40, 43),
                        at(41, 5, 45, 6),
                        at(42, 9, 42, 37),
                        at(44, 9, 44, 50),
                    ],
                    calls: &[],
                    direct: false,
                },
                CalledSource {
                    source: r#"/// AllReduce over pairs of neighbors: inside a pair, across pairs, inside a pair.
pub algorithm PairsAllReduce(back: bool = true) -> AllReduce {
    require nranks == 1 || nranks % 2 == 0 && nranks <= 6, "up to three pairs";
    let low = rank / 2 * 2;
    let place = rank % 2;
    view shard = output.split(2);
    if nranks == 1 {
        copy(local.input, local.output);
    } else {
        within [low, low + 1] {
            MeshReduceScatter() on (input, output);
        }
        if nranks == 4 {
            within [place, place + 2] {
                require peer(rank).rank == rank, "numbers are those of the group";
                RingAllReduce() on (shard[place]);
            }
        } else if nranks == 6 {
            within [place, place + 2, place + 4] {
                RingAllReduce(ring: Ring::order([0, 2, 1])) on (shard[place], shard[place]);
            }
        }
        within [low, low + 1] {
            if back {
                Together(at_once: false) on (output);
            } else {
                RingAllGather() on (shard[place], output);
            }
        }
    }
}
"#,
                    file: "data/rails.coll",
                    locations: &[
                        at(2, 15, 2, 29),
                        at(3, 5, 3, 80),
                        at(4, 5, 4, 28),
                        at(5, 5, 5, 26),
                        at(6, 5, 6, 34),
                        at(8, 5, 31, 6),
                        at(9, 9, 9, 41),
                        at(11, 9, 13, 10),
                        at(12, 13, 12, 52),
                        at(14, 9, 23, 10),
                        at(15, 13, 18, 14),
                        at(16, 17, 16, 83),
                        at(17, 17, 17, 51),
                        at(20, 13, 22, 14),
                        at(21, 17, 21, 93),
                        at(24, 9, 30, 10),
                        at(25, 13, 29, 14),
                        at(26, 17, 26, 54),
                        at(28, 17, 28, 59),
                    ],
                    calls: &[0],
                    direct: true,
                },
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
fn composed_all_reduce_is_proved() {
    ::roundelay::expand::is_proved(&ComposedAllReduce::new(), 2..=33, false);
}
