//! Executors: settings, size classes, and the algorithms they name. A class is checked as the algorithm that
//! runs it on the whole input and output, so its names and arguments obey the rules of any call.

use std::sync::Arc;

use super::dependencies::Known;
use super::executors::{Asset, Class, Declared, Executor};
use super::hir::{self, StmtKind, Ty};
use super::sizes::{bytes, limits, not_a_size, number};
use super::{Checker, Frontend, already_declared, scope, topology};
use crate::collective::Collective;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::{self, SettingValue};
use crate::syntax::printer;
use crate::topology::Topology;

/// The default bytes of a CCL buffer, as is the custom of the field.
const CCL_BUFFER: u64 = 200 << 20;

/// The settings beside [`Asset`]s.
const SETTINGS: [&str; 6] =
    ["topology", "nranks", "root", "ccl_buffer", "loop_bytes", "dma_reduce"];

/// Checks all parts of one executor.
pub(super) fn executor(
    executor: &ast::Executor,
    known: &Known<'_>,
    errors: &mut Vec<Diagnostic>,
) -> Option<Executor<hir::Algorithm>> {
    let before = errors.len();
    let collective = Checker::new(Frontend::File, known, errors).collective(&executor.collective);
    for attr in &executor.attrs {
        let title = format!("an executor has no attribute `{}`", attr.name.text);
        errors.push(
            Diagnostic::new(Code::UnknownAttribute, attr.span, title)
                .help("write it as a setting, or on the algorithm"),
        );
    }
    let mut settings = Settings { executor, known, errors };
    settings.known_and_once();
    let (on, shape) = settings.topology().unzip();
    let ccl_buffer = settings.size("ccl_buffer");
    let loop_bytes = settings.size("loop_bytes");
    let dma_reduce = settings.flag("dma_reduce");
    let root = settings.root(on.as_deref(), collective);
    let declared = settings.declared();
    let units = on.as_deref().zip(collective).map(|(on, of)| of.max_units(on.nranks()));
    let limits = limits(executor, units, errors);
    let parts = Parts { executor, topology: shape, root, collective: collective? };
    let mut classes = Vec::new();
    for (class, below) in executor.classes.iter().zip(limits) {
        let run = parts.run(class, known, errors);
        classes.extend(run.map(|run| Class { below, run, span: class.call.span }));
    }
    let (on, shape, collective) = (on?, shape?, collective?);
    (errors.len() == before).then(|| Executor {
        name: executor.name.text.clone(),
        name_span: executor.name.span,
        docs: executor.docs.clone(),
        public: executor.public,
        collective,
        topology: on,
        topology_span: shape.span,
        ccl_buffer: ccl_buffer.map_or(CCL_BUFFER, |(bytes, _)| bytes),
        ccl_buffer_span: ccl_buffer.map_or(executor.name.span, |(_, span)| span),
        loop_bytes,
        dma_reduce,
        declared,
        classes,
        source: printer::print_executor(executor),
    })
}

/// The settings of one executor.
struct Settings<'a, 'k, 'e> {
    executor: &'a ast::Executor,
    known: &'k Known<'k>,
    errors: &'e mut Vec<Diagnostic>,
}

impl<'a> Settings<'a, '_, '_> {
    fn known_and_once(&mut self) {
        let names = || SETTINGS.into_iter().chain(Asset::ALL.map(Asset::name));
        for (i, setting) in self.executor.settings.iter().enumerate() {
            let name = &setting.name;
            if !names().any(|known| known == name.text) {
                let title = format!("an executor has no setting `{}`", name.text);
                let mut error = Diagnostic::new(Code::BadSetting, name.span, title);
                error = match scope::nearest(&name.text, names()) {
                    Some(near) => error.suggest(near),
                    None => error
                        .note(format!("settings are {}", names().collect::<Vec<_>>().join(", "))),
                };
                self.errors.push(error.label("not a setting"));
            }
            let before = &self.executor.settings[..i];
            if let Some(first) = before.iter().find(|known| known.name.text == name.text) {
                self.errors.push(already_declared(name, first.name.span));
            }
        }
    }

