//! Which tasks are in a transaction, known in debug builds: what is outside the database is never called from one, for
//! its row locks would be held for as long as that takes (design §3).

#[cfg(debug_assertions)]
tokio::task_local! {
    static IN_TRANSACTION: ();
}

/// Runs a transaction. Whatever its task does meanwhile, it does with row locks in its hands.
#[cfg(debug_assertions)]
#[doc(hidden)]
pub async fn in_transaction<F: Future>(transaction: F) -> F::Output {
    IN_TRANSACTION.scope((), transaction).await
}

/// Runs a transaction.
#[cfg(not(debug_assertions))]
#[doc(hidden)]
pub fn in_transaction<F: Future>(transaction: F) -> F {
    transaction
}

/// To be said before a call of what is outside the database. Nothing in a release build.
///
/// # Panics
/// In a debug build, if the task is in a transaction of a store.
pub fn require_no_transaction(call: &str) {
    #[cfg(debug_assertions)]
    assert!(
        IN_TRANSACTION.try_with(|()| ()).is_err(),
        "`{call}` was called inside a transaction"
    );
    #[cfg(not(debug_assertions))]
    let _ = call;
}
