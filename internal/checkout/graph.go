package checkout

import (
	"bytes"
	"strconv"
	"time"
)

// graphWithin is how long a Graph reads commits.
const graphWithin = 2 * time.Second

// Graph reads the commits of a repository. It is for one goroutine, and for one question:
// it reads no more commits 2 s after the first.
type Graph struct {
	disk  *disk
	place *place
	packs packs
	until time.Time
}

// Graph returns the commits of the repository that the absolute directory is in, nil if
// it is in none.
func (f *Finder) Graph(dir string) *Graph {
	f.start()
	p, err := f.disk.locate(dir)
	if err != nil || p == nil {
		return nil
	}
	return &Graph{disk: f.disk, place: p, until: time.Now().Add(graphWithin)}
}

// Commit returns the parents of a commit, and when it was committed, in seconds since
// 1970. ok is false if it is not in the repository, and once time is over.
func (g *Graph) Commit(id string) (parents []string, at int64, ok bool) {
	if !isHash(id) || time.Now().After(g.until) {
		return nil, 0, false
	}
	text, err := g.disk.commit(g.place, id, &g.packs)
	if err != nil || treeIn(text, len(id)) == nil {
		return nil, 0, false
	}
	return parentsIn(text, len(id))
}

// maxParents bounds the parents of a commit.
const maxParents = 64

// parentsIn returns the parents and the time of a commit with this text.
func parentsIn(text []byte, digits int) (parents []string, at int64, ok bool) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\n")
		if id, found := bytes.CutPrefix(line, []byte("parent ")); found {
			if len(id) != digits || !isHash(string(id)) || len(parents) == maxParents {
				return nil, 0, false
			}
			parents = append(parents, string(id))
		}
		if who, found := bytes.CutPrefix(line, []byte("committer ")); found {
			fields := bytes.Fields(who[bytes.LastIndexByte(who, '>')+1:])
			if len(fields) == 0 {
				return nil, 0, false
			}
			at, err := strconv.ParseInt(string(fields[0]), 10, 64)
			return parents, at, err == nil
		}
	}
	return nil, 0, false
}
