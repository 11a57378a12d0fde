//! Counts character classes beyond ASCII in a condition's regular expression (`[\w-]`, `\pL`), which bound its cost.
//!
//! They are what an expression costs to read: comparing without case adds the other case of each of their characters,
//! which takes milliseconds for a class like `[!-\u{10FFFF}]`, however little is compiled of it in the end.

use std::convert::Infallible;

use regex_syntax::ast::{Ast, ClassSetBinaryOp, ClassSetItem, Span, Visitor, parse::Parser, visit};

/// The classes in brackets, those inside others too, that hold an escape or a character beyond ASCII; their operators,
/// which make two classes of one; and the classes of Unicode (`\p{…}`). 0 for what is no expression.
pub(super) fn wide_classes(text: &str) -> usize {
    let Ok(ast) = Parser::new().parse(text) else {
        return 0;
    };
    let counted = visit(&ast, Count { text, found: 0 });
    counted.unwrap_or_else(|never| match never {})
}

struct Count<'t> {
    text: &'t str,
    found: usize,
}

impl Count<'_> {
    fn take(&mut self, span: &Span) {
        let class = &self.text[span.start.offset..span.end.offset];
        let is_wide = class.bytes().any(|byte| byte == b'\\' || !byte.is_ascii());
        self.found += usize::from(is_wide);
    }
}

impl Visitor for Count<'_> {
    type Output = usize;
    type Err = Infallible;

    fn finish(self) -> Result<usize, Infallible> {
        Ok(self.found)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        match ast {
            Ast::ClassBracketed(class) => self.take(&class.span),
            Ast::ClassUnicode(class) => self.take(&class.span),
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        match item {
            ClassSetItem::Bracketed(class) => self.take(&class.span),
            ClassSetItem::Unicode(class) => self.take(&class.span),
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_binary_op_pre(
        &mut self,
        operator: &ClassSetBinaryOp,
    ) -> Result<(), Infallible> {
        self.take(&operator.span);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_reaches_beyond_ascii_counts() {
        for (text, count) in [
            ("", 0),
            ("(", 0),
            (r"^IMG_[0-9]{4}\.(jpe?g|heic)$", 0),
            (r"\w+\d\s\[ä", 0),
            ("[[:alpha:]]", 0),
            (r"[\w.-]+", 1),
            ("[ä]", 1),
            ("[!-\u{10ffff}]", 1),
            ("(?x) [ ! - \u{10ffff} ]", 1),
            ("[]!-\u{10ffff}]", 1),
            (r"\pL\P{Greek}", 2),
            (r"[\pL]", 2),
            (r"[[[\w]]]", 3),
            (r"[\w&&\D--\s]", 3),
            (r"([a-z]|[\w]){3}", 1),
        ] {
            assert_eq!(wide_classes(text), count, "{text}");
        }
    }
}
