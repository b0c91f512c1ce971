//! A harness from its text: TOML, or JSON of the same tables.

mod buffer;
mod call;
mod candidate;
mod module;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::near::nearest;
use roundelay_core::dtype::{DType, ReduceOp};

use crate::assumption::{Assumption, MachineAssumption};
use crate::harness::{Expect, ExpectedValues, Harness, Order, Runs, Special};
use crate::node::{Field, Mistake, Node, NodeValue, get};

/// The most ranks of a run.
const MOST_RANKS: i64 = 64;
/// The words of a stated verdict beside `relies(...)`.
const VERDICTS: [&str; 16] = [
    "clean",
    "race",
    "scope",
    "constant",
    "hang",
    "wrong",
    "misaligned",
    "bounds",
    "multicast",
    "uninitialised",
    "lanes",
    "barrier",
    "trap",
    "dirty-pad",
    "unsupported",
    "limit",
];

impl Harness {
    /// Reads the cases of a harness from TOML; one without a name where the text has no `[case.NAME]`.
    ///
    /// # Errors
    /// The first mistake, at its place in the text.
    pub fn from_toml(text: &str) -> Result<Vec<Self>, Mistake> {
        cases(Node::of_toml(text)?)
    }

    /// Reads the cases of a harness from JSON of the same tables.
    ///
    /// # Errors
    /// The first mistake; a mistake of a value has no place.
    pub fn from_json(text: &str) -> Result<Vec<Self>, Mistake> {
        cases(Node::of_json(text)?)
    }
}

const KEYS: [&str; 10] =
    ["title", "source", "module", "memory", "call", "stream", "expect", "run", "assume", "verdict"];

fn cases(mut root: Node) -> Result<Vec<Harness>, Mistake> {
    let mut all = Vec::new();
    if let NodeValue::Table(fields) = &mut root.value
        && let Some(at) = fields.iter().position(|field| field.key == "case")
    {
        let cases = fields.remove(at).node;
        for Field { key, node, .. } in cases.any_table()? {
            let keys: Vec<&str> = KEYS.iter().copied().chain(["define"]).collect();
            let own = node.table(&keys)?;
            let mut whole = root.clone();
            let defines = get(own, "define").map(Node::texts).transpose()?.unwrap_or_default();
            let mut over = node.clone();
            if let NodeValue::Table(fields) = &mut over.value {
                fields.retain(|field| field.key != "define");
            }
            let range = whole.range.clone();
            whole.overlay(over);
            whole.range = range;
            let mut harness = of_root(&whole)?;
            harness.case = Some(key.clone());
            for module in &mut harness.modules {
                module.defines.extend(defines.iter().cloned());
            }
            all.push(harness);
        }
    }
    if all.is_empty() {
        all.push(of_root(&root)?);
    }
    Ok(all)
}

fn of_root(root: &Node) -> Result<Harness, Mistake> {
    let fields = root.table(&KEYS)?;
    let mut harness = Harness::default();
    kernels(root, fields, &mut harness)?;
    for node in get(fields, "expect").map_or(&[][..], Node::list) {
        let expect = expect(node, &harness)?;
        harness.expect.push(expect);
    }
    for node in get(fields, "verdict").map_or(&[][..], Node::list) {
        let text = node.text()?;
        if !(text.starts_with("relies(") && text.ends_with(')') || VERDICTS.contains(&&*text)) {
            let wrong = node.wrong(format!("`{text}` is no verdict"));
            let words = VERDICTS.join(", ");
            return Err(wrong.help(format!("verdicts are {words}, and relies(NAME, NAME)")));
        }
        harness.verdict.push(text);
    }
    Ok(harness)
}

