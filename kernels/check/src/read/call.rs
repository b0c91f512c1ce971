//! The steps of a call: kernels with their arguments, writes, fills and copies.

use super::{ORDERS, buffer_name};
use crate::harness::{Argument, Harness, KernelCall, Order, Place, Step, Work};
use crate::node::{Field, Mistake, Node, Value, get};

/// The deepest nesting of structs.
const DEEPEST: u32 = 8;
/// The most parts of an argument.
const MOST_PARTS: i64 = 1 << 12;

/// Reads one entry of `[[call]]`, which is a step, or a write for each of several buffers.
pub(super) fn steps(node: &Node, harness: &mut Harness) -> Result<(), Mistake> {
    let fields = node.table(&[
        "name", "kernel", "write", "memset", "memcpy", "grid", "block", "args", "shared", "pdl",
        "cluster", "after", "ranks", "when",
    ])?;
    let works = ["kernel", "write", "memset", "memcpy"];
    let given: Vec<&Field> =
        fields.iter().filter(|field| works.contains(&field.key.as_str())).collect();
    let [work] = given[..] else {
        let wrong = node.wrong("a call is one of a kernel, a write, a memset and a memcpy");
        return Err(wrong.help("write one of these keys"));
    };
    let for_kernels = ["grid", "block", "args", "shared", "pdl", "cluster"];
    if let Some(field) = fields
        .iter()
        .find(|field| work.key != "kernel" && for_kernels.contains(&field.key.as_str()))
    {
        return Err(Mistake::new(field.at.clone(), format!("`{}` is of kernels", field.key)));
    }
    let mut all = Vec::new();
    match work.key.as_str() {
        "kernel" => {
            let call = kernel(&work.node, fields, harness)?;
            all.push((call.kernel.clone(), Work::Kernel(Box::new(call))));
        }
        "write" => {
            for node in work.node.list() {
                let name = buffer_name(node, harness)?;
                all.push((format!("write {name}"), Work::Write(name)));
            }
        }
        _ => all.push((work.key.clone(), moved(&work.node, &work.key, harness)?)),
    }
    let name = get(fields, "name").map(Node::text).transpose()?;
    for (usual, work) in all {
        let step = Step {
            name: name.clone().unwrap_or(usual),
            work,
            after: get(fields, "after").map(Node::texts).transpose()?.unwrap_or_default(),
            ranks: get(fields, "ranks").map(Node::expressions).transpose()?.unwrap_or_default(),
            when: get(fields, "when").map(Node::expression).transpose()?,
        };
        if let Some(unknown) =
            step.after.iter().find(|name| !harness.calls.iter().any(|before| before.name == **name))
        {
            return Err(node.wrong(format!("no call before this one has the name `{unknown}`")));
        }
        harness.calls.push(step);
    }
    Ok(())
}

fn kernel(node: &Node, fields: &[Field], harness: &Harness) -> Result<KernelCall, Mistake> {
    let text = node.text()?;
    let Some((module, kernel)) = text.split_once('.') else {
        let wrong = node.wrong(format!("`{text}` names no module"));
        return Err(wrong.help("write `MODULE.KERNEL`"));
    };
    if !harness.modules.iter().any(|known| known.name == module) {
        let names: Vec<_> = harness.modules.iter().map(|module| module.name.as_str()).collect();
        let wrong = node.wrong(format!("there is no module `{module}`"));
        return Err(wrong.help(format!("modules are {}", names.join(", "))));
    }
    let shape = |key: &str| {
        let node = get(fields, key).ok_or_else(|| node.wrong(format!("`{key}` is missing")))?;
        match node.list().len() {
            1..=3 => node.expressions(),
            _ => Err(node.wrong("one to three numbers are expected here")),
        }
    };
    let mut args = Vec::new();
    for node in get(fields, "args").map_or(&[][..], Node::list) {
        args.push(argument(node, harness, 0)?);
    }
    let shared = get(fields, "shared").map(Node::expression).transpose()?;
    Ok(KernelCall {
        module: module.to_owned(),
        kernel: kernel.to_owned(),
        grid: shape("grid")?,
        block: shape("block")?,
        args,
        cluster: if get(fields, "cluster").is_some() { shape("cluster")? } else { Vec::new() },
        shared: shared.unwrap_or(0.into()),
        pdl: get(fields, "pdl").map(Node::flag).transpose()?.unwrap_or(false),
    })
}

