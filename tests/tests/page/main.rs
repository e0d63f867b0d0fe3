//! The sandbox's page in a real browser.

use anyhow::{Result, bail, ensure};
use pipeline_tests::{
    chromium::{Chromium, Tab, View, With},
    fleet::isolated,
    kubectl::Kubectl,
    sandbox::Sandbox,
    test_name,
};

/// True while the page receives updates from the sandbox.
const LIVE: &str = "document.querySelector('#link').innerText === 'Live'";

/// The name of the part of the page on Remedies.
const REMEDIES: &str = "Remedies of the fleet";

/// Returns every text with a contrast below the 4.5 of WCAG 2.2, and its contrast.
const TOO_FAINT: &str = include_str!("too_faint.js");

/// `xtask test` skips these without Chromium.
mod in_chromium {
    mod placements;
    mod remedies;

    use super::*;

    /// DNS breaks and mends before the reader's eyes.
    #[test]
    #[ignore = "long"]
    fn dns_outage_is_shown() {
        on_the_page(test_name!(), async |tab| {
            tab.until("all are in service", &all_have("In service"))
                .await?;
            traffic_leaves(tab).await?;

            tab.press("Cluster member1", "Mend", With::Key("Enter"))
                .await?;
            tab.until("it is in service", &card_has("member1", "In service"))
                .await?;
            tab.until("requests return", &requests("member1", "> 0"))
                .await?;
            tab.until("their return is logged", &timeline_has("first request"))
                .await?;
            let mended = [
                "resolve in member1 again",
                "True",
                "remedyActions cleared",
                "no ingress blocks it",
                "first request",
            ];
            let before = timeline(tab).await?;
            in_order(&before, &mended)?;
            in_order(&before, &["resolve in member1 again", "votes healthy"])?;

            tab.reload().await?;
            tab.until("it is live again", LIVE).await?;
            tab.until("everything is logged again", &timeline_has("first request"))
                .await?;
            let after = timeline(tab).await?;
            for event in before {
                ensure!(after.contains(&event), "{event:?} is not in {after:#?}");
            }
            let marks = format!(
                "{}.querySelectorAll('.plot .mark').length === 2",
                card("member1")
            );
            tab.until("the plot shows the outage again", &marks).await
        });
    }

    #[test]
    fn the_plots_move() {
        on_the_page(test_name!(), async |tab| {
            for cluster in ["member1", "member2", "member3"] {
                tab.until("a line", &format!("!!{}", line(cluster))).await?;
                let before: String = tab.value(&line(cluster)).await?;
                let changed = format!("{} !== {before:?}", line(cluster));
                tab.until("another line", &changed).await?;
            }
            tab.press("Cluster member1", "SERVFAIL", With::Mouse)
                .await?;
            let errors = format!("!!{}.querySelector('.plot .errors')", card("member1"));
            tab.until("errors are drawn", &errors).await?;
            let blocked = format!("!!{}.querySelector('.plot .blocked')", card("member1"));
            tab.until("the block is drawn", &blocked).await
        });
    }

    /// Every way to break DNS shows until it is mended.
    #[test]
    #[ignore = "long"]
    fn every_dns_fault_is_shown() {
        on_the_page(test_name!(), async |tab| {
            for fault in [
                "Stop", "Refuse", "SERVFAIL", "NXDOMAIN", "Drop", "Slow", "Lose 30%",
            ] {
                tab.press("Cluster member2", fault, With::Key("Enter"))
                    .await?;
                let pressed = format!("{}.querySelector('[aria-pressed=true]')", card("member2"));
                tab.until(fault, &format!("{pressed}?.innerText === {fault:?}"))
                    .await?;
            }
            tab.press("Cluster member2", "Mend", With::Key("Enter"))
                .await?;
            let mended = card_has("member2", "Responds to every query");
            tab.until("it is mended", &mended).await
        });
    }

