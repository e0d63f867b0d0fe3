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
        a_webhook_can_refuse_an_object,
        rules_in_cel_are_evaluated,
        a_custom_resource_can_be_scaled,
        every_kind_of_a_cluster_is_served,
        a_node_port_is_allocated,
        responses_may_be_protobuf,
        schemas_are_served_in_openapi_2,
        a_request_has_a_priority;
}

cases! {
    /// Returns the cases that every server passes.
    all;
    objects:
        a_created_object_gets_its_metadata,
        a_kind_without_status_has_no_generation,
        a_name_is_taken_once,
        generated_names_differ,
        an_object_without_a_name_is_refused,
        names_are_those_of_dns,
        a_name_is_no_path,
        the_names_of_services_are_labels_of_dns,
        labels_and_annotations_are_checked,
        keys_of_data_are_checked,
        a_namespace_must_exist,
        the_namespace_of_the_object_is_that_of_the_path,
        the_kind_of_the_object_is_that_of_the_path,
        what_is_not_there_is_not_found,
        a_kind_that_is_not_served_is_not_found,
        a_method_that_is_not_served_is_not_allowed,
        a_dry_run_stores_nothing,
        bodies_may_be_yaml,
        a_body_without_a_type_is_json,
        bodies_of_built_in_kinds_may_be_protobuf;
    updates:
        replacing_needs_the_newest_version,
        a_config_map_can_be_replaced_without_a_version,
        a_custom_resource_cannot_be_replaced_without_a_version,
        replacing_does_not_create,
        a_replaced_object_keeps_its_name_and_identity,
        a_write_that_changes_nothing_keeps_the_version,
        generation_counts_changes_of_the_spec,
        annotations_change_a_deployment,
        status_is_written_only_through_its_own_resource,
        a_status_write_leaves_metadata_alone;
    builtin:
        the_first_namespaces_exist,
        the_api_has_a_service_of_its_own,
        a_new_namespace_is_active,
        a_service_gets_an_address_and_defaults,
        the_address_of_a_service_stays,
        a_headless_service_has_no_address,
        a_secret_keeps_its_text_encoded,
        an_event_about_a_cluster_is_accepted_in_default_only,
        an_event_is_the_same_in_both_groups,
        events_are_selected_by_what_they_are_about,
        a_lease_keeps_microseconds,
        a_replaced_lease_may_be_new,
        an_endpoint_slice_has_addresses_of_its_type,
        endpoints_are_not_addresses_of_the_node_itself,
        an_ingress_needs_a_path_type,
        built_in_kinds_have_types,
        a_config_map_may_be_immutable,
        a_new_daemon_set_counts_nothing;
    custom:
        defaults_are_filled_in,
        unknown_fields_are_dropped_with_a_warning,
        unknown_fields_of_built_in_kinds_too,
        values_are_checked,
        all_errors_are_reported,
        what_a_schema_allows_is_kept,
        nulls_are_dropped_where_they_may_not_be,
        status_is_checked_too,
        a_definition_is_established,
        a_definition_takes_its_objects_with_it,
        a_definition_can_change,
        a_definition_that_cannot_be_is_refused;
    patches:
        a_merge_patch_sets_and_removes,
        a_patch_that_changes_nothing_keeps_the_version,
        a_patch_of_a_stale_version_is_a_conflict,
        a_json_patch_changes_in_order,
        a_failed_test_is_invalid,
        one_condition_is_replaced_if_it_is_as_it_was_read,
        nothing_is_appended_to_a_list_that_is_not_there,
        unknown_status_fields_are_dropped_with_a_warning,
        a_merge_patch_replaces_a_list_of_conditions,
        custom_resources_have_no_strategic_merge,
        a_patch_that_is_none_is_refused,
        a_json_patch_knows_its_operations,
        a_patch_needs_its_object,
        a_patch_cannot_rename,
        a_patch_of_the_object_leaves_its_status_alone,
        a_patched_object_is_validated,
        a_strategic_merge_goes_by_the_keys_of_lists,
        a_strategic_merge_sets_and_removes,
        a_strategic_merge_of_status_goes_by_type;
    apply:
        an_apply_creates_what_is_not_there,
        an_apply_removes_what_it_no_longer_contains,
        an_apply_leaves_alone_what_others_own,
        a_field_of_two_owners_stays_until_both_are_done,
        a_field_of_another_is_a_conflict,
        several_conflicts_are_listed,
        an_apply_merges_lists_by_key,
        an_atomic_list_of_conditions_is_taken_whole,
        conditions_with_keys_are_owned_one_by_one,
        an_apply_of_status_does_not_create,
        an_apply_names_its_manager,
        an_apply_needs_a_type_and_the_name_in_the_path,
        an_apply_of_a_stale_version_is_a_conflict,
        an_apply_may_be_yaml,
        yaml_folds_line_separators,
        yaml_refuses_control_characters,
        json_keeps_every_text,
        an_apply_is_validated,
        built_in_kinds_are_applied_too,
        who_wrote_what_is_remembered,
        a_status_write_has_a_manager_of_its_own;
    lists:
        a_list_is_sorted_and_has_a_version,
        the_items_of_a_custom_list_have_types,
        pages_follow_each_other,
        pages_show_what_was_there_at_the_first,
        a_page_that_begins_nowhere_is_refused,
        labels_select,
        malformed_label_selectors_are_refused,
        labels_select_by_number,
        fields_select,
        custom_resources_are_selected_by_fields_they_name,
        all_namespaces_are_listed_together,
        a_list_can_be_of_an_older_version,
        a_version_that_is_none_is_refused,
        reading_at_a_version_is_not_older;
    watches:
        a_watch_goes_on_from_a_version,
        a_watch_without_a_version_begins_with_what_is_there,
        a_write_that_changes_nothing_is_no_event,
        what_leaves_a_selection_is_deleted_from_it,
        one_object_is_watched_by_name,
        a_watch_of_all_namespaces_sees_each,
        initial_events_end_with_a_bookmark,
        initial_events_of_nothing_are_a_bookmark,
        initial_events_need_a_valid_request,
        a_watch_ends_after_its_time,
        a_version_from_before_the_history_has_expired,
        a_watch_from_a_version_that_is_none_is_refused,
        the_type_of_an_event_comes_first,
        one_object_can_be_watched_at_its_path,
        a_finalizer_shows_deletion_as_a_change;
    deletion:
        what_is_deleted_is_gone,
        a_finalizer_holds_what_is_deleted,
        one_of_two_finalizers_still_holds,
        what_is_being_deleted_can_still_change,
        a_custom_resource_with_a_finalizer_gets_a_new_generation,
        a_deletion_can_have_preconditions,
        a_collection_is_deleted_by_selection,
        dependents_are_waited_for_or_orphaned_by_a_finalizer,
        nothing_is_made_in_a_namespace_that_ends,
        some_namespaces_stay;
    tables:
        a_custom_table_has_the_columns_of_its_definition,
        a_cell_without_a_value_is_null,
        a_definition_without_columns_shows_the_age,
        built_in_kinds_have_columns,
        built_in_kinds_fill_their_cells,
        workloads_fill_their_cells,
        a_row_has_as_much_of_its_object_as_was_requested,
        a_table_has_pages,
        a_watched_table_names_its_columns_once,
        metadata_comes_alone,
        a_written_object_can_come_back_as_a_table,
        what_cannot_be_served_is_not_acceptable;
    discovery:
        the_version_is_served,
        requests_are_counted,
        groups_have_versions,
        versions_have_resources,
        discovery_comes_in_one_document,
        schemas_are_served,
        built_in_schemas_describe_how_lists_merge;
    garbage:
        a_body_that_is_no_json_is_refused,
        a_body_that_is_no_text_gets_a_response,
        json_that_nests_without_end_is_refused,
        numbers_may_be_of_any_size,
        a_wrong_type_is_refused_with_its_field,
        an_unknown_operator_is_refused,
        ten_thousand_names_are_kept,
        an_object_of_two_mebibytes_is_refused,
        a_body_of_four_mebibytes_is_refused,
        odd_paths_get_a_response,
        odd_queries_get_a_response,
        duplicate_fields_are_reported;
}
