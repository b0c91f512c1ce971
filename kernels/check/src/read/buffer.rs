//! The buffers of each rank.

use roundelay_core::dtype::DType;

use super::{ORDERS, element_type};
use crate::expression::Expression;
use crate::harness::{Buffer, Fill, Order, PointerTable};
use crate::node::{Field, Mistake, Node, NodeValue, get};

/// Reads a buffer of `[memory]`.
pub(super) fn read(Field { key, node, .. }: &Field) -> Result<Buffer, Mistake> {
    let fields = node.table(&[
        "type",
        "len",
        "bytes",
        "align",
        "peers",
        "multicast",
        "fill",
        "init",
        "role",
        "after",
        "pointers",
        "order",
        "by",
        "of_all",
    ])?;
    let mut dtype = DType::U8;
    if let Some(ty) = get(fields, "type") {
        dtype = element_type(ty)?;
    }
    let (len, bytes) = (get(fields, "len"), get(fields, "bytes"));
    let pointers = get(fields, "pointers");
    let len = match (len, bytes, pointers) {
        (Some(len), None, None) if get(fields, "type").is_some() => len.expression()?,
        (None, Some(bytes), None) => bytes.expression()?,
        (None, None, Some(_)) => 0.into(),
        _ => {
            let wrong = node.wrong(format!("the size of `{key}` is not clear"));
            return Err(wrong.help("give `type` and `len`, or `bytes`, or `pointers`"));
        }
    };
    let mut buffer = Buffer::new(key, dtype, len);
    if bytes.is_some() {
        buffer.align = 16;
    }
    let mut filled = false;
    for Field { key, at, node } in fields {
        match key.as_str() {
            "align" => {
                buffer.align = node.whole(1, 1 << 20)?;
                if !buffer.align.is_power_of_two() {
                    return Err(node.wrong("an alignment is a power of two"));
                }
            }
            "peers" => buffer.peers = node.flag()?,
            "multicast" => buffer.multicast = node.flag()?,
            "fill" | "init" if std::mem::replace(&mut filled, true) => {
                return Err(Mistake::new(
                    at.clone(),
                    "`fill` and `init` are one thing: leave one out",
                ));
            }
            "fill" | "init" => buffer.fill = fill(node)?,
            "role" => buffer.is_sentinel = node.word(&[("sentinel", true), ("data", false)])?,
            "after" => buffer.zero_after = node.word(&[("zero", true), ("any", false)])?,
            "pointers" => {
                let order = get(fields, "order").map(|node| node.word(&ORDERS[..2])).transpose()?;
                let by = get(fields, "by")
                    .map(|node| node.word(&[("rank", true), ("buffer", false)]))
                    .transpose()?;
                buffer.pointers = Some(PointerTable {
                    of: node.list().iter().map(pointer).collect::<Result<_, _>>()?,
                    order: order.unwrap_or(Order::Rank),
                    by_rank: by.unwrap_or(false),
                    of_all: get(fields, "of_all").map_or(Ok(Vec::new()), Node::texts)?,
                });
                buffer.align = 8;
            }
            _ => {}
        }
    }
    if buffer.is_sentinel && !matches!(buffer.fill, Fill::Word(_) | Fill::Zero) {
        let wrong = node.wrong(format!("the sentinel of `{key}` is not known"));
        return Err(wrong.help("add `init = { word = 0x80000000 }`, or the word that it is"));
    }
    Ok(buffer)
}

/// Reads a buffer of a table of addresses, perhaps with an offset.
fn pointer(node: &Node) -> Result<(String, Expression), Mistake> {
    if let NodeValue::Text(name) = &node.value {
        return Ok((name.clone(), 0.into()));
    }
    let fields = node.table(&["ptr", "offset"])?;
    let name = get(fields, "ptr").ok_or_else(|| node.wrong("`ptr` is missing"))?.text()?;
    let offset = get(fields, "offset").map(Node::expression).transpose()?;
    Ok((name, offset.unwrap_or(0.into())))
}

fn fill(node: &Node) -> Result<Fill, Mistake> {
    if let NodeValue::Text(_) = node.value {
        return node.word(&[("zero", 0), ("poison", 1), ("random", 2)]).map(|word| match word {
            0 => Fill::Zero,
            1 => Fill::Poison,
            _ => Fill::Random,
        });
    }
    let fields = node.table(&["word", "value", "values"])?;
    match fields {
        [Field { key, node: word, .. }] if key == "word" => {
            Ok(Fill::Word(word.whole::<i64>(i32::MIN.into(), u32::MAX.into())? as u32))
        }
        [Field { key, node: value, .. }] if key == "value" => Ok(Fill::Each(value.expression()?)),
        [Field { node: values, .. }] => {
            let values = values.list().iter().map(|value| value.whole(i64::MIN, i64::MAX));
            Ok(Fill::Values(values.collect::<Result<_, _>>()?))
        }
        _ => Err(node.wrong("one of `word`, `value` and `values` is expected here")),
    }
}
