package secret_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// A file of another release is refused with the file, the field and the remedy, so that
// it is neither misread nor lost.
func TestReadJSON(t *testing.T) {
	type entry struct {
		Name string `json:"name"`
	}
	type file struct {
		Version int     `json:"version"`
		Entries []entry `json:"entries"`
	}
	for name, tt := range map[string]struct {
		text string
		want []string // in the error; nil: it is read
	}{
		"as written":          {`{"version": 1, "entries": [{"name": "a"}]}`, nil},
		"a newer field":       {`{"version": 1, "colour": "red"}`, []string{`"colour"`, "newer release", "remove the field"}},
		"in an entry":         {`{"version": 1, "entries": [{"name": "a", "client_tools": true}]}`, []string{`"client_tools"`, "newer release"}},
		"a newer version":     {`{"version": 2, "entries": {}}`, []string{"version 2", "only version 1", "use the release"}},
		"no version":          {`{}`, []string{"version 0"}},
		"cut off":             {`{"version": 1, "entr`, []string{"repair the file"}},
		"with something else": {`{"version": 1} {}`, []string{"repair the file"}},
		"of another kind":     {`{"version": 1, "entries": 7}`, []string{"entries", "repair the file"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.json")
			must.Do(t, secret.WriteFile(path, []byte(tt.text)))
			var f file
			err := secret.ReadJSON(path, 1, &f)
			if tt.want == nil {
				if err != nil || len(f.Entries) != 1 || f.Entries[0].Name != "a" {
					t.Errorf("read %+v, %v", f, err)
				}
				return
			}
			for _, part := range append(tt.want, path) {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%v, want %q in it", err, part)
				}
			}
		})
	}
	if err := secret.ReadJSON(filepath.Join(t.TempDir(), "none"), 1, new(file)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
