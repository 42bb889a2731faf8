//! The generic verbs: list, create, load, alter, switch and drop of any kind.
//!
//! A handler takes the path, the write context and the body, calls the dispatcher and wraps the answer. A write runs
//! on a task of its own, so that it is carried through when its client goes away in the middle.

use axum::extract::State;
use axum::http::HeaderMap;
use treeline_core::kinds::SwitchableChange;
use treeline_core::{Entity, Error, Missing, Path, Result};
use treeline_dispatch::DropMode;

use crate::app::App;
use crate::conditional;
use crate::envelope::{self, Answer, Each};
use crate::error::{Asked, is_dropped_already};
use crate::extract::{Json, Query, Segments, Write};
use crate::wire::{Create, Identifier, Listing, Moment, New, SwitchBody, Updates, Wire};

/// `GET` on a collection.
pub(crate) async fn list<W: Create>(State(app): State<App>, at: Segments, query: Query) -> Answer {
    let asked = Asked::collection(W::KIND);
    let parent = at.parent(W::KIND).map_err(|error| asked.refuse(error))?;
    let whole = match W::LISTING {
        Listing::Full => true,
        Listing::NamesOrDetails => query.flag("details"),
        Listing::Names => false,
    };
    if whole {
        let found = app.dispatcher().list::<W>(parent.as_ref()).await;
        return Ok(envelope::entities(
            W::KIND.row().segment,
            &found.map_err(|error| asked.refuse(error))?,
        ));
    }
    let found = app.dispatcher().list_names(parent.as_ref(), W::KIND).await;
    let found = found.map_err(|error| asked.refuse(error))?;
    let identifiers = || found.iter().map(|name| Identifier::under(parent.as_ref(), name));
    Ok(envelope::one("identifiers", Each(identifiers)))
}

/// `POST` on a collection.
pub(crate) async fn create<W: Create>(
    State(app): State<App>,
    at: Segments,
    write: Write,
    Json(body): Json<W::Body>,
) -> Answer {
    let asked = Asked {
        only_if_absent: write.only_if_absent,
        ..Asked::collection(W::KIND)
    };
    let named = || -> Result<(Path, W::New)> {
        let parent = at.parent(W::KIND)?;
        let (name, new) = W::read(body)?;
        let path = match parent {
            Some(parent) => parent.child(W::KIND, name),
            None => Path::metalake(name),
        };
        Ok((path, new))
    };
    let (path, new) = named().map_err(|error| asked.refuse(error))?;
    let dispatcher = app.dispatcher().clone();
    let made = async move { new.create(&dispatcher, &write.context, &path).await };
    Ok(envelope::entity(&app.write(asked, made).await?, Moment::Written))
}

/// `GET` on an entity.
pub(crate) async fn load<W: Wire>(State(app): State<App>, at: Segments, headers: HeaderMap) -> Answer {
    let path = at
        .path(W::KIND)
        .map_err(|error| Asked::entity(W::KIND).refuse(error))?;
    load_at::<W>(&app, &path, &headers).await
}

/// Loads what is at this path; `304` if the client holds its state already.
pub(crate) async fn load_at<W: Wire>(app: &App, path: &Path, headers: &HeaderMap) -> Answer {
    let found = app.dispatcher().load::<W>(path).await;
    let found = found.map_err(|error| Asked::entity(W::KIND).refuse(error))?;
    if conditional::is_held(headers, found.tag()) {
        return Ok(envelope::not_modified(found.tag()));
    }
    Ok(envelope::entity(&found, Moment::Read))
}

/// `PUT` on an entity.
pub(crate) async fn alter<W: Wire>(
    State(app): State<App>,
    at: Segments,
    write: Write,
    Json(body): Json<Updates<W::Update>>,
) -> Answer {
    let path = at
        .path(W::KIND)
        .map_err(|error| Asked::entity(W::KIND).refuse(error))?;
    alter_at::<W>(&app, path, write, body).await
}

/// Applies these changes to what is at this path.
async fn alter_at<W: Wire>(app: &App, path: Path, write: Write, body: Updates<W::Update>) -> Answer {
    let dispatcher = app.dispatcher().clone();
    answer_alter::<W, _>(app, body, |changes| async move {
        dispatcher.alter::<W>(&write.context, &path, changes).await
    })
    .await
}

/// Carries the changes of a body through, and shows what has become of the entity.
pub(crate) async fn answer_alter<W: Wire, F: Future<Output = Result<Entity<W>>> + Send + 'static>(
    app: &App,
    body: Updates<W::Update>,
    alter: impl FnOnce(Vec<W::Change>) -> F,
) -> Answer {
    let asked = Asked::entity(W::KIND);
    let changes: Result<Vec<_>> = body.updates.into_iter().map(W::change).collect();
    let altered = alter(changes.map_err(|error| asked.refuse(error))?);
    Ok(envelope::entity(
        &app.write(asked, altered).await?,
        Moment::Written,
    ))
}

/// `PATCH` on an entity: turns it on or off.
pub(crate) async fn switch<W: Wire<Change = SwitchableChange>>(
    State(app): State<App>,
    at: Segments,
    write: Write,
    Json(body): Json<SwitchBody>,
) -> Answer {
    let asked = Asked::entity(W::KIND);
    let path = at.path(W::KIND).map_err(|error| asked.refuse(error))?;
    let dispatcher = app.dispatcher().clone();
    let change = vec![SwitchableChange::SetInUse(body.in_use)];
    let altered = async move { dispatcher.alter::<W>(&write.context, &path, change).await };
    let altered = app.write(asked, altered).await?;
    Ok(envelope::tagged(envelope::done(), altered.tag()))
}

/// `DELETE` on an entity.
pub(crate) async fn drop<W: Wire>(
    State(app): State<App>,
    at: Segments,
    query: Query,
    write: Write,
) -> Answer {
    let cascade = W::CASCADE_FLAG.is_some_and(|flag| query.flag(flag));
    let mode = if cascade {
        DropMode::Cascade
    } else {
        DropMode::Plain
    };
    drop_at::<W>(&app, at.path(W::KIND), write, mode).await
}

/// Drops what is at this path.
async fn drop_at<W: Wire>(app: &App, path: Result<Path>, write: Write, mode: DropMode) -> Answer {
    let (dispatcher, context) = (app.dispatcher().clone(), write.context.clone());
    let named = path.as_ref().map_or(String::new(), Path::to_string);
    let drop = async move { dispatcher.drop(&context, &path?, mode).await };
    answer_drop::<W>(app, write, named, drop).await
}

/// Carries a drop through. That there is nothing is no error, in most places, unless the client pinned it; under a key it
/// is kept, so that a repeat does not drop a successor.
pub(crate) async fn answer_drop<W: Wire>(
    app: &App,
    write: Write,
    named: String,
    drop: impl Future<Output = Result<bool>> + Send + 'static,
) -> Answer {
    let pinned = write.is_pinned();
    let dispatcher = app.dispatcher().clone();
    let outcome = app.run(async move {
        match drop.await {
            Ok(false) if pinned => Err(Error::not_found(W::KIND, named)),
            Err(Error::NotFound {
                what: Missing::Entity(level),
                ..
            }) if !pinned && is_dropped_already(W::KIND, level) => {
                dispatcher.settle_empty_drop(&write.context).await
            }
            outcome => outcome,
        }
    });
    let dropped = outcome
        .await
        .map_err(|error| Asked::entity(W::KIND).refuse(error))?;
    Ok(envelope::dropped(dropped))
}
