# tether's shell integration for PowerShell 7 and Windows PowerShell 5.1.
#
# It runs after the user's profile, as text because an execution policy may forbid files, and its file is removed at once because
# it holds the nonce. What is written is OSC 633 with the nonce as the last field:
#
#   D;code  P;Cwd=…  A … B   around the prompt                        function prompt
#   E;line  C                after Enter, before the line runs        function PSConsoleHostReadLine (PSReadLine)
#
# A native program's exit code is $LASTEXITCODE; a command of PowerShell that fails has none and counts as 1.

Remove-Item -LiteralPath @FILE@ -Force -ErrorAction SilentlyContinue

# In constrained languages neither methods nor hooks can be had; nothing is marked then.
if ($ExecutionContext.SessionState.LanguageMode -ne 'FullLanguage') { return }

$Global:__Tether = @{
    Nonce    = '@NONCE@'
    Prompt   = $function:prompt
    ReadLine = $function:PSConsoleHostReadLine
    Running  = $false # a line was marked as started
    History  = -1     # id of the newest history entry at the last prompt
    Native   = $null  # $LASTEXITCODE when the line started
    Error    = $null  # the newest error then
}
$Global:__Tether.History = (Get-History -Count 1).Id

function Global:__Tether-Mark([string] $Text) {
    return "$([char] 27)]633;$Text;$($Global:__Tether.Nonce)$([char] 7)"
}

# Escapes the value of a mark: \ ; and control characters.
function Global:__Tether-Escape([string] $Text) {
    return [regex]::Replace($Text, '[\\;\x00-\x1f\x7f]', {
        param($match)
        if ($match.Value -eq '\') { return '\\' }
        return '\x{0:x2}' -f [int] [char] $match.Value
    })
}

# The code of the line that just ran, of which $? said $Succeeded.
function Global:__Tether-ExitCode([bool] $Succeeded, $Native, $NewestError) {
    if ($Succeeded) { return 0 }
    if ($null -ne $Native -and $Native -ne 0 -and [object]::ReferenceEquals($NewestError, $Global:__Tether.Error)) { return $Native }
    return 1
}

function Global:prompt {
    $succeeded = $?
    $native = $Global:LASTEXITCODE
    $newestError = if ($Global:Error.Count) { $Global:Error[0] } else { $null }
    $marks = ''
    $id = (Get-History -Count 1).Id
    if ($Global:__Tether.Running) {
        $marks += __Tether-Mark "D;$(__Tether-ExitCode $succeeded $native $newestError)"
    } elseif (-not $Global:__Tether.ReadLine -and $id -ne $Global:__Tether.History) {
        # Without PSReadLine nothing is told at Enter. The line and its code are still right, its output is not bounded.
        $line = (Get-History -Count 1).CommandLine
        $marks += (__Tether-Mark "E;$(__Tether-Escape $line)") + (__Tether-Mark 'C')
        $marks += __Tether-Mark "D;$(__Tether-ExitCode $succeeded $native $newestError)"
    }
    $Global:__Tether.Running = $false
    $Global:__Tether.History = $id
    if ($ExecutionContext.SessionState.Path.CurrentLocation.Provider.Name -eq 'FileSystem') {
        $marks += __Tether-Mark "P;Cwd=$(__Tether-Escape $ExecutionContext.SessionState.Path.CurrentLocation.ProviderPath)"
    }
    $marks += __Tether-Mark 'A'
    [Console]::Write($marks)
    # The user's prompt sees the $? and $LASTEXITCODE of the line.
    $Global:LASTEXITCODE = $native
    if (-not $succeeded) { Write-Error 'failed' -ErrorAction Ignore }
    $text = & $Global:__Tether.Prompt
    $Global:LASTEXITCODE = $native
    return "$text" + (__Tether-Mark 'B')
}

if ($Global:__Tether.ReadLine) {
    function Global:PSConsoleHostReadLine {
        $line = & $Global:__Tether.ReadLine
        if (-not [string]::IsNullOrWhiteSpace($line)) {
            $Global:__Tether.Native = $Global:LASTEXITCODE
            $Global:__Tether.Error = if ($Global:Error.Count) { $Global:Error[0] } else { $null }
            $Global:__Tether.Running = $true
            [Console]::Write((__Tether-Mark "E;$(__Tether-Escape $line)") + (__Tether-Mark 'C'))
        }
        return $line
    }
}
