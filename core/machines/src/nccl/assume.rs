//! Files without GPUs, or without links between them: NCCL finds these on the live machine, so a reader has to be
//! told.

use roundelay_base::diagnostics::Code;
use roundelay_base::units::rate_text;
use roundelay_topology::file::File;
use roundelay_topology::nccl::element::{Element, integer};
use roundelay_topology::nccl::gpu_links::{Links, devices, each, lowest};
use roundelay_topology::nccl::graph::Completed;
use roundelay_topology::nccl::{places, speeds};
use roundelay_topology::{CAPABILITIES, Fabric, GpuModel, Problem};

/// The GPUs that a file leaves out, or the links of GPUs for which it lists none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    model: Option<Model>,
    links: Links,
}

/// The model of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Model {
    /// NVIDIA's, of a CUDA capability such as 80.
    Sm(u32),
    /// AMD's, such as `gfx942`.
    Gfx(String),
}

impl Model {
    /// Returns the maker's name, its PCI number, and the classes of its GPUs, the usual one first.
    fn maker(&self) -> (&'static str, &'static str, [&'static str; 2]) {
        match self {
            Self::Sm(_) => ("NVIDIA", "0x10de", CLASSES),
            Self::Gfx(_) => ("AMD", "0x1002", [CLASSES[1], CLASSES[0]]),
        }
    }
}

/// PCI classes of devices that can be GPUs: display controllers and processing accelerators.
const CLASSES: [&str; 2] = ["0x03", "0x12"];

impl Assumption {
    /// Reads a text: `sm=80,nvlinks=12` for NVIDIA's GPUs on an `NVSwitch`, `sm=70,cube` for eight in a hybrid cube
    /// mesh, `gfx942,xgmi=1` for AMD's in a full mesh of xGMI links. `sm=80` or `gfx942` alone stands for GPUs
    /// without links; links alone, such as `nvlinks=12`, join GPUs that the file names.
    ///
    /// # Errors
    /// E0608 for a text that is none of these.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let bad = |why: &str| {
            Problem::new(Code::PartialTopology, format!("cannot assume this of the GPUs: {why}"))
                .help("write `sm=90`, `sm=80,nvlinks=12`, `sm=70,cube` or `gfx942,xgmi=1`")
        };
        let (mut model, mut links) = (None, None);
        for part in text.split(',').map(str::trim) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (name.trim(), value.trim());
            let number =
                |range: std::ops::RangeInclusive<u32>| {
                    value.parse().ok().filter(|n| range.contains(n)).ok_or_else(|| {
                        bad(&format!("{name} is {}..={}", range.start(), range.end()))
                    })
                };
            let (is_model, before) = match name {
                "sm" => (true, model.replace(Model::Sm(number(CAPABILITIES)?)).is_some()),
                "nvlinks" => (false, links.replace(Links::Switch(number(0..=64)?)).is_some()),
                "xgmi" => (false, links.replace(Links::Mesh(number(1..=64)?)).is_some()),
                "cube" if value.is_empty() => (false, links.replace(Links::Cube).is_some()),
                _ if value.is_empty() && GpuModel::amd(name).is_some() => {
                    (true, model.replace(Model::Gfx(name.to_owned())).is_some())
                }
                _ if !part.contains('=') => {
                    return Err(bad("it is not name=number, `cube`, or a model such as gfx942"));
                }
                _ => return Err(bad("only sm, nvlinks, xgmi, cube and a gfx model can be given")),
            };
            if before {
                let what = if is_model { "what they are" } else { "how they are joined" };
                return Err(bad(&format!("{what} is given twice")));
            }
        }
        match (&model, links) {
            (Some(Model::Gfx(_)), Some(links)) if !links.are_amd() => {
                return Err(bad("AMD's GPUs are joined by xGMI links"));
            }
            (Some(Model::Sm(_)), Some(links)) if links.are_amd() => {
                return Err(bad("xGMI links join AMD's GPUs, which are named such as gfx942"));
            }
            _ => {}
        }
        let links = links.filter(|links| *links != Links::Switch(0)).unwrap_or(Links::None);
        Ok(Self { model, links })
    }

    /// Returns the CUDA capability of GPUs of which nothing else is unknown.
    pub(super) fn capability(self) -> Result<u32, Problem> {
        match self.alone() {
            Some(GpuModel::Cuda(sm)) => Ok(sm),
            _ => {
                let title = "the table says how the GPUs are joined, and that they are NVIDIA's";
                Err(Problem::new(Code::PartialTopology, title)
                    .help("assume their model alone: `--assume sm=90`"))
            }
        }
    }

    /// Says of a topology that has its links, and no GPUs, that its ranks are the GPUs of the assumption.
    ///
    /// # Errors
    /// E0608 where the topology names its GPUs, or where the assumption is about links.
    pub fn of_ranks(&self, topology: Fabric) -> Result<Fabric, Problem> {
        let wrong =
            |title: String, help: &str| Err(Problem::new(Code::PartialTopology, title).help(help));
        let name = topology.name();
        match (topology.gpus(), self.alone()) {
            (Some(_), _) => {
                let title = format!("`{name}` names its GPUs, and so does --assume");
                wrong(title, "name them once")
            }
            (None, None) => {
                let title = format!("`{name}` says how its ranks are joined, and so does --assume");
                wrong(title, "assume the model alone: `--assume sm=90` or `--assume gfx942`")
            }
            (None, Some(model)) => Ok(topology.with_gpus(model)),
        }
    }

    /// Returns the model that is assumed, where nothing else is.
    fn alone(&self) -> Option<GpuModel> {
        match (self.model.as_ref()?, self.links) {
            (Model::Sm(sm), Links::None) => Some(GpuModel::Cuda(*sm)),
            (Model::Gfx(name), Links::None) => GpuModel::amd(name),
            _ => None,
        }
    }
}

