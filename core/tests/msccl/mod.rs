//! Programs for MSCCL's runtime: read, laid out, and proved as what the runtime makes of them.

mod corpus;
