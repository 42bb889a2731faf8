//! P11: a request that the client named is carried out once, whichever server it is repeated on (INV-17).
//!
//! 1. The key is the first insert of the change's own transaction. Another request under the same key waits there for
//!    this one, and then finds the key taken.
//! 2. What the key has done, with the same fingerprint, is the answer to whoever finds it taken.
//! 3. The outcome is the last statement of the same transaction: a key without an outcome is never seen by others.
//!
//! Whoever carries out requests asks the key before anything else, and once more where one is refused, which stands
//! behind 1. A create that keeps files is not done with its transaction: what its key means meanwhile is in `undo`.

use std::sync::Arc;

use async_trait::async_trait;
use treeline_core::{Error, Version};

use crate::context::{Idempotency, WriteContext};
use crate::create::Created;
use crate::failure::{Clash, Failure};
use crate::hooks::{mutant, sync_point};
use crate::record::Record;
use crate::sql::idempotency::{FILL_OUTCOME, FIND_KEY, FIND_OLD_KEYS, FORGET_KEY, INSERT_KEY};
use crate::transaction::{Backend, Proof, Reading, Transaction, Work};
use crate::value::Value;

/// An answer that can be kept and given again.
pub(crate) trait Outcome: Sized {
    /// The text that is kept; none for an answer that wrote nothing.
    fn encode(&self) -> Result<Option<String>, Failure>;
    /// The answer again.
    fn decode(text: &str) -> Result<Self, Failure>;
}

impl Outcome for Record {
    fn encode(&self) -> Result<Option<String>, Failure> {
        let text = serde_json::to_string(self);
        text.map(Some)
            .map_err(|error| Failure::Broken(format!("an outcome to keep: {error}")))
    }

    fn decode(text: &str) -> Result<Record, Failure> {
        serde_json::from_str(text).map_err(|_| Failure::Answer(Error::KeyReused))
    }
}

impl Outcome for Created {
    fn encode(&self) -> Result<Option<String>, Failure> {
        match self {
            Created::Done(record, _) | Created::Kept(record) => record.encode(),
            Created::Blocked => Ok(None),
        }
    }

    fn decode(text: &str) -> Result<Created, Failure> {
        <Record as Outcome>::decode(text).map(Created::Kept)
    }
}

impl Outcome for Option<Version> {
    fn encode(&self) -> Result<Option<String>, Failure> {
        Ok(Some(self.map_or(0, Version::get).to_string()))
    }

    fn decode(text: &str) -> Result<Option<Version>, Failure> {
        match text.parse::<i64>() {
            Ok(0) => Ok(None),
            Ok(number) => Ok(Some(Version::new(number)?)),
            Err(_) => Err(Failure::Answer(Error::KeyReused)),
        }
    }
}

/// Runs a write under the key of its context, if it has one, or gives again what the key has done.
pub(crate) async fn write<W: Work>(
    backend: &Backend,
    context: &WriteContext,
    work: W,
) -> Result<W::Output, Failure>
where
    W::Output: Outcome + Clone + Sync,
{
    let Some(idempotency) = &context.idempotency else {
        return backend.write(work).await;
    };
    sync_point!("idempotency.looked_up", idempotency.key.as_str());
    if mutant("m-idempotency-tx") {
        let output = backend.write(work).await?;
        let settled = Arc::new(Settled(output));
        return backend.write(Keyed::new(context, idempotency, settled)).await;
    }
    let (backend, work) = (backend.operation(), Arc::new(work));
    loop {
        let keyed = Keyed::new(context, idempotency, Arc::clone(&work));
        match backend.write(keyed).await {
            // Another request under the key was first. It has committed, or its insert would not have refused ours.
            Err(Failure::Unique(Clash::Key)) => match recall(&backend, context).await? {
                Some(text) => return W::Output::decode(&text),
                // What it had done was undone since, and with it went its key, so it is done anew.
                None if backend.is_out_of_time() => {
                    return Err(Failure::raced("the other request under this key was undone"));
                }
                None => {}
            },
            settled => return settled,
        }
    }
}

/// Keeps the answer of a write that came to nothing under the key of its context, if it has one.
pub(crate) async fn settle<O: Outcome + Clone + Send + Sync + 'static>(
    backend: &Backend,
    context: &WriteContext,
    answer: O,
) -> Result<O, Failure> {
    match context.idempotency {
        Some(_) => write(backend, context, Settled(answer)).await,
        None => Ok(answer),
    }
}

