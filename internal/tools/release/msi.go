package main

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// upgradeCode is the same for all versions of the installer, for ever.
const upgradeCode = "5B0B3F0C-55A1-4C6B-9A51-6C2B2E5C8B7D"

// namespace is the namespace of our name-based UUIDs.
const namespace = "\x5b\x0b\x3f\x0c\x55\xa1\x4c\x6b\x9a\x51\x6c\x2b\x2e\x5c\x8b\x7e"

// guid is a UUID of version 5 (RFC 9562, section 5.5): the same for the same words.
func guid(words ...string) string {
	sum := sha1.Sum([]byte(namespace + strings.Join(words, "\x00")))
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	return strings.ToUpper(fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", binary.BigEndian.Uint32(sum[:]), sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// wxs is the installer's source, for wixl: files below the user's own programs, so that
// no administrator is needed. On removal, not on an upgrade, running programs are ended
// first, because Windows removes no running program.
var wxs = template.Must(template.New("wxs").Parse(`<?xml version="1.0" encoding="utf-8"?>
<Wix xmlns="http://schemas.microsoft.com/wix/2006/wi">
  <Product Id="{{.Product}}" UpgradeCode="{{.Upgrade}}" Name="tether" Version="{{.Core}}" Manufacturer="{{.Maker}}" Language="1033">
    <Package InstallerVersion="500" Compressed="yes" InstallScope="perUser" Description="tether {{.Version}}"/>
    <MajorUpgrade DowngradeErrorMessage="A newer version of tether is installed."/>
    <Media Id="1" Cabinet="tether.cab" EmbedCab="yes"/>
    <Property Id="MSIRESTARTMANAGERCONTROL" Value="Disable"/>
    <Property Id="REBOOT" Value="ReallySuppress"/>
    <Property Id="ARPCOMMENTS" Value="{{.Version}}"/>
    <Directory Id="TARGETDIR" Name="SourceDir">
      <Directory Id="LocalAppDataFolder">
        <Directory Id="ProgramsDir" Name="Programs">
          <Directory Id="INSTALLDIR" Name="tether">
{{- range .Groups}}
{{- if .Dir}}
            <Directory Id="{{.ID}}Dir" Name="{{.Dir}}">
{{- end}}
              <Component Id="{{.ID}}" Guid="{{.GUID}}" Win64="yes">
{{- range $i, $f := .Files}}
                <File Id="{{$f.ID}}" Name="{{$f.Name}}" Source="{{$f.From}}"{{if eq $i 0}} KeyPath="yes"{{end}}/>
{{- end}}
              </Component>
{{- if .Dir}}
            </Directory>
{{- end}}
{{- end}}
          </Directory>
        </Directory>
      </Directory>
    </Directory>
    <Feature Id="All" Level="1">
{{- range .Groups}}
      <ComponentRef Id="{{.ID}}"/>
{{- end}}
    </Feature>
    <CustomAction Id="RemoveService" FileKey="tether.exe" ExeCommand="service uninstall" Return="ignore"/>
    <CustomAction Id="StopDaemon" FileKey="tether.exe" ExeCommand="stop" Return="ignore"/>
    <InstallExecuteSequence>
      <Custom Action="RemoveService" After="CostFinalize">REMOVE="ALL" AND NOT UPGRADINGPRODUCTCODE</Custom>
      <Custom Action="StopDaemon" After="RemoveService">REMOVE="ALL" AND NOT UPGRADINGPRODUCTCODE</Custom>
    </InstallExecuteSequence>
  </Product>
</Wix>
`))

// group is the files of one directory below the program's.
type group struct {
	ID, Dir, GUID string
	Files         []msiFile
}

type msiFile struct{ ID, Name, From string }

// groups sorts files by directory. Manuals are all in man, without a section. wixl takes
// no absolute paths, so sources are named from work.
func groups(work string, files []file) ([]group, error) {
	all := []group{{ID: "Programs"}, {ID: "Manual", Dir: "man"}, {ID: "Completions", Dir: "completions"}, {ID: "Docs", Dir: "docs"}}
	for i := range all {
		all[i].GUID = guid("component", all[i].ID)
	}
	for _, f := range files {
		g := &all[0]
		switch path.Dir(f.portable()) {
		case "man/man1":
			g = &all[1]
		case "completions":
			g = &all[2]
		case "docs":
			g = &all[3]
		}
		id := f.name
		if strings.HasPrefix(id, "_") || g.Dir != "" {
			id = g.ID + "." + strings.TrimPrefix(id, "_")
		}
		from, err := filepath.Rel(work, f.from)
		if err != nil {
			return nil, err
		}
		g.Files = append(g.Files, msiFile{strings.ReplaceAll(id, "-", "_"), f.name, from})
	}
	return all, nil
}

// source renders the installer's source.
func (r *release) source(t target, files []file) (string, error) {
	all, err := groups(r.work, files)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = wxs.Execute(&b, map[string]any{"Product": guid("product", string(r.version), t.arch), "Upgrade": upgradeCode, "Core": r.version.core(),
		"Maker": maintainer, "Version": r.version, "Groups": all})
	return b.String(), err
}

// queries add features that this wixl lacks: the directory of the programs in the user's
// PATH, and an upgrade also between versions of the same three numbers, as between two
// commits (attributes: migrate features, including the greatest version).
var queries = []string{
	"CREATE TABLE `Environment` (`Environment` CHAR(72) NOT NULL, `Name` CHAR(255) NOT NULL LOCALIZABLE, `Value` CHAR(255) LOCALIZABLE, " +
		"`Component_` CHAR(72) NOT NULL PRIMARY KEY `Environment`)",
	"INSERT INTO `Environment` (`Environment`, `Name`, `Value`, `Component_`) VALUES ('Path', '=-PATH', '[~];[INSTALLDIR]', 'Programs')",
	"INSERT INTO `InstallExecuteSequence` (`Action`, `Sequence`) VALUES ('RemoveEnvironmentStrings', 3300)",
	"INSERT INTO `InstallExecuteSequence` (`Action`, `Sequence`) VALUES ('WriteEnvironmentStrings', 5200)",
	"DELETE FROM `Upgrade` WHERE `ActionProperty` = 'WIX_UPGRADE_DETECTED'",
	"INSERT INTO `Upgrade` (`UpgradeCode`, `VersionMax`, `Attributes`, `ActionProperty`) VALUES ('{" + upgradeCode + "}', 'VERSION', 513, 'WIX_UPGRADE_DETECTED')",
}

// installers makes a .msi for each Windows. wixl takes the time from the clock, which
// faketime sets.
func (r *release) installers(ctx context.Context) error {
	for _, t := range r.targets {
		if t.os != "windows" {
			continue
		}
		files, err := r.files(t)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := redate(f.from, r.epoch); err != nil {
				return err
			}
		}
		text, err := r.source(t, files)
		if err != nil {
			return err
		}
		source := filepath.Join(r.work, t.arch+".wxs")
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			return err
		}
		if err := r.installer(ctx, t, source); err != nil {
			return fmt.Errorf("%s: %w", r.name(t, ".msi"), err)
		}
	}
	return nil
}

func (r *release) installer(ctx context.Context, t target, source string) error {
	to := r.path(t, ".msi")
	// This wixl knows no arm64. The tables are the same for any 64-bit Windows, and the
	// summary, which names the architecture, is written afterwards.
	if err := r.frozen(ctx, "wixl", "-a", "x64", "-o", to, source); err != nil {
		return err
	}
	for _, q := range queries {
		if err := r.frozen(ctx, "msibuild", to, "-q", strings.ReplaceAll(q, "VERSION", r.version.core())); err != nil {
			return err
		}
	}
	platform := map[string]string{"amd64": "x64;1033", "arm64": "Arm64;1033"}[t.arch]
	return r.frozen(ctx, "msibuild", to, "-s", "tether "+string(r.version), maintainer, platform, "{"+guid("package", string(r.version), t.arch)+"}")
}

// frozen runs a command with the commit's time as the present.
func (r *release) frozen(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "faketime", append([]string{"-f", r.epoch.Format(time.DateTime)}, args...)...)
	cmd.Env = r.dated()
	cmd.Dir = r.work // from which the source's paths start
	return runQuiet(cmd)
}
