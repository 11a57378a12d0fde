//! SQL statements with bound values that run on either engine: `query`, `query_as`, `query_scalar`, and `Builder` for texts that
//! depend on filters.
//!
//! Texts are SQLite's; [`dialect`] makes PostgreSQL's of them. Numbers of any width are bound as 64 bits.

use std::{borrow::Cow, fmt, io, marker::PhantomData, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream::BoxStream};
use sqlx::{
    Arguments as _, AssertSqlSafe, FromRow, SqlSafeStr as _, SqlStr,
    postgres::{PgArguments, PgRow},
    sqlite::{SqliteArguments, SqliteRow},
};
use tokio::time::timeout;
use uuid::Uuid;

use crate::{
    Month, Secret,
    connection::{Connection, Driver},
    credentials::PasswordHash,
    dialect,
    unit::TIME_LIMIT,
    work::Lane,
};

/// Time in which PostgreSQL answers: a little more than it gives a statement.
const ANSWER_WITHIN: Duration = Duration::from_secs(TIME_LIMIT.as_secs() + 2);

/// Value of a parameter.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null(Kind),
    Number(i64),
    Fraction(f64),
    Flag(bool),
    Text(Cow<'static, str>),
    Bytes(Vec<u8>),
    Id(Uuid),
    /// One that could not be written as JSON, with the reason.
    Unwritable(String),
}

/// Type of a parameter that is null, which PostgreSQL wants to know.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Number,
    Fraction,
    Flag,
    Text,
    Bytes,
    Id,
}

/// Types that can be bound as a parameter.
pub(crate) trait Bind {
    const KIND: Kind;

    fn value(self) -> Value;
}

macro_rules! bind {
    ($($type:ty => $kind:ident($value:ident => $expression:expr)),+ $(,)?) => {
        $(impl Bind for $type {
            const KIND: Kind = Kind::$kind;

            fn value(self) -> Value {
                let $value = self;
                Value::$kind($expression)
            }
        })+
    };
}

bind!(
    i64 => Number(value => value),
    i32 => Number(value => value.into()),
    u32 => Number(value => value.into()),
    u16 => Number(value => value.into()),
    u8 => Number(value => value.into()),
    f64 => Fraction(value => value),
    bool => Flag(value => value),
    String => Text(value => value.into()),
    &str => Text(value => value.to_owned().into()),
    Arc<str> => Text(value => value.to_string().into()),
    Vec<u8> => Bytes(value => value),
    &[u8] => Bytes(value => value.to_vec()),
    Uuid => Id(value => value),
    Lane => Number(value => value as i64),
    Month => Number(value => value.number()),
    Secret => Text(value => value.expose().to_owned().into()),
    PasswordHash => Text(value => value.as_str().to_owned().into()),
);

impl<T: Bind + Clone> Bind for &T {
    const KIND: Kind = T::KIND;

    fn value(self) -> Value {
        self.clone().value()
    }
}

impl<T: Bind> Bind for Option<T> {
    const KIND: Kind = T::KIND;

    fn value(self) -> Value {
        self.map_or(Value::Null(T::KIND), T::value)
    }
}

/// A row that can be read from either engine.
pub(crate) trait Record:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> Record for T where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

/// Text of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    Fixed(&'static str),
    Built(String),
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self::Fixed(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Built(text)
    }
}

impl Text {
    fn sqlite(self) -> SqlStr {
        match self {
            Self::Fixed(text) => text.into_sql_str(),
            Self::Built(text) => AssertSqlSafe(text).into_sql_str(),
        }
    }

    fn postgres(self) -> SqlStr {
        match self {
            Self::Fixed(text) => AssertSqlSafe(dialect::of_fixed(text)).into_sql_str(),
            Self::Built(text) => AssertSqlSafe(dialect::postgres(&text)).into_sql_str(),
        }
    }
}

/// A statement that returns no rows.
pub(crate) struct Query {
    text: Text,
    values: Vec<Value>,
}

/// A statement that returns rows of one type.
pub(crate) struct QueryAs<T> {
    query: Query,
    rows: PhantomData<fn() -> T>,
}

/// A statement that returns rows of one column.
pub(crate) struct QueryScalar<T> {
    query: Query,
    rows: PhantomData<fn() -> T>,
}

/// Result of a statement that returned no rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executed {
    rows: u64,
}

impl Executed {
    pub(crate) fn rows_affected(self) -> u64 {
        self.rows
    }
}

pub(crate) fn query(text: impl Into<Text>) -> Query {
    Query {
        text: text.into(),
        values: Vec::new(),
    }
}

pub(crate) fn query_as<T>(text: impl Into<Text>) -> QueryAs<T> {
    QueryAs {
        query: query(text),
        rows: PhantomData,
    }
}

