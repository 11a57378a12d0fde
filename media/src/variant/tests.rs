//! Requests that mean the same are the same.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use proptest::string::string_regex;

use crate::{
    operation::effects,
    task::{Adjust, Failure, FailureCode, Gravity, Render, Task},
};

const PLAIN: VariantSettings = VariantSettings {
    avif_in_auto: false,
};

const PHOTO: SourceFacts = SourceFacts {
    format: Format::Jpg,
    has_alpha: false,
    animated: false,
    focal_point: None,
};

fn request(query: &str) -> VariantRequest {
    VariantRequest::parse(query, &PLAIN).expect("a good query")
}

fn resolved(query: &str, accept: &str, source: SourceFacts) -> Resolved {
    request(query)
        .resolve(AcceptClass::fold(Some(accept)), &source)
        .expect("an image")
}

fn render(query: &str, source: SourceFacts) -> Render {
    match resolved(query, "", source).task {
        Task::Render(render) => *render,
        other => panic!("no render: {other:?}"),
    }
}

#[test]
fn queries_fold_to_their_simplest_form() {
    for (query, canonical) in [
        ("", ""),
        ("v=7&utm_source=x&&=", ""),
        ("format=auto&q=80&fit=cover&page=1&dpr=1&rotate=0&t=1", ""),
        ("t=12.50&w=3", "w=3&t=12.5"),
        ("t=0", "t=0"),
        ("t=0.99951&page=2", "page=2"),
        ("t=86400&format=json", "format=json"),
        ("t=00.0333&format=blurhash", "t=0.033&format=blurhash"),
        ("h=2&w=1", "w=1&h=2"),
        ("w=100&dpr=2", "w=200"),
        ("w=100&dpr=1.5&h=33", "w=150&h=50"),
        ("dpr=3", ""),
        ("w=8000&h=4000&dpr=4", "w=8192&h=4096"),
        ("w=10&w=10&width=10", "w=10"),
        ("f=JPEG", "format=jpg"),
        ("w=5&fit=contain", "w=5"),
        ("w=5&h=5&fit=CONTAIN", "w=5&h=5&fit=contain"),
        ("w=5&g=smart", "w=5"),
        ("w=5&h=5&g=north", "w=5&h=5&fp=0.5,0"),
        ("w=5&h=5&fp=0.5,0.0001", "w=5&h=5&fp=0.5,0"),
        ("w=5&h=5&fp=.25,%201&g=smart", "w=5&h=5&fp=0.25,1"),
        ("w=5&h=5&fit=inside&fp=0,0", "w=5&h=5&fit=inside"),
        ("enlarge=1", ""),
        ("q=auto", ""),
        ("q=AUTO:good&w=640", "w=640"),
        ("quality=auto:best", "q=90"),
        ("q=auto:eco&format=webp", "q=65&format=webp"),
        ("q=auto:low&w=100&dpr=2", "w=200&q=55"),
        ("q=auto&h=2000", "h=2000&q=75"),
        ("q=auto&f=avif", "q=60&format=avif"),
        ("q=auto&w=9&format=blurhash", "format=blurhash"),
        ("w=5&h=5&g=auto", "w=5&h=5&gravity=smart"),
        ("w=5&h=5&gravity=Face", "w=5&h=5&gravity=smart"),
        ("w=5&h=5&g=entropy", "w=5&h=5&gravity=smart"),
        ("w=5&h=5&g=attention", "w=5&h=5&gravity=smart"),
        ("w=5&h=5&fit=crop", "w=5&h=5"),
        ("w=5&h=5&fit=scale-down", "w=5&h=5&fit=inside"),
        ("w=5&h=5&fit=pad", "w=5&h=5&fit=contain"),
        ("enlarge=true&w=3", "w=3&enlarge=1"),
        ("flip=0&flop=1", "flop=1"),
        ("rotate=-90", "rotate=270"),
        ("rotate=360", ""),
        ("blur=0.004&sharp=1.50", "sharp=1.5"),
        ("bg=%23Fa0", "bg=ffaa00"),
        ("bg=transparent", ""),
        ("bg=fff&format=jpg", "format=jpg"),
        ("bg=fff&format=png", "bg=ffffff&format=png"),
        ("format=json&w=5&page=3", "format=json"),
        ("format=blurhash&w=5&page=3", "page=3&format=blurhash"),
    ] {
        assert_eq!(request(query).canonical(), canonical, "{query}");
    }
}

