# Completions of fish for roundelay, which the command makes as they are asked for.
function __roundelay_candidates
    set -l before (commandline -opc)
    $before[1] completions fish --at (count $before) -- $before (commandline -ct) 2>/dev/null
end
complete -c roundelay -f -k -a '(__roundelay_candidates)'
