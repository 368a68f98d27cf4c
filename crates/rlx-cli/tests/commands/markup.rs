//! Whether a page is well-formed: a small reader of XML that knows elements, attributes, references and text.

/// The names of all elements and the values of all `id` attributes, in order.
pub(crate) struct Page {
    pub(crate) elements: Vec<String>,
    pub(crate) ids: Vec<String>,
}

/// Reads a page; what is not well-formed is an error that says where.
pub(crate) fn read(page: &str) -> Result<Page, String> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").ok_or("no document type")?;
    let mut open: Vec<String> = Vec::new();
    let mut found = Page { elements: Vec::new(), ids: Vec::new() };
    loop {
        let Some(at) = rest.find('<') else {
            return if open.is_empty() { Ok(found) } else { Err(format!("not closed: {open:?}")) };
        };
        references(&rest[..at])?;
        let end = rest[at..].find('>').ok_or("a tag without end")? + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop().as_deref() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(format!("an element named {name:?}"));
        }
        for (attribute, value) in self::attributes(attributes)? {
            references(value)?;
            if attribute == "id" {
                found.ids.push(value.to_string());
            }
        }
        found.elements.push(name.to_string());
        if !closed {
            open.push(name.to_string());
        }
    }
}

fn attributes(mut text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return Ok(found);
        }
        let (name, rest) = text.split_once("=\"").ok_or_else(|| format!("no value: {text:?}"))?;
        let (value, rest) = rest.split_once('"').ok_or_else(|| format!("no end: {text:?}"))?;
        if name.contains(char::is_whitespace) || found.iter().any(|(other, _)| *other == name) {
            return Err(format!("attribute {name:?}"));
        }
        found.push((name, value));
        text = rest;
    }
}

/// Every `&` must begin a reference that XML knows, or a number.
fn references(text: &str) -> Result<(), String> {
    for part in text.split('&').skip(1) {
        let name = part.split_once(';').ok_or_else(|| format!("&{part}"))?.0;
        let number = name.strip_prefix('#').is_some_and(|n| n.parse::<u32>().is_ok());
        if !number && !["amp", "lt", "gt", "quot", "apos"].contains(&name) {
            return Err(format!("&{name};"));
        }
    }
    Ok(())
}

#[test]
fn pages_that_are_not_well_formed_are_found() {
    let read = |body: &str| read(&format!("<!DOCTYPE html>{body}"));
    assert!(read("<p id=\"a\">x &amp; y<br/></p>").is_ok());
    for wrong in
        ["<p>", "<p></q>", "<p a=b></p>", "<p>&</p>", "<p>&nbsp;</p>", "<p a=\"1\" a=\"2\"></p>", "< p></p>"]
    {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