#[test]
fn bad_parameters_are_refused_by_name_and_range() {
    for (query, message) in [
        ("w=", "w must be a whole number from 1 to 8192, got ``"),
        ("w=0", "from 1 to 8192, got `0`"),
        ("width=8193", "w must be"),
        ("w=1e3", "got `1e3`"),
        ("h=-1", "h must be"),
        ("dpr=0.9", "dpr must be a number from 1 to 4"),
        ("dpr=inf", "got `inf`"),
        ("dpr=nan", "got `nan`"),
        ("q=101", "from 1 to 100"),
        ("format=bmp", "format must be one of auto"),
        ("fit=zoom", "fit must be one of cover"),
        ("q=auto:", "q must be a whole number from 1 to 100, auto"),
        ("q=auto:best:good", "q must be"),
        ("q=automatic", "q must be"),
        ("g=up", "gravity must be one of smart"),
        ("fp=0.5", "fp must be two numbers"),
        ("fp=0.5,1.1", "fp must be"),
        ("fp=0.5,0.5,0.5", "fp must be"),
        ("bg=red", "bg must be a colour"),
        ("bg=ff", "bg must be"),
        ("bg=\u{ff11}00", "bg must be"),
        ("flip=yes", "flip must be 1, 0, true or false"),
        ("blur=100.1", "from 0 to 100"),
        ("t=x", "t must be"),
        ("t=86400.1", "from 0 to 86400"),
        ("t=-1", "t must be"),
        ("frame=last", "frame must be live"),
        ("w=1&w=2", "w is given twice, as `1` and `2`"),
        ("f=webp&format=avif", "given twice"),
    ] {
        let error = VariantRequest::parse(query, &PLAIN).expect_err("a bad query");
        assert!(error.message.contains(message), "{query}: {error}");
    }
    let long = "x=1&".repeat(2000);
    assert!(VariantRequest::parse(&long, &PLAIN).is_err());
}

#[test]
fn a_live_inputs_frame_is_asked_for_by_name() {
    for query in [
        "frame=live",
        "w=320&frame=live",
        "f=blurhash&frame=live",
        "f=json&frame=live",
    ] {
        let live = request(query);
        assert!(live.is_live(), "{query}");
        assert!(live.canonical().contains("frame=live"), "{query}");
        assert_eq!(request(live.canonical()), live);
        assert!(live.timeless().is_none_or(|still| still.is_live()));
    }
    assert!(!request("w=320").is_live());
}

#[test]
fn presets_read_like_queries() {
    let params = json!({"w": 400, "format": "webp", "flip": true, "h": null, "dpr": 1.5});
    let params = params.as_object().expect("an object");
    let preset = VariantRequest::from_json(params, &PLAIN).expect("good parameters");
    assert_eq!(preset, request("dpr=1.5&f=webp&flip=1&w=400"));
    let odd = json!({"w": [1]});
    let odd = odd.as_object().expect("an object");
    assert!(VariantRequest::from_json(odd, &PLAIN).is_err());
}

#[test]
fn the_format_suits_client_and_source() {
    let clear = SourceFacts {
        has_alpha: true,
        format: Format::Png,
        ..PHOTO
    };
    let moving = SourceFacts {
        animated: true,
        format: Format::Gif,
        ..clear
    };
    let modern = "image/avif,image/webp,*/*";
    for (query, accept, source, avif_in_auto, format) in [
        ("", "*/*", PHOTO, false, Format::Jpg),
        ("", "*/*", clear, false, Format::Png),
        ("bg=000", "*/*", clear, false, Format::Jpg),
        ("", modern, PHOTO, false, Format::Webp),
        ("", modern, clear, false, Format::Webp),
        ("", modern, PHOTO, true, Format::Avif),
        ("", modern, moving, true, Format::Webp),
        ("", "image/avif", PHOTO, false, Format::Jpg),
        ("", "image/webp;q=0", PHOTO, false, Format::Jpg),
        ("format=jxl", "*/*", PHOTO, false, Format::Jxl),
        ("format=gif", modern, moving, false, Format::Gif),
    ] {
        let settings = VariantSettings { avif_in_auto };
        let request = VariantRequest::parse(query, &settings).expect("a good query");
        let resolved = request
            .resolve(AcceptClass::fold(Some(accept)), &source)
            .expect("an image");
        assert_eq!(resolved.format, Some(format), "{query} {accept}");
        assert_eq!(resolved.mime, format.mime());
    }
}

