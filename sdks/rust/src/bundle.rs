//! An executable that carries its own manifest: format AFBNDL01.

use crate::sha256::{hex, sha256};

const MAGIC: &[u8; 8] = b"AFBNDL01";
const TRAILER: usize = 64;

/// Return the bundle of a program.
///
/// `source` may be empty; `manifest` is what the program prints for `--airflow-metadata`. The digests of
/// the source and of the manifest are recorded in the manifest.
///
/// # Errors
/// Where the program is empty or a bundle already.
pub fn pack(binary: &[u8], source: &str, manifest: &str) -> Result<Vec<u8>, String> {
    if binary.is_empty() {
        return Err("the program is empty".into());
    }
    if binary.len() > TRAILER && binary.ends_with(MAGIC) {
        return Err("the program is a bundle already; pack the program that cargo built".into());
    }
    let mut manifest = format!("{manifest}source_sha256: \"{}\"\n", hex(source.as_bytes()));
    manifest += &format!("# manifest-sha256: {}\n", hex(manifest.as_bytes()));
    let size = |text: &str| u32::try_from(text.len()).map_err(|_| "a region of more than 4 GiB".to_owned());
    let mut bundle = binary.to_vec();
    bundle.extend(source.as_bytes());
    bundle.extend(manifest.as_bytes());
    for number in [size(source)?, size(&manifest)?, 1] {
        bundle.extend(number.to_le_bytes());
    }
    bundle.extend(sha256(binary));
    bundle.extend([0; 12]);
    bundle.extend(MAGIC);
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_follow_each_other() {
        let bundle = pack(b"binary", "fn main() {}", "dags: {}\n").unwrap();
        let trailer = &bundle[bundle.len() - TRAILER..];
        let number = |at: usize| u32::from_le_bytes(trailer[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((number(0), number(8)), (12, 1));
        assert_eq!(6 + number(0) + number(4) + TRAILER, bundle.len());
        assert_eq!(&trailer[12..44], &sha256(b"binary"));
        assert!(trailer[44..56].iter().all(|byte| *byte == 0));
        assert_eq!(&trailer[56..], MAGIC);
        assert_eq!(&bundle[6..18], b"fn main() {}");
    }

    #[test]
    fn a_bundle_is_not_packed_twice() {
        let bundle = pack(b"binary", "", "dags: {}\n").unwrap();
        assert!(pack(&bundle, "", "").is_err());
        assert!(pack(b"", "", "").is_err());
    }
}
