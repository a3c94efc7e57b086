//! The program `pushonce`, as it is built: what it prints, what it ends with, and what it finds in real plans.

mod auth;
mod dead_letters;
mod documented;
mod edit;
mod followed;
mod graded;
mod grants;
mod input;
mod numbers;
mod plans;
mod program;
mod projects;
mod times;