/// Reads the kernels of a harness: its modules, its memory beside what it has, and the steps of a call.
fn kernels(root: &Node, fields: &[Field], harness: &mut Harness) -> Result<(), Mistake> {
    let text = |key| get(fields, key).map(Node::text).transpose();
    harness.title = text("title")?.unwrap_or_default();
    harness.source = text("source")?.unwrap_or_default();
    let each = |key: &str| -> Result<&[Field], Mistake> {
        get(fields, key).map_or(Ok(&[]), |node| node.any_table())
    };
    for field in each("module")? {
        harness.modules.push(module::module(field)?);
    }
    for field in each("memory")? {
        harness.memory.push(buffer::read(field)?);
    }
    if let Some(run) = get(fields, "run") {
        harness.run = runs(run)?;
    }
    for node in get(fields, "call").map_or(&[][..], Node::list) {
        call::steps(node, harness)?;
    }
    if harness.calls.is_empty() {
        let wrong = Mistake::new(0..0, "the harness has no [[call]]");
        return Err(wrong
            .help("add `[[call]]` with `kernel = \"MODULE.KERNEL\"`, `grid`, `block` and `args`"));
    }
    for Field { key, node, .. } in each("stream")? {
        for name in node.list() {
            known("step", name, harness.calls.iter().map(|step| step.name.as_str()))?;
        }
        harness.streams.push((key.clone(), node.texts()?));
    }
    for field in &harness.memory {
        for (named, _) in field.pointers.iter().flat_map(|table| &table.of) {
            if harness.buffer(named).is_none() {
                return Err(
                    root.wrong(format!("`{}` points at `{named}`, which is no memory", field.name))
                );
            }
        }
        for named in field.pointers.iter().flat_map(|table| &table.of_all) {
            if !harness.memory.iter().any(|buffer| buffer.name == *named && buffer.multicast) {
                let title = format!(
                    "`{}` points at `{named}` of all ranks, which has no `multicast = true`",
                    field.name
                );
                return Err(root.wrong(title));
            }
        }
    }
    if let Some(node) = get(fields, "assume") {
        assume(node, harness)?;
    }
    Ok(())
}

/// Refuses a text that is none of the names.
fn known<'a>(
    what: &str,
    node: &Node,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<String, Mistake> {
    let text = node.text()?;
    if names.clone().any(|name| name == text) {
        return Ok(text);
    }
    let wrong = node.wrong(format!("there is no {what} `{text}`"));
    Err(match nearest(&text, names) {
        Some(meant) => wrong.help(format!("did you mean `{meant}`?")),
        None => wrong,
    })
}

fn buffer_name(node: &Node, harness: &Harness) -> Result<String, Mistake> {
    known("memory", node, harness.memory.iter().map(|buffer| buffer.name.as_str()))
}

const ORDERS: [(&str, Order); 3] =
    [("rank", Order::Rank), ("own-first", Order::OwnFirst), ("any", Order::Any)];

/// Reads a collective of elements of a type, such as `AllReduce sum`.
fn collective_of(node: &Node, dtype: DType) -> Result<(Collective, ReduceOp), Mistake> {
    let text = node.text()?;
    let (name, op) = text.split_once(' ').unwrap_or((&text, "sum"));
    let (Some(found), Some(op)) = (Collective::from_name(name), ReduceOp::from_name(op.trim()))
    else {
        let all = Collective::ALL.map(Collective::name).join(", ");
        let wrong = node.wrong(format!("`{text}` is no collective"));
        return Err(
            wrong.help(format!("collectives are {all}; behind one stands an op, such as sum"))
        );
    };
    op.check(dtype).map_err(|why| node.wrong(why.to_string()))?;
    Ok((found, op))
}

/// Reads an element type.
fn element_type(node: &Node) -> Result<DType, Mistake> {
    let all: Vec<_> = DType::ALL.iter().map(|dtype| (dtype.name(), *dtype)).collect();
    node.word(&all)
}

fn expect(node: &Node, harness: &Harness) -> Result<Expect, Mistake> {
    let fields = node.table(&[
        "collective",
        "input",
        "buffer",
        "order",
        "acc",
        "ulp",
        "same_bits",
        "root",
        "count",
        "values",
        "ranks",
    ])?;
    let named = |key: &str, usual: &str| match get(fields, key) {
        Some(node) => buffer_name(node, harness),
        None if harness.buffer(usual).is_some() => Ok(usual.to_owned()),
        None => Err(node.wrong(format!("`{key}` is missing"))),
    };
    let number = |key: &str| get(fields, key).map(Node::expression).transpose();
    let buffer = named("buffer", "output")?;
    let values = match (get(fields, "collective"), get(fields, "values")) {
        (Some(collective), None) => {
            let input = named("input", "input")?;
            let dtype = harness.memory[harness.buffer(&input).unwrap_or(0)].dtype;
            let (found, op) = collective_of(collective, dtype)?;
            let order = get(fields, "order").map(|node| node.word(&ORDERS)).transpose()?;
            let wide = get(fields, "acc").map(|node| node.word(&[("f32", true), ("same", false)]));
            ExpectedValues::Collective {
                collective: found,
                op,
                input,
                root: number("root")?.unwrap_or(0.into()),
                count: number("count")?,
                order: order.unwrap_or(Order::Rank),
                wide: wide.transpose()?.unwrap_or(true),
            }
        }
        (None, Some(values)) => ExpectedValues::Each(values.expression()?),
        _ => {
            return Err(node
                .wrong("the expected values are not clear")
                .help("give `collective`, such as \"AllReduce sum\", or `values`, an expression"));
        }
    };
    Ok(Expect {
        buffer,
        values,
        ulp: get(fields, "ulp").map(|node| node.whole(0, 1 << 20)).transpose()?,
        same_bits: get(fields, "same_bits").map(Node::flag).transpose()?.unwrap_or(false),
        ranks: get(fields, "ranks").map(Node::expressions).transpose()?.unwrap_or_default(),
    })
}

