//! The objects of kinds that differ in their scope and nothing else.

use kube::core::DynamicResourceScope;
use kube::{Api, Client, Resource};
use objects::Scope;

/// Returns the objects of the kind that has namespaces in one of these, or of the other kind if it is empty.
pub fn objects_in<K>(client: Client, namespace: &str) -> Api<K>
where
    K: Resource<DynamicType = Scope, Scope = DynamicResourceScope>,
{
    match Scope::of(namespace) {
        Scope::Cluster => Api::all_with(client, &Scope::Cluster),
        Scope::Namespaced => Api::namespaced_with(client, namespace, &Scope::Namespaced),
    }
}
