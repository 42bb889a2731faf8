//! What holds of an operation whatever its database is.

use super::*;
use crate::sql::Rendered;

#[tokio::test]
async fn all_transactions_of_an_operation_share_its_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("catalog.db");
    crate::migrate::migrate_sqlite(&file).unwrap();
    let sqlite = Sqlite::open(&file, Rendered::new(&crate::dialect::sqlite::SQLITE)).unwrap();
    let backend = Backend::new(Database::Sqlite(sqlite), 1);
    let operation = backend.operation();
    let ends = operation.deadline();
    tokio::time::sleep_until(ends).await;
    assert_eq!(operation.deadline(), ends);
    assert!(operation.is_out_of_time());
    assert!(backend.deadline() > ends && !backend.is_out_of_time());
}
