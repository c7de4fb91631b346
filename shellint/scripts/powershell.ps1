# tether's shell integration for PowerShell 7 and Windows PowerShell 5.1.
#
# It runs after the user's profile, as text because an execution policy may forbid files, and its file is removed at once because
# it holds the nonce. What is written is OSC 633 with the nonce as the last field:
#
#   D;code  P;Cwd=…  A … B   around the prompt                        function prompt
#   E;line  C                after Enter, before the line runs        function PSConsoleHostReadLine (of PSReadLine)
#
# A native program's exit code is $LASTEXITCODE; a command of PowerShell that fails has none and counts as 1.

Remove-Item -LiteralPath @FILE@ -Force -ErrorAction SilentlyContinue

$Global:__Tether = @{
    Nonce    = '@NONCE@'
    Prompt   = $function:prompt
    ReadLine = $function:PSConsoleHostReadLine
    Running  = $false # a line was marked as started
    History  = $null  # the newest history entry at the last prompt
    Error    = $null  # the newest error when the line started
    # ConPTY of Windows 10 drops long sequences.
    LongestLine = if ([Environment]::OSVersion.Platform -eq 'Win32NT' -and [Environment]::OSVersion.Version.Build -lt 22000) { 180 } else { [int]::MaxValue }
}

function Global:__Tether-Mark([string] $Text) {
    return "$([char] 27)]633;$Text;$($Global:__Tether.Nonce)$([char] 7)"
}

# Everything but plain ASCII goes out as \xHH of its UTF-8 bytes: what the console makes of other characters depends on its code page.
function Global:__Tether-Escape([string] $Text) {
    return [regex]::Replace($Text, '[\ud800-\udbff][\udc00-\udfff]|[^\x20-\x3a\x3c-\x5b\x5d-\x7e]', {
        param($match)
        return -join ([Text.Encoding]::UTF8.GetBytes($match.Value) | ForEach-Object { '\x{0:x2}' -f $_ })
    })
}

function Global:__Tether-Line([string] $Line) {
    $text = __Tether-Escape $Line
    if ($text.Length -gt $Global:__Tether.LongestLine) { return '' }
    return __Tether-Mark "E;$text"
}

# The mark of the end of a line of which $? said $Succeeded.
function Global:__Tether-End([bool] $Succeeded, $Native, $NewestError) {
    $code = 0
    if (-not $Succeeded) {
        $code = 1
        if ($Native -and [object]::ReferenceEquals($NewestError, $Global:__Tether.Error)) { $code = $Native }
    }
    return __Tether-Mark "D;$code"
}

function Global:prompt {
    $succeeded = $?
    Set-StrictMode -Off # for what may be unset here
    $native = $Global:LASTEXITCODE
    $newestError = $Global:Error[0]
    $entry = Get-History -Count 1
    $marks = ''
    if ($Global:__Tether.Running) {
        $marks = __Tether-End $succeeded $native $newestError
    } elseif (-not $Global:__Tether.ReadLine -and $entry.Id -ne $Global:__Tether.History.Id) {
        # Without PSReadLine nothing is told at Enter. The line and its code are still right; where its output began is not known.
        $marks = (__Tether-Line $entry.CommandLine) + (__Tether-Mark 'C') + (__Tether-End $succeeded $native $newestError)
    }
    $Global:__Tether.Running = $false
    $Global:__Tether.History = $entry
    $Global:__Tether.Error = $newestError
    $location = $ExecutionContext.SessionState.Path.CurrentLocation
    if ($location.Provider.Name -eq 'FileSystem') {
        $marks += __Tether-Mark "P;Cwd=$(__Tether-Escape $location.ProviderPath)"
    }
    [Console]::Write($marks + (__Tether-Mark 'A'))
    # The user's prompt meets the $? of the line, and what it runs changes no $LASTEXITCODE. The host takes the first of what it returns.
    if (-not $succeeded) { Write-Error 'failed' -ErrorAction Ignore }
    $text = @(& $Global:__Tether.Prompt)[0]
    if ($Global:LASTEXITCODE -ne $native) { $Global:LASTEXITCODE = $native }
    return "$text" + (__Tether-Mark 'B')
}

if ($Global:__Tether.ReadLine) {
    function Global:PSConsoleHostReadLine {
        $line = & $Global:__Tether.ReadLine
        if (-not [string]::IsNullOrWhiteSpace($line)) {
            Set-StrictMode -Off
            $Global:__Tether.Error = $Global:Error[0]
            $Global:__Tether.Running = $true
            [Console]::Write((__Tether-Line $line) + (__Tether-Mark 'C'))
        }
        return $line
    }
}
