package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bom is the used part of a bill of materials in the form of CycloneDX 1.6
// (https://cyclonedx.org/docs/1.6/json).
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// purl is a module's package URL (https://github.com/package-url/purl-spec). The plus of
// +incompatible is the only character of ours that must be escaped.
func purl(module, v string) string {
	return "pkg:golang/" + module + "@" + strings.ReplaceAll(v, "+", "%2B")
}

// bill lists the modules linked into each program, as recorded in the programs
// themselves.
func (r *release) bill() (bom, error) {
	top := component{Type: "application", Ref: product, Name: product, Version: string(r.version)}
	b := bom{Format: "CycloneDX", Spec: "1.6", Serial: "urn:uuid:" + strings.ToLower(guid("bom", string(r.version))), Version: 1,
		Metadata: metadata{r.epoch.Format(time.RFC3339), top}}
	tops := dependency{product, nil}
	libraries := map[string]component{}
	for _, t := range r.targets {
		for _, name := range programs {
			one, on, err := billOf(t, name, r.program(t, name))
			if err != nil {
				return bom{}, err
			}
			one.Version = string(r.version)
			b.Components = append(b.Components, one)
			tops.On = append(tops.On, one.Ref)
			d := dependency{one.Ref, nil}
			for _, l := range on {
				libraries[l.Ref] = l
				d.On = append(d.On, l.Ref)
			}
			b.Dependencies = append(b.Dependencies, d)
		}
	}
	b.Dependencies = append([]dependency{tops}, b.Dependencies...)
	refs := []string{}
	for ref := range libraries {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	for _, ref := range refs {
		b.Components = append(b.Components, libraries[ref])
	}
	return b, nil
}

// billOf is one program and the modules in it.
func billOf(t target, name, path string) (component, []component, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return component{}, nil, err
	}
	sum, err := sumOf(path)
	if err != nil {
		return component{}, nil, err
	}
	one := component{Type: "application", Ref: name + "-" + t.os + "-" + t.arch, Name: t.exe(name), Hashes: []hash{{"SHA-256", sum}}}
	for _, s := range info.Settings {
		one.Properties = append(one.Properties, property{"go:" + s.Key, s.Value})
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	on := []component{{Type: "library", Ref: purl("std", goVersion), Name: "std", Version: goVersion, PURL: purl("std", goVersion)}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		l := component{Type: "library", Ref: purl(m.Path, m.Version), Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version)}
		l.Properties = []property{{"go:sum", m.Sum}}
		on = append(on, l)
	}
	return one, on, nil
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

const sumsName = "SHA256SUMS"

// account writes the bill of materials, then the checksums of everything.
func (r *release) account(context.Context) error {
	b, err := r.bill()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s_%s.cdx.json", product, r.version)
	if err := os.WriteFile(filepath.Join(r.out, name), append(text, '\n'), 0o644); err != nil {
		return err
	}
	sums, err := sumsIn(r.out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, sumsName), []byte(sums), 0o644)
}

// sumsIn are the checksums of a directory's files, as sha256sum -c reads them.
func sumsIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.Name() == sumsName {
			continue
		}
		sum, err := sumOf(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name())
	}
	return b.String(), nil
}

// list prints sizes: of the programs, then of the packages made from them.
func (r *release) list(to io.Writer) error {
	for _, t := range r.targets {
		for _, name := range programs {
			if err := listOne(to, r.program(t, name), t.String()+" "+name); err != nil {
				return err
			}
		}
	}
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := listOne(to, filepath.Join(r.out, e.Name()), e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func listOne(to io.Writer, path, name string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%9d  %s\n", info.Size(), name)
	return err
}
