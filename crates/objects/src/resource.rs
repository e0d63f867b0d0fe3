//! The declaration of kinds with their names on the wire, and their scopes.

/// Declares the struct of an object with metadata and the fields given.
#[doc(hidden)]
#[macro_export]
macro_rules! declare_object {
    (
        $(#[$doc:meta])*
        $name:ident,
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
    };
}

pub use declare_object as object;

/// Declares the struct of a kind with metadata and the fields given, and its names on the wire.
///
/// kube's derive would define one kind per spec; here two kinds, one of each scope, share a spec.
#[doc(hidden)]
#[macro_export]
macro_rules! declare_kind {
    (
        $(#[$doc:meta])*
        $name:ident, $kind:literal, $group:literal, $version:literal, $plural:literal, $scope:ident,
        { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }
    ) => {
        $crate::declare_object! { $(#[$doc])* $name, { $($(#[$field_doc])* $field: $type,)* } }

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

pub use declare_kind as kind;

/// Implements the part of `kube::Resource` that is not about metadata by that of another kind.
#[doc(hidden)]
#[macro_export]
macro_rules! declare_names_of {
    ($kind:ty) => {
        type DynamicType = <$kind as kube::Resource>::DynamicType;
        type Scope = <$kind as kube::Resource>::Scope;

        fn kind(kind: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
            <$kind as kube::Resource>::kind(kind)
        }

        fn group(kind: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
            <$kind as kube::Resource>::group(kind)
        }

        fn version(kind: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
            <$kind as kube::Resource>::version(kind)
        }

        fn plural(kind: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
            <$kind as kube::Resource>::plural(kind)
        }
    };
}

pub use declare_names_of as names_of;

/// Whether objects of a kind have namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// They have none.
    #[default]
    Cluster,
    /// They have.
    Namespaced,
}

impl Scope {
    /// Returns the scope of the objects in a namespace, which is empty where they have none.
    pub fn of(namespace: &str) -> Self {
        if namespace.is_empty() {
            Self::Cluster
        } else {
            Self::Namespaced
        }
    }

    /// Returns the scope as a definition of a kind has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Namespaced => "Namespaced",
        }
    }
}

/// Declares like [`kind!`] the struct of two kinds that differ in their scope and nothing else: of which of them an
/// object is, its namespace says.
#[doc(hidden)]
#[macro_export]
macro_rules! declare_scoped_kind {
    (
        $(#[$doc:meta])*
        $name:ident, $group:literal, $version:literal,
        [$cluster_kind:literal, $cluster_plural:literal],
        [$namespaced_kind:literal, $namespaced_plural:literal],
        { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }
    ) => {
        $crate::declare_object! { $(#[$doc])* $name, { $($(#[$field_doc])* $field: $type,)* } }

        impl $name {
            /// The group and version.
            pub const API_VERSION: &'static str = concat!($group, "/", $version);

            /// Returns the kind of the objects of a scope.
            pub const fn kind_of(scope: $crate::resource::Scope) -> &'static str {
                match scope {
                    $crate::resource::Scope::Cluster => $cluster_kind,
                    $crate::resource::Scope::Namespaced => $namespaced_kind,
                }
            }

            /// Returns its scope.
            pub fn scope(&self) -> $crate::resource::Scope {
                $crate::resource::Scope::of(self.metadata.namespace.as_deref().unwrap_or_default())
            }
        }

        impl kube::Resource for $name {
            type DynamicType = $crate::resource::Scope;
            type Scope = kube::core::DynamicResourceScope;

            fn kind(scope: &$crate::resource::Scope) -> std::borrow::Cow<'_, str> {
                Self::kind_of(*scope).into()
            }

            fn group(_: &$crate::resource::Scope) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version(_: &$crate::resource::Scope) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural(scope: &$crate::resource::Scope) -> std::borrow::Cow<'_, str> {
                match scope {
                    $crate::resource::Scope::Cluster => $cluster_plural,
                    $crate::resource::Scope::Namespaced => $namespaced_plural,
                }
                .into()
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

pub use declare_scoped_kind as scoped_kind;
