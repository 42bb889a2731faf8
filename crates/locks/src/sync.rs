//! What a model checker must see, and nothing else: the mutex and the deadline.
//!
//! The crate has no atomics and no other lock, so replacing these two shows loom and shuttle every step it takes.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

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

/// The clock of the timers, so that a deadline and what is said of it agree.
pub(crate) fn now() -> Instant {
    tokio_time::time::Instant::now().into_std()
}

/// The future's output, or `None` when the time is up first. Sets the timer when it has to: it is dear, and too large
/// to lie in every future.
pub(crate) async fn within<F: Future>(since: Instant, wait: Duration, future: F) -> Option<F::Output> {
    let (mut future, mut timer) = (pin!(future), None);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        let timer = timer.get_or_insert_with(|| Box::pin(sleep(since, wait)));
        timer.as_mut().poll(cx).map(|()| None)
    })
    .await
}

#[cfg(not(all(test, any(loom, shuttle))))]
fn sleep(since: Instant, wait: Duration) -> tokio_time::time::Sleep {
    let end = since.checked_add(wait);
    end.map_or_else(
        || tokio_time::time::sleep(wait),
        |end| tokio_time::time::sleep_until(end.into()),
    )
}

#[cfg(all(test, loom))]
async fn sleep(_: Instant, _: Duration) {
    std::future::pending().await
}

#[cfg(all(test, shuttle))]
async fn sleep(_: Instant, wait: Duration) {
    use shuttle::rand::Rng as _;
    if wait > Duration::MAX / 2 || !shuttle::rand::thread_rng().gen_bool(0.3) {
        std::future::pending().await
    }
}
