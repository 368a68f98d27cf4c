//! Tokens of the text form.

/// A token and where it begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A letter or underscore, then letters, digits and underscores.
    Word,
    /// Digits with an optional fraction and exponent, or `0x…`.
    Number,
    /// A quoted text, quotes included, escapes as in Rust.
    Text,
    /// `->` or one character.
    Mark,
    /// The end, or a character that begins no token.
    End,
}

/// The token that begins at or after `from`; spaces and `//` comments are skipped.
pub(super) fn next(source: &str, from: usize) -> Token<'_> {
    let bytes = source.as_bytes();
    let mut at = from;
    loop {
        match bytes.get(at) {
            Some(b) if b.is_ascii_whitespace() => at += 1,
            Some(b'/') if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            _ => break,
        }
    }
    let Some(first) = bytes.get(at) else { return Token { kind: Kind::End, text: "", at } };
    let run = |accept: fn(u8) -> bool| at + bytes[at..].iter().take_while(|b| accept(**b)).count();
    let (kind, end) = match first {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => (Kind::Word, run(|b| b.is_ascii_alphanumeric() || b == b'_')),
        b'0'..=b'9' => (Kind::Number, number_end(bytes, at)),
        b'"' => match text_end(bytes, at) {
            Some(end) => (Kind::Text, end),
            None => (Kind::End, bytes.len()),
        },
        b'-' if bytes.get(at + 1) == Some(&b'>') => (Kind::Mark, at + 2),
        b if b.is_ascii_graphic() => (Kind::Mark, at + 1),
        _ => (Kind::End, at),
    };
    Token { kind, text: source.get(at..end).unwrap_or(""), at }
}

fn number_end(bytes: &[u8], at: usize) -> usize {
    let digits = |from: usize, hex: bool| {
        let accept = |b: &&u8| if hex { b.is_ascii_hexdigit() } else { b.is_ascii_digit() };
        from + bytes.get(from..).unwrap_or(&[]).iter().take_while(accept).count()
    };
    if bytes[at] == b'0' && bytes.get(at + 1) == Some(&b'x') {
        return digits(at + 2, true);
    }
    let mut end = digits(at, false);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1, false);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign, false);
        }
    }
    end
}

fn text_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut i = at + 1;
    loop {
        match bytes.get(i)? {
            b'"' => return Some(i + 1),
            b'\\' => i += 2,
            _ => i += 1,
        }
    }
}
