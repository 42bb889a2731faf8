//! What a request holds of the server while it is worked on.
//!
//! A write goes on when its client has left ([`App::run`](crate::app::App::run)), and what it works with is in memory until it
//! is done. So what it holds goes with its task, and not with the handler, or a client that sends and leaves, and sends
//! again, would be bounded by nothing.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use crate::body::Room;

tokio::task_local! {
    static HELD: Held;
}

/// A turn, and the room of a body. Cheap to clone; given back when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Held {
    _both: Arc<(OwnedSemaphorePermit, Room)>,
}

impl Held {
    pub(crate) fn new(turn: OwnedSemaphorePermit, room: Room) -> Held {
        Held {
            _both: Arc::new((turn, room)),
        }
    }

    /// Works on the request, which whatever is begun for it can find what it holds.
    pub(crate) async fn during<F: Future>(self, work: F) -> F::Output {
        HELD.scope(self, work).await
    }

    /// What the request of this task holds; none outside one.
    pub(crate) fn current() -> Option<Held> {
        HELD.try_with(Held::clone).ok()
    }
}