/// Adds GPUs and network cards to a file that has no GPU, and links to one whose GPUs have none.
pub(super) fn complete(
    file: File,
    root: &mut Element,
    assume: Option<Assumption>,
) -> Result<Completed, Problem> {
    if count(root, &|e| e.tag == "gpu") > 0 {
        return join(root, assume);
    }
    if count(root, &|e| e.tag == "core") > 0 {
        return match assume {
            None => Ok(Completed { assumptions: of_cores(root), ..Completed::default() }),
            Some(_) => Err(Problem::new(
                Code::PartialTopology,
                "the machine has no GPUs: its cores are the ranks",
            )
            .help("leave --assume away")),
        };
    }
    let of = |class: &'static str| count(root, &|e| e.is_class(class));
    let Some(class) = CLASSES.into_iter().rev().find(|class| of(class) > 0) else {
        let title = "no GPU, and no PCI device of class 0x03 or 0x12 that could be one";
        return Err(file.wrong(root, title));
    };
    let cards = count(root, &is_card);
    let Some((model, links)) = assume.and_then(|a| Some((a.model?, a.links))) else {
        let title = "the file names no GPU: NCCL finds them on the live machine";
        let note = format!("{} PCI devices are of class {class}, {cards} of class 0x02", of(class));
        let example = if class == CLASSES[0] { "sm=80,nvlinks=12" } else { "gfx942,xgmi=1" };
        return Err(Problem::new(Code::PartialTopology, title)
            .note(note)
            .help(format!("say what they are, for example `--assume {example}`")));
    };
    let (maker, vendor, classes) = model.maker();
    let made = |e: &Element| e.get("vendor").is_none_or(|own| own.eq_ignore_ascii_case(vendor));
    let could = |class: &str, e: &Element| e.is_class(class) && made(e);
    let Some(class) = classes.into_iter().find(|class| count(root, &|e| could(class, e)) > 0)
    else {
        let title = format!("no PCI device of {maker}'s could be a GPU");
        return Err(Problem::new(Code::PartialTopology, title)
            .note(format!("{} PCI devices of class {class} are of other makers", of(class))));
    };
    let is_gpu = |e: &Element| could(class, e);
    let devices = devices(root, &is_gpu);
    links.fit(&devices)?;
    let (sm, name) = match &model {
        Model::Sm(sm) => (Some(*sm), format!("sm {sm}")),
        Model::Gfx(gfx) => (None, gfx.clone()),
    };
    let mut all = devices.iter().enumerate();
    each(root, &is_gpu, &mut |device| {
        let Some((rank, place)) = all.next() else { return };
        let rank = rank.to_string();
        let model = match &model {
            Model::Sm(sm) => ("sm", sm.to_string()),
            Model::Gfx(gfx) => ("gcn", gfx.clone()),
        };
        let model = (model.0, &*model.1);
        let mut gpu =
            Element::new("gpu", &[("dev", &*rank), model, ("rank", &*rank), ("gdr", "1")]);
        gpu.children = links.links(place, &devices, sm);
        device.children.push(gpu);
    });
    each(root, &is_card, &mut |card| card.children.push(Element::new("nic", &[])));
    let joined = match (links, &model) {
        (Links::None, Model::Gfx(_)) => "without xGMI links".to_owned(),
        _ => links.sentence(sm),
    };
    let gpus = devices.len();
    let mut assumptions =
        vec![format!("The {gpus} PCI devices of class {class} are GPUs of {name}, {joined}.")];
    if cards > 0 {
        assumptions.push(format!("The {cards} PCI devices of class 0x02 are network cards."));
    }
    Ok(Completed { assumptions, ..Completed::default() })
}

