//! What a model checker must see, and nothing else: the mutex and the deadline.
//!
//! The crate has no atomics and no other lock, so replacing these two shows loom and shuttle every step it takes.

use std::future::Future;
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

/// The future's output, or `None` when the time is up first.
#[cfg(not(all(test, any(loom, shuttle))))]
pub(crate) async fn within<F: Future>(wait: Duration, future: F) -> Option<F::Output> {
    tokio_time::time::timeout(wait, future).await.ok()
}

#[cfg(all(test, loom))]
pub(crate) async fn within<F: Future>(_: Duration, future: F) -> Option<F::Output> {
    Some(future.await)
}

#[cfg(all(test, shuttle))]
pub(crate) async fn within<F: Future>(wait: Duration, future: F) -> Option<F::Output> {
    use shuttle::rand::Rng as _;
    use std::task::Poll;
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if wait < Duration::MAX / 2 && shuttle::rand::thread_rng().gen_bool(0.3) => {
            Poll::Ready(None)
        }
        Poll::Pending => Poll::Pending,
    })
    .await
}
