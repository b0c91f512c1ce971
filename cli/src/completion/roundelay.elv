# Completions of elvish for roundelay, which the command makes as they are asked for.
use str
set edit:completion:arg-completer[roundelay] = {|@words|
    var at = (- (count $words) 1)
    try {
        (external $words[0]) completions elvish --at $at -- $@words 2>/dev/null | from-lines | each {|line|
            var value about = (str:split &max=2 "\t" $line)
            var space = ' '
            if (str:has-suffix $value /) {
                set space = ''
            }
            edit:complex-candidate $value &display=(str:trim-right $value' '$about ' ') &code-suffix=$space
        }
    } catch {
        nop
    }
}
