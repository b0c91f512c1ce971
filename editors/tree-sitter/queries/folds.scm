[
  (algorithm)
  (executor)
  (for_statement)
  (if_statement)
  (parallel_statement)
  (step_statement)
  (within_statement)
  (comment)
] @fold
