# Installs tether {{.Version}} for you alone, without an administrator, or updates it:
#
#   irm {{.Base}}/install.ps1 | iex
#
# It puts tether.exe and tether-host.exe into .local\bin of your home, their pages into .local\share\doc\tether, and changes nothing
# else. Variables: TETHER_BIN is another directory, TETHER_BASE_URL another address with the same files.
& {
	$ErrorActionPreference = 'Stop'
	$ProgressPreference = 'SilentlyContinue' # it makes downloads slow
	$version = '{{.Version}}'
	$base = if ($env:TETHER_BASE_URL) { $env:TETHER_BASE_URL } else { '{{.Base}}' }
	$signers = '{{.Signers}}'
	$doc = $null
	$bin = if ($env:TETHER_BIN) { $env:TETHER_BIN } else { Join-Path $HOME '.local\bin' }
	if ($env:OS -ne 'Windows_NT') { throw "tether: not installed: run in a shell: curl -fsSL $base/install.sh | sh" }
	$processor = if ($env:PROCESSOR_ARCHITEW6432) { $env:PROCESSOR_ARCHITEW6432 } else { $env:PROCESSOR_ARCHITECTURE }
	$arch = @{ AMD64 = 'amd64'; ARM64 = 'arm64' }[$processor]
	if (-not $arch) { throw "tether: not installed: there is no build for processors of the kind $processor" }
	[Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor 3072 # TLS 1.2
	$file = "tether_${version}_windows_$arch"
	$work = Join-Path ([IO.Path]::GetTempPath()) ('tether-' + [Guid]::NewGuid())
	New-Item -ItemType Directory -Path $work | Out-Null
	try {
		$list = Join-Path $work 'SHA256SUMS'
		Invoke-WebRequest -UseBasicParsing "$base/SHA256SUMS" -OutFile $list
		if ($signers) {
			if (-not (Get-Command ssh-keygen -ErrorAction SilentlyContinue)) { throw 'tether: not installed: it takes ssh-keygen (OpenSSH 8.1 or later) to check the signature' }
			Invoke-WebRequest -UseBasicParsing "$base/SHA256SUMS.sig" -OutFile "$list.sig"
			[IO.File]::WriteAllText("$work\signers", "$signers`n")
			cmd /c "ssh-keygen -q -Y verify -f ""$work\signers"" -I {{.Signer}} -n {{.Signer}} -s ""$list.sig"" < ""$list"" >nul 2>&1"
			if ($LASTEXITCODE) { throw "tether: not installed: the signature of $base/SHA256SUMS is wrong" }
			'tether: the signature of the list of checksums is right'
		} else {
			'tether: the list of checksums is not signed: this script has no signing key'
		}
		$want = Get-Content $list | Where-Object { $_ -like "*  $file.zip" } | ForEach-Object { $_.Substring(0, 64) }
		if (-not $want) { throw "tether: not installed: $base/SHA256SUMS has no $file.zip" }
		$zip = Join-Path $work "$file.zip"
		"tether: downloading $base/$file.zip"
		Invoke-WebRequest -UseBasicParsing "$base/$file.zip" -OutFile $zip
		$got = (Get-FileHash -Algorithm SHA256 $zip).Hash.ToLower()
		if ($got -ne $want) { throw "tether: not installed: the checksum of $base/$file.zip is $got, want $want" }
		Expand-Archive -Path $zip -DestinationPath $work
		New-Item -ItemType Directory -Force -Path $bin | Out-Null
		if ((Split-Path -Leaf $bin) -eq 'bin') { # where doctor looks for pages
			$doc = Join-Path (Split-Path $bin) 'share\doc\tether'
			if (Test-Path $doc) { Remove-Item -Recurse -Force $doc }
			New-Item -ItemType Directory -Force -Path $doc | Out-Null
			Copy-Item -Recurse "$work\$file\docs", "$work\$file\README.md", "$work\$file\LICENSES.txt" $doc
		}
		foreach ($program in 'tether-host.exe', 'tether.exe') {
			$to = Join-Path $bin $program
			Copy-Item (Join-Path $work "$file\$program") "$to.new"
			if (Test-Path $to) { # a running program can be renamed, not replaced
				Get-ChildItem "$to.old-*" | Remove-Item -ErrorAction SilentlyContinue
				Move-Item $to "$to.old-$([Guid]::NewGuid())"
			}
			Move-Item "$to.new" $to
		}
	} finally {
		Remove-Item -Recurse -Force $work
		Remove-Item -ErrorAction SilentlyContinue (Join-Path $bin '*.exe.new')
	}
	"tether: installed $version`: $bin\tether.exe and $bin\tether-host.exe"
	if ($doc) { "tether: their pages are in $doc" }
	if (($env:Path -split ';') -notcontains $bin) {
		"tether: $bin is not in your PATH; Settings, Environment variables adds it, and for this window:"
		"  `$env:Path += ';$bin'"
	}
	'tether: to undo it, with all that tether has written since:'
	'  tether setup agents --undo --yes; tether service uninstall; tether stop'
	$written = @("$bin\tether*.exe*", $doc, "$env:APPDATA\tether", "$env:LOCALAPPDATA\tether") | Where-Object { $_ }
	"  Remove-Item -Recurse -Force -ErrorAction Ignore '$($written -join "', '")'"
	'tether: next: tether shows what you can do; tether demo tries it on this machine'
}
