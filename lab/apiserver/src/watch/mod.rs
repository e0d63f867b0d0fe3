//! `watch`: the events of a collection, line by line.
//!
//! A watch has no queue of its own: it reads the history of its collection from its current
//! version. If it falls behind the history, it ends with 410, as in kube-apiserver.

mod coalesced;
mod first;
mod line;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use tokio::time::{Instant, sleep, sleep_until};

use crate::call::Call;
use crate::error::ApiError;
use crate::faults::{Break, Fault};
use crate::notify::Receiver;
use crate::request::ListOptions;
use crate::response::{self, Body, disconnected};
use crate::selector::Selector;
use crate::store::{Change, Event, Forgotten};

use coalesced::coalesced;
use line::{Line, Text};

/// The interval of bookmarks; that of kube-apiserver.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);

/// Starts a watch. Only errors of the request itself are returned here; later ones, such as an
/// expired version, are lines of the watch.
pub(crate) fn start(call: &Call) -> Result<Response<Body>, ApiError> {
    let selector = Selector::new(&call.kind, &call.path, &call.query)?;
    let options = ListOptions::read(&call.query, true)?;
    let (changes, first, started) = {
        let mut state = call.server.state();
        let now = state.version;
        let collection = state.collection(&call.kind.collection());
        let first = first::first(&options, collection, &selector, now);
        (collection.changes(), first, now)
    };
    let (lines, at) = match first {
        Ok(first) => first,
        Err(error) => {
            let only = Text::error(&error).into_string();
            return Ok(response::json(StatusCode::OK, only, &[]));
        }
    };
    let now = Instant::now();
    let mut watch = Watch {
        faults: call.server.faults().changes(),
        call: call.clone(),
        selector,
        changes,
        at,
        started,
        lines: VecDeque::new(),
        next_bookmark: options.bookmarks.then(|| now + BOOKMARK_PERIOD),
        ends: now + first::duration(&options),
        is_first: true,
        is_cut: false,
        is_over: false,
    };
    for line in lines {
        watch.push(&line)?;
    }
    let stream = futures::stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((line, watch))
    });
    Ok(response::lines(stream))
}

#[derive(Debug)]
struct Watch {
    call: Call,
    selector: Selector,
    changes: Receiver,
    faults: Receiver,
    /// The version up to which all events are sent or in `lines`.
    at: u64,
    /// The version at which the watch started.
    started: u64,
    lines: VecDeque<Text>,
    next_bookmark: Option<Instant>,
    ends: Instant,
    /// True until the first table is sent.
    is_first: bool,
    /// True once half a line is written: the connection is lost next.
    is_cut: bool,
    is_over: bool,
}

