package declared

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"tether/platform/proc"
	"tether/platform/secret"
)

// store is the content of the file, for the next daemon.
type store struct {
	Version   int             `json:"version"`
	Terminals map[string]kept `json:"terminals"` // by name
}

// kept is the record of one terminal.
type kept struct {
	ID   string `json:"id,omitempty"`   // id of the last terminal
	Down bool   `json:"down,omitempty"` // the person has put it down
	// Ready says that the terminal was ready. It is recorded because the output line that
	// showed it may not be kept any more.
	Ready bool `json:"ready,omitempty"`
	// Limits are those with which somebody last asked for the terminal to be up; nil if
	// nobody has.
	Limits *proc.Limits `json:"limits,omitempty"`
}

const storeVersion = 1

// load reads the file. An unreadable file counts as empty. Running terminals may be
// started twice then, and the person is told so, but nothing is lost.
func (s *Set) load() {
	read, err := readStore(s.opts.Keep)
	if err != nil {
		s.opts.Report(fmt.Sprintf("cannot read which terminals are declared; some may run twice: %v", err))
	}
	s.mu.Lock()
	s.store = read
	s.mu.Unlock()
}

func readStore(path string) (store, error) {
	empty := store{Version: storeVersion, Terminals: map[string]kept{}}
	data, err := secret.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, err
	}
	got, err := parseStore(data)
	if err != nil {
		return empty, fmt.Errorf("%s: %w", path, err)
	}
	return got, nil
}

func parseStore(data []byte) (store, error) {
	var got store
	if err := json.Unmarshal(data, &got); err != nil {
		return got, err
	}
	if got.Version != storeVersion {
		return got, fmt.Errorf("it has version %d, this program knows %d", got.Version, storeVersion)
	}
	for name, k := range got.Terminals {
		if k.Limits == nil {
			continue
		}
		if err := k.Limits.Check(); err != nil {
			return got, fmt.Errorf("terminal %.70q: %w", name, err)
		}
	}
	if got.Terminals == nil {
		got.Terminals = map[string]kept{}
	}
	return got, nil
}

// keep changes the record of one terminal, and writes the file if anything has changed.
func (s *Set) keep(name string, change func(*kept)) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	was := s.store.Terminals[name]
	now := was
	change(&now)
	s.store.Terminals[name] = now
	data, err := json.MarshalIndent(s.store, "", "\t")
	s.mu.Unlock()
	if now == was {
		return
	}
	if err == nil {
		err = secret.WriteFile(s.opts.Keep, append(data, '\n'))
	}
	trouble := ""
	if err != nil {
		trouble = fmt.Sprintf("cannot save which terminals are declared; the next daemon may start some twice: %v", err)
	}
	s.opts.Report(trouble)
}
