//! PgBouncer before PostgreSQL: one of sessions is as good as none, one of transactions is refused.

use treeline_core::NewEntity;
use treeline_core::kinds::Metalake;
use treeline_storage::{Store, StoreOptions};

use crate::harness::{Bed, context, name, refused, tests};

/// The machine with the poolers: one of sessions on one port, one of transactions on the next. `cargo xtask itest` sets
/// it for a container that has them; published images have none.
pub(crate) const VARIABLE: &str = "TREELINE_TEST_PGBOUNCER";

const SESSIONS: u16 = 6432;
const TRANSACTIONS: u16 = 6433;

tests! { a_pooler_of_sessions_is_as_good_as_none_and_one_of_transactions_is_refused }

async fn a_pooler_of_sessions_is_as_good_as_none_and_one_of_transactions_is_refused(bed: Bed) {
    let machine = std::env::var(VARIABLE).unwrap();
    let through = |port: u16| StoreOptions {
        url: format!("postgres://treeline:treeline@{machine}:{port}/{}", bed.database()),
        ..bed.options.clone()
    };
    let store = Store::open(through(SESSIONS)).await.unwrap();
    let new = NewEntity {
        name: name("ml"),
        payload: Metalake::default(),
    };
    store.create(&context(), None, new).await.unwrap();
    for _ in 0..3 {
        let reason = refused(through(TRANSACTIONS)).await;
        assert!(reason.contains("pool sessions"), "{reason}");
    }
}
