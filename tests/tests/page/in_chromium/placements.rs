//! The part of the page on placements.

use super::*;

/// The name of the part.
const PLACEMENTS: &str = "Placements of the hub";

/// The version of a cluster that got the latest in the first wave.
const AVAILABLE: &str = "Available wave 1 has it";

/// A broken version stops at the first wave and a mended one reaches all.
#[test]
#[ignore = "long"]
fn broken_version_stops_until_mended() {
    on_the_page(test_name!(), async |tab| {
        for cluster in ["member2", "member3"] {
            let available = placed_has(cluster, AVAILABLE);
            tab.until("it is available", &available).await?;
        }
        let reason = placed_has("member1", "Not picked cluster \"member1\" does not score");
        tab.until("the other has a reason", &reason).await?;
        tab.press(PLACEMENTS, "Break it", With::Key("Enter"))
            .await?;
        let object = "Deployment store/web: ProgressDeadlineExceeded";
        for (cluster, seen) in [
            ("member2", "Stuck wave 1"),
            ("member2", object),
            ("member3", "Waits for its turn"),
            ("member3", "RolloutNotStartedYet"),
        ] {
            tab.until(seen, &placed_has(cluster, seen)).await?;
        }
        let serving = fleet_has("member2", "runs 1.4.0, 1.5.0-broken is not ready");
        tab.until("the old pods serve", &serving).await?;
        let next =
            "document.querySelector('#next').innerText.startsWith('Press Roll out a change')";
        tab.until("what to do is said", next).await?;

        tab.press(PLACEMENTS, "Roll out a change", With::Mouse)
            .await?;
        for (cluster, wave) in [("member2", "wave 1"), ("member3", "wave 2")] {
            let has_it = fleet_has(cluster, "runs 1.6.0 ·");
            tab.until("it runs the mended one", &has_it).await?;
            tab.until(wave, &placed_has(cluster, wave)).await?;
        }
        let logged = timeline_has("its store runs version 1.6.0");
        tab.until("that is logged", &logged).await?;
        let told = timeline(tab).await?;
        let broken = [
            "wants version 1.5.0-broken",
            "gets store-1-snapshot, in wave 1",
            "placement store is stuck",
        ];
        in_order(&told, &broken)?;
        let mended = [
            "wants version 1.6.0",
            "gets store-2-snapshot, in wave 1",
            "its store runs version 1.6.0",
            "gets store-2-snapshot, in wave 2",
        ];
        in_order(&told, &mended)
    });
}

/// A cordoned cluster takes the place of none that leaves.
#[test]
fn cordoned_cluster_gets_nothing() {
    on_the_page(test_name!(), async |tab| {
        let available = placed_has("member3", AVAILABLE);
        tab.until("it is available", &available).await?;
        tab.press(PLACEMENTS, "Cordon member1", With::Mouse).await?;
        let cordoned = fleet_has("member1", "cordoned: gets nothing new");
        tab.until("it is cordoned", &cordoned).await?;
        tab.press(PLACEMENTS, "Leave the fleet: member3", With::Key("Enter"))
            .await?;
        let left = fleet_has("member3", "has left the fleet, and keeps what it has");
        tab.until("it has left", &left).await?;
        tab.until("it serves", &fleet_has("member3", "runs 1.4.0"))
            .await?;
        let tainted = placed_has("member1", "Not picked ClusterUnschedulable, taint");
        tab.until("the taint is the reason", &tainted).await?;

        tab.press(PLACEMENTS, "Uncordon member1", With::Key("Enter"))
            .await?;
        tab.until("it is picked", &placed_has("member1", AVAILABLE))
            .await?;
        tab.press(PLACEMENTS, "Join the fleet: member3", With::Mouse)
            .await?;
        let back = fleet_has("member3", "in the fleet");
        tab.until("it is back", &back).await?;
        tab.until("that is logged", &timeline_has("has left the fleet"))
            .await
    });
}

/// True if a cluster of the fleet has this text.
fn fleet_has(cluster: &str, text: &str) -> String {
    row_has("#fleet", cluster, text)
}

/// True if the store in a cluster has this text.
fn placed_has(cluster: &str, text: &str) -> String {
    row_has("#placements [data-key=store]", cluster, text)
}

fn row_has(rows: &str, cluster: &str, text: &str) -> String {
    let row = format!("document.querySelector('{rows} [data-key={cluster}]')");
    format!("!!{row}?.innerText.replace(/\\s+/g, ' ').includes({text:?})")
}
