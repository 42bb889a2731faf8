//! What only a database behind a wire can show: a connection that is lost in the worst moment.

use std::time::{Duration, Instant};

use treeline_core::kinds::{Catalog, Metalake, Model, ModelVersion, Schema};
use treeline_core::{Draft, Error, Kind, NewEntity, Path, Payload};
use treeline_storage::{DropRule, Store};

use crate::harness::{Bed, context, name, tests};
use crate::proxy::{Cut, Proxy};

tests! {
    a_commit_whose_answer_is_lost_is_settled_by_its_feed_row,
    a_starved_queue_says_so_within_its_bound,
    a_wrong_password_or_database_is_refused_and_never_shown,
}

pub(crate) async fn behind_wire(bed: &Bed) -> (Store, Proxy) {
    let (proxy, url) = bed.through_proxy().await;
    (bed.another_store(|options| options.url = url).await, proxy)
}

/// Both ways for each protocol: the commit took effect, or it did not. Either way the client gets its success, and
/// there is exactly one effect (INV-12).
async fn a_commit_whose_answer_is_lost_is_settled_by_its_feed_row(bed: Bed) {
    let model = bed.model().await;
    let (store, wire) = behind_wire(&bed).await;
    for (cut, text) in [(Cut::Before, "before"), (Cut::After, "after")] {
        let feed_before = bed.rows("feed").await.len();
        let cutting = Cutting {
            bed: &bed,
            store: &store,
            wire: &wire,
            cut,
            text,
        };
        cutting.create_and_drop().await;
        cutting.create_child(&model.parent().unwrap()).await;
        cutting.create_at(&model.parent().unwrap()).await;
        cutting.alter(&model.parent().unwrap()).await;
        cutting.link(&model).await;
        // Three creates, a drop, an update, and the two rows of a link.
        assert_eq!(bed.rows("feed").await.len(), feed_before + 7, "{text}");
    }
}

/// Each operation of one round, with its commit cut.
struct Cutting<'a> {
    bed: &'a Bed,
    store: &'a Store,
    wire: &'a Proxy,
    cut: Cut,
    text: &'static str,
}

impl Cutting<'_> {
    /// What is one statement on PostgreSQL has no commit of its own; it is known by a value that it carries.
    fn arm_fused(&self, value: &'static str) {
        self.wire
            .arm(self.cut, if self.bed.fuses() { value } else { "COMMIT" });
    }

    async fn create_and_drop(&self) {
        let path = Path::metalake(name(self.text));
        self.wire.arm(self.cut, "COMMIT");
        let new = NewEntity {
            name: name(self.text),
            payload: Metalake::default(),
        };
        let created = self.store.create(&context(), None, new).await.unwrap();
        assert!(self.wire.spent());
        assert_eq!(self.bed.resolve(&path).await.tag(), created.tag());
        assert_eq!(self.bed.count("entities", "name", self.text).await, 1);

        self.wire.arm(self.cut, "COMMIT");
        let resolved = self.store.resolve(&path).await.unwrap();
        assert!(
            self.store
                .drop(&context(), resolved, DropRule::default())
                .await
                .unwrap()
        );
        assert!(self.wire.spent());
        assert!(self.bed.store.resolve(&path).await.is_err());
    }

    async fn create_child(&self, schema: &Path) {
        self.arm_fused("cut model");
        let parent = self.store.resolve(schema).await.unwrap();
        let payload = Model {
            comment: Some("cut model".to_owned()),
            ..Model::default()
        };
        let new = NewEntity {
            name: name(self.text),
            payload,
        };
        let created = self.store.create(&context(), Some(&parent), new).await.unwrap();
        assert!(self.wire.spent());
        let path = schema.child(Kind::Model, name(self.text));
        assert_eq!(self.bed.resolve(&path).await.id(), created.id);
    }

    async fn create_at(&self, schema: &Path) {
        self.arm_fused("cut at once");
        let path = schema.child(Kind::Model, name(&format!("{}_at", self.text)));
        let payload = Model {
            comment: Some("cut at once".to_owned()),
            ..Model::default()
        };
        let catalog = Catalog::sample().provider().unwrap();
        let created = self.store.create_at(&context(), &path, catalog, &payload).await;
        let created = created.unwrap().unwrap();
        assert!(self.wire.spent());
        assert_eq!(self.bed.resolve(&path).await.id(), created.id);
    }

    async fn alter(&self, schema: &Path) {
        self.arm_fused("cut property");
        let resolved = self.store.resolve(schema).await.unwrap();
        let before = resolved.tag().version;
        let text = self.text;
        let change = move |draft: &mut Draft<Schema>| {
            draft
                .payload
                .properties
                .insert("cut property".to_owned(), text.to_owned());
            Ok(())
        };
        let altered = self.store.alter(&context(), resolved, change).await.unwrap();
        assert!(self.wire.spent());
        assert_eq!(altered.version, before.next());
        assert_eq!(self.bed.resolve(schema).await.tag(), altered.tag());
    }

    async fn link(&self, model: &Path) {
        let given = async || {
            self.bed
                .resolve(model)
                .await
                .entity::<Model>()
                .unwrap()
                .payload
                .latest_version
        };
        let before = given().await;
        self.wire.arm(self.cut, "COMMIT");
        let resolved = self.store.resolve(model).await.unwrap();
        let version = ModelVersion {
            aliases: Default::default(),
            ..ModelVersion::sample()
        };
        let linked = self.store.link(&context(), resolved, &version).await.unwrap();
        assert!(self.wire.spent());
        assert_eq!(linked.name, name(&before.to_string()));
        assert_eq!(given().await, before + 1);
    }
}

/// The only connection waits for a stranger's row. Who comes meanwhile is told so, and soon.
async fn a_starved_queue_says_so_within_its_bound(bed: Bed) {
    const LATE: Duration = Duration::from_secs(2);
    let mut options = bed.options.clone();
    (options.connections_max, options.acquire_ms_max) = (1, 200);
    let narrow = Store::open(options).await.unwrap();
    let path = bed.model().await;
    let row = bed.resolve(&path).await;
    let lock = format!(
        "START TRANSACTION; SELECT 1 FROM entities WHERE id = {} FOR UPDATE",
        row.id()
    );
    let stranger = bed.hold(lock).await;
    let writer = {
        let narrow = narrow.clone();
        tokio::spawn(async move { narrow.drop(&context(), row, DropRule::default()).await })
    };
    // Until the writer has the connection, a reader may come first.
    loop {
        let begun = Instant::now();
        let outcome = narrow.resolve(&path).await;
        assert!(begun.elapsed() < Duration::from_millis(200) + LATE);
        assert!(!writer.is_finished());
        match outcome {
            Ok(_) => tokio::task::yield_now().await,
            Err(Error::Unavailable { .. }) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    stranger.end().await;
    assert!(writer.await.unwrap().unwrap());
    assert!(matches!(narrow.resolve(&path).await, Err(Error::NotFound { .. })));
}

async fn a_wrong_password_or_database_is_refused_and_never_shown(bed: Bed) {
    let mut wrong = bed.options.clone();
    wrong.password = Some("sesame-open".to_owned());
    let refused = Store::open(wrong).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid { field, .. } if field == "database"),
        "{refused}"
    );
    assert!(!format!("{refused} {refused:?}").contains("sesame-open"));
    let mut missing = bed.options.clone();
    missing.url.push_str("_is_not_there");
    let refused = Store::open(missing).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid { field, .. } if field == "database"),
        "{refused}"
    );
}
