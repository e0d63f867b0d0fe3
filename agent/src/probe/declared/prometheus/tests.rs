use super::*;

fn prometheus(series: Option<Series>) -> Prometheus {
    Prometheus {
        url: "http://prometheus:9090".to_owned(),
        query: "up".to_owned(),
        holds: "value < 0.05".to_owned(),
        series,
        max_age: None,
        ca: None,
        token: None,
    }
}

#[test]
fn comparisons_are_parsed() {
    for (text, value, expected) in [
        ("value < 0.05", 0.04, true),
        (" value<0.05 ", 0.05, false),
        ("value <= 1", 1.0, true),
        ("value>=-1e3", -1_000.0, true),
        ("value != 0", 0.0, false),
        ("value == 0", 0.0, true),
        ("value > 7", f64::INFINITY, true),
    ] {
        let comparison = Comparison::parse(text).unwrap();
        assert_eq!(comparison.holds(value), expected, "{text}");
    }
    for text in [
        "",
        "value",
        "value <",
        "0.05 > value",
        "value < NaN",
        "value ~ 1",
        "value < 1 and more",
    ] {
        Comparison::parse(text).unwrap_err();
    }
}

/// An empty answer and NaN are no vote, and of several series a user says which count.
#[test]
fn no_value_is_no_vote() {
    let below = Comparison::parse("value < 1").unwrap();
    let nan = f64::NAN;
    for (series, values, expected) in [
        (None, &[][..], None),
        (None, &[nan], None),
        (None, &[0.5], Some(true)),
        (None, &[2.0], Some(false)),
        (None, &[0.5, 0.5], None),
        (Some(Series::All), &[0.5, 2.0, nan], Some(false)),
        (Some(Series::Any), &[0.5, 2.0, nan], Some(true)),
        (Some(Series::All), &[nan, nan], None),
    ] {
        let judged = prometheus(series).judge(values, below).ok();
        assert_eq!(judged, expected, "{series:?} {values:?}");
    }
}

/// Each query names the longest age of a sample, and takes no part for the whole.
#[test]
fn query_bounds_the_age() {
    let age = Duration::from_secs(10);
    let parameters = prometheus(None).parameters(age, Duration::from_secs(2));
    assert_eq!(
        parameters,
        "query=up&lookback_delta=10000ms&timeout=2000ms&partial_response=false"
    );
    let given = Prometheus {
        max_age: Some("1m".to_owned()),
        ..prometheus(None)
    };
    assert_eq!(given.given_age(), Ok(Some(Duration::from_mins(1))));
}

#[test]
fn outer_comparison_is_noticed() {
    for (query, expected) in [
        ("up == 0", true),
        (
            "sum(rate(errors[1m])) / sum(rate(requests[1m])) > 0.1",
            true,
        ),
        ("sum(up == 0)", false),
        ("up == bool 0", false),
        (r#"rate(errors{code=~"5..|<"}[1m])"#, false),
        ("up", false),
    ] {
        assert_eq!(ends_in_comparison(query), expected, "{query}");
    }
}
