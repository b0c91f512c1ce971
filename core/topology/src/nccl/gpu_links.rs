//! The links assumed between GPUs: to one switch, a mesh of all, or a cube.

use super::element::{Element, integer};
use super::places;
use crate::Problem;
use roundelay_base::diagnostics::Code;

/// The way in which GPUs are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Links {
    /// By PCI alone.
    None,
    /// Each GPU by this number of `NVLinks` to one `NVSwitch`.
    Switch(u32),
    /// Each two GPUs of a host by this number of xGMI links.
    Mesh(u32),
    /// The eight GPUs of a host as two squares with their diagonals, each GPU with a partner in the other square.
    Cube,
}

/// The number of GPUs of a cube.
const CUBE: usize = 8;
/// The numbers of `NVLinks` between the GPUs of a cube, as in the first machines with V100: six for each GPU.
const LANES: [[u32; CUBE]; CUBE] = [
    [0, 1, 1, 2, 2, 0, 0, 0],
    [1, 0, 2, 1, 0, 2, 0, 0],
    [1, 2, 0, 2, 0, 0, 1, 0],
    [2, 1, 2, 0, 0, 0, 0, 1],
    [2, 0, 0, 0, 0, 1, 1, 2],
    [0, 2, 0, 0, 1, 0, 2, 1],
    [0, 0, 1, 0, 1, 2, 0, 2],
    [0, 0, 0, 1, 2, 1, 2, 0],
];
/// The first capability whose GPUs have six `NVLinks`; earlier ones have four, which are all single in a cube.
const SIX: u32 = 70;

/// A device that holds GPUs: its host, bus id and class.
pub struct Device {
    /// The host, as [`places::host`] normalizes it.
    pub host: String,
    /// The bus id, as it stands in the file.
    pub busid: String,
    /// The PCI class.
    pub class: String,
}

impl Links {
    /// Whether they join GPUs of AMD.
    pub fn are_amd(self) -> bool {
        matches!(self, Self::Mesh(_))
    }

    /// Returns a sentence part about the way in which they join all GPUs, of capability `sm`.
    pub fn sentence(self, sm: Option<u32>) -> String {
        match self {
            Self::None => "without NVLinks".to_owned(),
            Self::Switch(n) => format!("each with {n} NVLinks to one NVSwitch"),
            Self::Mesh(1) => "each two of a host joined by an xGMI link".to_owned(),
            Self::Mesh(n) => format!("each two of a host joined by {n} xGMI links"),
            Self::Cube => {
                let each = if sm.is_some_and(|sm| sm < SIX) { 4 } else { 6 };
                format!("joined in their order as a hybrid cube mesh of {each} NVLinks each")
            }
        }
    }

    /// Checks that they can join these devices.
    pub fn fit(self, devices: &[Device]) -> Result<(), Problem> {
        let of_host = |host: &str| devices.iter().filter(|d| d.host == host).count();
        let wrong = devices.iter().map(|d| of_host(&d.host)).find(|count| *count != CUBE);
        match wrong.filter(|_| self == Self::Cube) {
            None => Ok(()),
            Some(count) => {
                let title = format!("a cube joins {CUBE} GPUs of a host, and the file has {count}");
                Err(Problem::new(Code::PartialTopology, title)
                    .help("say how many NVLinks each has to one NVSwitch: `nvlinks=12`"))
            }
        }
    }

    /// Returns the links of the GPUs in one of the devices.
    pub fn links(self, device: &Device, all: &[Device], sm: Option<u32>) -> Vec<Element> {
        let host: Vec<_> = all.iter().filter(|other| other.host == device.host).collect();
        let others = || host.iter().filter(|other| other.busid != device.busid);
        let at = |wanted: &Device| host.iter().position(|other| other.busid == wanted.busid);
        match self {
            Self::None | Self::Switch(0) => Vec::new(),
            Self::Switch(n) => vec![switch(&n.to_string())],
            Self::Mesh(n) => others().map(|other| link("xgmi", other, n)).collect(),
            Self::Cube => {
                let lanes = |other: &Device| {
                    let lanes = LANES.get(at(device)?)?.get(at(other)?).copied()?;
                    Some(if sm.is_some_and(|sm| sm < SIX) { lanes.min(1) } else { lanes })
                };
                let lanes = others().filter_map(|other| Some((other, lanes(other)?)));
                let lanes = lanes.filter(|(_, lanes)| *lanes > 0);
                lanes.map(|(other, lanes)| link("nvlink", other, lanes)).collect()
            }
        }
    }
    /// Adds the links to the GPUs of a tree, of which none has any.
    ///
    /// # Errors
    /// E0608 where they cannot join these GPUs.
    pub fn join(self, root: &mut Element) -> Result<(), Problem> {
        let has_gpus = |e: &Element| e.tag == "pci" && e.all("gpu").next().is_some();
        let devices = devices(root, &has_gpus);
        self.fit(&devices)?;
        let sm = lowest(root);
        let mut all = devices.iter();
        each(root, &has_gpus, &mut |device| {
            let Some(place) = all.next() else { return };
            let added = self.links(place, &devices, sm);
            for gpu in device.children.iter_mut().filter(|child| child.tag == "gpu") {
                gpu.children.extend(added.iter().cloned());
            }
        });
        Ok(())
    }
}

/// Returns the element of `count` links to a device.
pub fn link(tag: &'static str, to: &Device, count: u32) -> Element {
    let count = count.to_string();
    Element::new(tag, &[("target", &to.busid), ("count", &count), ("tclass", &to.class)])
}

/// Returns the element of `count` `NVLinks` to the only `NVSwitch`.
pub fn switch(count: &str) -> Element {
    let target = ("target", "ffff:ff:ff.f");
    Element::new("nvlink", &[target, ("count", count), ("tclass", "0x068000")])
}

/// Returns the lowest CUDA capability of the GPUs.
pub fn lowest(root: &Element) -> Option<u32> {
    let own = (root.tag == "gpu" && root.get("gcn").is_none()).then(|| root.get("sm"));
    let own = own.flatten().and_then(integer).and_then(|sm| u32::try_from(sm).ok());
    root.children.iter().map(lowest).chain([own]).flatten().min()
}

/// Calls `act` with the outermost wanted elements, in order of the file.
pub fn each(
    element: &mut Element,
    wanted: &dyn Fn(&Element) -> bool,
    act: &mut dyn FnMut(&mut Element),
) {
    if wanted(element) {
        act(element);
    } else {
        element.children.iter_mut().for_each(|child| each(child, wanted, act));
    }
}

/// Returns the wanted devices, in order of the file.
pub fn devices(root: &mut Element, wanted: &dyn Fn(&Element) -> bool) -> Vec<Device> {
    let mut devices = Vec::new();
    for child in &mut root.children {
        let host = places::host(child);
        each(child, wanted, &mut |device| {
            let get = |name| device.get(name).unwrap_or_default().to_owned();
            devices.push(Device { host: host.clone(), busid: get("busid"), class: get("class") });
        });
    }
    devices
}
