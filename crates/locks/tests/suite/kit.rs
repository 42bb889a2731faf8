//! Futures polled by hand, each as a task of its own that counts its wake-ups.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Longer than any test that passes.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A future with a waker of its own.
pub(crate) struct Polled<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
pub(crate) struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The output of a future that does not wait, asked for by a task of its own.
#[track_caller]
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let Poll::Ready(output) = Polled::new(future).poll() else {
        panic!("it waits")
    };
    output
}

impl<'a, T> Polled<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'a) -> Self {
        Self {
            future: Box::pin(future),
            wakes: Arc::default(),
        }
    }

    /// Polls until the future says for itself that it will not get further: one that finds its key taken is woken at
    /// once where no scheduler could say that a thread has nothing else to do, and sets its timer after that.
    pub(crate) fn poll(&mut self) -> Poll<T> {
        for _ in 0..1_000 {
            self.wakes.0.store(0, Ordering::Relaxed);
            let waker = Waker::from(Arc::clone(&self.wakes));
            let polled = self.future.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() || !self.is_woken() {
                return polled;
            }
        }
        panic!("it wakes itself for ever");
    }

    /// Whether somebody has woken it since its last poll.
    pub(crate) fn is_woken(&self) -> bool {
        self.wakes.0.load(Ordering::Relaxed) > 0
    }

    /// Polls and expects it to wait.
    pub(crate) fn waits(&mut self) {
        assert!(self.poll().is_pending(), "it should wait");
    }

    /// Expects that it was woken, and is served.
    #[track_caller]
    pub(crate) fn is_served(&mut self) -> T {
        assert!(self.is_woken(), "nobody woke it");
        let Poll::Ready(output) = self.poll() else {
            panic!("it was woken and still waits")
        };
        output
    }

    /// Expects that nobody woke it and that it waits.
    #[track_caller]
    pub(crate) fn still_waits(&mut self) {
        assert!(!self.is_woken(), "it was woken too early");
        assert!(self.poll().is_pending(), "it was served too early");
    }
}
