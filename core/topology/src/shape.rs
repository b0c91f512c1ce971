//! Topologies in their text form: `full_mesh(8, 25GB/s, 2us) without (0, 1)`.
//!
//! The language, the command line and Rust share this form. A constructor takes its sizes, then for each tier of
//! links a bandwidth and a latency; the defaults are the bandwidth B of one link, and 0. `gpus(sm=90)` behind them says
//! what the ranks are, and `reducing` that the switches reduce.

use std::fmt;

use super::draft::Draft;
use super::nccl::{NamedMachine, System};
use super::{Fabric, GpuModel, LinkKind, NodeId, NodeKind, Problem};
use roundelay_base::diagnostics::Code;
use roundelay_base::rational::Rat;
use roundelay_base::units::{count, plural, rate_text, time_text};

/// A topology in its text form: a constructor with its arguments, and the links that are cut. [`Self::build`] makes a
/// [`Fabric`] of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    kind: ShapeKind,
    sizes: Vec<Size>,
    tiers: Vec<Tier>,
    gpus: Option<GpuModel>,
    /// Whether the switches reduce.
    reducing: bool,
    cuts: Vec<(i64, i64)>,
    /// The machine, where the constructor is that of machines.
    machine: Option<&'static NamedMachine>,
}

/// The links of a tier, as far as they were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Tier {
    /// Bytes a second.
    rate: Option<u64>,
    /// Nanoseconds.
    latency: Option<u64>,
}

/// A size in a constructor: a number, or a list of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// One number, such as `8`.
    One(i64),
    /// A list of numbers, such as `[4, 4]`.
    List(Vec<i64>),
}

/// An argument of a constructor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A number of ranks, leaves and the like.
    Size(Size),
    /// A bandwidth in bytes a second: `25GB/s`.
    Rate(u64),
    /// A latency in nanoseconds: `2us`.
    Time(u64),
    /// A machine that has a name: `"dgx-h100"`.
    Machine(&'static NamedMachine),
    /// The GPUs that the ranks are: `gpus(sm=90)`.
    Gpus(GpuModel),
    /// The switches fold and copy data on the way: `reducing`.
    Reducing,
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $form:literal $sizes:literal..=$most:literal
        $lists:literal $tiers:literal;)*) => {
        /// The constructors of topologies. Latencies and bandwidths may be left out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ShapeKind { $($(#[$doc])* $variant,)* }

        impl ShapeKind {
            /// All constructors.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word that is written.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The form in which it is written, with all arguments.
            pub const fn form(self) -> &'static str {
                match self { $(Self::$variant => $form,)* }
            }

            /// The least and the greatest number of sizes that it takes.
            pub const fn sizes(self) -> (usize, usize) {
                match self { $(Self::$variant => ($sizes, $most),)* }
            }

            /// Whether the size that it takes is a list.
            pub const fn takes_list(self) -> bool {
                match self { $(Self::$variant => $lists,)* }
            }

            /// How many tiers of links it has, which may differ in bandwidth and latency.
            pub const fn tiers(self) -> usize {
                match self { $(Self::$variant => $tiers,)* }
            }
        }
    };
}

shapes! {
    /// A cable between every two ranks.
    FullMesh "full_mesh" "full_mesh(ranks, bandwidth, latency)" 1..=1 false 1;
    /// A cable from each rank to the next.
    Ring "ring" "ring(ranks, bandwidth, latency)" 1..=1 false 1;
    /// A grid whose rows and columns are rings; the last dimension counts fastest.
    Torus "torus" "torus([rows, columns], bandwidth, latency)" 1..=1 true 1;
    /// One switch, one port a rank.
    Crossbar "crossbar" "crossbar(ranks, bandwidth, latency)" 1..=1 false 1;
    /// Hosts under leaves, every leaf under every spine. The uplinks of a leaf carry what its hosts can
    /// send, divided by the oversubscription (1 unless given), unless they have a bandwidth of their own.
    SpineLeaf "spine_leaf"
        "spine_leaf(leaves, hosts, spines, oversubscription, bandwidth, latency, uplink, latency)"
        3..=4 false 2;
    /// Machines of equal size with a switch inside; rank r of each hangs on rail r.
    Islands "islands" "islands(count, size, bandwidth, latency, rail, latency)" 2..=2 false 2;
    /// Machines of any sizes, each a full mesh; every rank has a port on one network switch.
    Groups "groups" "groups([8, 4], bandwidth, latency, network, latency)" 1..=1 true 2;
    /// A machine that has a name, or several of them, whose network cards rails join.
    Machine "machine" "machine(\"dgx-h100\", count)" 0..=1 false 0;
}