    /// A broken Service network is felt by pods, voted on by nodes, and repaired.
    #[test]
    #[ignore = "long"]
    fn broken_service_network_is_shown() {
        on_the_page(test_name!(), async |tab| {
            for (fault, shown) in [
                ("One node", "fails on 1 of 3 nodes"),
                ("All nodes", "fails on 3 of 3 nodes"),
            ] {
                tab.press("Cluster member2", fault, With::Key("Enter"))
                    .await?;
                tab.until(shown, &card_has("member2", shown)).await?;
            }
            tab.until("pods notice", &timeline_has("to Services fail on 3 nodes"))
                .await?;
            tab.press("Cluster member2", "Repair", With::Key("Enter"))
                .await?;
            tab.until("nodes vote", &card_has("member2", "Services respond"))
                .await
        });
    }

    /// A cluster without power loses its traffic, and one without a link to the control plane keeps it.
    #[test]
    #[ignore = "long"]
    fn power_and_link_are_shown() {
        on_the_page(test_name!(), async |tab| {
            tab.until("all are in service", &all_have("In service"))
                .await?;
            tab.press("Cluster member2", "Cut the link", With::Mouse)
                .await?;
            let lost = "no response to the control plane";
            tab.until("the link is gone", &card_has("member2", lost))
                .await?;
            tab.press("Cluster member1", "Power off", With::Key("Enter"))
                .await?;
            for seen in [
                "no response to the gateway and the control plane",
                "agent not running",
                "TrafficControl from Remedy unreachable",
                "Blocked",
            ] {
                tab.until(seen, &card_has("member1", seen)).await?;
            }
            tab.until("its requests cease", &requests("member1", "=== 0"))
                .await?;
            let requested: bool = tab.value(&requests("member2", "> 0")).await?;
            ensure!(requested, "member2 lost its requests");
            let node = "Start the agent on member1-node1 of member1";
            tab.press("Cluster member1", node, With::Mouse).await?;
            tab.until(
                "a node without power starts nothing",
                &problem("has no power"),
            )
            .await?;
            for cluster in ["member1", "member2"] {
                tab.press(&format!("Cluster {cluster}"), "Restore", With::Mouse)
                    .await?;
            }
            tab.until("all are in service", &all_have("In service"))
                .await?;
            tab.until("requests return", &requests("member1", "> 0"))
                .await
        });
    }

    /// The API breaks and mends before the reader's eyes.
    #[test]
    #[ignore = "long"]
    fn api_outage_is_shown() {
        on_the_page(test_name!(), async |tab| {
            for (fault, seen) in [
                ("Slow", "Slow"),
                ("Conflicts", "Conflicts on writes"),
                ("Errors", "Responds with errors"),
            ] {
                tab.press("Control plane", fault, With::Mouse).await?;
                tab.until(fault, &api_has(seen)).await?;
                tab.press("Break the API", "Mend", With::Mouse).await?;
                tab.until("it is mended", &api_has("Available")).await?;
            }
            tab.press("Control plane", "Cut off for 10 s", With::Mouse)
                .await?;
            tab.until("it is cut", &timeline_has("API does not respond"))
                .await?;
            tab.until("it mends itself", &timeline_has("API responds again"))
                .await?;
            tab.until("that is shown", &api_has("Available")).await
        });
    }

    #[test]
    #[ignore = "long"]
    fn agents_are_killed_and_started() {
        on_the_page(test_name!(), async |tab| {
            tab.until("all are in service", &all_have("In service"))
                .await?;
            let nodes = format!(
                "[...{}.querySelectorAll('.node')].map((node) => node.dataset.key)",
                card("member3")
            );
            let nodes: Vec<String> = tab.value(&nodes).await?;
            let Some(node) = nodes.first() else {
                bail!("no nodes");
            };
            let agent = |what: &str| format!("{what} the agent on {node} of member3");
            tab.press("Cluster member3", &agent("Kill"), With::Mouse)
                .await?;
            let gone = card_has("member3", "agent not running");
            tab.until("it is gone", &gone).await?;
            tab.press("Cluster member3", &agent("Start"), With::Mouse)
                .await?;
            tab.until("it runs", &format!("!({gone})")).await?;

            let leader = format!(
                "({}.querySelector('.leader:not([hidden])')?.closest('.node').dataset.key)",
                card("member2")
            );
            tab.until("somebody leads", &format!("!!{leader}")).await?;
            let first: String = tab.value(&leader).await?;
            tab.press("Cluster member2", "Kill the leader of member2", With::Mouse)
                .await?;
            let another = format!("{leader} && {leader} !== {first:?}");
            tab.until("another one leads", &another).await?;
            tab.until(
                "that is logged",
                &timeline_has(&format!("in place of {first}")),
            )
            .await
        });
    }