#[test]
fn keys_hold_what_matters_of_the_accept_header() {
    let accept = AcceptClass::fold(Some("image/avif,image/webp"));
    assert_eq!(request("w=5").cache_key(accept), "w=5|webp");
    assert_eq!(
        request("w=5").cache_key(AcceptClass::default()),
        "w=5|plain"
    );
    assert_eq!(request("w=5&f=png").cache_key(accept), "w=5&format=png");
    let settings = VariantSettings { avif_in_auto: true };
    let request = VariantRequest::parse("w=5", &settings).expect("a good query");
    assert_eq!(request.cache_key(accept), "w=5|avif+webp");
    assert!(request.is_negotiated());
}

#[test]
fn the_focal_point_of_the_file_counts_unless_the_url_names_another() {
    let focused = SourceFacts {
        focal_point: Some((0.1, 0.9)),
        ..PHOTO
    };
    let gravity = |query, source| render(query, source).resize.map(|resize| resize.gravity);
    let point = |x, y| Some(Gravity::Point { x, y });
    assert_eq!(gravity("w=9&h=9", focused), point(0.1, 0.9));
    assert_eq!(gravity("w=9&h=9&g=center", focused), point(0.5, 0.5));
    assert_eq!(gravity("w=9&h=9&g=smart", focused), Some(Gravity::Smart));
    assert_eq!(gravity("w=9&h=9", PHOTO), point(0.5, 0.5));
    assert_eq!(gravity("", focused), None);
}

/// Checks the default addresses of the image components of web frameworks, with the parameters of the services that
/// they were made for.
#[test]
fn the_urls_of_image_components_mean_what_their_pages_expect() {
    for (query, canonical) in [
        // next/image with the loaders of its documentation: imgix, Cloudflare, ImageKit, a plain one.
        ("auto=format&fit=max&w=640&q=75", "w=640&q=75"),
        ("width=640&quality=75&format=auto", "w=640&q=75"),
        ("tr=w-640,q-75&w=640&q=75", "w=640&q=75"),
        ("w=1080&q=auto", "w=1080"),
        // Components that set both sides and let the service choose the rest.
        ("w=800&h=600&fit=crop&auto=format,compress", "w=800&h=600"),
        ("w=800&h=600&fit=min", "w=800&h=600"),
        (
            "width=800&height=600&fit=cover&f=auto&q=auto:good&g=auto",
            "w=800&h=600&gravity=smart",
        ),
        (
            "w=800&h=600&fit=scale-down&format=auto&onerror=redirect",
            "w=800&h=600&fit=inside",
        ),
    ] {
        assert_eq!(request(query).canonical(), canonical, "{query}");
    }
}

#[test]
fn automatic_quality_depends_on_the_negotiated_format() {
    let settings = VariantSettings { avif_in_auto: true };
    let request = VariantRequest::parse("q=auto&w=640", &settings).expect("a good query");
    assert_eq!(request.canonical(), "w=640&q=auto");
    for (accept, quality) in [
        ("image/avif,image/webp", 60),
        ("image/webp", 80),
        ("*/*", 80),
    ] {
        let resolved = request.resolve(AcceptClass::fold(Some(accept)), &PHOTO);
        let Task::Render(render) = resolved.expect("a photo is shown").task else {
            panic!("no image");
        };
        assert_eq!(render.output.quality, quality, "{accept}");
    }
    for level in ["auto", "auto:best", "auto:eco", "auto:low"] {
        let query = format!("q={level}");
        let request = VariantRequest::parse(&query, &settings).expect("a good query");
        assert_eq!(request.canonical(), query);
    }
}

#[test]
fn effects_reach_the_task_in_its_units() {
    let asked = render("bri=50&con=-100&blur=2.5&rotate=90&bg=010203&page=2", PHOTO);
    assert_eq!(asked.adjust.brightness, 1.5);
    assert_eq!(asked.adjust.contrast, 0.0);
    assert_eq!(asked.adjust.saturation, 1.0);
    assert_eq!(asked.adjust.blur, 2.5);
    assert_eq!((asked.rotate, asked.page), (90, 2));
    assert_eq!(asked.background, Colour::parse("010203"));
    assert!(!asked.keep_metadata && asked.auto_orient);
}

