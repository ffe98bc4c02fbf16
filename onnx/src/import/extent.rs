//! Names of extents that exporters write as expressions of others, such as `2*n`, `N+n` or `floor(n/2)`.

use std::collections::BTreeSet;

/// Maximum nesting of an expression.
const MOST_DEPTH: usize = 32;
/// Maximum length of a name that is parsed as an expression.
const MOST_BYTES: usize = 1024;

/// An expression over names of extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Extent<'n> {
    Number(i128),
    Name(&'n str),
    Call(Function, Vec<Extent<'n>>),
}

/// The functions of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    Floor,
    Ceiling,
    Maximum,
    Minimum,
}

impl<'n> Extent<'n> {
    /// Parses the text; `None` if it is not an expression.
    pub(super) fn parse(text: &'n str) -> Option<Extent<'n>> {
        if text.len() > MOST_BYTES {
            return None;
        }
        let mut parser = Parser { text, at: 0, depth: 0 };
        let extent = parser.sum()?;
        parser.skip_blanks();
        (parser.at == text.len()).then_some(extent)
    }

    /// The names in it.
    pub(super) fn names(&self) -> BTreeSet<&'n str> {
        let mut names = BTreeSet::new();
        self.add_names(&mut names);
        names
    }

    fn add_names(&self, names: &mut BTreeSet<&'n str>) {
        match self {
            Extent::Number(_) => {}
            Extent::Name(name) => _ = names.insert(name),
            Extent::Call(_, arguments) => arguments.iter().for_each(|a| a.add_names(names)),
        }
    }

    /// The value, if all names have one and the result is a nonnegative integer.
    pub(super) fn value(&self, of: &dyn Fn(&str) -> Option<u64>) -> Option<u64> {
        let Ratio { over, under } = self.ratio(of)?;
        (under == 1).then(|| u64::try_from(over).ok()).flatten()
    }

    fn ratio(&self, of: &dyn Fn(&str) -> Option<u64>) -> Option<Ratio> {
        match self {
            Extent::Number(number) => Ratio::new(*number, 1),
            Extent::Name(name) => Ratio::new(of(name)?.into(), 1),
            Extent::Call(function, arguments) => {
                let values = arguments.iter().map(|a| a.ratio(of)).collect::<Option<Vec<_>>>()?;
                function.apply(&values)
            }
        }
    }
}

impl Function {
    /// The function of this name in Python, SymPy and exporters.
    fn named(name: &str) -> Option<Function> {
        Some(match name.to_ascii_lowercase().as_str() {
            "floor" | "floortoint" | "trunctoint" | "int" => Function::Floor,
            "ceil" | "ceiling" | "ceiltoint" => Function::Ceiling,
            "max" => Function::Maximum,
            "min" => Function::Minimum,
            "floordiv" | "cleandiv" => Function::FloorDivide,
            "inttruediv" => Function::Divide,
            "mod" | "pythonmod" => Function::Remainder,
            _ => return None,
        })
    }

    fn takes(self, arguments: usize) -> bool {
        match self {
            Function::Floor | Function::Ceiling => arguments == 1,
            Function::Maximum | Function::Minimum => arguments > 0,
            _ => arguments == 2,
        }
    }

    fn apply(self, values: &[Ratio]) -> Option<Ratio> {
        let whole = |value: i128| Ratio::new(value, 1);
        match (self, values) {
            (Function::Floor, [a]) => whole(a.floor()),
            (Function::Ceiling, [a]) => whole(-a.negative().floor()),
            (Function::Maximum, values) => {
                values.iter().copied().reduce(|a, b| if a.below(b) { b } else { a })
            }
            (Function::Minimum, values) => {
                values.iter().copied().reduce(|a, b| if b.below(a) { b } else { a })
            }
            (Function::Add, &[a, b]) => a.plus(b),
            (Function::Subtract, &[a, b]) => a.plus(b.negative()),
            (Function::Multiply, &[a, b]) => a.times(b),
            (Function::Divide, &[a, b]) => a.times(b.inverse()?),
            (Function::FloorDivide, &[a, b]) => whole(a.times(b.inverse()?)?.floor()),
            (Function::Remainder, &[a, b]) => {
                let quotient = whole(a.times(b.inverse()?)?.floor())?;
                a.plus(b.times(quotient)?.negative())
            }
            (Function::Power, &[a, b]) => {
                let exponent = u32::try_from(b.over).ok().filter(|&e| b.under == 1 && e <= 64)?;
                (0..exponent).try_fold(Ratio { over: 1, under: 1 }, |product, _| product.times(a))
            }
            _ => None,
        }
    }
}

/// A fraction in lowest terms with a denominator above 0, both below 2^63 in size, so that products do not overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio {
    over: i128,
    under: i128,
}

