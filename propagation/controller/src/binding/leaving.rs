//! Bindings in a namespace that is being deleted. The namespace controller deletes them whether or not their templates may
//! be deleted: a protected template is there long after its binding was.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use objects::{Key, Metadata};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::works;

use super::BindingReconciler;
use crate::index::template_of;

impl BindingReconciler {
    /// Returns `true` if the namespace of a binding is known to be going.
    pub(super) fn is_leaving(&self, binding: BindingRef<'_>) -> bool {
        let namespace = binding.metadata.namespace.as_deref().unwrap_or_default();
        let index = self.index.lock();
        let namespace = index.namespaces.get(&Key::cluster_scoped(namespace));
        namespace.is_some_and(|namespace| namespace.metadata.is_deleting())
    }

    /// Returns `true` if a binding that is being deleted goes with its namespace, and its template stays, or may stay while
    /// its kind is not listed.
    pub(super) async fn is_outlived(&self, binding: BindingRef<'_>) -> Result<bool, kube::Error> {
        let template = template_of(binding.spec);
        // An object that is listed meanwhile wakes it.
        let is_listed = self.templates.is_listed(&template.kind);
        let may_stay = match self.templates.get(&template) {
            Some(template) => works::is_outlived(binding, &template),
            None => !is_listed,
        };
        if !may_stay {
            return Ok(false);
        }
        if self.is_leaving(binding) {
            return Ok(true);
        }
        let Some(namespace) = &binding.metadata.namespace else {
            return Ok(false);
        };
        // The watch of Namespaces may be behind that of bindings, and a copy that goes now does not come back.
        let one = ListParams::default().fields(&format!("metadata.name={namespace}"));
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.list_metadata(&one).await?.items;
        Ok(found.iter().any(|one| one.metadata.is_deleting()))
    }
}
