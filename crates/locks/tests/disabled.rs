//! The feature `disabled`: the same calls, nothing locked. `cargo test -p treeline-locks --features disabled`.

#![cfg(feature = "disabled")]

use std::convert::Infallible;
use std::time::Duration;

use tokio_time as tokio;
use treeline_locks::{Ask, Loader, Mode, NameLocks, RefreshError, Versioned, VersionedCell};

#[tokio::test]
async fn everything_is_granted_at_once_and_nothing_is_kept() {
    let locks = NameLocks::new().with_listener(|event| panic!("nothing happens: {event:?}"));
    let one = locks
        .write(&1, Ask::within(Duration::ZERO).by("one"))
        .await
        .unwrap();
    let two = locks.write(&1, Duration::ZERO).await.unwrap();
    let many = locks
        .many([(1, Mode::Write), (2, Mode::Read)], Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(many.len(), 2);
    assert!(locks.is_empty() && locks.snapshot().is_empty());
    drop((one, two, many));
}

struct Fixed;

impl Loader<()> for Fixed {
    type Error = Infallible;

    async fn probe(&self) -> Result<u64, Infallible> {
        Ok(1)
    }

    async fn load(&self) -> Result<Versioned<()>, Infallible> {
        Ok(Versioned {
            version: 1,
            value: (),
        })
    }
}

#[tokio::test]
async fn a_cell_still_has_one_writer() {
    let cell: &'static VersionedCell<(), Fixed> = Box::leak(Box::new(VersionedCell::new(
        Fixed,
        Versioned {
            version: 1,
            value: (),
        },
    )));
    let writer = cell.get_mut(Duration::ZERO).await.unwrap();
    let other =
        tokio::spawn(async { matches!(cell.get_mut(Duration::ZERO).await, Err(RefreshError::Busy(_))) });
    assert!(other.await.unwrap());
    drop(writer);
}
