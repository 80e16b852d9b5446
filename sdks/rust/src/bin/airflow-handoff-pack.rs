//! Packs a program into a bundle: `airflow-handoff-pack PROGRAM [--source FILE] -o BUNDLE`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: airflow-handoff-pack PROGRAM [--source FILE] -o BUNDLE

PROGRAM is what `cargo build --release` made of a crate whose main() ends in Tasks::run(). It is asked for
its manifest with --airflow-metadata; FILE is embedded as the source that Airflow may show.

example: airflow-handoff-pack target/release/numbers --source src/main.rs -o bundles/numbers";

struct Options {
    program: PathBuf,
    source: Option<PathBuf>,
    output: PathBuf,
}

fn options() -> Option<Options> {
    let (mut program, mut source, mut output) = (None, None, None);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--source") => source = Some(arguments.next()?.into()),
            Some("-o" | "--output") => output = Some(arguments.next()?.into()),
            Some("-h" | "--help") => return None,
            _ => program = Some(PathBuf::from(argument)),
        }
    }
    Some(Options { program: program?, source, output: output? })
}

fn pack(options: &Options) -> Result<usize, String> {
    let at = |path: &PathBuf, error: std::io::Error| format!("{}: {error}", path.display());
    let path = options.program.canonicalize().map_err(|error| at(&options.program, error))?;
    let binary = std::fs::read(&path).map_err(|error| at(&path, error))?;
    let asked = Command::new(&path).arg("--airflow-metadata").output().map_err(|error| at(&path, error))?;
    let manifest = String::from_utf8(asked.stdout).map_err(|error| error.to_string())?;
    if !asked.status.success() || !manifest.starts_with("airflow_bundle_metadata_version") {
        return Err(format!("{} printed no manifest for --airflow-metadata", path.display()));
    }
    let source = match &options.source {
        Some(file) => std::fs::read_to_string(file).map_err(|error| at(file, error))?,
        None => String::new(),
    };
    let bundle = airflow_handoff_sdk::bundle::pack(&binary, &source, &manifest)?;
    write(&options.output, &bundle).map_err(|error| at(&options.output, error))?;
    Ok(bundle.len())
}

#[cfg(unix)]
fn write(path: &PathBuf, bundle: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, bundle)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn write(path: &PathBuf, bundle: &[u8]) -> std::io::Result<()> {
    std::fs::write(path, bundle)
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match pack(&options) {
        Ok(size) => {
            println!("{}: {size} bytes", options.output.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("airflow-handoff-pack: {error}");
            ExitCode::FAILURE
        }
    }
}
