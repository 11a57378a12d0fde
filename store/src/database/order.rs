//! Order of lists: ascending or descending by a time, size or name, and the position after which their next page
//! begins.

use uuid::Uuid;

/// Direction of an ordered list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        }
    }

    /// Comparison of the rows of the next page with the last one of this page.
    pub(crate) fn comparison(self) -> &'static str {
        match self {
            Self::Ascending => ">",
            Self::Descending => "<",
        }
    }

    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}

/// Value by which a list is ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// A time or a size.
    Number(i64),
    /// A name in lower case.
    Text(String),
}

/// Place of a row in an ordered list; the next page begins after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub key: SortKey,
    pub id: Uuid,
}

/// A row of a list with the orders `O`.
pub trait Sorted<O> {
    fn position(&self, order: O) -> Position;
}
