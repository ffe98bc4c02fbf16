//! Bindings of symbolic dimensions.

use std::collections::BTreeMap;

/// What symbolic dimensions are bound to: `--dim NAME=VALUE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dims(BTreeMap<String, u64>);

impl Dims {
    /// No bindings.
    pub fn none() -> Dims {
        Dims::default()
    }

    /// The bindings in texts of the form `NAME=VALUE`.
    ///
    /// # Errors
    /// [`DimError`] if a text has another form, or a name has two values.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Dims, DimError> {
        let mut dims = Dims::none();
        for text in texts {
            let text = text.as_ref();
            let parsed = text
                .split_once('=')
                .and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)));
            let Some((name, value)) = parsed.filter(|(name, v)| !name.is_empty() && *v <= i64::MAX as u64)
            else {
                return Err(DimError::Form { text: text.to_owned() });
            };
            if let Some(before) = dims.bind(name, value).filter(|&before| before != value) {
                return Err(DimError::Twice { name: name.to_owned(), values: [before, value] });
            }
        }
        Ok(dims)
    }

    /// Binds `name`; what comes back is the value it had before.
    pub fn bind(&mut self, name: impl Into<String>, value: u64) -> Option<u64> {
        self.0.insert(name.into(), value)
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Every binding, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, &value)| (&**name, value))
    }
}

/// Why a text binds no dimension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimError {
    /// It is not `NAME=VALUE`.
    #[error("`{text}` binds no dimension; write NAME=VALUE, for example --dim batch=32")]
    Form {
        /// The text.
        text: String,
    },
    /// Two values for one name.
    #[error("--dim {name} is given twice, as {} and as {}; give it once", values[0], values[1])]
    Twice {
        /// The name.
        name: String,
        /// Its values.
        values: [u64; 2],
    },
}
