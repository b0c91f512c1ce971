//! The rank of each GPU, or of each core of a machine without GPUs: a file has the ranks of a whole job, of which its machine may hold a part.

use super::element::Element;
use super::places;
use crate::Problem;
use crate::file::File;

/// The most GPUs of a system.
pub(super) const GPUS: usize = 1024;

/// A GPU, with its host.
struct HostGpu<'a> {
    element: &'a Element,
    host: usize,
}

/// Returns the ranks of the job that the GPUs have, in ascending order: the GPU of the i-th is rank i of the
/// topology. A file without ranks gets some, by its device numbers or else by its order.
pub(super) fn number(file: File, root: &mut Element) -> Result<Vec<u32>, Problem> {
    let tag = tag(root);
    let mut gpus = Vec::new();
    let mut hosts = Vec::new();
    for child in &root.children {
        let host = places::host(child);
        let known = hosts.iter().position(|other| *other == host);
        let place = known.unwrap_or(hosts.len());
        if known.is_none() && child.tag == "cpu" {
            hosts.push(host);
        }
        find(child, tag, place, &mut gpus);
    }
    if gpus.len() > GPUS {
        let what = if tag == "core" { "cores" } else { "GPUs" };
        let title = format!("{} {what}; a system has at most {GPUS}", gpus.len());
        return Err(file.wrong(root, title));
    }
    let has = |name: &str| gpus.iter().any(|gpu| gpu.element.get(name).is_some());
    if has("rank") {
        let key = |gpu: &HostGpu| need(file, gpu.element, "rank");
        let ranks = sorted(file, &gpus, key, |gpu| format!("rank {}", shown(gpu, "rank")))?;
        return Ok(ranks.into_iter().map(|(rank, _)| rank).collect());
    }
    let order: Vec<usize> = if has("dev") {
        let key = |gpu: &HostGpu| {
            let part = file.number(gpu.element, "mlopart", 0..=i64::from(u32::MAX))?;
            Ok((gpu.host, need(file, gpu.element, "dev")?, part))
        };
        let order = sorted(file, &gpus, key, |gpu| format!("dev {}", shown(gpu, "dev")))?;
        order.into_iter().map(|(_, position)| position).collect()
    } else {
        (0..gpus.len()).collect()
    };
    let mut ranks = vec![0; order.len()];
    for (rank, position) in order.into_iter().enumerate() {
        ranks[position] = rank as u32;
    }
    write(root, tag, &mut ranks.iter());
    Ok((0..ranks.len() as u32).collect())
}

/// Returns the tag of the elements that are ranks: of GPUs, or of cores where there are no GPUs.
pub(super) fn tag(root: &Element) -> &'static str {
    let has = |tag| {
        let mut found = Vec::new();
        find(root, tag, 0, &mut found);
        !found.is_empty()
    };
    if has("core") && !has("gpu") { "core" } else { "gpu" }
}

/// Finds the elements of a tag, in order of the file.
fn find<'a>(element: &'a Element, tag: &str, host: usize, gpus: &mut Vec<HostGpu<'a>>) {
    if element.tag == tag {
        gpus.push(HostGpu { element, host });
    } else {
        element.children.iter().for_each(|child| find(child, tag, host, gpus));
    }
}

fn need(file: File, gpu: &Element, name: &str) -> Result<u32, Problem> {
    let number = file.number(gpu, name, 0..=i64::from(u32::MAX))?;
    Ok(number.ok_or_else(|| file.lacks(gpu, name))? as u32)
}

fn shown<'a>(gpu: &HostGpu<'a>, name: &str) -> &'a str {
    gpu.element.get(name).unwrap_or_default()
}

/// Returns the keys of the GPUs, which must differ, in ascending order, each with the GPU's position in the file.
fn sorted<K: Ord>(
    file: File,
    gpus: &[HostGpu],
    key: impl Fn(&HostGpu) -> Result<K, Problem>,
    what: impl Fn(&HostGpu) -> String,
) -> Result<Vec<(K, usize)>, Problem> {
    let keyed = gpus.iter().enumerate().map(|(i, gpu)| Ok((key(gpu)?, i)));
    let mut keys = keyed.collect::<Result<Vec<_>, Problem>>()?;
    keys.sort_unstable();
    match keys.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).min() {
        Some(again) => {
            let gpu = &gpus[again];
            Err(file.wrong(gpu.element, format!("two GPUs have {}", what(gpu))))
        }
        None => Ok(keys),
    }
}

/// Writes every GPU's rank into its element.
fn write(element: &mut Element, tag: &str, ranks: &mut std::slice::Iter<u32>) {
    for child in &mut element.children {
        if child.tag != tag {
            write(child, tag, ranks);
        } else if let Some(rank) = ranks.next() {
            child.set("rank", rank.to_string());
        }
    }
}
