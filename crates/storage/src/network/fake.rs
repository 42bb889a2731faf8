//! A connection that answers what a test wants, for what no database can be brought to say at the right moment.

use std::sync::Arc;

use async_trait::async_trait;

use super::Connection;
use super::frame::{Frame, MYSQL_FRAME};
use crate::failure::Failure;
use crate::session::Session;
use crate::value::{Row, Value};

/// Finds no rows, and takes every statement.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    /// What it was asked, in order.
    pub(crate) asked: Vec<Arc<str>>,
    /// What it answers instead of taking a statement.
    pub(crate) refuses: Option<Failure>,
}

#[async_trait]
impl Session for Fake {
    async fn run(&mut self, sql: &Arc<str>, _values: &[Value]) -> Result<u64, Failure> {
        assert!(self.asked.len() < 1_000, "it is asked without end");
        self.asked.push(Arc::clone(sql));
        self.refuses.clone().map_or(Ok(1), Err)
    }

    async fn rows(&mut self, sql: &Arc<str>, _values: &[Value]) -> Result<Vec<Row>, Failure> {
        self.asked.push(Arc::clone(sql));
        Ok(Vec::new())
    }
}

#[async_trait]
impl Connection for Fake {
    async fn control(&mut self, sql: &'static str) -> Result<(), Failure> {
        self.asked.push(Arc::from(sql));
        Ok(())
    }

    fn session(&mut self) -> &mut dyn Session {
        self
    }

    fn frame(&self) -> &'static Frame {
        &MYSQL_FRAME
    }

    async fn has_written(&mut self) -> Result<bool, Failure> {
        Ok(true)
    }
}
