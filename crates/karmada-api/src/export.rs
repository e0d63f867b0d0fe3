use objects::resource::kind;

kind! {
    /// An export of the Service of the same name, whose endpoints it has collected: by Karmada from each member to
    /// which it is propagated, in a fleet without Karmada from each member to which the Service is. It has no spec.
    ServiceExport, "ServiceExport", "multicluster.x-k8s.io", "v1alpha1", "serviceexports", NamespaceResourceScope, {}
}
