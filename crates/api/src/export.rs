use crate::resource::kind;

kind! {
    /// An export of the Service of the same name: in a member cluster to which it is propagated, Karmada
    /// collects the Service's endpoints. It has no spec.
    ServiceExport, "ServiceExport", "multicluster.x-k8s.io", "v1alpha1", "serviceexports", NamespaceResourceScope, {}
}
