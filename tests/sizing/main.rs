//! Whether times fit together: the table of cases that `terraform test` and the simulator read too, and the formula by enumeration.

mod cases;
mod formula;
mod texts;