    /// A drain takes the requests away, and its end brings them back.
    #[test]
    fn drain_moves_requests() {
        on_the_page(test_name!(), async |tab| {
            tab.until("it has requests", &requests("member1", "> 0"))
                .await?;
            tab.press("Cluster member1", "Drain member1", With::Mouse)
                .await?;
            tab.until("they go elsewhere", &requests("member1", "=== 0"))
                .await?;
            tab.press(
                "Cluster member1",
                "End the drain of member1",
                With::Key("Enter"),
            )
            .await?;
            tab.until("requests return", &requests("member1", "> 0"))
                .await
        });
    }

    /// A signal that is declared becomes a condition, which leaves with the declaration.
    #[test]
    #[ignore = "long"]
    fn declared_signal_is_shown() {
        on_the_page(test_name!(), async |tab| {
            tab.press(
                "Cluster member1",
                "Declare a signal of member1",
                With::Mouse,
            )
            .await?;
            let condition = card_has("member1", "StoreServing");
            tab.until("it is a condition", &condition).await?;
            tab.press(
                "Cluster member1",
                "Withdraw the signal of member1",
                With::Key("Enter"),
            )
            .await?;
            let gone = format!("!({condition})");
            tab.until("the condition is gone", &gone).await
        });
    }

    /// A version goes cluster by cluster before the reader's eyes.
    #[test]
    fn rollout_is_shown() {
        on_the_page(test_name!(), async |tab| {
            let all_run = |version: &str| versions(&[version, version, version]);
            tab.until("all run the first one", &all_run("runs 1.4.0"))
                .await?;
            tab.press("Rollout of web", "Pause all", With::Key("Enter"))
                .await?;
            tab.until("all are paused", &versions(&["paused", "paused", "paused"]))
                .await?;
            tab.press("Rollout of web", "New version", With::Mouse)
                .await?;
            let waits = "runs 1.4.0 paused, 1.5.0 waits";
            tab.until("it waits", &versions(&[waits, waits, waits]))
                .await?;
            let next = "document.querySelector('#next').innerText.startsWith('Press Resume all')";
            tab.until("what to do is said", next).await?;

            let one = "Resume the rollout to member2";
            tab.press("Rollout of web", one, With::Key("Enter")).await?;
            let updated = "runs 1.5.0 up to date";
            tab.until("one runs it", &versions(&[waits, updated, waits]))
                .await?;
            let focused = "document.activeElement.getAttribute('aria-label')";
            let focused: String = tab.value(focused).await?;
            ensure!(focused == "Pause the rollout to member2", "{focused}");
            tab.press("Rollout of web", "Resume all", With::Mouse)
                .await?;
            tab.until("all run it", &versions(&[updated, updated, updated]))
                .await?;
            // The timeline has a stream of its own.
            let logged = "[...document.querySelectorAll('#story li')].filter((event) => event.innerText.includes('runs version 1.5.0')).length === 3";
            tab.until("all are logged", logged).await?;

            let seen = timeline(tab).await?;
            for (cluster, earlier) in [("member2", "suspended"), ("member1", "wants version")] {
                let own = |text: &str| seen.iter().position(|event| has(event, cluster, text));
                let any = |text: &str| seen.iter().position(|event| event.contains(text));
                let (earlier, resumed) = (any(earlier), own("dispatched again"));
                let runs = own("runs version 1.5.0");
                ensure!(
                    earlier.is_some() && earlier < resumed && resumed < runs,
                    "{cluster}: {seen:#?}"
                );
            }
            let seen = seen.join("; ");
            ensure!(seen.contains("after the resumption"), "{seen}");
            Ok(())
        });
    }

