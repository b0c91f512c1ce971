# Completions of PowerShell for roundelay, which the command makes as they are asked for.
Register-ArgumentCompleter -Native -CommandName roundelay -ScriptBlock {
    param($word, $ast, $cursor)
    $before = $ast.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursor }
    $words = @($before | ForEach-Object { $_.Extent.Text })
    $at = if ($word) { $words.Count - 1 } else { $words.Count }
    & $words[0] completions powershell --at $at '--' @words 2>$null | ForEach-Object {
        $value, $about = $_ -split "`t", 2
        $text = if ($value -match '[^\w./:=+-]') { "'" + $value.Replace("'", "''") + "'" } else { $value }
        $about = if ($about) { $about } else { $value }
        [System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)
    }
}
