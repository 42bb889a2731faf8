//! The contenders behind one trait. Those that know no readers lock alone for a read too.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore};
use tokio_time as tokio;
use treeline_locks::NameLocks;

/// A name as the server would lock it.
pub(crate) type Key = String;

pub(crate) trait Contender: Default + Send + Sync + 'static {
    const NAME: &'static str;
    type Held<'a>: Send;

    fn read<'a>(&'a self, key: &'a Key) -> impl Future<Output = Self::Held<'a>> + Send;
    fn write<'a>(&'a self, key: &'a Key) -> impl Future<Output = Self::Held<'a>> + Send;
}

/// A deadline is part of the contract here and of nobody else's.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct Treeline(NameLocks<String>);

impl Contender for Treeline {
    const NAME: &'static str = "treeline-locks";
    type Held<'a> = treeline_locks::Guard<'a, String>;

    async fn read<'a>(&'a self, key: &'a Key) -> Self::Held<'a> {
        self.0.read(key, WAIT).await.unwrap()
    }

    async fn write<'a>(&'a self, key: &'a Key) -> Self::Held<'a> {
        self.0.write(key, WAIT).await.unwrap()
    }
}

#[derive(Default)]
pub(crate) struct Lockable(lockable::LockPool<String>);

impl Contender for Lockable {
    const NAME: &'static str = "lockable";
    type Held<'a> = <lockable::LockPool<String> as lockable::Lockable<String, ()>>::Guard<'a>;

    async fn read<'a>(&'a self, key: &'a Key) -> Self::Held<'a> {
        self.write(key).await
    }

    async fn write<'a>(&'a self, key: &'a Key) -> Self::Held<'a> {
        self.0.async_lock(key.clone()).await
    }
}

pub(crate) struct KeyedLock(keyed_lock::r#async::KeyedLock<String>);

impl Default for KeyedLock {
    fn default() -> Self {
        Self(keyed_lock::r#async::KeyedLock::new())
    }
}

impl Contender for KeyedLock {
    const NAME: &'static str = "keyed-lock";
    type Held<'a> = keyed_lock::r#async::Guard<'a, String>;

    async fn read<'a>(&'a self, key: &'a Key) -> Self::Held<'a> {
        self.write(key).await
    }

    async fn write<'a>(&'a self, key: &'a Key) -> Self::Held<'a> {
        self.0.lock(key.clone()).await
    }
}

/// The fastest simple thing: it grows with every key that it ever saw.
#[derive(Default)]
pub(crate) struct Uncleaned(DashMap<String, Arc<RwLock<()>>>);

impl Uncleaned {
    fn lock(&self, key: &Key) -> Arc<RwLock<()>> {
        if let Some(lock) = self.0.get(key) {
            return Arc::clone(&lock);
        }
        Arc::clone(&self.0.entry(key.clone()).or_default())
    }
}

pub(crate) enum Owned {
    Read { _guard: OwnedRwLockReadGuard<()> },
    Write { _guard: OwnedRwLockWriteGuard<()> },
}

impl Contender for Uncleaned {
    const NAME: &'static str = "DashMap, never cleaned";
    type Held<'a> = Owned;

    async fn read<'a>(&'a self, key: &'a Key) -> Owned {
        Owned::Read {
            _guard: self.lock(key).read_owned().await,
        }
    }

    async fn write<'a>(&'a self, key: &'a Key) -> Owned {
        Owned::Write {
            _guard: self.lock(key).write_owned().await,
        }
    }
}

/// What this crate would be on a DashMap and a semaphore per key: the count rises with the look-up, a ticket holds
/// it, and the entry goes at zero after a second look, by pointer. It knows no holders, deadlines or reports.
#[derive(Default)]
pub(crate) struct Cleaned(DashMap<String, Arc<Entry>>);

pub(crate) struct Entry {
    count: AtomicUsize,
    permits: Semaphore,
}

const READERS_MAX: u32 = 1 << 20;

pub(crate) struct Ticket<'a> {
    map: &'a Cleaned,
    key: &'a Key,
    entry: Arc<Entry>,
    permits: u32,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.entry
            .permits
            .add_permits(usize::try_from(self.permits).unwrap_or(0));
        if self.entry.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.map.0.remove_if(self.key, |_, entry| {
                Arc::ptr_eq(entry, &self.entry) && entry.count.load(Ordering::Acquire) == 0
            });
        }
    }
}

impl Cleaned {
    async fn take<'a>(&'a self, key: &'a Key, permits: u32) -> Ticket<'a> {
        let counted = |entry: &Arc<Entry>| {
            entry.count.fetch_add(1, Ordering::AcqRel);
            Arc::clone(entry)
        };
        let fresh = || {
            Arc::new(Entry {
                count: AtomicUsize::new(0),
                permits: Semaphore::new(1 << 20),
            })
        };
        let entry = counted(&self.0.entry(key.clone()).or_insert_with(fresh));
        let mut ticket = Ticket {
            map: self,
            key,
            entry,
            permits: 0,
        };
        ticket.entry.permits.acquire_many(permits).await.unwrap().forget();
        ticket.permits = permits;
        ticket
    }
}

impl Contender for Cleaned {
    const NAME: &'static str = "DashMap and semaphore, cleaned";
    type Held<'a> = Ticket<'a>;

    async fn read<'a>(&'a self, key: &'a Key) -> Ticket<'a> {
        self.take(key, 1).await
    }

    async fn write<'a>(&'a self, key: &'a Key) -> Ticket<'a> {
        self.take(key, READERS_MAX).await
    }
}
