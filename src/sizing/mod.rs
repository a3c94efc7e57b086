//! `Sizing`: whether the times of a deployment fit together, and the numbers that say why.
