//! Operators of conditions (`equals`, `contains`, `starts_with`, `matches`, `gt`, `is_empty` …) with all spellings and
//! symbols.

use super::Field;

words! {
    /// Kind of an operator's right side.
    pub enum Takes {
        Nothing = "nothing",
        /// Text, or a number where the field is one.
        Same = "same",
        Text = "text",
        Number = "number",
        Expression = "expression",
    }
}

struct Row {
    operator: Operator,
    name: &'static str,
    spellings: &'static [&'static str],
    symbols: &'static [&'static str],
    takes: Takes,
}

/// Makes of each line, `Variant = name, right side, [symbols], [other words]`, an operator and its row.
macro_rules! operators {
    ($($operator:ident = $name:literal, $takes:ident, $symbols:tt, $words:tt;)*) => {
        /// Comparison of a property.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operator {
            $($operator,)*
        }

        /// All operators, in the order of [`Operator`].
        const TABLE: &[Row] = &[$(Row {
            operator: Operator::$operator,
            name: $name,
            spellings: &$words,
            symbols: &$symbols,
            takes: Takes::$takes,
        },)*];
    };
}

operators! {
    Equals = "equals", Same, ["=", "==", "==="], ["equal", "eq", "equal_to", "is", "is_equal", "is_equal_to"];
    NotEquals = "not_equals", Same, ["!=", "!==", "<>", "≠"], [
        "not_equal", "ne", "neq", "not_equal_to", "is_not", "is_not_equal", "is_not_equal_to", "does_not_equal"
    ];
    Contains = "contains", Text, [], ["contain", "includes", "include", "has"];
    NotContains = "not_contains", Text, [], [
        "not_contain", "does_not_contain", "excludes", "not_includes", "does_not_include"
    ];
    StartsWith = "starts_with", Text, ["^="], ["start_with", "begins_with", "begin_with", "prefix"];
    NotStartsWith = "not_starts_with", Text, [], ["does_not_start_with", "not_begins_with", "does_not_begin_with"];
    EndsWith = "ends_with", Text, ["$="], ["end_with", "suffix"];
    NotEndsWith = "not_ends_with", Text, [], ["does_not_end_with"];
    Matches = "matches", Expression, ["~", "=~", "~="], [
        "match", "regex", "regexp", "regular_expression", "matches_regex", "match_regex", "matches_pattern"
    ];
    NotMatches = "not_matches", Expression, ["!~"], [
        "not_match", "does_not_match", "not_regex", "not_matches_regex", "does_not_match_regex"
    ];
    Gt = "gt", Number, [">"], [
        "greater_than", "greater", "is_greater_than", "more_than", "larger_than", "larger", "bigger_than", "above",
        "over"
    ];
    Lt = "lt", Number, ["<"], [
        "less_than", "less", "is_less_than", "fewer_than", "smaller_than", "smaller", "lower_than", "below", "under"
    ];
    Gte = "gte", Number, [">=", "=>", "≥"], [
        "ge", "greater_than_or_equal", "greater_than_or_equal_to", "greater_than_or_equals", "greater_or_equal",
        "greater_or_equal_to", "greater_than_equal", "greater_than_equals", "greater_than_inclusive",
        "is_greater_than_or_equal_to", "larger_equal", "larger_or_equal", "at_least"
    ];
    Lte = "lte", Number, ["<=", "=<", "≤"], [
        "le", "less_than_or_equal", "less_than_or_equal_to", "less_than_or_equals", "less_or_equal", "less_or_equal_to",
        "less_than_equal", "less_than_equals", "less_than_inclusive", "is_less_than_or_equal_to", "smaller_equal",
        "smaller_or_equal", "at_most"
    ];
    IsEmpty = "is_empty", Nothing, [], [
        "empty", "is_null", "null", "is_blank", "blank", "is_missing", "not_exists", "does_not_exist", "is_not_set"
    ];
    IsNotEmpty = "is_not_empty", Nothing, [], [
        "not_empty", "not_is_empty", "is_not_null", "not_null", "is_not_blank", "not_blank", "exists", "exist",
        "is_present", "is_set"
    ];
}

impl Operator {
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.operator)
    }

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Other names that definitions use: words without regard to case, hyphens, underscores and blanks, then symbols.
    pub fn spellings(self) -> impl Iterator<Item = &'static str> {
        self.words().iter().chain(self.symbols()).copied()
    }

    /// Other words for the operator.
    pub fn words(self) -> &'static [&'static str] {
        self.row().spellings
    }

    pub fn symbols(self) -> &'static [&'static str] {
        self.row().symbols
    }

    /// Returns whether a form should offer it for a field: comparisons by size for numbers, parts of text for text.
    pub fn suits(self, field: Field) -> bool {
        match self.takes() {
            Takes::Nothing | Takes::Same => true,
            Takes::Number => field.is_number(),
            Takes::Text | Takes::Expression => !field.is_number(),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let symbol = text.trim();
        let word = letters(text);
        let is_called = |row: &&Row| {
            row.symbols.contains(&symbol)
                || std::iter::once(&row.name)
                    .chain(row.spellings)
                    .any(|name| is_spelled(name, &word))
        };
        TABLE.iter().find(is_called).map(|row| row.operator)
    }

    pub fn takes(self) -> Takes {
        self.row().takes
    }

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

/// Removes from a name the characters in which spellings differ: `Greater-Than` and `greater_than` are `greaterthan`.
/// Names have a bounded length, so no more is looked at.
pub(in crate::workflow) fn letters(text: &str) -> String {
    const LONGEST: usize = 64;
    text.chars()
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .take(LONGEST)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns whether a name of a table, which is in lower case with underscores, has these letters.
pub(in crate::workflow) fn is_spelled(name: &str, letters: &str) -> bool {
    name.bytes()
        .filter(|&byte| byte != b'_' && byte != b'-')
        .eq(letters.bytes())
}
