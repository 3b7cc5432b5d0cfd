//! The programs are in `tests/ui`.
