//! Two requests that want one row: which of them is first, and what both are answered.

use anyhow::{Result, ensure};
use treeline_tests::Answer;

use crate::holds::{BY_A, BY_B, Principal};
use crate::race::{A, B, Race, Side};
use crate::sent::{Held, Meanwhile};

/// How a meeting ended.
pub(crate) struct Met {
    /// Whose request counts as the first.
    pub(crate) first: Side,
    pub(crate) a: Answer,
    pub(crate) b: Answer,
}

impl Met {
    /// Who went first, the answer to the first, and the answer to the second.
    pub(crate) fn in_order(self) -> (Side, Answer, Answer) {
        match self.first {
            A => (A, self.a, self.b),
            B => (B, self.b, self.a),
        }
    }
}

impl Side {
    /// Who writes on this side.
    pub(crate) const fn principal(self) -> Principal {
        match self {
            A => BY_A,
            B => BY_B,
        }
    }
}

impl Race {
    /// A holds the row that B wants. On one database B waits until A is through, so A is first. On a cluster B sees no
    /// lock of A's and finishes; A's transaction is refused, and run again over what B has written: B is first.
    pub(crate) async fn meet(&mut self, a: Held, mut b: Meanwhile) -> Result<Met> {
        if !self.backend.has_two_primaries() {
            b.waits().await?;
            let a = a.goes_on().await?;
            let b = b.answers().await?;
            return Ok(Met { first: A, a, b });
        }
        let b = b.finishes().await?;
        let retries = self.node(A).retries().await?;
        let a = a.goes_on().await?;
        if b.status == 200 && self.node(A).retries().await? == retries {
            // Said at the end: what this has come to in the rows says more.
            self.was_not_refused = true;
        }
        Ok(Met { first: B, a, b })
    }

    /// The row's last meeting has an order in which both are right as they are.
    pub(crate) fn none_had_to_be_refused(&mut self) {
        self.was_not_refused = false;
    }

    /// Fails if a transaction was committed though another had been committed under it.
    pub(crate) fn all_were_refused(&self) -> Result<()> {
        ensure!(
            !self.was_not_refused,
            "A was committed under the eyes of B, and not refused"
        );
        Ok(())
    }
}