pub(crate) fn query_scalar<T>(text: impl Into<Text>) -> QueryScalar<T> {
    QueryScalar {
        query: query(text),
        rows: PhantomData,
    }
}

impl Query {
    pub(crate) fn bind(mut self, value: impl Bind) -> Self {
        self.values.push(value.value());
        self
    }

    pub(crate) async fn execute(
        self,
        db: &mut (impl Connection + ?Sized),
    ) -> Result<Executed, sqlx::Error> {
        let rows = match db.driver() {
            Driver::Sqlite(connection) => {
                let values = sqlite_arguments(self.values)?;
                let query = sqlx::query_with(self.text.sqlite(), values);
                query.execute(connection).await?.rows_affected()
            }
            Driver::Postgres(connection) => {
                let values = postgres_arguments(self.values)?;
                let query = sqlx::query_with(self.text.postgres(), values);
                in_time(query.execute(connection)).await?.rows_affected()
            }
        };
        Ok(Executed { rows })
    }
}

impl<T> QueryAs<T> {
    pub(crate) fn bind(mut self, value: impl Bind) -> Self {
        self.query = self.query.bind(value);
        self
    }
}

impl<T: Record> QueryAs<T> {
    pub(crate) async fn fetch_one(
        self,
        db: &mut (impl Connection + ?Sized),
    ) -> Result<T, sqlx::Error> {
        self.fetch_optional(db)
            .await?
            .ok_or(sqlx::Error::RowNotFound)
    }

    pub(crate) async fn fetch_optional(
        self,
        db: &mut (impl Connection + ?Sized),
    ) -> Result<Option<T>, sqlx::Error> {
        let Query { text, values } = self.query;
        match db.driver() {
            Driver::Sqlite(connection) => {
                let values = sqlite_arguments(values)?;
                let query = sqlx::query_as_with(text.sqlite(), values);
                query.fetch_optional(connection).await
            }
            Driver::Postgres(connection) => {
                let values = postgres_arguments(values)?;
                let query = sqlx::query_as_with(text.postgres(), values);
                in_time(query.fetch_optional(connection)).await
            }
        }
    }

    pub(crate) async fn fetch_all(
        self,
        db: &mut (impl Connection + ?Sized),
    ) -> Result<Vec<T>, sqlx::Error> {
        let Query { text, values } = self.query;
        match db.driver() {
            Driver::Sqlite(connection) => {
                let values = sqlite_arguments(values)?;
                let query = sqlx::query_as_with(text.sqlite(), values);
                query.fetch_all(connection).await
            }
            Driver::Postgres(connection) => {
                let values = postgres_arguments(values)?;
                let query = sqlx::query_as_with(text.postgres(), values);
                in_time(query.fetch_all(connection)).await
            }
        }
    }

    /// Reads the rows one after the other.
    pub(crate) fn fetch<'c>(
        self,
        db: &'c mut (impl Connection + ?Sized),
    ) -> BoxStream<'c, Result<T, sqlx::Error>>
    where
        T: 'c,
    {
        let Query { text, values } = self.query;
        let failed = |error| futures_util::stream::once(async move { Err(error) }).boxed();
        match db.driver() {
            Driver::Sqlite(connection) => match sqlite_arguments(values) {
                Ok(values) => sqlx::query_as_with(text.sqlite(), values).fetch(connection),
                Err(error) => failed(error),
            },
            Driver::Postgres(connection) => match postgres_arguments(values) {
                Ok(values) => {
                    each_in_time(sqlx::query_as_with(text.postgres(), values).fetch(connection))
                }
                Err(error) => failed(error),
            },
        }
    }
}

impl<T> QueryScalar<T>
where
    (T,): Record,
{
    pub(crate) fn bind(mut self, value: impl Bind) -> Self {
        self.query = self.query.bind(value);
        self
    }

    fn rows(self) -> QueryAs<(T,)> {
        QueryAs {
            query: self.query,
            rows: PhantomData,
        }
    }

    pub(crate) async fn fetch_one(
        self,
        db: &mut (impl Connection + ?Sized),
    ) -> Result<T, sqlx::Error> {
        Ok(self.rows().fetch_one(db).await?.0)
    }

    pub(crate) async fn fetch_optional(
        self,
        db: &mut (impl Connection + ?Sized),
    ) -> Result<Option<T>, sqlx::Error> {
        Ok(self.rows().fetch_optional(db).await?.map(|row| row.0))
    }

    pub(crate) async fn fetch_all(
        self,
        db: &mut (impl Connection + ?Sized),
    ) -> Result<Vec<T>, sqlx::Error> {
        let rows = self.rows().fetch_all(db).await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }
}

