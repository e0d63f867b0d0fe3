//! The cases by topic.

mod apply;
mod builtin;
mod custom;
mod deletion;
mod discovery;
mod garbage;
mod limits;
mod lists;
mod objects;
mod patches;
mod tables;
mod updates;
mod watches;

use anyhow::Result;
use futures::future::BoxFuture;

use crate::server::Server;

/// A behaviour of the API.
pub(crate) struct Case {
    /// Unique; with hyphens, the name of the case's namespace.
    pub(crate) name: &'static str,
    pub(crate) run: fn(Server) -> BoxFuture<'static, Result<()>>,
}

/// Lists the cases of each module in a function `$all`. The modules themselves are declared above by plain items:
/// rustfmt does not find those that a macro declares.
macro_rules! cases {
    ($(#[$about:meta])* $all:ident; $($module:ident: $($name:ident),+;)+) => {
        $(#[$about])*
        pub(crate) fn $all() -> Vec<Case> {
            vec![$($(Case {
                name: stringify!($name),
                run: |server| Box::pin($module::$name(server)),
            },)+)+]
        }
    };
}

cases! {
    /// Returns the cases that the embedded server does not pass.
    not_embedded;
    limits:
        rights_are_checked,
        the_caller_has_a_name,
        webhook_can_refuse,
        rules_in_cel_are_evaluated,
        custom_resource_can_scale,
        every_kind_is_served,
        a_node_port_is_allocated,
        responses_may_be_protobuf,
        openapi_2_is_served,
        a_request_has_a_priority;
}

cases! {
    /// Returns the cases that every server passes.
    all;
    objects:
        created_object_gets_metadata,
        statusless_kind_has_no_generation,
        a_name_is_taken_once,
        generated_names_differ,
        unnamed_object_is_refused,
        names_are_those_of_dns,
        a_name_is_no_path,
        service_names_are_dns_labels,
        labels_and_annotations_are_checked,
        keys_of_data_are_checked,
        a_namespace_must_exist,
        namespace_of_path_must_match,
        kind_of_path_must_match,
        absent_object_is_not_found,
        unserved_kind_is_not_found,
        unserved_method_is_not_allowed,
        a_dry_run_stores_nothing,
        bodies_may_be_yaml,
        untyped_body_is_json,
        builtin_bodies_may_be_protobuf;
    updates:
        replacing_needs_the_newest_version,
        config_map_needs_no_version,
        custom_resource_needs_its_version,
        replacing_does_not_create,
        replaced_object_keeps_identity,
        unchanged_write_keeps_version,
        generation_counts_spec_changes,
        annotations_change_a_deployment,
        status_needs_its_subresource,
        status_write_leaves_metadata;
    builtin:
        the_first_namespaces_exist,
        api_has_own_service,
        a_new_namespace_is_active,
        service_gets_address_and_defaults,
        service_address_stays,
        headless_service_has_no_address,
        secret_text_is_encoded,
        cluster_event_is_default_only,
        event_is_in_both_groups,
        involved_object_selects_events,
        a_lease_keeps_microseconds,
        put_creates_lease,
        slice_addresses_match_type,
        loopback_endpoints_are_refused,
        ingress_needs_path_type,
        built_in_kinds_have_types,
        config_map_may_be_immutable,
        new_daemon_set_counts_nothing;
    custom:
        defaults_are_filled_in,
        unknown_fields_warn,
        unknown_builtin_fields_warn,
        values_are_checked,
        all_errors_are_reported,
        allowed_unknowns_are_kept,
        forbidden_nulls_are_dropped,
        status_is_checked_too,
        a_definition_is_established,
        definition_takes_its_objects,
        a_definition_can_change,
        impossible_definition_is_refused;
    patches:
        merge_patch_sets_and_removes,
        unchanged_patch_keeps_version,
        stale_patch_conflicts,
        json_patch_runs_in_order,
        a_failed_test_is_invalid,
        a_test_compares_bytes,
        tested_condition_is_replaced,
        absent_list_takes_no_append,
        unknown_status_fields_are_dropped,
        merge_patch_replaces_conditions,
        custom_resources_lack_strategic_merge,
        malformed_patch_is_refused,
        unknown_json_operation_is_refused,
        a_patch_needs_its_object,
        a_patch_cannot_rename,
        patch_leaves_status_alone,
        a_patched_object_is_validated,
        strategic_merge_uses_list_keys,
        strategic_merge_sets_and_removes,
        strategic_status_merges_by_type;
    apply:
        apply_creates,
        apply_removes_dropped_fields,
        apply_leaves_foreign_fields,
        shared_field_outlives_one_owner,
        foreign_field_conflicts,
        several_conflicts_are_listed,
        apply_merges_lists_by_key,
        atomic_conditions_are_taken_whole,
        keyed_conditions_are_owned_singly,
        status_apply_does_not_create,
        an_apply_names_its_manager,
        apply_needs_type_and_name,
        stale_apply_conflicts,
        an_apply_may_be_yaml,
        yaml_folds_line_separators,
        yaml_refuses_control_characters,
        yaml_refuses_surrogates,
        json_keeps_every_text,
        an_apply_is_validated,
        builtin_kinds_can_be_applied,
        who_wrote_what_is_remembered,
        status_write_has_own_manager;
    lists:
        list_is_sorted_and_versioned,
        custom_list_items_have_types,
        pages_follow_each_other,
        later_pages_show_first_version,
        malformed_continue_is_refused,
        labels_select,
        malformed_label_selectors_are_refused,
        labels_select_by_number,
        fields_select,
        selectable_fields_select_custom_resources,
        all_namespaces_are_listed_together,
        list_may_be_older,
        malformed_version_is_refused,
        read_is_not_older;
    watches:
        watch_resumes_from_version,
        unversioned_watch_begins_with_all,
        unchanged_write_is_no_event,
        deselected_object_is_deleted,
        name_selects_watched_object,
        cluster_watch_sees_every_namespace,
        initial_events_end_with_bookmark,
        no_initial_events_one_bookmark,
        initial_events_need_valid_request,
        watch_ends_after_timeout,
        version_before_history_is_expired,
        malformed_watch_version_is_refused,
        event_type_comes_first,
        path_selects_watched_object,
        finalizer_shows_deletion_as_change;
    deletion:
        what_is_deleted_is_gone,
        finalizer_holds_deleted_object,
        remaining_finalizer_still_holds,
        terminating_object_can_change,
        finalized_deletion_changes_generation,
        a_deletion_can_have_preconditions,
        collection_deletes_selection,
        propagation_policy_adds_finalizer,
        terminating_namespace_takes_nothing,
        some_namespaces_stay;
    tables:
        custom_table_has_defined_columns,
        empty_cell_is_null,
        columnless_definition_shows_age,
        built_in_kinds_have_columns,
        builtin_kinds_fill_cells,
        workloads_fill_their_cells,
        row_holds_requested_object,
        a_table_has_pages,
        watched_table_names_columns_once,
        metadata_comes_alone,
        write_can_return_table,
        unservable_form_is_not_acceptable;
    discovery:
        the_version_is_served,
        requests_are_counted,
        groups_have_versions,
        versions_have_resources,
        discovery_comes_in_one_document,
        schemas_are_served,
        builtin_schemas_describe_list_merges;
    garbage:
        malformed_json_is_refused,
        binary_body_gets_response,
        endless_nesting_is_refused,
        numbers_have_any_size,
        wrong_type_names_its_field,
        an_unknown_operator_is_refused,
        ten_thousand_names_are_kept,
        two_mebibyte_object_is_refused,
        four_mebibyte_body_is_refused,
        odd_paths_get_a_response,
        odd_queries_get_a_response,
        duplicate_fields_are_reported;
}
