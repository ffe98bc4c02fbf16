//! The text form of a program, for tests and for people: a line for each command.

use std::fmt;

use super::{Action, Command, Launch, Memory, PlacedTensor, Program, Role, Stream, Wait};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: arena {}, slab {}", self.name, self.arena.0, self.slab.0)?;
        for launch in &self.prelude {
            writeln!(f, "once {launch}")?;
        }
        for given in &self.given {
            let memory = if given.memory == Memory::Slab { " on the host" } else { "" };
            write!(f, "given {}{memory}", given.tensor)?;
            match given.role {
                Role::Input => writeln!(f, ", an input")?,
                Role::Constant => writeln!(f, ", a constant")?,
                Role::Variable(next) => writeln!(f, ", then {}", self.contents[next].name)?,
            }
        }
        for stream in Stream::ALL {
            for (index, command) in self.stream(stream).iter().enumerate() {
                write!(f, "{stream} {index}: ")?;
                self.line(f, stream, command)?;
            }
        }
        for output in &self.outputs {
            let memory = if output.memory == Memory::Slab { " on the host" } else { "" };
            writeln!(f, "output {}{memory}", output.tensor)?;
        }
        Ok(())
    }
}

impl Program {
    fn line(&self, f: &mut fmt::Formatter<'_>, stream: Stream, command: &Command) -> fmt::Result {
        match &command.action {
            Action::Turn => f.write_str("turn")?,
            Action::Launch(launch) => write!(f, "{launch}")?,
            Action::Copy(copy) => {
                let end = copy.begin + copy.bytes;
                let (from, to) = match stream {
                    Stream::In => (format!("host:{}", copy.host), copy.device.to_string()),
                    _ => (copy.device.to_string(), format!("host:{}", copy.host)),
                };
                let name = &self.contents[copy.content].name;
                write!(f, "{} copies {name}[{}..{end}] from {from} to {to}", copy.node, copy.begin)?;
            }
        }
        for (index, wait) in command.waits.iter().enumerate() {
            write!(f, "{}{wait}", if index == 0 { " after " } else { ", " })?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.stream, self.command)?;
        if self.before { f.write_str(" of the step before") } else { Ok(()) }
    }
}

impl fmt::Display for PlacedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "_" } else { &self.name };
        match self.at {
            Some(at) => write!(f, "{} {name}@{at}", self.ty),
            None => write!(f, "{} {name}", self.ty),
        }
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, tensors: &[Option<PlacedTensor>]| {
            for (index, tensor) in tensors.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { ", " })?;
                match tensor {
                    Some(tensor) => write!(f, "{tensor}")?,
                    None => f.write_str("_")?,
                }
            }
            Ok(())
        };
        write!(f, "[{}] ", self.node)?;
        list(f, &self.results)?;
        write!(f, " = {}(", self.op)?;
        list(f, &self.operands)?;
        f.write_str(")")?;
        if !self.workspace.is_empty() {
            write!(f, " workspace {}..{}", self.workspace.start, self.workspace.end)?;
        }
        Ok(())
    }
}