/// Ends the wait for a server that is silent: one that is there ends the statement itself before.
async fn in_time<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "the server does not answer");
    timeout(ANSWER_WITHIN, answer).await.map_err(silent)?
}

/// Ends rows with an error when the next one is not there in time.
fn each_in_time<'c, T: Send + 'c>(
    rows: BoxStream<'c, Result<T, sqlx::Error>>,
) -> BoxStream<'c, Result<T, sqlx::Error>> {
    let next = |rows: Option<BoxStream<'c, Result<T, sqlx::Error>>>| async move {
        let mut rows = rows?;
        let row = in_time(async { rows.next().await.transpose() }).await;
        match row {
            Ok(row) => row.map(|row| (Ok(row), Some(rows))),
            Err(error) => Some((Err(error), None)),
        }
    };
    futures_util::stream::unfold(Some(rows), next).boxed()
}

fn sqlite_arguments(values: Vec<Value>) -> Result<SqliteArguments, sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(values.len(), 0);
    for value in values {
        match value {
            Value::Null(_) => arguments.add(None::<i64>),
            Value::Number(value) => arguments.add(value),
            Value::Fraction(value) => arguments.add(value),
            Value::Flag(value) => arguments.add(value),
            Value::Text(value) => arguments.add(value.into_owned()),
            Value::Bytes(value) => arguments.add(value),
            Value::Id(value) => arguments.add(value),
            Value::Unwritable(reason) => Err(reason.into()),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

fn postgres_arguments(values: Vec<Value>) -> Result<PgArguments, sqlx::Error> {
    let mut arguments = PgArguments::default();
    arguments.reserve(values.len(), 0);
    for value in values {
        match value {
            Value::Null(Kind::Number) => arguments.add(None::<i64>),
            Value::Null(Kind::Fraction) => arguments.add(None::<f64>),
            Value::Null(Kind::Flag) => arguments.add(None::<bool>),
            Value::Null(Kind::Text) => arguments.add(None::<&str>),
            Value::Null(Kind::Bytes) => arguments.add(None::<&[u8]>),
            Value::Null(Kind::Id) => arguments.add(None::<Uuid>),
            Value::Number(value) => arguments.add(value),
            Value::Fraction(value) => arguments.add(value),
            Value::Flag(value) => arguments.add(value),
            Value::Text(value) => arguments.add(&*value),
            Value::Bytes(value) => arguments.add(value),
            Value::Id(value) => arguments.add(value),
            Value::Unwritable(reason) => Err(reason.into()),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// Runs statements without parameters, for states that no verb makes.
#[cfg(test)]
pub(crate) async fn script(
    tx: &mut crate::Tx<'_>,
    text: impl Into<Text>,
) -> Result<(), sqlx::Error> {
    use crate::connection::Drive as _;
    let text = text.into();
    match tx.driver() {
        Driver::Sqlite(connection) => sqlx::raw_sql(text.sqlite())
            .execute(connection)
            .await
            .map(drop),
        Driver::Postgres(connection) => sqlx::raw_sql(text.postgres())
            .execute(connection)
            .await
            .map(drop),
    }
}

/// Text of a statement under construction, with its values.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    text: String,
    values: Vec<Value>,
}

impl Builder {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            values: Vec::new(),
        }
    }

    /// Appends text, which holds nothing that a caller wrote.
    pub(crate) fn push(&mut self, text: impl fmt::Display) -> &mut Self {
        use fmt::Write as _;
        let _ = write!(self.text, "{text}");
        self
    }

    /// Appends a parameter with its value.
    pub(crate) fn push_bind(&mut self, value: impl Bind) -> &mut Self {
        self.values.push(value.value());
        let number = self.values.len();
        self.push(format_args!("${number}"))
    }

    /// Appends parameters in a list with commas.
    pub(crate) fn push_list(&mut self, values: impl IntoIterator<Item = impl Bind>) -> &mut Self {
        for (at, value) in values.into_iter().enumerate() {
            if at > 0 {
                self.push(", ");
            }
            self.push_bind(value);
        }
        self
    }

    #[cfg(test)]
    pub(crate) fn sql(&self) -> &str {
        &self.text
    }

    pub(crate) fn build(&mut self) -> Query {
        Query {
            text: std::mem::take(&mut self.text).into(),
            values: std::mem::take(&mut self.values),
        }
    }

    pub(crate) fn build_query_as<T>(&mut self) -> QueryAs<T> {
        QueryAs {
            query: self.build(),
            rows: PhantomData,
        }
    }

    pub(crate) fn build_query_scalar<T>(&mut self) -> QueryScalar<T> {
        QueryScalar {
            query: self.build(),
            rows: PhantomData,
        }
    }
}
