//! A headless Chromium, driven over the `DevTools` protocol as a person would use it: elements are
//! found by their accessible names, and pressed with the mouse or the keyboard.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use chromiumoxide::{
    Browser, BrowserConfig, Page,
    cdp::{
        browser_protocol::{
            accessibility::QueryAxTreeParams,
            dom::{BackendNodeId, FocusParams, GetDocumentParams, ResolveNodeParams},
            emulation::{MediaFeature, SetDeviceMetricsOverrideParams},
            input::InsertTextParams,
            log::EventEntryAdded,
            page::CaptureScreenshotFormat,
        },
        js_protocol::runtime::{
            CallFunctionOnParams, EventConsoleApiCalled, EventExceptionThrown, RemoteObjectId,
        },
    },
    layout::Point,
    page::ScreenshotParams,
};
use futures::StreamExt;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::{task::AbortHandle, time::timeout};

use crate::scratch;

/// A limit longer than any threshold of the sandbox on a slow machine.
const LIMIT: Duration = Duration::from_mins(2);

/// Returns the position of an element once it has not moved for a frame. A click that would hit another
/// element is suppressed.
const AIM: &str = "async function () {
    this.scrollIntoView({ block: 'center', behavior: 'instant' });
    const middle = () => {
        const { x, y, width, height } = this.getBoundingClientRect();
        return [x + width / 2, y + height / 2];
    };
    for (let before; String(before) !== String(middle());) {
        before = middle();
        await new Promise(requestAnimationFrame);
    }
    this.wasHit = false;
    this.judge = (event) => {
        this.wasHit = this.contains(event.target);
        if (!this.wasHit) { event.preventDefault(); event.stopImmediatePropagation(); }
    };
    window.addEventListener('click', this.judge, { capture: true });
    return middle();
}";

/// Returns `true` if the click hit the element.
const WAS_HIT: &str = "function () {
    window.removeEventListener('click', this.judge, { capture: true });
    return this.wasHit;
}";

/// A running browser. Dropping it kills it.
#[derive(Debug)]
#[must_use = "it is killed when dropped"]
pub struct Chromium {
    browser: Browser,
    connection: AbortHandle,
    _profile: TempDir,
}

/// The screen and the preferences of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The width in CSS pixels.
    pub width: u32,
    /// The height in CSS pixels.
    pub height: u32,
    /// True if the reader prefers a dark page.
    pub dark: bool,
}

impl View {
    /// A large screen.
    pub const WIDE: Self = Self {
        width: 1600,
        height: 1000,
        dark: false,
    };
}

/// The input device that presses a button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    /// A mouse, which clicks in the middle.
    Mouse,
    /// A key, pressed while the button has the focus.
    Key(&'static str),
}

impl Chromium {
    /// Starts a browser with a profile of its own.
    pub async fn start() -> Result<Self> {
        let executable = tools::chromium::executable()?;
        let profile = scratch::folder("chromium")?;
        let config = BrowserConfig::builder()
            .chrome_executable(executable)
            .new_headless_mode()
            // Chromium refuses to sandbox root, the only user in a namespace.
            .no_sandbox()
            .user_data_dir(profile.path())
            .viewport(None)
            .launch_timeout(LIMIT)
            .request_timeout(LIMIT)
            .build()
            .map_err(anyhow::Error::msg)?;
        let (browser, mut events) = Browser::launch(config)
            .await
            .context("cannot start Chromium")?;
        let connection = tokio::spawn(async move { while events.next().await.is_some() {} });
        Ok(Self {
            browser,
            connection: connection.abort_handle(),
            _profile: profile,
        })
    }

    /// Opens a page in a tab of its own.
    pub async fn open(&self, address: &str, view: View) -> Result<Tab> {
        let page = self.browser.new_page("about:blank").await?;
        let complaints = Arc::default();
        listen(&page, &complaints).await?;
        let tab = Tab { page, complaints };
        tab.look(view).await?;
        tab.page.goto(address).await?;
        Ok(tab)
    }

