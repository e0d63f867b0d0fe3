//! Stealing a lease: the one fault that is a write.

use serde_json::json;

use crate::ApiServer;
use crate::clock;
use crate::error::ApiError;
use crate::metadata;

impl ApiServer {
    /// Makes `holder` the holder of a `Lease` that it acquires now.
    ///
    /// # Errors
    /// Returns an error if there is no such lease.
    pub fn steal_lease(&self, namespace: &str, name: &str, holder: &str) -> Result<(), ApiError> {
        let now = clock::micros(self.now());
        let mut state = self.state();
        let kind = state.registry.get("coordination.k8s.io", "v1", "leases")?;
        let lease = state.find(&kind.collection(), &kind.key(namespace, name));
        let mut lease = lease
            .ok_or_else(|| ApiError::not_found(kind.resource(), name))?
            .value()?;
        let transitions = lease["spec"]["leaseTransitions"]
            .as_i64()
            .unwrap_or_default();
        if !lease["spec"].is_object() {
            lease["spec"] = json!({});
        }
        for (field, value) in [
            ("holderIdentity", json!(holder)),
            ("acquireTime", json!(now)),
            ("renewTime", json!(now)),
            ("leaseTransitions", json!(transitions.saturating_add(1))),
        ] {
            lease["spec"][field] = value;
        }
        metadata::of(&mut lease);
        state.put(&kind, lease);
        Ok(())
    }
}