impl ShapeKind {
    /// The constructor of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|k| k.name() == name)
    }

    /// Whether its ranks are joined by switches, which [`Argument::Reducing`] is about.
    fn has_switches(self) -> bool {
        matches!(self, Self::Crossbar | Self::SpineLeaf | Self::Islands | Self::Groups)
    }
}

impl Shape {
    /// The shape of a constructor with these arguments.
    ///
    /// # Errors
    /// E0601 for arguments that are not of the constructor's form.
    pub fn new(kind: ShapeKind, arguments: &[Argument]) -> Result<Self, Problem> {
        let bad = |what: String| {
            Problem::new(Code::BadTopology, what).help(format!("the form is `{}`", kind.form()))
        };
        if kind == ShapeKind::Machine {
            let (machine, sizes) = match arguments {
                [Argument::Machine(machine)] => (*machine, Vec::new()),
                [Argument::Machine(machine), Argument::Size(count @ Size::One(_))] => {
                    (*machine, vec![count.clone()])
                }
                _ => {
                    let what = "`machine` takes a name, and perhaps a number of machines";
                    let names: Vec<_> = NamedMachine::ALL.iter().map(|m| m.name).collect();
                    let names = format!("the machines are {}", names.join(", "));
                    return Err(bad(what.to_owned()).note(names));
                }
            };
            let (tiers, cuts) = (Vec::new(), Vec::new());
            return Ok(Self {
                kind,
                sizes,
                tiers,
                gpus: None,
                reducing: false,
                cuts,
                machine: Some(machine),
            });
        }
        // Reports a number in place of a bandwidth or a latency.
        let no_unit = |what: String, size: &Size, quantity: &str, unit: &str| match size {
            // A multiple of 1024 is a size that was written as 1MiB.
            Size::One(n) if n % 1024 != 0 => Problem::new(Code::BadTopology, what)
                .note(format!("the form is `{}`", kind.form()))
                .help(format!("if `{n}` is a {quantity}, write it with its unit: `{n}{unit}`")),
            Size::One(_) => Problem::new(Code::BadTopology, what)
                .note(format!("the form is `{}`", kind.form()))
                .help(format!("write a {quantity} with its unit, such as `2{unit}`")),
            Size::List(_) => bad(what),
        };
        let (mut sizes, mut tiers) = (Vec::new(), Vec::<Tier>::new());
        let (mut gpus, mut reducing) = (None, false);
        for argument in arguments {
            match argument {
                Argument::Gpus(model) if gpus.is_none() => gpus = Some(*model),
                Argument::Reducing if !reducing => reducing = true,
                _ if gpus.is_some() || reducing => {
                    let name = kind.name();
                    let what = format!("`{name}`: an argument stands behind `gpus` or `reducing`");
                    return Err(
                        bad(what).note("these are the last arguments, and each stands once")
                    );
                }
                Argument::Gpus(_) | Argument::Reducing => {}
                Argument::Size(size) if !tiers.is_empty() => {
                    let what = format!("`{}`: a size stands behind a bandwidth", kind.name());
                    let of_link = tiers.last().is_some_and(|tier| tier.latency.is_none());
                    let (quantity, unit) =
                        if of_link { ("latency", "us") } else { ("bandwidth", "GB/s") };
                    return Err(no_unit(what, size, quantity, unit));
                }
                Argument::Size(size) => sizes.push(size.clone()),
                Argument::Rate(rate) => {
                    tiers.push(Tier { rate: Some(*rate), latency: None });
                }
                Argument::Time(time) => match tiers.last_mut() {
                    Some(tier) if tier.latency.is_none() => tier.latency = Some(*time),
                    None => tiers.push(Tier { rate: None, latency: Some(*time) }),
                    Some(_) => {
                        return Err(bad(format!("`{}`: two latencies in a row", kind.name())));
                    }
                },
                Argument::Machine(_) => {
                    return Err(bad(format!("`{}` takes no name of a machine", kind.name())));
                }
            }
        }
        let (least, most) = kind.sizes();
        if !(least..=most).contains(&sizes.len()) {
            let takes =
                if least == most { least.to_string() } else { format!("{least} or {most}") };
            let (plural, got) = (plural(most), sizes.len());
            let what = format!("`{}` takes {takes} size{plural}, and got {got}", kind.name());
            return Err(match sizes.get(most) {
                Some(extra) if matches!(sizes[0], Size::List(_)) == kind.takes_list() => {
                    no_unit(what, extra, "bandwidth", "GB/s")
                }
                _ => bad(what),
            });
        }
        if sizes.iter().any(|s| matches!(s, Size::List(_)) != kind.takes_list()) {
            let takes = if kind.takes_list() { "a list of sizes" } else { "numbers" };
            return Err(bad(format!("`{}` takes {takes}", kind.name())));
        }
        if tiers.get(1).is_some() && tiers[0].rate.is_none() {
            return Err(bad(format!("`{}`: a latency stands before its bandwidth", kind.name())));
        }
        if tiers.len() > kind.tiers() {
            let takes = format!("`{}` takes {}", kind.name(), count(kind.tiers(), "bandwidth"));
            return Err(bad(format!("{takes}, and got {}", tiers.len())));
        }
        if reducing && !kind.has_switches() {
            return Err(bad(format!("`{}` has no switch that could reduce", kind.name()))
                .note("switches are in crossbar, spine_leaf, islands and groups"));
        }
        Ok(Self { kind, sizes, tiers, gpus, reducing, cuts: Vec::new(), machine: None })
    }