    /// Ends the browser and waits for that.
    pub async fn stop(mut self) -> Result<()> {
        self.browser.close().await?;
        self.browser.wait().await?;
        Ok(())
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// An open page.
#[derive(Debug)]
pub struct Tab {
    page: Page,
    complaints: Arc<Mutex<Vec<String>>>,
}

impl Tab {
    /// Changes the size of the screen and the colours that the reader prefers.
    pub async fn look(&self, view: View) -> Result<()> {
        let View {
            width,
            height,
            dark,
        } = view;
        self.page
            .execute(SetDeviceMetricsOverrideParams::new(
                width, height, 1.0, false,
            ))
            .await?;
        let scheme = MediaFeature::new("prefers-color-scheme", if dark { "dark" } else { "light" });
        self.page.emulate_media_features(vec![scheme]).await?;
        Ok(())
    }

    /// Evaluates an expression in the page.
    pub async fn value<T: DeserializeOwned>(&self, expression: &str) -> Result<T> {
        let result = self.page.evaluate_expression(expression).await;
        let result = result.with_context(|| format!("cannot evaluate {expression}"))?;
        result
            .into_value()
            .with_context(|| format!("unexpected value of {expression}"))
    }

    /// Waits until an expression is true. The page evaluates it after every change of its document.
    ///
    /// # Errors
    /// The text of the page, after a limit.
    pub async fn until(&self, what: &str, expression: &str) -> Result<()> {
        let limit = LIMIT.as_millis() / 2;
        let script = format!(
            "new Promise((done) => {{
                const look = () => {{ if ({expression}) finish(true); }};
                const observer = new MutationObserver(look);
                const timer = setTimeout(() => finish(false), {limit});
                const finish = (seen) => {{ observer.disconnect(); clearTimeout(timer); done(seen); }};
                observer.observe(document, {{ attributes: true, characterData: true, childList: true, subtree: true }});
                look();
            }})"
        );
        let seen = self.page.evaluate(script.as_str()).await;
        if seen
            .with_context(|| format!("cannot wait until {what}"))?
            .into_value()?
        {
            return Ok(());
        }
        let text: String = self.value("document.body.innerText").await?;
        bail!("never: {what}; the text of the page is\n{text}")
    }

    /// Presses the button of this name in the part of the page of that name.
    pub async fn press(&self, part: &str, button: &str, with: With) -> Result<()> {
        let pressing = async {
            let button = self.within(part, "button", button).await?;
            match with {
                With::Mouse => self.click(button).await,
                With::Key(key) => {
                    self.focus(button).await?;
                    self.key(key).await
                }
            }
        };
        pressing
            .await
            .with_context(|| format!("cannot press {button} of {part}"))
    }

    /// Clicks the box of this name, which ticks it or clears it, in the part of the page of that name.
    pub async fn tick(&self, part: &str, name: &str) -> Result<()> {
        let ticking = async {
            let found = self.within(part, "checkbox", name).await?;
            self.click(found).await
        };
        ticking
            .await
            .with_context(|| format!("cannot tick {name} of {part}"))
    }

    /// Replaces the text in the field of this name in the part of the page of that name.
    pub async fn fill(&self, part: &str, field: &str, text: &str) -> Result<()> {
        let filling = async {
            let found = self.within(part, "textbox", field).await?;
            self.focus(found).await?;
            let selected: bool = self
                .value("(document.activeElement.select(), true)")
                .await?;
            ensure!(selected, "its text cannot be selected");
            self.page.execute(InsertTextParams::new(text)).await?;
            Ok(())
        };
        filling
            .await
            .with_context(|| format!("cannot fill {field} of {part}"))
    }

    /// Presses a key.
    pub async fn key(&self, key: &str) -> Result<()> {
        let body = self.page.find_element("body").await?;
        body.press_key(key).await?;
        Ok(())
    }

    /// Reloads the page.
    pub async fn reload(&self) -> Result<()> {
        self.page.reload().await?;
        Ok(())
    }

    /// Takes a picture of the visible page, as PNG.
    pub async fn screenshot(&self) -> Result<Vec<u8>> {
        let png = ScreenshotParams::builder().format(CaptureScreenshotFormat::Png);
        Ok(self.page.screenshot(png.build()).await?)
    }

    /// Returns warnings, errors and exceptions of the page so far.
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.lock().clone()
    }

    async fn focus(&self, element: BackendNodeId) -> Result<()> {
        let focus = FocusParams::builder().backend_node_id(element).build();
        self.page.execute(focus).await?;
        Ok(())
    }

    /// Finds the one element of a role and an accessible name in the part of the page of that name.
    async fn within(&self, part: &str, role: &str, name: &str) -> Result<BackendNodeId> {
        let document = self.page.execute(GetDocumentParams::default()).await?;
        let root = document.result.root.backend_node_id;
        let part = self.named(root, None, part).await?;
        self.named(part, Some(role), name).await
    }

    /// Finds the one element of an accessible name within another element.
    async fn named(
        &self,
        root: BackendNodeId,
        role: Option<&str>,
        name: &str,
    ) -> Result<BackendNodeId> {
        let mut query = QueryAxTreeParams::builder()
            .backend_node_id(root)
            .accessible_name(name);
        if let Some(role) = role {
            query = query.role(role);
        }
        let found = self.page.execute(query.build()).await?.result.nodes;
        let mut found: Vec<_> = found.iter().filter(|node| !node.ignored).collect();
        // A text node has the same accessible name as its element.
        found.retain(|node| {
            let role = node.role.as_ref().and_then(|role| role.value.as_ref());
            !role.is_some_and(|role| role == "StaticText" || role == "InlineTextBox")
        });
        ensure!(
            found.len() == 1,
            "{} elements are called {name}",
            found.len()
        );
        found[0].backend_dom_node_id.context("it has no element")
    }

    /// Clicks in the middle of an element that does not move, and again if it moved meanwhile.
    async fn click(&self, element: BackendNodeId) -> Result<()> {
        let resolve = ResolveNodeParams::builder().backend_node_id(element);
        let resolved = self.page.execute(resolve.build()).await?.result.object;
        let element = resolved.object_id.context("it is gone")?;
        let clicking = async {
            loop {
                let (x, y) = self.call(&element, AIM).await?;
                self.page.click(Point::new(x, y)).await?;
                if self.call(&element, WAS_HIT).await? {
                    return Ok(());
                }
            }
        };
        let clicked = timeout(LIMIT, clicking).await;
        clicked.context("it never stands still")?
    }

    /// Calls a function as a method of an object in the page, and returns its result.
    async fn call<T: DeserializeOwned>(&self, of: &RemoteObjectId, function: &str) -> Result<T> {
        let call = CallFunctionOnParams::builder()
            .object_id(of.clone())
            .function_declaration(function)
            .await_promise(true)
            .return_by_value(true)
            .build()
            .map_err(anyhow::Error::msg)?;
        let answer = self.page.execute(call).await?.result;
        if let Some(exception) = answer.exception_details {
            bail!("{exception:?}");
        }
        let value = answer.result.value.context("it gives nothing")?;
        Ok(serde_json::from_value(value)?)
    }
}

/// Collects the warnings and errors of the browser's console.
async fn listen(page: &Page, complaints: &Arc<Mutex<Vec<String>>>) -> Result<()> {
    let mut exceptions = page.event_listener::<EventExceptionThrown>().await?;
    let mut calls = page.event_listener::<EventConsoleApiCalled>().await?;
    let mut entries = page.event_listener::<EventEntryAdded>().await?;
    page.enable_log().await?;
    page.enable_runtime().await?;
    let complaints = Arc::clone(complaints);
    tokio::spawn(async move {
        loop {
            let complaint = tokio::select! {
                biased;
                Some(exception) = exceptions.next() => format!("{:?}", exception.exception_details),
                Some(call) = calls.next() => format!("{:?}: {:?}", call.r#type, call.args),
                Some(entry) = entries.next() => format!("{:?}: {}", entry.entry.level, entry.entry.text),
                else => return,
            };
            complaints.lock().push(complaint);
        }
    });
    Ok(())
}
