use jiff::Timestamp;

use super::*;

/// Our class is told once in each generation that it has a controller, and another never.
#[test]
fn own_class_is_accepted() {
    let now = Timestamp::UNIX_EPOCH;
    let mut ours_class = class("ours", OURS);
    ours_class.metadata.generation = Some(2);
    let steps = json!(class_status(&ours_class, &ours(), now));
    let condition = &steps[0]["value"]["conditions"][0];
    assert_eq!(steps[0]["path"], "/status", "{steps}");
    assert_eq!(
        (&condition["type"], &condition["status"]),
        (&json!("Accepted"), &json!("True"))
    );
    assert_eq!(condition["observedGeneration"], 2);

    ours_class.status = Some(from_value(steps[0]["value"].clone()).unwrap());
    assert!(class_status(&ours_class, &ours(), now).is_empty());
    ours_class.metadata.generation = Some(3);
    let steps = json!(class_status(&ours_class, &ours(), now));
    assert_eq!(steps[1]["path"], "/status/conditions/0", "{steps}");
    assert!(class_status(&class("theirs", "example.com/theirs"), &ours(), now).is_empty());
}