/// Returns what is assumed of the cores of a machine without GPUs.
fn of_cores(root: &Element) -> Vec<String> {
    let rate = rate_text(speeds::CORE);
    let mut sentences = vec![format!(
        "A core moves {rate} to its cache or memory, which carry that of all: no file tells it."
    )];
    if root.all("cpu").filter(|cpu| count(cpu, &|e| e.tag == "core") > 0).nth(1).is_some() {
        let usual = speeds::DISTANCE;
        sentences.push(format!(
            "Links between memory nodes have NCCL's speed at distance {usual}, and less the farther they are."
        ));
    }
    sentences
}

/// Adds links to GPUs that the file names, if it lists none for any of them.
fn join(root: &mut Element, assume: Option<Assumption>) -> Result<Completed, Problem> {
    let mut found = Completed::default();
    let gpus = count(root, &|e| e.tag == "gpu");
    let amd = count(root, &|e| e.tag == "gpu" && e.get("gcn").is_some()) > 0;
    let links = assume.as_ref().map_or(Links::None, |assume| assume.links);
    if count(root, &has_cables) > 0 || links == Links::None {
        let sentence = "The file names its GPUs: nothing was assumed about them.";
        found.assumptions.extend(assume.map(|_| sentence.to_owned()));
        found.notes.extend(without_links(root).filter(|_| gpus > 1));
        return Ok(found);
    }
    if links.are_amd() != amd {
        let title = "the file names its GPUs, which links of this kind do not join";
        return Err(Problem::new(Code::PartialTopology, title)
            .note("xGMI links join AMD's GPUs, NVLinks NVIDIA's"));
    }
    links.join(root)?;
    let sm = lowest(root);
    let joined = links.sentence(sm);
    let sentence =
        format!("The {gpus} GPUs of the file, which lists no links of theirs, are {joined}.");
    found.assumptions.push(sentence);
    Ok(found)
}

/// Returns a note about a file that lists no `NVLink` of GPUs that usually have some.
fn without_links(root: &Element) -> Option<String> {
    let sm = lowest(root).filter(|_| count(root, &has_cables) == 0)?;
    let usual = match sm {
        70 => 6,
        80 => 12,
        90 | 100 | 103 => 18,
        _ => return None,
    };
    Some(format!(
        "the file lists no NVLinks, of which a GPU of sm {sm} mostly has {usual}; \
        `--assume nvlinks={usual}` adds them"
    ))
}

/// Whether a device or GPU has links to another one.
fn has_cables(device: &Element) -> bool {
    let target = |cable: &Element| cable.get("target").map(places::bus);
    let own = device.get("busid").map(places::bus);
    let none = |e: &Element| e.get("count").and_then(integer) == Some(0);
    let listed = |e: &&Element| e.is_cable() && !none(e) && target(e) != own;
    device.all("gpu").flat_map(|gpu| &gpu.children).any(|e| listed(&e))
}

/// Whether the element is a network device that the file does not list as a network card.
fn is_card(element: &Element) -> bool {
    element.is_class("0x02") && element.all("nic").next().is_none()
}

fn count(element: &Element, wanted: &dyn Fn(&Element) -> bool) -> usize {
    usize::from(wanted(element)) + element.children.iter().map(|c| count(c, wanted)).sum::<usize>()
}
