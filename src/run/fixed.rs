//! Defaults of inputs that are part of a program.

use std::collections::BTreeMap;

use lmsc_ir::{Data, Def, Graph};

use crate::{Code, Error};

/// For each name, the defaults of inputs on which extents or arguments of kernels depend: a program is made for these values.
pub(crate) struct Fixed(BTreeMap<String, Data>);

impl Fixed {
    pub(crate) fn of(graph: &Graph) -> Fixed {
        let default = |value| match graph.def(value) {
            Def::Initializer(index) => {
                Some((graph.value(value).name.to_string(), graph.initializers[index].data.clone()))
            }
            _ => None,
        };
        Fixed(lmsc_onnx::shapes::deciding(graph).into_iter().filter_map(default).collect())
    }

    /// Refuses another value for such an input.
    pub(crate) fn check(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        match self.0.get(name) {
            Some(Data::Inline(default)) if default == bytes => Ok(()),
            Some(_) => {
                let message = format!(
                    "`{name}` cannot be given another value than its default: extents or arguments of operators follow from it"
                );
                Err(Error::new(Code::Values, message)
                    .with_help(format!("give the value when the model is read: --value {name}=VALUE")))
            }
            None => Ok(()),
        }
    }
}
