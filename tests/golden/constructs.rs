/// Every construct of the language once, for comparing the two ways to lay it out. It computes nothing
/// that makes sense; `s` has no default, so the macro does not try to prove it.
#[derive(Clone, Debug)]
pub struct Constructs {
    ring: ::core::option::Option<::roundelay::Ring>,
    root: ::core::option::Option<i64>,
    slices: ::core::option::Option<i64>,
    eager: ::core::option::Option<bool>,
    order: ::core::option::Option<::std::vec::Vec<i64>>,
    s: i64,
}
#[allow(dead_code)]
impl Constructs {
    /// `Constructs`, with every parameter that has a default at its default.
    #[must_use]
    pub fn new(s: impl ::core::convert::Into<i64>) -> Self {
        Self {
            s: s.into(),
            ring: ::core::option::Option::None,
            root: ::core::option::Option::None,
            slices: ::core::option::Option::None,
            eager: ::core::option::Option::None,
            order: ::core::option::Option::None,
        }
    }
    /// Sets the parameter `ring: Ring`.
    #[must_use]
    pub fn ring(mut self, ring: impl ::core::convert::Into<::roundelay::Ring>) -> Self {
        self.ring = ::core::option::Option::Some(ring.into());
        self
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
    /// Sets the parameter `eager: bool`.
    #[must_use]
    pub fn eager(mut self, eager: impl ::core::convert::Into<bool>) -> Self {
        self.eager = ::core::option::Option::Some(eager.into());
        self
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
impl ::roundelay::Algorithm for Constructs {
    fn name(&self) -> &str {
        "Constructs"
    }
    fn collective(&self) -> ::roundelay::Collective {
        ::roundelay::Collective::Broadcast
    }
    fn file(&self) -> &str {
        "data/constructs.coll"
    }
    fn source(&self) -> &str {
        r#"/// Every construct of the language once, for comparing the two ways to lay it out. It computes nothing
/// that makes sense; `s` has no default, so the macro does not try to prove it.
#[allow(W0002)]
pub algorithm Constructs(
    ring: Ring = Ring::natural(nranks),
    root: Rank = nranks - 1,
    slices: int = max(2, nranks / 2) + min(3, abs(-1)),
    eager: bool = nranks > 2 && !false || nranks == 1,
    order: [Rank] = [2, 0, 1],
    s: int,
) -> Broadcast {
    view block = output.split(nranks);
    view parts = output.split([1, 0, 2]);
    scratch inbox: like output;
    scratch window: 2 like output.split(2)[1];
    scratch slot: slices like block;
    let other = peer((rank + 1) % nranks);
    let away = if other == local { peer(rank) } else if eager { other } else { ring.left };
    let number = if rank == root { 1 << 3 } else { (7 - 10) % 5 * (2 + 3) - -1 };
    let bits = popcount(number & 255) + trailing_zeros(8 | number) + bit_reverse(3, 4) + (5 ^ 1);
    let minus = -(bits - 3) - -bits + !(rank + 1) * -2;
    let logs = ring.position_of(root) + log2(nranks) + ceil_log2(nranks) + pow2(3) - (number >> 1) / 2;
    let list = [number, bits, minus, logs + (if eager { 1 } else { 2 })];
    let many = len(list) + len(block) + list[3] + rev(list)[0] + !number;
    require many != 1 || is_power_of_two(many), "it is never one";
    step swap(to: peer, from: peer, piece: region, times: int, twice: bool) {
        for round in 0..times {
            if twice && to != local && from != local {
                to.TxAck();
                from.RxAck();
                copy(from.output.block(round % nranks), local.output.block(round % nranks));
                copy(local.window[round % 2], local.output.split(2)[1]);
            } else if to.rank == from.rank {
                copy(local.output, local.inbox);
            } else {
                copy(local.output.split(2)[1], [local.window[0], local.window[1]]);
            }
        }
        if from != local {
            copy(local.output, from.inbox);
        }
    }
    if rank == root {
        copy(local.input, local.output);
    }
    swap(ring.right, ring.left, parts[1], 2, true);
    swap(away, ring.left, parts[0..2], number * 0 + 1, eager);
    parallel way in -1..2 {
        let b = (ring.position - way * 3) % nranks;
        copy(local.block[b], local.slot[0]);
        for r in order {
            let distance = r + 1;
            if distance < nranks {
                parallel lane in 1..distance + 1 {
                    peer((rank + lane) % nranks).TxDataSignal();
                    peer((rank - lane) % nranks).RxDataSignal();
                }
            }
        }
        reduce(local.slot[0], local.block[b]);
    }
    reduce([local.output.split(2)[0], local.output.split(4)[0..2]], local.inbox.split(2)[0..1]);
    copy(local.parts[2], local.inbox.split([3, 6])[1]);
    for value in rev(list) {
        copy(local.block[value % nranks], local.slot[abs(value) % slices]);
    }
}
"#
    }
    fn locations(&self) -> &[::roundelay::expand::Location] {
        use ::roundelay::expand::at;
        const {
            &[
                at(3, 31, 3, 41),
                at(11, 5, 11, 39),
                at(12, 5, 12, 42),
                at(13, 5, 13, 32),
                at(14, 5, 14, 47),
                at(15, 5, 15, 37),
                at(17, 5, 17, 43),
                at(18, 5, 18, 92),
                at(19, 5, 19, 82),
                at(20, 5, 20, 99),
                at(21, 5, 21, 56),
                at(22, 5, 22, 104),
                at(23, 5, 23, 72),
                at(24, 5, 24, 74),
                at(25, 5, 25, 67),
                at(27, 5, 43, 6),
                at(28, 9, 39, 10),
                at(29, 13, 38, 14),
                at(30, 17, 30, 28),
                at(31, 17, 31, 30),
                at(32, 17, 32, 93),
                at(33, 17, 33, 73),
                at(35, 17, 35, 49),
                at(37, 17, 37, 84),
                at(40, 9, 42, 10),
                at(41, 13, 41, 44),
                at(45, 5, 47, 6),
                at(46, 9, 46, 41),
                at(48, 5, 48, 52),
                at(49, 5, 49, 63),
                at(50, 5, 63, 6),
                at(51, 9, 51, 52),
                at(52, 9, 52, 45),
                at(53, 9, 61, 10),
                at(54, 13, 54, 34),
                at(55, 13, 60, 14),
                at(56, 17, 59, 18),
                at(57, 21, 57, 65),
                at(58, 21, 58, 65),
                at(62, 9, 62, 47),
                at(64, 5, 64, 97),
                at(65, 5, 65, 56),
                at(66, 5, 68, 6),
                at(67, 9, 67, 76),
            ]
        }
    }
    fn given(&self) -> ::std::vec::Vec<(&'static str, ::roundelay::expand::ParamValue)> {
        [
            self.ring.clone().map(|value| ("ring", value.into())),
            self.root.clone().map(|value| ("root", value.into())),
            self.slices.clone().map(|value| ("slices", value.into())),
            self.eager.clone().map(|value| ("eager", value.into())),
            self.order.clone().map(|value| ("order", value.into())),
            ::core::option::Option::Some(("s", self.s.clone().into())),
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
