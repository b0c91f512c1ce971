; Where two patterns take a node, the later pattern counts.

(identifier) @variable
((identifier) @variable.builtin
  (#any-of? @variable.builtin "input" "local" "nranks" "output" "rank" "topology"))

; Types and collectives.
(type) @type
((identifier) @type
  (#any-of? @type "Groups" "Rank" "Ring" "Rings" "Topology" "Tree" "Trees"))
((type) @type.builtin
  (#any-of? @type.builtin
    "AllGather" "AllReduce" "AllToAll" "Broadcast" "Gather" "Reduce" "ReduceScatter" "Scatter" "bool" "f32" "int" "region"))

; Declarations.
(algorithm name: (identifier) @type)
(executor name: (identifier) @type)
(step_statement name: (identifier) @function)
(parameter name: (identifier) @variable.parameter)
(attribute name: (identifier) @attribute)
(setting name: (identifier) @variable.other.member)

; Fields and arguments with names.
(member field: (identifier) @variable.other.member)
(named_argument name: (identifier) @variable.parameter)
(option name: (identifier) @variable.parameter)

; Calls.
(call function: (identifier) @function)
(call function: (scoped_name name: (identifier) @function))
(call function: (member field: (identifier) @function.method))
((call function: (identifier) @type)
  (#match? @type "^[A-Z]"))
(scoped_name scope: (identifier) @type)
((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin
    "copy" "fold" "reduce" "send" "recv" "recv_copy_send" "recv_reduce" "recv_reduce_copy" "recv_reduce_copy_send"
    "recv_reduce_send"))
((call function: (member field: (identifier) @function.builtin))
  (#any-of? @function.builtin
    "RxAck" "RxDataSignal" "TxAck" "TxDataSignal" "recv" "recv_copy_send" "recv_reduce" "recv_reduce_copy"
    "recv_reduce_copy_send" "recv_reduce_send" "send"))

; Words.
["else" "if" "otherwise" "when"] @keyword.control.conditional
["for" "in" "parallel"] @keyword.control.repeat
["on" "require" "within" "without"] @keyword.control
"use" @keyword.control.import
["algorithm" "as" "executor" "fifo" "let" "like" "scratch" "step" "view"] @keyword
(executor "for" @keyword)
"pub" @keyword.storage.modifier
"rust" @keyword

; Literals.
(boolean) @constant.builtin.boolean
(integer) @constant.numeric.integer
(quantity) @constant.numeric
(unit) @type.builtin
(string) @string
(escape_sequence) @constant.character.escape

; Operators and punctuation.
[
  "!" "!=" "%" "&" "&&" "*" "+" "-" "->" ".." "..=" "/" "<" "<<" "<=" "=" "==" "=>" ">" ">=" ">>" "^" "|" "||"
] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," "." ":" "::" ";"] @punctuation.delimiter
(attribute ["#" "[" "]"] @attribute)

; Comments.
(comment) @comment
(doc_comment) @comment.documentation
