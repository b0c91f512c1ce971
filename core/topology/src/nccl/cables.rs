//! Links of the GPUs: `NVLinks`, xGMI and chip-to-chip links.

use std::collections::BTreeMap;

use super::element::Element;
use super::graph::{GraphGpu, GraphReader};
use super::{places, speeds};
use crate::gpus::gfx;
use crate::{GpuModel, Gpus, LinkKind, NodeId, NodeKind, Problem};

/// The most `NVLinks` between two devices.
pub const NVLINKS: i64 = 1024;

/// The result of reading the links of all GPUs.
#[derive(Default)]
pub(super) struct Cables {
    /// The lowest CUDA capability.
    pub(super) sm: Option<u32>,
    /// The lowest number of a model of AMD's GPUs that is known.
    gfx: Option<u32>,
    /// The most GPUs that are parts of one device.
    parts: u64,
    /// The node that stands for the `NVSwitches` of a host, or of all hosts where no address tells whose they are.
    switches: BTreeMap<Option<usize>, NodeId>,
    /// The numbers of `NVLinks` or xGMI links that each GPU lists, by rank.
    pub(super) counts: Vec<u64>,
}

impl Cables {
    pub(super) fn has_switch(&self) -> bool {
        !self.switches.is_empty()
    }

    /// Returns what decides on the memory of the GPUs.
    pub(super) fn gpus(&self) -> Gpus {
        let model = self.sm.map_or(GpuModel::Amd(self.gfx), GpuModel::Cuda);
        Gpus { model, parts: self.parts as u32 }
    }
}

impl GraphReader<'_> {
    /// Adds the links of the GPUs: to each other, to CPUs, and to switches, which are one node together.
    pub(super) fn cables(&mut self) -> Result<Cables, Problem> {
        let gpus = std::mem::take(&mut self.gpus);
        let mut found = Cables { counts: vec![0; gpus.len()], ..Cables::default() };
        for gpu in &gpus {
            let gcn = gpu.element.get("gcn");
            let sm = self.file.number(gpu.element, "sm", 0..=100_000)?;
            found.parts = found.parts.max(gpu.parts);
            if let Some(model) = gcn.and_then(gfx) {
                found.gfx = Some(found.gfx.map_or(model, |lowest| lowest.min(model)));
            }
            let amd = gcn.is_some() || gpu.element.all("xgmi").next().is_some();
            if !amd {
                let sm = sm.ok_or_else(|| self.file.lacks(gpu.element, "sm"))? as u32;
                found.sm = Some(found.sm.map_or(sm, |lowest| lowest.min(sm)));
            }
            for cable in gpu.element.children.iter().filter(|child| child.is_cable()) {
                if places::bus(self.file.text(cable, "target")?) == gpu.bus {
                    continue;
                }
                let count = self.file.number(cable, "count", 0..=NVLINKS)?;
                let count = count.ok_or_else(|| self.file.lacks(cable, "count"))? as u64;
                if count == 0 {
                    continue;
                }
                found.counts[gpu.node.index()] += count;
                let speed = if !amd {
                    speeds::nvlink(sm.unwrap_or_default())
                } else if let Some(known) = gcn.and_then(speeds::xgmi) {
                    known
                } else {
                    self.guessed.xgmi += 1;
                    speeds::XGMI
                };
                // The links of a device are those of all its parts together.
                self.lay(gpu, cable, speed * count / gpu.parts, &mut found)?;
            }
            self.chip_to_chip(gpu)?;
        }
        Ok(found)
    }

    /// Adds one entry of links of a GPU.
    fn lay(
        &mut self,
        gpu: &GraphGpu,
        cable: &Element,
        capacity: u64,
        found: &mut Cables,
    ) -> Result<(), Problem> {
        match cable.get("tclass") {
            Some(class) if class.starts_with("0x068001") => {
                self.cable(gpu.node, gpu.cpu, LinkKind::NvLink, capacity);
            }
            Some(class) if class.starts_with("0x0680") => {
                let hidden = cable.get("target").is_none_or(|to| to.starts_with(['f', 'F']));
                let host = (self.hosts.len() > 1 && !hidden).then_some(gpu.host);
                let node = match (found.switches.get(&host), host) {
                    (Some(node), _) => *node,
                    (None, None) => {
                        self.node(cable, "NVSwitch".into(), NodeKind::NvSwitch, None)?
                    }
                    (None, Some(host)) => {
                        let name = self.named("NVSwitch".to_owned(), host);
                        self.node(cable, name, NodeKind::NvSwitch, None)?
                    }
                };
                found.switches.insert(host, node);
                self.cable(gpu.node, node, LinkKind::NvLink, capacity);
            }
            _ => {
                let ends = self.target(cable, gpu.host)?;
                let share = capacity / ends.len().max(1) as u64;
                for to in ends {
                    self.link(gpu.node, to, LinkKind::NvLink, share, 0);
                }
            }
        }
        Ok(())
    }

    /// Adds the links of a GPU to its CPU. Parts of one device name one link, which they share.
    fn chip_to_chip(&mut self, gpu: &GraphGpu) -> Result<(), Problem> {
        let file = self.file;
        let mut capacity = 0;
        for c2c in gpu.element.all("c2c") {
            let need = |name| {
                file.number(c2c, name, 0..=speeds::MEGA)?.ok_or_else(|| file.lacks(c2c, name))
            };
            let (each, count) = (need("bw")?, need("count")?);
            if each.saturating_mul(count) > speeds::MEGA {
                return Err(file.wrong(c2c, "a <c2c> of more than 1000 TB/s"));
            }
            capacity += (each * count) as u64 * 1_000_000;
        }
        if capacity == 0 {
            return Ok(());
        }
        if gpu.device == gpu.node {
            self.cable(gpu.node, gpu.cpu, LinkKind::C2c, capacity);
            return Ok(());
        }
        self.cable(gpu.node, gpu.device, LinkKind::C2c, speeds::LOCAL);
        for ends in [(gpu.device, gpu.cpu), (gpu.cpu, gpu.device)] {
            self.links.insert((ends.0, ends.1, LinkKind::C2c), (capacity, 0));
        }
        Ok(())
    }
}
