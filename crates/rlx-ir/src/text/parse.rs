//! Text to graph. What is printed reads back to the same graph; anything else is an error with its place.

use super::lex::{Kind, Token, next};
use super::{MAX_NESTING, VERSION, literal};
use crate::builder::Builder;
use crate::dim::{Dim, Range, Symbol, SymbolInfo};
use crate::dtype::DType;
use crate::error::Locations;
use crate::graph::{Graph, Value};
use crate::infer::Types;
use crate::literal::Literal;
use crate::op::{Attr, Custom, Op};
use crate::types::{Shape, TensorType};
use rustc_hash::FxHashMap;
use std::str::FromStr;
use std::sync::Arc;

/// Why a text is no graph.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What would be right.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

/// Finds a constant that a text names by hash, element type and sizes.
pub type FindConstant<'a> = dyn Fn(u128, DType, &[usize]) -> Option<Literal> + 'a;

/// Finds a custom operation by its name and attributes.
pub type FindCustom<'a> = dyn Fn(&str, &str) -> Option<Custom> + 'a;

/// What a text may refer to.
#[derive(Default)]
pub struct ParseOptions<'a> {
    /// Finds a constant by its hash, element type and sizes.
    pub constant: Option<&'a FindConstant<'a>>,
    /// Finds a custom operation by name and attributes.
    pub custom: Option<&'a FindCustom<'a>>,
}

/// Reads a graph that refers to nothing outside its text.
pub fn parse(text: &str) -> Result<Graph, ParseError> {
    parse_with(text, &ParseOptions::default())
}

/// Reads a graph.
pub fn parse_with(text: &str, options: &ParseOptions<'_>) -> Result<Graph, ParseError> {
    let mut p = Parser { source: text, token: next(text, 0), depth: 0, fields: 0, options };
    p.expect("rlx")?;
    let version: u32 = p.integer()?;
    if version != VERSION {
        return Err(p.error(&format!("version {VERSION}"), &version.to_string()));
    }
    let graph = p.subgraph()?;
    if p.token.kind != Kind::End || p.token.at < text.len() {
        return Err(p.unexpected("the end"));
    }
    Ok(graph)
}

/// Reads the text form. Attributes read themselves through it.
pub struct Parser<'a> {
    source: &'a str,
    token: Token<'a>,
    depth: u32,
    fields: usize,
    options: &'a ParseOptions<'a>,
}

impl<'a> Parser<'a> {
    /// An error at the current place.
    pub fn error(&self, expected: &str, found: &str) -> ParseError {
        self.error_at(self.token.at, expected, found)
    }

    fn error_at(&self, at: usize, expected: &str, found: &str) -> ParseError {
        let before = self.source.get(..at).unwrap_or(self.source);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    fn unexpected(&self, expected: &str) -> ParseError {
        let found = if self.token.text.is_empty() {
            self.source
                .get(self.token.at..)
                .and_then(|rest| rest.chars().next())
                .map_or_else(|| "the end".to_string(), |c| format!("{c:?}"))
        } else {
            format!("`{}`", self.token.text.chars().take(40).collect::<String>())
        };
        self.error(expected, &found)
    }

    fn advance(&mut self) -> Token<'a> {
        let token = self.token;
        self.token = next(self.source, token.at + token.text.len());
        token
    }

    fn at(&self, text: &str) -> bool {
        self.token.text == text
    }

    fn take(&mut self, text: &str) -> bool {
        let there = self.at(text);
        if there {
            self.advance();
        }
        there
    }

    /// Takes this word, if it stands here.
    pub fn take_word(&mut self, word: &str) -> bool {
        self.take(word)
    }

    /// Takes this word or mark.
    pub fn expect(&mut self, text: &str) -> Result<(), ParseError> {
        if self.take(text) { Ok(()) } else { Err(self.unexpected(&format!("`{text}`"))) }
    }

