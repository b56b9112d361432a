//! Settings of derived metrics: limits, debugging, the treatment of missing
//! operands, and the rights to change them (`pmSetDerivedControl(3)`).
//!
//! [`super::Session`] keeps the limit of a context.

use pmderive_runtime::model::PmStatus;

use crate::syntax::ControlOption;

/// The party that sets an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// The environment variable `PCP_DERIVED_CONTROL`. It overrides all others.
    Environment,
    /// A program, or a `#control` line of a definition file.
    Program,
}

/// The options and their values.
#[derive(Clone, Copy, Debug)]
pub struct Controls {
    values: [i32; ControlOption::ALL.len()],
    by_environment: [bool; ControlOption::ALL.len()],
}

impl Default for Controls {
    fn default() -> Controls {
        Controls { values: [-1, -1, 0, 0, 0, 0], by_environment: [false; 6] }
    }
}

impl Controls {
    /// Value of an option.
    pub fn get(&self, option: ControlOption) -> i32 {
        self.values[position(option)]
    }

    /// A limit as a number; `None` where there is no limit.
    pub fn limit(&self, option: ControlOption) -> Option<usize> {
        usize::try_from(self.get(option)).ok()
    }

    /// Sets an option.
    ///
    /// # Errors
    /// `PM_ERR_ARG` for a value that the option cannot have, `PM_ERR_AGAIN` if
    /// the environment has set another value, `PM_ERR_NOCONTEXT` for the limit
    /// of a context, which [`super::Session`] keeps.
    pub fn set(&mut self, option: ControlOption, value: i32, by: SetBy) -> Result<(), PmStatus> {
        if !option.takes(value) {
            return Err(PmStatus::ARG);
        }
        if option == ControlOption::ContextLimit {
            return Err(PmStatus::NOCONTEXT);
        }
        let at = position(option);
        match by {
            SetBy::Environment => self.by_environment[at] = true,
            SetBy::Program if self.by_environment[at] && self.values[at] != value => {
                return Err(PmStatus::AGAIN);
            }
            SetBy::Program => {}
        }
        self.values[at] = value;
        Ok(())
    }
}

fn position(option: ControlOption) -> usize {
    option as usize - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use ControlOption::*;

    #[test]
    fn the_environment_prevails() {
        let mut controls = Controls::default();
        assert_eq!(ControlOption::ALL.map(|option| controls.get(option)), [-1, -1, 0, 0, 0, 0]);
        let (environment, program) = (SetBy::Environment, SetBy::Program);
        for (option, value, by, expected) in [
            (GlobalLimit, 5, program, Ok(())),
            (GlobalLimit, 7, program, Ok(())),
            (GlobalLimit, 0, program, Err(PmStatus::ARG)),
            (GlobalLimit, 9, environment, Ok(())),
            (GlobalLimit, 7, program, Err(PmStatus::AGAIN)),
            (GlobalLimit, 9, program, Ok(())),
            (NoValue, 2, program, Err(PmStatus::ARG)),
            (NoValue, 1, program, Ok(())),
            (NoValue, 0, program, Ok(())),
            (ContextLimit, 4, environment, Err(PmStatus::NOCONTEXT)),
            (ContextLimit, 4, program, Err(PmStatus::NOCONTEXT)),
            (DebugEval, 1, program, Ok(())),
        ] {
            assert_eq!(controls.set(option, value, by), expected, "{option:?}={value}");
        }
        assert_eq!(ControlOption::ALL.map(|option| controls.get(option)), [9, -1, 0, 0, 1, 0]);
        assert_eq!(controls.limit(GlobalLimit), Some(9));
        assert_eq!(controls.limit(ContextLimit), None);
    }
}
