//! Operators that work element by element.

use lmsc_ir::{Attr, ElementType};

use crate::hlo::fold;
use crate::hlo::import::{Got, Importer};
use crate::hlo::parse::{Attribute, Operation};
use crate::hlo::term::Term;

/// Operators of one operand and their names in ONNX.
const UNARY: &[(&str, &str)] = &[
    ("abs", "Abs"),
    ("acos", "Acos"),
    ("acosh", "Acosh"),
    ("asin", "Asin"),
    ("asinh", "Asinh"),
    ("atan", "Atan"),
    ("atanh", "Atanh"),
    ("ceil", "Ceil"),
    ("cosh", "Cosh"),
    ("cosine", "Cos"),
    ("erf", "Erf"),
    ("exponential", "Exp"),
    ("floor", "Floor"),
    ("log", "Log"),
    ("logistic", "Sigmoid"),
    ("negate", "Neg"),
    ("round_nearest_even", "Round"),
    ("sign", "Sign"),
    ("sine", "Sin"),
    ("sinh", "Sinh"),
    ("sqrt", "Sqrt"),
    ("tan", "Tan"),
    ("tanh", "Tanh"),
];

/// Operators of two operands: the name for numbers, and the one for truth values.
const BINARY: &[(&str, &str, Option<&str>)] = &[
    ("add", "Add", Some("Or")),
    ("subtract", "Sub", None),
    ("multiply", "Mul", Some("And")),
    ("divide", "Div", None),
    ("power", "Pow", None),
    ("maximum", "Max", Some("Or")),
    ("minimum", "Min", Some("And")),
    ("and", "BitwiseAnd", Some("And")),
    ("or", "BitwiseOr", Some("Or")),
    ("xor", "BitwiseXor", Some("Xor")),
];

/// ONNX's number of the element type.
fn code(element: ElementType) -> Option<i64> {
    Some(match element {
        ElementType::Float => 1,
        ElementType::Uint8 => 2,
        ElementType::Int8 => 3,
        ElementType::Uint16 => 4,
        ElementType::Int16 => 5,
        ElementType::Int32 => 6,
        ElementType::Int64 => 7,
        ElementType::Bool => 9,
        ElementType::Float16 => 10,
        ElementType::Double => 11,
        ElementType::Uint32 => 12,
        ElementType::Uint64 => 13,
        ElementType::Bfloat16 => 16,
        ElementType::Float8e4m3fn => 17,
        ElementType::Float8e5m2 => 19,
        _ => return None,
    })
}

impl<'m> Importer<'m> {
    /// The result of an operator that works element by element; `None` if it does not.
    pub(super) fn elementwise(
        &mut self,
        dialect: &str,
        name: &str,
        op: &'m Operation<'m>,
        terms: &[Term],
    ) -> Got<Option<Term>> {
        if let ([ty], [first, ..]) = (&op.types[..], terms)
            && let Some(term) = self.folded(name, ty, first.ty.element, terms)?
        {
            return Ok(Some(term));
        }
        // `chlo.broadcast_add` and the like: their operands have one shape where JAX writes them.
        let name = if dialect == "chlo" { name.strip_prefix("broadcast_").unwrap_or(name) } else { name };
        if let Some((_, onnx)) = UNARY.iter().find(|row| row.0 == name) {
            let [x] = self.operands(op, terms)?;
            return self.each(onnx, &[x], x.ty.element, &[]).map(Some);
        }
        if let Some(&(_, onnx, logical)) = BINARY.iter().find(|row| row.0 == name) {
            let [a, b] = self.operands(op, terms)?;
            self.same(&a.ty, &b.ty)?;
            let onnx = match (a.ty.element, logical) {
                (ElementType::Bool, Some(logical)) => logical,
                (ElementType::Bool, None) => return self.refuse(format!("`{}` of truth values", op.name)),
                _ => onnx,
            };
            return self.each(onnx, &[a, b], a.ty.element, &[]).map(Some);
        }
        let result = match name {
            "select" => {
                let [condition, yes, no] = self.operands(op, terms)?;
                self.choose(condition, yes, no)?
            }
            "compare" => self.compare(op, terms)?,
            "convert" => {
                let ([x], ty) = (self.operands(op, terms)?, self.result(op)?);
                self.gives(ty, ty.element, x.dims())?;
                self.cast(x, ty.element)?
            }
            "bitcast_convert" => {
                let ([x], ty) = (self.operands(op, terms)?, self.result(op)?);
                self.bits_as(x, ty.element)?
            }
            "atan2" => {
                let [y, x] = self.operands(op, terms)?;
                self.angle(y, x)?
            }
            "clamp" => {
                let [low, x, high] = self.operands(op, terms)?;
                let raised = self.each("Max", &[x, low], x.ty.element, x.dims())?;
                self.each("Min", &[&raised, high], x.ty.element, x.dims())?
            }
            "remainder" => {
                let [a, b] = self.operands(op, terms)?;
                let fmod = vec![("fmod", Attr::Int(1))];
                self.each_with("Mod", &[a, b], fmod, a.ty.element, &[])?
            }
            "not" => {
                let [x] = self.operands(op, terms)?;
                let onnx = if x.ty.element == ElementType::Bool { "Not" } else { "BitwiseNot" };
                self.each(onnx, &[x], x.ty.element, &[])?
            }
            "shift_left" | "shift_right_logical" | "shift_right_arithmetic" => self.shift(name, op, terms)?,
            "reduce_precision" => self.reduce_precision(op, terms)?,
            _ => match terms {
                [x] => return self.composed(name, x),
                _ => return Ok(None),
            },
        };
        Ok(Some(result))
    }