/// What the key of this context has done, as the text of its outcome.
pub(crate) async fn recall(backend: &Backend, context: &WriteContext) -> Result<Option<String>, Failure> {
    match &context.idempotency {
        None => Ok(None),
        Some(idempotency) => {
            let recall = Recall {
                principal: context.principal.clone(),
                idempotency: idempotency.clone(),
            };
            backend.read(Reading::Point, recall).await
        }
    }
}

/// A write between its key and its outcome.
struct Keyed<W> {
    principal: String,
    idempotency: Idempotency,
    work: Arc<W>,
}

impl<W> Keyed<W> {
    fn new(context: &WriteContext, idempotency: &Idempotency, work: Arc<W>) -> Keyed<W> {
        Keyed {
            principal: context.principal.clone(),
            idempotency: idempotency.clone(),
            work,
        }
    }
}

#[async_trait]
impl<W: Work> Work for Keyed<W>
where
    W::Output: Outcome + Sync,
{
    type Output = W::Output;
    const NAME: &'static str = W::NAME;

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<W::Output, Failure> {
        let Idempotency { key, fingerprint } = &self.idempotency;
        let (principal, key) = (Value::from(self.principal.as_str()), Value::from(key.as_str()));
        let values = [principal.clone(), key.clone(), fingerprint.as_str().into()];
        let first = !mutant("m-idempotency-first");
        if first {
            transaction.run_one(&INSERT_KEY, &values).await?;
        }
        let output = self.work.run(transaction).await?;
        if !first {
            transaction.run_one(&INSERT_KEY, &values).await?;
        }
        match output.encode()? {
            Some(text) => {
                transaction
                    .run_one(&FILL_OUTCOME, &[text.into(), principal, key])
                    .await?
            }
            // Nothing was done, so nothing is remembered.
            None => transaction.run_one(&FORGET_KEY, &[principal, key]).await?,
        }
        Ok(output)
    }

    fn proof(&self, output: &W::Output) -> Option<Proof> {
        self.work.proof(output)
    }
}

/// Looks for a key.
struct Recall {
    principal: String,
    idempotency: Idempotency,
}

#[async_trait]
impl Work for Recall {
    type Output = Option<String>;
    const NAME: &'static str = "recall";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Option<String>, Failure> {
        let values = [
            self.principal.as_str().into(),
            self.idempotency.key.as_str().into(),
        ];
        let Some(mut row) = transaction.row(&FIND_KEY, &values).await? else {
            return Ok(None);
        };
        if row.text(0)? != self.idempotency.fingerprint {
            return Err(Failure::Answer(Error::KeyReused));
        }
        row.maybe_text(1)
    }
}

/// A write that came to nothing: its answer is kept under its key all the same, so that a repeat gets it again and
/// does not change what others have written meanwhile.
struct Settled<O>(O);

#[async_trait]
impl<O: Clone + Send + Sync + 'static> Work for Settled<O> {
    type Output = O;
    const NAME: &'static str = "settled";

    async fn run(&self, _transaction: &mut Transaction<'_>) -> Result<O, Failure> {
        Ok(self.0.clone())
    }
}

/// Forgets one key: what it has done is undone, so a repeat is to do it anew.
pub(crate) struct ForgetKey {
    principal: String,
    key: String,
}

impl ForgetKey {
    /// The key of this context, if it has one.
    pub(crate) fn of(context: &WriteContext) -> Option<ForgetKey> {
        let idempotency = context.idempotency.as_ref()?;
        Some(ForgetKey {
            principal: context.principal.clone(),
            key: idempotency.key.clone(),
        })
    }
}

#[async_trait]
impl Work for ForgetKey {
    type Output = ();
    const NAME: &'static str = "forget_key";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<(), Failure> {
        let values = [self.principal.as_str().into(), self.key.as_str().into()];
        transaction.run(&FORGET_KEY, &values).await.map(drop)
    }
}

/// Forgets one bounded batch of keys past their time.
pub(crate) struct ForgetKeys {
    pub(crate) older_than_ms: i64,
}

#[async_trait]
impl Work for ForgetKeys {
    type Output = u64;
    const NAME: &'static str = "forget_keys";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<u64, Failure> {
        let mut forgotten = 0;
        for mut row in transaction
            .rows(&FIND_OLD_KEYS, &[self.older_than_ms.into()])
            .await?
        {
            forgotten += transaction
                .run(&FORGET_KEY, &[row.text(0)?.into(), row.text(1)?.into()])
                .await?;
        }
        Ok(forgotten)
    }
}
