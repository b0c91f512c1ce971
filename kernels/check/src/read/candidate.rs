//! A candidate of the judge from its manifest, which has the tables of a harness that tell of kernels.

use std::path::{Component, Path};

use super::{VERDICTS, collective_of, element_type, kernels};
use crate::expression::Expression;
use crate::harness::{Buffer, Harness, StepWork};
use crate::judge::{Candidate, Claims, FAMILIES, WHOLE};
use crate::node::{Field, Mistake, Node, get};

impl Candidate {
    /// Reads a manifest in TOML.
    ///
    /// # Errors
    /// The first mistake, at its place in the text.
    pub fn from_toml(text: &str) -> Result<Self, Mistake> {
        let root = Node::of_toml(text)?;
        let fields = root.table(&[
            "title",
            "source",
            "collective",
            "type",
            "claims",
            "module",
            "memory",
            "call",
            "assume",
            "verdict",
        ])?;
        let needed = |key: &str, help: &str| {
            let lacks = || Mistake::new(0..0, format!("the manifest has no `{key}`")).help(help);
            get(fields, key).ok_or_else(lacks)
        };
        let dtype =
            element_type(needed("type", "add `type = \"f32\"`, the type of the elements")?)?;
        let collective = needed("collective", "add `collective = \"AllReduce sum\"`")?;
        let (collective, op) = collective_of(collective, dtype)?;
        for Field { node, .. } in get(fields, "module").map_or(Ok(&[][..]), Node::any_table)? {
            own_text(node)?;
        }
        for field in get(fields, "memory").map_or(Ok(&[][..]), Node::any_table)? {
            if ["input", "output", WHOLE].contains(&field.key.as_str()) {
                let title = format!("`{}` is memory that the judge gives", field.key);
                return Err(Mistake::new(field.at.clone(), title).help("take another name"));
            }
        }
        let buffer = |name: &str| Buffer::new(name, dtype, Expression::from(0));
        let memory = vec![buffer("input"), buffer("output")];
        let mut harness = Harness { memory, ..Harness::default() };
        kernels(&root, fields, &mut harness)?;
        for node in get(fields, "call").map_or(&[][..], Node::list) {
            if let Some(write) = get(node.any_table()?, "write") {
                return Err(write.wrong("the judge alone writes inputs"));
            }
        }
        let changed = harness.calls.iter().find(|step| match &step.work {
            StepWork::Set { to, .. } | StepWork::Copy { to, .. } => to.buffer == "input",
            _ => false,
        });
        if let Some(step) = changed {
            let call = needed("call", "")?;
            return Err(call.wrong(format!("`{}` overwrites the input", step.name)));
        }
        for node in get(fields, "verdict").map_or(&[][..], Node::list) {
            let text = node.text()?;
            let is_known = text.split_once(": ").is_some_and(|(family, kind)| {
                FAMILIES.iter().any(|(known, _)| *known == family)
                    && VERDICTS.iter().chain(&["refused", "unclaimed"]).any(|known| *known == kind)
            });
            let relies = text.starts_with("relies(") && text.ends_with(')');
            if !(is_known || relies || text == "clean") {
                let wrong = node.wrong(format!("`{text}` is no verdict of a candidate"));
                return Err(wrong.help("write \"clean\", \"relies(NAME)\" or \"FAMILY: KIND\""));
            }
            harness.verdict.push(text);
        }
        let claims = get(fields, "claims").map(claims).transpose()?;
        Ok(Self { collective, op, dtype, claims: claims.unwrap_or_default(), harness })
    }
}

/// Refuses a module that reads files beside those of the candidate, or that runs a program.
fn own_text(module: &Node) -> Result<(), Mistake> {
    for Field { key, at, node } in module.any_table()? {
        match key.as_str() {
            "compiler" | "options" => {
                let wrong = Mistake::new(at.clone(), format!("a candidate has no say in `{key}`"));
                return Err(wrong.help("the judge's caller chooses the compiler, by --nvcc"));
            }
            "file" | "ptx" | "include" => {
                for node in node.list() {
                    let path = node.text()?;
                    let is_inner = |part| matches!(part, Component::Normal(_) | Component::CurDir);
                    if !Path::new(&path).components().all(is_inner) {
                        return Err(node.wrong("a candidate's files are in its folder"));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn claims(node: &Node) -> Result<Claims, Mistake> {
    let mut claims = Claims::default();
    for Field { key, node, .. } in node.table(&["ranks", "multiple", "align", "in_place"])? {
        match key.as_str() {
            "ranks" => {
                let all = node.list().iter().map(|node| node.whole(2, 64));
                claims.ranks = all.collect::<Result<_, _>>()?;
            }
            "multiple" => claims.multiple = node.whole(1, 1 << 20)?,
            "align" => claims.align = node.whole(1, 16)?,
            _ => claims.in_place = node.flag()?,
        }
    }
    Ok(claims)
}