    /// The result of an operator of one operand that takes several of ONNX; `None` if there is no such operator.
    fn composed(&mut self, name: &str, x: &Term) -> Got<Option<Term>> {
        let result = match name {
            "rsqrt" => {
                let root = self.each("Sqrt", &[x], x.ty.element, &[])?;
                self.each("Reciprocal", &[&root], x.ty.element, &[])?
            }
            "square" => self.each("Mul", &[x, x], x.ty.element, &[])?,
            "is_finite" => {
                // The difference of an infinity with itself is no number.
                let zero = self.integer_like(x, 0)?;
                let difference = self.each("Sub", &[x, x], x.ty.element, &[])?;
                self.each("Equal", &[&difference, &zero], ElementType::Bool, &[])?
            }
            "exponential_minus_one" => self.exponential_minus_one(x)?,
            "log_plus_one" => self.log_plus_one(x)?,
            "cbrt" => {
                let (sign, size) =
                    (self.each("Sign", &[x], x.ty.element, &[])?, self.each("Abs", &[x], x.ty.element, &[])?);
                let third = self.float_like(x, 1.0 / 3.0)?;
                let root = self.each("Pow", &[&size, &third], x.ty.element, &[])?;
                self.each("Mul", &[&sign, &root], x.ty.element, &[])?
            }
            "round_nearest_afz" => self.round_from_zero(x)?,
            "erfc" => {
                let (one, erf) = (self.float_like(x, 1.0)?, self.each("Erf", &[x], x.ty.element, &[])?);
                self.each("Sub", &[&one, &erf], x.ty.element, &[])?
            }
            "erf_inv" => self.inverse_of_erf(x)?,
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    /// The result, if it follows from operands that are known.
    fn folded(
        &mut self,
        name: &str,
        ty: &lmsc_ir::TensorType,
        element: ElementType,
        terms: &[Term],
    ) -> Got<Option<Term>> {
        let Some(known) = terms.iter().map(Term::known).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let scalar = match name {
            "convert" if terms.len() == 1 => fold::conversion(element, ty.element, known[0]),
            _ if ty.element == element && terms.iter().all(|term| term.ty.element == element) => {
                fold::operator(name, element, &known)
            }
            _ => None,
        };
        let Some(scalar) = scalar else { return Ok(None) };
        if terms.iter().any(|term| !term.dims().is_empty() && term.dims() != ty.dims) {
            return self.wrong(format!("{} and {ty} do not go together", terms[0].ty));
        }
        Ok(Some(Term::splat(ty.clone(), scalar)))
    }

    fn compare(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [a, b] = self.operands(op, terms)?;
        self.same(&a.ty, &b.ty)?;
        let direction = match op.attribute("comparison_direction").or(op.attribute("#0")) {
            Some(Attribute::Word(word)) => word.as_str(),
            _ => return self.wrong("the direction of the comparison is missing"),
        };
        let ty = lmsc_ir::TensorType::new(ElementType::Bool, a.dims());
        if let (Some(x), Some(y)) = (a.known(), b.known())
            && let Some(holds) = fold::comparison(direction, a.ty.element, x, y)
        {
            return self.integer(&ty, i64::from(holds));
        }
        if let Some(Attribute::Word(kind)) = op.attribute("compare_type").or(op.attribute("#1"))
            && kind == "TOTALORDER"
        {
            return self.refuse("a comparison by the total order of floats is not translated");
        }
        let onnx = match direction {
            "EQ" => "Equal",
            "NE" => {
                let equal = self.each("Equal", &[a, b], ElementType::Bool, &[])?;
                return self.each("Not", &[&equal], ElementType::Bool, &[]);
            }
            "LT" => "Less",
            "LE" => "LessOrEqual",
            "GT" => "Greater",
            "GE" => "GreaterOrEqual",
            other => return self.wrong(format!("`{other}` is no direction of a comparison")),
        };
        if a.ty.element == ElementType::Bool && onnx != "Equal" {
            let (a, b) = (self.cast(a, ElementType::Uint8)?, self.cast(b, ElementType::Uint8)?);
            return self.each(onnx, &[&a, &b], ElementType::Bool, &[]);
        }
        self.each(onnx, &[a, b], ElementType::Bool, &[])
    }

    /// The term in another element type.
    pub(super) fn cast(&mut self, x: &Term, to: ElementType) -> Got<Term> {
        if x.ty.element == to {
            return Ok(x.clone());
        }
        let Some(code) = code(to) else { return self.refuse(format!("lmsc does not convert to {to}")) };
        self.each_with("Cast", &[x], vec![("to", Attr::Int(code))], to, &[])
    }

    /// The bits of the term as elements of another type of the same width.
    fn bits_as(&mut self, x: &Term, to: ElementType) -> Got<Term> {
        if x.ty.element == to {
            return Ok(x.clone());
        }
        match code(to) {
            Some(code) if x.ty.element.bits() == to.bits() && to != ElementType::Bool => {
                self.each_with("BitCast", &[x], vec![("to", Attr::Int(code))], to, &[])
            }
            _ => self.refuse(format!("the bits of {} as {to} are not translated", x.ty.element)),
        }
    }

    /// An integer in the type of the term.
    pub(super) fn integer_like(&self, x: &Term, value: i64) -> Got<Term> {
        match fold::scalar(x.ty.element, value).or_else(|| fold::float(x.ty.element, value as f64)) {
            Some(scalar) => Ok(Term::splat(x.ty.clone(), scalar)),
            None => self.refuse(format!("lmsc does not compute with {}", x.ty.element)),
        }
    }

    pub(super) fn float_like(&self, x: &Term, value: f64) -> Got<Term> {
        match fold::float(x.ty.element, value) {
            Some(scalar) => Ok(Term::splat(x.ty.clone(), scalar)),
            None => self.wrong(format!("{} is no type of floats", x.ty.element)),
        }
    }

    fn shift(&mut self, name: &str, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [x, by] = self.operands(op, terms)?;
        self.same(&x.ty, &by.ty)?;
        let (element, unsigned) = (x.ty.element, unsigned(x.ty.element));
        let Some(unsigned) = unsigned else { return self.refuse(format!("shifts of {element}")) };
        let direction = if name == "shift_left" { "LEFT" } else { "RIGHT" };
        let attributes = || vec![("direction", Attr::from(direction))];
        // Numbers of bits are not negative, and those beyond the width stay beyond it as unsigned numbers.
        let by = self.cast(by, unsigned)?;
        if name != "shift_right_arithmetic" || element == unsigned {
            let bits = self.cast(x, unsigned)?;
            let shifted = self.each_with("BitShift", &[&bits, &by], attributes(), unsigned, &[])?;
            return self.cast(&shifted, element);
        }
        // Of a negative number, the complement of the shifted complement.
        let zero = self.integer_like(x, 0)?;
        let negative = self.each("Less", &[x, &zero], ElementType::Bool, &[])?;
        let complement = self.each("BitwiseNot", &[x], element, &[])?;
        let bits = self.each("Where", &[&negative, &complement, x], element, x.dims())?;
        let bits = self.cast(&bits, unsigned)?;
        let shifted = self.each_with("BitShift", &[&bits, &by], attributes(), unsigned, &[])?;
        let shifted = self.cast(&shifted, element)?;
        let complement = self.each("BitwiseNot", &[&shifted], element, &[])?;
        self.each("Where", &[&negative, &complement, &shifted], element, x.dims())
    }

    /// ln(1 + x), exact also for small x: with u = 1 + x rounded, x·ln(u)/(u − 1) (Kahan; theorem 4 of Goldberg,
    /// ACM Computing Surveys 23, 1991).
    fn log_plus_one(&mut self, x: &Term) -> Got<Term> {
        let element = x.ty.element;
        let one = self.float_like(x, 1.0)?;
        let u = self.each("Add", &[x, &one], element, &[])?;
        let ln = self.each("Log", &[&u], element, &[])?;
        let d = self.each("Sub", &[&u, &one], element, &[])?;
        let product = self.each("Mul", &[x, &ln], element, &[])?;
        let ratio = self.each("Div", &[&product, &d], element, &[])?;
        let zero = self.float_like(x, 0.0)?;
        let vanishes = self.each("Equal", &[&d, &zero], ElementType::Bool, &[])?;
        let small = self.each("Where", &[&vanishes, x, &ratio], element, x.dims())?;
        // Of large numbers the logarithm itself is exact, and of infinities the ratio is none.
        let large = self.float_like(x, 10.0)?;
        let is_large = self.each("Greater", &[x, &large], ElementType::Bool, &[])?;
        self.each("Where", &[&is_large, &ln, &small], element, x.dims())
    }

    /// eˣ − 1, exact also for small x: with u = eˣ rounded, (u − 1)·x/ln(u) (Kahan, as above).
    fn exponential_minus_one(&mut self, x: &Term) -> Got<Term> {
        let element = x.ty.element;
        let one = self.float_like(x, 1.0)?;
        let u = self.each("Exp", &[x], element, &[])?;
        let d = self.each("Sub", &[&u, &one], element, &[])?;
        let ln = self.each("Log", &[&u], element, &[])?;
        let product = self.each("Mul", &[&d, x], element, &[])?;
        let ratio = self.each("Div", &[&product, &ln], element, &[])?;
        let same = self.each("Equal", &[&u, &one], ElementType::Bool, &[])?;
        let small = self.each("Where", &[&same, x, &ratio], element, x.dims())?;
        // Far from 0 the difference itself is exact.
        let (limit, size) = (self.float_like(x, 2.0)?, self.each("Abs", &[x], element, &[])?);
        let is_large = self.each("Greater", &[&size, &limit], ElementType::Bool, &[])?;
        self.each("Where", &[&is_large, &d, &small], element, x.dims())
    }

    /// The angle of the point (x, y).
    fn angle(&mut self, y: &Term, x: &Term) -> Got<Term> {
        use std::f64::consts::{FRAC_PI_2, PI};
        self.same(&y.ty, &x.ty)?;
        let element = x.ty.element;
        if x.known().is_some() && x.known() == self.float_like(x, 1.0)?.known() {
            return self.each("Atan", &[y], element, &[]);
        }
        // Of two infinities there is no quotient.
        let largest = match element {
            ElementType::Double => f64::MAX,
            ElementType::Float16 => 65504.0,
            ElementType::Bfloat16 => f64::from(half::bf16::MAX),
            _ => f64::from(f32::MAX),
        };
        let (low, high) = (self.float_like(x, -largest)?, self.float_like(x, largest)?);
        let mut finite = Vec::new();
        for term in [y, x] {
            let raised = self.each("Max", &[term, &low], element, term.dims())?;
            finite.push(self.each("Min", &[&raised, &high], element, term.dims())?);
        }
        let ratio = self.each("Div", &[&finite[0], &finite[1]], element, &[])?;
        let right = self.each("Atan", &[&ratio], element, &[])?;
        let zero = self.float_like(x, 0.0)?;
        let below = self.each("Less", &[y, &zero], ElementType::Bool, &[])?;
        let (half, other) = (self.float_like(x, PI)?, self.float_like(x, -PI)?);
        let turn = self.each("Where", &[&below, &other, &half], element, x.dims())?;
        let left = self.each("Add", &[&right, &turn], element, &[])?;
        let (quarter, sign) = (self.float_like(x, FRAC_PI_2)?, self.each("Sign", &[y], element, &[])?);
        let upright = self.each("Mul", &[&sign, &quarter], element, &[])?;
        let is_left = self.each("Less", &[x, &zero], ElementType::Bool, &[])?;
        let is_upright = self.each("Equal", &[x, &zero], ElementType::Bool, &[])?;
        let side = self.each("Where", &[&is_left, &left, &right], element, x.dims())?;
        self.each("Where", &[&is_upright, &upright, &side], element, x.dims())
    }

    /// Halves are rounded away from 0.
    fn round_from_zero(&mut self, x: &Term) -> Got<Term> {
        let element = x.ty.element;
        let size = self.each("Abs", &[x], element, &[])?;
        let below = self.each("Floor", &[&size], element, &[])?;
        let rest = self.each("Sub", &[&size, &below], element, &[])?;
        let (half, one) = (self.float_like(x, 0.5)?, self.float_like(x, 1.0)?);
        let is_above = self.each("GreaterOrEqual", &[&rest, &half], ElementType::Bool, &[])?;
        let above = self.each("Add", &[&below, &one], element, &[])?;
        let rounded = self.each("Where", &[&is_above, &above, &below], element, x.dims())?;
        let sign = self.each("Sign", &[x], element, &[])?;
        self.each("Mul", &[&sign, &rounded], element, &[])
    }

    /// The inverse of erf by two polynomials of w = −ln(1 − x²), for 32 bits (Giles, *Approximating the erfinv function*, GPU
    /// Computing Gems 2, table 3).
    fn inverse_of_erf(&mut self, x: &Term) -> Got<Term> {
        const CENTRAL: [f64; 9] = [
            2.81022636e-08,
            3.43273939e-07,
            -3.5233877e-06,
            -4.39150654e-06,
            0.00021858087,
            -0.00125372503,
            -0.00417768164,
            0.246640727,
            1.50140941,
        ];
        const TAIL: [f64; 9] = [
            -0.000200214257,
            0.000100950558,
            0.00134934322,
            -0.00367342844,
            0.00573950773,
            -0.0076224613,
            0.00943887047,
            1.00167406,
            2.83297682,
        ];
        if x.ty.element == ElementType::Double {
            return self.refuse("the inverse of erf in 64 bits is not translated; compute it in 32 bits");
        }
        let (given, element) = (x.ty.element, ElementType::Float);
        let x = &self.cast(x, element)?;
        let square = self.each("Mul", &[x, x], element, &[])?;
        let negative = self.each("Neg", &[&square], element, &[])?;
        let ln = self.log_plus_one(&negative)?;
        let w = self.each("Neg", &[&ln], element, &[])?;
        let five = self.float_like(x, 5.0)?;
        let is_central = self.each("Less", &[&w, &five], ElementType::Bool, &[])?;
        let shift = self.float_like(x, 2.5)?;
        let central = self.each("Sub", &[&w, &shift], element, &[])?;
        let root = self.each("Sqrt", &[&w], element, &[])?;
        let three = self.float_like(x, 3.0)?;
        let tail = self.each("Sub", &[&root, &three], element, &[])?;
        let mut polynomials = Vec::new();
        for (argument, coefficients) in [(&central, CENTRAL), (&tail, TAIL)] {
            let mut sum = self.float_like(x, coefficients[0])?;
            for coefficient in &coefficients[1..] {
                let coefficient = self.float_like(x, *coefficient)?;
                let product = self.each("Mul", &[&sum, argument], element, &[])?;
                sum = self.each("Add", &[&product, &coefficient], element, &[])?;
            }
            polynomials.push(sum);
        }
        let p = self.each("Where", &[&is_central, &polynomials[0], &polynomials[1]], element, x.dims())?;
        let product = self.each("Mul", &[&p, x], element, &[])?;
        // At ±1 the logarithm is infinite.
        let size = self.each("Abs", &[x], element, &[])?;
        let one = self.float_like(x, 1.0)?;
        let infinity = self.float_like(x, f64::INFINITY)?;
        let at_end = self.each("Equal", &[&size, &one], ElementType::Bool, &[])?;
        let end = self.each("Mul", &[x, &infinity], element, &[])?;
        let result = self.each("Where", &[&at_end, &end, &product], element, x.dims())?;
        self.cast(&result, given)
    }

    fn reduce_precision(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [x] = self.operands(op, terms)?;
        let number = |name| match op.attribute(name) {
            Some(Attribute::Int(bits)) => Some(*bits),
            _ => None,
        };
        let format = match op.attribute("format") {
            Some(Attribute::Word(word)) => word.clone(),
            _ => match (number("exponent_bits"), number("mantissa_bits")) {
                (Some(e), Some(m)) => format!("e{e}m{m}"),
                _ => return self.wrong("the format of the floats is missing"),
            },
        };
        let short = match (format.as_str(), x.ty.element) {
            ("e8m23", ElementType::Float) | ("e5m10", ElementType::Float16) => return Ok(x.clone()),
            ("e8m7", ElementType::Bfloat16) => return Ok(x.clone()),
            ("e8m7", ElementType::Float) => ElementType::Bfloat16,
            ("e5m10", ElementType::Float) => ElementType::Float16,
            _ => return self.refuse(format!("{} in the precision {format}", x.ty.element)),
        };
        let short = self.cast(x, short)?;
        self.cast(&short, x.ty.element)
    }
}

/// The unsigned type of the same width.
fn unsigned(element: ElementType) -> Option<ElementType> {
    Some(match element {
        ElementType::Int8 | ElementType::Uint8 => ElementType::Uint8,
        ElementType::Int16 | ElementType::Uint16 => ElementType::Uint16,
        ElementType::Int32 | ElementType::Uint32 => ElementType::Uint32,
        ElementType::Int64 | ElementType::Uint64 => ElementType::Uint64,
        _ => return None,
    })
}
