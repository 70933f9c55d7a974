use proptest::prelude::*;
use tread_model::boot_images::rule::judge;
use tread_model::boot_images::version::in_name;
use tread_model::boot_images::{
    Found, ImageVersion, KnownBy, Limits, Release, Rhel, Stream, Tighter, shown,
};

fn release() -> impl Strategy<Value = Release> {
    (4_u32..6, 0_u32..25, 0_u32..3)
        .prop_map(|(major, minor, patch)| Release::new(major, minor, patch))
}

fn rhel() -> impl Strategy<Value = Rhel> {
    (8_u32..12, 0_u32..11).prop_map(|(major, minor)| Rhel::new(major, minor))
}

fn version() -> impl Strategy<Value = ImageVersion> {
    (proptest::option::of(release()), proptest::option::of(rhel()))
        .prop_filter("something is known", |(openshift, rhel)| {
            openshift.is_some() || rhel.is_some()
        })
        .prop_map(|(openshift, rhel)| ImageVersion { openshift, rhel, text: "x".to_owned() })
}

fn stream() -> impl Strategy<Value = Stream> {
    (proptest::sample::select(vec!["rhel-9", "rhel-10", "rhel-11", "special", ""]), any::<bool>())
        .prop_map(|(name, own)| Stream { name: name.to_owned(), own })
}

fn asked(openshift: Option<Release>, rhel: Option<Rhel>, stream: &Stream) -> [Tighter; 1] {
    [Tighter { stream: Some(stream.name.clone()), openshift, rhel }]
}

proptest! {
    #[test]
    fn a_newer_image_never_makes_a_verdict_worse(
        older in version(), more in version(), running in proptest::option::of(release()),
        stream in stream(), least in (proptest::option::of(release()), proptest::option::of(rhel())),
    ) {
        let newer = ImageVersion {
            openshift: older.openshift.map(|it| it.max(more.openshift.unwrap_or(it))),
            rhel: older.rhel.map(|it| it.max(more.rhel.unwrap_or(it))),
            text: "y".to_owned(),
        };
        let limits = Limits::of(running, &stream, &asked(least.0, least.1, &stream));
        let worse = judge(&Found::Version(KnownBy::Name, older), &limits, &stream).outcome;
        let better = judge(&Found::Version(KnownBy::Name, newer), &limits, &stream).outcome;
        prop_assert!(better <= worse);
    }

    #[test]
    fn a_lower_limit_never_makes_a_verdict_worse(
        image in version(), running in proptest::option::of(release()), stream in stream(),
        high in (release(), rhel()), low in (release(), rhel()), which in 0..3,
    ) {
        let low = (low.0.min(high.0), low.1.min(high.1));
        let pick = |(openshift, rhel): (Release, Rhel)| match which {
            0 => (Some(openshift), None),
            1 => (None, Some(rhel)),
            _ => (Some(openshift), Some(rhel)),
        };
        let outcome = |limit: (Option<Release>, Option<Rhel>)| {
            let limits = Limits::of(running, &stream, &asked(limit.0, limit.1, &stream));
            judge(&Found::Version(KnownBy::Name, image.clone()), &limits, &stream).outcome
        };
        prop_assert!(outcome(pick(low)) <= outcome(pick(high)));
    }

    #[test]
    fn an_image_of_another_stream_never_blocks(
        image in version(), running in release(), stream in stream(),
    ) {
        let stream = Stream { own: false, ..stream };
        let limits = Limits::of(Some(running), &stream, &[]);
        let verdict = judge(&Found::Version(KnownBy::Name, image), &limits, &stream);
        prop_assert_ne!(verdict.outcome.as_str(), "Blocks");
    }

    #[test]
    fn any_text_is_read_and_shown_without_harm(text in ".{0,300}") {
        let _ = ImageVersion::parse(&text);
        let _ = in_name(&text);
        let line = shown(&text);
        prop_assert!(!line.chars().any(tread_model::text::is_unfit), "{line:?}");
        prop_assert!(line.chars().count() <= 256);
    }

    #[test]
    fn digits_with_dots_and_dashes_are_read_without_harm(text in "[0-9.\\-_]{0,60}") {
        let _ = (ImageVersion::parse(&text), in_name(&text), Release::parse_target(&text));
    }
}