#[test]
fn every_effect_has_its_ends_its_text_and_a_result() {
    for effect in effects() {
        let name = effect.parameter;
        let good = [effect.min, effect.max].map(|value| format!("{name}={value}"));
        for query in good {
            assert_eq!(
                request(&query).canonical(),
                query.trim_end_matches(&format!("{name}=0"))
            );
        }
        for value in [effect.min - 1, effect.max + 1] {
            let error = VariantRequest::parse(&format!("{name}={value}"), &PLAIN);
            let error = error.expect_err("out of range").message;
            let allowed = format!("{name} must be {}, got `{value}`", effect.allowed());
            assert_eq!(error, allowed);
        }
        let changed = render(&format!("{name}={}", effect.max), PHOTO);
        assert_ne!(changed.adjust, Adjust::default(), "{name}");
    }
    // In the order of the table, whatever the query's.
    let both = "sat=1&blur=2";
    assert_eq!(request(both).canonical(), "blur=2&sat=1");
}

#[test]
fn the_guide_names_every_parameter() {
    let guide = include_str!("../../../docs/guide/images.md");
    // The example operation is in tests only.
    for parameter in parameters().filter(|parameter| parameter.name != "fade") {
        for name in parameter.aliases.iter().chain([&parameter.name]) {
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
    }
}

/// Checks that the parser takes what forms offer.
#[test]
fn every_parameter_takes_what_its_control_offers_and_no_more() {
    let takes = |name: &str, value: &str| VariantRequest::parse(&format!("{name}={value}"), &PLAIN);
    for parameter in parameters() {
        let (name, control) = (parameter.name, parameter.control);
        for word in control.words() {
            assert!(takes(name, word).is_ok(), "{name}={word}");
        }
        if let Some((min, max)) = control.range() {
            for good in [min, max] {
                assert!(takes(name, &good.to_string()).is_ok(), "{name}={good}");
            }
            for bad in [min - 1.0, max + 1.0] {
                assert!(takes(name, &bad.to_string()).is_err(), "{name}={bad}");
            }
        }
        if control == Control::Flag {
            assert!(
                takes(name, "true").is_ok() && takes(name, "2").is_err(),
                "{name}"
            );
        }
        let Some(default) = parameter.default else {
            continue;
        };
        let with_default = takes(name, default).expect("a default is allowed");
        assert_eq!(with_default.canonical(), "", "{name}={default}");
    }
}

#[test]
fn steps_are_the_smallest_difference_that_counts() {
    for parameter in parameters() {
        let (Some(step), Some((_, max))) = (parameter.control.step(), parameter.control.range())
        else {
            continue;
        };
        // With sides, so that density and quality have something to act on.
        let canonical = |value: f64| {
            let value = (value * 1000.0).round() / 1000.0;
            request(&format!(
                "w=1000&h=100&format=webp&{}={value}",
                parameter.name
            ))
            .canonical()
            .to_owned()
        };
        if ["w", "h"].contains(&parameter.name) {
            continue;
        }
        let (last, before) = (canonical(max), canonical(max - step));
        assert_ne!(last, before, "{}", parameter.name);
    }
}

#[test]
fn what_is_no_image_is_refused_and_facts_are_no_image() {
    let archive = SourceFacts {
        format: Format::Zip,
        ..PHOTO
    };
    let failure: Failure = request("")
        .resolve(AcceptClass::default(), &archive)
        .expect_err("no image");
    assert_eq!(failure.code, FailureCode::UnsupportedType);
    let facts = resolved("format=json", "image/webp", PHOTO);
    assert_eq!((facts.format, facts.mime), (None, "application/json"));
    assert!(!request("format=thumbhash").is_negotiated());
}

#[test]
fn a_clip_is_delivered_as_its_frame_at_a_time() {
    for format in [Format::Mp4, Format::Mp3] {
        let clip = SourceFacts {
            format,
            focal_point: Some((0.1, 0.9)),
            ..PHOTO
        };
        let still = resolved("t=2.5&w=9&h=9&page=3", "image/webp", clip);
        assert_eq!((still.frame_ms, still.mime), (Some(2500), "image/webp"));
        let Task::Render(render) = still.task else {
            panic!("a render of the image");
        };
        assert_eq!(render.source, FRAME);
        let gravity = render.resize.map(|resize| resize.gravity);
        assert_eq!(gravity, Some(Gravity::Point { x: 0.1, y: 0.9 }));
        assert_eq!(resolved("", "", clip).frame_ms, Some(1000));
        assert_eq!(resolved("f=blurhash&t=0", "", clip).frame_ms, Some(0));
        let facts = resolved("f=json&t=3", "", clip);
        assert_eq!(facts.frame_ms, None);
        assert_eq!(facts.task, Task::Av(Box::new(crate::av::AvTask::Probe)));
    }
}

#[test]
fn in_an_image_no_time_passes() {
    for (query, timeless) in [
        ("w=5&t=7", Some("w=5")),
        ("t=0&page=2", Some("page=2")),
        ("w=5", None),
        ("w=5&t=1", None),
        ("format=json&t=8", None),
    ] {
        let found = request(query).timeless();
        assert_eq!(found, timeless.map(request), "{query}");
        assert_eq!(resolved(query, "", PHOTO).frame_ms, None);
    }
}

/// Values of each parameter, most of them good.
fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    let number = prop_oneof!["[1-9][0-9]{0,3}", "0", "[0-3]\\.[0-9]{1,4}"];
    let effects: Vec<&str> = effects().map(|effect| effect.parameter).collect();
    let numbers = format!(
        "w|h|width|height|q|quality|page|rotate|dpr|t|{}",
        effects.join("|")
    );
    let pair = prop_oneof![
        (string_regex(&numbers).expect("names"), number),
        ("enlarge|flip|flop|trim", "0|1|true|False"),
        ("q|quality", "auto|auto:(best|good|eco|low)|80|60"),
        ("fit", "cover|contain|fill|inside|outside|crop|max|pad"),
        (
            "g|gravity",
            "smart|auto|face|entropy|center|north|southwest"
        ),
        ("fp", "0\\.[0-9]{1,5},(1|0|0\\.[0-9]{1,3})"),
        ("bg", "[0-9a-fA-F]{6}|#?[0-9a-f]{3}|transparent"),
        (
            "f|format",
            "auto|webp|avif|jpe?g|png|jxl|gif|json|blurhash|thumbhash"
        ),
        ("v|utm", "[a-z0-9]{0,5}"),
    ];
    proptest::collection::vec(pair, 0..9)
}

