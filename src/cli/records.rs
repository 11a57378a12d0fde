//! Parts that `sluice accounts`, `users` and `keys` share: opening the database, `--account`, tables, times.

use sluice_store::{
    Connection, Error as StoreError, Reader, Store, StoreSettings, Tx, Work, accounts,
    accounts::Account, examine_server, schema_version,
};
use uuid::Uuid;

use super::{Error, open_to_read, shown};

/// Longest part of a name that a table shows.
const MAX_CELL_CHARS: usize = 60;
/// Text between two columns of a table.
const BETWEEN_COLUMNS: &str = "  ";

/// The account that a command is about.
#[derive(Debug, Default, clap::Args)]
pub(super) struct AccountOption {
    /// The account's name or id [default: the first account]
    #[arg(long, value_name = "NAME|ID")]
    account: Option<String>,
}

impl AccountOption {
    /// `None` without the option.
    pub(super) async fn find_given(
        &self,
        db: &mut impl Connection,
    ) -> Result<Option<Account>, StoreError> {
        match &self.account {
            Some(named) => find_account(db, named).await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) async fn find(&self, db: &mut impl Connection) -> Result<Account, StoreError> {
        if let Some(account) = self.find_given(db).await? {
            return Ok(account);
        }
        accounts::first(db).await?.ok_or_else(|| {
            let what = "there is no account yet: start the service once, which makes the first";
            StoreError::Invalid(what.to_owned())
        })
    }
}

/// The account of a name or id; `Error::Invalid` says what to give instead.
pub(super) async fn find_account(
    db: &mut impl Connection,
    named: &str,
) -> Result<Account, StoreError> {
    let unknown = || {
        let named = shown(named, MAX_CELL_CHARS);
        StoreError::Invalid(format!(
            "there is no account `{named}`: `sluice accounts list` shows all"
        ))
    };
    if let Ok(id) = Uuid::try_parse(named) {
        return accounts::get(db, id).await.map_err(|_| unknown());
    }
    let mut found = accounts::by_name(db, named.trim()).await?;
    match found.len() {
        0 => Err(unknown()),
        1 => Ok(found.remove(0)),
        several => Err(StoreError::Invalid(format!(
            "{several} accounts have that name: give the id, which `sluice accounts list` shows"
        ))),
    }
}

/// The database that is there, which a command opens and closes again; a first one is the service's to make, with its first
/// credentials.
pub(super) struct Records<'a>(pub &'a StoreSettings);

impl Records<'_> {
    pub(super) async fn read<T>(
        self,
        work: impl AsyncFnOnce(&mut Reader) -> Result<T, StoreError>,
    ) -> Result<T, Error> {
        let store = match self.0.is_on_postgres() {
            true => self.open_beside().await?,
            false => open_to_read(&self.0.data_dir).await?,
        };
        let read = async { work(&mut store.read().await?).await }.await;
        store.close().await;
        Ok(read?)
    }

    /// Runs a unit of work; see [`sluice_store::write_tx`].
    pub(super) async fn write<T: Send + 'static>(
        self,
        work: impl for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.open_beside().await?;
        let written = store.write(work).await;
        store.close().await;
        Ok(written?)
    }

    /// Opens the database for changes, when it is there; beside the service, too.
    async fn open_beside(&self) -> Result<Store, Error> {
        match self.0.is_on_postgres() {
            true => self.check_server().await?,
            false => open_to_read(&self.0.data_dir).await?.close().await,
        }
        Ok(Store::open_beside(self.0).await?)
    }

    /// Checks that the service has made the tables: a short command makes and migrates none.
    async fn check_server(&self) -> Result<(), Error> {
        let (found, schema) = (examine_server(self.0).await?, &self.0.database_schema);
        match (found.rejection, found.schema_version) {
            (Some(rejection), _) => Err(Error::Rejected(rejection)),
            (None, None) => Err(Error::Rejected(format!(
                "there are no tables in the schema {schema} of store.database_url: start the service once, or set store.database_schema to the schema it uses"
            ))),
            (None, Some(version)) if version < schema_version() => Err(Error::Rejected(
                "the database is of an older version than this program: start the service first"
                    .into(),
            )),
            (None, Some(_)) => Ok(()),
        }
    }
}

/// Formats a line for each row under a heading, in columns.
pub(super) fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let heading = heading.map(str::to_owned);
    let rows: Vec<[String; N]> = std::iter::once(&heading)
        .chain(rows)
        .map(|row| row.clone().map(|cell| shown(&cell, MAX_CELL_CHARS)))
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text += line.join(BETWEEN_COLUMNS).trim_end();
        text.push('\n');
    }
    text
}

/// The day of a time in Unix milliseconds.
pub(super) fn day(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(at) => at.strftime("%Y-%m-%d").to_string(),
        Err(_) => "unknown".to_owned(),
    }
}

/// A time in Unix milliseconds as JSON has it.
pub(super) fn time(at_ms: i64) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(at_ms).ok()?;
    Some(at.to_string())
}

/// A value as JSON for other programs.
pub(super) fn json(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_they_hold() {
        let rows = [
            ["Müller & Söhne", "free"].map(str::to_owned),
            ["x\u{1b}[31m", ""].map(str::to_owned),
        ];
        assert_eq!(
            table(["name", "plan"], &rows),
            "name            plan\nMüller & Söhne  free\nx\u{fffd}[31m\n"
        );
    }
}
