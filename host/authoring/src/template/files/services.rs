/// Which service reads which files: the first line with a glob that matches decides. They
/// were guessed from names. With None, or without a line, a file is left to others.
const SERVICES: &[(&str, Option<&str>)] = &[
@SERVICEROWS@];

fn service_of(path: &str) -> Option<&'static str> {
    SERVICES.iter().find(|(files, _)| glob::matches(files, path))?.1
}