    /// A button that moves away from the mouse is pressed where it went.
    #[test]
    fn moving_button_is_pressed() {
        on_the_page(test_name!(), async |tab| {
            let moves = "(() => {
                const move = () => { document.body.style.transform = 'translateY(200px)'; };
                addEventListener('mousemove', move, { once: true });
                return true;
            })()";
            let prepared: bool = tab.value(moves).await?;
            ensure!(prepared, "nothing will move");
            tab.press("Cluster member1", "Refuse", With::Mouse).await?;
            let refused = card_has("member1", "Every response is REFUSED");
            tab.until("it was pressed", &refused).await
        });
    }

    /// Every button is reached by keyboard and shows it.
    #[test]
    fn keyboard_reaches_every_button() {
        on_the_page(test_name!(), async |tab| {
            const FOCUS: &str = "(() => {
                const style = getComputedStyle(document.activeElement);
                const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
                return [[...document.querySelectorAll('button')].indexOf(document.activeElement), seen];
            })()";
            tab.until("all are in service", &all_have("In service"))
                .await?;
            let shown = "[...document.querySelectorAll('button')]
                .flatMap((button, index) => button.checkVisibility() ? [index] : [])";
            let mut left: Vec<i64> = tab.value(shown).await?;
            ensure!(left.len() > 40, "{} buttons", left.len());
            // Beside buttons there are a few texts to scroll or to copy.
            for _ in 0..left.len() + 10 {
                tab.key("Tab").await?;
                let (button, seen): (i64, bool) = tab.value(FOCUS).await?;
                ensure!(seen || button < 0, "the focus on button {button} is unseen");
                left.retain(|index| *index != button);
            }
            ensure!(left.is_empty(), "not reached: {left:?}");
            Ok(())
        });
    }

    /// It fits every width and is read in light and dark.
    #[test]
    fn every_view_is_readable() {
        on_the_page(test_name!(), async |tab| {
            tab.press("Cluster member1", "Drop", With::Mouse).await?;
            tab.until("it is blocked", &card_has("member1", "Blocked"))
                .await?;
            // A plan with an alarm, and one of each field.
            tab.press(REMEDIES, "New Remedy", With::Mouse).await?;
            tab.until("its plan is there", &plan_has("no cluster is left"))
                .await?;
            for width in [360, 768, 1280, 1600] {
                for dark in [false, true] {
                    let view = View {
                        width,
                        height: 800,
                        dark,
                    };
                    tab.look(view).await?;
                    let wide: u32 = tab.value("document.documentElement.scrollWidth").await?;
                    ensure!(wide <= width, "{wide} pixels wide in {view:?}");
                    let faint: Vec<(String, f64)> = tab.value(TOO_FAINT).await?;
                    ensure!(faint.is_empty(), "hard to read in {view:?}: {faint:?}");
                }
            }
            Ok(())
        });
    }

    /// Whatever the sandbox sends stays text.
    #[test]
    fn markup_stays_text() {
        on_the_page(test_name!(), async |tab| {
            tab.until("all are in service", &all_have("In service"))
                .await?;
            let markup = "(() => {
                const bad = (value) => typeof value === 'string' ? '<img src=x onerror=alert(1)>' + value
                    : Array.isArray(value) ? value.map(bad)
                    : value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([key, value]) => [key, bad(value)]))
                    : value;
                Object.assign(state.remedies[0], { acting: ['member1'], refused: ['member2'] });
                state = bad(state);
                events.set(1e6, { ...bad({ cluster: 'c', text: 't', stage: 's' }), id: 1e6, at_ms: 0, after_ms: null, good: true });
                showState();
                showEvents();
                form.hidden = false;
                tell({ accepted: bad({ warnings: ['w'], backends: [], clusters: [{ cluster: 'c', kind: 'set', text: 't' }] }) });
                complain(bad('problem'));
                const shown = document.body.innerText;
                return [document.querySelectorAll('img').length, shown.split('<img').length > 20 && shown.includes('member2, kept by the bound')];
            })()";
            let (images, texts): (u32, bool) = tab.value(markup).await?;
            ensure!(images == 0 && texts, "{images} images");
            Ok(())
        });
    }

    /// A tab in the background rests and catches up when it is visible.
    #[test]
    fn hidden_tab_catches_up() {
        on_the_page(test_name!(), async |tab| {
            tab.until("all are in service", &all_have("In service"))
                .await?;
            let turn = |hidden: bool| {
                format!(
                    "(() => {{
                        Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }});
                        document.dispatchEvent(new Event('visibilitychange'));
                        return source.readyState === EventSource.CLOSED;
                    }})()"
                )
            };
            let rests: bool = tab.value(&turn(true)).await?;
            ensure!(rests, "it holds its connection");
            let press = "fetch('actions', { method: 'POST', body: JSON.stringify(
                { do: 'create-sample', remedy: 'maintenance-member1' }) }).then(({ ok }) => ok)";
            let pressed: bool = tab.value(press).await?;
            ensure!(pressed, "it was refused");
            let rests: bool = tab.value(&turn(false)).await?;
            ensure!(!rests, "it does not connect");
            tab.until(
                "it is logged",
                &timeline_has("Remedy maintenance-member1 created"),
            )
            .await?;
            tab.until("it is shown", &card_has("member1", "Blocked"))
                .await
        });
    }

    /// The deletion of a cluster and of an ingress is shown.
    #[test]
    fn deletions_are_shown() {
        in_a_browser(test_name!(), async |chromium| {
            let sandbox = Sandbox::start(&[]).await?;
            let tab = chromium.open(&sandbox.page, View::WIDE).await?;
            tab.until("all are in service", &all_have("In service"))
                .await?;
            let kubectl = Kubectl::new(sandbox.kubeconfig.clone())?;
            kubectl.run("delete cluster member3").await?;
            tab.until("it is gone", &card_has("member3", "Cluster deleted"))
                .await?;
            tab.until("it gets none", &card_has("member3", "Gets none"))
                .await?;
            tab.until("it has no version", &versions(&["", "", "Cluster deleted"]))
                .await?;
            kubectl.run("delete mci --namespace shop shop").await?;
            tab.until("their end is logged", &timeline_has("ingress shop deleted"))
                .await?;
            let next = "document.querySelector('#next').innerText.startsWith('No ingress is left')";
            tab.until("what to do is said", next).await?;
            sandbox.stop().await
        });
    }

    /// A sandbox that ends is missed and found again.
    #[test]
    fn restarted_sandbox_is_found() {
        in_a_browser(test_name!(), async |chromium| {
            let sandbox = Sandbox::start(&[]).await?;
            let port = sandbox.page.trim_end_matches('/').rsplit(':').next();
            let port = format!("--port={}", port.unwrap_or_default());
            let tab = chromium.open(&sandbox.page, View::WIDE).await?;
            tab.until("it is live", LIVE).await?;
            sandbox.stop().await?;
            let missed = "document.querySelector('#link').innerText.startsWith('Disconnected')";
            tab.until("it is missed", missed).await?;
            tab.press("Cluster member1", "Refuse", With::Mouse).await?;
            tab.until("a press reports it", &problem("cannot be reached"))
                .await?;

            let sandbox = Sandbox::start(&[&port]).await?;
            tab.until("it is live again", LIVE).await?;
            let nowhere = "(() => {
                const button = document.body.appendChild(document.createElement('button'));
                Object.assign(button.dataset, { do: 'dns', cluster: 'nowhere', fault: 'refuse' });
                button.click();
                return true;
            })()";
            let pressed: bool = tab.value(nowhere).await?;
            ensure!(pressed, "it was not pressed");
            tab.until("a refusal is shown", &problem("nowhere")).await?;
            sandbox.stop().await
        });
    }
}

