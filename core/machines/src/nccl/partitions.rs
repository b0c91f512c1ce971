//! Cards in partitions (CPX, DPX): HIP numbers the parts of one card of AMD's as functions of its PCI device, which are
//! no devices of their own. RCCL hangs them below function 0, where they share the links of the card.

use std::collections::BTreeMap;

use roundelay_topology::nccl::element::{Element, integer};
use roundelay_topology::nccl::places;

/// A card: its host, and its bus id without the function.
type Card = (String, String);

/// The functions of each card of which several are GPUs, in ascending order.
type Cards = BTreeMap<Card, Vec<u32>>;

/// Moves the GPUs of all functions of a card into one device, and returns a note where there was such a card.
pub(super) fn join(root: &mut Element) -> Option<String> {
    let mut cards = Cards::new();
    for cpu in &root.children {
        find(cpu, &places::host(cpu), &mut cards);
    }
    for functions in cards.values_mut() {
        functions.sort_unstable();
    }
    // A function that is given twice is left to the error about it.
    cards.retain(|_, functions| functions.len() > 1 && functions.windows(2).all(|f| f[0] != f[1]));
    let parts: usize = cards.values().map(Vec::len).sum();
    if parts == 0 {
        return None;
    }
    let mut moved = BTreeMap::new();
    for cpu in &mut root.children {
        let host = places::host(cpu);
        take(cpu, &host, &cards, &mut moved);
    }
    for cpu in &mut root.children {
        let host = places::host(cpu);
        put(cpu, &host, &cards, &mut moved);
    }
    let cards = match cards.len() {
        1 => "one card".to_owned(),
        many => format!("{many} cards"),
    };
    Some(format!(
        "{parts} GPUs are partitions of {cards}: the PCI functions of a card share its links, as for RCCL"
    ))
}

/// Returns the card and the function of a device that holds GPUs of AMD's alone.
fn card(device: &Element, host: &str) -> Option<(Card, u32)> {
    let amd = |gpu: &Element| gpu.get("gcn").is_some() || gpu.all("xgmi").next().is_some();
    let alone = !device.children.is_empty() && device.children.iter().all(|e| e.tag == "gpu");
    if device.tag != "pci" || !alone || !device.children.iter().all(amd) {
        return None;
    }
    let (device, function) = places::function(device.get("busid")?)?;
    Some(((host.to_owned(), device), function))
}

fn find(element: &Element, host: &str, cards: &mut Cards) {
    match card(element, host) {
        Some((card, function)) => cards.entry(card).or_default().push(function),
        None => element.children.iter().for_each(|child| find(child, host, cards)),
    }
}

/// Takes the devices of the higher functions out of the tree, and keeps their GPUs.
fn take(
    element: &mut Element,
    host: &str,
    cards: &Cards,
    moved: &mut BTreeMap<Card, Vec<(u32, Element)>>,
) {
    let mut kept = Vec::new();
    for mut child in std::mem::take(&mut element.children) {
        let found = card(&child, host);
        let higher = found.filter(|(card, function)| {
            cards.get(card).is_some_and(|functions| functions[0] != *function)
        });
        if let Some((card, function)) = higher {
            let gpus = child.children.into_iter().map(|gpu| (function, gpu));
            moved.entry(card).or_default().extend(gpus);
        } else {
            take(&mut child, host, cards, moved);
            kept.push(child);
        }
    }
    element.children = kept;
}

/// Puts the GPUs into the device of the lowest function, which becomes function 0, and turns the links of all GPUs.
fn put(
    element: &mut Element,
    host: &str,
    cards: &Cards,
    moved: &mut BTreeMap<Card, Vec<(u32, Element)>>,
) {
    if let Some((card, _)) = card(element, host)
        && let Some(mut parts) = moved.remove(&card)
    {
        parts.sort_by_key(|(function, _)| *function);
        element.children.extend(parts.into_iter().map(|(_, gpu)| gpu));
        let busid = element.get("busid").and_then(|id| id.rsplit_once('.')).map(|(id, _)| id);
        let first = format!("{}.0", busid.unwrap_or_default());
        element.set("busid", first);
    }
    if element.tag == "gpu" {
        turn(element, host, cards);
    }
    element.children.iter_mut().for_each(|child| put(child, host, cards, moved));
}

/// Makes the links of a GPU to functions of a card links to the card. They are one link where a GPU lists them to
/// several functions.
fn turn(gpu: &mut Element, host: &str, cards: &Cards) {
    let target = |cable: &Element| {
        let (device, function) = places::function(cable.get("target")?)?;
        let here = cards.contains_key(&(host.to_owned(), device.clone()));
        let known = here || cards.keys().any(|(_, other)| *other == device);
        known.then_some((device, function))
    };
    let count = |cable: &Element| cable.get("count").and_then(integer).unwrap_or(0);
    let mut counts: BTreeMap<String, BTreeMap<u32, i64>> = BTreeMap::new();
    for cable in gpu.children.iter().filter(|child| child.is_cable()) {
        if let Some((device, function)) = target(cable) {
            let sum = counts.entry(device).or_default().entry(function).or_default();
            *sum = sum.saturating_add(count(cable));
        }
    }
    // A count that is no number stays, for the error about it.
    gpu.children.retain_mut(|cable| {
        let Some((device, _)) = target(cable).filter(|_| cable.is_cable()) else { return true };
        if cable.get("count").and_then(integer).is_none_or(|count| count < 0) {
            return true;
        }
        let Some(functions) = counts.remove(&device) else { return false };
        let (id, _) = cable.get("target").and_then(|id| id.rsplit_once('.')).unwrap_or_default();
        let first = format!("{id}.0");
        cable.set("target", first);
        cable.set("count", functions.values().max().copied().unwrap_or(0).to_string());
        true
    });
}
