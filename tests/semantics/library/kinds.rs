//! Dtypes and ops: in full on the first algorithm of each family, a cover of all pairs on every algorithm.
