//! The bodies of requests: each within bounds of size and time, and all that are in hand at one time within one bound of
//! memory.
//!
//! A body is read before its request has a turn, or a few clients that send slowly would have all of them. So many more
//! requests than have turns may be reading, and what bounds their bytes is not their number: every piece takes its room
//! as it arrives, and where there is none the request is refused instead of waiting with what it has.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::{App, Limits};
use crate::error::Refusal;

/// Room among the bytes of all bodies, given back when it is dropped.
#[derive(Default)]
pub(crate) struct Room(Option<OwnedSemaphorePermit>);

impl Room {
    /// Takes room for so many bytes more, if there is any.
    fn grow(&mut self, bodies: &Arc<Semaphore>, bytes: usize) -> Result<(), Refusal> {
        let taken = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| Arc::clone(bodies).try_acquire_many_owned(bytes).ok())
            .ok_or_else(|| {
                Refusal::timed_out("the server has no room for another body now; send the request again")
            })?;
        match &mut self.0 {
            Some(held) => held.merge(taken),
            None => self.0 = Some(taken),
        }
        Ok(())
    }
}

/// Reads a body within the limits of size, time and memory. The room is to be kept for as long as the bytes are.
pub(crate) async fn read_within(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, Room), Refusal> {
    let Limits {
        body_bytes_max,
        body_read_max,
        ..
    } = app.limits();
    let reading = read(app.bodies(), headers, body, body_bytes_max);
    tokio::time::timeout(body_read_max, reading)
        .await
        .unwrap_or_else(|_| Err(Refusal::too_slow()))
}

/// Reads a body up to the limit.
async fn read(
    bodies: &Arc<Semaphore>,
    headers: &HeaderMap,
    mut body: Body,
    bytes_max: usize,
) -> Result<(Bytes, Room), Refusal> {
    let read = if declared_length(headers).is_some_and(|length| length > bytes_max as u64) {
        Err(Refusal::too_large(bytes_max))
    } else {
        read_frames(bodies, &mut body, bytes_max).await
    };
    if read.is_err() {
        discard(headers, body, bytes_max).await;
    }
    read
}

async fn read_frames(
    bodies: &Arc<Semaphore>,
    body: &mut Body,
    bytes_max: usize,
) -> Result<(Bytes, Room), Refusal> {
    let (mut read, mut room) = (Vec::new(), Room::default());
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(Refusal::invalid("the body broke off"));
        };
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > bytes_max {
            return Err(Refusal::too_large(bytes_max));
        }
        room.grow(bodies, data.len())?;
        if read.is_empty() && body.is_end_stream() {
            return Ok((data, room)); // the usual body is one frame, and needs no copy
        }
        read.extend_from_slice(&data);
    }
    Ok((read.into(), room))
}

/// Reads and forgets what a client still sends, within bounds, so that it comes to reading the refusal: a connection
/// that is closed with unread bytes is reset, and the answer may be lost with it.
pub(crate) async fn discard(headers: &HeaderMap, mut body: Body, bytes_max: usize) {
    const LIMITS_DISCARDED_MAX: usize = 16;
    const WAIT_MAX: Duration = Duration::from_secs(5);
    if headers.contains_key(EXPECT) {
        return; // the client waits for a word before it sends, and this is the word
    }
    let drain = async {
        let mut left = bytes_max.saturating_mul(LIMITS_DISCARDED_MAX);
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            if length > left {
                break;
            }
            left -= length;
        }
    };
    let _ = tokio::time::timeout(WAIT_MAX, drain).await;
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