fn runs(node: &Node) -> Result<Runs, Mistake> {
    let fields = node.table(&[
        "calls",
        "graph",
        "ranks",
        "elements",
        "seeds",
        "late",
        "absent",
        "special",
        "resident_blocks",
    ])?;
    let mut runs = Runs::default();
    let wholes = |node: &Node| -> Result<Vec<i64>, Mistake> {
        node.list().iter().map(|node| node.whole(0, 1 << 32)).collect()
    };
    for Field { key, node, .. } in fields {
        match key.as_str() {
            "calls" => runs.calls = node.whole(1, 1000)?,
            "graph" => runs.graph = node.flag()?,
            "seeds" => runs.seeds = node.whole(1, 1 << 40)?,
            "ranks" => {
                let all = node.list().iter().map(|node| node.whole(1, MOST_RANKS));
                runs.ranks = all.collect::<Result<_, _>>()?;
            }
            "elements" => {
                runs.elements = match &node.value {
                    NodeValue::Table(_) => {
                        let cycle = get(node.table(&["cycle"])?, "cycle");
                        let cycle = cycle.ok_or_else(|| node.wrong("`cycle` is missing"))?;
                        vec![wholes(cycle)?]
                    }
                    _ => wholes(node)?.into_iter().map(|one| vec![one]).collect(),
                };
            }
            "resident_blocks" => runs.resident_blocks = Some(node.whole(1, 1 << 16)?),
            "late" => runs.late = node.expressions()?,
            "absent" => runs.absent = node.expressions()?,
            "special" => {
                for node in node.list() {
                    let text = node.text()?;
                    let number = || text.parse().map(Special::Number);
                    runs.special.push(match text.as_str() {
                        "sentinel" => Special::Sentinel,
                        _ => number().map_err(|_| {
                            node.wrong(format!("`{text}` is no number"))
                                .help("take a number, -0.0, nan, inf or sentinel")
                        })?,
                    });
                }
            }
            _ => {}
        }
        let empty = [
            runs.ranks.is_empty(),
            runs.elements.iter().any(Vec::is_empty),
            runs.elements.is_empty(),
        ];
        if empty.contains(&true) {
            return Err(node.wrong("at least one number is expected here"));
        }
    }
    Ok(runs)
}

fn assume(node: &Node, harness: &mut Harness) -> Result<(), Mistake> {
    const WEAK: &str = "weak-as-relaxed";
    let known: Vec<_> = Assumption::all().map(|one| (one.to_string(), one)).collect();
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).chain([WEAK]).collect();
    for Field { key, node, .. } in node.table(&names)? {
        if key != WEAK {
            let found = known.iter().find(|(name, _)| name == key);
            harness
                .assume
                .extend(found.map(|(_, one)| Ok((one.clone(), node.text()?))).transpose()?);
            continue;
        }
        let (buffers, why) = match node.value {
            NodeValue::Table(_) => {
                let fields = node.table(&["why", "buffers"])?;
                (get(fields, "buffers"), get(fields, "why"))
            }
            _ => (None, None),
        };
        let (Some(buffers), Some(why)) = (buffers, why) else {
            let wrong = node.wrong("the buffers of `weak-as-relaxed` are missing, or its reason");
            return Err(
                wrong.help("write `weak-as-relaxed = { buffers = [\"NAME\"], why = \"…\" }`")
            );
        };
        for node in buffers.list() {
            let name = buffer_name(node, harness)?;
            let one = Assumption::Machine(MachineAssumption::WeakAsRelaxed(name));
            harness.assume.insert(one, why.text()?);
        }
    }
    Ok(())
}
