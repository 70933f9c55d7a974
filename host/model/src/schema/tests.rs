//! What schemas say of settings, and what they cannot say.

use super::*;
use serde_json::json;

fn schema(schema: Value) -> Schema {
    Schema::read(&schema.to_string()).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn problems(of: Value, value: &Value) -> Vec<String> {
    schema(of).check(value).err().unwrap_or_default()
}

/// By keyword: a schema of the setting `x`, what it takes, what it does not, and
/// the words for that.
#[test]
fn every_keyword_is_enforced() {
    for (keyword, good, bad) in [
        (json!({"type": "string"}), json!(["", "5"]), json!([[5, "expected text (quoted"]])),
        (json!({"type": "boolean"}), json!([true]), json!([["yes", "expected true or false"]])),
        (
            json!({"type": "integer"}),
            json!([5, -5, 5.0, u64::MAX]),
            json!([[1.5, "a whole number, found 1.5"], ["5", "a whole number, found \"5\""]]),
        ),
        (json!({"type": "number"}), json!([1, 1.5]), json!([[null, "a number, found null"]])),
        (json!({"type": "array"}), json!([[]]), json!([["a", "expected a list"]])),
        (json!({"type": "object"}), json!([{}]), json!([[[1], "an object, such as"]])),
        (
            json!({"type": ["string", "null"]}),
            json!(["a", null]),
            json!([[1, "else) or null, found 1"]]),
        ),
        (
            json!({"enum": ["a", 1, null, {"b": [1.0]}]}),
            json!(["a", 1, 1.0, null, {"b": [1]}]),
            json!([["b", "one of a, 1, null, {\"b\":[1.0]}, found \"b\""]]),
        ),
        (json!({"const": 3}), json!([3]), json!([[4, "expected 3, found 4"]])),
        (
            json!({"minLength": 2}),
            json!(["äö", 1]),
            json!([["ä", "at least 2 characters, found 1"]]),
        ),
        (json!({"maxLength": 1}), json!(["ä"]), json!([["ab", "at most 1 character, found 2"]])),
        (
            json!({"pattern": "^[a-z]+\\.service$"}),
            json!(["a.service", 7]),
            json!([["a.service\n", "matches /^[a-z]+\\.service$/"], ["a.Service", "found \"a.S"]]),
        ),
        (json!({"pattern": "b"}), json!(["abc"]), json!([["ac", "matches /b/"]])),
        (json!({"minimum": 1}), json!([1, 1.5, "0"]), json!([[0, "at least 1, found 0"]])),
        (json!({"maximum": 1.5}), json!([1.5]), json!([[2, "at most 1.5, found 2"]])),
        (json!({"exclusiveMinimum": 1}), json!([1.1]), json!([[1, "more than 1, found 1"]])),
        (json!({"exclusiveMaximum": 1}), json!([0]), json!([[1.0, "less than 1, found 1.0"]])),
        (
            json!({"maximum": 9007199254740993_u64}),
            json!([9007199254740993_u64]),
            json!([[9007199254740994_u64, "at most"]]),
        ),
        (
            json!({"multipleOf": 5}),
            json!([0, -10, 15.0]),
            json!([[7, "a multiple of 5, found 7"], [5.5, "a multiple of 5"]]),
        ),
        (
            json!({"items": {"type": "string"}}),
            json!([[], ["a"], "a"]),
            json!([[["a", 1, "b"], "x[1]: expected text"]]),
        ),
        (json!({"minItems": 1}), json!([[1]]), json!([[[], "at least 1 item, found 0"]])),
        (json!({"maxItems": 2}), json!([[1, 1]]), json!([[[1, 2, 3], "at most 2 items, found 3"]])),
        (
            json!({"uniqueItems": true}),
            json!([[1, 2, "1"], []]),
            json!([[[1, {"a": 1}, {"a": 1.0}], "an object stands there twice"]]),
        ),
        (
            json!({"properties": {"a": {"type": "null"}}}),
            json!([{"a": null, "b": 1}]),
            json!([[{"a": 1}, "x.a: expected null, found 1"]]),
        ),
        (
            json!({"properties": {"drain": true}, "additionalProperties": false}),
            json!([{"drain": 1}, {}]),
            json!([[{"drian": 1}, "x: unknown setting \"drian\": did you mean \"drain\"?"]]),
        ),
        (
            json!({"additionalProperties": {"type": "integer"}}),
            json!([{"any": 1}]),
            json!([[{"any": "a"}, "x.any: expected a whole number"]]),
        ),
        (
            json!({"propertyNames": {"pattern": "^[a-z]+$"}}),
            json!([{"a": 1}]),
            json!([[{"A": 1}, "x: the name \"A\": expected text that matches"]]),
        ),
        (
            json!({"minProperties": 1}),
            json!([{"a": 1}]),
            json!([[{}, "at least 1 field, found 0"]]),
        ),
        (json!({"maxProperties": 0}), json!([{}]), json!([[{"a": 1}, "at most 0 fields"]])),
        (
            json!({"required": ["a"]}),
            json!([{"a": null}, [], "a"]),
            json!([[{}, "x.a: it is missing, and has to be set"]]),
        ),
        (
            json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}),
            json!([1, 2]),
            json!([[3, "at most 2"], [0, "at least 1"]]),
        ),
        (
            json!({"anyOf": [{"type": "null"}, {"type": "string", "minLength": 1}]}),
            json!([null, "a"]),
            json!([[
                "",
                "null, found \"\"; or x: expected at least 1 character, found 0 (it fits none of 2 forms)"
            ]]),
        ),
        (
            json!({"oneOf": [{"minimum": 1}, {"maximum": 3}]}),
            json!([0, 4]),
            json!([[2, "x: it fits 2 of the forms"]]),
        ),
        (json!({"not": {"const": 0}}), json!([1]), json!([[0, "excludes, found 0"]])),
        (json!(false), json!([]), json!([[0, "x: expected nothing here, found 0"]])),
    ] {
        let whole = json!({"type": "object", "properties": {"x": keyword}});
        let one = schema(whole.clone());
        for good in good.as_array().unwrap() {
            assert_eq!(problems(whole.clone(), &json!({"x": good})), [""; 0], "{keyword} {good}");
            assert_eq!(one.check_setting("x", good), Ok(()), "{keyword} {good}");
        }
        for bad in bad.as_array().unwrap() {
            let (value, words) = (&bad[0], bad[1].as_str().unwrap());
            let found = problems(whole.clone(), &json!({"x": value}));
            let all = found.join("\n");
            assert!(found.len() == 1 && all.contains(words), "{keyword}: {words:?} in {all}");
            assert!(all.starts_with("x"), "{all}");
            assert_eq!(one.check_setting("x", value), Err(found), "{keyword}");
        }
    }
}

