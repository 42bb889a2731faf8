//! Driving a test build: it holds an operation at a named point until it is told to go on.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use hyper::Method;
use serde_json::Value;

use crate::{Answer, Client};

/// What happens to an operation that comes to an armed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It waits until it is released.
    Pause,
    /// It fails, and its transaction is rolled back.
    Fail,
    /// The process dies on the spot.
    Exit,
}

/// The listener that a test build has beside its own (`--test-listen`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks {
    address: SocketAddr,
}

impl Hooks {
    /// The name by which a point is released that was to hold whatever came to it.
    pub const ANY_NAME: &str = "*";

    /// The hooks of the server that was told to listen there.
    pub fn at(address: SocketAddr) -> Hooks {
        Hooks { address }
    }

    /// From now on the action befalls operations on the entity of that name at that point.
    pub async fn arm(&self, point: &str, name: &str, action: Action) -> Result<()> {
        let action = match action {
            Action::Pause => "pause",
            Action::Fail => "fail",
            Action::Exit => "exit",
        };
        let query = format!("/arm?point={point}&name={name}&action={action}");
        self.ask(Method::POST, &query).await.map(drop)
    }

    /// Waits until an operation is at the point.
    pub async fn reached(&self, point: &str, name: &str) -> Result<()> {
        let query = format!("/reached?point={point}&name={name}");
        self.ask(Method::GET, &query).await.map(drop)
    }

    /// Lets what is held go on, and holds no more.
    pub async fn release(&self, point: &str, name: &str) -> Result<()> {
        let query = format!("/release?point={point}&name={name}");
        self.ask(Method::POST, &query).await.map(drop)
    }

    /// How many sessions of the database wait for a lock.
    pub async fn blocked(&self) -> Result<u64> {
        let answer = self.ask(Method::GET, "/blocked").await?;
        answer.json["blocked"]
            .as_u64()
            .context("no number of those who wait")
    }

    /// Locks one row and then another, against the order of the protocols, and lets go of both. Between the two it comes
    /// to `stranger.first_locked` of that name.
    pub async fn lock_as_stranger(&self, first: &Value, second: &Value, name: &str) -> Result<()> {
        let query = format!("/stranger?first={first}&second={second}&name={name}");
        self.ask(Method::POST, &query).await.map(drop)
    }

    async fn ask(&self, method: Method, path: &str) -> Result<Answer> {
        let answer = Client::new(self.address)
            .send(method, path, &[], "")
            .await
            .with_context(|| format!("hook {path}"))?;
        ensure!(answer.status == 200, "hook {path}: {}", answer.status);
        Ok(answer)
    }
}
