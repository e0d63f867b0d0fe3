//! `require("kube")`: the functions of Karmada's scripts for Pods and quantities.

use mlua::{Lua, Value};
use objects::quantity::{Notation, Quantity};
use propagation_rules::dependencies::{Dependency, pod_references};
use propagation_rules::interpret::pod_requirements;
use serde_json::json;

use crate::arguments::Arguments;
use crate::call::{Context, Native, Results, Stop, json_of};
use crate::json::decode;

/// The functions of the library.
pub(crate) const NATIVES: [(&str, Native); 4] = [
    ("resourceAdd", resource_add),
    ("getResourceQuantity", resource_quantity),
    ("accuratePodRequirements", accurate_pod_requirements),
    ("getPodDependencies", pod_dependencies),
];

/// Returns the quantity that is an argument, and nothing for nil.
fn quantity(arguments: Arguments<'_>, place: usize) -> Result<(Quantity, Notation), Stop> {
    let Some(text) = arguments.optional_text(place)? else {
        return Ok((Quantity::default(), Notation::default()));
    };
    let parsed = Quantity::parse_with_notation(&text);
    // The text may be one of a Secret.
    parsed.ok_or_else(|| Stop::Raise(format!("argument #{place} is not a quantity")))
}

/// Adds quantities up, in the notation of the first that is not zero.
fn resource_add(_: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    let (mut sum, mut of_sum) = (Quantity::default(), Notation::default());
    for place in 1..=arguments.values.len() {
        let (quantity, notation) = quantity(arguments, place)?;
        if sum.is_zero() {
            of_sum = notation;
        }
        sum = sum + quantity;
    }
    Ok(vec![Value::String(lua.create_string(sum.text(of_sum))?)])
}

fn resource_quantity(_: &Context, _: &Lua, arguments: Arguments<'_>) -> Results {
    expect(
        arguments,
        1,
        "getResourceQuantity only accepts one argument",
    )?;
    let (quantity, _) = quantity(arguments, 1)?;
    let number = quantity.approximate();
    if number < 0.0 {
        let message = "int approximation unexpectedly returned a negative value";
        return Err(Stop::Raise(message.to_owned()));
    }
    Ok(vec![Value::Number(number)])
}

fn accurate_pod_requirements(context: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    expect(arguments, 1, "getPodRequirements only accepts one argument")?;
    let template = json_of(context, arguments.table(1)?)?;
    let requirements = template.get("spec").and_then(pod_requirements);
    Ok(vec![decode(lua, &json!(requirements))?])
}

fn pod_dependencies(context: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    expect(arguments, 2, "getPodDependencies only accepts two argument")?;
    let template = json_of(context, arguments.table(1)?)?;
    let namespace = match arguments.get(2) {
        Some(_) => String::from_utf8_lossy(&arguments.text(2)?).into_owned(),
        None => "default".to_owned(),
    };
    let found = template.get("spec");
    let found = found.map(|spec| pod_references(spec, &namespace));
    let found: Vec<Dependency> = found.into_iter().flatten().collect();
    Ok(vec![decode(lua, &json!(found))?])
}

fn expect(arguments: Arguments<'_>, count: usize, message: &str) -> Result<(), Stop> {
    if arguments.values.len() == count {
        Ok(())
    } else {
        Err(Stop::Raise(message.to_owned()))
    }
}
