//! The declaration of kinds with their names on the wire.

/// Declares the struct of a kind with metadata and the fields given, and its names on the wire.
///
/// kube's derive would define one kind per spec; here two kinds, one of each scope, share a spec.
macro_rules! kind {
    (
        $(#[$doc:meta])*
        $name:ident, $kind:literal, $group:literal, $version:literal, $plural:literal, $scope:ident,
        { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            /// The group and version; absent in the elements of some lists.
            pub api_version: String,
            /// The kind; absent in the elements of some lists.
            pub kind: String,
            /// Its metadata.
            pub metadata: kube::core::ObjectMeta,
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $name {
            /// The group and version.
            pub const API_VERSION: &'static str = concat!($group, "/", $version);
            /// The kind.
            pub const KIND: &'static str = $kind;
        }

        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = k8s_openapi::$scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                Self::KIND.into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &kube::core::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(crate) use kind;
