# Completions of bash for roundelay, which the command makes as they are asked for.
_roundelay() {
    local value
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        # Outside of quotes, a word must not fall apart.
        [[ ${COMP_WORDS[COMP_CWORD]} == [\"\']* ]] || printf -v value %q "$value"
        COMPREPLY+=("$value")
    done < <("${COMP_WORDS[0]}" completions bash --at "$COMP_CWORD" -- "${COMP_WORDS[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o default -F _roundelay roundelay
