//! What a model checker must see, and nothing else: the mutex and the deadline.
//!
//! The crate has no atomics and no other lock, so replacing these two shows loom and shuttle every step it takes.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{PoisonError, TryLockError};
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

/// A critical section here is shorter than a trip to the kernel, so a thread looks again for about a microsecond
/// before it sleeps. A panic of a key's `eq` or `clone` leaves the state as it was, so poison means nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    if !MODEL {
        for pauses in [4, 8, 16, 32, 64] {
            match mutex.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => (0..pauses).for_each(|_| std::hint::spin_loop()),
            }
        }
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be served, or until this thread has nothing else to do, whichever is first: most waits are over by then,
/// and a timer is dear. A task must not wake itself for this. It would be queued on its own thread, and who is served
/// is run next, by the thread that served it, only if it is queued nowhere. The runtime keeps the waker meanwhile.
///
/// A model checker gets no second look: it would hide a lost wake-up.
pub(crate) async fn give_turn() {
    if !MODEL {
        tokio_time::task::yield_now().await;
    }
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
