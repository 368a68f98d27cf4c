//! Text in HTML and SVG.

use std::fmt;

/// A text that shows itself as what it is, in an element or an attribute: every character with a meaning in markup is
/// written as a reference, and characters that markup may not hold are replaced.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => write!(f, "{c}")?,
                '\u{fffe}' | '\u{ffff}' => f.write_str("\u{fffd}")?,
                c if c.is_control() => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_element_or_attribute() {
        let text = "</script><img src=\"x\" onerror='a&b'>\u{0}";
        let escaped = Escaped(text).to_string();
        assert!(!escaped.contains(['<', '>', '"', '\'', '\u{0}']));
        assert_eq!(Escaped("a & b < c").to_string(), "a &amp; b &lt; c");
    }
}