    /// Cuts the links between ranks `a` and `b`, in both directions.
    #[must_use]
    pub fn without(mut self, a: i64, b: i64) -> Self {
        self.cuts.push((a, b));
        self
    }

    /// A full mesh of links of bandwidth B.
    pub fn full_mesh(nranks: u32) -> Self {
        Self::of_ranks(ShapeKind::FullMesh, nranks)
    }

    /// A switch to which each rank has a link of bandwidth B.
    pub fn crossbar(nranks: u32) -> Self {
        Self::of_ranks(ShapeKind::Crossbar, nranks)
    }

    /// The shape of a kind that takes the number of ranks alone.
    fn of_ranks(kind: ShapeKind, nranks: u32) -> Self {
        let sizes = vec![Size::One(nranks.into())];
        let (tiers, cuts) = (Vec::new(), Vec::new());
        Self { kind, sizes, tiers, gpus: None, reducing: false, cuts, machine: None }
    }

    /// Lays the topology out.
    ///
    /// # Errors
    /// E0601 for sizes that make no sense, E0602 for a cut of a link that does not exist, E0603 where ranks can no
    /// longer reach each other.
    pub fn build(&self) -> Result<Fabric, Problem> {
        if let Some(system) = self.system() {
            return Ok(system?.topology);
        }
        let mut draft = self.draft()?;
        for (a, b) in &self.cuts {
            draft.cut(*a, *b)?;
        }
        let mut topology = draft.build()?;
        if let Some(model) = self.gpus {
            topology = topology.with_gpus(model);
        }
        if self.reducing {
            topology = topology.with_reducing_switches();
        }
        Ok(topology)
    }

    /// Returns the machine as a topology file describes it; `None` where the topology is not that of machines.
    pub fn system(&self) -> Option<Result<System, Problem>> {
        let machine = self.machine?;
        let count = self.one(0, "machines");
        Some(count.and_then(|count| machine.system(&self.to_string(), count, &self.cuts)))
    }

    fn one(&self, i: usize, what: &str) -> Result<u32, Problem> {
        match self.sizes.get(i) {
            Some(Size::One(n)) => self.count(*n, what),
            _ => Ok(1),
        }
    }

