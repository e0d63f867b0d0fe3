//! The part of the page on Remedies.

use super::*;

/// A Remedy takes traffic away and gives it back.
#[test]
fn remedy_moves_traffic() {
    on_the_page(test_name!(), async |tab| {
        tab.until("all are in service", &all_have("In service"))
            .await?;
        let remedy = |what: &str| format!("{what} the Remedy maintenance-member1");
        tab.press(REMEDIES, &remedy("Create"), With::Mouse).await?;
        let from = card_has("member1", "TrafficControl from Remedy maintenance-member1");
        tab.until("the reason is shown", &from).await?;
        tab.until("it is blocked", &card_has("member1", "Blocked"))
            .await?;
        tab.until("its requests cease", &requests("member1", "=== 0"))
            .await?;
        tab.press(REMEDIES, &remedy("Delete"), With::Key("Enter"))
            .await?;
        tab.until("it is in service", &card_has("member1", "In service"))
            .await?;

        tab.press(REMEDIES, "Delete the Remedy dns", With::Mouse)
            .await?;
        let next = "document.querySelector('#next').innerText.startsWith('Create the Remedy dns')";
        tab.until("what is missing is shown", next).await?;
        tab.press(REMEDIES, "Create the Remedy dns", With::Mouse)
            .await?;
        tab.until("it is there again", &format!("!{next}")).await
    });
}

/// A new Remedy shows its plan, then its effect, and then its end.
#[test]
#[ignore = "long"]
fn new_remedy_shows_its_life() {
    in_a_browser(test_name!(), async |chromium| {
        let sandbox = Sandbox::start(&[]).await?;
        let tab = chromium.open(&sandbox.page, View::WIDE).await?;
        tab.until("all are in service", &all_have("In service"))
            .await?;
        tab.press(REMEDIES, "New Remedy", With::Key("Enter"))
            .await?;
        let everywhere = "Service web of shop/shop loses member1, member2, member3; no cluster is left, so its requests fail";
        tab.until("no box means every cluster", &plan_has(everywhere))
            .await?;
        tab.fill(REMEDIES, "Name", "window").await?;
        tab.tick(REMEDIES, "member1").await?;
        for planned in [
            "member1 TrafficControl set by Remedy window: it names no condition",
            "Service web of shop/shop loses member1; left: member2, member3",
        ] {
            tab.until("the plan follows", &plan_has(planned)).await?;
        }
        for (end, problem) in [
            ("tomorrow", "\"tomorrow\" is no end: write a time such as"),
            ("2020-01-01T00:00:00Z", "is past: it is"),
        ] {
            tab.fill(REMEDIES, "Ends at", end).await?;
            tab.until("the end is refused", &plan_has(problem)).await?;
            tab.press(REMEDIES, "Create", With::Mouse).await?;
            let lines = "document.querySelectorAll('#plan li').length === 1";
            let refused = format!("byId('create').ariaBusy !== 'true' && {lines}");
            tab.until("that is all", &refused).await?;
        }
        tab.press(REMEDIES, "In 1 h", With::Mouse).await?;
        tab.until("the plan is back", &plan_has("left: member2, member3"))
            .await?;
        tab.press(REMEDIES, "Create", With::Mouse).await?;
        tab.until("the form closes", "form.hidden").await?;
        for seen in [
            "Active True",
            "TrafficControl on member1, at once",
            "acts on member1",
            "Ends in",
        ] {
            tab.until(seen, &remedy_has("window", seen)).await?;
        }
        tab.until("it is blocked", &card_has("member1", "Blocked"))
            .await?;

        // An hour is longer than a test lasts: the end is moved to the past.
        let kubectl = Kubectl::new(sandbox.kubeconfig.clone())?;
        let annotation = "remedy.karmada-rs.io/expires-at=2020-01-01T00:00:00Z";
        let moved = format!("annotate remedy window --overwrite {annotation}");
        kubectl.run(&moved).await?;
        for seen in ["Expired", "it expired at 2020-01-01T00:00:00Z", "Ended"] {
            tab.until(seen, &remedy_has("window", seen)).await?;
        }
        tab.until("that is logged", &timeline_has("Remedy window expired"))
            .await?;
        tab.until("it is in service", &card_has("member1", "In service"))
            .await?;
        sandbox.stop().await
    });
}

/// A Remedy that only observes or is a mistake says so.
#[test]
#[ignore = "long"]
fn observing_remedy_says_so() {
    in_a_browser(test_name!(), async |chromium| {
        let sandbox = Sandbox::start(&[]).await?;
        let tab = chromium.open(&sandbox.page, View::WIDE).await?;
        tab.until("all are in service", &all_have("In service"))
            .await?;
        tab.press(REMEDIES, "New Remedy", With::Mouse).await?;
        tab.fill(REMEDIES, "Name", "trial").await?;
        tab.tick(REMEDIES, "Only observe: say what it would do")
            .await?;
        let would = "member3 TrafficControl would be set by Remedy trial, which only observes";
        tab.until("the plan says so", &plan_has(would)).await?;
        tab.press(REMEDIES, "Create", With::Mouse).await?;
        for seen in [
            "Observe-only",
            "would act on member1, member2, member3",
            "No end",
        ] {
            tab.until(seen, &remedy_has("trial", seen)).await?;
        }
        let kubectl = Kubectl::new(sandbox.kubeconfig.clone())?;
        let annotation = "remedy.karmada-rs.io/observe-only=yes";
        let misspelt = format!("annotate remedy trial --overwrite {annotation}");
        kubectl.run(&misspelt).await?;
        for seen in ["Not accepted", "InvalidObserveOnly", "write true or false"] {
            tab.until(seen, &remedy_has("trial", seen)).await?;
        }
        tab.press(REMEDIES, "New Remedy", With::Mouse).await?;
        tab.fill(REMEDIES, "Name", "trial").await?;
        tab.until("its name is taken", &plan_has("already exists"))
            .await?;
        sandbox.stop().await
    });
}

/// True if the row of a Remedy has this text.
fn remedy_has(remedy: &str, text: &str) -> String {
    let row = format!("document.querySelector('#remedies [data-key={remedy}]')");
    format!("!!{row}?.innerText.replace(/\\s+/g, ' ').includes({text:?})")
}
