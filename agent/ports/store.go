package ports

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"tether/platform/secret"
)

// maxGiven bounds the ports that are remembered.
const maxGiven = 500

const storeVersion = 1

// store is the content of the file.
type store struct {
	Version int     `json:"version"`
	Given   []given `json:"given"`
}

// given is the port that a program had last.
type given struct {
	Key  string `json:"key"` // hash of its directory and name
	Port int    `json:"port"`
}

func (k *Keeper) load() {
	if k.opts.Keep == "" {
		return
	}
	var read store
	err := secret.ReadJSON(k.opts.Keep, storeVersion, &read)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		k.opts.Report(fmt.Sprintf("cannot read which ports were given last; servers may get others: %v", err))
		return
	}
	read.Given = slices.DeleteFunc(read.Given, func(g given) bool {
		return g.Port < First || g.Port > Last || slices.Contains(refused, g.Port)
	})
	k.given = read.Given[max(0, len(read.Given)-maxGiven):]
}

// last returns the port that the key had last, 0 if it had none.
func (k *Keeper) last(key string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.given {
		if g.Key == key {
			return g.Port
		}
	}
	return 0
}

// remember records the port that a key has, and writes the file if that is new.
func (k *Keeper) remember(key string, port int) {
	if k.last(key) == port {
		return
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	k.given = append(slices.DeleteFunc(k.given, func(g given) bool { return g.Key == key }), given{key, port})
	k.given = k.given[max(0, len(k.given)-maxGiven):]
	all := slices.Clone(k.given)
	k.mu.Unlock()
	if k.opts.Keep == "" {
		return
	}
	trouble := ""
	if err := secret.WriteJSON(k.opts.Keep, store{storeVersion, all}); err != nil {
		trouble = fmt.Sprintf("cannot save which ports were given last; the next daemon may give others: %v", err)
	}
	k.opts.Report(trouble)
}