    fn find(&self, name: &str) -> Option<&'a ast::Setting> {
        self.executor.settings.iter().find(|setting| setting.name.text == name)
    }

    /// Reports a setting whose value is of the wrong kind.
    fn wrong(&mut self, value: &SettingValue, name: &str, takes: &str) {
        let title = format!("`{name}` is {takes}");
        self.errors.push(Diagnostic::new(Code::BadSetting, value.span(), title));
    }

    /// Returns the topology as built, and as written.
    fn topology(&mut self) -> Option<(Arc<Topology>, &'a ast::Expr)> {
        let Some(setting) = self.find("topology") else {
            let title = format!("executor `{}` has no topology", self.executor.name.text);
            self.errors.push(
                Diagnostic::new(Code::BadSetting, self.executor.name.span, title).help(
                    "write `topology: full_mesh(8);`, with `without (a, b)` for each dead link",
                ),
            );
            return None;
        };
        let SettingValue::Expr(value) = &setting.value else {
            self.wrong(&setting.value, "topology", "a topology such as `full_mesh(8)`");
            return None;
        };
        let checked =
            Checker::new(Frontend::File, self.known, self.errors).expect(value, Ty::Topology);
        if checked.ty != Ty::Topology {
            return None;
        }
        let built = match topology::shape(&checked) {
            Some(shape) => shape.and_then(|shape| shape.build()),
            None => {
                let title = "an executor's topology is one machine, whose sizes are numbers";
                self.errors.push(
                    Diagnostic::new(Code::BadTopology, value.span, title)
                        .help("write its sizes as numbers: `full_mesh(8)`"),
                );
                return None;
            }
        };
        let built = match built {
            Ok(built) => built,
            Err(problem) => {
                self.errors.push(problem.into_diagnostic(value.span));
                return None;
            }
        };
        if let Some(setting) = self.find("nranks") {
            match number(&setting.value).map(u32::try_from) {
                Some(Ok(nranks)) if nranks == built.nranks() => {}
                Some(Ok(nranks)) if nranks > built.nranks() => {
                    if let Err(problem) = built.holds(nranks) {
                        let error =
                            problem.into_diagnostic(value.span).label("fewer ranks than needed");
                        self.errors.push(error.other(setting.span, "needs so many"));
                    }
                }
                Some(Ok(nranks)) => {
                    let (n, span) = (built.nranks(), setting.value.span());
                    let title =
                        format!("{nranks} ranks, on a topology of {n}: all of them take part");
                    let error = Diagnostic::new(Code::BadSetting, span, title);
                    self.errors.push(error.help(format!("write `nranks: {n}`, or leave it out")));
                }
                _ => self.wrong(&setting.value, "nranks", "a number of ranks"),
            }
        }
        Some((Arc::new(built.into()), value))
    }

    /// Returns a size that is not 0, and its place.
    fn size(&mut self, name: &str) -> Option<(u64, Span)> {
        let setting = self.find(name)?;
        let bytes = self.bytes(&setting.value)?;
        if bytes == 0 {
            self.wrong(&setting.value, name, "a size of at least 1 byte");
        }
        Some((bytes, setting.value.span()))
    }

    /// Returns a number of bytes: `200 MiB`, `200MiB`, `200MB`, or a bare number.
    fn bytes(&mut self, value: &SettingValue) -> Option<u64> {
        let bytes = bytes(value);
        if bytes.is_none() {
            self.errors.push(not_a_size(value));
        }
        bytes
    }

    fn flag(&mut self, name: &str) -> bool {
        let Some(setting) = self.find(name) else { return false };
        if let SettingValue::Expr(value) = &setting.value
            && let ast::ExprKind::Bool(value) = *value.kind
        {
            return value;
        }
        self.wrong(&setting.value, name, "`true` or `false`");
        false
    }

    fn root(&mut self, on: Option<&Topology>, collective: Option<Collective>) -> i64 {
        let Some(setting) = self.find("root") else { return 0 };
        if let Some(collective) = collective.filter(|collective| !collective.is_rooted()) {
            let title = format!("{collective} has no root");
            self.errors.push(
                Diagnostic::new(Code::BadSetting, setting.span, title).help("leave `root` out"),
            );
        }
        let root = number(&setting.value);
        let nranks = on.map_or(u32::MAX, |topology| topology.nranks());
        match root {
            Some(root) if root < u64::from(nranks) => root as i64,
            _ => {
                self.wrong(&setting.value, "root", &format!("a rank below {nranks}"));
                0
            }
        }
    }

    fn declared(&mut self) -> Vec<Declared> {
        let mut all = Vec::new();
        for what in Asset::ALL {
            let Some(setting) = self.find(what.name()) else { continue };
            let most = match what {
                Asset::Scratch => self.bytes(&setting.value),
                _ => {
                    let most = number(&setting.value);
                    if most.is_none() {
                        self.wrong(&setting.value, what.name(), "a number");
                    }
                    most
                }
            };
            all.extend(most.map(|most| Declared { what, most, span: setting.span }));
        }
        all
    }
}