#[test]
fn every_problem_is_told_as_far_as_a_person_reads() {
    let of = json!({
        "additionalProperties": false,
        "properties": {"a": {"type": "string"}, "b": {"enum": [1]}, "c": {"minimum": 3}},
    });
    let found = problems(of, &json!({"a": 1, "b": 2, "c": 2, "d": 4}));
    assert_eq!(found.len(), 4, "{found:?}");
    let many: Vec<usize> = (0..1000).collect();
    let of = json!({"properties": {"x": {"items": {"type": "string"}}}});
    assert_eq!(problems(of, &json!({"x": many})).len(), 8);
    let of = json!({"properties": {"x": {"type": "integer"}}});
    let found = problems(of, &json!({"x": "long ".repeat(100_000)}));
    assert!(found[0].len() < 200 && found[0].ends_with("…\""), "{found:?}");
}

#[test]
fn what_is_not_enforced_is_an_error_that_names_its_place() {
    for (wrong, words) in [
        (
            json!({"properties": {"x": {"format": "uri"}}}),
            "properties.x.format: tread does not enforce this keyword: write a pattern",
        ),
        (json!({"$ref": "#/$defs/x"}), "$ref: tread does not enforce"),
        (json!({"$defs": {}}), "$defs: "),
        (json!({"if": {}}), "if: "),
        (json!({"patternProperties": {}}), "write propertyNames"),
        (json!({"maxLenght": 3}), "unknown keyword \"maxLenght\": did you mean \"maxLength\"?"),
        (json!({"x-own": 3}), "tread takes no keyword that it does not enforce"),
        (json!({"type": "text"}), "expected one of null, boolean, integer, number, string"),
        (json!({"type": []}), "type: "),
        (json!({"enum": []}), "enum: expected a list of values"),
        (json!({"minLength": -1}), "minLength: expected a whole number from 0 on"),
        (json!({"exclusiveMinimum": true}), "exclusiveMinimum: expected a number"),
        (json!({"multipleOf": 0.1}), "multipleOf: expected a whole number from 1 on"),
        (json!({"items": [{}]}), "items: expected a schema"),
        (json!({"uniqueItems": 1}), "uniqueItems: expected true or false"),
        (json!({"properties": []}), "properties: expected names"),
        (json!({"required": true}), "required: expected a list of names"),
        (json!({"anyOf": []}), "anyOf: expected a list of schemas"),
        (json!({"anyOf": [{}, {"format": "x"}]}), "anyOf[1].format: "),
        (json!({"pattern": "("}), "pattern: \"(\": "),
        (json!({"pattern": "(?=a)"}), "pattern: "),
        (json!({"pattern": "(a)\\1"}), "look-around, references back"),
        (json!({"pattern": "((a{100}){100}){100}"}), "repeats too often"),
        (json!({"pattern": "a".repeat(1001)}), "1001 characters, and 1000 are allowed"),
        (json!({"allOf": vec![json!({"pattern": "a"}); 65]}), "64 patterns are allowed"),
    ] {
        let error = Schema::read(&wrong.to_string()).unwrap_err();
        assert!(error.starts_with("the schema") && error.contains(words), "{words:?} in {error}");
    }
    for wrong in ["", "[]", "true", "{"] {
        assert!(Schema::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn notes_for_people_are_no_rules() {
    let notes = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": 1, "description": 2, "default": 3, "examples": 4, "$comment": 5,
        "deprecated": true,
    });
    assert_eq!(problems(notes, &json!({"a": 1})), [""; 0]);
}

#[test]
fn schemas_and_settings_that_are_made_to_take_long_end_soon() {
    let mut deep = json!({"type": "string"});
    for _ in 0..17 {
        deep = json!({"items": deep});
    }
    assert!(Schema::read(&deep.to_string()).unwrap_err().contains("lie within each other"));
    let too_much = |of: Value, value: &Value| {
        let found = problems(of, value);
        assert!(found.last().unwrap().contains("more work than is allowed"), "{found:?}");
    };
    // What would take others exponential time takes this one a look at each.
    let evil = json!({"properties": {"x": {"pattern": "^(a+)+$"}}});
    let found = problems(evil.clone(), &json!({"x": format!("{}!", "a".repeat(10_000))}));
    assert!(found[0].contains("matches /^(a+)+$/"), "{found:?}");
    too_much(evil, &json!({"x": "a".repeat(1 << 20)}));
    let wide = json!({"properties": {"x": {"pattern": "(a|b|c|d|e|f|g){90}"}}});
    too_much(wide, &json!({"x": "a".repeat(100_000)}));
    let nested = |keyword: &str, kind: &str| {
        let mut forms = json!({"type": kind});
        for _ in 0..8 {
            forms = json!({keyword: [forms, forms, forms]});
        }
        json!({"properties": {"x": {"items": forms}}})
    };
    let numbers: Vec<usize> = (0..100_000).collect();
    too_much(nested("allOf", "integer"), &json!({"x": numbers}));
    // And what they say stays short.
    let found = problems(nested("anyOf", "null"), &json!({"x": numbers}));
    assert!(found.iter().all(|it| it.len() < 1000), "{}", found[0].len());
    // As large as it can be and plain, it passes.
    let plain = json!({"properties": {"x": {"items": {"type": "integer", "minimum": 0}, "uniqueItems": true}}});
    assert_eq!(problems(plain, &json!({"x": numbers})), [""; 0]);
}

#[test]
fn settings_that_belong_together_are_looked_at_together_only() {
    let of = json!({"required": ["a"], "minProperties": 2, "properties": {"b": {}}});
    assert_eq!(schema(of.clone()).check_setting("b", &json!(1)), Ok(()));
    assert_eq!(problems(of, &json!({"b": 1})).len(), 2);
}
