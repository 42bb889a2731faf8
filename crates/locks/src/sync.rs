//! What a model checker must see, and nothing else: the mutex and the deadline.
//!
//! The crate has no atomics and no other lock, so replacing these two shows loom and shuttle every step it takes.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

#[cfg(all(test, loom))]
use loom::sync as source;
#[cfg(all(test, shuttle))]
use shuttle::sync as source;
#[cfg(not(all(test, any(loom, shuttle))))]
use std::sync as source;

pub(crate) use source::{Mutex, MutexGuard};

/// Under a model checker the clock does not run: a deadline never passes (loom) or passes at random (shuttle).
pub(crate) const MODEL: bool = cfg!(all(test, any(loom, shuttle)));

/// A panic of a key's `eq` or `clone` leaves the state as it was, so poison means nothing here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Lets the other tasks of this thread run once.
///
/// A key that is taken is often free after that, and a timer is dear. A model checker gets no such second look: it
/// would hide a lost wake-up.
pub(crate) async fn give_turn() {
    let mut gave = MODEL;
    poll_fn(|cx| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// The future's output, or `None` when the time is up first. Sets the timer when it has to.
pub(crate) async fn within<F: Future>(wait: Duration, future: F) -> Option<F::Output> {
    let (mut future, mut timer) = (pin!(future), None);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer
            .get_or_insert_with(|| Box::pin(sleep(wait)))
            .as_mut()
            .poll(cx)
            .map(|()| None),
    })
    .await
}

#[cfg(not(all(test, any(loom, shuttle))))]
use tokio_time::time::sleep;

#[cfg(all(test, loom))]
async fn sleep(_: Duration) {
    std::future::pending().await
}

#[cfg(all(test, shuttle))]
async fn sleep(wait: Duration) {
    use shuttle::rand::Rng as _;
    if wait > Duration::MAX / 2 || !shuttle::rand::thread_rng().gen_bool(0.3) {
        std::future::pending().await
    }
}