    fn word(&mut self, expected: &str) -> Result<&'a str, ParseError> {
        if self.token.kind == Kind::Word { Ok(self.advance().text) } else { Err(self.unexpected(expected)) }
    }

    /// Takes one of these words.
    pub fn one_of<T: Copy>(&mut self, expected: &str, choices: &[(&str, T)]) -> Result<T, ParseError> {
        match choices.iter().find(|(name, _)| self.at(name)) {
            Some((_, value)) => {
                self.advance();
                Ok(*value)
            }
            None => Err(self.unexpected(expected)),
        }
    }

    /// Takes an integer.
    pub fn integer<T: FromStr>(&mut self) -> Result<T, ParseError> {
        let start = self.token.at;
        self.take("-");
        if self.token.kind != Kind::Number {
            return Err(self.unexpected("an integer"));
        }
        let end = self.token.at + self.token.text.len();
        let value = self.source.get(start..end).and_then(|text| text.parse().ok());
        match value {
            Some(value) => {
                self.advance();
                Ok(value)
            }
            None => Err(self.unexpected("an integer in range")),
        }
    }

    /// Takes a number, `inf`, `-inf` or `nan`.
    pub fn float(&mut self) -> Result<f64, ParseError> {
        let text = self.number_text()?;
        match text {
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            "nan" => Ok(f64::NAN),
            _ => text.parse().map_err(|_| self.unexpected("a number")),
        }
    }

    fn number_text(&mut self) -> Result<&'a str, ParseError> {
        let start = self.token.at;
        self.take("-");
        let word =
            self.token.kind == Kind::Word && ["inf", "nan", "true", "false"].contains(&self.token.text);
        if self.token.kind != Kind::Number && !word {
            return Err(self.unexpected("a number"));
        }
        let token = self.advance();
        Ok(&self.source[start..token.at + token.text.len()])
    }

    /// Takes a quoted text.
    pub fn string(&mut self) -> Result<String, ParseError> {
        if self.token.kind != Kind::Text {
            return Err(self.unexpected("a quoted text"));
        }
        match unescape(self.token.text) {
            Some(text) => {
                self.advance();
                Ok(text)
            }
            None => Err(self.unexpected("a text with valid escapes")),
        }
    }

    /// Takes `[item, …]`.
    pub fn list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.take("]") {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Takes `name=value`, or the default if another field stands here.
    pub fn field<T: Attr>(&mut self, name: &str) -> Result<T, ParseError> {
        let first = self.fields == 0;
        if first && self.at("<") {
            self.advance();
            self.fields = 1;
        }
        if self.fields > 0 && self.at(name) {
            self.advance();
            self.expect("=")?;
            let outer = self.fields;
            let value = T::parse(self)?;
            self.fields = outer;
            if !self.at(">") {
                self.expect(",")?;
            }
            return Ok(value);
        }
        T::default().ok_or_else(|| self.unexpected(&format!("`{name}=`")))
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth >= MAX_NESTING {
            return Err(self.error(&format!("at most {MAX_NESTING} levels"), "a deeper nesting"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Takes a symbol.
    pub fn symbol(&mut self) -> Result<Symbol, ParseError> {
        match self.token.kind {
            Kind::Text => self.string().map(Symbol::new),
            _ => self.word("a symbol").map(Symbol::new),
        }
    }

    /// Takes a size expression.
    pub fn dim(&mut self) -> Result<Dim, ParseError> {
        self.nested(|p| {
            let mut sum = Dim::ZERO;
            let mut negative = p.take("-");
            loop {
                let mut product = p.dim_factor(negative)?;
                while p.take("*") {
                    product = product * p.dim_factor(false)?;
                }
                sum = sum + product;
                if sum.is_overflow() {
                    return Err(p.error("a size", "an overflow"));
                }
                negative = p.at("-");
                if !p.take("-") && !p.take("+") {
                    return Ok(sum);
                }
            }
        })
    }

    fn dim_factor(&mut self, negative: bool) -> Result<Dim, ParseError> {
        // The sign belongs to the digits, so that the least i64 reads.
        if self.token.kind == Kind::Number {
            let text = format!("{}{}", if negative { "-" } else { "" }, self.token.text);
            let value: i64 = text.parse().map_err(|_| self.unexpected("an integer in range"))?;
            self.advance();
            return Ok(Dim::constant(value));
        }
        let factor = if self.take("(") {
            let inner = self.dim()?;
            self.expect(")")?;
            inner
        } else if self.token.kind == Kind::Text {
            Dim::from(self.symbol()?)
        } else {
            let name = self.word("a size")?;
            let function: Option<fn(&Dim, &Dim) -> Dim> = match name {
                "floor_div" => Some(Dim::floor_div),
                "mod" => Some(Dim::modulo),
                "min" => Some(Dim::min),
                "max" => Some(Dim::max),
                "bcast" => Some(Dim::bcast),
                _ => None,
            };
            match function {
                Some(apply) => {
                    self.expect("(")?;
                    let a = self.dim()?;
                    self.expect(",")?;
                    let b = self.dim()?;
                    self.expect(")")?;
                    apply(&a, &b)
                }
                None => Dim::symbol(name),
            }
        };
        Ok(if negative { -factor } else { factor })
    }

    /// Takes an element type.
    pub fn dtype(&mut self) -> Result<DType, ParseError> {
        match DType::from_name(self.token.text) {
            Some(dtype) => {
                self.advance();
                Ok(dtype)
            }
            None => Err(self.unexpected("an element type")),
        }
    }

    /// Takes a type.
    pub fn tensor_type(&mut self) -> Result<TensorType, ParseError> {
        let dtype = self.dtype()?;
        Ok(TensorType::new(dtype, Shape::from(self.list(Parser::dim)?)))
    }

    /// Takes a constant.
    pub fn literal(&mut self) -> Result<Literal, ParseError> {
        let place = self.token.at;
        let t = self.tensor_type()?;
        let Some(dims) = t.shape.as_const() else {
            return Err(self.error("constant sizes", &t.to_string()));
        };
        let bytes = if self.token.kind == Kind::Text {
            let text = self.string()?;
            if let Some(hash) = text.strip_prefix('#') {
                return self.stored_constant(&t, &dims, hash);
            }
            literal::parse_hex(&text)
                .ok_or_else(|| self.error("x and hexadecimal bytes, or # and a hash", &text))?
        } else {
            let texts = self.list(Parser::number_text)?;
            literal::parse_list(t.dtype, &texts)
                .map_err(|found| self.error(&format!("elements of {}", t.dtype), &format!("`{found}`")))?
        };
        Literal::new(t.dtype, dims, bytes)
            .map_err(|e| self.error_at(place, "as many elements as the type has", &e.to_string()))
    }

    fn stored_constant(&self, t: &TensorType, dims: &[usize], hash: &str) -> Result<Literal, ParseError> {
        let known = u128::from_str_radix(hash, 16).ok().filter(|_| hash.len() == 32);
        let find = |hash| self.options.constant.and_then(|find| find(hash, t.dtype, dims));
        match known.and_then(find) {
            Some(literal) if literal.dtype() == t.dtype && literal.dims() == dims => Ok(literal),
            Some(literal) => Err(self.error(&t.to_string(), &literal.tensor_type().to_string())),
            None => Err(self.error("a constant that is at hand", &format!("#{hash}"))),
        }
    }

    /// Takes a graph.
    pub fn subgraph(&mut self) -> Result<Graph, ParseError> {
        self.nested(|p| {
            let fields = std::mem::take(&mut p.fields);
            let graph = p.graph_body();
            p.fields = fields;
            graph
        })
    }

    fn graph_body(&mut self) -> Result<Graph, ParseError> {
        self.expect("graph")?;
        let mut b = Builder::verbatim(&self.string()?);
        let mut names: FxHashMap<&'a str, Vec<Value>> = FxHashMap::default();
        self.expect("(")?;
        while !self.take(")") {
            if !names.is_empty() {
                self.expect(",")?;
            }
            let id = self.value_name()?;
            let name = if self.token.kind == Kind::Text { self.string()? } else { id.to_string() };
            self.expect(":")?;
            let ty = self.tensor_type()?;
            b.set_locations(self.locations()?);
            let value = b.input(&name, ty).map_err(|e| self.error("an input", &e.to_string()))?;
            self.define(&mut names, id, vec![value])?;
        }
        self.expect("{")?;
        while self.take("symbol") {
            let symbol = self.symbol()?;
            self.expect(":")?;
            let info = self.symbol_info()?;
            b.declare(symbol, info);
        }
        while self.at("%") {
            self.node(&mut b, &mut names)?;
        }
        self.expect("return")?;
        let mut outputs = Vec::new();
        while self.token.kind == Kind::Text {
            let name = self.string()?;
            self.expect("=")?;
            outputs.push((name, self.value(&names)?));
            if !self.take(",") {
                break;
            }
        }
        let mut states = Vec::new();
        while self.take("state") {
            let input = self.integer()?;
            self.expect("->")?;
            states.push((input, self.integer()?));
        }
        self.expect("}")?;
        let outputs = outputs.iter().map(|(name, value)| (name.as_str(), *value));
        b.finish_with_states(outputs, &states).map_err(|e| self.error("a valid graph", &e.to_string()))
    }

    fn node(
        &mut self,
        b: &mut Builder,
        names: &mut FxHashMap<&'a str, Vec<Value>>,
    ) -> Result<(), ParseError> {
        let id = self.value_name()?;
        self.expect("=")?;
        let name_token = self.token;
        let name = self.word("an operation")?;
        self.fields = 0;
        let op = if name == "custom" {
            self.custom()
        } else {
            Op::parse_fields(name, self).unwrap_or_else(|| {
                self.token = name_token;
                Err(self.unexpected("an operation"))
            })
        }?;
        if self.fields > 0 || self.take("<") {
            self.expect(">")?;
        }
        self.expect("(")?;
        let mut operands = Vec::new();
        while !self.take(")") {
            if !operands.is_empty() {
                self.expect(",")?;
            }
            operands.push(self.value(names)?);
        }
        let mut types = None;
        if self.take(":") {
            let mut list = Types::new();
            while !self.at("@") && !self.at("%") && !self.at("return") {
                if !list.is_empty() {
                    self.expect(",")?;
                }
                list.push(self.tensor_type()?);
            }
            types = Some(list);
        }
        b.set_locations(self.locations()?);
        let values = b
            .push(op, &operands)
            .map_err(|e| self.error_at(name_token.at, "an operation that type-checks", &e.to_string()))?;
        if let Some(types) = types {
            let inferred: Types = values.iter().map(|v| b.type_of(*v).clone()).collect();
            if inferred != types {
                return Err(self.error_at(
                    name_token.at,
                    &format!("result types {inferred:?}"),
                    &format!("{types:?}"),
                ));
            }
        }
        self.define(names, id, values.to_vec())
    }

    fn custom(&mut self) -> Result<Op, ParseError> {
        let name: Arc<str> = self.field("name")?;
        let attributes: Arc<str> = self.field("attributes")?;
        match self.options.custom.and_then(|find| find(&name, &attributes)) {
            Some(custom) => Ok(custom.into()),
            None => Err(self.error("a custom operation that is registered", &name)),
        }
    }

    fn define(
        &self,
        names: &mut FxHashMap<&'a str, Vec<Value>>,
        id: &'a str,
        values: Vec<Value>,
    ) -> Result<(), ParseError> {
        match names.insert(id, values) {
            None => Ok(()),
            Some(_) => Err(self.error("a value that is defined once", &format!("%{id} again"))),
        }
    }

    fn value_name(&mut self) -> Result<&'a str, ParseError> {
        self.expect("%")?;
        match self.token.kind {
            Kind::Word => Ok(self.advance().text),
            // `%4.1` lexes as one number: the part before the dot is the name.
            Kind::Number => {
                let text = self.token.text;
                let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let at = self.token.at;
                self.token = next(self.source, at + digits);
                Ok(&text[..digits])
            }
            _ => Err(self.unexpected("a value's name")),
        }
    }

    fn value(&mut self, names: &FxHashMap<&'a str, Vec<Value>>) -> Result<Value, ParseError> {
        let id = self.value_name()?;
        let Some(values) = names.get(id) else {
            return Err(self.error("a value defined above", &format!("%{id}")));
        };
        let output = if self.take(".") { self.integer::<usize>()? } else { 0 };
        let Some(value) = values.get(output) else {
            return Err(self.error(&format!("a result below {}", values.len()), &format!("%{id}.{output}")));
        };
        Ok(*value)
    }

    fn locations(&mut self) -> Result<Locations, ParseError> {
        let mut locations = Locations::none();
        if self.take("@") {
            for name in self.list(Parser::string)? {
                locations.merge(&Locations::one(name));
            }
        }
        Ok(locations)
    }

    fn symbol_info(&mut self) -> Result<SymbolInfo, ParseError> {
        let mut info = SymbolInfo { range: Range { min: 0, max: i64::MAX }, multiple_of: 1, likely: None };
        loop {
            let name = self.word("min, max, multiple_of or likely")?;
            self.expect("=")?;
            let value: i64 = self.integer()?;
            match name {
                "min" => info.range.min = value,
                "max" => info.range.max = value,
                "multiple_of" if value >= 1 => info.multiple_of = value,
                "likely" => info.likely = Some(value),
                _ => return Err(self.error("min, max, multiple_of (at least 1) or likely", name)),
            }
            if !self.take(",") {
                return Ok(info);
            }
        }
    }
}

/// The text of a quoted token, with the escapes that Rust's `{:?}` writes.
fn unescape(quoted: &str) -> Option<String> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next()? {
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            '0' => text.push('\0'),
            c @ ('\\' | '"' | '\'') => text.push(c),
            'u' => {
                let rest = chars.as_str();
                let end = rest.find('}')?;
                let code = u32::from_str_radix(rest.get(..end)?.strip_prefix('{')?, 16).ok()?;
                text.push(char::from_u32(code)?);
                chars = rest.get(end + 1..)?.chars();
            }
            _ => return None,
        }
    }
    Some(text)
}
