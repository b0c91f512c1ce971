//! Executors: a line for each setting, then one for each size class.

use super::Printer;
use crate::source::Span;
use crate::syntax::ast::{Class, Executor, SettingValue, Size};

impl Printer<'_> {
    pub(super) fn executor(&mut self, e: &Executor, separate: bool) {
        let brace = self.brace_from(e.collective.span.hi);
        self.before(e.span.lo, brace + 1, separate);
        self.docs(&e.docs, &e.attrs);
        let public = if e.public { "pub " } else { "" };
        let head = format!("{public}executor {} for {} {{", e.name.text, e.collective.text);
        self.line_to(&head, brace + 1);
        self.indent += 1;
        self.opening = true;
        for setting in &e.settings {
            let text = format!("{}: {};", setting.name.text, self.setting(&setting.value));
            self.entry(&text, setting.span);
        }
        self.given = " = ";
        for class in &e.classes {
            let text = self.class(class);
            self.entry(&text, class.span);
        }
        self.given = ": ";
        self.comments_below(e.span.hi);
        self.indent -= 1;
        self.line_to("}", e.span.hi);
    }

    fn entry(&mut self, text: &str, Span { lo, hi }: Span) {
        self.before(lo, hi, false);
        self.line_to(text, hi);
    }

    fn setting(&self, value: &SettingValue) -> String {
        match value {
            SettingValue::Expr(value) => self.expr(value, 0),
            SettingValue::Size(Size { amount, unit, span }) => {
                let number = self.written(Span { hi: span.lo + 1, ..*span });
                let number = number.map_or_else(|| amount.to_string(), str::to_owned);
                format!("{number} {}", unit.text)
            }
            SettingValue::Amount(amount, span) => self.amount(*amount, *span),
        }
    }

    fn class(&self, class: &Class) -> String {
        let call = self.expr(&class.call, 0);
        match &class.when {
            Some((measure, op, below)) => {
                let below = self.setting(below);
                format!("when {} {} {below} => {call};", measure.text, op.text())
            }
            None => format!("otherwise => {call};"),
        }
    }
}
