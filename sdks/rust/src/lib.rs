//! Airflow tasks in Rust. The README shows the way from nothing to a running task.
//!
//! A program registers its tasks and hands over to [`Tasks::run`]:
//!
//! ```no_run
//! use airflow_handoff_sdk::{Context, TaskResult, Tasks};
//!
//! fn extract(ctx: &Context) -> TaskResult<Vec<i64>> {
//!     tracing::info!(run = ctx.run_id(), "extracting");
//!     Ok(vec![1, 2, 3])
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     Tasks::new().task("numbers", "extract", extract).run()
//! }
//! ```
//!
//! Airflow starts the program with `--comm=HOST:PORT --logs=HOST:PORT`, one process for each try.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// A message of the next schema may have one field more: no literal of one names them all.
#![allow(clippy::needless_update)]

mod args;
mod assets;
pub mod bundle;
mod client;
mod context;
mod de;
mod error;
mod execute;
mod human;
mod json;
pub mod logs;
#[rustfmt::skip]
pub mod messages;
mod outcome;
mod revive;
mod ser;
mod sha256;
mod tasks;
mod time;
pub mod value;
mod when;

pub use assets::{AssetEvents, AssetRef, AssetStore, Emission};
pub use client::Client;
pub use context::{Context, Downstream, TaskStore, XCom};
pub use error::Error;
pub use human::{Answer, Field, Question};
pub use outcome::{Decision, Defer, HumanTimeout, TaskError, TaskResult, TriggerFailed};
pub use tasks::{Handler, Tasks};
pub use value::Value;
pub use when::{TriggerDuration, TriggerMoment, When};

/// The result of a request to the supervisor.
pub type Result<T> = std::result::Result<T, Error>;

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