    fn list(&self, what: &str) -> Result<Vec<u32>, Problem> {
        match &self.sizes[0] {
            Size::List(sizes) => sizes.iter().map(|n| self.count(*n, what)).collect(),
            Size::One(_) => Ok(Vec::new()),
        }
    }

    fn count(&self, n: i64, what: &str) -> Result<u32, Problem> {
        let most = i64::from(Fabric::RANK_LIMIT);
        if (1..=most).contains(&n) {
            return Ok(n as u32);
        }
        let title = format!("`{}`: {n} {what}; it takes 1..={most}", self.kind.name());
        Err(Problem::new(Code::BadTopology, title))
    }

    /// Returns the bandwidth and latency of a tier; by default they are those of the tier before.
    fn tier(&self, i: usize) -> (Rat, u64) {
        let given = |i: usize| self.tiers.get(i).copied().unwrap_or_default();
        let (own, before) = (given(i), given(0));
        let rate = own.rate.or(before.rate).map_or(Rat::ONE, Rat::whole);
        (rate, own.latency.or(before.latency).unwrap_or(0))
    }

    fn start(&self, nranks: u64) -> Result<Draft, Problem> {
        let relative = self.tiers.first().is_none_or(|t| t.rate.is_none());
        Draft::new(self.to_string(), nranks, relative)
    }

    fn draft(&self) -> Result<Draft, Problem> {
        let (rate, latency) = self.tier(0);
        let (rate2, latency2) = self.tier(1);
        let product =
            |dims: &[u32]| dims.iter().fold(1_u64, |p, d| p.saturating_mul(u64::from(*d)));
        match self.kind {
            ShapeKind::FullMesh => {
                let n = self.one(0, "ranks")?;
                let mut draft = self.start(n.into())?;
                mesh(&mut draft, 0..n, rate, latency)?;
                Ok(draft)
            }
            ShapeKind::Ring | ShapeKind::Torus => {
                let dims = match self.kind {
                    ShapeKind::Ring => vec![self.one(0, "ranks")?],
                    _ => self.list("ranks in a dimension")?,
                };
                if dims.is_empty() {
                    return Err(Problem::new(Code::BadTopology, "a torus without dimensions")
                        .help("write `torus([4, 4])`"));
                }
                let mut draft = self.start(product(&dims))?;
                grid(&mut draft, &dims, rate, latency)?;
                Ok(draft)
            }
            ShapeKind::Crossbar => {
                let n = self.one(0, "ranks")?;
                let mut draft = self.start(n.into())?;
                let switch = draft.switch("switch", NodeKind::NvSwitch, None);
                for rank in (0..n).map(NodeId) {
                    draft.cable(rank, switch, LinkKind::NvLink, rate, latency)?;
                }
                Ok(draft)
            }
            ShapeKind::SpineLeaf => {
                let leaves = self.one(0, "leaves")?;
                let (hosts, spines) = (self.one(1, "hosts")?, self.one(2, "spines")?);
                let over = self.one(3, "as oversubscription")?;
                let uplink = match self.tiers.get(1).and_then(|t| t.rate) {
                    Some(_) if self.sizes.len() > 3 => {
                        let title =
                            "`spine_leaf`: both an oversubscription and an uplink bandwidth";
                        return Err(Problem::new(Code::BadTopology, title)
                            .help("each follows from the other: give one of them"));
                    }
                    Some(uplink) => Rat::whole(uplink),
                    None => share(rate, hosts, u64::from(spines) * u64::from(over))?,
                };
                let mut draft = self.start(product(&[leaves, hosts]))?;
                let leaf: Vec<_> = (0..leaves)
                    .map(|l| draft.switch(format!("leaf {l}"), NodeKind::Net, Some(l)))
                    .collect();
                for rank in 0..leaves * hosts {
                    let l = rank / hosts;
                    draft.group(NodeId(rank), l);
                    draft.cable(NodeId(rank), leaf[l as usize], LinkKind::Net, rate, latency)?;
                }
                for s in 0..spines {
                    let spine = draft.switch(format!("spine {s}"), NodeKind::Net, None);
                    for &leaf in &leaf {
                        draft.cable(leaf, spine, LinkKind::Net, uplink, latency2)?;
                    }
                }
                Ok(draft)
            }
            ShapeKind::Islands => {
                let (count, size) = (self.one(0, "islands")?, self.one(1, "ranks in an island")?);
                let mut draft = self.start(product(&[count, size]))?;
                for i in 0..count {
                    let switch = draft.switch(format!("island {i}"), NodeKind::NvSwitch, Some(i));
                    for rank in (i * size..(i + 1) * size).map(NodeId) {
                        draft.group(rank, i);
                        draft.cable(rank, switch, LinkKind::NvLink, rate, latency)?;
                    }
                }
                for r in 0..if count > 1 { size } else { 0 } {
                    let rail = draft.switch(format!("rail {r}"), NodeKind::Net, None);
                    for i in 0..count {
                        draft.cable(NodeId(i * size + r), rail, LinkKind::Net, rate2, latency2)?;
                    }
                }
                Ok(draft)
            }
            ShapeKind::Machine => unreachable!("a machine is built as a file describes it"),
            ShapeKind::Groups => {
                let sizes = self.list("ranks in a group")?;
                let mut draft = self.start(sizes.iter().map(|s| u64::from(*s)).sum())?;
                let mut next = 0;
                for (g, size) in sizes.iter().enumerate() {
                    mesh(&mut draft, next..next + size, rate, latency)?;
                    (next..next + size).for_each(|r| draft.group(NodeId(r), g as u32));
                    next += size;
                }
                if sizes.len() > 1 {
                    let net = draft.switch("network", NodeKind::Net, None);
                    for rank in (0..next).map(NodeId) {
                        draft.cable(rank, net, LinkKind::Net, rate2, latency2)?;
                    }
                }
                Ok(draft)
            }
        }
    }
}

