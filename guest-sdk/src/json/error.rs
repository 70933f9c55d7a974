use serde::de::{self, Expected, Unexpected};
use std::fmt::{self, Display};

/// Why a text is no JSON, or does not fit a type.
///
/// ```
/// use tread_guest_sdk::json;
/// let error = json::check("[1,\n 2,\n]").unwrap_err();
/// assert_eq!((error.line(), error.to_string().as_str()), (Some(3), "no JSON value at byte 8"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
    line: Option<usize>,
}

impl Error {
    #[cold]
    pub(super) fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), line: None }
    }

    /// An error at a place in the text.
    #[cold]
    pub(super) fn at(text: &str, place: usize, what: &str) -> Error {
        let line = 1 + text.bytes().take(place).filter(|byte| *byte == b'\n').count();
        Error { message: format!("{what} at byte {place}"), line: Some(line) }
    }

    /// The line of what is no JSON, the first being 1; none for a value that
    /// only does not fit.
    ///
    /// ```
    /// use tread_guest_sdk::json;
    /// assert_eq!(json::check("{\n}}").unwrap_err().line(), Some(2));
    /// assert_eq!(json::read::<u8>("300").unwrap_err().line(), None);
    /// ```
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    #[cold]
    fn custom<T: Display>(message: T) -> Error {
        Error::new(message.to_string())
    }

    #[cold]
    #[inline(never)]
    fn invalid_type(given: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error::new(format!("expected {expected}, not {}", words(&given)))
    }

    #[cold]
    fn invalid_value(given: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error::invalid_type(given, expected)
    }
}

/// What was given instead. Not `Unexpected`'s own text, which can print
/// floating-point numbers: that alone is more code than the reader.
fn words(given: &Unexpected<'_>) -> String {
    let word = match given {
        Unexpected::Bool(true) => "true",
        Unexpected::Bool(false) => "false",
        Unexpected::Unsigned(number) => return format!("the number {number}"),
        Unexpected::Signed(number) => return format!("the number {number}"),
        Unexpected::Float(_) => "a number that is no whole one",
        Unexpected::Str(text) => return format!("the text {text:?}"),
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "an array",
        Unexpected::Map => "an object",
        _ => "a value of another kind",
    };
    word.to_string()
}
