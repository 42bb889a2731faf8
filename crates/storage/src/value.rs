//! What goes into a statement and what comes out: three sorts of value, decoded by position.

use crate::failure::Failure;

/// One bound parameter, or one column of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Any whole number; ids, versions, times and flags.
    Int(i64),
    /// Any text.
    Text(String),
    /// Nothing.
    Null,
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Int(i64::from(flag))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

macro_rules! from_number_types {
    ($($number:ty),+) => {
        $(impl From<$number> for Value {
            fn from(number: $number) -> Value {
                Value::Int(number.get())
            }
        })+
    };
}
from_number_types!(treeline_core::EntityId, treeline_core::Version);

/// One row of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Row(pub(crate) Vec<Value>);

impl Row {
    /// The number in that column.
    pub(crate) fn int(&self, column: usize) -> Result<i64, Failure> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(*number),
            other => Err(unexpected(column, "a number", other)),
        }
    }

    /// The number in that column, if there is one.
    pub(crate) fn maybe_int(&self, column: usize) -> Result<Option<i64>, Failure> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(Some(*number)),
            Some(Value::Null) => Ok(None),
            other => Err(unexpected(column, "a number or nothing", other)),
        }
    }

    /// The flag in that column.
    pub(crate) fn flag(&self, column: usize) -> Result<bool, Failure> {
        self.int(column).map(|number| number != 0)
    }

    /// Takes the text out of that column.
    pub(crate) fn text(&mut self, column: usize) -> Result<String, Failure> {
        match self.maybe_text(column)? {
            Some(text) => Ok(text),
            None => Err(unexpected(column, "a text", Some(&Value::Null))),
        }
    }

    /// Takes the text out of that column, if there is one.
    pub(crate) fn maybe_text(&mut self, column: usize) -> Result<Option<String>, Failure> {
        match self
            .0
            .get_mut(column)
            .map(|value| std::mem::replace(value, Value::Null))
        {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            other => Err(unexpected(column, "a text or nothing", other.as_ref())),
        }
    }
}

fn unexpected(column: usize, wanted: &str, found: Option<&Value>) -> Failure {
    Failure::Broken(format!("column {column} should be {wanted}, but is {found:?}"))
}
