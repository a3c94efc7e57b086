//! What the crate measures of itself: the names and labels of its metrics, in one place.