impl Watch {
    /// Returns the next line, `None` at the end, or an error if the connection is lost.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.is_over {
                return None;
            }
            if self.is_cut {
                return Some(self.cut());
            }
            let broken = self.call.server.faults().of_open_watch(&self.call.info);
            match broken {
                Some(Break::Disconnected) => return Some(self.cut()),
                Some(Break::Silent) => {
                    self.call
                        .server
                        .faults()
                        .silence_over(&self.call.info)
                        .await;
                    return Some(self.cut());
                }
                None => {}
            }
            if let Some(text) = self.lines.pop_front() {
                match self.write(text) {
                    Some(written) => return Some(written),
                    None => continue,
                }
            }
            if self.has_events() {
                let delay = self.call.server.faults().delay(&self.call.info);
                if let Some((by, _)) = delay {
                    sleep(by).await;
                }
                if let Err(error) = self.read_on(delay.is_some_and(|(_, coalesce)| coalesce)) {
                    self.lines.push_back(Text::error(&error));
                }
                continue;
            }
            if self.has_ended() {
                return None;
            }
            self.wait().await;
        }
    }

    /// Waits until there may be something to send.
    async fn wait(&mut self) {
        let bookmark = self.next_bookmark.unwrap_or(self.ends).min(self.ends);
        tokio::select! {
            biased;
            // In this order (`biased`), so that a run is reproducible, and a fault ends the watch
            // before pending events are sent.
            () = self.faults.changed() => {}
            () = self.changes.changed() => {}
            () = sleep_until(self.ends) => self.is_over = true,
            () = sleep_until(bookmark) => self.bookmark(),
        }
    }

    /// Queues a bookmark with the latest version, unless events come first.
    fn bookmark(&mut self) {
        if self.next_bookmark.is_none() {
            return;
        }
        let version = {
            let mut state = self.call.server.state();
            let version = state.version;
            let collection = state.collection(&self.call.kind.collection());
            match collection
                .since(self.at)
                .map(|mut events| events.next().is_some())
            {
                Ok(false) => version,
                Ok(true) | Err(_) => return,
            }
        };
        self.at = version;
        self.next_bookmark = Some(Instant::now() + BOOKMARK_PERIOD);
        let line = Line::Bookmark {
            version,
            ends_initial: false,
        };
        if let Ok(text) = line.text(&self.call, &mut self.is_first) {
            self.lines.push_back(text);
        }
    }

    fn cut(&mut self) -> io::Result<Bytes> {
        self.is_over = true;
        Err(disconnected())
    }

    /// Applies faults to a line, and returns `None` if it is withheld.
    fn write(&mut self, text: Text) -> Option<io::Result<Bytes>> {
        let faults = self.call.server.faults();
        if let Text::Bookmark(_) = text
            && faults.withhold_bookmark(&self.call.info)
        {
            return None;
        }
        let fault = faults.of_line(&self.call.info);
        match (fault, text) {
            (Some(Fault::CutWatch { inside_line: true }), text) => {
                let text = text.into_string();
                let half = text.floor_char_boundary(text.len() / 2);
                self.is_cut = true;
                Some(Ok(Bytes::from(text[..half].to_owned())))
            }
            (Some(Fault::CutWatch { .. }), _) => Some(self.cut()),
            (Some(Fault::ExpireWatch), _) => {
                self.is_over = true;
                let error =
                    ApiError::expired("The resourceVersion for the provided watch is too old.");
                Some(Ok(Bytes::from(Text::error(&error).into_string())))
            }
            (Some(Fault::FailWatch), _) => {
                self.is_over = true;
                let error = ApiError::internal("etcdserver: no leader");
                Some(Ok(Bytes::from(Text::error(&error).into_string())))
            }
            (_, Text::Error(text)) => {
                self.is_over = true;
                Some(Ok(Bytes::from(text)))
            }
            (_, Text::Event(text) | Text::Bookmark(text)) => Some(Ok(Bytes::from(text))),
        }
    }

    fn has_events(&mut self) -> bool {
        // Before the look at the history, so that an event between the two wakes `wait`.
        self.changes.mark_seen();
        let mut state = self.call.server.state();
        let collection = state.collection(&self.call.kind.collection());
        collection
            .since(self.at)
            .map_or(true, |mut events| events.next().is_some())
    }

    /// Returns `true` once the definition of the kind is deleted.
    fn has_ended(&self) -> bool {
        let mut state = self.call.server.state();
        state.collection(&self.call.kind.collection()).ended > self.started
    }

    /// Turns the events since the current version into lines.
    fn read_on(&mut self, coalesce: bool) -> Result<(), ApiError> {
        let mut events: Vec<Event> = {
            let mut state = self.call.server.state();
            let collection = state.collection(&self.call.kind.collection());
            let events = collection.since(self.at).map_err(|Forgotten { oldest }| {
                ApiError::expired(format!("too old resource version: {} ({oldest})", self.at))
            })?;
            events.cloned().collect()
        };
        if let Some(last) = events.last() {
            self.at = last.object.version;
        }
        if coalesce {
            events = coalesced(events);
        }
        for event in events {
            if let Some(line) = self.line_of(&event) {
                self.push(&line)?;
            }
        }
        Ok(())
    }

    /// Translates an event for a selector: an object that starts to match is added, one that stops
    /// matching is deleted.
    fn line_of(&self, event: &Event) -> Option<Line> {
        let before = event
            .before
            .as_ref()
            .filter(|before| self.selector.matches(before));
        let is_selected = event.change != Change::Deleted && self.selector.matches(&event.object);
        match (before, is_selected) {
            (None, false) => None,
            (None, true) => Some(Line::Object(Change::Added, event.object.clone())),
            (Some(_), true) => Some(Line::Object(Change::Modified, event.object.clone())),
            (Some(_), false) if event.change == Change::Deleted => {
                Some(Line::Object(Change::Deleted, event.object.clone()))
            }
            (Some(before), false) => Some(Line::Unselected(before.clone(), event.object.version)),
        }
    }

    fn push(&mut self, line: &Line) -> Result<(), ApiError> {
        let text = line.text(&self.call, &mut self.is_first)?;
        self.lines.push_back(text);
        Ok(())
    }
}