/// Resolves a request for sources and clients that differ in everything that matters.
fn answers(request: &VariantRequest) -> Vec<Result<Resolved, Failure>> {
    let sources = [
        PHOTO,
        SourceFacts {
            format: Format::Gif,
            has_alpha: true,
            animated: true,
            focal_point: Some((0.3, 0.7)),
        },
        SourceFacts {
            format: Format::Mp4,
            ..PHOTO
        },
    ];
    let classes = [None, Some("image/webp")].map(AcceptClass::fold);
    sources
        .iter()
        .flat_map(|source| classes.map(|class| request.resolve(class, source)))
        .collect()
}

fn query(pairs: &[(String, String)]) -> String {
    let texts: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", value.replace('#', "%23")))
        .collect();
    texts.join("&")
}

proptest! {
    #[test]
    fn canonical_text_parses_to_the_same_request(pairs in pairs()) {
        if let Ok(first) = VariantRequest::parse(&query(&pairs), &PLAIN) {
            let again = VariantRequest::parse(first.canonical(), &PLAIN);
            prop_assert_eq!(again, Ok(first));
        }
    }

    #[test]
    fn order_does_not_matter((pairs, shuffled) in pairs().prop_flat_map(|pairs| {
        (Just(pairs.clone()), Just(pairs).prop_shuffle())
    })) {
        let one = VariantRequest::parse(&query(&pairs), &PLAIN);
        let other = VariantRequest::parse(&query(&shuffled), &PLAIN);
        match (one, other) {
            (Ok(one), Ok(other)) => prop_assert_eq!(one, other),
            (Err(_), Err(_)) => {}
            (one, other) => prop_assert!(false, "{:?} against {:?}", one, other),
        }
    }

    #[test]
    fn what_changes_no_answer_changes_no_text(pairs in pairs(), left_out in any::<prop::sample::Index>()) {
        let mut fewer = pairs.clone();
        if !fewer.is_empty() {
            fewer.remove(left_out.index(pairs.len()));
        }
        let parse = |pairs: &[(String, String)]| VariantRequest::parse(&query(pairs), &PLAIN);
        if let (Ok(one), Ok(other)) = (parse(&pairs), parse(&fewer)) {
            let is_same_text = one.canonical() == other.canonical();
            prop_assert_eq!(answers(&one) == answers(&other), is_same_text);
        }
    }

    #[test]
    fn any_query_is_read_without_a_panic(text in "\\PC{0,80}", accept in "\\PC{0,40}") {
        let _ = AcceptClass::fold(Some(&accept));
        if let Ok(request) = VariantRequest::parse(&text, &PLAIN) {
            prop_assert!(VariantRequest::parse(request.canonical(), &PLAIN) == Ok(request.clone()));
        }
    }
}