/// Runs a test on the page of a sandbox of its own. It fails if the page logs a warning or an error to
/// the browser's console.
fn on_the_page(name: &str, body: impl AsyncFnOnce(&Tab) -> Result<()>) {
    in_a_browser(name, async |chromium| {
        let sandbox = Sandbox::start(&[]).await?;
        let tab = chromium.open(&sandbox.page, View::WIDE).await?;
        tab.until("it is live", LIVE).await?;
        body(&tab).await?;
        let complaints = tab.complaints();
        ensure!(complaints.is_empty(), "in the console: {complaints:#?}");
        sandbox.stop().await
    });
}

fn in_a_browser(name: &str, body: impl AsyncFnOnce(&Chromium) -> Result<()>) {
    isolated(name, async || {
        let chromium = Chromium::start().await?;
        body(&chromium).await?;
        chromium.stop().await
    });
}

fn card(cluster: &str) -> String {
    format!("document.querySelector('#clusters [data-cluster={cluster}]')")
}

fn card_has(cluster: &str, text: &str) -> String {
    format!("!!{}?.innerText.includes({text:?})", card(cluster))
}

fn all_have(text: &str) -> String {
    let cards = "[...document.querySelectorAll('#clusters article')]";
    format!("{cards}.length === 3 && {cards}.every((card) => card.innerText.includes({text:?}))")
}

