//! `Serial`: units of work that must not run at the same time.

use uuid::Uuid;

/// Units that a unit of work never runs beside. On SQLite there is one writer, and none runs beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Serial {
    /// Any other but those of [`Serial::Nothing`].
    All,
    /// Those of the same account and those of [`Serial::All`].
    Account(Uuid),
    /// None: its statements are right whatever runs beside them.
    Nothing,
}
