use super::*;

fn s(name: &str) -> Dim {
    Dim::symbol(name)
}

#[test]
fn equal_expressions_are_equal_values() {
    let (a, b) = (s("a"), s("b"));
    assert_eq!((&a + &b) * (&a - &b), &a * &a - &b * &b);
    assert_eq!(a.clone() * 2 + a.clone(), a.clone() * 3);
    assert_eq!(&a - &a, Dim::ZERO);
    assert_eq!((a.clone() * 6 + 4).floor_div(&2.into()), a.clone() * 3 + 2);
    assert_eq!((a.clone() * 6 + 5).modulo(&2.into()), Dim::ONE);
    assert_eq!(a.max(&b), b.max(&a));
    assert_eq!((a.clone() + 2).min(&(a.clone() + 5)), a.clone() + 2);
}

#[test]
fn products_divide_exactly() {
    let (a, b) = (s("a"), s("b"));
    let p = (&a + &b) * (a.clone() * 3 + 1);
    assert_eq!(p.exact_div(&(&a + &b)), Some(a.clone() * 3 + 1));
    assert_eq!((a.clone() * 6).exact_div(&4.into()), None);
    assert_eq!((&a * &b).exact_div(&b), Some(a));
}

#[test]
fn what_leaves_i64_is_an_overflow_not_a_panic() {
    let huge = Dim::constant(i64::MAX);
    assert!((huge.clone() + 1).is_overflow());
    assert!((huge.clone() * 2).is_overflow());
    assert!((huge * s("n") * 2).is_overflow());
    assert!(Dim::constant(5).floor_div(&Dim::ZERO).is_overflow());
    assert!(Dim::constant(i64::MIN).floor_div(&(-1).into()).is_overflow());
}

#[test]
fn growth_is_bounded() {
    let mut sum = Dim::ZERO;
    for i in 0..20 {
        sum = sum + s(&format!("x{i}"));
    }
    let mut power = sum.clone();
    for _ in 0..20 {
        power = power * sum.clone();
    }
    assert!(power.is_overflow());
    let mut nested = s("n");
    for _ in 0..1000 {
        nested = nested.floor_div(&s("m"));
    }
    assert!(nested.is_overflow());
}

#[test]
fn broadcast_sizes() {
    assert_eq!(s("n").bcast(&Dim::ONE), s("n"));
    assert_eq!(s("n").bcast(&4.into()), 4.into());
    assert!(Dim::constant(3).bcast(&4.into()).is_overflow());
    let mut bound = Bindings::new();
    bound.set(Symbol::new("n"), 3);
    bound.set(Symbol::new("m"), 2);
    let both = s("n").bcast(&s("m"));
    assert!(matches!(both.eval(&bound), Err(DimError::Broadcast { .. })));
    bound.set(Symbol::new("m"), 1);
    assert_eq!(both.eval(&bound), Ok(3));
}

#[test]
fn comparisons_are_yes_no_or_unknown() {
    let mut symbols = Symbols::default();
    let info = SymbolInfo { range: Range { min: 1, max: 512 }, multiple_of: 8, likely: None };
    symbols.declare(Symbol::new("s"), info);
    let dim = s("s");
    assert_eq!(symbols.known_le(&dim, &512.into()), Answer::Yes);
    assert_eq!(symbols.known_le(&513.into(), &dim), Answer::No);
    assert_eq!(symbols.known_eq(&dim, &7.into()), Answer::No);
    assert_eq!(symbols.known_eq(&dim, &8.into()), Answer::Unknown);
    assert_eq!(symbols.known_eq(&(dim.clone() + 1), &dim), Answer::No);
    assert_eq!(symbols.known_eq(&s("other"), &dim), Answer::Unknown);
}

#[test]
fn evaluation_names_the_unbound_symbol() {
    let error = (s("batch") * 2).eval(&Bindings::new()).unwrap_err();
    assert_eq!(error.to_string(), "size `2*batch`: symbol `batch` is not bound");
}

#[test]
fn floor_division_and_modulo_follow_the_divisor() {
    let mut bound = Bindings::new();
    bound.set(Symbol::new("n"), -7);
    assert_eq!(s("n").floor_div(&2.into()).eval(&bound), Ok(-4));
    assert_eq!(s("n").modulo(&2.into()).eval(&bound), Ok(1));
    assert_eq!(s("n").ceil_div(&2.into()).eval(&bound), Ok(-3));
}

#[test]
fn an_atom_that_cancels_leaves_no_trace() {
    let n = Dim::symbol("n");
    let half = n.floor_div(&2.into());
    assert_eq!(half.clone() + (n.clone() - &half), n);
}