/// True if the plan of a new Remedy has this text.
fn plan_has(text: &str) -> String {
    format!("document.querySelector('#plan').innerText.replace(/\\s+/g, ' ').includes({text:?})")
}

/// True if the clusters have these texts in the part on the rollout.
fn versions(texts: &[&str]) -> String {
    format!(
        "(() => {{
            const rows = [...document.querySelectorAll('#versions li')].map((row) => row.innerText.replace(/\\s+/g, ' '));
            return {texts:?}.every((text, index) => rows[index]?.includes(text));
        }})()"
    )
}

/// Returns `true` if an event of the timeline is of a cluster and has this text.
fn has(event: &str, cluster: &str, text: &str) -> bool {
    event.contains(cluster) && event.contains(text)
}

fn api_has(text: &str) -> String {
    format!("document.querySelector('#api .pill').innerText === {text:?}")
}

fn timeline_has(text: &str) -> String {
    format!("document.querySelector('#story').innerText.includes({text:?})")
}

fn problem(text: &str) -> String {
    format!("document.querySelector('#problem').innerText.includes({text:?})")
}

fn requests(cluster: &str, compare: &str) -> String {
    let number = format!("{}.querySelector('[data-slot=requests]')", card(cluster));
    format!("Number({number}.innerText) {compare}")
}

/// Returns the path of the plot of requests.
fn line(cluster: &str) -> String {
    let path = format!("{}?.querySelector('.plot .requests')", card(cluster));
    format!("({path}?.getAttribute('d') ?? '')")
}

/// Returns the events of the timeline, oldest first.
async fn timeline(tab: &Tab) -> Result<Vec<String>> {
    tab.value(
        "[...document.querySelectorAll('#story li')].reverse().map((event) => event.innerText)",
    )
    .await
}

/// Breaks DNS of member1, and checks each stage until its traffic has left.
async fn traffic_leaves(tab: &Tab) -> Result<()> {
    tab.press("Cluster member1", "Refuse", With::Mouse).await?;
    for seen in [
        "Every response is REFUSED",
        "3 of 3 unhealthy",
        "False for",
        "TrafficControl from Remedy dns",
        "Blocked",
    ] {
        tab.until(seen, &card_has("member1", seen)).await?;
    }
    tab.until("its requests cease", &requests("member1", "=== 0"))
        .await?;
    tab.until("others are asked", &requests("member2", "> 0"))
        .await?;
    tab.until("their end is logged", &timeline_has("no request goes"))
        .await?;
    let broken = [
        "do not resolve",
        "False",
        "remedyActions TrafficControl",
        "blocks it",
        "no request goes",
    ];
    let seen = timeline(tab).await?;
    in_order(&seen, &broken)?;
    // The sandbox polls agents and watches APIs: a vote may be seen after its consequences.
    in_order(&seen, &["do not resolve", "votes unhealthy"])
}

/// Checks that the timeline has these events in this order, each but the first with its duration.
fn in_order(timeline: &[String], expected: &[&str]) -> Result<()> {
    let mut rest = timeline.iter();
    for (nth, text) in expected.iter().enumerate() {
        let Some(event) = rest.find(|event| event.contains(text)) else {
            bail!("{text:?} does not follow in {timeline:#?}");
        };
        ensure!(nth == 0 || event.contains('+'), "how long took {event:?}?");
    }
    Ok(())
}
