use karmada_api::gateway_api::HttpRoute;
use objects::patch::JsonPatch;

use crate::ingress::kubernetes::{Managed, edit, edits_of_metadata};

impl Managed for HttpRoute {
    const KIND: &'static str = "HTTPRoute";
    const TARGET: &'static str = "gateway_http_route";

    /// The status is the controllers'.
    fn edits(&self, existing: &Self) -> serde_json::Result<JsonPatch> {
        let (wanted, found) = (&self.spec, &existing.spec);
        let mut edits = edits_of_metadata(&self.metadata, &existing.metadata);
        edit(
            &mut edits,
            ["spec", "parentRefs"],
            Some(&wanted.parent_refs),
            Some(&found.parent_refs),
        )?;
        let hosts = [wanted, found].map(|spec| Some(&spec.hostnames).filter(|h| !h.is_empty()));
        edit(&mut edits, ["spec", "hostnames"], hosts[0], hosts[1])?;
        edit(
            &mut edits,
            ["spec", "rules"],
            Some(&wanted.rules),
            Some(&found.rules),
        )?;
        Ok(edits)
    }
}