/// The parts of an executor that all its classes share.
#[derive(Clone, Copy)]
struct Parts<'a> {
    executor: &'a ast::Executor,
    /// The topology; `None` where it is wrong: classes are checked without it.
    topology: Option<&'a ast::Expr>,
    root: i64,
    collective: Collective,
}

impl Parts<'_> {
    /// Returns the class as an algorithm: `algorithm NAME(topology: Topology = …) -> COLLECTIVE { CALL on (input,
    /// output); }`
    fn run(
        self,
        class: &ast::Class,
        known: &Known<'_>,
        errors: &mut Vec<Diagnostic>,
    ) -> Option<hir::Algorithm> {
        let span = class.call.span;
        let name = |text: &str| ast::Name { text: text.to_owned(), span };
        let value = |kind| ast::Expr { kind: Box::new(kind), span, depth: 1 };
        let ty = |text: &str| ast::TypeName { text: text.to_owned(), list: false, span };
        let mut call = class.call.clone();
        if let ast::ExprKind::Name(text) = &*call.kind {
            call.kind = Box::new(ast::ExprKind::Call(vec![name(text)], Vec::new()));
        }
        let mut params = vec![ast::Param {
            name: name("topology"),
            ty: ty("Topology"),
            default: self.topology.cloned(),
        }];
        if self.collective.is_rooted() {
            params.push(ast::Param {
                name: name("root"),
                ty: ty("Rank"),
                default: Some(value(ast::ExprKind::Int(self.root))),
            });
            if let ast::ExprKind::Call(_, args) = &mut *call.kind
                && !args.iter().any(is_root)
            {
                args.push(value(ast::ExprKind::Name("root".to_owned())));
            }
        }
        let on = ["input", "output"].map(|text| value(ast::ExprKind::Name(text.to_owned()))).into();
        let body = vec![ast::Stmt { kind: ast::StmtKind::Run { call, on }, span }];
        let algorithm = ast::Algorithm {
            docs: Vec::new(),
            attrs: Vec::new(),
            public: false,
            name: self.executor.name.clone(),
            params,
            collective: self.executor.collective.clone(),
            body,
            span,
        };
        let mut found = Vec::new();
        let mut checker = Checker::new(Frontend::File, known, &mut found);
        checker.in_executor = true;
        let run = checker.algorithm(&algorithm);
        for error in found {
            // All classes share one topology: its errors are reported once.
            if !errors.iter().any(|e| (e.code, e.primary) == (error.code, error.primary)) {
                errors.push(error);
            }
        }
        let [hir::Stmt { kind: StmtKind::Run(called), .. }] = &run.body[..] else { return None };
        let callee = &called.callee.algorithm;
        if callee.collective != self.collective {
            let title = format!(
                "{} is an algorithm for {}, and the executor is for {}",
                callee.name, callee.collective, self.collective
            );
            errors.push(
                Diagnostic::new(Code::WrongCollective, span, title)
                    .label("another collective")
                    .other(self.executor.collective.span, "what the executor is for"),
            );
            return None;
        }
        if callee.escapes {
            let title = format!("{} holds a `rust {{ }}` escape", callee.name);
            errors.push(
                Diagnostic::new(Code::EscapeInFile, span, title)
                    .note("an executor is laid out and proved when it is compiled"),
            );
            return None;
        }
        Some(run)
    }
}

fn is_root(arg: &ast::Expr) -> bool {
    match &*arg.kind {
        ast::ExprKind::Named(name, _) => name.text == "root",
        ast::ExprKind::Name(text) => text == "root",
        _ => false,
    }
}
