//! Tests of the scanner, the tape and its values.
use super::*;

fn text_of(json: &str) -> String {
    let tape = Tape::scan(json.as_bytes()).expect("it is JSON");
    tape.root().and_then(Value::text).expect("it is a string").decode().into_owned()
}

#[test]
fn strings_decode_as_serde_json_decodes_them() {
    for json in [r#""""#, r#""plain""#, r#""a\"\\\/\b\f\n\r\tz""#, r#""\u00e9\u0000\ud83d\ude00é😀""#] {
        assert_eq!(text_of(json), serde_json::from_str::<String>(json).expect("it is JSON"));
    }
}

#[test]
fn decoded_places_are_found_in_the_source() {
    let source = r#""é\n\ud83d\ude00x""#;
    let tape = Tape::scan(source.as_bytes()).expect("it is JSON");
    let text = tape.root().and_then(Value::text).expect("it is a string");
    let decoded = text.decode();
    assert_eq!(text.decoded_bytes(), decoded.len());
    let mut places = text.places();
    let mut raw_of = |found: &str| places.raw_offset(decoded.find(found).expect("it is there"));
    assert_eq!(&text.raw()[raw_of("\n")..][..2], "\\n");
    assert_eq!(&text.raw()[raw_of("😀")..][..6], "\\ud83d");
    assert_eq!(&text.raw()[raw_of("x")..], "x");
    assert_eq!(places.raw_offset(decoded.len()), text.raw().len());
}

#[test]
fn long_strings_end_where_they_end() {
    for length in 0..200 {
        for special in ["", "\\n", "\\\""] {
            let json = format!("[\"{}{special}{}\", 1]", "x".repeat(length), "y".repeat(length / 2));
            let tape = Tape::scan(json.as_bytes()).expect("it is JSON");
            let root = tape.root().expect("it is an array");
            assert_eq!(root.items().map(Value::kind).collect::<Vec<_>>(), [Type::String, Type::Number]);
        }
        let control = format!("[\"{}\u{1}\"]", "x".repeat(length));
        let broken = Tape::scan(control.as_bytes()).expect_err("a control character is not allowed");
        assert_eq!((broken.error.kind, broken.error.offset), (Syntax::ControlCharacter, 2 + length));
    }
}

#[test]
fn members_and_items_are_walked_without_their_contents() {
    let tape = Tape::scan(br#"{"a": [1, {"b": 2}], "c": null}"#).expect("it is JSON");
    let root = tape.root().expect("it is an object");
    let names: Vec<String> = root.members().map(|(name, _)| name.decode().into_owned()).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(root.get("a").map(|value| value.items().count()), Some(2));
    assert!(root.get("b").is_none() && root.get("c").is_some_and(Value::is_null));
}

#[test]
fn mistakes_are_named() {
    let named =
        |json: &str| Tape::scan(json.as_bytes()).map(|_| ()).map_err(|broken| (broken.error.kind, broken.error.offset));
    let cases = [
        ("", Syntax::Empty, 0),
        ("{'a': 1}", Syntax::SingleQuotes, 1),
        ("{a: 1}", Syntax::BareName, 1),
        ("{\"a\": None}", Syntax::PythonLiteral, 6),
        ("{\"a\": True}", Syntax::PythonLiteral, 6),
        ("{\"a\": NaN}", Syntax::NotFinite, 6),
        ("[-Infinity]", Syntax::NotFinite, 1),
        ("[1, // one\n2]", Syntax::Comment, 4),
        ("[1,]", Syntax::TrailingComma, 3),
        ("{\"a\": 1 \"b\": 2}", Syntax::MissingComma, 8),
        ("{\"a\" 1}", Syntax::MissingColon, 5),
        ("[1}", Syntax::WrongBracket, 2),
        ("[1]]", Syntax::WrongBracket, 3),
        ("{} {}", Syntax::Trailing, 3),
        ("{\"a\": \"b", Syntax::EndsInString, 8),
        ("{\"a\": 1", Syntax::EndsInObject, 7),
        ("[tru", Syntax::EndsInArray, 1),
        ("[\"\\x\"]", Syntax::BadEscape, 2),
        ("[undefined]", Syntax::NotAValue, 1),
    ];
    for (json, kind, offset) in cases {
        assert_eq!(named(json), Err((kind, offset)), "{json}");
    }
}

#[test]
fn texts_are_quoted_as_serde_json_quotes_them() {
    let controls: String = (0..=0x7f).map(char::from).collect();
    for text in ["", "plain", "é😀\u{2028}\u{fffd}", "a\"b\\c/d", &controls] {
        assert_eq!(quoted(text), serde_json::to_string(text).expect("a string can be encoded"));
        assert_eq!(text_of(&quoted(text)), text);
    }
}

#[test]
fn values_are_laid_out_with_their_spelling() {
    let source = r#" {"b":1.50,"a" : [ "\u00e9", {}, [ ] ,1E3 , [[true]] ], "":{ "x" :null}} "#;
    let tape = Tape::scan(source.as_bytes()).expect("it is JSON");
    let root = tape.root().expect("it is an object");
    let lines = [
        "{",
        "  \"b\": 1.50,",
        "  \"a\": [",
        "    \"\\u00e9\",",
        "    {},",
        "    [],",
        "    1E3,",
        "    [",
        "      [",
        "        true",
        "      ]",
        "    ]",
        "  ],",
        "  \"\": {",
        "    \"x\": null",
        "  }",
        "}",
    ];
    assert_eq!(pretty(root), lines.join("\n"));
    assert_eq!(compact(root), r#"{"b":1.50,"a":["\u00e9",{},[],1E3,[[true]]],"":{"x":null}}"#);
    let inside = root.get("a").expect("it is there");
    assert_eq!(compact(inside), r#"["\u00e9",{},[],1E3,[[true]]]"#);
    assert!(pretty(inside).starts_with("[\n  \"") && pretty(inside).ends_with("\n]"));
}

#[test]
fn layout_is_what_serde_json_makes_of_it() {
    for source in ["7", "\"a\"", "{}", "[]", r#"{"a":[1,{"b":[]},[[],{}]],"c":{"d":"e"}}"#] {
        let tape = Tape::scan(source.as_bytes()).expect("it is JSON");
        let root = tape.root().expect("it has a value");
        let value: serde_json::Value = serde_json::from_str(source).expect("it is JSON");
        assert_eq!(pretty(root), serde_json::to_string_pretty(&value).expect("it can be printed"));
        assert_eq!(compact(root), source);
    }
}

/// Blocks of plain text are written as a whole: a byte that needs an escape is found wherever it is in a block.
#[test]
fn every_byte_that_needs_an_escape_gets_it_wherever_it_is() {
    for special in ["\"", "\\", "\n", "\u{0}", "\u{1f}", "\u{8}", "\u{c}", "\u{7f}", "\u{80}", "\u{1f600}"] {
        for before in 0..70 {
            for after in [0, 1, 31, 32, 33] {
                let text = format!("{}{special}{}", "a".repeat(before), "\u{e4}".repeat(after));
                assert_eq!(quoted(&text), serde_json::to_string(&text).expect("a text"), "{before} {after}");
            }
        }
    }
}
