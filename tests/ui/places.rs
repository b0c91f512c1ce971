//! Places of tokens: in modules, in several macros of a file, behind other letters, over lines, and through a macro of the
//! author's.

mod outer {
    pub mod inner {
        roundelay::collective! {
            algorithm Typed() -> AllReduce {
                /* é, ö */ let a = (2 + nranks) + (true || false);
            }
        }
    }

    roundelay::collective! {
        algorithm Signs() -> AllReduce {
            copy(local.input, local.output) ~ 3;
        }
    }
}

roundelay::collective! {
    algorithm OverLines() -> AllReduce {
        copy(
            local.input.split(2)[0],
            local.output.split(3)[0],
        );
    }
}

macro_rules! forwarded {
    ($name:ident, $number:expr) => {
        roundelay::collective! {
            algorithm $name() -> AllReduce {
                let a = $number + unknown;
            }
        }
    };
}

forwarded!(Forwarded, 1 + rank + unheard);
