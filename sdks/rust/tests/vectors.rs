//! The codec, on frames that were captured between real tasks and the real supervisor.

use std::path::PathBuf;

use airflow_handoff_sdk::messages::{SetXCom, StartupDetails, SucceedTask};
use airflow_handoff_sdk::{Error, Value};
use serde_json::Value as Json;

struct Vector {
    file: String,
    bytes: Vec<u8>,
    decoded: Json,
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn vectors() -> Vec<Vector> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the captured frames are in the repository") {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        // JSON has no NaN, and one captured frame does.
        let text = std::fs::read_to_string(&path).unwrap().replace(": NaN", ": \"NaN\"");
        let frames: Vec<Json> = serde_json::from_str(&text).unwrap();
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        for frame in frames {
            let bytes = unhex(frame["hex"].as_str().unwrap());
            found.push(Vector { file: file.clone(), bytes, decoded: frame["decoded"].clone() });
        }
    }
    found
}

/// Whether a decoded value is what was captured with the frame.
fn same(value: &Value, json: &Json) -> bool {
    match (value, json) {
        (Value::Nil, Json::Null) => true,
        (Value::Bool(a), Json::Bool(b)) => a == b,
        (Value::Int(a), Json::Number(b)) => b.as_i64() == Some(*a),
        (Value::UInt(a), Json::Number(b)) => b.as_u64() == Some(*a),
        (Value::Float(a), Json::Number(b)) => b.as_f64() == Some(*a),
        (Value::Float(a), Json::String(b)) => a.is_nan() && b == "NaN",
        (Value::Str(a), Json::String(b)) => a == b,
        (Value::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Moment { .. }, Json::Object(b)) => {
            let text = Value::from_json(value).unwrap();
            let plain = |text: &str| text.replace("Z", "+00:00").replace(".000000", "");
            b.get("$ts").and_then(Json::as_str).map(plain) == text.as_str().map(plain)
        }
        (Value::Bin(a), Json::Object(b)) => {
            b.get("$bin").and_then(Json::as_str).map(unhex).as_ref() == Some(a)
        }
        (Value::Map(a), Json::Object(b)) => {
            let key = |key: &Value| key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(&key(k)).is_some_and(|json| same(v, json)))
        }
        _ => false,
    }
}

#[test]
fn every_frame_decodes_to_what_was_sent() {
    let mut count = 0;
    for vector in vectors().iter().filter(|vector| !vector.decoded.is_null()) {
        let size = u32::from_be_bytes(vector.bytes[..4].try_into().unwrap()) as usize;
        assert_eq!(size, vector.bytes.len() - 4, "{}", vector.file);
        let value = Value::decode(&vector.bytes[4..]).unwrap();
        assert!(same(&value, &vector.decoded), "{}: {value} is not {}", vector.file, vector.decoded);
        count += 1;
    }
    assert!(count > 150, "{count} frames");
}

#[test]
fn every_value_encodes_to_itself() {
    for vector in vectors().iter().filter(|vector| !vector.decoded.is_null()) {
        let value = Value::decode(&vector.bytes[4..]).unwrap();
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(bytes, vector.bytes[4..], "{}", vector.file);
    }
}

#[test]
fn every_startup_is_read_as_its_type() {
    let mut count = 0;
    for vector in vectors().iter().filter(|vector| vector.file.starts_with("StartupDetails")) {
        let Value::Array(frame) = Value::decode(&vector.bytes[4..]).unwrap() else { panic!("no frame") };
        let startup: StartupDetails = frame[1].clone().into_type().unwrap();
        assert_eq!(startup.ti.dag_id, vector.decoded[1]["ti"]["dag_id"].as_str().unwrap());
        count += 1;
    }
    assert!(count > 5, "{count} frames");
}

#[test]
fn broken_payloads_are_errors() {
    let deep = "91".repeat(5000);
    for hex in ["", "c1c1c1", "a56162", "d9", "9301", "0101", "a1ff", "dfffffffff", "d6ff00", &deep] {
        assert!(matches!(Value::decode(&unhex(hex)), Err(Error::Wire(_))), "{hex}");
    }
}

#[test]
fn every_width_survives() {
    let mut values: Vec<Value> = [0, 127, 128, 255, 256, 65535, 65536, u32::MAX.into(), i64::MAX]
        .into_iter()
        .chain([-1, -32, -33, -128, -129, -32768, -32769, i32::MIN.into(), i64::from(i32::MIN) - 1, i64::MIN])
        .map(Value::Int)
        .collect();
    values.push(Value::UInt(u64::MAX));
    values.push(Value::Float(1.5));
    for size in [0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536] {
        values.push(Value::Str("x".repeat(size)));
        values.push(Value::Bin(vec![7; size]));
        values.push(Value::Ext(5, vec![7; size]));
        values.push(Value::Array(vec![Value::Nil; size]));
        values.push(Value::Map((0..size).map(|n| (Value::Int(n as i64), Value::Nil)).collect()));
    }
    for seconds in [0, 1, -1, i64::from(u32::MAX) + 1, 1 << 34] {
        values.push(Value::Moment { seconds, nanos: 5 });
        values.push(Value::Moment { seconds, nanos: 0 });
    }
    for value in values {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(Value::decode(&bytes).unwrap(), value);
    }
}

#[test]
fn messages_carry_their_type_and_leave_out_what_is_not_set() {
    let message = SetXCom { key: "k".into(), value: Value::Int(1), ..Default::default() };
    let value = Value::from_json(&message).unwrap();
    assert_eq!(value.get("type").and_then(Value::as_str), Some("SetXCom"));
    assert!(value.get("mapped_length").is_none());
    let done = SucceedTask { task_outlets: Some(vec![]), ..Default::default() };
    assert_eq!(Value::from_json(&done).unwrap().get("task_outlets"), Some(&Value::Array(vec![])));
}

#[test]
fn what_is_not_json_is_refused() {
    let not_text = std::collections::BTreeMap::from([(1, 2)]);
    assert!(matches!(Value::from_json(&not_text), Err(Error::NotJson(_))));
    assert!(matches!(Value::from_json(&f32::INFINITY), Err(Error::NotJson(_))));
    assert!(matches!(Value::from_json(&Value::Bin(vec![1])), Err(Error::NotJson(_))));
}

#[test]
fn values_of_other_crates_pass_through() {
    let json = serde_json::json!({"a": [1, 2.5, null, true, "x"], "b": {}});
    let value = Value::from_json(&json).unwrap();
    assert_eq!(value.clone().into_type::<Json>().unwrap(), json);
    assert_eq!(value.to_string(), r#"{"a":[1,2.5,null,true,"x"],"b":{}}"#);
}
