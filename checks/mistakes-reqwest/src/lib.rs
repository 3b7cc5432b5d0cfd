//! An empty library: the programs are in `tests/ui`.
