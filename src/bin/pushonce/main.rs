//! `pushonce`: the program for operators.

fn main() {}
