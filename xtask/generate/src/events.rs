//! The reference of the Events, from the programs' reasons.

use std::fmt::Write as _;

use anyhow::Result;
use karmada_runtime::events::EventReason;

use crate::table::cell;

/// Returns the page that lists the reasons of the Events of every program.
pub(crate) fn page() -> Result<String> {
    let mut page = String::from(
        "# Events\n\n\
         An Event is recorded when something changes, and not again while it stays so. Events about objects without a namespace are in the\n\
         namespace `default`. Of the agent's conditions the remedy-controller tells.\n",
    );
    list::<cluster_health_agent::Reason>(cluster_health_agent::NAME, &mut page)?;
    list::<remedy_controller::Reason>(remedy_controller::NAME, &mut page)?;
    list::<ingress_controller::Reason>(ingress_controller::NAME, &mut page)?;
    list::<propagation_controller::Reason>(propagation_controller::NAME, &mut page)?;
    list::<scheduler::Reason>(scheduler::NAME, &mut page)?;
    list::<execution_controller::Reason>(execution_controller::NAME, &mut page)?;
    list::<cluster_controller::Reason>(cluster_controller::NAME, &mut page)?;
    list::<placement_controller::Reason>(placement_controller::NAME, &mut page)?;
    list::<placement_agent::Reason>(placement_agent::NAME, &mut page)?;
    Ok(page)
}

/// Appends the reasons of one program.
fn list<R: EventReason>(program: &str, page: &mut String) -> Result<()> {
    write!(page, "\n## {program}\n\n")?;
    page.push_str("| Reason | About | Recorded when |\n|---|---|---|\n");
    for reason in R::ALL {
        let (name, about) = (reason.as_str(), reason.about());
        let when = cell(reason.recorded_when());
        writeln!(page, "| `{name}` | {about} | {when} |")?;
    }
    Ok(())
}
