//! Reading a body into memory: bounded in size, in time, and in what the whole process buffers.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, BufMut as _, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;

use crate::store::BoxError;
use crate::time::within;

static BUFFERED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of the process's budget, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Buffered(usize);

impl Buffered {
    pub(super) const fn none() -> Self {
        Self(0)
    }

    /// Takes `more` bytes of the budget, if it has them.
    fn grow(&mut self, more: usize, budget: usize) -> bool {
        let taken = BUFFERED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|sum| *sum <= budget)
        });
        if taken.is_ok() {
            self.0 += more;
        }
        taken.is_ok()
    }
}

impl Drop for Buffered {
    fn drop(&mut self) {
        BUFFERED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// What may be buffered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The setting that raises the first of them.
    pub(super) name: &'static str,
    /// Of this body, in bytes.
    pub(super) body: usize,
    /// Of the whole process, in bytes.
    pub(super) budget: usize,
    /// From the first to the last byte.
    pub(super) time: Duration,
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("the body is larger than `{name}`, {limit} bytes: it has {at_least} at least")]
    TooLarge { name: &'static str, limit: usize, at_least: usize },
    #[error("this process already buffers nearly {budget} bytes of bodies; it would be over its budget")]
    OverBudget { budget: usize },
    #[error("the body did not come within {limit:?}")]
    Slow { limit: Duration },
    #[error("the body ended early or could not be read")]
    Broken(#[source] BoxError),
}

/// Reads the whole body. Its bytes count against the budget as long as the second value lives.
pub(super) async fn read<B>(body: B, limits: Limits) -> Result<(Bytes, Buffered), Unread>
where
    B: Body<Error: Into<BoxError>>,
{
    within(limits.time, pin!(gather(body, limits))).await.unwrap_or(Err(Unread::Slow { limit: limits.time }))
}

async fn gather<B>(body: B, limits: Limits) -> Result<(Bytes, Buffered), Unread>
where
    B: Body<Error: Into<BoxError>>,
{
    if body.is_end_stream() {
        return Ok((Bytes::new(), Buffered::none()));
    }
    let mut body = pin!(body);
    let hint = body.size_hint();
    let told = usize::try_from(hint.lower()).unwrap_or(usize::MAX);
    if told > limits.body {
        return Err(Unread::TooLarge { name: limits.name, limit: limits.body, at_least: told });
    }
    let mut buffered = Buffered::none();
    let over = Unread::OverBudget { budget: limits.budget };
    if !buffered.grow(told, limits.budget) {
        return Err(over);
    }
    let mut all = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Unread::Broken(error.into()))?;
        let Ok(mut data) = frame.into_data() else { continue };
        length += data.remaining();
        if length > limits.body {
            return Err(Unread::TooLarge { name: limits.name, limit: limits.body, at_least: length });
        }
        if length > buffered.0 && !buffered.grow(length - buffered.0, limits.budget) {
            return Err(over);
        }
        if length == data.remaining() && body.is_end_stream() {
            // The one frame of a small body is taken as it is.
            return Ok((data.copy_to_bytes(length), buffered));
        }
        if all.capacity() == 0 {
            all.reserve(told.max(length));
        }
        all.put(data);
    }
    Ok((all.freeze(), buffered))
}