fn mesh(
    draft: &mut Draft,
    ranks: std::ops::Range<u32>,
    rate: Rat,
    latency: u64,
) -> Result<(), Problem> {
    for a in ranks.clone() {
        for b in a + 1..ranks.end {
            draft.cable(NodeId(a), NodeId(b), LinkKind::NvLink, rate, latency)?;
        }
    }
    Ok(())
}

/// Joins each line of each dimension to a ring; two ranks have one pair of links.
fn grid(draft: &mut Draft, dims: &[u32], rate: Rat, latency: u64) -> Result<(), Problem> {
    let nranks: u32 = dims.iter().product();
    let mut stride = 1;
    for &dim in dims.iter().rev() {
        for rank in 0..nranks {
            let place = rank / stride % dim;
            let next = rank - place * stride + (place + 1) % dim * stride;
            if dim > 1 && !(dim == 2 && place == 1) {
                draft.cable(NodeId(rank), NodeId(next), LinkKind::NvLink, rate, latency)?;
            }
        }
        stride *= dim;
    }
    Ok(())
}

/// Returns the bandwidth of one uplink: `rate * hosts / uplinks`.
fn share(rate: Rat, hosts: u32, uplinks: u64) -> Result<Rat, Problem> {
    let bad =
        || Problem::new(Code::BadTopology, "`spine_leaf`: the uplink's bandwidth is out of range");
    let all = rate.num().checked_mul(hosts.into()).ok_or_else(bad)?;
    rate.den().checked_mul(uplinks).and_then(|den| Rat::new(all, den)).ok_or_else(bad)
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut arguments = Vec::new();
        arguments.extend(self.machine.map(|machine| format!("\"{}\"", machine.name)));
        for size in &self.sizes {
            arguments.push(match size {
                Size::One(n) => n.to_string(),
                Size::List(list) => {
                    let list: Vec<_> = list.iter().map(ToString::to_string).collect();
                    format!("[{}]", list.join(", "))
                }
            });
        }
        for tier in &self.tiers {
            arguments.extend(tier.rate.map(rate_text));
            arguments.extend(tier.latency.map(time_text));
        }
        arguments.extend(self.gpus.map(|model| format!("gpus({model})")));
        arguments.extend(self.reducing.then(|| "reducing".to_owned()));
        write!(f, "{}({})", self.kind.name(), arguments.join(", "))?;
        self.cuts.iter().try_for_each(|(a, b)| write!(f, " without ({a}, {b})"))
    }
}