fn moved(node: &Node, key: &str, harness: &Harness) -> Result<Work, Mistake> {
    let fields = if key == "memset" {
        node.table(&["to", "rank", "offset", "bytes", "value"])?
    } else {
        node.table(&["to", "rank", "offset", "bytes", "from", "from_rank", "from_offset"])?
    };
    let number = |key: &str| get(fields, key).map(Node::expression).transpose();
    let place = |buffer: &str, rank: &str, offset: &str| -> Result<Place, Mistake> {
        let node =
            get(fields, buffer).ok_or_else(|| node.wrong(format!("`{buffer}` is missing")))?;
        Ok(Place {
            buffer: buffer_name(node, harness)?,
            rank: number(rank)?,
            offset: number(offset)?.unwrap_or(0.into()),
        })
    };
    let (to, bytes) = (place("to", "rank", "offset")?, number("bytes")?);
    if key == "memset" {
        let byte = get(fields, "value").map(|node| node.whole(0, 255)).transpose()?.unwrap_or(0);
        return Ok(Work::Set { to, byte, bytes });
    }
    Ok(Work::Copy { to, from: place("from", "from_rank", "from_offset")?, bytes })
}

fn argument(node: &Node, harness: &Harness, depth: u32) -> Result<Argument, Mistake> {
    /// The keys that decide what an argument is.
    const KINDS: [&str; 17] = [
        "ptr",
        "ptrs",
        "i8",
        "u8",
        "i16",
        "u16",
        "i32",
        "u32",
        "i64",
        "u64",
        "f32",
        "f64",
        "struct",
        "array",
        "bytes",
        "null",
        "multicast",
    ];
    let all: Vec<&str> =
        KINDS.iter().copied().chain(["rank", "offset", "order", "pad_to", "align"]).collect();
    let fields = node.table(&all)?;
    let kinds: Vec<&Field> =
        fields.iter().filter(|field| KINDS.contains(&field.key.as_str())).collect();
    let [Field { key, node: value, .. }] = kinds[..] else {
        let wrong = node.wrong("an argument is one value");
        return Err(wrong.help(format!("write one of the keys {}", KINDS.join(", "))));
    };
    let number = |key: &str| get(fields, key).map(Node::expression).transpose();
    if depth > DEEPEST {
        return Err(node.wrong("the argument is nested too deep"));
    }
    let parts = |node: &Node| -> Result<Vec<Argument>, Mistake> {
        node.list().iter().map(|node| argument(node, harness, depth + 1)).collect()
    };
    Ok(match key.as_str() {
        "ptr" => Argument::Pointer(Place {
            buffer: buffer_name(value, harness)?,
            rank: number("rank")?,
            offset: number("offset")?.unwrap_or(0.into()),
        }),
        "ptrs" => {
            let order = get(fields, "order").map(|node| node.word(&ORDERS[..2])).transpose()?;
            let pad = get(fields, "pad_to").map(|node| node.whole(1, MOST_PARTS)).transpose()?;
            Argument::Pointers(buffer_name(value, harness)?, order.unwrap_or(Order::Rank), pad)
        }
        "struct" => {
            let align = get(fields, "align").map(|node| node.whole(1, 256)).transpose()?;
            Argument::Struct(parts(value)?, align)
        }
        "array" => Argument::Struct(parts(value)?, None),
        "bytes" => {
            let text = value.text()?;
            let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
            let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
            let bytes = bytes.filter(|_| digits.len().is_multiple_of(2));
            Argument::Bytes(
                bytes
                    .ok_or_else(|| value.wrong("pairs of hexadecimal digits are expected here"))?,
            )
        }
        "multicast" => {
            let name = buffer_name(value, harness)?;
            if !harness.memory.iter().any(|buffer| buffer.name == name && buffer.multicast) {
                return Err(value.wrong(format!("`{name}` has no `multicast = true`")));
            }
            Argument::Multicast(name)
        }
        "null" => Argument::Number(8, 0.into()),
        "f32" | "f64" => {
            let text = match &value.value {
                Value::Whole(number) => number.to_string(),
                Value::Text(text) | Value::Other(text) => text.clone(),
                _ => String::new(),
            };
            let number: f64 = text.parse().map_err(|_| value.wrong("a number is expected here"))?;
            if key == "f32" {
                Argument::Float(4, (number as f32).to_bits().into())
            } else {
                Argument::Float(8, number.to_bits())
            }
        }
        _ => {
            let bits: u32 = key[1..].parse().unwrap_or(32);
            Argument::Number(bits / 8, value.expression()?)
        }
    })
}