impl Ratio {
    fn new(over: i128, under: i128) -> Option<Ratio> {
        let (mut a, mut b) = (over.unsigned_abs(), under.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let divisor = i128::try_from(a).ok().filter(|&d| d > 0 && under != 0)? * under.signum();
        let most = i128::from(i64::MAX);
        let ratio = Ratio { over: over / divisor, under: under / divisor };
        (ratio.over.abs() <= most && ratio.under <= most).then_some(ratio)
    }

    fn plus(self, other: Ratio) -> Option<Ratio> {
        let over = (self.over * other.under).checked_add(other.over * self.under)?;
        Ratio::new(over, self.under * other.under)
    }

    fn times(self, other: Ratio) -> Option<Ratio> {
        Ratio::new(self.over * other.over, self.under * other.under)
    }

    fn negative(self) -> Ratio {
        Ratio { over: -self.over, ..self }
    }

    fn inverse(self) -> Option<Ratio> {
        Ratio::new(self.under, self.over)
    }

    fn floor(self) -> i128 {
        self.over.div_euclid(self.under)
    }

    fn below(self, other: Ratio) -> bool {
        self.over * other.under < other.over * self.under
    }
}

struct Parser<'n> {
    text: &'n str,
    at: usize,
    depth: usize,
}

impl<'n> Parser<'n> {
    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Consumes the token, if the text continues with it.
    fn eat(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let there = self.text[self.at..].starts_with(token);
        self.at += if there { token.len() } else { 0 };
        there
    }

    fn sum(&mut self) -> Option<Extent<'n>> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return None;
        }
        let mut left = self.product()?;
        loop {
            let function = match () {
                () if self.eat("+") => Function::Add,
                () if self.eat("-") => Function::Subtract,
                () => break,
            };
            left = Extent::Call(function, vec![left, self.product()?]);
        }
        self.depth -= 1;
        Some(left)
    }

    fn product(&mut self) -> Option<Extent<'n>> {
        let mut left = self.factor()?;
        loop {
            let function = match () {
                () if self.eat("//") => Function::FloorDivide,
                () if self.eat("/") => Function::Divide,
                () if self.eat("*") => Function::Multiply,
                () if self.eat("%") => Function::Remainder,
                () => return Some(left),
            };
            left = Extent::Call(function, vec![left, self.factor()?]);
        }
    }

    /// A sign, or an atom with an exponent.
    fn factor(&mut self) -> Option<Extent<'n>> {
        if self.eat("-") {
            self.depth += 1;
            if self.depth > MOST_DEPTH {
                return None;
            }
            let negative = Extent::Call(Function::Subtract, vec![Extent::Number(0), self.factor()?]);
            self.depth -= 1;
            return Some(negative);
        }
        let base = self.atom()?;
        if self.eat("**") {
            Some(Extent::Call(Function::Power, vec![base, self.atom()?]))
        } else {
            Some(base)
        }
    }

    fn atom(&mut self) -> Option<Extent<'n>> {
        if self.eat("(") {
            let inner = self.sum()?;
            return self.eat(")").then_some(inner);
        }
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':');
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        self.at += word.len();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().ok().map(Extent::Number);
        }
        if word.is_empty() {
            return None;
        }
        let Some(function) = Function::named(word).filter(|_| self.eat("(")) else {
            return Some(Extent::Name(word));
        };
        let mut arguments = vec![self.sum()?];
        while self.eat(",") {
            arguments.push(self.sum()?);
        }
        (self.eat(")") && function.takes(arguments.len())).then_some(Extent::Call(function, arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_exporters_have_their_values() {
        let of = |name: &str| match name {
            "n" => Some(7),
            "N" => Some(2),
            "s0.x" => Some(5),
            _ => None,
        };
        for (text, value) in [
            ("n", Some(7)),
            ("2*n", Some(14)),
            ("N+n", Some(9)),
            ("N + n - 1", Some(8)),
            ("floor(n/2)", Some(3)),
            ("ceil(n / 2)", Some(4)),
            ("n//2", Some(3)),
            ("((n - 1)//N) + 1", Some(4)),
            ("floor(n/2 - 3/2) + 1", Some(3)),
            ("CeilToInt(IntTrueDiv(n, 2))", Some(4)),
            ("Max(1, s0.x, N)", Some(5)),
            ("Min(n, Mod(n, 4))", Some(3)),
            ("N**3 % 5", Some(3)),
            ("-N + n", Some(5)),
            ("n/2", None),
            ("N - n", None),
            ("n/(N-2)", None),
            ("m + n", None),
            ("N**64 * n**64", None),
        ] {
            assert_eq!(Extent::parse(text).unwrap().value(&of), value, "{text}");
        }
        for text in ["", "2 n", "n +", "(n", "floor()", "?", "floor(n, 2)", "batch size", "n)"] {
            assert_eq!(Extent::parse(text), None, "{text}");
        }
        assert_eq!(Extent::parse(&"(".repeat(1000)), None);
        assert_eq!(Extent::parse(&format!("{}n", "-".repeat(1000))), None);
    }
}
