//! What is kept for the next keys is little, however many there were.

use std::time::Duration;

use crate::NameLocks;
use tokio_time as tokio;

#[tokio::test]
async fn a_burst_of_keys_gives_its_memory_back() {
    let locks = NameLocks::new();
    let mut guards = Vec::new();
    for key in 0..100_000_u32 {
        guards.push(locks.write(&key, Duration::ZERO).await);
    }
    let most = locks.room();
    assert!(most >= 100_000);
    drop(guards);
    let left = locks.room();
    assert!(left <= most / 32, "room for {left} keys is left of {most}");
}
