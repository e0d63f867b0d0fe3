//! Assertions that return an error with both sides.

/// Fails the case unless both sides are equal.
macro_rules! check_eq {
    ($left:expr, $right:expr $(, $($about:tt)+)?) => {
        match (&$left, &$right) {
            (left, right) if *left == *right => {}
            (left, right) => {
                let about: &[String] = &[$(format!($($about)+))?];
                anyhow::bail!(
                    "{}: {} is {left:?} instead of {right:?} (line {})",
                    about.concat(), stringify!($left), line!()
                );
            }
        }
    };
}

/// Fails the case unless the condition holds, and shows the value.
macro_rules! check {
    ($condition:expr, $value:expr) => {
        if !$condition {
            anyhow::bail!(
                "not {}: {:?} (line {})",
                stringify!($condition),
                $value,
                line!()
            );
        }
    };
}
