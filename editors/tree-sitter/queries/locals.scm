[
  (algorithm)
  (block)
  (step_statement)
  (for_statement)
  (parallel_statement)
] @local.scope

(parameter name: (identifier) @local.definition.variable.parameter)
(let_statement name: (identifier) @local.definition.variable)
(view_statement name: (identifier) @local.definition.variable)
(scratch_statement name: (identifier) @local.definition.variable)
(for_statement variable: (identifier) @local.definition.variable)
(parallel_statement variable: (identifier) @local.definition.variable)

(identifier) @local.reference
