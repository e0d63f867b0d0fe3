//! `kubectl remedy interpret`: the answer of everybody who could be asked about an object, and who decides.
//!
//! ```text
//! files → question ─┐
//! fleet or files ───┴→ interpreters, each alone → statement → YAML
//! ```

pub(crate) mod customizations;
mod question;
mod statement;
#[cfg(test)]
mod tests;

use interpreters::Interpreters;
use jiff::Timestamp;
use karmada_runtime::client::Addresses;
use kube::Client;
use objects::GroupVersionKind;
use propagation_rules::customization::{Customized, Interpreter, Operation};
use serde_json::Value;

use self::question::Question;
use self::statement::Statement;
use crate::answer::Answer;
use crate::args::{ConnectionArgs, InterpretArgs};
use crate::error::Error;
use crate::identity::NAME;
use crate::manifest::{self, Format};
use crate::terminal;

/// Prints everybody's answers.
pub(crate) async fn run(
    args: &InterpretArgs,
    connection: &ConnectionArgs,
) -> Result<Answer, Error> {
    let (statements, answer) = answers(args, connection).await?;
    let format = args.output.unwrap_or(Format::Yaml);
    terminal::print(&manifest::text(&statements, format)?);
    Ok(answer)
}

/// Returns everybody's answer, and whether whoever decides has answered.
async fn answers(
    args: &InterpretArgs,
    connection: &ConnectionArgs,
) -> Result<(Vec<Statement>, Answer), Error> {
    let question = Question::read(args)?;
    let (client, objects) = customizations::find(&args.customization, connection).await?;
    let statements = statements(&question, client, &objects).await;
    let mut all = statements.iter();
    let is_bad = all.any(|statement| statement.decides && statement.error.is_some());
    Ok((statements, Answer::from(!is_bad)))
}

/// Returns everybody's answers to each operation of a question, those first who are asked first.
async fn statements(question: &Question, client: Client, objects: &[Value]) -> Vec<Statement> {
    let interpreters = Interpreters::new(client, Addresses::by_system(), NAME, Timestamp::now);
    let kind = GroupVersionKind::of(&question.object);
    let all: Customized = objects.iter().collect();
    let mut statements = Vec::new();
    for &operation in &question.operations {
        let first = all.interpreter(&kind, operation);
        let mut scripts = Vec::new();
        let mut webhooks = Vec::new();
        for object in objects {
            let alone = Customized::from_iter([object]);
            let Some(interpreter) = alone.interpreter(&kind, operation) else {
                continue;
            };
            interpreters.replace(alone);
            let Some(answer) = question.ask(&interpreters, operation).await else {
                continue;
            };
            let decides = has_a_say(&interpreter, first.as_ref(), operation);
            let list = match &interpreter {
                Interpreter::Script(_) => &mut scripts,
                Interpreter::Webhook(_) => &mut webhooks,
            };
            list.push(Statement::new(
                operation,
                name(&interpreter),
                decides,
                answer,
            ));
        }
        statements.extend(scripts);
        statements.extend(webhooks);
        let answer = Ok(question.built_in(operation));
        let built_in = "built in".to_owned();
        statements.push(Statement::new(operation, built_in, first.is_none(), answer));
    }
    statements
}

/// Returns `true` if the answer of an interpreter counts, where another, or itself, is asked `first`. The dependencies that
/// scripts find are united.
fn has_a_say(interpreter: &Interpreter, first: Option<&Interpreter>, operation: Operation) -> bool {
    let are_scripts = matches!(
        (interpreter, first),
        (Interpreter::Script(_), Some(Interpreter::Script(_)))
    );
    first == Some(interpreter) || are_scripts && operation == Operation::InterpretDependency
}

fn name(interpreter: &Interpreter) -> String {
    match interpreter {
        Interpreter::Script(script) => format!("customization {}", script.customization),
        Interpreter::Webhook(webhook) => format!("webhook {}", webhook.name),
    }
}
